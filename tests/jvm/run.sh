#!/usr/bin/env bash
# The JVM: the native library and the jars built, all tests of the Maven project, README's example in a fresh Maven
# project that knows the local repository alone, and the jar's class files and library as they should be.
#
# It needs a JDK of version 17 or newer, Maven, and Maven Central. `soak` as argument: ten minutes of everything,
# watching memory.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
work=${WINDROW_JVM_DIR:-$root/target/jvm}
mkdir -p "$work"
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$work}
said() { printf 'ok: %s\n' "$1"; }
mvn() { command mvn -q -B -Dstyle.color=never -Dwindrow.target="$CARGO_TARGET_DIR" "$@"; }

# Apart from the workspace, so that its checks do not see it.
(cd "$root/crates/jvm" && cargo fmt --check && cargo clippy -q --release --locked -- -D warnings)
said "formatted, and without warnings"

rm -rf "$root"/java/*/target/surefire-reports
mvn -f "$root/java/pom.xml" install
tests() { grep -ho '<testsuite [^>]*' "$root/java/$1"/target/surefire-reports/TEST-*.xml | sed -n 's/.* tests="\([0-9]*\)".*/\1/p' |
    awk '{all += $1} END {print all + 0}'; }
for module in "$root"/java/*/pom.xml; do
    module=$(basename "$(dirname "$module")")
    said "$module: $(tests "$module") tests"
done

# -Xcheck:jni writes past the tests' own output, which surefire keeps in a file.
if grep -qs 'WARNING in native method\|FATAL ERROR in native method' "$root"/java/windrow/target/surefire-reports/*.dumpstream; then
    echo "-Xcheck:jni has found wrong uses of the native interface: java/windrow/target/surefire-reports" >&2
    exit 1
fi
said "no wrong use of the JVM's native interface"

jar=$root/java/windrow/target/windrow-0.1.0.jar
unzip -l "$jar" | grep -q 'org/windrow/native/Linux-.*/libwindrow_jvm.so'
# Every native method that Java declares is there, and nothing else.
grep -oE 'static native [^(]*' "$root/java/windrow/src/main/java/org/windrow/Native.java" | awk '{print $NF}' | sort >"$work/declared"
nm -D --defined-only "$CARGO_TARGET_DIR/release/libwindrow_jvm.so" | awk '{print $3}' | grep -v '^JNI_OnLoad$' |
    sed 's/^Java_org_windrow_Native_//' | sort | diff "$work/declared" -
said "$(wc -l <"$work/declared") native methods, declared and exported; the library is in the jar"

rm -rf "$work/fresh" && mkdir -p "$work/fresh/src/main/java"
block() { awk -v lang="$1" '$0 == "```" lang {on = 1; next} /^```/ {on = 0} on' "$root/java/README.md"; }
block java >"$work/fresh/src/main/java/Example.java"
{
    echo '<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>'
    echo '<groupId>fresh</groupId><artifactId>fresh</artifactId><version>1</version>'
    echo '<properties><maven.compiler.source>17</maven.compiler.source><maven.compiler.target>17</maven.compiler.target></properties><dependencies>'
    block xml
    echo '</dependencies></project>'
} >"$work/fresh/pom.xml"
(
    cd "$work/fresh"
    command mvn -q -B compile org.apache.maven.plugins:maven-dependency-plugin:3.8.1:build-classpath -Dmdep.outputFile=classpath
    for run in first second; do
        java -cp "target/classes:$(cat classpath)" Example >$run
    done
    printf 'visit 1\napple is red\npear is green\n' | diff first -
    printf 'visit 2\napple is red\npear is green\n' | diff second -
)
said "README's example runs in a fresh Maven project"

if [ "${1:-}" = soak ]; then
    java -Xmx256m -cp "$jar" "$here/Soak.java" "${2:-600}" "$work"
fi

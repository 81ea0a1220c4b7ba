#!/usr/bin/env bash
# Windrow next to rocksdbjni on the JVM, by JMH: puts, gets, scans. Arguments go to JMH: `get -f 1` for one of them.
#
# It needs the jar in the local repository (tests/jvm/run.sh puts it there), and Maven Central. Alone on the machine.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../../.." && pwd)
work=${WINDROW_JVM_DIR:-$root/target/jvm}
mkdir -p "$work"
if [ -z "${BUILT:-}" ]; then
    mvn -q -B -Dstyle.color=never -f "$here/pom.xml" compile \
        org.apache.maven.plugins:maven-dependency-plugin:3.8.1:build-classpath -Dmdep.outputFile="$work/bench-classpath"
fi
java -cp "$here/target/classes:$(cat "$work/bench-classpath")" -Dbench.dir="$work" org.openjdk.jmh.Main \
    -jvmArgsAppend "-Dbench.dir=$work" -rf csv -rff "$work/bench.csv" "$@" >"$work/bench.log"
awk -F, 'NR > 1 {gsub(/["\r]/, ""); split($1, name, "."); rate[name[3], $NF] = $5; ops[name[3]] = 1}
    END {printf "| | windrow | rocksdbjni | times |\n|---|---:|---:|---:|\n"
         for (op in ops) printf "| %s | %d | %d | %.2f |\n", op, rate[op, "windrow"] / 1000, rate[op, "rocksdb"] / 1000,
             rate[op, "windrow"] / rate[op, "rocksdb"]}' "$work/bench.csv"

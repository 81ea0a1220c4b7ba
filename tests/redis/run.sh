#!/usr/bin/env bash
# The official test suite of Redis 7.0, from Debian's source package, against `windrow serve`.
#
# It installs what it needs (tcl, and the source package, which is not kept), builds and starts the
# server, runs the suite and prints how many of its tests passed. Tests that are left out are in
# skip.txt, with their reasons in docs/server.md. An argument is a unit to run instead of all.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
work=${WINDROW_REDIS_DIR:-$here/../../target/redis-suite}
port=${PORT:-7379}
mkdir -p "$work"

command -v tclsh >/dev/null || apt-get install -qq -y tcl >/dev/null
if [ ! -d "$work/src/tests" ]; then
    "$here/../debian_source.sh" redis "$work"
    mkdir -p "$work/src"
    tar xf "$work"/redis_*.orig.tar.gz -C "$work/src" --strip-components=1
fi

cargo build --release --locked --manifest-path "$here/../../Cargo.toml" -p windrow-cli
rm -rf "$work/db"
"${CARGO_TARGET_DIR:-$here/../../target}/release/windrow" serve "$work/db" --port "$port" --sync no 2>"$work/server.log" &
server=$!
trap 'kill $server 2>/dev/null || true' EXIT
until (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; do sleep .1; done

units=("$@")
[ $# -gt 0 ] || units=(unit/type/string unit/type/incr unit/type/hash unit/keyspace unit/scan unit/expire
    unit/protocol unit/quit unit/multi unit/type/list unit/type/set unit/type/zset unit/sort unit/pubsub
    unit/type/stream unit/type/stream-cgroups)
passed=0 failed=0
for unit in "${units[@]}"; do
    log="$work/${unit//\//-}.log"
    (cd "$work/src" && timeout 600 tclsh tests/test_helper.tcl --host 127.0.0.1 --port "$port" --singledb \
        --ignore-encoding --ignore-digest --clients 1 --skipfile "$here/skip.txt" \
        --tags "-needs:debug -needs:repl -needs:config-maxmemory -needs:save -needs:pfdebug -needs:config-resetstat -slow" \
        --single "$unit") >"$log" 2>&1 && outcome=ok || outcome=failed
    count=$(grep -ac 'ok.*\]: ' "$log" || true)
    passed=$((passed + count))
    printf '%-20s %4d passed, %s\n' "$unit" "$count" "$outcome"
    if [ $outcome = failed ]; then
        failed=$((failed + 1))
        grep -a 'err.*\]: \|exception.*\]: ' -A2 "$log" | head -20
    fi
done
printf '%d tests passed; units with a failure: %d\n' "$passed" "$failed"
[ $failed -eq 0 ]

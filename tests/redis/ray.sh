#!/usr/bin/env bash
# Ray's head node keeps its tables in `windrow serve` in Redis' place, is killed, and finds them again: an
# actor with a name answers after the head has come back. Installs ray, from PyPI.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
work=${WINDROW_REDIS_DIR:-$here/../../target/redis-ray}
port=${PORT:-7397}
mkdir -p "$work"
cargo build --release --locked --manifest-path "$here/../../Cargo.toml" -p windrow-cli
[ -x "$work/ray/bin/ray" ] || python3 -m venv "$work/ray"
"$work/ray/bin/pip" install -q ray
rm -rf "$work/ray-db"
"${CARGO_TARGET_DIR:-$here/../../target}/release/windrow" serve "$work/ray-db" --port "$port" --sync always --requirepass secret \
    2>"$work/ray-server.log" &
server=$!
ray=("$work/ray/bin/ray")
export RAY_REDIS_ADDRESS=127.0.0.1:$port RAY_USAGE_STATS_ENABLED=0 RAY_DISABLE_IMPORT_WARNING=1
trap '"${ray[@]}" stop --force >/dev/null 2>&1 || true; kill $server 2>/dev/null || true' EXIT
until (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; do sleep .1; done

start() {
    "${ray[@]}" start --head --port 6399 --num-cpus 2 --redis-password secret --include-dashboard=false \
        --disable-usage-stats --object-store-memory 100000000 >"$work/ray-start.log" 2>&1
}
"${ray[@]}" stop --force >/dev/null 2>&1 || true
start
"$work/ray/bin/python" - <<'P'
import ray
ray.init(address="127.0.0.1:6399", log_to_driver=False)
@ray.remote(max_restarts=-1, lifetime="detached", name="counter", namespace="windrow")
class Counter:
    def answer(self): return 42
counter = Counter.remote()
assert ray.get(counter.answer.remote(), timeout=60) == 42
ray.experimental.internal_kv._internal_kv_put(b"windrow", b"kept", namespace=b"windrow")
P
"${ray[@]}" stop --force >/dev/null 2>&1
start
"$work/ray/bin/python" - <<'P'
import ray
ray.init(address="127.0.0.1:6399", log_to_driver=False)
kept = ray.experimental.internal_kv._internal_kv_get(b"windrow", namespace=b"windrow")
assert kept == b"kept", kept
counter = ray.get_actor("counter", namespace="windrow")
assert ray.get(counter.answer.remote(), timeout=120) == 42
print("ray: the head came back with its tables, and the actor answers")
P

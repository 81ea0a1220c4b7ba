#!/usr/bin/env bash
# redis-benchmark against `windrow serve` and Debian's redis-server, which keeps all in memory, in turns.
#
#   tests/redis/bench.sh [ROUNDS]      five if nothing is said; about a minute each
#
# Prints the medians of requests a second, their ratio, p50 and p99 in ms, and the processor time of each
# server. Then what --sync always gives fifty clients, next to one. Nothing else should run.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
work=$(mktemp -d)
rounds=${1:-5}
command -v redis-benchmark >/dev/null || apt-get install -qq -y redis-tools redis-server >/dev/null
cargo build --release --locked --manifest-path "$here/../../Cargo.toml" -p windrow-cli
windrow=${CARGO_TARGET_DIR:-$here/../../target}/release/windrow
server=
stop() { kill "$server" 2>/dev/null && wait "$server" 2>/dev/null || true; }
trap 'stop; rm -rf "$work"' EXIT

start() { # NAME PORT
    rm -rf "$work/db"
    case $1 in
    windrow) "$windrow" serve "$work/db" --port "$2" --sync "${3:-no}" 2>/dev/null & ;;
    redis) redis-server --port "$2" --save "" --appendonly no --dir "$work" >/dev/null & ;;
    esac
    server=$!
    until (exec 3<>"/dev/tcp/127.0.0.1/$2") 2>/dev/null; do sleep .1; done
}

for round in $(seq "$rounds"); do
    for name in windrow redis; do
        start $name 7390
        redis-benchmark -p 7390 -P 16 -t set,get,incr,hset,mset,lpush,zadd -n 500000 -r 1000000 --csv 2>/dev/null |
            sed "1d; s/^/$name,/" >>"$work/lines"
        ticks=$(awk '{print $14 + $15}' "/proc/$server/stat")
        echo "$name,$((ticks / $(getconf CLK_TCK)))" >>"$work/cpu"
        stop
    done
    echo "round $round of $rounds" >&2
done
for clients in 1 50; do
    start windrow 7390 always
    redis-benchmark -p 7390 -c $clients -t set -n $((clients * 400)) -r 1000000 --csv 2>/dev/null |
        sed "1d; s/^/$clients,/" >>"$work/synced"
    stop
done
python3 - "$work" <<'P'
import csv, statistics, sys
work = sys.argv[1]
rows = {}
for name, test, rps, _avg, _min, p50, _p95, p99, _max in csv.reader(open(f"{work}/lines")):
    rows.setdefault(test, {}).setdefault(name, []).append((float(rps), float(p50), float(p99)))
print("| command | windrow, thousand/s | redis | ratio | p50, p99 ms | redis |\n|---|---:|---:|---:|---:|---:|")
for test, by in rows.items():
    m = {n: [statistics.median(x[i] for x in v) for i in range(3)] for n, v in by.items()}
    w, r = m["windrow"], m["redis"]
    print(f"| {test} | {w[0] / 1e3:.0f} | {r[0] / 1e3:.0f} | {w[0] / r[0]:.2f} | {w[1]:.1f}, {w[2]:.1f} | {r[1]:.1f}, {r[2]:.1f} |")
cpu = {}
for name, seconds in csv.reader(open(f"{work}/cpu")):
    cpu.setdefault(name, []).append(float(seconds))
print("processor, s a round:", ", ".join(f"{n} {statistics.median(v):.0f}" for n, v in cpu.items()))
synced = {row[0]: float(row[2]) for row in csv.reader(open(f"{work}/synced"))}
print(f"--sync always, sets a second: one client {synced['1']:.0f}, fifty {synced['50']:.0f}: {synced['50'] / synced['1']:.1f} times")
P

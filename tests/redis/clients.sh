#!/usr/bin/env bash
# Real clients against `windrow serve`: redis-py, node-redis, go-redis and the crate `redis`, each with
# values of every kind, pipelines, transactions that are watched, and messages.
#
# It installs what it needs (python3-venv, nodejs, npm, golang-go, and the clients themselves, outside
# of the checkout's sources). Arguments name some of: python node go rust.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
work=${WINDROW_REDIS_DIR:-$here/../../target/redis-clients}
port=${PORT:-7380}
mkdir -p "$work"
need() { command -v "$1" >/dev/null || apt-get install -qq -y "${@:2}" >/dev/null; }

cargo build --release --locked --manifest-path "$here/../../Cargo.toml" -p windrow-cli
rm -rf "$work/db"
"${CARGO_TARGET_DIR:-$here/../../target}/release/windrow" serve "$work/db" --port "$port" 2>"$work/server.log" &
server=$!
trap 'kill $server 2>/dev/null || true' EXIT
until (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; do sleep .1; done
export WINDROW_PORT=$port

python() {
    need python3 python3 python3-venv
    [ -x "$work/venv/bin/python" ] || { need no-such-command-venv python3-venv; python3 -m venv "$work/venv"; }
    "$work/venv/bin/pip" install -q 'redis==7.*' || "$work/venv/bin/pip" install -q redis
    "$work/venv/bin/python" "$here/clients/client.py"
}
node() {
    need npm nodejs npm
    mkdir -p "$work/node" && cp "$here/clients/client.mjs" "$work/node/"
    (cd "$work/node" && npm install --silent --no-fund --no-audit redis@4 && command node client.mjs)
}
go() {
    command -v go >/dev/null || apt-get install -qq -y golang-go >/dev/null
    mkdir -p "$work/go" && cp "$here"/clients/go/* "$work/go/"
    (cd "$work/go" && GOFLAGS=-mod=mod command go run .)
}
rust() {
    cargo run -q --manifest-path "$here/clients/rust/Cargo.toml" --target-dir "$work/rust"
}
for client in "${@:-python node go rust}"; do
    for one in $client; do
        "$one"
        echo "$one: passed"
    done
done

#!/usr/bin/env bash
# The dashboard in a real browser: a server under load, `windrow viz`, both themes, two widths, axe-core.
#
# It installs what it needs (Chromium, Node, playwright-core and axe-core, redis-tools, promtool from Debian's
# prometheus), starts the server, has redis-benchmark write, and leaves pictures in SHOTS (target/dashboard).
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
work=${WINDROW_DASHBOARD_DIR:-$here/../../target/dashboard}
export SHOTS=${SHOTS:-$work/shots}
mkdir -p "$work" "$SHOTS"
need() { command -v "$1" >/dev/null || apt-get install -qq -y --no-install-recommends "${@:2}" >/dev/null; }
need chromium chromium fonts-dejavu-core
need node nodejs
need npm npm
need redis-benchmark redis-tools
need promtool prometheus

cargo build --release --locked --manifest-path "$here/../../Cargo.toml" -p windrow-cli
windrow=${CARGO_TARGET_DIR:-$here/../../target}/release/windrow
rm -rf "$work/db"
# A file may be limited while it runs: a signal would end it.
trap '' XFSZ
"$windrow" serve "$work/db" --port 7398 --sync no --dashboard 127.0.0.1:7399 \
    --option memory_bytes=32MiB 2>"$work/server.log" &
server=$!
trap 'kill $server $(jobs -p) 2>/dev/null || true' EXIT
until (exec 3<>/dev/tcp/127.0.0.1/7399) 2>/dev/null; do sleep .1; done
curl -sf http://127.0.0.1:7399/metrics | promtool check metrics
"$here/grafana.py" "$here/../../packaging/grafana/windrow.json" http://127.0.0.1:7399/metrics

cp "$here/check.mjs" "$here/package.json" "$work/"
(cd "$work" && npm install --silent --no-fund --no-audit)
# Hostile keys: markup, control bytes, 64 KiB. Then load until the browser has seen enough.
printf 'SET "<img src=x onerror=alert(1)>" 1\r\nSET "\\x00\\x01\\xff" 1\r\n' | redis-cli -p 7398 >/dev/null
redis-cli -p 7398 set "$(head -c 60000 /dev/zero | tr '\0' k)" 1 >/dev/null
rm -f "$work/enough"
(while [ ! -e "$work/enough" ]; do redis-benchmark -p 7398 -q -P 16 -t set,get -n 400000 -r 1000000 -d 100 >/dev/null; done) &
"$windrow" demo --keep "$work/demo" -q >/dev/null 2>&1 || true
"$windrow" viz "$work/demo" >"$work/viz.html"
"$windrow" lab --html -p leveled -p windrow >"$work/lab.html"
(cd "$work" && URL=http://127.0.0.1:7399/ VIZ=$work/viz.html LAB=$work/lab.html DB=$work/db WINDROW=$windrow ENOUGH=$work/enough SERVER=$server \
    node check.mjs)

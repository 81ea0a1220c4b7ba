#!/usr/bin/env bash
# Two Windrow servers behind Debian's nutcracker (twemproxy), which spreads keys over them: the way to
# more than one machine that needs no code of either. Installs nutcracker and redis-tools.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
work=$(mktemp -d)
command -v nutcracker >/dev/null || apt-get install -qq -y nutcracker >/dev/null
command -v redis-cli >/dev/null || apt-get install -qq -y redis-tools >/dev/null
cargo build --release --locked --manifest-path "$here/../../Cargo.toml" -p windrow-cli
trap 'kill $(jobs -p) 2>/dev/null || true; wait; rm -rf "$work"' EXIT
for port in 7391 7392; do
    "${CARGO_TARGET_DIR:-$here/../../target}/release/windrow" serve "$work/db$port" --port $port 2>/dev/null &
done
cat >"$work/nutcracker.yml" <<'Y'
windrow:
  listen: 127.0.0.1:7393
  hash: fnv1a_64
  distribution: ketama
  redis: true
  servers:
   - 127.0.0.1:7391:1 one
   - 127.0.0.1:7392:1 two
Y
nutcracker -c "$work/nutcracker.yml" -s 7394 >/dev/null 2>&1 &
for port in 7391 7392 7393; do
    until (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; do sleep .1; done
done
for n in $(seq 400); do echo "SET key$n value$n"; done | redis-cli -p 7393 >/dev/null
for n in $(seq 400); do echo "GET key$n"; done | redis-cli -p 7393 | sort >"$work/got"
seq 400 | sed 's/^/value/' | sort | cmp - "$work/got"
redis-cli -p 7393 mget key1 key2 key3 | cmp - <(printf 'value1\nvalue2\nvalue3\n')
one=$(redis-cli -p 7391 dbsize) two=$(redis-cli -p 7392 dbsize)
echo "400 keys: $one on one server, $two on the other"
[ $((one + two)) = 400 ] && [ "$one" -gt 100 ] && [ "$two" -gt 100 ]

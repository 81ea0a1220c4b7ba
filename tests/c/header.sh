#!/usr/bin/env bash
# Makes crates/capi/include/windrow.h by cbindgen, which it installs under target/; --check: compares it instead.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
tools=$root/target/tools
version=0.29.4
[ -x "$tools/bin/cbindgen" ] || cargo install -q cbindgen --version "$version" --locked --root "$tools"
header=$root/crates/capi/include/windrow.h
made=$(mktemp)
trap 'rm -f "$made"' EXIT
(cd "$root/crates/capi" && "$tools/bin/cbindgen" --quiet --config cbindgen.toml --output "$made" .)
if [ "${1:-}" = --check ]; then
    diff -u "$header" "$made" || { echo "run tests/c/header.sh" >&2; exit 1; }
else
    mkdir -p "$(dirname "$header")"
    cp "$made" "$header"
    chmod 644 "$header"
fi

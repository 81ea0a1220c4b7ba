#!/usr/bin/env bash
# Builds the C library and installs it under a directory: install.sh /usr/local
#
#   include/windrow.h
#   lib/libwindrow.so.0 (libwindrow.so), lib/libwindrow.a, lib/pkgconfig/windrow.pc, lib/cmake/windrow/
#   lib/windrow/leveldb/libleveldb.so.1d    for programs that were built for LevelDB (LD_LIBRARY_PATH)
#   include/windrow/leveldb/c.h             the header of that interface
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
prefix=${1:?a directory to install under, like /usr/local}
mkdir -p "$prefix"
prefix=$(cd "$prefix" && pwd)
target=${CARGO_TARGET_DIR:-$root/target}
build() { cargo build --release --locked --manifest-path "$root/Cargo.toml" -p windrow-capi "$@"; }
version=$(sed -n 's/^version = "\(.*\)"/\1/p' "$root/Cargo.toml" | head -1)

install -d "$prefix"/{include/windrow/leveldb,lib/pkgconfig,lib/cmake/windrow,lib/windrow/leveldb}
install -m 644 "$root/crates/capi/include/windrow.h" "$prefix/include/"
install -m 644 "$root/crates/capi/compat/leveldb/c.h" "$prefix/include/windrow/leveldb/"
build
install -m 755 "$target/release/libwindrow.so" "$prefix/lib/windrow/leveldb/libleveldb.so.1d"
# Without LevelDB's functions, so that a program may have both.
build --no-default-features
install -m 755 "$target/release/libwindrow.so" "$prefix/lib/libwindrow.so.0"
install -m 644 "$target/release/libwindrow.a" "$prefix/lib/"
ln -sf libwindrow.so.0 "$prefix/lib/libwindrow.so"
sed -e "s|@PREFIX@|$prefix|" -e "s|@VERSION@|$version|" "$here/windrow.pc.in" >"$prefix/lib/pkgconfig/windrow.pc"
install -m 644 "$here/windrowConfig.cmake" "$prefix/lib/cmake/windrow/"
sed -e "s|@VERSION@|$version|" "$here/windrowConfigVersion.cmake.in" >"$prefix/lib/cmake/windrow/windrowConfigVersion.cmake"
echo "installed windrow $version under $prefix"

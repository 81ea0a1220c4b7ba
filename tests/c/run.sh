#!/usr/bin/env bash
# The C library: LevelDB's own test, unmodified; every function of windrow.h; the programs of docs/guide/c.md by
# pkg-config and by CMake; AddressSanitizer and valgrind.
#
# It installs what it needs (a C and a C++ compiler, CMake, pkg-config, valgrind, LevelDB's header, and its source
# package, which is not kept), and the library under target/c.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
work=${WINDROW_C_DIR:-$root/target/c}
prefix=$work/prefix
mkdir -p "$work"
need() { command -v "$1" >/dev/null || apt-get install -qq -y --no-install-recommends "${@:2}" >/dev/null; }
need cc gcc libc6-dev
need c++ g++
need cmake cmake make
need pkg-config pkg-config
need valgrind valgrind libc6-dbg
[ -e /usr/include/leveldb/c.h ] || apt-get install -qq -y libleveldb-dev >/dev/null
said() { printf 'ok: %s\n' "$1"; }

"$here/header.sh" --check
said "windrow.h is what cbindgen makes of the crate"
"$root/packaging/c/install.sh" "$prefix"
compat=$prefix/lib/windrow/leveldb
export LD_LIBRARY_PATH=$prefix/lib PKG_CONFIG_PATH=$prefix/lib/pkgconfig
flags=(-std=c11 -D_GNU_SOURCE -Wall -Wextra -Werror -pedantic -pthread)

# ---- LevelDB's interface
if [ ! -e "$work/c_test.c" ]; then
    "$here/../debian_source.sh" leveldb "$work"
    tar xf "$work"/leveldb_*.orig.tar.gz -C "$work" --strip-components=2 --wildcards '*/db/c_test.c'
fi
# By the system's header and against the system's library: only the loader knows of ours.
cc -o "$work/c_test" "$work/c_test.c" -lleveldb
[ -z "$(LD_LIBRARY_PATH=$compat ldd "$work/c_test" | grep leveldb | grep -v "$compat")" ]
rm -rf "$work/leveldb" && mkdir "$work/leveldb"
LD_LIBRARY_PATH=$compat TEST_TMPDIR=$work/leveldb/db "$work/c_test" 2>&1 | tail -1 | grep -qx PASS
said "LevelDB's c_test passes on Windrow"
cc "${flags[@]}" -g -o "$work/leveldb-calls" "$here/leveldb.c" -I"$prefix/include/windrow" -L"$compat" -l:libleveldb.so.1d
LD_LIBRARY_PATH=$compat "$work/leveldb-calls" "$work/leveldb/calls"
said "wrong calls of LevelDB's interface"
names() { grep -oE '\bleveldb_[a-z_]+\(' "$1" | tr -d '(' | sort -u; }
exported() { nm -D --defined-only "$1" | awk '{print $3}' | grep -E '^leveldb_' | sort -u; }
names /usr/include/leveldb/c.h >"$work/names"
[ "$(wc -l <"$work/names")" = 68 ]
exported "$compat/libleveldb.so.1d" | diff "$work/names" -
names "$prefix/include/windrow/leveldb/c.h" | diff "$work/names" -
[ -z "$(exported "$prefix/lib/libwindrow.so.0")" ]
said "68 names, in the library and in the header; none in libwindrow.so"
# Both headers in one file: a declaration that differs would not compile.
printf '#include <leveldb/c.h>\n#define leveldb_no_compression a\n#define leveldb_snappy_compression b\n#include "%s"\n' \
    "$prefix/include/windrow/leveldb/c.h" >"$work/both.c"
cc "${flags[@]}" -fsyntax-only "$work/both.c"
c++ -x c++ -Wall -Werror -fsyntax-only "$work/both.c"
said "the header declares what LevelDB's does"

# ---- our own
names_of() { grep -oE '\bwindrow_[a-z_]+\(' "$@" | sed 's/.*://; s/(//' | sort -u; }
nm -D --defined-only "$prefix/lib/libwindrow.so.0" | awk '{print $3}' | grep '^windrow_' | sort -u >"$work/own"
names_of "$prefix/include/windrow.h" | grep -vxE 'windrow_(text|bytes)' | diff "$work/own" -
missing=$(names_of "$here/api.c" | comm -23 "$work/own" -)
[ -z "$missing" ] || { echo "api.c does not call: $missing" >&2; exit 1; }
said "$(wc -l <"$work/own") functions of windrow.h, and api.c calls each"
fresh() { rm -rf "$work"/db*; echo "$work/db"; }
cc "${flags[@]}" -g -o "$work/api" "$here/api.c" $(pkg-config --cflags --libs windrow)
"$work/api" "$(fresh)"
said "api.c"
# The static library, and the sanitizer's allocator under the engine.
cc "${flags[@]}" -g -fsanitize=address,undefined -o "$work/api-asan" "$here/api.c" -I"$prefix/include" \
    "$prefix/lib/libwindrow.a" -lpthread -ldl -lm
ASAN_OPTIONS=detect_leaks=1 "$work/api-asan" "$(fresh)" >/dev/null
said "api.c under AddressSanitizer, with leaks"
valgrind -q --error-exitcode=9 --leak-check=full --show-leak-kinds=definite,indirect \
    --errors-for-leak-kinds=definite,indirect \
    "$work/api" "$(fresh)" >/dev/null
said "api.c under valgrind"
LD_LIBRARY_PATH=$compat TEST_TMPDIR=$work/leveldb/db valgrind -q --error-exitcode=9 "$work/c_test" 2>&1 | tail -1 | grep -qx PASS
said "c_test under valgrind"

# ---- the programs of the guide
block() { awk -v lang="$1" '$0 == "```" lang {on = 1; next} /^```/ {on = 0} on' "$root/docs/guide/c.md"; }
rm -rf "$work/guide" && mkdir -p "$work/guide/build" && cd "$work/guide"
block c >fruit.c && block cpp >fruit.cc && block cmake >CMakeLists.txt
cc -o fruit fruit.c $(pkg-config --cflags --libs windrow)
[ "$(./fruit | tail -1)" = "apple is red" ]
c++ -std=c++17 -o fruit-cc fruit.cc $(pkg-config --cflags --libs windrow)
[ "$(./fruit-cc | tail -1)" = "apple is red" ]
said "the guide's programs by pkg-config"
cmake -S . -B build -DCMAKE_PREFIX_PATH="$prefix" >/dev/null && cmake --build build >/dev/null
[ "$(env -u LD_LIBRARY_PATH build/fruit | tail -1)" = "apple is red" ]
[ "$(env -u LD_LIBRARY_PATH build/fruit-cc | tail -1)" = "apple is red" ]
said "and by CMake"

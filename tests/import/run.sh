#!/usr/bin/env bash
# `windrow load --from` and `export --to`: a million records of LevelDB and of RocksDB, there and back; killed in the
# middle and run again. It installs a C compiler and Debian's libraries of both.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
work=${WINDROW_IMPORT_DIR:-$root/target/import}
records=${1:-1250000} # a fifth of them is deleted
mkdir -p "$work"
command -v cc >/dev/null || apt-get install -qq -y --no-install-recommends gcc libc6-dev >/dev/null
[ -e /usr/include/leveldb/c.h ] || apt-get install -qq -y libleveldb-dev >/dev/null
[ -e /usr/include/rocksdb/c.h ] || apt-get install -qq -y librocksdb-dev >/dev/null
cargo build --release --locked --manifest-path "$root/Cargo.toml" -p windrow-cli
windrow=${CARGO_TARGET_DIR:-$root/target}/release/windrow
cc -O1 -DSTORE=leveldb -o "$work/leveldb" "$here/store.c" -lleveldb
cc -O1 -DSTORE=rocksdb -DROCKS -o "$work/rocksdb" "$here/store.c" -lrocksdb
said() { printf 'ok: %s\n' "$1"; }

for store in leveldb rocksdb; do
    rm -rf "$work"/{old,new,back,killed}
    "$work/$store" make "$work/old" "$records"
    sum=$("$work/leveldb" sum "$work/old" 2>/dev/null || true)
    "$windrow" load "$work/new" "$work/old" --from $store
    [ "$(ls "$work/new" | wc -l)" -gt 0 ] && "$windrow" verify "$work/new" | grep -q sound
    said "$store: imported, and sound"
    "$windrow" export "$work/new" --to leveldb "$work/back"
    back=$("$work/leveldb" sum "$work/back")
    [ "$store" = rocksdb ] || [ "$back" = "$sum" ]
    [ "${back%% *}" = "$("$windrow" count "$work/new")" ]
    said "$store: back in LevelDB: $back"
    echo "$back" >"$work/sum-$store"

    # Killed at a random moment again and again, until one run gets through.
    runs=0
    while :; do
        runs=$((runs + 1))
        "$windrow" load "$work/killed" "$work/old" --from $store -q &
        import=$!
        sleep "$((RANDOM % 4)).$((RANDOM % 9 + 1))"
        [ $runs -gt 10 ] || kill -9 $import 2>/dev/null || true
        if wait $import; then break; fi
    done
    "$windrow" load "$work/killed" "$work/old" --from $store 2>&1 | grep -q "was there already"
    cmp <("$windrow" scan "$work/new" --hex) <("$windrow" scan "$work/killed" --hex)
    said "$store: killed up to $runs times, and complete"
done
diff "$work/sum-leveldb" "$work/sum-rocksdb"
[ "$("$windrow" get "$work/new" a -k other)" = 1 ]
said "both stores gave the same, and a column family is a keyspace"
refused=$("$windrow" load "$work/killed" "$work/old" --from leveldb 2>&1 || true)
grep -q "is a database of RocksDB" <<<"$refused"
said "another store's directory is refused"
rm -rf "$work"/{old,new,back,killed}

#!/usr/bin/env bash
# Backs a database up into a bucket, with an S3 server on this machine, prunes, lists, restores and compares.
# Needs moto's server (`pip install 'moto[server]'`) and the program `windrow` (WINDROW=path, or from PATH).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
windrow=${WINDROW:-windrow}
dir=$(mktemp -d)
port=${PORT:-5123}
cargo build -q --locked --features s3
target=$(cargo metadata --format-version 1 --no-deps | sed 's/.*"target_directory":"\([^"]*\)".*/\1/')
example=$target/debug/windrow-object-store
moto_server -H 127.0.0.1 -p "$port" >"$dir/server.log" 2>&1 &
server=$!
trap 'kill $server 2>/dev/null || true; rm -rf "$dir"' EXIT
export AWS_ACCESS_KEY_ID=key AWS_SECRET_ACCESS_KEY=secret AWS_REGION=us-east-1
export AWS_ENDPOINT="http://127.0.0.1:$port" AWS_ALLOW_HTTP=true
for _ in $(seq 100); do
    curl -s -o "$dir/answer" -X PUT "$AWS_ENDPOINT/bucket" && break || sleep 0.2
done
place=s3://bucket/backups/of-db
for round in 1 2 3; do
    # Tables of more than one part of an upload.
    head -c 30000000 /dev/urandom | base64 -w 100 |
        awk -v round="$round" '{ printf "%08d\t%s\n", 3 * NR + round, $0 }' | "$windrow" -q load --option file_bytes=64MiB "$dir/db"
    "$windrow" -q compact --option file_bytes=64MiB "$dir/db"
    "$example" backup "$dir/db" "$place" 2
done
"$example" list "$place"
"$example" restore "$place" "$dir/copy"
cmp <("$windrow" scan "$dir/db") <("$windrow" scan "$dir/copy")
"$windrow" verify "$dir/copy"
grep -q 'partNumber=2' "$dir/server.log" || { echo "no upload had a second part" >&2; exit 1; }
echo "the restored database is the one that was backed up"

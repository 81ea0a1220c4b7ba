#!/usr/bin/env bash
# Runs every fuzz target for a share of N executions and prints a table.
#
#   fuzz/run.sh N [TARGET...]
#
# Works on stable: coverage comes from LLVM's own pass, asked for by RUSTFLAGS.
# What is found lies in fuzz/artifacts/TARGET, what is learned in
# fuzz/corpus/TARGET (both unversioned); exits non-zero if anything was found.
# To repeat a finding: fuzz/target/release/TARGET FILE.
set -euo pipefail
cd "$(dirname "$0")"

total=${1:?usage: fuzz/run.sh EXECUTIONS [TARGET...]}
shift

# Share of the executions in percent, and longest input in bytes.
all="log:19:4096 manifest:18:4096 block:18:2048 table:18:8192 options:13:2048
     directory:2:16384 operations:2:1024 requests:8:2048 commands:1:1024 sessions:1:256"

export RUSTFLAGS="-Cpasses=sancov-module \
  -Cllvm-args=-sanitizer-coverage-level=4 \
  -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
  -Cllvm-args=-sanitizer-coverage-pc-table \
  -Cllvm-args=-sanitizer-coverage-trace-compares \
  -Ccodegen-units=1"
host=$(rustc -vV | sed -n 's/^host: //p')
# With --target, build scripts and macros are built without the flags above.
cargo build --release --quiet --target "$host"
built=${CARGO_TARGET_DIR:-target}/$host/release

# Seconds are the processor's, not the clock's: the figures then hold beside other work.
TIMEFORMAT='%U %S'
printf '%-12s %12s %8s %10s %9s  %s\n' target executions seconds per_second coverage found
failed=0
for line in $all; do
  IFS=: read -r name share bytes_max <<<"$line"
  [[ $# -eq 0 || " $* " == *" $name "* ]] || continue
  [[ $# -eq 0 ]] || share=$((100 / $#))
  runs=$((total * share / 100))
  mkdir -p "corpus/$name" "artifacts/$name"
  # Of the server's targets nothing is kept: they need no seeds.
  seeds=("../crates/sim/corpora/$name")
  [[ -d ${seeds[0]} ]] || seeds=()
  dictionary=()
  # A database reaches so much code that weighing inputs by rarity takes
  # several times what running them does.
  schedule=()
  [[ $name == directory || $name == operations ]] && schedule=(-entropic=0)
  [[ -e dictionaries/$name ]] && dictionary=("-dict=dictionaries/$name")
  if { time "$built/$name" "corpus/$name" "${seeds[@]}" \
    -runs="$runs" -max_len="$bytes_max" "${dictionary[@]}" "${schedule[@]}" \
    -rss_limit_mb=512 -timeout=20 -artifact_prefix="artifacts/$name/" \
    -print_final_stats=1 >"artifacts/$name.log" 2>&1; } 2>"artifacts/$name.time"; then
    found=none
  else
    found="see fuzz/artifacts/$name.log"
    failed=1
  fi
  seconds=$(awk '{ printf "%d", $1 + $2 + 0.5 }' "artifacts/$name.time")
  executed=$(sed -n 's/^stat::number_of_executed_units: //p' "artifacts/$name.log")
  coverage=$(grep -o 'cov: [0-9]*' "artifacts/$name.log" | tail -1 | cut -d' ' -f2)
  printf '%-12s %12s %8s %10s %9s  %s\n' "$name" "${executed:-?}" "$seconds" \
    "$((${executed:-0} / (seconds > 0 ? seconds : 1)))" "${coverage:-?}" "$found"
done
exit "$failed"

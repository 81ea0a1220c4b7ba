#!/usr/bin/env bash
# Kafka Streams on Windrow with a broker: a word count with exactly-once processing on two instances with a standby, one
# of them killed again and again; local state wiped and restored; the same program on the built-in RocksDB
# stores next to it, for throughput and restoring; the memory of an instance with 100 stores; and 60 stores that are
# restored at once.
#
# It needs a JDK of version 17 or newer, Maven, and Maven Central (200 MB for the broker). It builds everything, starts
# the broker, and prints the verdict. Arguments name some of: exact restore speed memory many. Sizes: RECORDS, ROUNDS.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
work=${WINDROW_KAFKA_DIR:-$root/target/kafka}
records=${RECORDS:-1000000}
words=${WORDS:-200000}
rounds=${ROUNDS:-3}
port=${PORT:-19092}
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$root/target/jvm}
mkdir -p "$work"
started=()
ended=()
failed=0
said() { printf '%s: %s\n' "$1" "${*:2}"; }
missed() { failed=1; said MISSED "$1"; }
at_end() {
    # Only what this script started, by number.
    for pid in "${started[@]}"; do kill -9 "$pid" 2>/dev/null || true; done
    rm -rf "$work"/state-* "$work/broker"
}
trap at_end EXIT

if [ -z "${BUILT:-}" ]; then
    mvn -q -B -Dstyle.color=never -Dwindrow.target="$CARGO_TARGET_DIR" -DskipTests -f "$root/java/pom.xml" install
    mvn -q -B -Dstyle.color=never -f "$here/pom.xml" compile \
        org.apache.maven.plugins:maven-dependency-plugin:3.8.1:build-classpath -Dmdep.outputFile="$work/classpath"
fi
classpath=$here/target/classes:$(cat "$work/classpath")
trial() { java -Xmx512m -XX:+UseSerialGC -cp "$classpath" trial.Trial "$@" 2>>"$work/trial.err"; }
servers=servers=127.0.0.1:$port

# ---- the broker
rm -rf "$work/broker" "$work"/state-*
mkdir -p "$work/broker"
cat >"$work/broker.properties" <<P
process.roles=broker,controller
node.id=1
listeners=PLAINTEXT://127.0.0.1:$port,CONTROLLER://127.0.0.1:$((port + 1))
advertised.listeners=PLAINTEXT://127.0.0.1:$port
controller.listener.names=CONTROLLER
controller.quorum.voters=1@127.0.0.1:$((port + 1))
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
log.dirs=$work/broker
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
group.initial.rebalance.delay.ms=0
P
broker() { java -Xmx768m -XX:+UseSerialGC -cp "$classpath" "$@"; }
id=$(broker kafka.tools.StorageTool random-uuid 2>/dev/null | tail -1)
broker kafka.tools.StorageTool format -t "$id" -c "$work/broker.properties" >"$work/broker.log" 2>&1
broker kafka.Kafka "$work/broker.properties" >>"$work/broker.log" 2>&1 &
started+=($!)
for _ in $(seq 60); do
    if (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; then break; fi
    sleep 1
done
sleep 2
said ok "a broker in KRaft mode"

instance() { # name, stores-on, application, further options
    local name=$1 on=$2 app=$3
    shift 3
    # No wrapper around it: the number is the JVM's, which is killed by it.
    java -Xmx512m -XX:+UseSerialGC -cp "$classpath" trial.Trial run "$servers" "app=$app" "dir=$work/state-$app-$name" \
        "stores-on=$on" "$@" >>"$work/$app-$name.log" 2>&1 &
    pid=$!
    started+=("$pid")
}

# ---- two instances, one of them killed
exact() {
    local app=exact a b deadline kills=0
    rm -f "$work/$app"-*.log
    trial make "$servers" topics=words-exact,counts-exact
    local options=(input=words-exact output=counts-exact standbys=1)
    instance a windrow $app "${options[@]}"
    a=$pid
    instance b windrow $app "${options[@]}"
    b=$pid
    trial fill "$servers" topic=words-exact "records=$records" "words=$words" "rate=${RATE:-12000}" &
    local filling=$!
    started+=("$filling")
    sleep 15
    while kill -0 "$filling" 2>/dev/null; do
        if [ $((kills % 2)) = 0 ]; then
            kill -9 "$a" && wait "$a" 2>/dev/null || true
            sleep 3
            instance a windrow $app "${options[@]}"
            a=$pid
        else
            kill -9 "$b" && wait "$b" 2>/dev/null || true
            sleep 3
            instance b windrow $app "${options[@]}"
            b=$pid
        fi
        kills=$((kills + 1))
        sleep 12
    done
    wait "$filling"
    if verdict=$(trial check "$servers" topic=counts-exact "records=$records" patience=90); then
        said ok "two instances, a standby, $kills times kill -9: $verdict"
    else
        missed "two instances, a standby, $kills times kill -9: $verdict"
    fi
    local wiped
    wiped=$(cat "$work/$app"-*.log | grep -c 'TaskCorruptedException' || true)
    if [ "$wiped" = 0 ]; then
        said ok "no local state was wiped"
    else
        missed "local state was wiped $wiped times for want of an offset: see $work/$app-*.log"
    fi
    said recorded "restored after kills, from an offset on: $(cat "$work/$app"-*.log | grep '^restored' |
        awk '{from[$4 == "0:"]++; sum += $NF} END {printf "%d times from the beginning, %d from an offset, %d records in all", from[1], from[0], sum}')"
    kill "$a" "$b"
    wait "$a" "$b" 2>/dev/null || true
    # What is there is exact once more when it was restored from nothing: the counts go on from it.
    rm -rf "$work/state-$app-a" "$work/state-$app-b"
    trial fill "$servers" topic=words-exact "records=$words" "words=$words"
    instance a windrow $app "${options[@]}" standbys=0
    a=$pid
    if verdict=$(trial check "$servers" topic=counts-exact "records=$((records + words))" patience=90); then
        said ok "local state wiped, restored, and counted on: $verdict"
    else
        missed "local state wiped, restored, and counted on: $verdict"
    fi
    kill "$a"
    wait "$a" 2>/dev/null || true
}

median() { sort -n | awk '{v[NR] = $1} END {print v[int((NR + 1) / 2)]}'; }
quotient() { awk -v a="$1" -v b="$2" 'BEGIN {printf "%.2f", a / b}'; }
goal() { # what, Windrow's figure, RocksDB's, at least
    local times
    times=$(quotient "$2" "$3")
    if awk -v t="$times" -v g="$4" 'BEGIN {exit !(t >= g)}'; then
        said ok "$1: $2 and $3 records/s, $times times (at least $4)"
    else
        missed "$1: $2 and $3 records/s, $times times (at least $4)"
    fi
}

# ---- the same program on both, in turns
speed() {
    trial make "$servers" topics=words-speed
    trial fill "$servers" topic=words-speed "records=$records" "words=$words" value=100
    local on round
    rm -f "$work"/speed-*.txt
    for round in $(seq "$rounds"); do
        for on in windrow rocksdb heap; do
            trial make "$servers" "topics=out-$on-$round"
            trial measure "$servers" "app=speed-$on-$round" "dir=$work/state-speed-$on" "stores-on=$on" \
                input=words-speed "output=out-$on-$round" "records=$records" | tail -1 >>"$work/speed-$on.txt"
            rm -rf "$work/state-speed-$on"
        done
    done
    said recorded "with stores on the heap, $(median <"$work/speed-heap.txt") records/s: what the rest of it takes"
    goal "throughput, $rounds rounds" "$(median <"$work/speed-windrow.txt")" "$(median <"$work/speed-rocksdb.txt")" 1.3
}

restore() {
    local on round
    trial make "$servers" topics=words-restore
    trial fill "$servers" topic=words-restore "records=$records" "words=$words" value=100
    rm -f "$work"/restore-*.txt
    for on in windrow rocksdb; do
        trial make "$servers" "topics=out-restore-$on"
        trial measure "$servers" "app=restore-$on" "dir=$work/state-restore-$on" "stores-on=$on" \
            input=words-restore "output=out-restore-$on" "records=$records" >/dev/null
    done
    for round in $(seq "$rounds"); do
        for on in windrow rocksdb; do
            rm -rf "$work/state-restore-$on"
            trial restore "$servers" "app=restore-$on" "dir=$work/state-restore-$on" "stores-on=$on" \
                input=words-restore "output=out-restore-$on" | tail -1 >>"$work/restore-$on.txt"
        done
    done
    goal "restoring, $rounds rounds" "$(median <"$work/restore-windrow.txt")" "$(median <"$work/restore-rocksdb.txt")" 1.5
}

# ---- as many active tasks as one of fifty instances has of 1,000 partitions, with three stores each, restored at once
many() {
    trial make "$servers" topics=words-many partitions=20
    trial fill "$servers" topic=words-many "records=$records" "words=$words" value=100
    local on round
    rm -f "$work"/many-*.txt
    for on in windrow rocksdb; do
        trial make "$servers" "topics=out-many-$on" partitions=20
        trial measure "$servers" "app=many-$on" "dir=$work/state-many-$on" "stores-on=$on" stores=3 \
            input=words-many "output=out-many-$on" "records=$records" >/dev/null
    done
    for round in $(seq "$rounds"); do
        # Windrow twice: with default settings, and with four times the memory.
        for how in windrow:windrow windrow:large rocksdb:rocksdb; do
            on=${how%:*}
            local more=()
            [ "$how" = windrow:large ] && more=(windrow.memory.bytes=1GiB windrow.buffer.bytes=134217728)
            rm -rf "$work/state-many-$on"
            trial restore "$servers" "app=many-$on" "dir=$work/state-many-$on" "stores-on=$on" stores=3 "${more[@]}" \
                input=words-many "output=out-many-$on" | tail -1 >>"$work/many-${how#*:}.txt"
        done
    done
    said recorded "restoring 60 stores at once, $rounds rounds: $(median <"$work/many-windrow.txt") records/s; with 1 GiB and" \
        "a buffer of 128 MiB $(median <"$work/many-large.txt"); RocksDB's $(median <"$work/many-rocksdb.txt")"
}

# ---- 100 stores: 25 of each of 4 partitions
memory() {
    local n=$((records / 10)) on most=()
    trial make "$servers" topics=words-memory
    trial fill "$servers" topic=words-memory "records=$n" "words=$words" value=100
    # Stores on the heap: what the JVM and Kafka take themselves.
    for on in heap windrow rocksdb; do
        trial make "$servers" "topics=out-memory-$on"
        most+=("$(java -Xms1g -Xmx1g -XX:+AlwaysPreTouch -XX:+UseSerialGC -cp "$classpath" trial.Trial memory "$servers" \
            "app=memory-$on" "dir=$work/state-memory-$on" "stores-on=$on" input=words-memory "output=out-memory-$on" \
            "records=$n" stores=25 windrow.memory.bytes=128MiB 2>>"$work/trial.err" | tail -1)")
        rm -rf "$work/state-memory-$on"
    done
    local windrow=$((most[1] - most[0])) rocksdb=$((most[2] - most[0]))
    if [ "$windrow" -le 128 ]; then
        said ok "100 stores, $n records to each: $windrow MiB outside of the heap of a budget of 128; RocksDB's $rocksdb"
    else
        missed "100 stores, $n records to each: $windrow MiB outside of the heap of a budget of 128; RocksDB's $rocksdb"
    fi
}

for step in "${@:-exact restore speed memory many}"; do
    for part in $step; do "$part"; done
done
[ "$failed" = 0 ] && said verdict "all of it holds" || { said verdict "not all of it holds"; exit 1; }

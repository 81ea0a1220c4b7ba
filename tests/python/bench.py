"""Windrow beside plyvel and rocksdict on the same work, in turns: `bench.py [RECORDS] [ROUNDS]`.

Thousands of operations a second by one thread, medians of the rounds. Keys have 16 bytes, values 100. Each store has its
defaults but for 64 MiB of cache and no compression. It needs: pip install plyvel rocksdict.
"""

import os
import random
import shutil
import statistics
import sys
import tempfile
import time

import plyvel
import rocksdict
import windrow
import windrow.plyvel

CACHE = 64 << 20


class Windrow:
    name = "windrow"

    def __init__(self, path):
        self.db = windrow.open(path, memory_bytes=CACHE + (32 << 20), compression="none")
        self.put, self.get = self.db.put, self.db.get

    def batch(self, pairs):
        with self.db.batch() as batch:
            for key, value in pairs:
                batch.put(self.db, key, value)

    def scan(self):
        return sum(1 for _ in self.db.items())

    def close(self):
        self.db.close()


class Plyvel:
    name = "plyvel"
    module = plyvel

    def __init__(self, path):
        self.db = self.module.DB(
            path, create_if_missing=True, lru_cache_size=CACHE, write_buffer_size=8 << 20, bloom_filter_bits=10, compression=None
        )
        self.put, self.get = self.db.put, self.db.get

    def batch(self, pairs):
        with self.db.write_batch() as batch:
            for key, value in pairs:
                batch.put(key, value)

    def scan(self):
        return sum(1 for _ in self.db)

    def close(self):
        self.db.close()


class OnPlyvel(Plyvel):
    name = "windrow.plyvel"
    module = windrow.plyvel


class Rocksdict:
    name = "rocksdict"

    def __init__(self, path):
        options = rocksdict.Options(raw_mode=True)
        options.create_if_missing(True)
        options.set_compression_type(rocksdict.DBCompressionType.none())
        table = rocksdict.BlockBasedOptions()
        table.set_block_cache(rocksdict.Cache(CACHE))
        table.set_bloom_filter(10, False)
        options.set_block_based_table_factory(table)
        self.db = rocksdict.Rdict(path, options)
        self.put, self.get = self.db.__setitem__, self.db.get

    def batch(self, pairs):
        batch = rocksdict.WriteBatch(raw_mode=True)
        for key, value in pairs:
            batch.put(key, value)
        self.db.write(batch)

    def scan(self):
        return sum(1 for _ in self.db.items())

    def close(self):
        self.db.close()


def timed(count, run):
    begin, cpu = time.perf_counter(), time.process_time()
    run()
    return count / (time.perf_counter() - begin) / 1000, (time.process_time() - cpu) / count * 1e6


def measured(kind, count):
    path = tempfile.mkdtemp(dir=os.environ.get("BENCH_DIR"))
    draw = random.Random(1)
    keys = [b"%016d" % draw.randrange(10**15) for _ in range(count)]
    value = b"v" * 100
    figures = {}
    try:
        store = kind(os.path.join(path, "db"))
        put, get = store.put, store.get
        figures["put"] = timed(count, lambda: [put(key, value) for key in keys])
        draw.shuffle(keys)
        figures["get"] = timed(count, lambda: [get(key) for key in keys])
        figures["get, absent"] = timed(count, lambda: [get(key + b"x") for key in keys])
        figures["scan"] = timed(count, lambda: store.scan())
        store.close()
        store = kind(os.path.join(path, "other"))
        groups = [[(key, value) for key in keys[at : at + 100]] for at in range(0, count, 100)]
        figures["batches of 100"] = timed(count, lambda: [store.batch(group) for group in groups])
        store.close()
    finally:
        shutil.rmtree(path)
    return figures


def main(count=200_000, rounds=5):
    kinds = [Windrow, OnPlyvel, Plyvel, Rocksdict]
    all_figures = {kind.name: [] for kind in kinds}
    for _ in range(rounds):
        for kind in kinds:
            all_figures[kind.name].append(measured(kind, count))
    print(f"| thousand/s (us of CPU) | {' | '.join(kind.name for kind in kinds)} | over the better |")
    print("|---|" + "---:|" * (len(kinds) + 1))
    for work in all_figures["windrow"][0]:
        speed = {name: statistics.median(of[work][0] for of in rounds) for name, rounds in all_figures.items()}
        cpu = {name: statistics.median(of[work][1] for of in rounds) for name, rounds in all_figures.items()}
        cells = [f"{speed[kind.name]:.0f} ({cpu[kind.name]:.1f})" for kind in kinds]
        ratio = speed["windrow"] / max(speed["plyvel"], speed["rocksdict"])
        print(f"| {work} | {' | '.join(cells)} | {ratio:.2f} |")


main(*map(int, sys.argv[1:]))

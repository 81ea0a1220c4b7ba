"""The package as programs use it."""

import asyncio
import gc
import multiprocessing
import os
import signal
import sys
import threading

import pytest

import windrow
import windrow.plyvel as plyvel
from windrow import aio


@pytest.fixture
def db(tmp_path):
    with windrow.open(tmp_path / "db", memory_bytes="16MiB") as db:
        yield db


def test_keys_and_values(db):
    db[b"a"] = b"1"
    db.put(bytearray(b"b"), memoryview(b"22")[:1])
    assert db[b"a"] == b"1" and db.get(b"b") == b"2" and b"a" in db and b"c" not in db
    assert db.get(b"c") is None and db.get(b"c", 7) == 7
    assert db.get_many([b"a", b"c"]) == [b"1", None]
    with pytest.raises(KeyError):
        db[b"c"]
    del db[b"a"]
    with pytest.raises(KeyError):
        del db[b"a"]
    db.delete(b"a")
    for wrong in ("a", 1, None, ["a"]):
        with pytest.raises(TypeError):
            db.put(wrong, b"")
        with pytest.raises(TypeError):
            db.put(b"a", wrong)
    with pytest.raises(windrow.InvalidArgumentError):
        db.put(b"k" * 70000, b"")
    db.put(b"t", b"", ttl=60)
    assert 50 < db.ttl(b"t") <= 60 and db.ttl(b"b") is None
    with pytest.raises(ValueError):
        db.put(b"t", b"", ttl=-1)
    assert db.compare_exchange(b"x", None, b"1") and not db.compare_exchange(b"x", None, b"2")
    assert db.pop_first() == (b"b", b"2")


def test_scans_go_both_ways(db):
    for n in range(1000):
        db.put(b"%03d" % n, b"v%d" % n)
    assert [key for key, _ in db.items()] == [b"%03d" % n for n in range(1000)]
    assert list(db.keys(b"010", b"013")) == [b"010", b"011", b"012"] == list(db.keys(b"010", b"013", reverse=True))[::-1]
    assert list(db.values(prefix=b"99")) == [b"v%d" % n for n in range(990, 1000)]
    assert len(db) == db.count() == 1000 and db.count(b"5") == 500 and db.approximate_len() >= 1000
    with pytest.raises(TypeError):
        db.keys(b"a", prefix=b"b")
    db.put(b"\xff\xff", b"")
    assert list(db.keys(prefix=b"\xff")) == [b"\xff\xff"]
    cursor = db.cursor(b"100", b"200")
    assert not cursor.valid and cursor.key is None
    assert cursor.last() and cursor.key == b"199" and cursor.value == b"v199"
    assert cursor.prev() and cursor.key == b"198"
    assert cursor.seek(b"1500") and cursor.key == b"151" and not cursor.seek(b"2")
    assert cursor.seek_before(b"1500") and cursor.key == b"150"
    entries = db.items()
    next(entries)
    entries.close()
    with pytest.raises(StopIteration):
        next(entries)


def test_batches_and_snapshots(db):
    users = db.keyspace("users", ttl=3600)
    then = db.snapshot()
    with db.batch(sync=True) as batch:
        batch.put(users, b"u1", b"ada")
        batch.put(db, b"a", b"1")
        assert len(batch) == 2 and batch.nbytes > 0
    assert users.get(b"u1") == b"ada" and users.get(b"u1", snapshot=then) is None
    assert list(db.keys(snapshot=then)) == [] and users.ttl(b"u1") > 3500
    with pytest.raises(ZeroDivisionError), db.batch() as batch:
        batch.put(db, b"b", b"1")
        1 / 0
    assert b"b" not in db
    with pytest.raises(TypeError):
        db.keyspace("x", colour="red")
    assert sorted(db.keyspaces()) == ["default", "users"]
    db.drop_keyspace("users")
    with pytest.raises(windrow.ClosedError):
        users.get(b"u1")


def test_transactions_run_again(db):
    db[b"n"] = b"0"

    def add(tx):
        tx.put(db, b"n", b"%d" % (int(tx.get(db, b"n")) + 1))

    threads = [threading.Thread(target=lambda: [db.transact(add) for _ in range(50)]) for _ in range(8)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert db[b"n"] == b"400"
    with db.transaction() as tx:
        tx.put(db, b"a", b"1")
        tx.savepoint()
        tx.delete(db, b"n")
        tx.rollback_to_savepoint()
        assert tx.items(db) == [(b"a", b"1"), (b"n", b"400")] == tx.items(db, reverse=True)[::-1]
        assert tx.items(db, limit=1) == [(b"a", b"1")]
    assert tx.ended and db[b"a"] == b"1"
    with pytest.raises(windrow.ClosedError):
        tx.put(db, b"a", b"1")
    with pytest.raises(ZeroDivisionError), db.transaction() as tx:
        tx.put(db, b"a", b"2")
        1 / 0
    assert db[b"a"] == b"1"
    first, second = db.transaction(), db.transaction()
    first.get(db, b"a"), second.get(db, b"a")
    first.put(db, b"a", b"3"), second.put(db, b"a", b"4")
    first.commit()
    with pytest.raises(windrow.ConflictError):
        second.commit()


class Longest:
    def full_merge(self, key, base, operands):
        if any(operand == b"bad" for operand in operands):
            raise ValueError("bad")
        return max(operands + ([base] if base is not None else []), key=len)

    def partial_merge(self, key, operands):
        return max(operands, key=len) if b"bad" not in operands else None


def test_code_in_python_runs_in_the_background(tmp_path, monkeypatch):
    told = []
    monkeypatch.setattr(sys, "unraisablehook", lambda of: told.append(str(of.exc_value)))
    orders = {"length": lambda a, b: (len(a), a) > (len(b), b) and 1 or (a != b and -1 or 0)}
    options = dict(comparators=orders, merge_operators={"longest": Longest()}, memory_bytes="8MiB")
    with windrow.open(tmp_path / "db", **options) as db:
        words = db.keyspace("words", comparator="length", merge_operator="longest")
        for n in range(20000):
            words.put(b"%d" % n, b"x" * 100)
        db.flush()
        assert [*words.keys()][:3] == [b"0", b"1", b"2"] and len([*words.keys()]) == 20000
        for n in range(100):
            words.merge(b"m", b"y" * (n % 37))
        db.compact_all()
        assert words[b"m"] == b"y" * 36
        words.merge(b"m", b"bad")
        with pytest.raises(windrow.MergeRefusedError):
            words.get(b"m")
        assert "bad" in told
        words.delete(b"m")
    with pytest.raises(windrow.InvalidArgumentError):
        windrow.open(tmp_path / "db")


def test_errors_say_what_to_do(tmp_path):
    with pytest.raises(windrow.InvalidArgumentError, match="memory_bytes"):
        windrow.open(tmp_path / "db", memory_bytes=1)
    with pytest.raises(windrow.InvalidArgumentError, match="colour"):
        windrow.open(tmp_path / "db", colour="red")
    with pytest.raises(TypeError):
        windrow.open(tmp_path / "db", memory_bytes=1.5)
    with pytest.raises(windrow.InvalidArgumentError):
        windrow.open(tmp_path / "db", create_if_missing=False)
    db = windrow.open(tmp_path / "db")
    with pytest.raises(windrow.BusyError):
        windrow.open(tmp_path / "db")
    db.close()
    db.close()
    with windrow.open(tmp_path / "db", read_only=True) as db, pytest.raises(windrow.ReadOnlyError):
        db.put(b"a", b"")
    assert issubclass(windrow.ClosedError, RuntimeError) and issubclass(windrow.NoSpaceError, OSError)


def test_what_is_closed_raises(tmp_path):
    db = windrow.open(tmp_path / "db")
    db[b"a"] = b"1"
    batch, tx, ingest, cursor, entries = db.batch(), db.transaction(), db.ingest(), db.cursor(), db.items()
    batch.put(db, b"b", b"1")
    db.close()
    for call in (
        lambda: db.get(b"a"),
        lambda: db.put(b"a", b""),
        lambda: db.keyspace("x"),
        lambda: db.transaction(),
        lambda: db.flush(),
        lambda: batch.write(),
        lambda: tx.put(db, b"a", b"1") or tx.commit(),
        lambda: ingest.put(b"a", b"") or ingest.finish(),
    ):
        with pytest.raises(windrow.ClosedError):
            call()
    assert cursor.first() and [*entries] == [(b"a", b"1")]  # what is open goes on reading
    windrow.destroy(tmp_path / "db")


def test_ends_in_any_order(tmp_path):
    import itertools

    for order in itertools.permutations(range(5)):
        db = windrow.open(tmp_path / "db", memory_bytes="8MiB")
        db[b"a"] = b"1"
        handles = [db, db.keyspace("x"), db.snapshot(), db.cursor(), db.transaction()]
        del db
        for at in order:
            handles[at] = None
        del handles
        gc.collect()
        windrow.open(tmp_path / "db", memory_bytes="8MiB").close()


def test_ingestion_checkpoints_followers(db, tmp_path):
    with db.ingest() as ingest:
        for n in range(1000):
            ingest.put(b"%04d" % n, b"v")
    assert len(db) == 1000
    with pytest.raises(windrow.InvalidArgumentError), db.ingest() as ingest:
        ingest.put(b"b", b"")
        ingest.put(b"a", b"")
    db.checkpoint(tmp_path / "copy")
    with windrow.open(tmp_path / "copy") as copy:
        assert len(copy) == 1000 and copy.verify() == []
    follower = windrow.follow(db.path)
    before = follower.db
    db[b"new"] = b"1"
    assert follower.refresh() and not follower.refresh()
    assert follower.db.get(b"new") == b"1" and before.get(b"new") is None
    with pytest.raises(windrow.ReadOnlyError):
        follower.db.put(b"a", b"")
    stats = db.stats()
    assert stats["operations"] > 0 and "level" in db.stats_text() and db.write_error is None
    db.sync(), db.wait_idle(), db.compact(b"0", b"1"), db.resume()


def test_mapping(db):
    view = windrow.Mapping(db)
    assert not view and len(view) == 0
    view[b"b"] = b"2"
    view.update({b"a": b"1", b"c": b"3"})
    assert list(view) == [b"a", b"b", b"c"] and list(reversed(view)) == [b"c", b"b", b"a"] and view
    assert view.pop(b"a") == b"1" and view.setdefault(b"b", b"x") == b"2" and dict(view) == {b"b": b"2", b"c": b"3"}
    assert view.popitem() and len(view) == 1
    view.clear()
    assert dict(view) == {}


def test_asyncio(tmp_path):
    async def run():
        async with await aio.open(tmp_path / "db") as db:
            await asyncio.gather(*(db.put(b"%03d" % n, b"v") for n in range(300)))
            assert await db.get(b"007") == b"v"
            assert [key async for key in db.keys(prefix=b"1")] == [b"1%02d" % n for n in range(100)]
            users = await db.keyspace("users")
            async with await db.batch() as batch:
                await batch.put(users, b"a", b"1")
            assert await users.get(b"a") == b"1"
            await aio.transact(db, lambda tx: tx.put(db.plain, b"t", b"1"))
            assert await db.get(b"t") == b"1"
            await db.sync()

    asyncio.run(run())


def _child(db, results):
    def kind(call):
        try:
            call()
        except Exception as error:
            return type(error).__name__
        return "none"

    results.put([kind(lambda: db.get(b"a")), kind(lambda: db.put(b"a", b"2")), kind(lambda: db.close())])


def test_a_forked_child_has_no_database(db):
    db[b"a"] = b"1"
    context = multiprocessing.get_context("fork")
    results = context.Queue()
    child = context.Process(target=_child, args=(db, results))
    child.start()
    kinds = results.get(timeout=60)
    child.join(60)
    assert child.exitcode == 0 and kinds[:2] == ["ClosedError", "ClosedError"]
    assert db[b"a"] == b"1"


def _opens(path, results):
    with windrow.open(path) as db:
        db[b"spawned"] = b"1"
    results.put(os.getpid())


def test_a_spawned_child_has_its_own(tmp_path):
    context = multiprocessing.get_context("spawn")
    results = context.Queue()
    child = context.Process(target=_opens, args=(str(tmp_path / "db"), results))
    child.start()
    assert results.get(timeout=60) == child.pid
    child.join(60)
    with windrow.open(tmp_path / "db") as db:
        assert db[b"spawned"] == b"1"


def test_sixteen_threads(db):
    def work(name):
        for n in range(500):
            key = b"%d-%d" % (name, n)
            db.put(key, key)
            assert db.get(key) == key
        assert len([*db.keys(prefix=b"%d-" % name)]) == 500

    threads = [threading.Thread(target=work, args=(name,)) for name in range(16)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert len(db) == 8000




def test_ctrl_c_in_a_comparator_comes_later(tmp_path):
    """An interrupt is not an answer: a comparator that raised would end the database's writing."""
    compared = put = interrupts = 0

    def compare(a, b):
        nonlocal compared
        compared += 1
        if compared % 500 == 0 and put < 2500:
            signal.raise_signal(signal.SIGINT)
        return (a > b) - (a < b)

    options = dict(comparators={"c": compare}, default_keyspace={"comparator": "c"}, memory_bytes="8MiB")
    with windrow.open(tmp_path / "db", **options) as db:
        while put < 3000:
            try:
                # It comes somewhere in here, and once for each time it was raised.
                while put < 3000:
                    db.put(b"%d" % (put * 7919 % 3000), b"x")
                    put += 1
            except KeyboardInterrupt:
                interrupts += 1
        assert interrupts > 0 and db.write_error is None
        assert len(db) == 3000


def test_a_comparator_that_raises_ends_writing(tmp_path, monkeypatch):
    told = []
    monkeypatch.setattr(sys, "unraisablehook", lambda of: told.append(str(of.exc_value)))

    def compare(a, b):
        if b"bad" in (a, b):
            raise ValueError("no order")
        return (a > b) - (a < b)

    with windrow.open(tmp_path / "db", comparators={"c": compare}, default_keyspace={"comparator": "c"}) as db:
        db.put(b"a", b"1")
        with pytest.raises(windrow.Error):
            db.put(b"bad", b"1")
        with pytest.raises(windrow.Error):
            db.put(b"b", b"1")
        assert db.write_error is not None and db.get(b"a") == b"1"
        with pytest.raises(windrow.Error):
            db.close()
    assert "no order" in told


def test_plyvel_bounds_in_another_order(tmp_path):
    backwards = lambda a, b: (a < b) - (a > b)  # noqa: E731
    with plyvel.DB(str(tmp_path / "db"), create_if_missing=True, comparator=backwards, comparator_name=b"b") as db:
        for key in (b"1", b"2", b"3"):
            db.put(key, key)
        keys = lambda **words: list(db.iterator(include_value=False, **words))  # noqa: E731
        assert keys() == [b"3", b"2", b"1"]
        assert keys(start=b"3", include_start=False) == [b"2", b"1"]
        assert keys(start=b"1", include_start=False) == []
        assert keys(stop=b"2") == [b"3"] and keys(stop=b"2", include_stop=True) == [b"3", b"2"]
        assert keys(start=b"2", stop=b"1", include_stop=True, reverse=True) == [b"1", b"2"]


def test_plyvel_closes_while_others_iterate(tmp_path):
    for _ in range(20):
        db = plyvel.DB(str(tmp_path / "db"), create_if_missing=True)
        for n in range(100):
            db.put(b"%d" % n, b"x")
        failed = []

        def iterate():
            try:
                while True:
                    list(db.iterator())
            except RuntimeError as error:
                if "closed" not in str(error):
                    failed.append(error)
            except plyvel.Error as error:
                failed.append(error)

        threads = [threading.Thread(target=iterate) for _ in range(4)]
        [thread.start() for thread in threads]
        db.close()
        [thread.join() for thread in threads]
        assert failed == [] and db.closed


def test_a_transaction_gives_up(db):
    def conflicts(tx):
        tx.get(db, b"a")
        db.put(b"a", os.urandom(8))
        tx.put(db, b"a", b"1")

    with pytest.raises(windrow.ConflictError):
        db.transact(conflicts, attempts=3)
    with pytest.raises(ValueError):
        db.transact(conflicts, attempts=0)

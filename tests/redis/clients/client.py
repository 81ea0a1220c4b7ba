"""redis-py against a Windrow server."""

import os
import threading

import redis

r = redis.Redis(port=int(os.environ["WINDROW_PORT"]), decode_responses=True)
r3 = redis.Redis(port=int(os.environ["WINDROW_PORT"]), decode_responses=True, protocol=3)
r.flushall()

assert r.set("apple", "red") and r.get("apple") == "red"
assert r.set("brief", "x", px=60_000, nx=True) and not r.set("brief", "y", nx=True)
assert 0 < r.pttl("brief") <= 60_000
assert r.hset("h", mapping={"a": 1, "b": 2}) == 2
assert r.hgetall("h") == r3.hgetall("h") == {"a": "1", "b": "2"}
assert r.rpush("l", *range(5)) == 5 and r.lrange("l", 1, 2) == ["1", "2"]
assert r.sadd("s", "x", "y") == 2 and r.smembers("s") == r3.smembers("s") == {"x", "y"}
assert r.zadd("z", {"one": 1, "two": 2.5}) == 2
assert r.zrange("z", 0, -1, withscores=True) == [("one", 1.0), ("two", 2.5)]
assert sorted(r.scan_iter(match="*", count=2)) == ["apple", "brief", "h", "l", "s", "z"]

with r.pipeline(transaction=False) as pipe:
    for n in range(1000):
        pipe.set(f"p{n}", n)
    assert all(pipe.execute())
assert r.mget("p0", "p999", "none") == ["0", "999", None]


def add_one():
    def change(pipe):
        n = int(pipe.get("n") or 0)
        pipe.multi()
        pipe.set("n", n + 1)

    for _ in range(50):
        r.transaction(change, "n")


threads = [threading.Thread(target=add_one) for _ in range(4)]
[t.start() for t in threads]
[t.join() for t in threads]
assert r.get("n") == "200", "watched transactions"

try:
    r.lpush("apple", 1)
    raise AssertionError("a string took an element")
except redis.ResponseError as error:
    assert "WRONGTYPE" in str(error)

waiting = threading.Thread(target=lambda: r.rpush("jobs", r.blpop("wake", timeout=10)[1]))
waiting.start()
r.lpush("wake", "up")
waiting.join()
assert r.lpop("jobs") == "up"

sub = r.pubsub(ignore_subscribe_messages=True)
sub.subscribe("news")
while sub.get_message(timeout=0.2):
    pass
r.publish("news", "hello")
assert sub.get_message(timeout=5)["data"] == "hello"
assert r.info("server")["redis_mode"] == "standalone"

// node-redis against a Windrow server.
import assert from "node:assert/strict";
import { createClient } from "redis";

const url = `redis://127.0.0.1:${process.env.WINDROW_PORT}`;
const r = await createClient({ url }).connect();
await r.flushAll();

assert.equal(await r.set("apple", "red"), "OK");
assert.equal(await r.get("apple"), "red");
assert.equal(await r.hSet("h", { a: "1", b: "2" }), 2);
assert.deepEqual({ ...(await r.hGetAll("h")) }, { a: "1", b: "2" });
assert.equal(await r.rPush("l", ["x", "y", "z"]), 3);
assert.deepEqual(await r.lRange("l", 0, -1), ["x", "y", "z"]);
assert.equal(await r.sAdd("s", ["x", "y"]), 2);
assert.equal(await r.zAdd("z", [{ score: 2, value: "b" }, { score: 1, value: "a" }]), 2);
assert.deepEqual(await r.zRangeWithScores("z", 0, -1), [{ value: "a", score: 1 }, { value: "b", score: 2 }]);

// What is asked for at once goes as one pipeline.
const all = await Promise.all(Array.from({ length: 1000 }, (_, n) => r.incrBy("sum", n)));
assert.equal(all.at(-1), 499500);
assert.deepEqual(await r.multi().set("m", "1").incr("m").get("m").exec(), ["OK", 2, "2"]);

const other = await r.duplicate().connect();
await other.watch("m");
await r.set("m", "9");
await assert.rejects(other.multi().set("m", "0").exec(), "a watched key was written");

const sub = await r.duplicate().connect();
const message = new Promise((resolve) => sub.subscribe("news", resolve));
while ((await r.publish("news", "hello")) === 0);
assert.equal(await message, "hello");
const keys = [];
for await (const key of r.scanIterator({ COUNT: 2 })) keys.push(key);
assert.deepEqual(keys.flat().sort(), ["apple", "h", "l", "m", "s", "sum", "z"]);
await Promise.all([r, other, sub].map((client) => client.quit()));

//! The crate `redis` against a Windrow server.

use redis::{Commands, ConnectionLike, RedisResult};
use std::collections::HashMap;

fn main() -> RedisResult<()> {
    let port = std::env::var("WINDROW_PORT").expect("WINDROW_PORT is set");
    let client = redis::Client::open(format!("redis://127.0.0.1:{port}/?protocol=resp3"))?;
    let mut r = client.get_connection()?;
    let _: () = redis::cmd("FLUSHALL").query(&mut r)?;

    let _: () = r.set("apple", "red")?;
    assert_eq!(r.get::<_, String>("apple")?, "red");
    let _: () = r.hset_multiple("h", &[("a", 1), ("b", 2)])?;
    let h: HashMap<String, i64> = r.hgetall("h")?;
    assert_eq!((h["a"], h["b"]), (1, 2));
    assert_eq!(r.rpush::<_, _, i64>("l", &["x", "y"])?, 2);
    assert_eq!(r.lrange::<_, Vec<String>>("l", 0, -1)?, ["x", "y"]);
    assert_eq!(r.sadd::<_, _, i64>("s", &["x", "y"])?, 2);
    assert_eq!(r.zadd::<_, _, _, i64>("z", "a", 1.5)?, 1);
    assert_eq!(r.zscore::<_, _, f64>("z", "a")?, 1.5);

    let mut pipe = redis::pipe();
    for _ in 0..1000 {
        pipe.incr("sum", 1);
    }
    let sums: Vec<i64> = pipe.query(&mut r)?;
    assert_eq!(sums.last(), Some(&1000));
    let (a, b): (i64, i64) =
        redis::pipe().atomic().incr("m", 5).incr("m", 1).query(&mut r)?;
    assert_eq!((a, b), (5, 6));

    let mut publisher = client.get_connection()?;
    let mut listener = client.get_connection()?;
    let mut sub = listener.as_pubsub();
    sub.subscribe("news")?;
    let _: () = publisher.publish("news", "hello")?;
    assert_eq!(sub.get_message()?.get_payload::<String>()?, "hello");
    assert!(r.check_connection());
    Ok(())
}

//! Random sessions against a model: every reply, and in the end every row.

use crate::client::{Client, ModelReply, serve};
use windrow::Db;
use windrow_server::Config;
use windrow_server::testing::model::{Choices, Model, ModelValue, Rng, request, run};

/// Checks that every keyspace has the rows of the model's values, and no
/// others.
fn check_rows(db: &Db, model: &Model) {
    let count = |name: &str| {
        let keyspace = db.open_keyspace(name).unwrap().unwrap();
        keyspace.count(..).unwrap() as usize
    };
    let sum = |of: fn(&ModelValue) -> usize| model.values().map(of).sum::<usize>();
    let expected = [
        ("default", sum(|v| usize::from(matches!(v, ModelValue::String(_))))),
        ("redis.keys", sum(|v| usize::from(!matches!(v, ModelValue::String(_))))),
        ("redis.hashes", sum(|v| if let ModelValue::Hash(all) = v { all.len() } else { 0 })),
        ("redis.sets", sum(|v| if let ModelValue::Set(all) = v { all.len() } else { 0 })),
        ("redis.lists", sum(|v| if let ModelValue::List(all) = v { all.len() } else { 0 })),
        ("redis.members", sum(|v| if let ModelValue::Sorted(all) = v { all.len() } else { 0 })),
        ("redis.scores", sum(|v| if let ModelValue::Sorted(all) = v { all.len() } else { 0 })),
        (
            "redis.streams",
            sum(|v| if let ModelValue::Stream(stream) = v { stream.rows() } else { 0 }),
        ),
        ("redis.deadlines", 0),
    ];
    for (name, rows) in expected {
        assert_eq!(count(name), rows, "rows of {name}");
    }
}

#[test]
fn replies_and_rows_are_those_of_the_model() {
    for seed in 1..=12_u64 {
        let dir = tempfile::tempdir().unwrap();
        let (db, server) = serve(dir.path(), Config::default());
        let mut client = Client::new(server.addresses()[0]);
        let (mut rng, mut model) =
            (Rng(0x9e37_79b9_7f4a_7c15_u64.wrapping_mul(seed)), Model::new());
        for step in 0..1500 {
            if rng.below(10) == 0 {
                // Several as one: each sees the writes of those before it.
                let requests: Vec<_> = (0..rng.below(6) + 1).map(|_| request(&mut rng)).collect();
                client.say("MULTI");
                requests.iter().for_each(|args| {
                    client.call(args);
                });
                let expected = requests.iter().map(|args| run(&mut model, args)).collect();
                let replies = client.say("EXEC");
                assert_eq!(
                    replies,
                    ModelReply::Array(expected),
                    "seed {seed}, step {step}: {requests:?}"
                );
            } else if rng.below(4) == 0 {
                // Several that arrive together, and are written together.
                let requests: Vec<_> = (0..rng.below(20) + 1).map(|_| request(&mut rng)).collect();
                let expected: Vec<_> = requests.iter().map(|args| run(&mut model, args)).collect();
                let replies = client.call_all(&requests);
                assert_eq!(replies, expected, "seed {seed}, step {step}: {requests:?}");
            } else {
                let args = request(&mut rng);
                let expected = run(&mut model, &args);
                assert_eq!(client.call(&args), expected, "seed {seed}, step {step}: {args:?}");
            }
            if step % 300 == 299 {
                check_rows(&db, &model);
            }
        }
        server.stop();
        db.close().unwrap();
    }
}

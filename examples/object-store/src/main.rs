//! Backs a database up into an object store, lists what is there, and restores it:
//!
//! ```text
//! cargo run -- backup DB file:///mnt/backups/of-db 7
//! cargo run -- list file:///mnt/backups/of-db
//! cargo run -- restore file:///mnt/backups/of-db NEW-DB
//! cargo run --features s3 -- backup DB s3://bucket/of-db 7
//! ```
//!
//! For S3 the environment has the key (`AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY`, `AWS_REGION`,
//! `AWS_ENDPOINT`, and `AWS_ALLOW_HTTP=true` for one without TLS). `README.md` says what was tried, and
//! `s3.sh` tries it. The database may be open in another process.

use object_store::ObjectStore;
use std::error::Error;
use std::sync::Arc;
use windrow::Follower;
use windrow::backup::{BackupOptions, backups, prune_backups, restore_backup, verify_backup};
use windrow_object_store::ObjectStoreTarget;

fn target(url: &str) -> Result<ObjectStoreTarget, Box<dyn Error>> {
    let (store, prefix): (Arc<dyn ObjectStore>, &str) = match url.split_once("://") {
        Some(("file", path)) => {
            std::fs::create_dir_all(path)?;
            (Arc::new(object_store::local::LocalFileSystem::new_with_prefix(path)?), "")
        }
        #[cfg(feature = "s3")]
        Some(("s3", rest)) => {
            let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
            let s3 = object_store::aws::AmazonS3Builder::from_env().with_bucket_name(bucket);
            (Arc::new(s3.build()?), prefix)
        }
        _ => return Err(format!("no store for {url}").into()),
    };
    Ok(ObjectStoreTarget::new(store, prefix)?)
}

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    match args[..] {
        ["backup", db, url, keep] => {
            let (target, keep) = (target(url)?, keep.parse()?);
            let made = Follower::open(db)?.backup(&target, BackupOptions::default())?;
            println!("{made:?}; removed {:?}", prune_backups(&target, keep)?);
        }
        ["list", url] => {
            let target = target(url)?;
            for backup in backups(&target)? {
                println!("{:?}", verify_backup(&target, backup.number)?);
            }
        }
        ["restore", url, db] => println!("{:?}", restore_backup(&target(url)?, None, db)?),
        _ => return Err("backup DB URL KEEP | list URL | restore URL NEW-DB".into()),
    }
    Ok(())
}

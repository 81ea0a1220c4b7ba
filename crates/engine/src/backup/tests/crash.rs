//! Backups whose process ends, or whose device fails, at any operation of a backup, a prune or a
//! restore.

use super::*;
use windrow_env::testing::{Fault, FaultKind, Handles, Ops, When};

/// A database that keeps changes, with one backup, and the entries that the next one adds.
fn prepared(env: &Env) -> (Db, BackupDirectory, Entries) {
    let mut keeping = options(env);
    keeping.settings.changes_bytes = 1 << 20;
    let db = Db::open_with("db", keeping).unwrap();
    let target = directory(env);
    put(&db, 0..60, "a");
    db.backup(&target, BackupOptions::default()).unwrap();
    let first = contents(&db);
    put(&db, 30..90, "b");
    (db, target, first)
}

/// Checks that every backup after a crash is whole and of its moment, and the next one as well.
fn judge(env: &Env, moments: [&Entries; 2], at: u64) {
    let target = directory(env);
    let known = backups(&target).unwrap();
    assert!(!known.is_empty(), "operation {at}: both backups are gone");
    for backup in &known {
        verify_backup(&target, backup.number).unwrap();
        let dir = format!("copy-{}", backup.number);
        let found = restored(env, &target, Some(backup.number), &dir);
        assert!(moments.contains(&&found), "operation {at}: backup {}", backup.number);
    }
    let db = open(env, "db");
    let again = db.backup(&target, BackupOptions::default()).unwrap();
    prune_backups(&target, 1).unwrap();
    assert_eq!(restored(env, &target, Some(again.number), "again"), contents(&db));
    db.close().unwrap();
}

/// Ends the process at each operation of a backup and a prune, in turn.
fn end_at_any_operation(end: impl Fn(&Handles, u64)) {
    for at in 0.. {
        let (env, handles) = env(at + 1);
        let (db, target, first) = prepared(&env);
        let second = contents(&db);
        handles.fs.crash_at(handles.fs.operations() + at);
        let done = db.backup(&target, BackupOptions::default());
        let done = done.and_then(|_| prune_backups(&target, 1));
        let is_over = done.is_ok() && !handles.fs.is_dead();
        drop((db, target));
        if is_over {
            assert!(at > 20, "a backup and a prune take {at} operations");
            return;
        }
        end(&handles, at);
        let handles = handles.reborn(at);
        judge(&handles.env(), [&first, &second], at);
    }
}

#[test]
fn a_loss_of_power_at_any_operation_leaves_whole_backups() {
    end_at_any_operation(|handles, at| handles.fs.crash(at));
}

#[test]
fn a_kill_at_any_operation_leaves_whole_backups() {
    end_at_any_operation(|handles, at| handles.fs.kill(at));
}

/// A backup that was killed may leave names that are not durable, and a prune removals. The next ones go by
/// both, and a loss of power after them must not take or return anything.
#[test]
fn a_loss_of_power_after_the_next_backup_leaves_what_it_found_of_a_killed_one() {
    // The file system decides by a seed which names go with the power.
    for seed in 0..8 {
        let mut at = 0;
        while killed_backup_and_the_next_survive(at, seed) {
            at += 1;
        }
        assert!(at > 20, "a backup and a prune take {at} operations");
    }
}

/// Returns whether backup and prune had an operation of this number.
fn killed_backup_and_the_next_survive(at: u64, seed: u64) -> bool {
    let (env, handles) = env(at + 1);
    let (db, target, first) = prepared(&env);
    let second = contents(&db);
    handles.fs.crash_at(handles.fs.operations() + at);
    let done = db.backup(&target, BackupOptions::default());
    let done = done.and_then(|_| prune_backups(&target, 1));
    let is_over = done.is_ok() && !handles.fs.is_dead();
    drop((db, target));
    if is_over {
        return false;
    }
    handles.fs.kill(at);
    let handles = handles.reborn(at);
    let env = handles.env();
    let (target, db) = (directory(&env), open(&env, "db"));
    db.backup(&target, BackupOptions::default()).unwrap();
    prune_backups(&target, 2).unwrap();
    handles.fs.crash(seed);
    drop((db, target));
    let handles = handles.reborn(at);
    judge(&handles.env(), [&first, &second], at);
    true
}

/// Each operation on the target fails in turn, and may have been done all the same.
#[test]
fn a_target_that_fails_keeps_its_backups_and_can_be_used_again() {
    for kind in [FaultKind::Io, FaultKind::NoSpace] {
        for at in 0.. {
            let (env, handles) = env(at + 1);
            let (db, target, first) = prepared(&env);
            let second = contents(&db);
            let fault = Fault::new(kind, Ops::MUTATING, When::Matching(at)).on_path("backups");
            let fault = handles.fs.inject(fault);
            let done = db.backup(&target, BackupOptions::default());
            let done = done.and_then(|_| prune_backups(&target, 1));
            handles.fs.remove_fault(fault);
            db.close().unwrap();
            drop(target);
            judge(&env, [&first, &second], at);
            if done.is_ok() {
                assert!(at > 5, "{at} operations failed");
                break;
            }
        }
    }
}

/// A half-stored object takes no room on a full device, and whole objects are used.
#[test]
fn a_full_target_is_gone_on_with() {
    let (env, handles) = env(1);
    let db = open(&env, "db");
    let target = directory(&env);
    for round in 0..4 {
        put(&db, round * 1_000..round * 1_000 + 1_000, "a");
        db.flush().unwrap();
    }
    let full = Fault::new(FaultKind::NoSpace, Ops::WRITE, When::Matching(2)).on_path("backups");
    let full = handles.fs.inject(full);
    let refused = db.backup(&target, BackupOptions::default()).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::NoSpace, "{refused}");
    handles.fs.remove_fault(full);
    let whole = target.list(names::TABLES).unwrap().len() as u64;
    assert!(whole > 0 && backups(&target).unwrap().is_empty());
    assert_eq!(handles.fs.files(Path::new("backups")), ["LOCK"]);
    let made = db.backup(&target, BackupOptions::default()).unwrap();
    assert_eq!(made.copied_tables, made.tables - whole, "{made:?}");
    assert_eq!(restored(&env, &target, None, "copy"), contents(&db));
    db.close().unwrap();
}

/// Restores a backup, or half of the changes between the first and the second.
fn restore_one(env: &Env, target: &dyn BackupTarget, number: u64) -> Result<()> {
    let copy = Path::new("copy");
    match number {
        3 => restore_to_in(env, target, (Moment::Seq(90), None), copy).map(drop),
        number => restore_backup_in(env, target, Some(number), copy).map(drop),
    }
}

/// Ends the process at each operation of a restore, in turn.
fn end_a_restore(end: impl Fn(&Handles, u64)) {
    for at in 0.. {
        let (env, handles) = env(at + 1);
        let (db, target, first) = prepared(&env);
        let follower = Follower::open_with("db", options(&env)).unwrap();
        follower.backup(&target, BackupOptions::default()).unwrap();
        let second = contents(&db);
        let between = [&second[..60], &first[60..]].concat();
        drop(follower);
        handles.fs.crash_at(handles.fs.operations() + at / 3);
        let number = 1 + at % 3;
        let done = restore_one(&env, &target, number);
        let is_over = done.is_ok() && !handles.fs.is_dead();
        drop((db, target));
        end(&handles, at);
        let handles = handles.reborn(at);
        let env = handles.env();
        let mut strict = options(&env);
        strict.create_if_missing = false;
        match Db::open_with("copy", strict) {
            Ok(copy) => {
                let moment = [&first, &second, &between][number as usize - 1];
                assert_eq!(&contents(&copy), moment, "operation {at}");
                copy.close().unwrap();
            }
            Err(error) => assert!(!is_over, "operation {at}: {error}"),
        }
        if is_over && number == 3 {
            assert!(at / 3 > 15, "a restore takes {} operations", at / 3);
            return;
        }
    }
}

#[test]
fn a_loss_of_power_at_any_operation_restores_all_or_nothing() {
    end_a_restore(|handles, at| handles.fs.crash(at));
}

#[test]
fn a_kill_at_any_operation_restores_all_or_nothing() {
    end_a_restore(|handles, at| handles.fs.kill(at));
}

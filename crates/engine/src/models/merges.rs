//! Models of the state that concurrent merges share ([`windrow_store::merge`]).
//!
//! Owns: these models. Never does: run a merge.

use super::{OF_TWO, model_of_database};
use windrow_base::KeyspaceId;
use windrow_store::merge::filters::OutputFilters;

/// Jobs that plan their filters at once take no more than jobs one after the other.
#[test]
fn two_jobs_do_not_both_take_the_filter_memory_that_is_left() {
    model_of_database(OF_TWO, |world| {
        let tree = world.database().tree(KeyspaceId::DEFAULT).expect("the default keyspace");
        let reserved = || tree.filter_ledger().plan().reserved_bits();
        let first = OutputFilters::of_flush(&tree, 1000);
        let second = OutputFilters::of_flush(&tree, 1000);
        let in_turns = reserved();
        drop((first, second));
        assert_eq!(reserved(), 0.0, "reserved for a job that is over");
        let of_other = tree.clone();
        let other = world.spawn(move |_| OutputFilters::of_flush(&of_other, 1000));
        let mine = OutputFilters::of_flush(&tree, 1000);
        let others = other.join().unwrap();
        assert_eq!(reserved(), in_turns, "at once, and one after the other");
        drop((mine, others));
        assert_eq!(reserved(), 0.0, "reserved for a job that is over");
    });
}

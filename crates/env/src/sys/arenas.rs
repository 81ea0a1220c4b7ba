//! How many heaps the C library's allocator keeps, and what it keeps of what was freed.

/// Has all threads of this process share one heap of glibc's allocator, where
/// that is the process's allocator; does nothing elsewhere.
///
/// By default each thread may get a heap of its own, and what one gives back is of
/// no use to the others: a database with a budget of 64 MiB then has 108 to 139 MiB
/// resident, and 67 to 71 with one heap. For the `main` of a program, before its
/// first thread: a library must leave its host's allocator alone.
pub fn share_one_heap() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: the call takes two numbers and sets a field of the allocator under its
    // own lock; any number is valid.
    unsafe {
        libc::mallopt(libc::M_ARENA_MAX, 1);
    }
}

/// Has glibc's allocator give the pages that nothing is left on back to the system, where
/// that is the process's allocator; does nothing elsewhere. Takes a millisecond or so for
/// some ten mebibytes, in which other threads wait where they allocate.
///
/// By itself it gives back only what is free at the end of a heap: a cache of small blocks
/// that shrinks leaves holes, which stay resident next to whatever then grows.
pub fn give_back_freed() {
    #[cfg(all(target_os = "linux", target_env = "gnu", not(miri)))]
    // SAFETY: the call takes a number of bytes to keep, touches memory that is free alone,
    // and that under the allocator's own locks.
    unsafe {
        libc::malloc_trim(0);
    }
}

#[cfg(all(test, target_os = "linux", target_env = "gnu", not(miri)))]
mod tests {
    use super::give_back_freed;

    fn resident_bytes() -> usize {
        let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
        statm.split(' ').nth(1).unwrap().parse::<usize>().unwrap() * 4096
    }

    /// Of blocks of a cache, one in sixteen stays.
    #[test]
    fn holes_in_the_heap_are_given_back() {
        const BLOCKS: usize = 16 << 10;
        let blocks: Vec<Vec<u8>> = (0..BLOCKS).map(|i| vec![i as u8 | 1; 4200]).collect();
        let kept: Vec<Vec<u8>> = blocks.into_iter().step_by(16).collect();
        let before = resident_bytes();
        give_back_freed();
        let after = resident_bytes();
        assert!(after + (BLOCKS * 4200 / 2) < before, "{before} bytes were resident, then {after}");
        assert!(kept.iter().enumerate().all(|(i, block)| block[4199] == (16 * i) as u8 | 1));
    }
}

//! How many heaps the C library's allocator keeps.

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

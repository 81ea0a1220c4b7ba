//! The identity of the running process, without a system call: a child made by `fork` has copies of
//! its parent's memory, threads not included, and of its descriptors, locks included. The resources
//! of a database must be used, and torn down, only by the process that opened it.
//!
//! A page that is zeros in a child (`MADV_WIPEONFORK`, Linux 4.14) holds the number of the process
//! and its id, so that relaxed loads are enough. If the kernel refuses, each check calls `getpid`.
//! Rejected: a counter that a handler of `pthread_atfork` raises, since a bare `clone` runs no
//! handler.
//!
//! Owns: that page, and the numbers of processes. Never does: forbid anything.

use crate::sync::real::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering};
use rustix::mm::{MapFlags, ProtFlags};
use std::mem::ManuallyDrop;
use std::ops::{Deref, DerefMut};
use std::ptr;

/// The count of numbers given out, the parent's included: a child never gets a number of its
/// parent.
static NUMBERS: AtomicU64 = AtomicU64::new(0);
/// Read instead if there is no such page: no process has this number.
static NO_PAGE: WipedPage = WipedPage { number: AtomicU64::new(u64::MAX), pid: AtomicU32::new(0) };

/// The words of the page. Zeros, a valid value, until they are set in this process.
#[derive(Debug)]
struct WipedPage {
    number: AtomicU64,
    pid: AtomicU32,
}

/// The process that made something.
#[derive(Clone, Copy, Debug)]
pub struct Process {
    /// The page of the running process.
    running: &'static WipedPage,
    number: u64,
    pid: u32,
}

impl Process {
    /// The process that calls this.
    pub fn current() -> Process {
        let running = page();
        if ptr::eq(running, &NO_PAGE) {
            return Process { running, number: 0, pid: std::process::id() };
        }
        let mut number = running.number.load(Ordering::Relaxed);
        if number == 0 {
            let next = NUMBERS.fetch_add(1, Ordering::Relaxed) + 1;
            // If another thread was first, its number counts.
            let (set, get) = (Ordering::Relaxed, Ordering::Relaxed);
            let set = running.number.compare_exchange(0, next, set, get);
            number = set.map_or_else(|found| found, |_| next);
        }
        let mut pid = running.pid.load(Ordering::Relaxed);
        if pid == 0 {
            pid = std::process::id();
            running.pid.store(pid, Ordering::Relaxed);
        }
        Process { running, number, pid }
    }

    /// Whether the running process is this one, and not a child that it forked.
    #[inline]
    pub fn is_this(&self) -> bool {
        self.running.number.load(Ordering::Relaxed) == self.number || self.is_this_by_pid()
    }

    #[cold]
    fn is_this_by_pid(&self) -> bool {
        self.number == 0 && self.pid == std::process::id()
    }

    /// The process's id.
    pub fn pid(&self) -> u32 {
        self.pid
    }
}

/// The one page of this process and its children; [`NO_PAGE`] if there is none.
///
/// Not a `OnceLock`: a child that is forked while another thread initialises one waits for that
/// thread for ever.
fn page() -> &'static WipedPage {
    static PAGE: AtomicPtr<WipedPage> = AtomicPtr::new(ptr::null_mut());
    // SAFETY: the page stored below lives for ever and is only read through shared references.
    if let Some(page) = unsafe { PAGE.load(Ordering::Acquire).as_ref() } {
        return page;
    }
    let mine = wiped_page().unwrap_or(&NO_PAGE);
    let pointer = ptr::from_ref(mine).cast_mut();
    let (set, get) = (Ordering::AcqRel, Ordering::Acquire);
    match PAGE.compare_exchange(ptr::null_mut(), pointer, set, get) {
        Ok(_) => mine,
        // Another thread was first: its page counts, and this one stays unused.
        // SAFETY: as above; it is not null.
        Err(first) => unsafe { &*first },
    }
}

/// A page that is all zeros in every child; `None` if the kernel has no such pages. It is never
/// unmapped.
fn wiped_page() -> Option<&'static WipedPage> {
    let bytes = rustix::param::page_size();
    // SAFETY: a fresh private mapping at an address of the kernel's choice
    // aliases no memory of ours.
    let page = unsafe {
        let flags = ProtFlags::READ | ProtFlags::WRITE;
        rustix::mm::mmap_anonymous(ptr::null_mut(), bytes, flags, MapFlags::PRIVATE)
    };
    let page = page.ok()?;
    // SAFETY: the page was mapped just above and holds nothing yet.
    if unsafe { libc::madvise(page, bytes, libc::MADV_WIPEONFORK) } != 0 {
        // SAFETY: as above; no other code has the address.
        let _ = unsafe { rustix::mm::munmap(page, bytes) };
        return None;
    }
    // SAFETY: the page is never unmapped, it is aligned for any integer, and zeros are valid ones;
    // all uses go through this shared reference.
    Some(unsafe { &*page.cast::<WipedPage>() })
}

/// A value that a child made by `fork` does not tear down: it is dropped in the process that made
/// it, and leaked in any other, where its threads do not run, its locks may be held for ever, and
/// its descriptors are shared with the parent.
pub struct NotInherited<T> {
    value: ManuallyDrop<T>,
    process: Process,
}

impl<T> NotInherited<T> {
    /// A value of the running process.
    pub fn new(value: T) -> NotInherited<T> {
        NotInherited { value: ManuallyDrop::new(value), process: Process::current() }
    }

    /// The process that made it.
    #[inline]
    pub fn process(&self) -> &Process {
        &self.process
    }
}

impl<T> Deref for NotInherited<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T> DerefMut for NotInherited<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        &mut self.value
    }
}

impl<T> Drop for NotInherited<T> {
    fn drop(&mut self) {
        if self.process.is_this() {
            // SAFETY: this is the only place that drops it, and it runs once.
            unsafe { ManuallyDrop::drop(&mut self.value) };
        }
    }
}

/// Registers handlers: `prepare` runs before every `fork` of this process, `parent` after it, and
/// `child` at the beginning of the child. A bare `clone` runs none of them.
///
/// When `child` runs, other threads of the parent may have held any lock: it must use only those
/// that `prepare` has taken.
pub(crate) fn at_fork(
    prepare: extern "C" fn(),
    parent: extern "C" fn(),
    child: extern "C" fn(),
) -> bool {
    // SAFETY: the handlers are safe functions and live as long as the program.
    unsafe { libc::pthread_atfork(Some(prepare), Some(parent), Some(child)) == 0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::fork::in_child;

    #[test]
    fn a_child_is_another_process_and_its_child_is_again() {
        let here = Process::current();
        assert!(here.is_this() && here.pid() == std::process::id());
        assert_eq!(Process::current().number, here.number);
        let answered = in_child(|| {
            let child = Process::current();
            let apart = !here.is_this() && child.is_this() && child.number != here.number;
            apart
                && child.pid() == std::process::id()
                && in_child(|| !here.is_this() && !child.is_this() && Process::current().is_this())
        });
        assert!(answered && here.is_this());
    }

    #[test]
    fn without_the_page_the_pid_tells() {
        let here = Process { running: &NO_PAGE, number: 0, pid: std::process::id() };
        assert!(here.is_this());
        assert!(in_child(|| !here.is_this()));
    }

    #[test]
    fn a_value_is_dropped_where_it_was_made_and_nowhere_else() {
        struct Tells<'a>(&'a std::cell::Cell<bool>);
        impl Drop for Tells<'_> {
            fn drop(&mut self) {
                self.0.set(true);
            }
        }
        let dropped = std::cell::Cell::new(false);
        let value = NotInherited::new(Tells(&dropped));
        let mut inherited = Some(value);
        assert!(in_child(|| {
            drop(inherited.take());
            !dropped.get()
        }));
        drop(inherited);
        assert!(dropped.get());
    }
}

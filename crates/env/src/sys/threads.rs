//! Threads made by the C library, not by the standard library.
//!
//! A thread of the standard library takes a lock of the whole process when it begins and when it
//! ends (for its message about a stack overflow). In a child made by `fork` at such a moment that
//! lock stays held for ever, and every such thread that it starts waits for it: a database that it
//! opened hung in its first job. The C library resets its own locks in the child.
//!
//! Owns: the start of a thread, and its end. Never does: report a stack overflow; the kernel's
//! signal is all.

use std::any::Any;
use std::ffi::{CString, c_void};
use std::io;
use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;

/// The stack size of the standard library's threads.
const STACK_BYTES: usize = 2 << 20;
/// The bytes of a name that the kernel keeps.
const NAME_BYTES_MAX: usize = 15;

/// The attributes of a thread to start.
#[derive(Debug, Default)]
pub struct Builder {
    name: String,
}

/// A thread.
#[derive(Clone, Copy, Debug)]
pub struct Thread {
    id: ThreadId,
}

/// The identity of a thread among those that live.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThreadId(libc::pthread_t);

/// The right to wait for a thread. Dropping it detaches the thread.
#[derive(Debug)]
pub struct JoinHandle<T> {
    thread: Thread,
    _result: PhantomData<fn() -> T>,
}

struct Main {
    name: CString,
    work: Box<dyn FnOnce() + Send>,
}

impl Builder {
    /// A builder of a thread without a name.
    pub fn new() -> Builder {
        Builder::default()
    }

    /// Sets the thread's name. The system shows 15 bytes of it.
    #[must_use]
    pub fn name(self, name: String) -> Builder {
        Builder { name }
    }

    /// Starts the thread. A panic ends it, and [`JoinHandle::join`] returns the error.
    ///
    /// # Errors
    /// The error of the system: too many threads, or too little memory.
    pub fn spawn<F: FnOnce() + Send + 'static>(self, work: F) -> io::Result<JoinHandle<()>> {
        let mut name = self.name.into_bytes();
        name.truncate(NAME_BYTES_MAX);
        let name = CString::new(name).unwrap_or_default();
        let main = Box::into_raw(Box::new(Main { name, work: Box::new(work) }));
        match create(main) {
            Ok(id) => Ok(JoinHandle { thread: Thread { id: ThreadId(id) }, _result: PhantomData }),
            Err(error) => {
                // SAFETY: no thread was started, so no other has it.
                drop(unsafe { Box::from_raw(main) });
                Err(error)
            }
        }
    }
}

/// Starts a thread, which owns `main` from then on. On an error the caller still owns it.
fn create(main: *mut Main) -> io::Result<libc::pthread_t> {
    let check = |code| match code {
        0 => Ok(()),
        code => Err(io::Error::from_raw_os_error(code)),
    };
    let mut attributes = MaybeUninit::<libc::pthread_attr_t>::uninit();
    let attributes = attributes.as_mut_ptr();
    // SAFETY: the pointer is to room for the attributes, which this call fills.
    check(unsafe { libc::pthread_attr_init(attributes) })?;
    let mut id = MaybeUninit::<libc::pthread_t>::uninit();
    // SAFETY: the attributes are initialised and live to the end of this function;
    // `start` takes what `main` points to, once, in the thread that is started.
    let started = unsafe {
        check(libc::pthread_attr_setstacksize(attributes, STACK_BYTES)).and_then(|()| {
            check(libc::pthread_create(id.as_mut_ptr(), attributes, start, main.cast()))
        })
    };
    // SAFETY: initialised above, and not used any more.
    unsafe { libc::pthread_attr_destroy(attributes) };
    // SAFETY: a call that succeeded has written it.
    started.map(|()| unsafe { id.assume_init() })
}

/// The main function of a thread. Returns a null pointer unless it panicked.
extern "C" fn start(main: *mut c_void) -> *mut c_void {
    // SAFETY: `spawn` made it for this thread alone, and does not use it any more.
    let Main { name, work } = *unsafe { Box::from_raw(main.cast::<Main>()) };
    if !name.is_empty() {
        // SAFETY: a string that ends with a zero, of this thread.
        unsafe { libc::pthread_setname_np(libc::pthread_self(), name.as_ptr()) };
    }
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(()) => ptr::null_mut(),
        Err(panic) => {
            // The panic's payload may panic when it is dropped, and nothing would catch that.
            std::mem::forget(panic);
            ptr::without_provenance_mut(1)
        }
    }
}

impl Thread {
    /// The thread's identity.
    pub fn id(&self) -> ThreadId {
        self.id
    }
}

impl<T> JoinHandle<T> {
    /// The thread.
    pub fn thread(&self) -> &Thread {
        &self.thread
    }

    /// Waits for the thread's end.
    ///
    /// # Errors
    /// A message, if the thread panicked.
    pub fn join(self) -> Result<(), Box<dyn Any + Send>> {
        let mut ended = ptr::null_mut();
        let ThreadId(id) = self.thread.id;
        std::mem::forget(self);
        // SAFETY: the handle was the only one, and has neither joined nor detached.
        let code = unsafe { libc::pthread_join(id, &raw mut ended) };
        assert_eq!(code, 0, "a thread cannot wait for itself");
        if ended.is_null() { Ok(()) } else { Err(Box::new("the thread panicked")) }
    }
}

impl<T> Drop for JoinHandle<T> {
    fn drop(&mut self) {
        // SAFETY: it was not joined: `join` forgets the handle.
        unsafe { libc::pthread_detach(self.thread.id.0) };
    }
}

/// The thread that calls this.
pub fn current() -> Thread {
    // SAFETY: takes no argument, and always succeeds.
    Thread { id: ThreadId(unsafe { libc::pthread_self() }) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::fork::ForkedChild;
    use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
    use std::sync::{Arc, mpsc};

    #[test]
    fn threads_run_have_names_and_tell_of_panics() {
        let (report, done) = mpsc::channel();
        let name = "a name of more than fifteen bytes".to_owned();
        let thread = Builder::new().name(name).spawn(move || {
            let name = std::fs::read_to_string("/proc/thread-self/comm").unwrap();
            report.send((name, current().id())).unwrap();
        });
        let thread = thread.unwrap();
        let (name, id) = done.recv().unwrap();
        assert_eq!((name.trim_end(), id), ("a name of more", thread.thread().id()));
        assert_ne!(id, current().id());
        thread.join().unwrap();
        let panics = Builder::new().spawn(|| panic!("a fault (simulated)")).unwrap();
        assert!(panics.join().is_err());
    }

    #[test]
    fn a_handle_that_is_dropped_lets_its_thread_go() {
        let ran = Arc::new(AtomicU64::new(0));
        let (report, done) = mpsc::channel();
        for _ in 0..100 {
            let (ran, report) = (ran.clone(), report.clone());
            drop(Builder::new().spawn(move || {
                ran.fetch_add(1, Ordering::Relaxed);
                report.send(()).unwrap();
            }));
        }
        (0..100).for_each(|_| done.recv().unwrap());
        assert_eq!(ran.load(Ordering::Relaxed), 100);
    }

    /// Forks while threads of the standard library begin and end all the time. (When the children
    /// used its threads, one child in some hundreds hung.)
    #[test]
    #[allow(clippy::disallowed_methods, reason = "these are the threads that are in the way")]
    fn a_child_starts_threads_whenever_it_is_forked() {
        let over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    while !over.load(Ordering::Relaxed) {
                        let _ = std::thread::spawn(|| ()).join();
                    }
                });
            }
            let starts = || {
                let threads = (0..4).map(|_| Builder::new().spawn(|| ()).unwrap());
                threads.for_each(|thread| thread.join().unwrap());
                0
            };
            let ended = |_| ForkedChild::start(starts).unwrap().wait().unwrap();
            let codes: Vec<_> = (0..400).map(ended).collect();
            over.store(true, Ordering::Relaxed);
            assert!(codes.iter().all(|code| *code == Some(0)), "{codes:?}");
        });
    }
}

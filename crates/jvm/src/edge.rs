//! The edge between Java and the engine, which no panic passes.
//!
//! Owns: the conversion of an error or a panic to an exception. Never does: word an error.

use crate::failure::{Failure, Outcome};
use crate::jvm::{Env, java, with_env};
use crate::kept;
use jni_sys::{JNIEnv, jint, jlong, jobject, jvalue};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::null_mut;
use windrow::{Error, ErrorKind};

/// The number of `Upcalls.failure` for a null argument; the others are those of the C interface.
const NULL: jint = 0;

fn number(kind: ErrorKind) -> jint {
    match kind {
        ErrorKind::Corruption => 2,
        ErrorKind::Io => 3,
        ErrorKind::NoSpace => 4,
        ErrorKind::InvalidArgument => 5,
        ErrorKind::NotSupported => 6,
        ErrorKind::Closed => 7,
        ErrorKind::ReadOnly => 8,
        ErrorKind::Busy => 9,
        ErrorKind::OutcomeUnknown => 10,
        ErrorKind::Conflict => 11,
        ErrorKind::MergeRefused => 12,
        _ => 1,
    }
}

/// The value that a native method returns where it throws. Java does not see it.
pub(crate) trait Nothing {
    fn nothing() -> Self;
}

impl Nothing for () {
    fn nothing() {}
}

impl Nothing for bool {
    fn nothing() -> bool {
        false
    }
}

impl Nothing for jint {
    fn nothing() -> jint {
        0
    }
}

impl Nothing for jlong {
    fn nothing() -> jlong {
        0
    }
}

impl Nothing for jobject {
    fn nothing() -> jobject {
        null_mut()
    }
}

/// Runs a native method. An error or a panic becomes an exception, thrown when the method returns.
pub(crate) fn edge<T: Nothing>(env: *mut JNIEnv, run: impl FnOnce(Env) -> Outcome<T>) -> T {
    let env = Env::new(env);
    kept::begin();
    match contained(|| run(env)) {
        Ok(value) => value,
        Err(failure) => {
            throw(env, &failure);
            T::nothing()
        }
    }
}

/// A native method of `org.windrow.Native`. The object that owns the handle is an argument of most, so that it is not
/// collected, which would close its handle, while the method runs.
macro_rules! native {
    ($(#[$doc:meta])* $name:ident($env:ident $(, $argument:ident: $type:ty)*) -> $returned:ty $body:block) => {
        $(#[$doc])*
        // SAFETY: the name is Java's for this one method, and no other function has it.
        #[unsafe(no_mangle)]
        pub extern "system" fn $name(
            env: *mut jni_sys::JNIEnv,
            _class: jni_sys::jclass,
            $($argument: $type),*
        ) -> $returned {
            $crate::edge::edge(env, |$env| $body)
        }
    };
}
pub(crate) use native;

/// Runs `run`, and turns a panic into an error.
pub(crate) fn contained<T>(run: impl FnOnce() -> Outcome<T>) -> Outcome<T> {
    // Unwind safety is the engine's concern: it turns writing off after a panic.
    catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text =
            text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("without a text");
        Err(Failure::internal(format!("a panic: {text}")))
    })
}

#[cold]
fn throw(env: Env, failure: &Failure) {
    let (kind, message) = match failure {
        Failure::Pending => return,
        Failure::Null(what) => (NULL, format!("{what} is null")),
        Failure::Windrow(error) => (number(error.kind()), error.to_string()),
    };
    let exception = exception(env, kind, &message, kept::of_this_call().as_deref());
    // Without memory for the exception, the one that the JVM threw for that is pending.
    if let Ok(exception) = exception {
        env.throw(exception);
    }
}

/// Returns the exception for an error that a database has kept, without throwing it.
pub(crate) fn exception_of(
    env: Env,
    error: &Error,
    cause: Option<&crate::jvm::Global>,
) -> Outcome<jni_sys::jthrowable> {
    exception(env, number(error.kind()), &error.to_string(), cause)
}

fn exception(
    env: Env,
    kind: jint,
    message: &str,
    cause: Option<&crate::jvm::Global>,
) -> Outcome<jni_sys::jthrowable> {
    let message = env.new_string(message)?;
    let cause = cause.map_or(null_mut(), |cause| env.local(cause));
    let arguments = [jvalue { i: kind }, jvalue { l: message }, jvalue { l: cause }];
    let exception = env.upcall_object(java()?.failure, &arguments)?;
    if exception.is_null() { Err(Failure::Pending) } else { Ok(exception) }
}

/// Calls Java code, from any thread. An exception that it throws is kept in `kept`, and for the exception of the native
/// method that this call is part of.
pub(crate) fn upcall<T>(kept: &kept::Kept, run: impl FnOnce(Env) -> Outcome<T>) -> Option<T> {
    let result = with_env(|env| {
        let result = env.in_frame(|env| {
            let result = run(env);
            // Inside the frame, since the exception may be one of its references.
            if keep(env, kept) { Err(Failure::Pending) } else { result }
        });
        if result.is_err() {
            keep(env, kept);
        }
        result
    });
    result.ok()
}

/// Keeps the pending exception. Returns whether there was one.
fn keep(env: Env, kept: &kept::Kept) -> bool {
    let thrown = env.caught();
    let has_thrown = thrown.is_some();
    thrown.into_iter().for_each(|thrown| kept.keep(thrown));
    has_thrown
}

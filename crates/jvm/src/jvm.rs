//! The JVM's native interface: safe wrappers of the functions that this crate uses.
//!
//! Owns: every call through the JVM's function tables. Never does: call Windrow.

use crate::failure::{Failure, Outcome};
use jni_sys::{
    JNI_EDETACHED, JNI_OK, JNI_VERSION_1_8, JNIEnv, JavaVM, jarray, jbyteArray, jclass, jint,
    jlongArray, jmethodID, jobject, jobjectArray, jstring, jthrowable, jvalue,
};
use std::ffi::{CStr, c_void};
use std::mem::MaybeUninit;
use std::ptr::null_mut;
use std::sync::OnceLock;

/// The calling thread's table of functions, valid while a native method or a callback runs.
#[derive(Clone, Copy)]
pub(crate) struct Env(*mut JNIEnv);

/// Calls a function of the JVM.
macro_rules! call {
    ($env:expr, $function:ident $(, $argument:expr)*) => {{
        let env: *mut JNIEnv = $env.0;
        // SAFETY: the JVM gave the table to this thread (see `Env::new`), all versions from 1.6 on have the function,
        // and the arguments are what `jni.h` asks for: references that this native method was given or made.
        unsafe { ((**env).v1_6.$function)(env $(, $argument)*) }
    }};
}

/// Keys and values up to this long are copied to the stack.
const ON_STACK_BYTES: usize = 1 << 10;

impl Env {
    /// The table that the JVM gave to a native method.
    pub(crate) fn new(env: *mut JNIEnv) -> Env {
        Env(env)
    }

    /// Runs with a copy of an array's bytes: Java may change the array, and move it, meanwhile.
    pub(crate) fn with_bytes<T>(
        self,
        what: &'static str,
        array: jbyteArray,
        run: impl FnOnce(&[u8]) -> Outcome<T>,
    ) -> Outcome<T> {
        if array.is_null() {
            return Err(Failure::Null(what));
        }
        let len = self.len(array);
        if len > ON_STACK_BYTES {
            return run(&self.copy(array, len));
        }
        let mut room = [MaybeUninit::<u8>::uninit(); ON_STACK_BYTES];
        self.read(array, &mut room[..len]);
        // SAFETY: the JVM has written the first `len` bytes.
        run(unsafe { std::slice::from_raw_parts(room.as_ptr().cast(), len) })
    }

    /// The bytes of an array; `None` for null.
    pub(crate) fn bytes(self, array: jbyteArray) -> Option<Vec<u8>> {
        (!array.is_null()).then(|| self.copy(array, self.len(array)))
    }

    /// The first bytes of an array.
    pub(crate) fn first_bytes(self, array: jbyteArray, len: usize) -> Vec<u8> {
        self.copy(array, len.min(self.len(array)))
    }

    fn copy(self, array: jbyteArray, len: usize) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(len);
        self.read(array, &mut bytes.spare_capacity_mut()[..len]);
        // SAFETY: the JVM has written `len` bytes.
        unsafe { bytes.set_len(len) };
        bytes
    }

    fn len(self, array: jarray) -> usize {
        usize::try_from(call!(self, GetArrayLength, array)).unwrap_or(0)
    }

    /// Fills `room` from the array, which has at least that many bytes.
    fn read(self, array: jbyteArray, room: &mut [MaybeUninit<u8>]) {
        call!(self, GetByteArrayRegion, array, 0, room.len() as jint, room.as_mut_ptr().cast());
    }

    /// A new array with these bytes.
    pub(crate) fn new_bytes(self, bytes: &[u8]) -> Outcome<jbyteArray> {
        let len = jint::try_from(bytes.len()).map_err(|_| Failure::too_long(bytes.len()))?;
        let array = call!(self, NewByteArray, len);
        if array.is_null() {
            return Err(Failure::Pending);
        }
        call!(self, SetByteArrayRegion, array, 0, len, bytes.as_ptr().cast());
        Ok(array)
    }

    /// A new array with these bytes, or null for `None`.
    pub(crate) fn new_bytes_or_null(self, bytes: Option<impl AsRef<[u8]>>) -> Outcome<jbyteArray> {
        bytes.map_or(Ok(null_mut()), |bytes| self.new_bytes(bytes.as_ref()))
    }

    /// Address and capacity of a direct buffer.
    pub(crate) fn direct(self, buffer: jobject) -> Option<(*mut u8, usize)> {
        let address = call!(self, GetDirectBufferAddress, buffer);
        let capacity = usize::try_from(call!(self, GetDirectBufferCapacity, buffer)).ok()?;
        (!address.is_null()).then_some((address.cast(), capacity))
    }

    /// A string; `None` for null.
    pub(crate) fn string(self, string: jstring) -> Option<String> {
        if string.is_null() {
            return None;
        }
        let len = call!(self, GetStringLength, string);
        let mut units = vec![0u16; usize::try_from(len).unwrap_or(0)];
        call!(self, GetStringRegion, string, 0, len, units.as_mut_ptr());
        Some(String::from_utf16_lossy(&units))
    }

    /// A new string.
    pub(crate) fn new_string(self, text: &str) -> Outcome<jstring> {
        let units: Vec<u16> = text.encode_utf16().collect();
        self.made(call!(self, NewString, units.as_ptr(), units.len() as jint))
    }

    /// The elements of an array of objects, each a local reference of its own.
    pub(crate) fn objects(self, array: jobjectArray) -> Vec<jobject> {
        let len = if array.is_null() { 0 } else { self.len(array) as jint };
        (0..len).map(|at| call!(self, GetObjectArrayElement, array, at)).collect()
    }

    /// The strings of an array.
    pub(crate) fn strings(self, array: jobjectArray) -> Vec<String> {
        let objects = self.objects(array);
        objects.into_iter().map(|string| self.string(string).unwrap_or_default()).collect()
    }

    /// The numbers of an array.
    pub(crate) fn longs(self, array: jlongArray) -> Vec<i64> {
        let mut longs = vec![0; if array.is_null() { 0 } else { self.len(array) }];
        call!(self, GetLongArrayRegion, array, 0, longs.len() as jint, longs.as_mut_ptr());
        longs
    }

    /// A new array of objects of a class.
    pub(crate) fn new_objects(
        self,
        class: jclass,
        len: usize,
        mut element: impl FnMut(usize) -> Outcome<jobject>,
    ) -> Outcome<jobjectArray> {
        let array = self.made(call!(self, NewObjectArray, len as jint, class, null_mut::<_>()))?;
        for at in 0..len {
            let object = element(at)?;
            call!(self, SetObjectArrayElement, array, at as jint, object);
            self.delete(object);
        }
        Ok(array)
    }

    /// A new array of strings.
    pub(crate) fn new_strings(self, texts: &[String]) -> Outcome<jobjectArray> {
        let class = java()?.string.0;
        self.new_objects(class, texts.len(), |at| self.new_string(&texts[at]))
    }

    /// A new array of arrays of bytes, null for `None`.
    pub(crate) fn new_byte_arrays<B: AsRef<[u8]>>(
        self,
        arrays: &[Option<B>],
    ) -> Outcome<jobjectArray> {
        let class = java()?.bytes.0;
        self.new_objects(class, arrays.len(), |at| self.new_bytes_or_null(arrays[at].as_ref()))
    }

    /// The object that the JVM made; a null means that the JVM threw.
    fn made(self, object: jobject) -> Outcome<jobject> {
        if object.is_null() { Err(Failure::Pending) } else { Ok(object) }
    }

    /// Gives up a local reference before the native method returns.
    pub(crate) fn delete(self, object: jobject) {
        call!(self, DeleteLocalRef, object);
    }

    /// A global reference, which any thread may use until it is dropped.
    pub(crate) fn global(self, object: jobject) -> Global {
        Global(call!(self, NewGlobalRef, object))
    }

    /// A local reference to the object of a global one.
    pub(crate) fn local(self, global: &Global) -> jobject {
        call!(self, NewLocalRef, global.0)
    }

    /// Makes the exception pending: it is thrown when the native method returns.
    pub(crate) fn throw(self, exception: jthrowable) {
        call!(self, Throw, exception);
    }

    /// Whether an exception is pending.
    pub(crate) fn is_throwing(self) -> bool {
        call!(self, ExceptionCheck)
    }

    /// Takes the pending exception, which is not thrown then.
    pub(crate) fn caught(self) -> Option<Global> {
        if !self.is_throwing() {
            return None;
        }
        let thrown = call!(self, ExceptionOccurred);
        call!(self, ExceptionClear);
        let global = self.global(thrown);
        self.delete(thrown);
        Some(global)
    }

    fn class(self, name: &CStr) -> Outcome<Global> {
        let class = self.made(call!(self, FindClass, name.as_ptr()))?;
        Ok(self.global(class))
    }

    fn static_method(self, class: &Global, name: &CStr, signature: &CStr) -> Outcome<Method> {
        let id = call!(self, GetStaticMethodID, class.0, name.as_ptr(), signature.as_ptr());
        if id.is_null() { Err(Failure::Pending) } else { Ok(Method(id)) }
    }

    /// Calls a static method of `Upcalls` that returns an object.
    pub(crate) fn upcall_object(self, method: Method, arguments: &[jvalue]) -> Outcome<jobject> {
        let class = java()?.upcalls.0;
        self.returned(call!(self, CallStaticObjectMethodA, class, method.0, arguments.as_ptr()))
    }

    /// Calls a static method of `Upcalls` that returns an int.
    pub(crate) fn upcall_int(self, method: Method, arguments: &[jvalue]) -> Outcome<jint> {
        let class = java()?.upcalls.0;
        self.returned(call!(self, CallStaticIntMethodA, class, method.0, arguments.as_ptr()))
    }

    /// The value that a Java method returned, unless it threw.
    fn returned<T>(self, value: T) -> Outcome<T> {
        if self.is_throwing() { Err(Failure::Pending) } else { Ok(value) }
    }

    /// Runs with its own frame of local references: a thread of the engine never returns to Java, so that nothing else
    /// would free them.
    pub(crate) fn in_frame<T>(self, run: impl FnOnce(Env) -> Outcome<T>) -> Outcome<T> {
        if call!(self, PushLocalFrame, 16) != JNI_OK {
            return Err(Failure::Pending);
        }
        let result = run(self);
        call!(self, PopLocalFrame, null_mut::<_>());
        result
    }
}

/// A global reference to an object, for any thread.
pub(crate) struct Global(jobject);

// SAFETY: `jni.h` allows any thread to use and free a global reference.
unsafe impl Send for Global {}
// SAFETY: as above; it cannot be changed.
unsafe impl Sync for Global {}

impl Global {
    /// The object, for as long as this lives.
    pub(crate) fn object(&self) -> jobject {
        self.0
    }
}

impl Drop for Global {
    fn drop(&mut self) {
        // At the JVM's end no thread can be attached, and there is nothing left to free.
        let _ = with_env(|env| {
            call!(env, DeleteGlobalRef, self.0);
            Ok(())
        });
    }
}

/// A static method of `Upcalls`, valid as long as the library is loaded.
#[derive(Clone, Copy)]
pub(crate) struct Method(jmethodID);

// SAFETY: an id is not bound to a thread.
unsafe impl Send for Method {}
// SAFETY: as above.
unsafe impl Sync for Method {}

/// The classes and methods that are looked up once, when the library is loaded: later, on a thread of the engine, the
/// JVM would search the wrong class loader.
pub(crate) struct Java {
    vm: Vm,
    upcalls: Global,
    string: Global,
    bytes: Global,
    /// `failure(int kind, String message, Throwable cause)`: the exception.
    pub(crate) failure: Method,
    /// `compare(Object comparator, byte[] a, byte[] b)`.
    pub(crate) compare: Method,
    /// `fullMerge(Object operator, byte[] key, byte[] base, byte[][] operands)`.
    pub(crate) full_merge: Method,
    /// `partialMerge(Object operator, byte[] key, byte[][] operands)`.
    pub(crate) partial_merge: Method,
    /// `filter(Object filter, int level, byte[] key, byte[] value)`: null to keep it, empty to drop it, else a new value
    /// behind one byte.
    pub(crate) filter: Method,
    /// `event(Object listener, String event)`.
    pub(crate) event: Method,
}

struct Vm(*mut JavaVM);

// SAFETY: `jni.h` has one JVM pointer for all threads.
unsafe impl Send for Vm {}
// SAFETY: as above.
unsafe impl Sync for Vm {}

static JAVA: OnceLock<Java> = OnceLock::new();

/// Returns the classes and methods that were looked up when the library was loaded.
pub(crate) fn java() -> Outcome<&'static Java> {
    JAVA.get()
        .ok_or_else(|| Failure::internal("the library was not loaded by `org.windrow.Native`"))
}

/// Called by the JVM when the library is loaded.
#[unsafe(no_mangle)]
pub extern "system" fn JNI_OnLoad(vm: *mut JavaVM, _reserved: *mut c_void) -> jint {
    let Some(env) = env_of(vm) else { return jni_sys::JNI_ERR };
    match look_up(vm, env) {
        Ok(java) => {
            let _ = JAVA.set(java);
            JNI_VERSION_1_8
        }
        // The JVM's exception for the missing name is pending, and `System.load` throws it.
        Err(_) => jni_sys::JNI_ERR,
    }
}

fn look_up(vm: *mut JavaVM, env: Env) -> Outcome<Java> {
    let upcalls = env.class(c"org/windrow/Upcalls")?;
    let method = |name, signature| env.static_method(&upcalls, name, signature);
    Ok(Java {
        vm: Vm(vm),
        failure: method(
            c"failure",
            c"(ILjava/lang/String;Ljava/lang/Throwable;)Ljava/lang/Throwable;",
        )?,
        compare: method(c"compare", c"(Ljava/lang/Object;[B[B)I")?,
        full_merge: method(c"fullMerge", c"(Ljava/lang/Object;[B[B[[B)[B")?,
        partial_merge: method(c"partialMerge", c"(Ljava/lang/Object;[B[[B)[B")?,
        filter: method(c"filter", c"(Ljava/lang/Object;I[B[B)[B")?,
        event: method(c"event", c"(Ljava/lang/Object;Ljava/lang/String;)I")?,
        string: env.class(c"java/lang/String")?,
        bytes: env.class(c"[B")?,
        upcalls,
    })
}

/// The calling thread's table, if the thread is attached.
fn env_of(vm: *mut JavaVM) -> Option<Env> {
    let mut env: *mut c_void = null_mut();
    // SAFETY: the JVM gave `vm`, and writes one pointer.
    let result = unsafe { ((**vm).v1_4.GetEnv)(vm, &mut env, JNI_VERSION_1_8) };
    (result == JNI_OK).then_some(Env(env.cast()))
}

/// A thread that this library attached, detached when the thread ends.
struct Attached(*mut JavaVM);

impl Drop for Attached {
    fn drop(&mut self) {
        // SAFETY: the thread was attached here, and no frame of Java's is on it at its end.
        unsafe { ((**self.0).v1_4.DetachCurrentThread)(self.0) };
    }
}

thread_local! {
    static ATTACHED: std::cell::RefCell<Option<Attached>> = const { std::cell::RefCell::new(None) };
}

/// Runs with the calling thread's table. A thread of the engine is first attached as a daemon, whose end the JVM does
/// not wait for.
pub(crate) fn with_env<T>(run: impl FnOnce(Env) -> Outcome<T>) -> Outcome<T> {
    let vm = java()?.vm.0;
    let mut env: *mut c_void = null_mut();
    // SAFETY: the JVM gave `vm`, and writes one pointer.
    let result = unsafe { ((**vm).v1_4.GetEnv)(vm, &mut env, JNI_VERSION_1_8) };
    if result == JNI_EDETACHED {
        // SAFETY: as above; null means no arguments.
        let attached =
            unsafe { ((**vm).v1_4.AttachCurrentThreadAsDaemon)(vm, &mut env, null_mut()) };
        if attached != JNI_OK {
            return Err(Failure::internal("the JVM takes no more threads: it is ending"));
        }
        // At the very end of a thread its thread-locals are gone: it stays attached then, and the JVM ends without it.
        let _ = ATTACHED.try_with(|kept| *kept.borrow_mut() = Some(Attached(vm)));
    } else if result != JNI_OK {
        return Err(Failure::internal("the JVM has not version 1.8 of its native interface"));
    }
    run(Env(env.cast()))
}

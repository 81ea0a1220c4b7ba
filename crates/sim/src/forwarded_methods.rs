//! The methods that a wrapping file system passes on unchanged to the one inside.
//!
//! Owns: the list of those methods. Never does: pass on one that a wrapper may want to observe; the
//! wrapper implements those itself.

/// The methods of a `FileSystem` that neither write nor open, passed on to
/// `self.inner`.
macro_rules! forward_to_inner {
    () => {
        forward_to_inner! {
            fn absolute(path: &Path) -> Result<PathBuf>;
            fn stamp(path: &Path) -> Result<Option<Stamp>>;
            fn read_many(requests: &mut [ReadRequest<'_>]) -> ();
            fn list(dir: &Path) -> Result<Vec<String>>;
            fn exists(path: &Path) -> Result<bool>;
            fn len(path: &Path) -> Result<u64>;
            fn remove(path: &Path) -> Result<()>;
            fn link(from: &Path, to: &Path) -> Result<()>;
            fn create_dir(dir: &Path) -> Result<()>;
            fn remove_dir(dir: &Path) -> Result<()>;
            fn lock(path: &Path, mode: LockMode) -> Result<Box<dyn FileLock>>;
            fn lease(path: &Path) -> Result<Box<dyn Lease>>;
            fn lease_state(path: &Path) -> Result<LeaseState>;
            fn open_files_max() -> usize;
            fn free_bytes(dir: &Path) -> Result<u64>;
        }
    };
    ($(fn $name:ident($($argument:ident: $type:ty),*) -> $result:ty;)*) => {
        $(fn $name(&self, $($argument: $type),*) -> $result {
            self.inner.$name($($argument),*)
        })*
    };
}

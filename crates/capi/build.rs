//! The name by which programs that were linked with the library find it.

fn main() {
    let name = match std::env::var_os("CARGO_FEATURE_LEVELDB") {
        Some(_) => "libleveldb.so.1d",
        None => "libwindrow.so.0",
    };
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,{name}");
    println!("cargo:rerun-if-changed=build.rs");
}

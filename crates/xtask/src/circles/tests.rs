//! Small crates with a circle, and some that only look like it. Owns: the cases. Never does: read
//! the workspace's own files.

use super::allowed::{Allowed, Exception};
use super::{Found, examine, judge, report};
use crate::source::Source;
use std::collections::BTreeMap;

/// Returns the findings of a crate `x` of these files, each begun by a line `=== path`.
fn found(text: &str) -> BTreeMap<String, Found> {
    let files = text.split("=== ").skip(1).map(|file| file.split_once('\n').unwrap());
    let sources: Vec<Source> = files
        .map(|(path, text)| Source::parse(&format!("crates/x/src/{}", path.trim()), text).unwrap())
        .collect();
    examine(&sources)
}

/// Returns the circles of such a crate, files of each separated by spaces.
fn circles(text: &str) -> Vec<String> {
    found(text)["x"].circles.iter().map(|circle| circle.files.join(" ")).collect()
}

fn assert_none(text: &str) {
    let found = found(text);
    assert!(found["x"].circles.is_empty(), "{}", report(&found));
}

#[test]
fn imports_make_a_circle() {
    let text = "=== lib.rs\nmod a;\nmod b;\nmod c;\n=== a.rs\nuse crate::b::B;\npub struct A(B);\n\
                === b.rs\nuse super::c::{self, C};\npub struct B(C);\n\
                === c.rs\nuse crate::a::A as Other;\npub struct C(Other);\n";
    assert_eq!(circles(text), ["a.rs b.rs c.rs"]);
    assert_none(&text.replace("use crate::a::A as Other;", "type Other = u8;"));
}

#[test]
fn the_report_says_what_an_edge_is_for() {
    let text = "=== lib.rs\nmod a;\nmod b;\n=== a.rs\nuse crate::b::B;\npub struct A(B);\n\
                === b.rs\npub struct B;\nfn f() {\n    crate::a::A;\n}\n";
    let report = report(&found(text));
    assert!(report.contains("circle of 2 files: a.rs b.rs"), "{report}");
    assert!(report.contains("a.rs -> b.rs: B at 1"), "{report}");
    assert!(report.contains("b.rs -> a.rs: A at 3"), "{report}");
}

/// Three files call each other's one name; one of them uses three names of the first.
#[test]
fn the_edge_that_names_least_is_to_be_cut() {
    let text = "=== lib.rs\nmod a;\nmod b;\nmod c;\n\
                === a.rs\npub fn a() { crate::b::b(); }\n\
                === b.rs\npub fn b() { crate::c::c(); crate::c::d(); crate::c::e(); }\n\
                === c.rs\npub fn c() { crate::a::a(); }\npub fn d() {}\npub fn e() { c(); }\n\
                fn f() { crate::b::b(); }\n";
    let found = found(text);
    let circle = &found["x"].circles[0];
    assert_eq!(circle.edges.len(), 4);
    assert_eq!(circle.to_cut, ["c.rs -> a.rs: a at 1", "c.rs -> b.rs: b at 4"]);
}

#[test]
fn a_parent_and_a_child_make_a_circle() {
    let text = "=== lib.rs\nmod a;\n=== a.rs\nmod b;\npub struct A(b::B);\n\
                === a/b.rs\npub struct B;\nfn f(_: super::A) {}\n";
    assert_eq!(circles(text), ["a.rs a/b.rs"]);
    // A parent that declares a child does not need it.
    assert_none(&text.replace("A(b::B)", "A"));
    assert_none(&text.replace("_: super::A", "_: super::super::u8"));
}

#[test]
fn reexports_are_looked_through() {
    let text = "=== lib.rs\nmod a;\nmod b;\npub use a::A;\npub use b::*;\n\
                === a/mod.rs\nmod deep;\npub use deep::{A, one as two};\n\
                === a/deep.rs\npub struct A(crate::B);\npub fn one() {}\n\
                === b.rs\npub struct B;\nfn f() {\n    crate::a::two();\n}\n";
    assert_eq!(circles(text), ["a/deep.rs b.rs"]);
    // lib.rs and a/mod.rs are not part of the circle: they only pass names on.
    assert_none(&text.replace("crate::a::two()", "()"));
}

#[test]
fn calls_between_blocks_of_one_type_make_a_circle() {
    let text = "=== lib.rs\nmod core;\nmod more;\n=== core.rs\npub struct Core { n: u8 }\n\
                impl Core {\n    fn one(&self) {\n        self.two();\n    }\n}\n\
                === more.rs\nuse crate::core::Core;\nimpl Core {\n    pub fn two(&self) {}\n}\n";
    assert_eq!(circles(text), ["core.rs more.rs"]);
    assert_none(&text.replace("self.two()", "self.n.two()"));
    for call in ["Self::two(self)", "Core::two(self)", "unless_mutant!(Name, self.two())"] {
        assert_eq!(circles(&text.replace("self.two()", call)), ["core.rs more.rs"], "{call}");
    }
}

#[test]
fn calls_on_what_has_a_written_type_make_a_circle() {
    let around = |call: &str| {
        format!(
            "=== lib.rs\nmod core;\nmod more;\nmod other;\n=== core.rs\nuse std::sync::Arc;\n\
             pub struct Core;\nstruct Holder {{ core: Arc<Core>, many: Vec<Core> }}\n\
             impl Core {{\n    fn new() -> Core {{ Core }}\n}}\n{call}\n\
             === more.rs\nuse crate::core::Core;\nimpl Core {{\n    pub fn two(&self) {{}}\n}}\n\
             === other.rs\npub struct Other;\nimpl Other {{\n    pub fn two(&self) {{}}\n}}\n"
        )
    };
    for call in [
        "fn f(core: &Arc<Core>) { core.two(); }",
        "fn f() { let core: Box<Core> = make(); core.two(); }",
        "impl Holder { fn f(&self) { self.core.two(); } }",
        "fn f(holder: Holder) { assert!(holder.core.clone().two(), \"text\"); }",
        "fn f() { let core = Core::new(); if true { core.two(); } }",
        "fn f(holder: Holder) { for core in &holder.many { core.two(); } }",
        "fn f(holder: Holder) { holder.many.iter().for_each(|core| core.two()); }",
        "fn f(core: Option<Arc<Core>>) { if let Some(core) = &core { core.two(); } }",
        "fn f(core: std::result::Result<Core, ()>) { core?.two(); }",
        "enum E { A(Core) }\nimpl E { fn f(&self) { match self { Self::A(a) => a.two() } } }",
        "enum E { B { b: Core } }\nfn f(e: E) { if let E::B { b } = e { b.two(); } }",
        "impl std::ops::Deref for Holder { type Target = Core; }\nfn f(h: &Holder) { h.two(); }",
        "struct On(Holder);\nimpl Deref for On { type Target = Holder; }\n\
         fn f(on: &On) { on.core.two(); }",
    ] {
        assert_eq!(circles(&around(call)), ["core.rs more.rs"], "{call}");
    }
    for call in [
        "fn f(core: &crate::other::Other) { core.two(); }",
        "fn f(core: &Core) { let core = make(); core.two(); }",
        "fn f(core: &Core) { all(|core| core.two()); }",
        "impl Holder { fn two(&self) { self.two(); } }",
        "impl Core { fn three(&self) { self.three(); } }",
    ] {
        assert_none(&around(call));
    }
}

#[test]
fn what_only_tests_build_makes_no_circle() {
    let text = "=== lib.rs\nmod a;\n#[cfg(any(test, feature = \"testing\"))]\npub mod b;\n\
                === a.rs\npub struct A;\n#[cfg(test)]\nuse crate::b::B;\nimpl A {\n\
                #[cfg(feature = \"testing\")]\nfn f() -> crate::b::B {}\n}\n\
                #[cfg(test)]\nmod tests {\n    use crate::b::B;\n}\n\
                === b.rs\nuse crate::a::A;\npub struct B(A);\n";
    assert_none(text);
    let in_tests = text.replace("#[cfg(any(test, feature = \"testing\"))]", "#[cfg(test)]");
    assert_none(&in_tests.replace("#[cfg(feature = \"testing\")]\nfn f() -> crate::b::B {}", ""));
    let used = text.replace("#[cfg(feature = \"testing\")]", "#[cfg(unix)]");
    assert_eq!(circles(&used), ["a.rs b.rs"]);
}

#[test]
fn names_that_only_look_alike_make_no_circle() {
    let text = "=== lib.rs\nmod a;\nmod b;\n=== a.rs\nuse crate::b::B;\npub fn call(_: B) {}\n\
                pub mod inner {\n    pub struct A;\n}\nuse inner::A;\npub struct Uses(A);\n\
                === b.rs\npub struct B;\nuse other::a::call;\n/// See [`crate::a::call`].\n\
                pub(in crate::a) fn g(call: u8) { call; call(); std::a::call(); }\n";
    assert_none(text);
}

#[test]
fn what_a_macro_defines_is_in_its_module() {
    let text = "=== lib.rs\nmod a;\nmod b;\nmod c;\n=== a.rs\nmake! { pub struct Made { b: crate::b::B } }\n\
                === b.rs\npub struct B(crate::c::Made);\n=== c.rs\npub use crate::a::Made;\n";
    assert_eq!(circles(text), ["a.rs b.rs"]);
}

#[test]
fn what_serde_calls_is_named() {
    let text = "=== lib.rs\nmod a;\nmod b;\n=== a.rs\nuse crate::b;\npub struct A {\n\
                #[serde(default, deserialize_with = \"b::read\")]\nfield: u8,\n}\n\
                === b.rs\npub fn read(_: crate::a::A) {}\n";
    assert_eq!(circles(text), ["a.rs b.rs"]);
    assert_none(&text.replace("b::read", "read"));
}

#[test]
fn methods_in_three_files_are_too_many() {
    let block = |file: &str| format!("=== {file}.rs\nimpl crate::T {{ fn {file}(&self) {{}} }}\n");
    let root = "=== lib.rs\nmod a;\nmod b;\nmod c;\npub struct T;\n";
    let text = [root, &block("a"), &block("b"), &block("c")].concat();
    assert_eq!(found(&text)["x"].spread["T"], ["a.rs", "b.rs", "c.rs"]);
    let of_traits = text.replace("impl crate::T", "impl Trait for crate::T");
    assert!(found(&of_traits)["x"].spread.is_empty());
    let in_two = text.replace("fn c(&self) {}", "");
    assert!(found(&in_two)["x"].spread.is_empty());
}

#[test]
fn exceptions_hold_for_what_they_name_and_go_when_unused() {
    let text = "=== lib.rs\nmod a;\nmod b;\n=== a.rs\npub struct A(crate::b::B);\n\
                === b.rs\npub struct B(crate::a::A);\n";
    let judged = |text: &str, what| {
        judge(&found(text), &[Exception { crate_dir: "x", what, why: "of a test" }])
    };
    assert!(judged(text, Allowed::Circle(&["a.rs", "b.rs"])).is_empty());
    let findings = judged(text, Allowed::Circle(&["a.rs", "b.rs", "c.rs"]));
    assert!(findings[0].contains("a.rs, b.rs need each other"), "{findings:?}");
    assert!(findings[1].contains("not needed any more"), "{findings:?}");
    let findings = judged("=== lib.rs\n", Allowed::Type("T"));
    assert!(findings[0].contains("Type(\"T\") (of a test) is not needed"), "{findings:?}");
}

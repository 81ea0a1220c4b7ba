//! Every script of the corpus, against the model and every option set.
//! `REWRITE=1` fills in the model's answers: read the diff.

use windrow_testkit::script;
use windrow_testkit::sweep;
use windrow_testkit::variant::VARIANTS;

fn failures(results: impl Iterator<Item = Result<(), String>>) {
    let failed: Vec<String> = results.filter_map(Result::err).collect();
    assert!(failed.is_empty(), "{} failed:\n{}", failed.len(), failed.join("\n"));
}

#[test]
fn the_model_agrees_with_the_corpus() {
    let rewrite = std::env::var_os("REWRITE").is_some();
    let corpus = script::corpus().expect("the corpus parses");
    assert!(corpus.len() >= 30, "{} scripts", corpus.len());
    failures(corpus.iter().map(|script| script::check_model(script, rewrite)));
}

#[test]
fn every_variant_agrees_with_the_corpus() {
    let corpus = script::corpus().expect("the corpus parses");
    // One variant or script by name: VARIANT=lz4 SCRIPT=merge cargo test ...
    let wanted = |name: &str, variable: &str| {
        std::env::var(variable).map_or(true, |pattern| name.contains(&pattern))
    };
    let variants = VARIANTS.iter().filter(|v| wanted(v.name, "VARIANT"));
    let pairs: Vec<_> = variants
        .flat_map(|variant| corpus.iter().map(move |script| (variant, script)))
        .filter(|(_, script)| wanted(&script.path.to_string_lossy(), "SCRIPT"))
        .collect();
    let check = |index: u64| {
        let (variant, script) = pairs[index as usize];
        // A hang is reported by index; all differences are reported at once.
        Ok(script::check_engine(script, variant).err().into_iter().collect::<Vec<_>>())
    };
    let both = |a: Vec<String>, b: Vec<String>| [a, b].concat();
    let failed = sweep::run(0..pairs.len() as u64, check, both);
    let failed = failed.unwrap_or_else(|(index, why)| {
        let (variant, script) = pairs[index as usize];
        panic!("{}, {}: {why}", variant.name, script.path.display())
    });
    failures(failed.unwrap_or_default().into_iter().map(Err));
}

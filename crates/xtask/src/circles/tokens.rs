//! The arguments of macros and attributes, where they can be read as code.
//!
//! Owns: macros' arguments as expressions, or as the paths in them, and paths in
//! quotes. Never does: expand macros.

use proc_macro2::{TokenStream, TokenTree};
use syn::parse::{ParseStream, Parser};
use syn::punctuated::Punctuated;
use syn::{Block, Expr, Token};

/// Parses the arguments as expressions, separated by commas or semicolons, or as statements.
pub(super) fn expressions(tokens: &TokenStream) -> Option<Vec<Expr>> {
    let commas = |input: ParseStream<'_>| Punctuated::<Expr, Token![,]>::parse_terminated(input);
    if let Ok(found) = commas.parse2(tokens.clone()) {
        return Some(found.into_iter().collect());
    }
    let semicolons =
        |input: ParseStream<'_>| Punctuated::<Expr, Token![;]>::parse_terminated(input);
    if let Ok(found) = semicolons.parse2(tokens.clone()) {
        return Some(found.into_iter().collect());
    }
    let statements = Block::parse_within.parse2(tokens.clone()).ok()?;
    let block = Block { brace_token: Default::default(), stmts: statements };
    Some(vec![Expr::Block(syn::ExprBlock { attrs: Vec::new(), label: None, block })])
}

/// Returns every path of at least two names, with its line, wherever it is.
pub(super) fn paths(tokens: &TokenStream) -> Vec<(Vec<String>, usize)> {
    let trees: Vec<TokenTree> = tokens.clone().into_iter().collect();
    let is = |at: usize, sign: char| matches!(trees.get(at), Some(TokenTree::Punct(punct)) if punct.as_char() == sign);
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(tree) = trees.get(at) {
        let begin = at;
        at += 1;
        match tree {
            TokenTree::Group(group) => found.extend(paths(&group.stream())),
            TokenTree::Ident(first) => {
                let mut path = vec![first.to_string()];
                while let (true, true, Some(TokenTree::Ident(name))) =
                    (is(at, ':'), is(at + 1, ':'), trees.get(at + 2))
                {
                    path.push(name.to_string());
                    at += 3;
                }
                let continues = begin > 0 && (is(begin - 1, '.') || is(begin - 1, ':'));
                if path.len() > 1 && !continues {
                    found.push((path, first.span().start().line));
                }
            }
            _ => {}
        }
    }
    found
}

/// Returns every string that is a path of at least two names, with its line.
pub(super) fn quoted_paths(tokens: &TokenStream) -> Vec<(Vec<String>, usize)> {
    let literals = tokens.clone().into_iter().filter_map(|token| match token {
        TokenTree::Literal(literal) => Some((literal.to_string(), literal.span().start().line)),
        _ => None,
    });
    let path = |(text, line): (String, usize)| {
        let names = text.trim_matches('"').split("::").map(str::to_owned);
        (names.collect::<Vec<_>>(), line)
    };
    literals.map(path).filter(|(names, _)| names.len() > 1).collect()
}

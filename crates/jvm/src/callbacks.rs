//! Java code that the engine calls, from any thread: orders of keys, merge operators, compaction filters, listeners.
//!
//! Bytes are copied to Java arrays: Java code could keep a buffer over the engine's memory for longer than that memory
//! lives.
//!
//! Owns: the meaning of an exception to the engine. Never does: keep a result.

use crate::edge::upcall;
use crate::failure::Outcome;
use crate::jvm::{Env, Global, java};
use crate::kept::Kept;
use jni_sys::{jobject, jvalue};
use std::cmp::Ordering;
use std::sync::Arc;
use windrow::{CompactionFilter, Comparator, Event, EventListener, FilterDecision, MergeOperator};

/// An order of keys: `KeyComparator.compare`.
pub(crate) struct JavaComparator {
    pub(crate) name: String,
    pub(crate) object: Global,
    pub(crate) kept: Arc<Kept>,
}

impl Comparator for JavaComparator {
    fn id(&self) -> &str {
        &self.name
    }

    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        let order = upcall(&self.kept, |env| {
            let (a, b) = (env.new_bytes(a)?, env.new_bytes(b)?);
            let arguments = [object(&self.object), jvalue { l: a }, jvalue { l: b }];
            env.upcall_int(java()?.compare, &arguments)
        });
        // Without an answer the keys have no order, and a wrong order would reach the tables: the panic turns writing
        // off.
        order.unwrap_or_else(|| panic!("the comparator `{}` has not answered", self.name)).cmp(&0)
    }

    fn equality_is_bytewise(&self) -> bool {
        false
    }
}

/// A `MergeOperator`. An exception counts as operands that do not fit; no operand is lost by that.
pub(crate) struct JavaMergeOperator {
    pub(crate) name: String,
    pub(crate) object: Global,
    pub(crate) kept: Arc<Kept>,
}

impl MergeOperator for JavaMergeOperator {
    fn name(&self) -> &str {
        &self.name
    }

    fn full_merge(&self, key: &[u8], base: Option<&[u8]>, operands: &[&[u8]]) -> Option<Vec<u8>> {
        upcall(&self.kept, |env| {
            let key = env.new_bytes(key)?;
            let (base, operands) = (env.new_bytes_or_null(base)?, array(env, operands)?);
            let (key, base) = (jvalue { l: key }, jvalue { l: base });
            let arguments = [object(&self.object), key, base, jvalue { l: operands }];
            Ok(env.bytes(env.upcall_object(java()?.full_merge, &arguments)?))
        })?
    }

    fn partial_merge(&self, key: &[u8], operands: &[&[u8]]) -> Option<Vec<u8>> {
        upcall(&self.kept, |env| {
            let (key, operands) = (env.new_bytes(key)?, array(env, operands)?);
            let arguments = [object(&self.object), jvalue { l: key }, jvalue { l: operands }];
            Ok(env.bytes(env.upcall_object(java()?.partial_merge, &arguments)?))
        })?
    }
}

/// A `CompactionFilter`. An exception keeps the entry.
pub(crate) struct JavaFilter {
    pub(crate) name: String,
    pub(crate) object: Global,
    pub(crate) kept: Arc<Kept>,
}

impl CompactionFilter for JavaFilter {
    fn name(&self) -> &str {
        &self.name
    }

    fn filter(&self, level: u32, key: &[u8], value: &[u8]) -> FilterDecision {
        let decided = upcall(&self.kept, |env| {
            let (key, value) = (env.new_bytes(key)?, env.new_bytes(value)?);
            let (key, value) = (jvalue { l: key }, jvalue { l: value });
            let arguments = [object(&self.object), jvalue { i: level as i32 }, key, value];
            Ok(env.bytes(env.upcall_object(java()?.filter, &arguments)?))
        });
        match decided.flatten() {
            None => FilterDecision::Keep,
            Some(value) if value.is_empty() => FilterDecision::Remove,
            Some(value) => FilterDecision::Change(value[1..].to_vec()),
        }
    }
}

/// A `Consumer<String>`, which receives each event as a sentence.
pub(crate) struct JavaListener {
    pub(crate) object: Global,
    pub(crate) kept: Arc<Kept>,
}

impl EventListener for JavaListener {
    fn on_event(&self, event: &Event) {
        let text = event.to_string();
        let _ = upcall(&self.kept, |env| {
            let arguments = [object(&self.object), jvalue { l: env.new_string(&text)? }];
            env.upcall_int(java()?.event, &arguments)
        });
    }
}

fn object(global: &Global) -> jvalue {
    jvalue { l: global.object() }
}

fn array(env: Env, operands: &[&[u8]]) -> Outcome<jobject> {
    let operands: Vec<Option<&[u8]>> = operands.iter().copied().map(Some).collect();
    env.new_byte_arrays(&operands)
}

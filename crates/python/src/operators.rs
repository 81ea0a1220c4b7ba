//! Comparators and merge operators in Python, which the engine calls from any thread.
//!
//! Owns: taking the interpreter's lock, and the handling of an exception. Never does: keep a result.

use pyo3::exceptions::{PyKeyboardInterrupt, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList};
use std::cmp::Ordering;
use windrow::{Comparator, MergeOperator};

/// An order of keys: `compare(a, b)` is less than, equal to or more than 0.
pub(crate) struct PythonComparator {
    name: String,
    compare: Py<PyAny>,
}

impl PythonComparator {
    pub(crate) fn new(name: String, compare: Bound<'_, PyAny>) -> PyResult<PythonComparator> {
        if !compare.is_callable() {
            return Err(PyTypeError::new_err("a comparator is a function of two keys"));
        }
        Ok(PythonComparator { name, compare: compare.unbind() })
    }
}

impl Comparator for PythonComparator {
    fn id(&self) -> &str {
        &self.name
    }

    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        let order = called(&self.compare, |compare| {
            let (a, b) = (PyBytes::new(compare.py(), a), PyBytes::new(compare.py(), b));
            compare.call1((a, b))?.extract::<i64>()
        });
        // Without an answer the keys have no order, and a wrong order would reach the tables: the panic turns writing
        // off.
        order.unwrap_or_else(|| panic!("the comparator `{}` has not answered", self.name)).cmp(&0)
    }

    fn equality_is_bytewise(&self) -> bool {
        false
    }
}

/// A merge operator: an object with `full_merge(key, base, operands)`, and optionally `partial_merge(key, operands)`,
/// or a function that is the former. Each returns bytes, or None where the operands do not fit.
pub(crate) struct PythonMergeOperator {
    name: String,
    full: Py<PyAny>,
    partial: Option<Py<PyAny>>,
}

impl PythonMergeOperator {
    pub(crate) fn new(name: String, operator: Bound<'_, PyAny>) -> PyResult<PythonMergeOperator> {
        let full = operator.getattr_opt("full_merge")?.unwrap_or_else(|| operator.clone());
        if !full.is_callable() {
            return Err(PyTypeError::new_err(
                "a merge operator is a function of (key, base, operands), or has one as full_merge",
            ));
        }
        let partial = operator.getattr_opt("partial_merge")?.map(Bound::unbind);
        Ok(PythonMergeOperator { name, full: full.unbind(), partial })
    }
}

impl MergeOperator for PythonMergeOperator {
    fn name(&self) -> &str {
        &self.name
    }

    fn full_merge(&self, key: &[u8], base: Option<&[u8]>, operands: &[&[u8]]) -> Option<Vec<u8>> {
        called(&self.full, |full| {
            let base = base.map(|bytes| PyBytes::new(full.py(), bytes));
            full.call1((PyBytes::new(full.py(), key), base, list(full.py(), operands)?))?.extract()
        })?
    }

    fn partial_merge(&self, key: &[u8], operands: &[&[u8]]) -> Option<Vec<u8>> {
        called(self.partial.as_ref()?, |partial| {
            partial
                .call1((PyBytes::new(partial.py(), key), list(partial.py(), operands)?))?
                .extract()
        })?
    }
}

fn list<'py>(py: Python<'py>, operands: &[&[u8]]) -> PyResult<Bound<'py, PyList>> {
    PyList::new(py, operands.iter().map(|bytes| PyBytes::new(py, bytes)))
}

/// The most calls of a function that are repeated because Ctrl-C interrupted them.
const INTERRUPTS_MAX: usize = 100;

/// Calls a Python function. Returns `None` where the function raises, after printing the exception, and while the
/// interpreter ends. A Ctrl-C that comes while the function runs is not its answer: the function is called again, and
/// the program is interrupted afterwards.
fn called<T>(function: &Py<PyAny>, call: impl Fn(&Bound<'_, PyAny>) -> PyResult<T>) -> Option<T> {
    let attached = Python::try_attach(|py| {
        let function = function.bind(py);
        let mut interrupts = 0;
        let result = loop {
            match call(function) {
                Err(error)
                    if error.is_instance_of::<PyKeyboardInterrupt>(py)
                        && interrupts < INTERRUPTS_MAX =>
                {
                    interrupts += 1;
                }
                result => break result,
            }
        };
        if interrupts > 0 {
            // Delivers the interrupt now.
            let _ = py.import("_thread").and_then(|module| module.call_method0("interrupt_main"));
        }
        result.map_err(|error| error.write_unraisable(py, Some(function))).ok()
    });
    attached.flatten()
}

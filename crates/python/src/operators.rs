//! Comparators and merge operators in Python, which the engine calls from any thread.
//!
//! Owns: taking the interpreter's lock, and what becomes of an exception. Never does: keep a result.

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList};
use std::cmp::Ordering;
use windrow::{Comparator, MergeOperator};

/// An order: `compare(a, b)` is less than, equal to or more than 0.
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
        let compared = Python::try_attach(|py| {
            let keys = (PyBytes::new(py, a), PyBytes::new(py, b));
            let order = self.compare.bind(py).call1(keys).and_then(|order| order.extract::<i64>());
            order.map_err(|error| error.write_unraisable(py, Some(self.compare.bind(py))))
        });
        // Without an answer the keys have no order, and a wrong one would be kept: writing ends here.
        match compared {
            Some(Ok(order)) => order.cmp(&0),
            _ => panic!("the comparator `{}` has not answered", self.name),
        }
    }

    fn equality_is_bytewise(&self) -> bool {
        false
    }
}

/// A merge operator: an object with `full_merge(key, base, operands)`, and maybe `partial_merge(key, operands)`,
/// or a function that is the former. Each returns bytes, or None where they do not fit.
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

fn merged<'py>(
    py: Python<'py>,
    function: &Py<PyAny>,
    call: impl FnOnce(&Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>>,
) -> Option<Vec<u8>> {
    let function = function.bind(py);
    match call(function).and_then(|result| result.extract::<Option<Vec<u8>>>()) {
        Ok(result) => result,
        Err(error) => {
            error.write_unraisable(py, Some(function));
            None
        }
    }
}

impl MergeOperator for PythonMergeOperator {
    fn name(&self) -> &str {
        &self.name
    }

    fn full_merge(&self, key: &[u8], base: Option<&[u8]>, operands: &[&[u8]]) -> Option<Vec<u8>> {
        let attached = Python::try_attach(|py| {
            merged(py, &self.full, |function| {
                let operands =
                    PyList::new(py, operands.iter().map(|bytes| PyBytes::new(py, bytes)))?;
                let base = base.map(|bytes| PyBytes::new(py, bytes));
                function.call1((PyBytes::new(py, key), base, operands))
            })
        });
        attached.flatten()
    }

    fn partial_merge(&self, key: &[u8], operands: &[&[u8]]) -> Option<Vec<u8>> {
        let partial = self.partial.as_ref()?;
        let attached = Python::try_attach(|py| {
            merged(py, partial, |function| {
                let operands =
                    PyList::new(py, operands.iter().map(|bytes| PyBytes::new(py, bytes)))?;
                function.call1((PyBytes::new(py, key), operands))
            })
        });
        attached.flatten()
    }
}

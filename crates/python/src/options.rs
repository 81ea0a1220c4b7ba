//! Options as keyword arguments.
//!
//! Owns: the keywords that are not settings. Never does: know a setting's name; the engine does.

use crate::errors::raised;
use crate::operators::{PythonComparator, PythonMergeOperator};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyInt, PyString};
use std::sync::Arc;
use std::time::Duration;
use windrow::settings::KeyspaceSettings;
use windrow::{KeyspaceOptions, Options};

/// Returns the options of a database.
pub(crate) fn options(py: Python<'_>, words: Option<&Bound<'_, PyDict>>) -> PyResult<Options> {
    let mut options = Options::default();
    let mut of_default = PyDict::new(py);
    for (name, value) in words.into_iter().flat_map(|words| words.iter()) {
        let name: String = name.extract()?;
        match name.as_str() {
            "create_if_missing" => options.create_if_missing = value.extract()?,
            "error_if_exists" => options.error_if_exists = value.extract()?,
            "read_only" => options.read_only = value.extract()?,
            "default_keyspace" => of_default = value.cast_into::<PyDict>()?,
            "comparators" => {
                for comparator in value.cast_into::<PyDict>()?.iter() {
                    let comparator = PythonComparator::new(comparator.0.extract()?, comparator.1)?;
                    options.components.comparators.push(Arc::new(comparator));
                }
            }
            "merge_operators" => {
                for operator in value.cast_into::<PyDict>()?.iter() {
                    let operator = PythonMergeOperator::new(operator.0.extract()?, operator.1)?;
                    options.components.merge_operators.push(Arc::new(operator));
                }
            }
            setting => {
                let text = setting_text(&value)?;
                options.settings.set(setting, &text).map_err(|error| raised(py, &error))?;
            }
        }
    }
    options.default_keyspace = keyspace_options(Some(&of_default))?;
    Ok(options)
}

/// Returns a setting's value (`True`, `64 << 20`, `"64MiB"`) as text.
fn setting_text(value: &Bound<'_, PyAny>) -> PyResult<String> {
    if value.is_instance_of::<PyBool>() {
        return Ok(if value.extract()? { "true" } else { "false" }.to_owned());
    }
    if value.is_instance_of::<PyString>() || value.is_instance_of::<PyInt>() {
        return Ok(value.str()?.to_string());
    }
    let kind = value.get_type().name()?.to_string();
    Err(PyTypeError::new_err(format!("an option is a number, a text or a bool, not {kind}")))
}

/// Returns the options of a keyspace.
pub(crate) fn keyspace_options(words: Option<&Bound<'_, PyDict>>) -> PyResult<KeyspaceOptions> {
    let mut options = KeyspaceOptions::default();
    let mut settings = KeyspaceSettings::default();
    for (name, value) in words.into_iter().flat_map(|words| words.iter()) {
        let name: String = name.extract()?;
        match name.as_str() {
            "comparator" => options.comparator = value.extract()?,
            "merge_operator" => options.merge_operator = value.extract()?,
            "policy" => settings.policy = value.extract()?,
            "compression" => settings.compression = value.extract()?,
            "ttl" => settings.ttl = ttl(value.extract()?)?,
            other => {
                return Err(PyTypeError::new_err(format!(
                    "a keyspace has no option `{other}`, but comparator, merge_operator, policy, compression, ttl"
                )));
            }
        }
    }
    options.settings = settings;
    Ok(options)
}

/// Converts the seconds of a TTL.
pub(crate) fn ttl(seconds: Option<f64>) -> PyResult<Option<Duration>> {
    let duration = |seconds| {
        Duration::try_from_secs_f64(seconds)
            .map_err(|_| PyValueError::new_err(format!("{seconds} seconds are no time to live")))
    };
    seconds.map(duration).transpose()
}

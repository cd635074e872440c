//! Labels of metrics.

use std::borrow::Cow;

/// Value of a label: a constant or a name of the configuration.
pub(super) type LabelValue = Cow<'static, str>;

/// Labels: names and values.
pub(super) type Labels = Vec<(&'static str, LabelValue)>;

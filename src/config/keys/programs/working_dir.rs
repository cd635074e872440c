//! Configured working folder of a program.

use std::path::PathBuf;

use crate::config::diagnostics::{Severity, new_diagnostic};
use crate::config::table::Section;

/// Reads `working_dir`; `None` if the key is absent. A missing folder has the severity `machine_fault_severity`.
pub(crate) fn read(section: &mut Section<'_>, machine_fault_severity: Severity) -> Option<PathBuf> {
    let configured = section.nonblank_text("working_dir")?;
    let folder = section.reader.resolve_path(&configured.value);
    if !folder.is_dir() {
        let diagnostic = new_diagnostic("there is no such folder");
        let diagnostic = if configured.value.starts_with('~') {
            diagnostic.with_hint("`~` means nothing here: write the whole path")
        } else {
            diagnostic
        };
        section.reader.record_fault(machine_fault_severity, &configured.position, diagnostic);
    }
    Some(folder)
}

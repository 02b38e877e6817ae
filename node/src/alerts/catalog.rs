//! The catalog: a part of it cannot be written.

use farthing_catalog::Failing;
use farthing_control::types::{Alert, AlertKind, AlertSeverity};
use farthing_discovery::cause_and_next;

/// Tells of a catalog of which a part fails. Unstored listings stop what its user does; a search still finds what is older.
pub fn catalog_alert(failing: Failing) -> Alert {
    let severity = match failing {
        Failing::Storage => AlertSeverity::Error,
        Failing::Index => AlertSeverity::Warning,
    };
    let (cause, action) = cause_and_next(failing);
    Alert::new(AlertKind::CatalogFailed, severity, cause, action)
}

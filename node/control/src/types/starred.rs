//! Services that the user starred.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::ServiceIdText;

/// A starred service.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct StarredService {
    pub id: ServiceIdText,
    /// A stranger's text; empty where the service is not known.
    pub name: String,
}

/// A star to set or to remove.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct StarRequest {
    pub starred: bool,
}

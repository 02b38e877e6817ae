//! Names that the user gave to owners.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::AddressText;

/// An owner and the name that the user gave; other nodes do not see it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Petname {
    pub wallet: AddressText,
    /// Empty if the name was removed.
    pub name: String,
}

/// A name for an owner.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewPetname {
    /// Up to 40 characters, and no other owner's; an empty one removes the name.
    pub name: String,
}

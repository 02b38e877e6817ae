//! Names that the user gave to owners: listed, given, removed.

use axum::{
    Json,
    extract::{Path, State},
    http::StatusCode,
};
use farthing_control::types::{NewPetname, Petname, Text};
use farthing_node::{handles::Handles, petnames::PetnameError};
use farthing_protocol::Address;

use super::{Failed, Reply};

answer!(Petnames: list);
async fn list(State(node): State<Handles>) -> Json<Vec<Petname>> {
    Json(node.petnames.all())
}

answer!(GivePetname: give);
async fn give(
    State(node): State<Handles>,
    Path(wallet): Path<Text<Address>>,
    Json(new): Json<NewPetname>,
) -> Reply<Petname> {
    Ok(Json(node.petnames.give(wallet.0, &new.name).await?))
}

refused!(PetnameError {
    PetnameError::LongName => BAD_REQUEST,
    PetnameError::Taken { .. } | PetnameError::TooMany => CONFLICT,
    PetnameError::NotStored(_) => SERVICE_UNAVAILABLE,
});

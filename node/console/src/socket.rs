//! The console, from the command line: where it is, and a way back in.

use axum::{Json, Router, extract::State, http::StatusCode};
use farthing_control::{
    endpoint::Door,
    types::{Console, Problem},
};

use crate::Access;

/// Facts about the console besides who may use it.
#[derive(Debug, Clone)]
pub struct About {
    pub access: Access,
    /// `https://localhost:3002/panel`
    pub url: String,
    /// The address that browsers are led to from there.
    pub led_to: Option<String>,
    pub ca_fingerprint: Option<String>,
}

impl About {
    /// As the command line shows it.
    pub fn shown(&self) -> Console {
        Console {
            url: self.url.clone(),
            led_to: self.led_to.clone(),
            setup_code: self.access.setup_code().map(|code| code.expose().to_owned()),
            ca_fingerprint: self.ca_fingerprint.clone(),
        }
    }
}

/// Routes for whoever owns the data folder; the console itself does not have them.
pub fn router(about: About) -> Router {
    Door::router().with_state(about)
}

farthing_control::answer!(About, ShowConsole, show);
async fn show(State(about): State<About>) -> Json<Console> {
    Json(about.shown())
}

farthing_control::answer!(About, ResetConsole, reset);
async fn reset(State(about): State<About>) -> Result<Json<Console>, Problem> {
    about
        .access
        .reset()
        .await
        .map_err(|error| Problem::of_status(StatusCode::CONFLICT, error.to_string(), ""))?;
    Ok(Json(about.shown()))
}

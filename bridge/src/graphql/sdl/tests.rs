//! What a stranger's schema may be written like.

mod anything;
mod limits;
mod mistakes;
mod repairs;

use super::read;
use crate::graphql::{SchemaReading, print};

fn fine(sdl: &str) -> SchemaReading {
    read(sdl.as_bytes()).unwrap_or_else(|error| panic!("{error}\n{sdl}"))
}

/// The schema as it is printed, for comparing what was understood.
fn understood(sdl: &str) -> String {
    print::sdl(&fine(sdl).schema)
}

/// What is wrong with a schema.
fn refused(sdl: &str) -> String {
    match read(sdl.as_bytes()) {
        Ok(_) => panic!("accepted:\n{sdl}"),
        Err(error) => error.to_string(),
    }
}

//! The door for agents: tools over the Model Context Protocol, with which an agent finds services, tries samples, and
//! buys calls through a running node.
//!
//! An agent asks for a tool by name ([`tools`]), or for one of its own ([`pinned`]). Its arguments become a request to the node ([`arguments`]), and what the
//! node answers becomes a result ([`catalog`], [`money`], [`paid`]) or a [`Trouble`] with the next step. All of this is
//! pure. The toolbox asks the node, and keeps long answers and questions. Two doors lead to it: [`serve`] speaks the protocol on
//! standard input and output and asks the node over its control socket; [`over_http`] is a service within the node's own
//! port.
//!
//! No tool changes limits, keys or secrets: what an agent may spend is what its secret may spend. Strangers' texts are
//! bounded, have no control characters, and are marked as the owner's data. A call above the amount that a user set is not
//! bought before its price is confirmed.

pub mod arguments;
pub mod catalog;
pub mod clients;
mod delivery;
pub mod kept;
pub mod money;
mod node;
pub mod paid;
pub mod pinned;
mod secret;
mod server;
pub mod text;
mod toolbox;
pub mod tools;
mod trouble;

use serde_json::Value;

pub use secret::PresentedSecret;
pub use server::{ServeError, over_http, serve};
pub use trouble::{CallFacts, PriceQuestion, Trouble};

/// The arguments of a tool, as they come.
pub type Arguments = serde_json::Map<String, Value>;

/// The result of a tool: a few words, and the same for programs.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolAnswer {
    pub text: String,
    pub structured: Value,
}

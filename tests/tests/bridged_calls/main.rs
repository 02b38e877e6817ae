//! Services that the bridge made sellable, bought between two nodes and paid on a chain.

mod documents;
mod paths;
mod planets;
mod registration;
mod rest;
mod secrets;
mod support;
mod upstreams;

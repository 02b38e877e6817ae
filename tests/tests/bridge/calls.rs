//! Services that the bridge made sellable, bought between two nodes and paid on a chain.

mod documents;
mod lists;
mod paths;
mod planets;
mod registration;
mod rest;
mod secrets;
mod support;
mod upstreams;

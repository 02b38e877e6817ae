//! The control center: one participant's node of the Farthing network.

pub mod alerts;
pub mod catalog;
mod chain_view;
pub mod cli;
pub mod clock;
pub mod commands;
pub mod config;
pub mod consumer;
pub mod control;
pub mod eth;
pub mod files;
pub mod gateway;
mod home;
mod journal;
mod killpoint;
pub mod lock;
pub mod node;
pub mod owner;
pub mod panel;
pub mod secret;
pub mod serve;
pub mod settlement;
pub mod status;
pub mod testnet;
pub mod text;
pub mod tls;
pub mod wallet;

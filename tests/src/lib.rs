//! What the end-to-end tests and the measurements share: real parts, started for one of them and ended with it.

pub mod agreement;
pub mod asks;
pub mod calls;
pub mod chain_proxy;
pub mod clock;
pub mod command;
pub mod console_pages;
pub mod dht;
pub mod full;
pub mod lab;
pub mod liar;
pub mod line;
pub mod market;
pub mod nodes;
pub mod pictures;
pub mod portal;
pub mod proxies;
pub mod recorder;
pub mod report;
pub mod tell;
pub mod upstream;
pub mod wait;
pub mod world;

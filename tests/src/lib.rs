//! What the end-to-end tests share: real parts, started for one test and ended with it.

pub mod agreement;
pub mod calls;
pub mod command;
pub mod console_pages;
pub mod full;
pub mod liar;
pub mod line;
pub mod nodes;
pub mod pictures;
pub mod portal;
pub mod proxies;
pub mod recorder;
pub mod tell;
pub mod upstream;
pub mod wait;
pub mod world;

//! The first steps of newcomers: the quickstarts, a test network that is prepared for them, and an application that buys.

mod quake_map;
mod quickstart;
mod testnet;

//! The chain adapter against a real anvil: money in and out, crashes, endpoints that fail, chains that are
//! not what they should be, and reorganisations.

mod anvil;
mod consents;
mod crashes;
mod dust;
mod endpoints;
mod events;
mod flood;
mod liars;
mod operations;
mod outages;
mod payments;
mod proxy;
mod reorganisations;
mod transfers;
mod trust;
mod world;

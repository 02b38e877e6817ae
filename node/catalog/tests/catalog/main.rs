//! The catalog's promises, kept by the real store, index and reconciliation in a folder of each test's own.

#[cfg(target_os = "linux")]
#[path = "../../../../protocol/tests/support/alone.rs"]
mod alone;
mod crowds;
mod damage;
mod floods;
mod reconciling;
mod searching;
mod sessions;
mod shards;
mod taking;
mod world;

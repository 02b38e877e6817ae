//! The console over real TLS: who is let in, what is refused, what every page says and shows.

mod access;
mod api;
mod apis;
mod backup;
mod broken;
mod chain;
mod changes;
mod door;
mod editing;
mod finance;
mod full;
mod network;
mod pages;
mod problems;
mod qr;
mod register;
mod sandbox;
mod settings;
mod setup;
mod snippets;
mod spending;
mod support;
mod theft;
mod uploads;

//! The console over real TLS: who is let in, what is refused, what every page says and shows.

mod access;
mod api;
mod pages;
mod sandbox;
mod snippets;
mod support;

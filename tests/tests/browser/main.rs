//! The console in a real browser: Debian's chromium, driven by chromedriver, judged by axe-core.
//!
//! `make browser-test` runs them. Without chromium, chromedriver or axe-core they say that they were skipped; with
//! `CI` set they fail.

mod appearance;
mod browser;
mod keyboard;
mod story;

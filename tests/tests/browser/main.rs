//! The console in a real browser: Debian's chromium, driven by chromedriver, judged by axe-core.
//!
//! Without chromium, chromedriver or axe-core these tests say that they were skipped; with `CI` set they fail.

mod appearance;
mod browser;
mod keyboard;
mod live;
mod places;
mod plain;
mod site;
mod story;
mod strangers;
mod tides;

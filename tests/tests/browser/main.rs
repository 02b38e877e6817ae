//! The console in a real browser: Debian's chromium, driven by chromedriver, judged by axe-core.
//!
//! Without chromium, chromedriver or axe-core these tests say that they were skipped; with `CI` set they fail.

mod appearance;
mod browser;
mod counted;
mod door;
mod first_steps;
mod frame;
mod keyboard;
mod live;
mod paint;
mod places;
mod plain;
mod quake_map;
mod site;
mod story;
mod strangers;
mod theft;
mod tides;
mod uploads;

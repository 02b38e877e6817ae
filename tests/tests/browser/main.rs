//! The console in a real browser: Debian's chromium, driven by chromedriver, judged by axe-core.
//!
//! Without chromium, chromedriver or axe-core these tests say that they were skipped; with `CI` set they fail.

mod answers;
mod appearance;
mod back;
mod browser;
mod counted;
mod design;
mod door;
mod first_steps;
mod frame;
mod help;
mod keyboard;
mod keyboard_flows;
mod live;
mod paint;
mod places;
mod plain;
mod plain_story;
mod quake_map;
mod reference;
mod register;
mod rows;
mod site;
mod slow;
mod story;
mod strangers;
mod tables;
mod theft;
mod tides;
mod uploads;

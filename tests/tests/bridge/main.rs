//! The bridge from outside: the program reads other people's APIs, and says what would become of them.

mod inspect;
mod scan;
mod support;

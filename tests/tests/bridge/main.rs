//! The bridge from outside: the program reads other people's APIs and says what becomes of them, and two nodes trade calls of
//! such APIs, paid on a chain.

mod calls;
mod inspect;
mod scan;
mod support;

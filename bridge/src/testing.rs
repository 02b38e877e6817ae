//! Descriptions to test with: two that have everything, and a strategy for arbitrary ones.

mod arbitrary;
mod samples;

pub(crate) use self::{
    arbitrary::descriptions,
    samples::{graphql, rest},
};

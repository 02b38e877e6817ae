//! OpenAPI in and out: Swagger 2.0, OpenAPI 3.0 and 3.1 become a description.

pub mod read;
pub mod write;

pub use read::{looks_like_openapi, read};
pub use write::{Version, WriteOptions, write};

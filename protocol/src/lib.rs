//! The agreement between two Farthing nodes: its values (`farthing_values`), all of them under their names there, and the
//! messages about them.
//!
//! Everything here is pure. There is no clock, socket, file or task: functions
//! take what they need as arguments and return what they decided. That is what
//! lets both ends of a call, the tests and an offline audit share one opinion.
//!
//! Reading order: the values → [`books`] → [`call`], [`call_stream`], [`info`], [`reconciliation`], [`sync`], [`agreement`],
//! [`reach`], [`resolution`].

pub mod agreement;
pub mod books;
pub mod call;
pub mod call_stream;
pub mod info;
pub mod reach;
pub mod reconciliation;
pub mod resolution;
pub mod sync;

pub use call::{CallMessage, CallReply, CallResponse};
pub use farthing_values::*;

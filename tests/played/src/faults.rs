//! What is wrong with an endpoint.

use std::time::Duration;

/// The faults of one endpoint. All of them are inputs: nothing goes wrong by itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Faults {
    /// The time that an answer takes; the request is carried out at once.
    pub late: Duration,
    /// The number of blocks that it does not know yet.
    pub lag_blocks: u64,
    /// The number of requests with a transaction that it still carries out and does not answer.
    pub unanswered_broadcasts: u32,
    /// The number of transactions that it says it has taken, and keeps to itself.
    pub kept_broadcasts: u32,
    /// The number of answers that say of a wallet that many more of its transactions were mined.
    pub false_nonces: u32,
    /// It carries out nothing, and ends each connection.
    pub is_down: bool,
}

impl Faults {
    /// Those of an endpoint that is well.
    pub const NONE: Self = Self {
        late: Duration::ZERO,
        lag_blocks: 0,
        unanswered_broadcasts: 0,
        kept_broadcasts: 0,
        false_nonces: 0,
        is_down: false,
    };
}

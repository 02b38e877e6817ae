//! Peers that tests play themselves, of the node's own crates or of bare libp2p, and stores filled as the node fills them.

pub mod crowd;
pub mod flood;
pub mod full;
pub mod simulate;
pub mod soak;
mod stranger;

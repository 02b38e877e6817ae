//! The books of what this node buys, played against them without a network.

use farthing_protocol::resolution::COPY_LIFETIME;

use super::*;

mod carried;
mod days;
mod found;
mod held;

#[test]
fn an_owner_tells_of_all_copies_once_none_of_an_earlier_run_can_arrive() {
    assert!(!tells_of_all(COPY_LIFETIME - Duration::from_millis(1)));
    assert!(tells_of_all(COPY_LIFETIME));
}

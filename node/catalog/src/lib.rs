//! The listings of the network, as one node keeps them.

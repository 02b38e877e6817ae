//! Services to sell: ordinary HTTP servers that know nothing of the network that sells them.
//!
//! Each service is a module with its routes, and a binary of the same name that binds a port and runs it:
//!
//! - [`earthquakes`]: REST, the U.S. Geological Survey's recent earthquakes as GeoJSON.
//! - [`exoplanets`]: GraphQL, the NASA Exoplanet Archive's confirmed planets of other stars.
//! - [`image_size`]: REST, uploads: an image goes in, its size comes out. Its binary is `image-size`.
//!
//! The binary `quake-map` is the other side: an application that buys earthquakes through a node, and knows only HTTPS.
//!
//! [`serve`] and [`problem`] are what the services share. Nothing here depends on any other Farthing crate: a
//! service must look like somebody else's server.

pub mod earthquakes;
pub mod exoplanets;
pub mod image_size;
pub mod problem;
pub mod serve;

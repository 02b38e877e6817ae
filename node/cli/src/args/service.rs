//! Arguments that name a service.

use std::str::FromStr;

use clap::Args;
use farthing_protocol::ServiceId;

#[derive(Debug, Args)]
pub struct OwnService {
    /// Its name, its UUID as `farthing api list` shows it, or the first digits of that
    pub service: ServiceName,
}

/// A service, as a person names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServiceName {
    Whole(ServiceId),
    /// A name, or the first digits of an id.
    Part(String),
}

impl FromStr for ServiceName {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let text = text.trim();
        match text.parse() {
            Ok(id) => Ok(Self::Whole(id)),
            Err(_) if text.is_empty() => {
                Err("name the service: its id, the first digits of that, or its name")
            }
            Err(_) => Ok(Self::Part(text.to_owned())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_service_is_named_by_its_id_or_by_a_part_that_the_node_looks_up() {
        const ID: &str = "0b5f2a3e-6a3c-4c39-9a65-6a1c3f1d2e4b";
        let read = |text: &str| text.parse::<ServiceName>();
        let whole = ServiceName::Whole(ID.parse().unwrap());
        assert_eq!(read(ID), Ok(whole.clone()));
        assert_eq!(read(&format!(" {} ", ID.to_uppercase())), Ok(whole));
        for text in ["0b5f", "0b5f2a3e-6a3c", "Earthquakes", "Tides of the North Sea"] {
            assert_eq!(read(text), Ok(ServiceName::Part(text.to_owned())));
        }
        assert!(read("").is_err() && read("  ").is_err());
    }
}

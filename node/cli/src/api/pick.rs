//! One of my services, by the beginning of its id.
//!
//! Only what this node itself offers is looked through. Strangers choose names and, by trying, the beginnings of ids: a
//! service that is bought is named whole.

use farthing_control::{ControlClient, endpoint};
use farthing_protocol::ServiceId;

use crate::{
    args::OwnServiceName,
    failure::{Exit, Failure},
};

/// The id of the service that is named. A whole one is taken as it is.
pub(super) async fn own(node: &ControlClient, named: OwnServiceName) -> Result<ServiceId, Failure> {
    match named {
        OwnServiceName::Whole(id) => Ok(id),
        OwnServiceName::Beginning(digits) => {
            let apis = node.ask(endpoint::Apis).await?;
            one_of(&digits, apis.iter().map(|api| (api.id.0, api.name.as_str())))
        }
    }
}

fn one_of<'a>(digits: &str, own: impl Iterator<Item = (ServiceId, &'a str)>) -> Result<ServiceId, Failure> {
    let begins_so = |(id, _): &(ServiceId, &str)| id.to_string().replace('-', "").starts_with(digits);
    let found: Vec<(ServiceId, &str)> = own.filter(begins_so).collect();
    match found.as_slice() {
        [(id, _)] => Ok(*id),
        [] => {
            let what = format!("no service of this node has an id that begins with {digits}");
            Err(Failure::new(Exit::Failure, what).next("`farthing api list` shows them"))
        }
        several => {
            let named: Vec<String> = several.iter().map(|(id, name)| format!("{id} ({name})")).collect();
            let what = format!("several services have an id that begins with {digits}: {}", named.join(", "));
            Err(Failure::usage(what).next("give more of it"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_beginning_of_an_id_names_a_service_when_no_other_begins_so() {
        let ids = ["0b5f2a3e-6a3c-4c39-9a65-6a1c3f1d2e4b", "0b5f2a3e-7a3c-4c39-9a65-6a1c3f1d2e4b"];
        let [one, other] = ids.map(|id| id.parse::<ServiceId>().unwrap());
        let pick = |digits| one_of(digits, [(one, "Books"), (other, "Films")].into_iter());
        assert_eq!(pick("0b5f2a3e6").ok(), Some(one));
        assert_eq!(pick("0b5f2a3e7a3c").ok(), Some(other));
        let several = pick("0b5f").unwrap_err();
        assert_eq!(several.exit, Exit::Usage);
        assert!(several.to_string().contains("Books") && several.to_string().contains(ids[1]), "{several}");
        let none = pick("5f2a").unwrap_err();
        assert_eq!(none.exit, Exit::Failure);
    }
}

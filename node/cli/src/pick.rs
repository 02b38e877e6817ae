//! The service that a person means by a name, or by the first digits of an id; and the channel, by its digits alone.
//!
//! A whole id is taken as it is. Of one's own services any name is good. What belongs to others is looked up among all
//! listings that the node has: everybody chooses names and, by trying, the beginnings of ids. So there must be exactly
//! one, no older one may have nearly its name, and it is said which it is and whose.

use std::{fmt::Display, str::FromStr};

use clap::Args;
use farthing_control::{ControlClient, endpoint, types::NamedService};
use farthing_protocol::{CallId, ChannelId, ServiceId};

use super::{
    Context,
    failure::{Exit, Failure},
    visible::one_line,
};

/// Fewer digits are soon the beginning of several ids.
const DIGITS_MIN: usize = 4;

#[derive(Debug, Args)]
pub struct OwnService {
    /// Service: its name, its UUID from `farthing api list`, or the first digits of the UUID
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
                Err("name the service by its name, its id, or the first digits of the id")
            }
            Err(_) => Ok(Self::Part(text.to_owned())),
        }
    }
}

/// A channel, as a person names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChannelName {
    Whole(ChannelId),
    /// The first digits of an id, in lower case and without 0x.
    Begins(String),
}

impl FromStr for ChannelName {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let text = text.trim();
        if let Ok(id) = text.parse() {
            return Ok(Self::Whole(id));
        }
        let digits = text.strip_prefix("0x").unwrap_or(text);
        if digits.len() < DIGITS_MIN || !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(
                "name the channel by its id (0x and 64 hexadecimal digits) or the first four or more digits",
            );
        }
        Ok(Self::Begins(digits.to_ascii_lowercase()))
    }
}

/// The id of one of this node's channels.
pub(super) async fn channel(node: &ControlClient, named: ChannelName) -> Result<ChannelId, Failure> {
    match named {
        ChannelName::Whole(id) => Ok(id),
        ChannelName::Begins(digits) => {
            let channels = node.ask(endpoint::Channels).await?;
            one_that_begins(&digits, channels.iter().map(|channel| channel.id.0))
        }
    }
}

/// The id of one of this node's own services.
pub(super) async fn own(node: &ControlClient, named: ServiceName) -> Result<ServiceId, Failure> {
    match named {
        ServiceName::Whole(id) => Ok(id),
        ServiceName::Part(text) => {
            let apis = node.ask(endpoint::Apis).await?;
            let fits = apis.iter().filter(|api| is_named(api.id.0, &api.name, &text));
            let found: Vec<_> = fits.map(|api| (api.id.0, api.name.as_str())).collect();
            one_of(("service", &text), &found, none_called(&text, "`farthing api list` shows them"))
        }
    }
}

/// The id of a service of the network. People are told which one was found.
pub(super) async fn of_network(
    context: &Context,
    node: &ControlClient,
    named: ServiceName,
) -> Result<ServiceId, Failure> {
    match named {
        ServiceName::Whole(id) => Ok(id),
        ServiceName::Part(text) => {
            let found = listed(node, &text).await?;
            let service = chosen(&text, &found)?;
            context.output.prose(&format!(
                "“{}” is {} of {}.",
                one_line(&service.name),
                service.id,
                service.owner
            ));
            Ok(service.id.0)
        }
    }
}

/// Services on the network that a text names, as far as the node knows.
pub(super) async fn listed(node: &ControlClient, text: &str) -> Result<Vec<NamedService>, Failure> {
    Ok(node.ask(endpoint::NamedServices.of(text)).await?)
}

/// The one that is meant.
fn chosen<'a>(text: &str, found: &'a [NamedService]) -> Result<&'a NamedService, Failure> {
    let pairs: Vec<_> = found.iter().map(|one| (one.id.0, one.name.as_str())).collect();
    let none = none_called(text, "search for it with `farthing catalog search`");
    let id = one_of(("service", text), &pairs, none)?;
    let service = found.iter().find(|one| one.id.0 == id).filter(|one| !one.look_alike);
    service.ok_or_else(|| {
        let what = format!("the name of {id} is close to that of an older service of another owner");
        Failure::usage(what)
            .next("compare both with `farthing catalog search`, then use the id of the one you mean")
    })
}

fn is_named(id: ServiceId, name: &str, text: &str) -> bool {
    let digits = text.replace('-', "").to_ascii_lowercase();
    let begins_so = digits.len() >= DIGITS_MIN && id.to_string().replace('-', "").starts_with(&digits);
    begins_so || name.trim().to_lowercase() == text.to_lowercase()
}

fn none_called(text: &str, where_to_look: &'static str) -> Failure {
    let digits = text.replace('-', "");
    let is_short = digits.len() < DIGITS_MIN && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    let of_ids = if is_short {
        format!("an id needs at least {DIGITS_MIN} digits")
    } else {
        "no id begins with it".to_owned()
    };
    Failure::new(Exit::Failure, format!("no service is called “{text}”, and {of_ids}")).next(where_to_look)
}

/// The only one of the `kind` that was found for a text, each with its name if it has one.
fn one_of<T: Copy + Display>(
    (kind, text): (&str, &str),
    found: &[(T, &str)],
    none: Failure,
) -> Result<T, Failure> {
    match found {
        [(id, _)] => Ok(*id),
        [] => Err(none),
        several => {
            let shown = |(id, name): &(T, &str)| match *name {
                "" => id.to_string(),
                name => format!("{id} ({})", one_line(name)),
            };
            let named: Vec<String> = several.iter().map(shown).collect();
            let what = format!("“{text}” matches several {kind}s: {}", named.join(", "));
            Err(Failure::usage(what).next("use the id of one of them"))
        }
    }
}

/// The only one of these channels whose id begins with the digits.
fn one_that_begins(digits: &str, ids: impl Iterator<Item = ChannelId>) -> Result<ChannelId, Failure> {
    let begin = format!("0x{digits}");
    let found: Vec<_> = ids.filter(|id| id.to_string().starts_with(&begin)).map(|id| (id, "")).collect();
    let none = Failure::new(Exit::Failure, format!("no channel's id begins with {begin}"))
        .next("`farthing channel list` shows them");
    one_of(("channel", &begin), &found, none)
}

/// The first digits of a call id, in lower case and without dashes. `None` of a whole id, and of what begins none.
pub(super) fn beginning_of_call(text: &str) -> Option<String> {
    let digits = text.replace('-', "").to_ascii_lowercase();
    let fits = digits.len() >= DIGITS_MIN && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    (fits && text.parse::<CallId>().is_err()).then_some(digits)
}

/// The only one of these calls, each of which is there once, whose id begins with the digits.
pub(super) fn call_that_begins(
    digits: &str,
    ids: impl IntoIterator<Item = CallId>,
) -> Result<CallId, Failure> {
    let begins = |id: &CallId| id.to_string().replace('-', "").starts_with(digits);
    let found: Vec<_> = ids.into_iter().filter(begins).map(|id| (id, "")).collect();
    let none = Failure::new(Exit::Failure, format!("no id of the newest calls begins with {digits}"))
        .next("`farthing calls --json` shows them; name an older call by its whole id");
    one_of(("call", digits), &found, none)
}

#[cfg(test)]
mod tests {
    use farthing_protocol::Address;

    use super::*;

    const IDS: [&str; 2] = ["0b5f2a3e-6a3c-4c39-9a65-6a1c3f1d2e4b", "0b5f2a3e-7a3c-4c39-9a65-6a1c3f1d2e4b"];

    #[test]
    fn a_service_is_named_by_its_id_or_by_a_part_that_the_node_looks_up() {
        let read = |text: &str| text.parse::<ServiceName>();
        let whole = ServiceName::Whole(IDS[0].parse().unwrap());
        assert_eq!(read(IDS[0]), Ok(whole.clone()));
        assert_eq!(read(&format!(" {} ", IDS[0].to_uppercase())), Ok(whole));
        for text in ["0b5f", "0b5f2a3e-6a3c", "Earthquakes", "Tides of the North Sea"] {
            assert_eq!(read(text), Ok(ServiceName::Part(text.to_owned())));
        }
        assert!(read("").is_err() && read("  ").is_err());
    }

    #[test]
    fn a_name_or_the_beginning_of_an_id_names_a_service() {
        let id: ServiceId = IDS[0].parse().unwrap();
        for (text, is_it) in [
            ("0b5f", true),
            ("0B5F2A3E-6a", true),
            (IDS[0], true),
            ("0b5", false),
            ("5f2a", false),
            ("books of the sea", true),
            ("Books", false),
        ] {
            assert_eq!(is_named(id, "Books of the Sea", text), is_it, "{text}");
        }
    }

    #[test]
    fn a_service_that_may_be_another_is_named_by_its_id_alone() {
        let named = |id: &str, name: &str, look_alike| NamedService {
            id: id.parse::<ServiceId>().unwrap().into(),
            name: name.to_owned(),
            owner: Address::ZERO.into(),
            look_alike,
        };
        let (books, films) = (named(IDS[0], "Books", false), named(IDS[1], "Films", false));
        assert_eq!(chosen("books", std::slice::from_ref(&books)).unwrap(), &books);
        let several = chosen("0b5f", &[books, films]).unwrap_err();
        assert_eq!(several.exit, Exit::Usage);
        assert!(several.to_string().contains("Films") && several.to_string().contains(IDS[1]), "{several}");
        for (text, told) in [("Books", "no id begins with it"), ("0b5", "an id needs at least 4 digits")] {
            let none = chosen(text, &[]).unwrap_err();
            assert_eq!(none.exit, Exit::Failure);
            assert!(none.to_string().contains(told), "{none}");
        }
        let imitation = chosen("B00ks", &[named(IDS[0], "B00ks", true)]).unwrap_err();
        assert!(imitation.exit == Exit::Usage && imitation.to_string().contains("older"), "{imitation}");
    }

    #[test]
    fn a_call_is_named_by_the_only_beginning_that_fits() {
        let ids: [CallId; 2] = IDS.map(|id| id.parse().unwrap());
        for (text, digits) in [
            ("0B5F", Some("0b5f")),
            ("0b5f2a3e-6a3c", Some("0b5f2a3e6a3c")),
            ("0b5", None),
            (IDS[0], None),
            ("refused-17", None),
        ] {
            assert_eq!(beginning_of_call(text).as_deref(), digits, "{text}");
        }
        assert_eq!(call_that_begins("0b5f2a3e7", ids).unwrap(), ids[1]);
        assert_eq!(call_that_begins("0b5f", ids).unwrap_err().exit, Exit::Usage);
        assert_eq!(call_that_begins("2a3e", ids).unwrap_err().exit, Exit::Failure);
    }

    #[test]
    fn a_channel_is_named_by_its_id_or_by_the_only_beginning_that_fits() {
        let id =
            |last: u8| ChannelId::from_bytes(std::array::from_fn(|at| if at == 3 { last } else { 0xab }));
        let (one, other) = (id(1), id(2));
        let read = |text: &str| text.parse::<ChannelName>();
        assert_eq!(read(&format!(" {one} ")), Ok(ChannelName::Whole(one)));
        for text in ["0xababab", "ABABab"] {
            assert_eq!(read(text), Ok(ChannelName::Begins("ababab".to_owned())), "{text}");
        }
        for text in ["", "0x", "0xaba", "0xtides", "abab-ab"] {
            assert!(read(text).is_err(), "{text}");
        }
        let all = [one, other];
        assert_eq!(one_that_begins("ababab01", all.into_iter()).unwrap(), one);
        let several = one_that_begins("ababab", all.into_iter()).unwrap_err();
        assert_eq!(several.exit, Exit::Usage);
        assert!(several.to_string().contains(&other.to_string()), "{several}");
        assert_eq!(one_that_begins("bab0", all.into_iter()).unwrap_err().exit, Exit::Failure);
    }
}

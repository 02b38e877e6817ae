//! A service on its way to being registered: what was read, and what was chosen so far. Pure.

use std::{collections::BTreeMap, sync::Arc};

use farthing_bridge::report::SecurityScheme;
use farthing_control::types::{
    CatalogKind, Charge, Inspection, OperationFile, SamplesFile, ServiceFile, SourceFile,
};
use farthing_os::secret::SecretText;
use farthing_values::{ServiceId, Usdc};

use crate::{
    access::SessionId,
    failure::Failure,
    session_store::{Bounds, SessionStore},
};

/// Two whole documents, and many of the size that documents have.
const BOUNDS: Bounds = Bounds {
    entries_max: 16,
    per_session_max: 4,
    bytes_max: 2 * farthing_bridge::limits::DOCUMENT_BYTES_MAX,
};

#[derive(Debug)]
pub(crate) struct Drafts(SessionStore<Draft>);

impl Default for Drafts {
    fn default() -> Self {
        Self(SessionStore::new(BOUNDS))
    }
}

impl Drafts {
    pub(super) fn begin(&self, session: SessionId, draft: Draft) -> Result<String, Failure> {
        let bytes = draft.source.text.as_ref().map_or(0, String::len);
        let kept = self.0.put(session, bytes, draft);
        kept.map_err(|_| Failure::broken("The system provides no random numbers."))
    }

    /// # Errors
    /// [`Failure::gone`] when the session has no such draft.
    pub(super) fn get(&self, session: SessionId, name: &str) -> Result<Draft, Failure> {
        self.0.get(session, name).ok_or_else(gone)
    }

    pub(super) fn change<R>(
        &self,
        session: SessionId,
        name: &str,
        change: impl FnOnce(&mut Draft) -> R,
    ) -> Result<R, Failure> {
        self.0.change(session, name, change).ok_or_else(gone)
    }

    pub(super) fn discard(&self, session: SessionId, name: &str) {
        self.0.take(session, name);
    }

    /// Lists the drafts that a session has not finished, the newest first: name, title.
    pub(crate) fn unfinished(&self, session: SessionId) -> Vec<(String, String)> {
        let all = self.0.of(session).into_iter();
        let open = all.filter(|(_, draft)| matches!(draft.state, DraftState::Open));
        open.map(|(name, draft)| (name, draft.title())).collect()
    }
}

fn gone() -> Failure {
    Failure::gone("This draft", "Start again: open My APIs, then “Register an API”.")
}

/// The progress of a draft.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DraftState {
    Open,
    /// The node is at it.
    Registering,
    Registered(ServiceId),
}

/// One draft. Cheap to clone.
#[derive(Debug, Clone)]
pub(super) struct Draft {
    pub(super) state: DraftState,
    /// With its text.
    pub(super) source: Arc<SourceFile>,
    pub(super) inspection: Arc<Inspection>,
    pub(super) choices: Choices,
}

/// The owner's statements, as they were typed.
#[derive(Debug, Clone, Default)]
pub(super) struct Choices {
    pub(super) name: String,
    pub(super) summary: String,
    pub(super) description: String,
    pub(super) category: String,
    /// Separated by commas.
    pub(super) tags: String,
    pub(super) price: String,
    pub(super) charge: Charge,
    pub(super) samples: SamplesFile,
    pub(super) upstream: String,
    pub(super) header: UpstreamSecret,
    pub(super) query: UpstreamSecret,
    /// One for each of the inspection.
    pub(super) operations: Vec<OperationChoice>,
}

/// A header or parameter that the node adds to every request to the upstream; the value is shown to nobody.
#[derive(Debug, Clone, Default)]
pub(super) struct UpstreamSecret {
    pub(super) name: String,
    pub(super) value: Option<SecretText>,
}

impl UpstreamSecret {
    /// Takes what a form has: an empty value leaves the one that is there.
    pub(super) fn set(&mut self, name: &str, value: &str) {
        let name = name.trim();
        if name != self.name {
            self.value = None;
        }
        name.clone_into(&mut self.name);
        if !value.trim().is_empty() {
            self.value = Some(SecretText::new(value.trim()));
        }
    }

    fn pair(&self, field: &'static str) -> Result<BTreeMap<String, String>, Wrong> {
        match (self.name.as_str(), &self.value) {
            ("", None) => Ok(BTreeMap::new()),
            ("", Some(_)) => Err(Wrong::new(field, "has a value but no name; enter both, or neither")),
            (_, None) => Err(Wrong::new(field, "has a name but no value; enter both, or neither")),
            (name, Some(value)) => Ok(BTreeMap::from([(name.to_owned(), value.expose().to_owned())])),
        }
    }
}

/// An operation's tick box and price.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct OperationChoice {
    pub(super) offered: bool,
    /// The service's own when empty.
    pub(super) price: String,
}

/// A field that cannot be taken, and what it should be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::pages) struct Wrong {
    field: &'static str,
    problem: String,
}

impl Wrong {
    fn new(field: &'static str, problem: impl Into<String>) -> Self {
        Self { field, problem: problem.into() }
    }

    /// `Price: …`
    pub(in crate::pages) fn words(&self) -> String {
        format!("{} {}.", self.field, self.problem)
    }
}

impl Draft {
    /// A draft of what was read, with everything ticked that only reads.
    pub(super) fn new(source: SourceFile, inspection: Inspection, mut choices: Choices) -> Self {
        choices.operations = inspection
            .operations
            .iter()
            .map(|operation| OperationChoice { offered: operation.method.0.is_safe(), price: String::new() })
            .collect();
        if choices.name.is_empty() && inspection.kind.0 == CatalogKind::Rest {
            let title = inspection.title.lines().next().unwrap_or_default();
            choices.name = title.chars().take(80).collect();
        }
        if choices.upstream.is_empty() {
            choices.upstream = inspection.upstreams.first().cloned().unwrap_or_default();
        }
        for scheme in &inspection.security {
            propose(&mut choices, scheme);
        }
        Self { state: DraftState::Open, source: Arc::new(source), inspection: Arc::new(inspection), choices }
    }

    pub(super) fn title(&self) -> String {
        let name = &self.choices.name;
        if name.is_empty() { self.inspection.title.clone() } else { name.clone() }
    }

    pub(super) fn offered_count(&self) -> usize {
        self.choices.operations.iter().filter(|chosen| chosen.offered).count()
    }

    /// Builds the file that the node takes.
    ///
    /// # Errors
    /// The first field that cannot be taken.
    pub(super) fn file(&self) -> Result<ServiceFile, Wrong> {
        let choices = &self.choices;
        let mut file = ServiceFile::priced(price("Price", &choices.price)?);
        file.name = choices.name.trim().to_owned();
        if file.name.is_empty() && self.inspection.kind.0 == CatalogKind::Graphql {
            return Err(Wrong::new("Name", "is missing; a GraphQL schema has no title, so enter a name"));
        }
        file.summary = choices.summary.trim().to_owned();
        file.description.clone_from(&choices.description);
        file.category = choices.category.trim().to_owned();
        file.tags = tags(&choices.tags);
        file.source = Some((*self.source).clone());
        file.upstream = choices.upstream.trim().to_owned();
        if file.upstream.is_empty() {
            return Err(Wrong::new(
                "Address",
                "is missing; enter the address of your own server, such as http://127.0.0.1:8080",
            ));
        }
        file.upstream_headers = choices.header.pair("Secret header")?;
        file.upstream_query = choices.query.pair("Secret query parameter")?;
        file.charge = choices.charge;
        file.samples = choices.samples;
        for (operation, chosen) in self.inspection.operations.iter().zip(&choices.operations) {
            let named = || OperationFile::named(operation.method.0, operation.path.clone());
            let own = chosen.price.trim();
            if !chosen.offered {
                // What writes is offered by being named.
                if operation.method.0.is_safe() {
                    file.operations.push(OperationFile { exclude: true, ..named() });
                }
            } else if !own.is_empty() {
                let own = price("Price of an operation", own)?;
                file.operations.push(OperationFile { price: Some(own.into()), ..named() });
            } else if !operation.method.0.is_safe() {
                file.operations.push(named());
            }
        }
        if self.offered_count() == 0 {
            return Err(Wrong::new("Operations", "are all left out; select at least one"));
        }
        Ok(file)
    }
}

/// # Errors
/// What an amount looks like.
pub(in crate::pages) fn price(field: &'static str, text: &str) -> Result<Usdc, Wrong> {
    let text = text.trim();
    if text.is_empty() {
        return Err(Wrong::new(field, "is missing; write an amount of USDC, such as 0.002, or 0"));
    }
    text.parse().map_err(|_| {
        let shown: String = crate::show::visible(text).chars().take(40).collect();
        Wrong::new(
            field,
            format!(
                "is “{shown}”, which is not an amount of USDC; write it like 0.002, with at most 6 decimals"
            ),
        )
    })
}

pub(in crate::pages) fn tags(text: &str) -> Vec<String> {
    text.split(',').map(str::trim).filter(|tag| !tag.is_empty()).map(ToOwned::to_owned).collect()
}

/// Lists the choices of charged answers, as forms offer them: value, words, chosen.
pub(in crate::pages) fn charges(chosen: Charge) -> [(&'static str, &'static str, bool); 2] {
    [
        ("success", "Answers with a status below 400", chosen == Charge::Success),
        ("answered", "Answers with a status below 500", chosen == Charge::Answered),
    ]
}

pub(in crate::pages) fn charge_sent(value: &str) -> Charge {
    if value == "answered" { Charge::Answered } else { Charge::Success }
}

/// The name of what the document says the server wants; the value is the owner's to give.
fn propose(choices: &mut Choices, scheme: &SecurityScheme) {
    let header = |choices: &mut Choices, name: &str| {
        if choices.header.name.is_empty() {
            name.clone_into(&mut choices.header.name);
        }
    };
    match scheme {
        SecurityScheme::ApiKeyHeader(name) => header(choices, name),
        SecurityScheme::Basic | SecurityScheme::Bearer => header(choices, "Authorization"),
        SecurityScheme::ApiKeyQuery(name) if choices.query.name.is_empty() => {
            choices.query.name.clone_from(name);
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn draft() -> Draft {
        let inspection = serde_json::from_value(json!({
            "source": { "kind": "openapi" },
            "kind": "REST",
            "title": "Weather",
            "version": "1",
            "description": "",
            "upstreams": ["http://127.0.0.1:9/"],
            "security": [{ "apiKeyHeader": "X-Key" }],
            "report": { "format": "OpenAPI 3.1", "bridged": 2,
                "repaired": { "list": [], "further": 0 }, "skipped": { "list": [], "further": 0 },
                "warnings": { "list": [], "further": 0 } },
            "operations": [
                { "method": "GET", "path": "/a", "summary": "", "parameters": [] },
                { "method": "GET", "path": "/b", "summary": "", "parameters": [] },
                { "method": "POST", "path": "/c", "summary": "", "mutation": true, "parameters": [] },
                { "method": "DELETE", "path": "/d", "summary": "", "parameters": [] },
            ],
        }));
        let kind = farthing_control::types::SourceKind::Openapi;
        let source = SourceFile::given(kind, "{}".to_owned(), "api.json".to_owned());
        let choices = Choices { price: "0.002".to_owned(), ..Choices::default() };
        Draft::new(source, inspection.unwrap(), choices)
    }

    #[test]
    fn what_is_ticked_is_offered_and_priced() {
        let mut draft = draft();
        assert_eq!((draft.choices.name.as_str(), draft.offered_count()), ("Weather", 2));
        draft.choices.header.set("X-Key", "");
        assert_eq!(draft.file().unwrap_err().field, "Secret header");
        draft.choices.header.set("X-Key", " secret ");
        draft.choices.operations[0].offered = false;
        draft.choices.operations[1].price = "0.01".to_owned();
        draft.choices.operations[2].offered = true;
        draft.choices.tags = "a, ,b".to_owned();
        let file = draft.file().unwrap();
        assert_eq!(file.upstream_headers["X-Key"], "secret");
        assert_eq!(file.tags, ["a", "b"]);
        let chosen: Vec<(&str, bool, bool)> = file
            .operations
            .iter()
            .map(|operation| (operation.path.as_str(), operation.exclude, operation.price.is_some()))
            .collect();
        assert_eq!(chosen, [("/a", true, false), ("/b", false, true), ("/c", false, false)]);
        assert!(!format!("{draft:?}").contains("secret "), "secrets are shown to nobody");
    }

    #[test]
    fn every_mistake_names_its_field() {
        let wrong = |change: fn(&mut Draft)| {
            let mut draft = draft();
            draft.choices.header = UpstreamSecret::default();
            change(&mut draft);
            draft.file().unwrap_err().field
        };
        assert_eq!(wrong(|draft| draft.choices.price.clear()), "Price");
        assert_eq!(wrong(|draft| draft.choices.price = "1e3".to_owned()), "Price");
        assert_eq!(wrong(|draft| draft.choices.upstream.clear()), "Address");
        assert_eq!(wrong(|draft| draft.choices.query.set("", "x")), "Secret query parameter");
        assert_eq!(
            wrong(|draft| draft.choices.operations[0].price = "-1".to_owned()),
            "Price of an operation"
        );
        assert_eq!(
            wrong(|draft| draft.choices.operations.iter_mut().for_each(|chosen| chosen.offered = false)),
            "Operations"
        );
    }
}

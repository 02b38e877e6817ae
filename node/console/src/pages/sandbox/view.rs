//! The view that the sandbox's template shows.

use askama::Template;
use farthing_bridge::{
    description::Place,
    form::{BodyField, BodyInput, FormField, FormInput},
};
use farthing_control::types::{CallForm, CatalogService, Channel, OperationSample, sdk::Snippet};
use farthing_os::clock;
use farthing_protocol::CallId;

use crate::{
    frame::Frame,
    history::StoredExchange,
    icons::Icon,
    markup::{Markup, strangers_markdown},
    pages::service::{Part, ServiceHead},
    show,
};

use super::{
    address,
    answer::{AnswerView, ShownAnswer},
    code::{Code, code},
    cost,
    filled::{FILE, Filled, field_name, operation_value, part_name},
    name_of,
    sent::most,
};

/// Operations that can be chosen here; the others have a link of their own among the endpoints.
const OPERATIONS_LISTED: usize = 150;
/// Of a field's description; whole paragraphs are in the OpenAPI document.
const HINT_CHARS_MAX: usize = 240;

/// The parts that a page is made of.
pub(super) struct SandboxParts {
    pub(super) service: CatalogService,
    pub(super) form: Option<CallForm>,
    pub(super) filled: Filled,
    /// The call with the service's client, in every language.
    pub(super) snippets: Vec<Snippet>,
    /// The reason that the input was not sent.
    pub(super) problem: Option<String>,
    pub(super) shown: Option<StoredExchange>,
    /// An answer was asked for; if there is none, it is not kept any more.
    pub(super) is_forgotten: bool,
    pub(super) view: Option<String>,
}

impl SandboxParts {
    pub(super) fn of(service: CatalogService, form: Option<CallForm>) -> Self {
        let (filled, snippets, problem, shown, is_forgotten, view) = Default::default();
        Self { service, form, filled, snippets, problem, shown, is_forgotten, view }
    }
}

#[derive(Template)]
#[template(path = "sandbox.html")]
pub(super) struct SandboxTemplate {
    frame: Frame,
    head: ServiceHead,
    here: String,
    /// Value, words and whether it is the chosen one.
    operations: Vec<(String, String, bool)>,
    operations_hidden: usize,
    chosen: Option<SandboxOperation>,
    problem: Option<String>,
    answer: Option<ShownAnswer>,
    is_forgotten: bool,
    history: Vec<Past>,
}

/// The operation to try.
struct SandboxOperation {
    operation: String,
    summary: String,
    description: Markup,
    deprecated: bool,
    timeout_secs: Option<u64>,
    price: String,
    /// The same, as it comes back.
    agreed: String,
    nonce: String,
    /// Parameters, and the parts of a body that has some.
    fields: Vec<FieldShown>,
    /// True if the form takes files.
    has_files: bool,
    /// The most bytes that they have, in words.
    files_most: String,
    any_params: bool,
    extra: String,
    body: Option<BodyShown>,
    has_sample: bool,
    cost: cost::Before,
    code: Vec<Code>,
    code_note: Option<&'static str>,
    snippets: Vec<Snippet>,
    /// The address of the page that makes the client.
    client: String,
}

struct FieldShown {
    id: String,
    name: String,
    label: String,
    /// The text that was typed, or the name of the file that was chosen.
    value: String,
    required: bool,
    deprecated: bool,
    place: &'static str,
    kind: String,
    hint: String,
    input: FormInput,
    choices: Vec<String>,
    placeholder: String,
    minimum: Option<String>,
    maximum: Option<String>,
    /// True of a file of which several may be chosen.
    several: bool,
}

struct BodyShown {
    /// True if the body is a file.
    is_file: bool,
    /// True of a body of parts that the description does not name.
    is_unknown: bool,
    /// Media types that are looked for first; empty for any.
    accept: String,
    /// The field of a body that is a file.
    name: &'static str,
    /// The text that was typed, or the name of the file that was chosen.
    text: String,
    kind: String,
    media_type: String,
    required: bool,
    hint: String,
    rows: usize,
}

/// An exchange of this session.
struct Past {
    link: String,
    operation: String,
    live: bool,
    outcome: String,
    good: bool,
    charged: String,
    took: String,
    when: String,
    is_shown: bool,
}

impl SandboxTemplate {
    pub(super) fn new(
        frame: Frame,
        head: ServiceHead,
        parts: SandboxParts,
        channels: &[Channel],
        samples: &[OperationSample],
        kept: &[StoredExchange],
    ) -> Self {
        let SandboxParts { service, form, filled, snippets, problem, shown, is_forgotten, view } = parts;
        let id = service.hit.id.0;
        let here = address(id);
        let operation = form.as_ref().map(name_of).unwrap_or_default();
        let shown_id = shown.as_ref().map(|shown| shown.exchange.call_id);
        let mut operations: Vec<(String, String, bool)> = service
            .offers
            .iter()
            .take(OPERATIONS_LISTED)
            .map(|offer| operation_choice(&format!("{} {}", offer.method, offer.path), &operation))
            .collect();
        if !operation.is_empty() && !operations.iter().any(|(.., chosen)| *chosen) {
            operations.push(operation_choice(&operation, &operation));
        }
        let chosen = form.map(|form| {
            let has_sample = samples.iter().any(|sample| sample.operation == operation);
            let cost = cost::before(form.price.0, service.hit.owner.0, &frame.status, channels);
            SandboxOperation {
                snippets,
                ..SandboxOperation::new(
                    &form,
                    &filled,
                    &frame.status.gateway_url,
                    &id.to_string(),
                    has_sample,
                    cost,
                )
            }
        });
        Self {
            operations_hidden: service.offers.len().saturating_sub(OPERATIONS_LISTED),
            operations,
            chosen,
            problem,
            is_forgotten: is_forgotten && shown.is_none(),
            answer: shown.map(|shown| ShownAnswer::new(&shown, view.as_deref())),
            history: kept.iter().map(|kept| past(kept, &here, shown_id)).collect(),
            here,
            head,
            frame,
        }
    }

    fn view_link(&self, view: &AnswerView) -> String {
        let call = self.answer.as_ref().map_or("", |answer| answer.call_id.as_str());
        format!("{}?call={call}&view={}#answer", self.here, view.name())
    }
}

/// The choice of an operation. Its value comes back as it was; what hides or turns text is not in its words.
fn operation_choice(operation: &str, chosen: &str) -> (String, String, bool) {
    (operation_value(operation), show::visible(operation), operation == chosen)
}

impl SandboxOperation {
    fn new(
        form: &CallForm,
        filled: &Filled,
        gateway: &str,
        service: &str,
        has_sample: bool,
        cost: cost::Before,
    ) -> Self {
        let body = form.form.body.as_ref();
        let parts = match body.map(|body| &body.input) {
            Some(BodyInput::Parts(parts)) => &parts[..],
            _ => &[],
        };
        let params = form.form.fields.iter().enumerate().map(|(index, field)| {
            shown_field(format!("p{index}"), field_name(&field.name), field, filled.value(&field.name))
        });
        let parts_shown = parts.iter().enumerate().map(|(index, part)| {
            shown_field(format!("b{index}"), part_name(&part.name), part, filled.part(&part.name))
        });
        let (code, code_note) = code(form, filled, gateway, service);
        Self {
            operation: operation_value(&name_of(form)),
            summary: show::visible(&form.summary),
            description: strangers_markdown(&form.description),
            deprecated: form.deprecated,
            timeout_secs: form.timeout_secs,
            price: show::usdc(form.price.0),
            agreed: form.price.to_string(),
            nonce: uuid::Uuid::new_v4().simple().to_string(),
            fields: params.chain(parts_shown).collect(),
            has_files: !parts.is_empty() || body.is_some_and(|body| body.input == BodyInput::File),
            files_most: most(),
            any_params: form.form.any_params,
            extra: filled.extra.clone(),
            body: body.filter(|_| parts.is_empty()).map(|body| shown_body(body, filled)),
            has_sample,
            cost,
            code,
            code_note,
            snippets: Vec::new(),
            client: Part::Sdk.address(service),
        }
    }
}

fn shown_body(body: &BodyField, filled: &Filled) -> BodyShown {
    let is_file = body.input == BodyInput::File;
    let also = body.also.iter().filter(|_| is_file);
    let kinds: Vec<String> =
        [&body.media_type].into_iter().chain(also).map(|kind| show::visible(kind)).collect();
    // Systems know no files of these types.
    let is_any = kinds.iter().any(|kind| matches!(kind.as_str(), "application/octet-stream" | "*/*"));
    let text = if is_file { show::visible(filled.file()) } else { filled.body.clone() };
    BodyShown {
        is_file,
        is_unknown: matches!(body.input, BodyInput::Parts(_)),
        accept: if is_any { String::new() } else { kinds.join(",") },
        name: FILE,
        rows: text.lines().count().clamp(4, 16),
        text,
        kind: show::visible(&body.type_name),
        media_type: kinds.join(", "),
        required: body.required,
        hint: hint(&body.description),
    }
}

fn shown_field(id: String, name: String, field: &FormField, value: &str) -> FieldShown {
    let first = |text: &Option<String>| text.as_deref().map(show::visible);
    let placeholder = match (first(&field.default), first(&field.example)) {
        (Some(default), _) => format!("{default} unless given"),
        (None, Some(example)) => format!("such as {example}"),
        (None, None) => String::new(),
    };
    FieldShown {
        id,
        name,
        label: show::visible(&field.name),
        value: if field.input == FormInput::File { show::visible(value) } else { value.to_owned() },
        required: field.required,
        deprecated: field.deprecated,
        place: field.place.map_or("body", Place::name),
        kind: show::visible(&field.kind),
        hint: hint(&field.description),
        input: field.input,
        // A choice that cannot be told from another is none.
        choices: field.choices.iter().filter(|choice| show::visible(choice) == **choice).cloned().collect(),
        placeholder,
        minimum: field.minimum.clone(),
        maximum: field.maximum.clone(),
        several: field.several,
    }
}

/// The beginning of a description, as plain text.
fn hint(description: &str) -> String {
    let text = show::visible(description).replace('`', "");
    let mut short: String = text.chars().take(HINT_CHARS_MAX).collect();
    if text.chars().nth(HINT_CHARS_MAX).is_some() {
        short.push('…');
    }
    short
}

fn past(kept: &StoredExchange, here: &str, shown: Option<CallId>) -> Past {
    let exchange = &kept.exchange;
    let answer = &exchange.answer;
    let outcome = match &answer.problem {
        Some(problem) => show::visible(&problem.title),
        None => answer.status.to_string(),
    };
    Past {
        link: format!("{here}?call={}#answer", exchange.call_id),
        operation: show::visible(&exchange.operation),
        live: exchange.live,
        outcome,
        good: answer.problem.is_none() && answer.status < 400,
        charged: match (&answer.problem, exchange.live) {
            (_, false) => "0.00".to_owned(),
            (Some(problem), true) if problem.charged != Some(false) => "see Activity".to_owned(),
            (Some(_), true) => "0.00".to_owned(),
            (None, true) => answer.charged.clone(),
        },
        took: if exchange.live { show::duration(answer.took_us) } else { String::new() },
        when: show::ago(exchange.at_secs, clock::now_secs()),
        is_shown: shown == Some(exchange.call_id),
    }
}

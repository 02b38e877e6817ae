//! The view that the sandbox's template shows.

use askama::Template;
use farthing_bridge::{
    description::Place,
    form::{BodyField, BodyInput, FormField, FormInput},
};
use farthing_control::types::{
    CHARGED_UNDECIDED, CallForm, CatalogService, Channel, OperationSample, sdk::Snippet,
};
use farthing_os::clock;
use farthing_values::{CallId, Usdc};

use crate::{
    frame::Frame,
    history::{CallStage, StoredExchange},
    icons::Icon,
    outcome::ShownOutcome,
    page::encoded,
    pages::{
        operations::{self, LookedAt, OperationTree},
        saved::SavedLinks,
        service::{Part, ServiceHead},
    },
    show,
};

use super::{
    address,
    answer::{self, AnswerView, ShownAnswer},
    code::CodeTabs,
    cost,
    filled::{FILE, FilledForm, field_name, operation_value, part_name},
    name_of,
    preview::ContentKind,
    saving::{OpenedRequest, SaveField},
    sent::most,
    under_way::{self, ShownUnderWay},
};

/// Of a field's description; whole paragraphs are in the OpenAPI document.
const HINT_CHARS_MAX: usize = 240;
/// Of an operation in the list of this session.
const OPERATION_CHARS_MAX: usize = 80;
/// Of the operation that is tried.
const NAME_CHARS_MAX: usize = 400;

/// The parts that a page is made of.
pub(super) struct SandboxParts {
    pub(super) service: CatalogService,
    pub(super) looked_at: LookedAt,
    /// The chosen operation's place among all of the service, and its form.
    pub(super) chosen: Option<(usize, CallForm)>,
    pub(super) state: SandboxState,
}

/// The state of a form and of its answer.
#[derive(Default)]
pub(super) struct SandboxState {
    pub(super) filled: FilledForm,
    /// The language whose code is looked at.
    pub(super) language: String,
    /// The call with the service's client, in every language.
    pub(super) snippets: Vec<Snippet>,
    /// The most that one call may cost.
    pub(super) price_max: Option<Usdc>,
    /// The reason that the input was not sent.
    pub(super) problem: Option<String>,
    /// The saved request that fills the form.
    pub(super) opened: Option<OpenedRequest>,
    pub(super) save: SaveField,
    pub(super) shown: Option<StoredExchange>,
    /// An answer was asked for; if there is none, it is not kept any more.
    pub(super) is_forgotten: bool,
    pub(super) view: Option<String>,
}

#[derive(Template)]
#[template(path = "sandbox.html")]
pub(super) struct SandboxTemplate {
    frame: Frame,
    head: ServiceHead,
    here: String,
    tree: OperationTree,
    saved: SavedLinks,
    chosen: Option<SandboxOperation>,
    problem: Option<String>,
    opened: Option<OpenedRequest>,
    save: SaveField,
    /// The call that is shown, while it has no answer.
    under_way: Option<ShownUnderWay>,
    answer: Option<ShownAnswer>,
    is_forgotten: bool,
    history: Vec<Past>,
}

/// The operation to try.
struct SandboxOperation {
    operation: String,
    operation_shown: String,
    summary: String,
    /// The address of its page in the reference.
    reference: String,
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
    code: CodeTabs,
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
pub(super) struct Past {
    pub(super) link: String,
    pub(super) operation: String,
    pub(super) live: bool,
    pub(super) outcome: ShownOutcome,
    /// The status of an answer, or the network's word in place of it.
    pub(super) detail: String,
    pub(super) charged: String,
    pub(super) took: String,
    pub(super) when: String,
    pub(super) is_shown: bool,
}

impl SandboxTemplate {
    pub(super) fn new(
        frame: Frame,
        head: ServiceHead,
        saved: SavedLinks,
        parts: SandboxParts,
        channels: &[Channel],
        samples: &[OperationSample],
        kept: &[StoredExchange],
    ) -> Self {
        let SandboxParts { service, looked_at, chosen, state } = parts;
        let (place, form) = chosen.unzip();
        let id = service.hit.id.0;
        let here = address(id);
        let shown = state.shown;
        let shown_id = shown.as_ref().map(|shown| shown.exchange.call_id);
        let at_most_secs = form.as_ref().and_then(|form| form.timeout_secs);
        let under_way = shown.as_ref().and_then(|shown| ShownUnderWay::of(&shown.exchange, at_most_secs));
        let chosen = form.map(|form| {
            let operation = name_of(&form);
            let has_sample = samples.iter().any(|sample| sample.operation == operation);
            let amounts = (form.price.0, form.deposit.map(|deposit| deposit.0));
            let cost = cost::before(amounts, service.hit.owner.0, &frame.status, state.price_max, channels);
            let names = (frame.status.gateway_url.as_str(), id.to_string());
            let (filled, names_shown) = (&state.filled, (names.0, names.1.as_str()));
            let code = CodeTabs::new(&form, filled, names_shown, state.snippets, &state.language);
            SandboxOperation::new(&form, filled, &names.1, has_sample, cost, code)
        });
        Self {
            tree: OperationTree::new(&service.offers, &looked_at, place),
            saved,
            chosen,
            problem: state.problem,
            opened: state.opened,
            save: state.save,
            is_forgotten: state.is_forgotten && shown.is_none(),
            answer: shown
                .filter(|_| under_way.is_none())
                .map(|shown| ShownAnswer::new(&shown, state.view.as_deref())),
            under_way,
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

impl SandboxOperation {
    fn new(
        form: &CallForm,
        filled: &FilledForm,
        service: &str,
        has_sample: bool,
        cost: cost::Before,
        code: CodeTabs,
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
        let name = name_of(form);
        Self {
            operation: operation_value(&name),
            operation_shown: show::beginning(&name, NAME_CHARS_MAX),
            summary: show::visible(&form.summary),
            reference: format!(
                "{}?operation={}",
                Part::Reference.address(service),
                encoded(&operations::handle(&name))
            ),
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
            client: Part::Sdk.address(service),
        }
    }
}

fn shown_body(body: &BodyField, filled: &FilledForm) -> BodyShown {
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
        (Some(default), _) => format!("default {default}"),
        (None, Some(example)) => format!("for example {example}"),
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
    show::beginning(&description.replace('`', ""), HINT_CHARS_MAX)
}

pub(super) fn past(kept: &StoredExchange, here: &str, shown: Option<CallId>) -> Past {
    let exchange = &kept.exchange;
    let answer = &exchange.answer;
    let has_ended = exchange.stage == CallStage::Ended;
    let detail = match &answer.problem {
        Some(problem) => show::visible(&problem.title),
        None => answer.status.to_string(),
    };
    Past {
        link: format!("{here}?call={}#answer", exchange.call_id),
        operation: show::beginning(&exchange.operation, OPERATION_CHARS_MAX),
        live: exchange.live,
        outcome: if has_ended { answer::outcome_of(answer) } else { under_way::shown(exchange.stage) },
        detail: if has_ended { detail } else { String::new() },
        charged: match (&answer.problem, exchange.live) {
            _ if !has_ended => String::new(),
            (_, false) => "0.00".to_owned(),
            (Some(problem), true) if problem.charged != Some(false) => "see Activity".to_owned(),
            (Some(_), true) => "0.00".to_owned(),
            (None, true) if answer.charged == CHARGED_UNDECIDED => "see Activity".to_owned(),
            (None, true) => answer.charged.clone(),
        },
        took: if exchange.live && has_ended { show::duration(answer.took_us) } else { String::new() },
        when: show::ago(exchange.at_secs, clock::now_secs()),
        is_shown: shown == Some(exchange.call_id),
    }
}

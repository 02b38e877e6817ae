//! Sandbox of an x402 server: any path below its address, called after one page has named the price and the wallet.
//!
//! No description tells its operations, so the form has a method, a path, parameters and JSON. What is typed is read and sent like
//! the form of a service ([`FilledForm`]), and the answer is shown like any other.
//!
//! Invariant: no more is paid than the button said.

use std::time::Instant;

use askama::Template;
use axum::{
    extract::{Path, Query, State},
    response::{IntoResponse, Redirect},
};
use farthing_bridge::{
    description::BodyKind,
    form::{BodyField, BodyInput, Form},
};
use farthing_control::types::{CallForm, X402Server};
use farthing_os::clock;
use farthing_values::{Method, ServiceId, Usdc};
use http::StatusCode;

use crate::{
    ConsoleState,
    failure::{Failure, Page},
    form::HarmlessForm,
    frame::{Frame, Section, Visit},
    headers::ShowsContent,
    history::{Answer, AskedParty, CallStage, Exchange, StoredExchange},
    icons::Icon,
    page::Rendered,
    pages::{
        register::price,
        x402::{asked_path, asks, name_of, server_of},
    },
    show,
};

use super::{
    Fields, SandboxParams,
    answer::{AnswerView, ShownAnswer},
    cost,
    filled::{Call, CallBody, FilledForm},
    preview::ContentKind,
    under_way::{self, ShownUnderWay},
    view::{Past, past},
    without_price,
};

/// Of a path on the page that asks.
const PATH_CHARS_MAX: usize = 400;
/// Of a parameter there.
const VALUE_CHARS_MAX: usize = 200;
/// Parameters there.
const PARAMETERS_SHOWN: usize = 40;
/// The fields that go on from the page that asks.
const KEPT: [&str; 5] = ["method", "path", "extra", "body", "max_price"];

/// A call as it was typed.
struct TypedCall {
    method: String,
    path: String,
    extra: String,
    body: String,
    max_price: String,
}

/// A call that can be made.
struct ReadCall {
    form: CallForm,
    call: Call,
}

#[derive(Template)]
#[template(path = "x402-call.html")]
struct ServerCallTemplate {
    frame: Frame,
    here: String,
    id: String,
    name: String,
    typed: TypedCall,
    /// Methods, and whether each is chosen.
    methods: [(&'static str, bool); 6],
    /// The highest price of the server; empty if there is none.
    limit: String,
    problem: Option<String>,
    under_way: Option<ShownUnderWay>,
    answer: Option<ShownAnswer>,
    is_forgotten: bool,
    history: Vec<Past>,
}

#[derive(Template)]
#[template(path = "x402-confirm.html")]
struct ConfirmTemplate {
    frame: Frame,
    here: String,
    name: String,
    address: String,
    operation: String,
    params: Vec<(String, String)>,
    params_hidden: usize,
    /// The size of the body; empty if there is none.
    body: String,
    /// The price that the server asked for a GET of this path, and how long ago.
    asked: Option<(String, String)>,
    most: String,
    /// The same, as it comes back.
    agreed: String,
    nonce: String,
    sent: Vec<(&'static str, String)>,
    warning: Option<cost::Warning>,
}

impl TypedCall {
    /// The form as it is first shown: the path whose price was asked last, and the highest price of the server.
    fn start(server: &X402Server) -> Self {
        Self {
            method: Method::Get.to_string(),
            path: show::visible(asked_path(server).unwrap_or_default()),
            extra: String::new(),
            body: String::new(),
            max_price: server.max_price.map_or_else(String::new, |most| most.to_string()),
        }
    }

    fn of(fields: &Fields) -> Self {
        let one = |name: &str| field(fields, name).replace("\r\n", "\n");
        Self {
            method: one("method"),
            path: one("path"),
            extra: one("extra"),
            body: one("body"),
            max_price: one("max_price"),
        }
    }

    /// # Errors
    /// What cannot be read, for the person who typed it; nothing is sent then.
    fn read(&self, filled: &FilledForm, server: &X402Server) -> Result<ReadCall, String> {
        let method: Method = self.method.parse().map_err(|_| "Choose a method.".to_owned())?;
        let path = self.path.trim();
        if path.contains(['?', '#']) {
            return Err(
                "Leave the query out of the path. Write its parameters below it, one per line.".to_owned()
            );
        }
        let slash = if path.starts_with('/') { "" } else { "/" };
        let most = price("Highest price", &self.max_price).map_err(|wrong| wrong.words())?;
        // The node pays no more in any case, so nobody agrees to more.
        let most = server.max_price.map_or(most, |limit| most.min(limit.0));
        let form = form(method, format!("{slash}{path}"), most);
        let call = filled.call(&form.form)?;
        Ok(ReadCall { form, call })
    }
}

/// The form of a call that nobody described.
fn form(method: Method, path: String, most: Usdc) -> CallForm {
    let body = BodyField {
        kind: BodyKind::Json,
        media_type: "application/json".to_owned(),
        also: Vec::new(),
        input: BodyInput::Text,
        required: false,
        type_name: String::new(),
        description: String::new(),
        example: None,
    };
    CallForm {
        method: method.into(),
        path,
        price: most.into(),
        deposit: None,
        summary: String::new(),
        description: String::new(),
        deprecated: false,
        timeout_secs: None,
        form: Form { fields: Vec::new(), any_params: true, body: Some(body) },
    }
}

fn field<'a>(fields: &'a Fields, name: &str) -> &'a str {
    fields.iter().find(|(own, _)| own == name).map_or("", |(_, value)| value.as_str())
}

pub(in crate::pages) async fn show(
    visit: Visit,
    Path(id): Path<String>,
    Query(asked): Query<SandboxParams>,
) -> Page {
    let server = server_of(visit.panel.node(), &id).await?;
    let shown = asked.call.map(|call| call.0);
    let kept = visit.panel.0.history.of(visit.session.id(), server.id.0);
    let found = kept.iter().find(|kept| Some(kept.exchange.call_id) == shown).cloned();
    let typed = found
        .as_ref()
        .map_or_else(|| TypedCall::start(&server), |found| TypedCall::of(&found.exchange.fields));
    let mut page = form_page(&visit, &server, typed, &kept).await?;
    page.history = kept.iter().map(|kept| past(kept, &page.here, shown)).collect();
    page.under_way = found.as_ref().and_then(|found| ShownUnderWay::of(&found.exchange, None));
    page.is_forgotten = shown.is_some() && found.is_none();
    if page.under_way.is_none() {
        page.answer = found.map(|found| ShownAnswer::new(&found, asked.view.as_deref()));
    }
    let mut response = Rendered(&page).into_response();
    response.extensions_mut().insert(ShowsContent);
    Ok(response)
}

/// The page of a form, without an answer.
async fn form_page(
    visit: &Visit,
    server: &X402Server,
    typed: TypedCall,
    kept: &[StoredExchange],
) -> Result<ServerCallTemplate, Failure> {
    let here = address(server.id.0);
    Ok(ServerCallTemplate {
        frame: visit.frame(Section::Catalog).await?,
        id: server.id.to_string(),
        name: name_of(server),
        methods: Method::ALL.map(|method| (method.as_str(), method.as_str() == typed.method)),
        limit: server.max_price.map_or_else(String::new, |most| show::usdc(most.0)),
        typed,
        problem: None,
        under_way: None,
        answer: None,
        is_forgotten: false,
        history: kept.iter().map(|kept| past(kept, &here, None)).collect(),
        here,
    })
}

/// Asks about a call, goes back to its form, or makes it.
pub(in crate::pages) async fn act(
    State(panel): State<ConsoleState>,
    Path(id): Path<String>,
    sent: HarmlessForm<Fields>,
) -> Page {
    let is_live = field(&sent.fields, "act") == "live";
    let HarmlessForm { visit, fields, .. } = if is_live { sent.proven()?.into() } else { sent };
    let server = server_of(panel.node(), &id).await?;
    let (typed, filled) = (TypedCall::of(&fields), FilledForm::sent(&fields));
    let session = visit.session.id();
    let read = typed.read(&filled, &server);
    if field(&fields, "act") == "change" {
        let kept = panel.0.history.of(session, server.id.0);
        return Ok(Rendered(&form_page(&visit, &server, typed, &kept).await?).into_response());
    }
    let asked = read.and_then(|read| {
        let request = is_live.then(|| filled.request(server.id.0, &read.form, &read.call)).transpose()?;
        Ok((read, request))
    });
    let (read, request) = match asked {
        Ok(asked) => asked,
        Err(problem) => {
            let kept = panel.0.history.of(session, server.id.0);
            let mut page = form_page(&visit, &server, typed, &kept).await?;
            page.problem = Some(problem);
            return Ok((StatusCode::UNPROCESSABLE_ENTITY, Rendered(&page)).into_response());
        }
    };
    let Some((call_id, request)) = request else { return confirm(&visit, &server, &typed, &read).await };
    if !filled.has_price() {
        return Err(without_price());
    }
    let begun = Exchange {
        call_id,
        service: server.id.0,
        asked: AskedParty::X402Server,
        at_secs: clock::now_secs(),
        began: Instant::now(),
        live: true,
        stage: CallStage::UnderWay,
        operation: super::name_of(&read.form),
        fields,
        answer: Answer::default(),
    };
    under_way::buy(&panel, session, begun, request).await;
    Ok(Redirect::to(&format!("{}?call={call_id}#answer", address(server.id.0))).into_response())
}

/// Names the price and the wallet of a call before it is made. Nothing is asked of the server.
async fn confirm(visit: &Visit, server: &X402Server, typed: &TypedCall, read: &ReadCall) -> Page {
    let frame = visit.frame(Section::Catalog).await?;
    let (form, most) = (&read.form, read.form.price.0);
    let terms = server
        .terms
        .as_ref()
        .filter(|_| form.method.0 == Method::Get && asked_path(server).is_some_and(|path| path == form.path));
    let params = &read.call.params;
    let shown = |text: &String| show::beginning(text, VALUE_CHARS_MAX);
    let kept = [&typed.method, &typed.path, &typed.extra, &typed.body, &typed.max_price];
    let page = ConfirmTemplate {
        here: address(server.id.0),
        name: name_of(server),
        address: show::visible(&server.url),
        operation: show::beginning(&super::name_of(form), PATH_CHARS_MAX),
        params_hidden: params.len().saturating_sub(PARAMETERS_SHOWN),
        params: params
            .iter()
            .take(PARAMETERS_SHOWN)
            .map(|(name, value)| (shown(name), shown(value)))
            .collect(),
        body: match &read.call.body {
            Some(CallBody::Typed(body)) => show::size(body.text().len() as u64),
            _ => String::new(),
        },
        asked: terms.map(|terms| (asks(terms), show::ago(terms.heard_secs, clock::now_secs()))),
        most: show::usdc(most),
        agreed: most.to_string(),
        nonce: uuid::Uuid::new_v4().simple().to_string(),
        sent: KEPT.into_iter().zip(kept.into_iter().cloned()).collect(),
        warning: cost::from_wallet(most, &frame.status),
        frame,
    };
    Ok(Rendered(&page).into_response())
}

impl ServerCallTemplate {
    fn view_link(&self, view: &AnswerView) -> String {
        let call = self.answer.as_ref().map_or("", |answer| answer.call_id.as_str());
        format!("{}?call={call}&view={}#answer", self.here, view.name())
    }
}

pub(super) fn address(id: ServiceId) -> String {
    format!("/panel/x402/{id}/call")
}

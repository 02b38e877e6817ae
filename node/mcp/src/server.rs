//! The adapter: the Model Context Protocol, on standard input and output or over HTTP, in front of the [`Toolbox`].
//!
//! Nothing but the protocol may be written to standard output. Over HTTP every request stands for itself: there are no
//! sessions that a caller could open without end, and each request acts for the secret that it presented.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use farthing_control::{ControlClient, Local};
use farthing_values::limits;
use rmcp::{
    ErrorData, Peer, RoleServer, ServerHandler, ServiceExt,
    model::{
        CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ElicitRequest,
        ElicitRequestParams, ElicitResult, ElicitationAction, ElicitationSchema, Implementation,
        InputRequest, InputRequiredResult, JsonObject, ListToolsResult, PaginatedRequestParams,
        ProtocolVersion, ServerCapabilities, ServerConfig, Tool, ToolAnnotations,
    },
    service::{RequestContext, ServerInitializeError},
    transport::{
        async_rw::AsyncRwTransport,
        stdio,
        streamable_http_server::{
            StreamableHttpServerConfig, StreamableHttpService, session::never::NeverSessionManager,
        },
    },
};
use serde_json::{Value, json};

use crate::{
    Arguments, PresentedSecret, ToolAnswer, Trouble,
    delivery::{Conversation, ConversationTransport},
    node::AskedNode,
    pinned::PinnedTool,
    toolbox::{Caller, NotDone, Toolbox, Unconfirmed},
    tools::{INSTRUCTIONS, ToolName},
};

/// The longest time that a user takes to confirm a price.
const CONFIRMED_WITHIN: Duration = Duration::from_secs(300);
/// The most questions about one call: each comes of a price that has risen since.
const QUESTIONS_MAX: usize = 3;
/// The name of the one question in a result that asks.
const QUESTION: &str = "price";

/// An error that ends the conversation with an agent.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    #[error("the agent does not speak the Model Context Protocol: {0}")]
    Protocol(String),
    #[error("the conversation with the agent broke off: {0}")]
    BrokenOff(String),
}

impl ServeError {
    #[must_use]
    pub const fn next_step(&self) -> &'static str {
        match self {
            Self::Protocol(_) => "start it from a program that speaks the protocol; see docs/agents.md",
            Self::BrokenOff(_) => "start it again",
        }
    }
}

/// Serves an agent on standard input and output until it ends the conversation. The agent buys with the secret of this
/// name, within its limits.
pub async fn serve(node: ControlClient, secret: &str) -> Result<(), ServeError> {
    let toolbox = Arc::new(Toolbox::of(AskedNode::Socket(node)));
    // What this process keeps is for this conversation alone, so the age of the secret does not matter.
    let secret = PresentedSecret { name: secret.to_owned(), since_secs: 0 };
    let conversation = Arc::new(Conversation::new(Arc::clone(&toolbox), secret));
    let (input, output) = stdio();
    let transport =
        ConversationTransport::new(AsyncRwTransport::new_server(input, output), Arc::clone(&conversation));
    let tools = AgentTools { toolbox, conversation: Some(conversation) };
    let running = match tools.serve(transport).await {
        Ok(running) => running,
        // It looked whether the program starts.
        Err(ServerInitializeError::ConnectionClosed(_)) => return Ok(()),
        Err(error) => return Err(ServeError::Protocol(error.to_string())),
    };
    running.waiting().await.map(drop).map_err(|error| ServeError::BrokenOff(error.to_string()))
}

/// The same tools as a service at an address of the node's own port. Each request has its [`PresentedSecret`] among
/// its extensions. Whether its host and its origin are allowed is the port's to say.
#[must_use]
pub fn over_http(node: Local) -> StreamableHttpService<AgentTools, NeverSessionManager> {
    let toolbox = Arc::new(Toolbox::of(AskedNode::Inside(node)));
    let config = StreamableHttpServerConfig::default()
        .disable_allowed_hosts()
        .with_legacy_session_mode(false)
        .with_json_response(true)
        .with_max_request_body_bytes(limits::REQUEST_BODY_BYTES_MAX + limits::CALL_HEAD_BYTES_MAX);
    let tools = move || Ok(AgentTools { toolbox: Arc::clone(&toolbox), conversation: None });
    StreamableHttpService::new(tools, Arc::default(), config)
}

/// The tools of one agent.
#[derive(Debug)]
pub struct AgentTools {
    toolbox: Arc<Toolbox>,
    /// The conversation on standard input and output, whose secret counts. `None` over HTTP: each request has its own secret.
    conversation: Option<Arc<Conversation>>,
}

impl ServerHandler for AgentTools {
    fn get_info(&self) -> ServerConfig {
        let program = Implementation::new("farthing", env!("CARGO_PKG_VERSION")).with_title("Farthing");
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
            .with_server_info(program)
            .with_instructions(INSTRUCTIONS)
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let pinned = self.toolbox.pinned(&self.secret(&context)?.name).await;
        let own = ToolName::ALL.into_iter().map(offered);
        Ok(ListToolsResult::with_all_items(own.chain(pinned.iter().map(offered_for)).collect()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let secret = self.secret(&context)?;
        if let Some(conversation) = &self.conversation {
            conversation.delivered().await;
        }
        let mut ended = None;
        let response = self.respond(&request, &context, &secret, &mut ended).await?;
        // A request that was cancelled gets no response: its agent, or the connection, is gone.
        if let Some(call_id) = ended.filter(|_| !context.ct.is_cancelled()) {
            match &self.conversation {
                Some(conversation) => conversation.ends_call(context.id, call_id),
                None => self.toolbox.end(&secret.name, call_id).await,
            }
        }
        Ok(response)
    }
}

impl AgentTools {
    /// Uses the tool that a request names, and asks the user as often as it takes.
    async fn respond(
        &self,
        request: &CallToolRequestParams,
        context: &RequestContext<RoleServer>,
        secret: &PresentedSecret,
        ended: &mut Option<String>,
    ) -> Result<CallToolResponse, ErrorData> {
        let (tool, arguments) = match self.named(secret, request).await {
            Ok(Some(named)) => named,
            Ok(None) => return Err(ErrorData::invalid_params("there is no tool of this name", None)),
            Err(trouble) => return Ok(result(Err(trouble)).into()),
        };
        let holder = secret.holder();
        let mut token = match confirmed_later(request) {
            Ok(token) => token.map(str::to_owned),
            Err(token) => return Ok(result(Err(self.toolbox.decline(&holder, token))).into()),
        };
        let mut questions = 0;
        loop {
            let caller =
                Caller { secret: &secret.name, holder: &holder, token: token.take(), ended: &mut *ended };
            let unconfirmed = match self.toolbox.answer(caller, tool, arguments.clone()).await {
                Err(NotDone::Unconfirmed(unconfirmed)) => unconfirmed,
                Err(NotDone::Failed(trouble)) => return Ok(result(Err(trouble)).into()),
                Ok(answer) => return Ok(result(Ok(answer)).into()),
            };
            questions += 1;
            match self.access(context) {
                UserAccess::Now => {
                    if questions > QUESTIONS_MAX || !agrees(&context.peer, &unconfirmed).await {
                        return Ok(result(Err(unconfirmed.refused())).into());
                    }
                    token = Some(unconfirmed.token);
                }
                UserAccess::Later => return Ok(to_be_confirmed(&unconfirmed).into()),
                UserAccess::InConsole => match self.toolbox.approved(&secret.name, unconfirmed).await {
                    Ok(approved) => token = Some(approved),
                    Err(trouble) => return Ok(result(Err(trouble)).into()),
                },
            }
        }
    }

    fn secret(&self, context: &RequestContext<RoleServer>) -> Result<PresentedSecret, ErrorData> {
        let presented =
            || context.extensions.get::<http::request::Parts>()?.extensions.get::<PresentedSecret>();
        let own = self.conversation.as_ref().map(|conversation| conversation.secret());
        let secret = own.or_else(presented);
        secret.cloned().ok_or_else(|| ErrorData::internal_error("the request has no secret", None))
    }

    /// The tool that a request names, with its arguments: for a pinned tool, those of the call that it stands for.
    async fn named(
        &self,
        secret: &PresentedSecret,
        request: &CallToolRequestParams,
    ) -> Result<Option<(ToolName, Option<Arguments>)>, Trouble> {
        if let Some(tool) = ToolName::named(&request.name) {
            return Ok(Some((tool, request.arguments.clone())));
        }
        let pinned = self.toolbox.pinned(&secret.name).await;
        let Some(tool) = pinned.iter().find(|tool| tool.name == request.name) else { return Ok(None) };
        let arguments = tool.call(request.arguments.clone())?;
        Ok(Some((ToolName::CallService, Some(arguments))))
    }

    /// Over HTTP no question gets to a program while it waits for the result, whatever it says that it shows.
    fn access(&self, context: &RequestContext<RoleServer>) -> UserAccess {
        match UserAccess::of(context) {
            UserAccess::Now if self.conversation.is_none() => UserAccess::InConsole,
            access => access,
        }
    }
}

/// A way to ask the agent's user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum UserAccess {
    /// While the agent waits for the result.
    Now,
    /// By a result that asks, to which the same request comes again with an answer.
    Later,
    /// In the console of the node: the agent's program shows no forms, or nothing is known of it.
    InConsole,
}

impl UserAccess {
    fn of(context: &RequestContext<RoleServer>) -> Self {
        let forms = context.client_capabilities().and_then(|client| client.elicitation);
        // Programs of before say neither.
        let has_forms = forms.is_some_and(|forms| forms.form.is_some() || forms.url.is_none());
        let asks_later =
            context.protocol_version().is_some_and(|version| version >= ProtocolVersion::V_2026_07_28);
        match (has_forms, asks_later) {
            (false, _) => Self::InConsole,
            (true, false) => Self::Now,
            (true, true) => Self::Later,
        }
    }
}

/// A form without fields: to send it is to agree.
fn question(unconfirmed: &Unconfirmed) -> ElicitRequestParams {
    ElicitRequestParams::FormElicitationParams {
        meta: None,
        message: unconfirmed.question(),
        requested_schema: ElicitationSchema::new(BTreeMap::new()),
    }
}

/// Asks the user, and waits. Anything but a yes in time is a no.
async fn agrees(peer: &Peer<RoleServer>, unconfirmed: &Unconfirmed) -> bool {
    let answered = peer.create_elicitation_with_timeout(question(unconfirmed), Some(CONFIRMED_WITHIN)).await;
    matches!(answered, Ok(ElicitResult { action: ElicitationAction::Accept, .. }))
}

/// A result that asks the user. The token is its state: only this program knows what it stands for.
fn to_be_confirmed(unconfirmed: &Unconfirmed) -> InputRequiredResult {
    let asked = InputRequest::Elicitation(ElicitRequest::new(question(unconfirmed)));
    let asked = BTreeMap::from([(QUESTION.to_owned(), asked)]);
    InputRequiredResult::new(Some(asked), Some(unconfirmed.token.clone()))
}

/// The token of a question that an earlier result asked: `Ok` if the user agreed, `Err` if not.
fn confirmed_later(request: &CallToolRequestParams) -> Result<Option<&str>, &str> {
    let Some(token) = request.request_state.as_deref() else { return Ok(None) };
    let answer = request.input_responses.as_ref().and_then(|answers| answers.get(QUESTION));
    if answer.is_some_and(|answer| answer["action"] == "accept") { Ok(Some(token)) } else { Err(token) }
}

/// A tool as the protocol has it.
fn offered(tool: ToolName) -> Tool {
    let schema = match tool.schema() {
        Value::Object(schema) => schema,
        _ => JsonObject::new(),
    };
    let hints = ToolAnnotations::with_title(tool.title())
        .read_only(!tool.costs())
        .destructive(tool.costs())
        .idempotent(!tool.costs())
        .open_world(true);
    Tool::new(tool.name(), tool.description(), schema).with_title(tool.title()).with_annotations(hints)
}

/// A pinned tool as the protocol has it.
fn offered_for(tool: &PinnedTool) -> Tool {
    let hints = ToolAnnotations::with_title(tool.title())
        .read_only(false)
        .destructive(true)
        .idempotent(false)
        .open_world(true);
    Tool::new(tool.name.clone(), tool.description(), tool.schema())
        .with_title(tool.title())
        .with_annotations(hints)
}

/// A result as the protocol has it: in words, and as data both in its own place and as text, for agents that read only text.
fn result(done: Result<ToolAnswer, Trouble>) -> CallToolResult {
    match done {
        Ok(ToolAnswer { text, structured }) => {
            let content = vec![ContentBlock::text(text), ContentBlock::text(structured.to_string())];
            let mut result = CallToolResult::success(content);
            result.structured_content = Some(structured);
            result
        }
        Err(trouble) => {
            let mut result = CallToolResult::error(vec![ContentBlock::text(trouble.words())]);
            result.structured_content = Some(json!({ "error": trouble }));
            result
        }
    }
}

#[cfg(test)]
mod tests {
    use farthing_values::Usdc;

    use super::*;

    #[test]
    fn a_tool_is_offered_with_its_schema_and_with_hints_about_money() {
        for tool in ToolName::ALL {
            let offered = serde_json::to_value(offered(tool)).unwrap();
            assert_eq!((&offered["name"], &offered["inputSchema"]), (&json!(tool.name()), &tool.schema()));
            assert_eq!(offered["annotations"]["readOnlyHint"], json!(!tool.costs()), "{offered}");
        }
    }

    #[test]
    fn a_question_to_which_the_request_comes_again_is_answered_by_a_yes_alone() {
        let unconfirmed = Unconfirmed {
            call_id: "c1".to_owned(),
            price: Usdc::from_micros(2_000),
            above: Usdc::ZERO,
            token: "t1".to_owned(),
            service_name: None,
            request: serde_json::from_value(json!({
                "api_id_public": "0b5f2a3e-6a3c-4c39-9a65-6a1c3f1d2e4b", "method": "GET", "path": "/a",
            }))
            .unwrap(),
        };
        let asked = serde_json::to_value(to_be_confirmed(&unconfirmed)).unwrap();
        assert_eq!((&asked["resultType"], &asked["requestState"]), (&json!("input_required"), &json!("t1")));
        let question = &asked["inputRequests"][QUESTION];
        assert_eq!(question["method"], "elicitation/create");
        assert!(question["params"]["message"].as_str().unwrap().contains("0.002 USDC"), "{asked}");

        let again = |answer: Option<Value>| {
            let mut request = CallToolRequestParams::new("call_service");
            request.request_state = Some("t1".to_owned());
            request.input_responses = answer.map(|answer| BTreeMap::from([(QUESTION.to_owned(), answer)]));
            confirmed_later(&request).is_ok_and(|token| token == Some("t1"))
        };
        assert!(again(Some(json!({ "action": "accept", "content": {} }))));
        for no in
            [None, Some(json!({ "action": "decline" })), Some(json!({ "content": {} })), Some(json!("yes"))]
        {
            assert!(!again(no.clone()), "{no:?}");
        }
        assert_eq!(confirmed_later(&CallToolRequestParams::new("call_service")), Ok(None));
    }

    #[test]
    fn a_result_is_words_and_data_and_a_trouble_is_an_error_with_its_next_step() {
        let answer = ToolAnswer { text: "Done.".to_owned(), structured: json!({ "status": 200 }) };
        let told = serde_json::to_value(result(Ok(answer))).unwrap();
        assert_eq!(
            (&told["isError"], &told["structuredContent"]),
            (&json!(false), &json!({ "status": 200 }))
        );
        assert_eq!(
            (&told["content"][0]["text"], &told["content"][1]["text"]),
            (&json!("Done."), &json!("{\"status\":200}"))
        );
        let told =
            serde_json::to_value(result(Err(Trouble::new("a-code", "it failed", "Do this.")))).unwrap();
        assert_eq!(told["isError"], true);
        assert_eq!(told["structuredContent"]["error"]["next"], "Do this.");
        assert!(told["content"][0]["text"].as_str().unwrap().contains("Next: Do this."), "{told}");
    }
}

//! The adapter: the protocol on standard input and output, and the node over its control socket.
//!
//! Nothing but the protocol may be written to standard output.

use farthing_control::{
    ControlClient, endpoint,
    types::{CallRequest, HEADER_PRICE},
};
use parking_lot::Mutex;
use rmcp::{
    ErrorData, RoleServer, ServerHandler, ServiceExt,
    model::{
        CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, Implementation, JsonObject,
        ListToolsResult, PaginatedRequestParams, ServerCapabilities, ServerConfig, Tool, ToolAnnotations,
    },
    service::{RequestContext, ServerInitializeError},
    transport::stdio,
};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::{
    Arguments, ToolAnswer, Trouble,
    arguments::{
        CallArguments, NoArguments, ReadArguments, SearchArguments, ServiceArguments, fingerprint, read,
    },
    catalog,
    kept::Kept,
    money,
    paid::{self, BoughtAnswer},
    tools::{INSTRUCTIONS, ToolName},
};

/// An error that ends the conversation with an agent.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    #[error("the agent does not speak the Model Context Protocol: {0}")]
    Protocol(String),
    #[error("the conversation with the agent broke off: {0}")]
    BrokenOff(String),
}

/// Serves an agent on standard input and output until it ends the conversation. The agent buys with the secret of this
/// name, within its limits.
///
/// # Errors
/// [`ServeError`].
pub async fn serve(node: ControlClient, secret: &str) -> Result<(), ServeError> {
    let tools = AgentTools { node, secret: secret.to_owned(), kept: Mutex::default() };
    let running = match tools.serve(stdio()).await {
        Ok(running) => running,
        // It looked whether the program starts.
        Err(ServerInitializeError::ConnectionClosed(_)) => return Ok(()),
        Err(error) => return Err(ServeError::Protocol(error.to_string())),
    };
    running.waiting().await.map(drop).map_err(|error| ServeError::BrokenOff(error.to_string()))
}

/// The tools of one agent.
#[derive(Debug)]
struct AgentTools {
    node: ControlClient,
    /// Name of the consumer secret whose limits apply.
    secret: String,
    kept: Mutex<Kept>,
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
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(ToolName::ALL.into_iter().map(offered).collect()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let Some(tool) = ToolName::named(&request.name) else {
            return Err(ErrorData::invalid_params("there is no tool of this name", None));
        };
        let done = self.answer(tool, request.arguments, || !context.ct.is_cancelled()).await;
        Ok(result(done).into())
    }
}

impl AgentTools {
    async fn answer(
        &self,
        tool: ToolName,
        arguments: Option<Arguments>,
        is_awaited: impl Fn() -> bool + Send + Sync,
    ) -> Result<ToolAnswer, Trouble> {
        match tool {
            ToolName::SearchCatalog => {
                let query = read::<SearchArguments>(tool, arguments)?.query();
                Ok(catalog::found(&self.node.tell(endpoint::CatalogSearch, &query).await?))
            }
            ToolName::DescribeService => {
                let asked: ServiceArguments = read(tool, arguments)?;
                self.describe(&asked).await
            }
            ToolName::GetSample => {
                let asked: ServiceArguments = read(tool, arguments)?;
                let wanted = asked.operation()?;
                let samples = self.node.ask(endpoint::CatalogSamples.of(asked.service)).await?;
                catalog::sampled(&samples, wanted.as_ref())
            }
            ToolName::SpendingStatus => {
                let NoArguments {} = read(tool, arguments)?;
                let secrets = self.node.ask(endpoint::Secrets).await?;
                let state = self.node.ask(endpoint::Spending).await?;
                money::status(&secrets, &state, &self.secret)
            }
            ToolName::CallService => self.call(read(tool, arguments)?, is_awaited).await,
            ToolName::ReadAnswer => {
                let ReadArguments { call_id, offset } = read(tool, arguments)?;
                let body = self.kept.lock().body(&call_id);
                paid::further(body.as_deref(), &call_id, offset)
            }
        }
    }

    async fn describe(&self, asked: &ServiceArguments) -> Result<ToolAnswer, Trouble> {
        match asked.operation()? {
            None => Ok(catalog::described(&self.node.ask(endpoint::CatalogService.of(asked.service)).await?)),
            Some((method, path)) => {
                let at =
                    endpoint::CatalogReference.of(asked.service).with("method", method).with("path", path);
                Ok(catalog::in_full(&self.node.ask(at).await?))
            }
        }
    }

    /// Buys a call. Until its end is known, a repeat without a call id gets its id: an agent that stops waiting and asks
    /// again pays once.
    async fn call(
        &self,
        arguments: CallArguments,
        is_awaited: impl Fn() -> bool + Send + Sync,
    ) -> Result<ToolAnswer, Trouble> {
        let request = arguments.request()?;
        let print = fingerprint(&request);
        let known = request.call_id.clone().or_else(|| self.kept.lock().open_call(print));
        let is_repeat = known.is_some();
        let call_id = known.unwrap_or_else(|| Uuid::new_v4().to_string());
        let request = CallRequest { call_id: Some(call_id.clone()), ..request };
        self.kept.lock().open(print, &call_id);
        let answer = self.node.tell_raw(endpoint::CallWithSecret.of(&self.secret), &request).await;
        let done = match answer {
            // The service's answer has its price, also one that is free; anything else is the network's.
            Ok(answer) if !answer.headers.contains_key(HEADER_PRICE) => {
                Err(paid::refused(&answer, &call_id, is_repeat))
            }
            Ok(answer) => Ok(self.keep(paid::bought(&answer, &call_id), &call_id)),
            Err(error) => Err(paid::unanswered(error, &call_id, is_repeat)),
        };
        if is_awaited() && done.as_ref().err().is_none_or(Trouble::is_of_known_end) {
            self.kept.lock().close(&call_id);
        }
        done
    }

    fn keep(&self, bought: BoughtAnswer, call_id: &str) -> ToolAnswer {
        if let Some(rest) = bought.rest {
            self.kept.lock().keep(call_id, rest);
        }
        bought.answer
    }
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

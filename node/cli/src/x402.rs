//! `farthing x402`: servers that are no nodes, and that this node pays for each call.

use clap::Subcommand;
use farthing_control::{
    endpoint,
    types::{NewX402Server, X402Server},
};
use farthing_os::clock;
use farthing_protocol::ServiceId;

use super::{
    Context,
    failure::Failure,
    output::{pairs, table},
};

#[derive(Debug, Subcommand)]
pub enum X402 {
    /// List the x402 servers that this node buys from
    List,
    /// Add an x402 server; `farthing call` and your programs call its paths under the id that it gets
    Add {
        /// Address of the server, such as https://data.example/api
        url: String,
    },
    /// Remove an x402 server; the records of its calls stay
    Remove {
        /// The server's id, as listed
        id: ServiceId,
    },
}

pub(super) async fn x402(context: &Context, verb: X402) -> Result<(), Failure> {
    let node = context.node()?;
    match verb {
        X402::List => {
            let servers = node.ask(endpoint::X402Servers).await?;
            if servers.is_empty() {
                context.output.prose("No x402 servers. Add one with `farthing x402 add URL`.");
            }
            context.output.data(&servers, |servers| list(servers))
        }
        X402::Add { url } => {
            let server = node.tell(endpoint::AddX402Server, &NewX402Server { url }).await?;
            context.output.data(&server, text)?;
            context.output.prose(&format!(
                "Call it with `farthing call {} GET /PATH --max-price USDC`; each call needs a highest price.",
                server.id
            ));
            Ok(())
        }
        X402::Remove { id } => {
            let server = node.ask(endpoint::RemoveX402Server.of(id)).await?;
            context.output.prose("Removed. Payments that are under way end as before.");
            context.output.data(&server, text)
        }
    }
}

fn list(servers: &[X402Server]) -> String {
    let rows = servers
        .iter()
        .map(|server| [server.id.to_string(), server.url.clone(), clock::timestamp(server.added_secs)]);
    table(["ID", "ADDRESS", "ADDED"], rows)
}

fn text(server: &X402Server) -> String {
    pairs([
        ("Id", server.id.to_string()),
        ("Address", server.url.clone()),
        ("Added", clock::timestamp(server.added_secs)),
    ])
}

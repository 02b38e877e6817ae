//! `farthing x402`: servers that are no nodes, and that this node pays for each call.

use clap::Subcommand;
use farthing_control::{
    ControlClient, endpoint,
    types::{NewX402Server, X402Question, X402Server, X402Terms},
};
use farthing_os::clock;
use farthing_protocol::{ServiceId, Usdc};

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
        /// Highest price of a call of this server, in USDC, whatever the call allows
        #[arg(long, value_name = "USDC", allow_negative_numbers = true)]
        max_price: Option<Usdc>,
    },
    /// Ask an x402 server what a GET costs at an address; nothing is paid
    Ask {
        /// Address of the server or of a path of it, such as https://data.example/api/v1/quakes
        url: String,
    },
    /// Remove an x402 server; the records of its calls stay
    Remove {
        /// The server's id, as listed
        id: ServiceId,
        /// Remove it without asking
        #[arg(long)]
        yes: bool,
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
        X402::Add { url, max_price } => {
            let new = NewX402Server { url, max_price: max_price.map(Into::into) };
            let server = node.tell(endpoint::AddX402Server, &new).await?;
            context.output.data(&server, text)?;
            context.output.prose(&format!(
                "Call it with `farthing call {} GET /PATH --max-price USDC`; each call needs a highest price.",
                server.id
            ));
            Ok(())
        }
        X402::Ask { url } => {
            let terms = node.tell(endpoint::AskX402Server, &X402Question { url }).await?;
            context.output.data(&terms, |terms| pairs(facts(terms)))
        }
        X402::Remove { id, yes } => {
            if !yes {
                confirm_end(context, &node, id).await?;
            }
            let server = node.ask(endpoint::RemoveX402Server.of(id)).await?;
            context.output.prose("Removed. Payments that are under way end as before.");
            context.output.data(&server, text)
        }
    }
}

/// Asks before calls of a server end. About one that is not there, the node has the word.
async fn confirm_end(context: &Context, node: &ControlClient, id: ServiceId) -> Result<(), Failure> {
    let servers = node.ask(endpoint::X402Servers).await?;
    let found = servers.iter().find(|server| server.id.0 == id);
    found.map_or(Ok(()), |server| {
        context.output.confirm(&format!(
            "Remove {}? Programs that use its UUID stop working; if you add it again, it gets another UUID.",
            server.url
        ))
    })
}

fn list(servers: &[X402Server]) -> String {
    let rows = servers.iter().map(|server| {
        let price = server.terms.as_ref().map_or_else(|| "not asked yet".to_owned(), price);
        let most = server.max_price.map_or_else(|| "-".to_owned(), |most| format!("{most} USDC"));
        [server.id.to_string(), server.url.clone(), price, most, clock::timestamp(server.added_secs)]
    });
    table(["ID", "ADDRESS", "ASKED LAST", "HIGHEST PRICE", "ADDED"], rows)
}

fn text(server: &X402Server) -> String {
    let mut rows = vec![
        ("Id", server.id.to_string()),
        ("Address", server.url.clone()),
        ("Added", clock::timestamp(server.added_secs)),
    ];
    rows.extend(server.max_price.map(|most| ("Highest price", format!("{most} USDC"))));
    rows.extend(server.terms.iter().flat_map(facts));
    pairs(rows)
}

/// The terms of a server, in rows.
fn facts(terms: &X402Terms) -> Vec<(&'static str, String)> {
    let mut rows = vec![("Asks", price(terms))];
    rows.extend(terms.network.clone().map(|network| ("Network", network)));
    rows.extend(terms.pay_to.map(|wallet| ("Pays to", wallet.to_string())));
    rows.extend(terms.description.clone().map(|words| ("Says", words)));
    rows.extend(terms.refused.clone().map(|reason| ("Not paid", reason)));
    rows
}

/// The price in words, or that there is none.
fn price(terms: &X402Terms) -> String {
    match (terms.price, terms.status) {
        (Some(price), _) => format!("{price} USDC"),
        (None, 402) => "a payment that this node does not make".to_owned(),
        (None, status) => format!("nothing here (status {status})"),
    }
}

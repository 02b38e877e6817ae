//! The notes of the user about others: stars of services, and names of owners. Other nodes do not see them.

use clap::Subcommand;
use farthing_control::{
    ControlClient, endpoint,
    types::{NewPetname, Petname, StarRequest, StarredService},
};
use farthing_protocol::Address;

use crate::{
    Context,
    failure::Failure,
    output::table,
    pick::{self, ServiceName},
};

#[derive(Debug, Subcommand)]
pub enum Marks {
    /// Star a service: the console lists it above the search of the catalog
    Star {
        /// Service: its name, its UUID from `farthing catalog search`, or the first digits of the UUID
        service: ServiceName,
    },
    /// Remove the star of a service
    Unstar {
        /// Service: its name, its UUID from `farthing catalog starred`, or the first digits of the UUID
        service: ServiceName,
    },
    /// List the services that you starred
    Starred,
    /// Give an owner a name that only your node knows
    Name {
        /// Wallet of the owner
        wallet: Address,
        /// Up to 40 characters; no two owners have the same name
        name: String,
    },
    /// Remove the name that you gave to an owner
    Unname {
        /// Wallet of the owner
        wallet: Address,
    },
    /// List the names that you gave to owners
    Names,
}

pub(super) async fn mark(context: &Context, node: &ControlClient, verb: Marks) -> Result<(), Failure> {
    match verb {
        Marks::Star { service } => star(context, node, service, true).await,
        Marks::Unstar { service } => star(context, node, service, false).await,
        Marks::Starred => {
            let starred = node.ask(endpoint::Starred).await?;
            if starred.is_empty() {
                context.output.prose("No starred services. Star one with `farthing catalog star SERVICE`.");
            }
            context.output.data(&starred, |starred| services(starred))
        }
        Marks::Name { wallet, name } => call_owner(context, node, wallet, name).await,
        Marks::Unname { wallet } => call_owner(context, node, wallet, String::new()).await,
        Marks::Names => {
            let named = node.ask(endpoint::Petnames).await?;
            if named.is_empty() {
                context.output.prose("No names. Give one with `farthing catalog name WALLET NAME`.");
            }
            context.output.data(&named, |named| owners(named))
        }
    }
}

async fn star(
    context: &Context,
    node: &ControlClient,
    service: ServiceName,
    starred: bool,
) -> Result<(), Failure> {
    let service = pick::of_network(context, node, service).await?;
    let one = node.tell(endpoint::StarService.of(service), &StarRequest { starred }).await?;
    context.output.prose(if starred { "Starred." } else { "Star removed." });
    context.output.data(&one, |one| services(std::slice::from_ref(one)))
}

async fn call_owner(
    context: &Context,
    node: &ControlClient,
    wallet: Address,
    name: String,
) -> Result<(), Failure> {
    let named = node.tell(endpoint::GivePetname.of(wallet), &NewPetname { name }).await?;
    context.output.prose(if named.name.is_empty() { "Name removed." } else { "Named." });
    context.output.data(&named, |named| owners(std::slice::from_ref(named)))
}

fn services(starred: &[StarredService]) -> String {
    table(["SERVICE", "NAME"], starred.iter().map(|one| [one.id.to_string(), one.name.clone()]))
}

fn owners(named: &[Petname]) -> String {
    table(["OWNER", "NAME"], named.iter().map(|one| [one.wallet.to_string(), one.name.clone()]))
}

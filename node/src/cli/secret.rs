//! `farthing secret`: what scripts present to the gateway.

use super::{Context, args, failure::Failure};
use crate::control::types::{Secret, route};

pub(super) async fn secret(context: &Context, verb: &args::Secret) -> Result<(), Failure> {
    let node = context.node()?;
    let secret: Secret = match verb {
        args::Secret::Show => node.get(route::SECRET).await?,
        args::Secret::Rotate => {
            let secret = node.post(route::SECRET_ROTATE, &()).await?;
            context.output.prose("The old secret is refused from now on.");
            secret
        }
    };
    context.output.data(&secret, |secret| secret.secret.clone())
}

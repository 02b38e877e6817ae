//! Reachability of the node: what was found, in plain words, and what to forward.

use askama::Template;
use axum::{
    extract::State,
    response::{IntoResponse, Redirect},
};
use farthing_control::{
    endpoint,
    types::{Reach, ReachState},
};

use crate::{
    ConsoleState,
    failure::{Failure, Page},
    form::{Form, NoFields},
    frame::{Frame, Section, Visit},
    page::Rendered,
};

use super::SetupStep;

#[derive(Template)]
#[template(path = "setup-reach.html")]
struct ReachTemplate {
    frame: Frame,
    step: SetupStep,
    reach: Reach,
    transports: [(&'static str, ReachState); 2],
}

pub(in crate::pages) async fn show(visit: Visit) -> Page {
    let frame = visit.frame(Section::Home).await?;
    let reach = visit.panel.node().ask(endpoint::Reached).await?;
    let transports = [("TCP", reach.tcp), ("UDP", reach.quic)];
    Ok(Rendered(&ReachTemplate { frame, step: SetupStep::Reach, transports, reach }).into_response())
}

impl ReachTemplate {
    /// Names the ports that a router has to forward.
    fn ports(&self) -> String {
        match (self.reach.tcp_port, self.reach.udp_port) {
            (Some(tcp), Some(udp)) if tcp == udp => format!("port {tcp}, TCP and UDP,"),
            (Some(tcp), Some(udp)) => format!("TCP port {tcp} and UDP port {udp}"),
            (Some(tcp), None) => format!("TCP port {tcp}"),
            (None, Some(udp)) => format!("UDP port {udp}"),
            (None, None) => "the ports of `network.listen`".to_owned(),
        }
    }

    fn is_reachable(&self) -> bool {
        self.transports.iter().any(|(_, state)| *state == ReachState::Reachable)
    }
}

/// Asks peers to dial this node now.
pub(in crate::pages) async fn test(
    State(panel): State<ConsoleState>,
    _: Form<NoFields>,
) -> Result<Redirect, Failure> {
    panel.node().ask(endpoint::TestReach).await?;
    Ok(Redirect::to(SetupStep::Reach.path()))
}

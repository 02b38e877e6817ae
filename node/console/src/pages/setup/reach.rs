//! Reachability of the node: what was found, in plain words, and what to forward.

use askama::Template;
use axum::{
    extract::Query,
    response::{IntoResponse, Redirect},
};
use farthing_control::{
    endpoint,
    types::{Reach, ReachState},
};

use crate::{
    failure::{Failure, Page},
    form::NoFields,
    frame::{Frame, Section, Visit},
    page::Rendered,
};

use super::{
    SetupStep,
    answers::{AnswerParams, SetupAnswer, SetupForm},
};

#[derive(Template)]
#[template(path = "setup-reach.html")]
struct ReachTemplate {
    frame: Frame,
    step: SetupStep,
    reach: Reach,
    transports: [(&'static str, ReachState); 2],
    problem: Option<String>,
}

pub(in crate::pages) async fn show(visit: Visit, Query(asked): Query<AnswerParams>) -> Page {
    let frame = visit.frame(Section::Home).await?;
    let reach = visit.panel.node().ask(endpoint::Reached).await?;
    let transports = transports(&reach);
    let problem = match visit.panel.setup_answers().get(Some(visit.session.id()), &asked.answer) {
        Some(SetupAnswer::Mistake(mistake)) => Some(mistake.problem),
        Some(SetupAnswer::Words | SetupAnswer::Done(_)) | None => None,
    };
    Ok(Rendered(&ReachTemplate { frame, step: SetupStep::Reach, transports, reach, problem }).into_response())
}

const fn transports(reach: &Reach) -> [(&'static str, ReachState); 2] {
    [("TCP", reach.tcp), ("UDP", reach.quic)]
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
        self.reach.reachable || !self.reach.relays.is_empty()
    }
}

/// Asks peers to dial this node now.
pub(in crate::pages) async fn test(SetupForm(form): SetupForm<NoFields>) -> Result<Redirect, Failure> {
    form.visit.panel.node().ask(endpoint::TestReach).await?;
    Ok(Redirect::to(SetupStep::Reach.path()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;

    #[test]
    fn the_step_is_done_for_who_is_reached_directly_or_through_relays() {
        use ReachState::{NotReachable, Reachable};
        for (summary, states, relays, next) in [
            ("TCP reachable.", [Reachable, NotReachable], &[][..], "Continue"),
            ("Callers reach this node through the relay 0x….", [NotReachable; 2], &[1][..], "Continue"),
            ("No connected node is a relay.", [NotReachable; 2], &[][..], "Skip for now"),
        ] {
            let reach = testing::reach(summary, states, relays);
            let transports = transports(&reach);
            let page = ReachTemplate {
                frame: testing::frame(),
                step: SetupStep::Reach,
                transports,
                reach,
                problem: None,
            };
            let html = page.render().unwrap();
            assert!(html.contains(&format!("<p class=\"found-out\">{summary}</p>")), "{html}");
            assert!(html.contains(&format!(">{next}</a>")), "{summary}: {html}");
        }
    }
}

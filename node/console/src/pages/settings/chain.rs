//! Settings of the chain: endpoints that are tested before they are taken, and how deep a deposit must lie.

use askama::Template;
use farthing_control::{
    endpoint,
    types::{ChainSettings, ChainSettingsRequest, EndpointTested, SettingOrigin, Text},
};
use serde::Deserialize;

use crate::{
    failure::Page,
    form::Form,
    frame::{Frame, Section, Visit},
    page::answer,
    pages::register::told,
    show,
};

#[derive(Template)]
#[template(path = "settings-chain.html")]
struct ChainTemplate {
    frame: Frame,
    settings: ChainSettings,
    confirmations: String,
    tested: Vec<EndpointTested>,
    problem: Option<String>,
}

impl ChainTemplate {
    fn words(origin: &Text<SettingOrigin>) -> String {
        show::visible(&origin.to_string())
    }
}

pub(in crate::pages) async fn show(visit: Visit) -> Page {
    page(&visit, None, Vec::new(), None).await
}

async fn page(
    visit: &Visit,
    typed: Option<String>,
    tested: Vec<EndpointTested>,
    problem: Option<String>,
) -> Page {
    let settings = visit.panel.node().ask(endpoint::ChainSettings).await?;
    let page = ChainTemplate {
        frame: visit.frame(Section::Settings).await?,
        confirmations: typed.unwrap_or_else(|| settings.confirmations.to_string()),
        settings,
        tested,
        problem,
    };
    Ok(answer(&page, page.problem.as_ref()))
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(in crate::pages) struct ChainFields {
    /// One address a line; empty leaves those of now.
    rpc_urls: String,
    confirmations: String,
    reset: Option<String>,
}

impl ChainFields {
    fn request(&self, now: &ChainSettings) -> Result<ChainSettingsRequest, String> {
        if self.reset.is_some() {
            return Ok(ChainSettingsRequest { reset: true, ..ChainSettingsRequest::default() });
        }
        let urls: Vec<String> = self.rpc_urls.split_whitespace().map(ToOwned::to_owned).collect();
        let confirmations = match self.confirmations.trim() {
            "" => None,
            text => {
                let wrong =
                    |_| "Blocks until a deposit counts must be a whole number from 1 to 1,000.".to_owned();
                Some(text.parse::<u64>().map_err(wrong)?).filter(|number| *number != now.confirmations)
            }
        };
        Ok(ChainSettingsRequest { rpc_urls: (!urls.is_empty()).then_some(urls), confirmations, reset: false })
    }
}

pub(in crate::pages) async fn set(form: Form<ChainFields>) -> Page {
    let _ = form.confirmed()?;
    let Form { visit, fields, .. } = form;
    let node = visit.panel.node();
    let now = node.ask(endpoint::ChainSettings).await?;
    match told(node, endpoint::SetChainSettings, fields.request(&now)).await? {
        Ok(mut saved) => {
            for tested in &mut saved.tested {
                tested.detail = show::visible(&tested.detail);
            }
            page(&visit, None, saved.tested, None).await
        }
        Err(problem) => page(&visit, Some(fields.confirmations), Vec::new(), Some(problem)).await,
    }
}

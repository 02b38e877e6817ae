//! Secrets for one program or person each: created, limited, shown, replaced, ended.

use std::collections::BTreeSet;

use askama::Template;
use axum::{
    extract::Path,
    response::{IntoResponse, Redirect},
};
use farthing_control::{
    endpoint,
    types::{DEFAULT_SECRET, NewSecret, Secret, SecretLimits, SecretShown, Text},
};
use farthing_os::clock;
use farthing_values::{ServiceId, Usdc};
use serde::Deserialize;

use crate::{
    failure::{Failure, Page},
    form::{Form, NoFields},
    frame::{Frame, Section, Visit},
    page::{answer, encoded},
    pages::register::{price, told},
    show,
    texts::Done,
};

const LIST: &str = "/panel/settings/secrets";

#[derive(Template)]
#[template(path = "settings-secrets.html")]
struct SecretsTemplate {
    frame: Frame,
    rows: Vec<SecretRow>,
    fields: SecretFields,
    problem: Option<String>,
}

struct SecretRow {
    name: String,
    is_default: bool,
    created: String,
    used: String,
    spent_today: String,
    limits: String,
}

#[derive(Template)]
#[template(path = "settings-named-secret.html")]
struct SecretTemplate {
    frame: Frame,
    row: SecretRow,
    /// The secret itself, right after it was created or asked for.
    secret: Option<String>,
    fresh: bool,
    fields: SecretFields,
    problem: Option<String>,
}

/// A new secret, or what one may do, as it was typed.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(in crate::pages) struct SecretFields {
    name: String,
    price_max: String,
    per_day: String,
    confirm_above: String,
    /// UUIDs, separated by blanks, commas or lines.
    services: String,
}

impl SecretFields {
    fn of(limits: &SecretLimits) -> Self {
        let amount = |amount: Option<Text<Usdc>>| amount.map_or_else(String::new, |usdc| usdc.to_string());
        let services = limits.services.iter().flatten().map(ToString::to_string);
        Self {
            name: String::new(),
            price_max: amount(limits.price_max),
            per_day: amount(limits.per_day),
            confirm_above: amount(limits.confirm_above),
            services: services.collect::<Vec<_>>().join("\n"),
        }
    }

    fn limits(&self) -> Result<SecretLimits, String> {
        let amount = |field, text: &str| match text.trim() {
            "" => Ok(None),
            text => price(field, text).map(|usdc| Some(Text(usdc))).map_err(|wrong| wrong.words()),
        };
        let mut services = BTreeSet::new();
        for text in self.services.split([',', ' ', '\r', '\n', '\t']).filter(|text| !text.is_empty()) {
            let id: ServiceId = text.parse().map_err(|_| {
                let shown: String = show::visible(text).chars().take(60).collect();
                format!("Allowed services: “{shown}” is not the UUID of a service. Copy the UUID from the catalog.")
            })?;
            services.insert(Text(id));
        }
        Ok(SecretLimits {
            price_max: amount("Maximum price per call", &self.price_max)?,
            per_day: amount("Maximum per day", &self.per_day)?,
            confirm_above: amount("Approval needed above", &self.confirm_above)?,
            services: (!services.is_empty()).then_some(services),
        })
    }
}

fn row(secret: &SecretShown, now_secs: u64) -> SecretRow {
    let limits = &secret.limits;
    let mut words = Vec::new();
    words.extend(limits.price_max.map(|usdc| format!("{} USDC per call", show::usdc(usdc.0))));
    words.extend(limits.per_day.map(|usdc| format!("{} USDC per day", show::usdc(usdc.0))));
    words.extend(
        limits.confirm_above.map(|usdc| format!("approval needed above {} USDC", show::usdc(usdc.0))),
    );
    words.extend(limits.services.as_ref().map(|services| match services.len() {
        1 => "1 service".to_owned(),
        count => format!("{count} services"),
    }));
    let ago = |secs: u64| show::ago(secs, now_secs);
    SecretRow {
        is_default: secret.name == DEFAULT_SECRET,
        name: secret.name.clone(),
        created: secret.created_secs.map_or_else(|| "with the node".to_owned(), ago),
        used: secret.last_used_secs.map_or_else(|| "not by a program".to_owned(), ago),
        spent_today: show::usdc(secret.spent_today.0),
        limits: if words.is_empty() { "the node's own".to_owned() } else { words.join(", ") },
    }
}

pub(in crate::pages) async fn list(visit: Visit) -> Page {
    list_page(&visit, SecretFields::default(), None).await
}

async fn all(visit: &Visit) -> Result<Vec<SecretShown>, Failure> {
    Ok(visit.panel.node().ask(endpoint::Secrets).await?)
}

async fn list_page(visit: &Visit, fields: SecretFields, problem: Option<String>) -> Page {
    let now_secs = clock::now_secs();
    let rows = all(visit).await?.iter().map(|secret| row(secret, now_secs)).collect();
    let frame = visit.frame(Section::Settings).await?;
    let page = SecretsTemplate { frame, rows, fields, problem };
    Ok(answer(&page, page.problem.as_ref()))
}

pub(in crate::pages) async fn create(form: Form<SecretFields>) -> Page {
    let _ = form.confirmed()?;
    let Form { visit, mut fields, .. } = form;
    fields.name = fields.name.trim().to_owned();
    let new = fields.limits().map(|limits| NewSecret { name: fields.name.clone(), limits });
    match told(visit.panel.node(), endpoint::CreateSecret, new).await? {
        Ok(Secret { secret }) => one_page(&visit, &fields.name, Some(secret), true, None).await,
        Err(problem) => list_page(&visit, fields, Some(problem)).await,
    }
}

async fn one_page(
    visit: &Visit,
    name: &str,
    secret: Option<String>,
    fresh: bool,
    wrong: Option<(SecretFields, String)>,
) -> Page {
    let all = all(visit).await?;
    let found = all.iter().find(|secret| secret.name == name).ok_or_else(Failure::not_found)?;
    let (fields, problem) = match wrong {
        Some((fields, problem)) => (fields, Some(problem)),
        None => (SecretFields::of(&found.limits), None),
    };
    let frame = visit.frame(Section::Settings).await?;
    let page = SecretTemplate { frame, row: row(found, clock::now_secs()), secret, fresh, fields, problem };
    Ok(answer(&page, page.problem.as_ref()))
}

/// Puts the name of a secret into `route`, in place of `{name}`.
fn named(route: &str, name: &str) -> String {
    route.replace("{name}", &encoded(name))
}

pub(in crate::pages) async fn show(visit: Visit, Path(name): Path<String>) -> Page {
    one_page(&visit, &name, None, false, None).await
}

pub(in crate::pages) async fn reveal(Path(name): Path<String>, form: Form<NoFields>) -> Page {
    let _ = form.confirmed()?;
    let Secret { secret } = form.visit.panel.node().ask(endpoint::NamedSecret.of(&name)).await?;
    one_page(&form.visit, &name, Some(secret), false, None).await
}

pub(in crate::pages) async fn limit(Path(name): Path<String>, form: Form<SecretFields>) -> Page {
    let place = named("/panel/settings/secrets/{name}", &name);
    let _ = form.reauthenticated()?;
    let Form { visit, fields, .. } = form;
    match told(visit.panel.node(), endpoint::LimitSecret.of(&name), fields.limits()).await? {
        Ok(_) => Ok(Done::SecretLimits.at(&place).into_response()),
        Err(problem) => one_page(&visit, &name, None, false, Some((fields, problem))).await,
    }
}

pub(in crate::pages) async fn rotate(Path(name): Path<String>, form: Form<NoFields>) -> Page {
    let _ = form.confirmed()?;
    let Secret { secret } = form.visit.panel.node().ask(endpoint::RotateNamedSecret.of(&name)).await?;
    one_page(&form.visit, &name, Some(secret), true, None).await
}

pub(in crate::pages) async fn revoke(
    Path(name): Path<String>,
    form: Form<NoFields>,
) -> Result<Redirect, Failure> {
    let _ = form.reauthenticated()?;
    form.visit.panel.node().ask(endpoint::RevokeSecret.of(&name)).await?;
    Ok(Done::SecretEnded.at(LIST))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_read_as_they_are_shown() {
        const UUID: &str = "0b5f2a3e-6a3c-4c39-9a65-6a1c3f1d2e4b";
        let fields = SecretFields {
            price_max: " 0.5 ".into(),
            confirm_above: "0.25".into(),
            services: format!("{UUID},\r\n {UUID}"),
            ..SecretFields::default()
        };
        let limits = fields.limits().unwrap();
        assert_eq!(limits.services.as_ref().unwrap().len(), 1);
        assert_eq!(limits.per_day, None);
        let again = SecretFields::of(&limits);
        assert_eq!((again.price_max.as_str(), again.services.as_str()), ("0.50", UUID));
        assert_eq!(again.confirm_above, "0.25");
        let wrong = SecretFields { services: "earthquakes".into(), ..SecretFields::default() };
        assert!(wrong.limits().unwrap_err().contains("not the UUID"));
        let wrong = SecretFields { per_day: "much".into(), ..SecretFields::default() };
        assert!(wrong.limits().unwrap_err().starts_with("Maximum per day"));
    }
}

//! Changing the password, which logs every other browser out.

use askama::Template;
use axum::{extract::State, response::IntoResponse};
use farthing_os::secret::SecretText;
use serde::Deserialize;

use crate::{
    ConsoleState,
    failure::Page,
    form::Form,
    frame::{Frame, Section, Visit},
    page::{Rendered, answer},
};

#[derive(Template)]
#[template(path = "password.html")]
struct PasswordTemplate {
    frame: Frame,
    problem: Option<String>,
    done: bool,
}

pub(super) async fn show(visit: Visit) -> Page {
    let frame = visit.frame(Section::Home).await?;
    Ok(Rendered(&PasswordTemplate { frame, problem: None, done: false }).into_response())
}

#[derive(Deserialize)]
pub(super) struct PasswordFields {
    password: String,
    repeated: String,
}

pub(super) async fn change(State(panel): State<ConsoleState>, form: Form<PasswordFields>) -> Page {
    let proof = form.confirmed()?;
    let Form { visit, fields, .. } = form;
    let problem = if fields.password == fields.repeated {
        let changed =
            panel.access().change_password(&visit.session, proof, SecretText::new(fields.password)).await;
        changed.err().map(|refused| refused.to_string())
    } else {
        Some("The two passwords differ. Type the same one twice.".to_owned())
    };
    let frame = visit.frame(Section::Home).await?;
    let page = PasswordTemplate { frame, done: problem.is_none(), problem };
    Ok(answer(&page, page.problem.as_ref()))
}

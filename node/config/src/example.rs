//! Writes the settings for people: the commented example file, and the table of what holds and why.

use std::fmt::{self, Write as _};

use farthing_control::types::{SettingOrigin, Text};

use super::{
    Loaded,
    keys::{Fallback, Form, SettingKey},
    settings::KEYS,
};

/// A complete `farthing.toml` in which every line is a comment showing the default.
pub fn example() -> String {
    let mut text = String::from(
        "# Settings of a Farthing node, each with its default. Flags override the environment (FARTHING_SECTION__KEY),\n\
         # the environment overrides settings.toml, and settings.toml overrides this file. The node writes settings.toml\n\
         # beside this file when you change settings in the console or with `farthing chain set`. Amounts are USDC in\n\
         # quotes.\n",
    );
    let mut section = "";
    for key in KEYS.iter().filter(|key| key.name != "node.data_dir") {
        if key.section() != section {
            section = key.section();
            let _ = write!(text, "\n[{section}]\n");
        }
        for line in wrapped(key.about, 98) {
            let _ = writeln!(text, "# {line}");
        }
        let _ = writeln!(text, "#{} = {}", key.short_name(), default_value(key));
    }
    text
}

fn default_value(key: &SettingKey) -> String {
    match key.default {
        Fallback::Value(value) => literal(key, value),
        Fallback::Values(items) => format!("{items:?}"),
        Fallback::Unset => match key.form {
            Form::Integer { .. } => "0  # unset".into(),
            Form::List(_) => "[]".into(),
            _ => "\"\"  # unset".into(),
        },
    }
}

fn literal(key: &SettingKey, value: &str) -> String {
    match key.form {
        Form::Integer { .. } | Form::Switch => value.to_owned(),
        _ => format!("{value:?}"),
    }
}

fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let line = lines.last_mut().expect("there is always a line");
        if !line.is_empty() && line.len() + word.len() >= width {
            lines.push(word.to_owned());
        } else {
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
    }
    lines
}

/// An endpoint's address as far as it may be shown: what follows the host is often an access key.
fn without_key(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else { return "(set)".to_owned() };
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(end);
    let host = authority.rsplit('@').next().unwrap_or_default();
    format!("{scheme}://{host}{}", if path.len() > 1 { "/…" } else { path })
}

/// One effective setting, for `config show`.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct EffectiveSetting {
    pub name: &'static str,
    pub value: ShownValue,
    pub origin: Text<SettingOrigin>,
}

/// A value as text: in JSON null, a text, or a list of texts; for people a list is separated by commas, and nothing
/// is empty. Secrets are shown as `(set)`.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
#[serde(untagged)]
pub enum ShownValue {
    Unset,
    One(String),
    List(Vec<String>),
}

impl fmt::Display for ShownValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unset => Ok(()),
            Self::One(value) => f.write_str(value),
            Self::List(values) => f.write_str(&values.join(", ")),
        }
    }
}

impl Loaded {
    /// Every setting with its effective value and origin, in the order of the example file.
    pub fn shown(&self) -> Vec<EffectiveSetting> {
        KEYS.iter()
            .map(|key| {
                let setting = self.raw.settings.get(key.name);
                let value = match setting {
                    Some(_) if key.is_secret() => ShownValue::One("(set)".into()),
                    Some(setting) if key.name == "chain.rpc_urls" => {
                        ShownValue::List(setting.values.iter().map(|url| without_key(url)).collect())
                    }
                    Some(setting) if key.is_list() => ShownValue::List(setting.values.clone()),
                    Some(setting) => ShownValue::One(setting.values.join(", ")),
                    None => ShownValue::Unset,
                };
                let origin = setting.map_or(SettingOrigin::Unset, |setting| setting.origin.clone());
                EffectiveSetting { name: key.name, value, origin: origin.into() }
            })
            .collect()
    }
}

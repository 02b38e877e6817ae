//! Gathers settings as text with their origin: flags > environment > console > file > defaults.
//!
//! Nothing is interpreted here beyond the form of each value; every problem is collected, so that one look
//! at the output shows all there is to mend.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use farthing_control::types::SettingOrigin;
use farthing_os::{file_names, files::read_own};
use farthing_values::Usdc;

use super::{
    keys::{Fallback, Form, SettingKey},
    raw::{ConfigError, ConfigProblem, Raw, Setting},
    settings::{KEYS, SettingValue},
    surroundings::Surroundings,
};

/// The most that may lie in the channel with one owner unless more is deposited at once: a day of spending, as the
/// other defaults have it.
const AT_REST_PER_OWNER: Usdc = Usdc::from_micros(5_000_000);

/// Variables that are known by another name than the one the table makes.
const ALIASES: [(&str, &str); 2] =
    [("FARTHING_PANEL_PASSWORD_FILE", "panel.password_file"), ("FARTHING_LOG", "log.filter")];

/// The input that the process was given, apart from the file. Tests fill it by hand.
#[derive(Debug, Clone, Default)]
pub struct Sources {
    /// `--data`
    pub data_dir: Option<PathBuf>,
    /// `--config`; otherwise `farthing.toml` in the data folder, if there is one.
    pub file: Option<PathBuf>,
    /// `--set section.key=value`
    pub set: Vec<String>,
    /// The environment, or the part of it that begins with `FARTHING_`.
    pub variables: Vec<(String, String)>,
    /// The text to be set in the console, in place of what is stored of it: to see whether it would do.
    pub chosen: Option<String>,
    /// The surroundings of the program, which some defaults follow.
    pub surroundings: Surroundings,
}

impl Sources {
    /// Flags given by the caller, and the process's environment.
    pub fn with_environment(data_dir: Option<PathBuf>, file: Option<PathBuf>, set: Vec<String>) -> Self {
        let variables = std::env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
            .filter(|(name, _)| name.starts_with("FARTHING_"))
            .collect();
        let surroundings = Surroundings::here();
        Self { data_dir, file: file.map(absolute), set, variables, chosen: None, surroundings }
    }

    /// The user's own settings file of a node.
    pub fn file_in(&self, data_dir: &Path) -> PathBuf {
        self.file.clone().unwrap_or_else(|| data_dir.join(file_names::SETTINGS))
    }
}

/// The data folder of a node, as it is found without reading a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeFolder {
    pub path: PathBuf,
    /// True if a flag or the environment names it.
    pub is_chosen: bool,
}

impl Raw {
    /// Merges all sources and checks the form of every value.
    pub(super) fn gather(sources: &Sources) -> Result<Self, ConfigError> {
        let mut raw = Self::default();
        raw.read_defaults(&sources.surroundings);
        // The file lies in the data folder, so the folder has to be known first.
        raw.read_variables(&sources.variables);
        raw.read_flags(sources);
        let above_file = std::mem::take(&mut raw.settings);
        raw.check_folder(above_file.get("node.data_dir"))?;
        raw.read_defaults(&sources.surroundings);
        raw.read_file(sources, &above_file);
        raw.read_console_settings(sources, &above_file);
        for (name, setting) in above_file {
            if setting.origin != SettingOrigin::Default
                && let Some(overruled) = raw.settings.insert(name, setting)
            {
                raw.overruled.insert(name, overruled);
            }
        }
        raw.check_forms();
        if !raw.problems.is_empty() {
            return Err(ConfigError(raw.problems));
        }
        raw.derive_defaults()?;
        Ok(raw)
    }

    /// Finds the data folder of a node that may be running. No file is read; of flags every mistake is told, because the
    /// command at hand has them.
    pub(super) fn folder(sources: &Sources) -> Result<NodeFolder, ConfigError> {
        let mut raw = Self::default();
        raw.read_defaults(&sources.surroundings);
        raw.read_variables(&sources.variables);
        raw.read_flags(sources);
        let found = raw.settings.get("node.data_dir").cloned();
        raw.check_folder(found.as_ref())?;
        raw.check_forms();
        let is_flag = |origin: &SettingOrigin| matches!(origin, SettingOrigin::Flag(_));
        raw.problems.retain(|problem| is_flag(&problem.origin) || problem.name == "node.data_dir");
        match found {
            Some(Setting { values, origin }) if raw.problems.is_empty() => {
                let path = values.into_iter().next().unwrap_or_default().into();
                Ok(NodeFolder { path, is_chosen: origin != SettingOrigin::Default })
            }
            _ => Err(ConfigError(raw.problems)),
        }
    }

    /// Defaults that follow from other settings.
    fn derive_defaults(&mut self) -> Result<(), ConfigError> {
        let is_public = self.value("network.allow_private") != Some("true");
        self.set_default("network.upnp", &is_public.to_string());
        // Nobody elsewhere could join a chain of one's own, nor a network of private addresses.
        let is_for_all = is_public && self.value("chain.preset") != Some("local");
        self.set_default("network.rendezvous", if is_for_all { "ipfs" } else { "off" });
        let deposit_max = if self.value("chain.preset") == Some("ethereum") { "20.00" } else { "1.00" };
        self.set_default("spending.deposit_max", deposit_max);
        let deposit_max = Usdc::read(self, "spending.deposit_max")?;
        let per_owner = deposit_max.saturating_mul(5).max(AT_REST_PER_OWNER);
        self.set_default("spending.at_rest_per_owner", &per_owner.to_string());
        let per_owner = Usdc::read(self, "spending.at_rest_per_owner")?;
        self.set_default("spending.at_rest_max", &per_owner.saturating_mul(4).to_string());
        Ok(())
    }

    fn set_default(&mut self, name: &'static str, value: &str) {
        let default = || Setting { values: vec![value.to_owned()], origin: SettingOrigin::Default };
        self.settings.entry(name).or_insert_with(default);
    }

    fn read_defaults(&mut self, surroundings: &Surroundings) {
        for key in KEYS {
            let values = match (surroundings.default_of(key.name), key.default) {
                (Some(value), _) => vec![value],
                (None, Fallback::Value(value)) => vec![value.to_owned()],
                (None, Fallback::Values(items)) => items.iter().map(ToString::to_string).collect(),
                (None, Fallback::Unset) => continue,
            };
            self.settings.insert(key.name, Setting { values, origin: SettingOrigin::Default });
        }
    }

    /// A file where the data folder should be, or on the way to it, is said once, and nothing is looked for in it; so is a
    /// link to nothing, and a folder that nobody names.
    fn check_folder(&mut self, data_dir: Option<&Setting>) -> Result<(), ConfigError> {
        let Some((setting, path)) = data_dir.and_then(|setting| Some((setting, setting.values.first()?)))
        else {
            let what =
                "has no default, because neither XDG_DATA_HOME nor HOME is set; name a folder with --data";
            self.problem(&SettingOrigin::Unset, "node.data_dir", what.to_owned());
            return Err(ConfigError(std::mem::take(&mut self.problems)));
        };
        let what = match std::fs::metadata(path) {
            Ok(found) if !found.is_dir() => "names a file",
            Err(error) if error.kind() == std::io::ErrorKind::NotADirectory => "leads through a file",
            Err(error)
                if error.kind() == std::io::ErrorKind::NotFound
                    && std::fs::symlink_metadata(path).is_ok() =>
            {
                "names a link whose target does not exist"
            }
            _ => return Ok(()),
        };
        let what = format!("{what}; it must be a folder, which is created if it does not exist");
        self.problem(&setting.origin, "node.data_dir", what);
        Err(ConfigError(std::mem::take(&mut self.problems)))
    }

    fn read_file(&mut self, sources: &Sources, above_file: &BTreeMap<&'static str, Setting>) {
        let data_dir = above_file.get("node.data_dir").and_then(|setting| setting.values.first());
        let Some(path) = data_dir.map(|data_dir| sources.file_in(Path::new(data_dir))) else { return };
        let origin = SettingOrigin::File(path.clone());
        match read_own(&path) {
            Ok(text) => self.read_toml(&text, &origin),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound && sources.file.is_none() => {}
            // What the system says names no reason of this node's.
            Err(error) if error.raw_os_error().is_none() => {
                self.unread(&origin, format!("is not read: {error}"), &error);
            }
            Err(error) => self.unread(&origin, unreadable(&error), &error),
        }
    }

    /// Reads what was set in the console. It lies in the data folder, wherever the user's own file is.
    fn read_console_settings(&mut self, sources: &Sources, above_file: &BTreeMap<&'static str, Setting>) {
        let data_dir = above_file.get("node.data_dir").and_then(|setting| setting.values.first());
        let Some(path) = data_dir.map(|data_dir| Path::new(data_dir).join(file_names::CHOSEN_SETTINGS))
        else {
            return;
        };
        let origin = SettingOrigin::File(path.clone());
        let stored = sources.chosen.clone().map_or_else(|| std::fs::read_to_string(&path), Ok);
        match stored {
            Ok(text) => self.read_toml(&text, &origin),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => self.unread(&origin, unreadable(&error), &error),
        }
    }

    fn read_toml(&mut self, text: &str, origin: &SettingOrigin) {
        let table = match text.parse::<toml::Table>() {
            Ok(table) => table,
            Err(error) => {
                let error = error.to_string();
                return self.problem(origin, "file", format!("is not valid TOML: {}", error.trim_end()));
            }
        };
        for (section, entries) in table {
            let toml::Value::Table(entries) = entries else {
                self.problem(origin, &section, format!("is outside a section{}", suggest_section(&section)));
                continue;
            };
            for (entry, value) in entries {
                self.read_entry(&format!("{section}.{entry}"), value, origin);
            }
        }
    }

    fn read_entry(&mut self, name: &str, value: toml::Value, origin: &SettingOrigin) {
        if name == "node.data_dir" {
            let what = "cannot be set in this file, which is read from that folder; use --data or \
                        FARTHING_NODE__DATA_DIR";
            return self.problem(origin, name, what.into());
        }
        let Some((key, from_file)) = find(name) else {
            return self.problem(origin, name, format!("is not a setting{}", suggest(name)));
        };
        let values = match value {
            toml::Value::Array(items) if key.is_list() => items.into_iter().map(plain_text).collect(),
            value if !key.is_list() => plain_text(value).map(|value| vec![value]),
            _ => Err("must be a list such as [\"a\", \"b\"]".to_owned()),
        };
        match values {
            Ok(values) => self.set(key, from_file, values, origin.clone()),
            Err(what) => self.problem(origin, name, what),
        }
    }

    fn read_variables(&mut self, variables: &[(String, String)]) {
        // Compose files pass variables nobody set as empty ones.
        for (variable, value) in variables.iter().filter(|(_, value)| !value.is_empty()) {
            let origin = SettingOrigin::Variable(variable.clone());
            let Some(rest) = variable.strip_prefix("FARTHING_") else { continue };
            let name = match ALIASES.iter().find(|(alias, _)| alias == variable) {
                Some((_, name)) => (*name).to_owned(),
                None => rest.to_lowercase().replacen("__", ".", 1),
            };
            if let Some((key, from_file)) = find(&name) {
                self.set(key, from_file, split(key, value), origin);
            } else if name.contains('.') {
                self.problem(&origin, &name, format!("is not a setting{}", suggest(&name)));
            } else if let Some((key, _)) = find(&name.replacen('_', ".", 1)) {
                // Other variables with our prefix belong to clients and container platforms.
                self.problem(
                    &origin,
                    key.name,
                    format!("is set by {}, with two underscores", key.variable()),
                );
            }
        }
    }

    fn read_flags(&mut self, sources: &Sources) {
        if let (Some(path), Some(key)) = (&sources.data_dir, SettingKey::find("node.data_dir")) {
            self.set(key, false, vec![path.display().to_string()], SettingOrigin::Flag("--data".to_owned()));
        }
        for assignment in &sources.set {
            let origin = SettingOrigin::Flag("--set".to_owned());
            let Some((name, value)) = assignment.split_once('=') else {
                self.problem(&origin, assignment, "must be written as section.key=value".into());
                continue;
            };
            match find(name.trim()) {
                Some((key, _)) if key.is_secret() => {
                    let what = format!(
                        "is secret, and others can read the command line: use {}_FILE",
                        key.variable()
                    );
                    self.problem(&origin, name, what);
                }
                Some((key, _)) => self.set(key, false, split(key, value.trim()), origin),
                None => self.problem(&origin, name, format!("is not a setting{}", suggest(name))),
            }
        }
    }

    fn set(&mut self, key: &'static SettingKey, from_file: bool, values: Vec<String>, origin: SettingOrigin) {
        if let Some(earlier) = self.settings.get(key.name)
            && std::mem::discriminant(&earlier.origin) == std::mem::discriminant(&origin)
            && key.is_secret()
        {
            return self.problem(&origin, key.name, "is given twice, as text and as a file".into());
        }
        let values = match values.first() {
            Some(path) if from_file => match std::fs::read_to_string(path) {
                Ok(text) => vec![text.trim_end_matches(['\n', '\r']).to_owned()],
                Err(error) => {
                    return self.problem(
                        &origin,
                        key.name,
                        format!("its file {path} cannot be read: {error}"),
                    );
                }
            },
            _ => values,
        };
        let values = match key.form {
            // A command elsewhere, and whoever reads what is shown, has another working folder.
            Form::Path => {
                values.into_iter().map(|path| absolute(path.into()).display().to_string()).collect()
            }
            _ => values,
        };
        self.settings.insert(key.name, Setting { values, origin });
    }

    fn check_forms(&mut self) {
        let mut problems = Vec::new();
        for key in KEYS {
            let Some(setting) = self.settings.get(key.name) else { continue };
            for value in &setting.values {
                let Err(expected) = key.form.check(value) else { continue };
                let what =
                    if key.is_secret() { expected } else { format!("`{}`: {expected}", shortened(value)) };
                let (origin, name) = (setting.origin.clone(), key.name.into());
                problems.push(ConfigProblem { origin, name, what, is_denied: false });
            }
        }
        self.problems.extend(problems);
    }

    fn problem(&mut self, origin: &SettingOrigin, name: &str, what: String) {
        let (origin, name) = (origin.clone(), shortened(name));
        self.problems.push(ConfigProblem { origin, name, what, is_denied: false });
    }

    /// Says what keeps a file from being read, and remembers whether that is another user's right to it.
    fn unread(&mut self, origin: &SettingOrigin, what: String, error: &std::io::Error) {
        let is_denied = error.kind() == std::io::ErrorKind::PermissionDenied;
        let origin = origin.clone();
        self.problems.push(ConfigProblem { origin, name: "file".to_owned(), what, is_denied });
    }
}

/// The setting called `name`, and whether `name` says that the value stands in a file.
fn find(name: &str) -> Option<(&'static SettingKey, bool)> {
    if let Some(key) = SettingKey::find(name) {
        return Some((key, false));
    }
    let key = SettingKey::find(name.strip_suffix("_file")?).filter(|key| key.is_secret())?;
    Some((key, true))
}

/// The same path from the root on, links and all. One that has no such form, as an empty one, is judged later.
fn absolute(path: PathBuf) -> PathBuf {
    std::path::absolute(&path).unwrap_or(path)
}

/// Lists are separated by commas where there is only text.
fn split(key: &SettingKey, value: &str) -> Vec<String> {
    if key.is_list() {
        value.split(',').map(str::trim).filter(|item| !item.is_empty()).map(ToOwned::to_owned).collect()
    } else {
        vec![value.to_owned()]
    }
}

fn plain_text(value: toml::Value) -> Result<String, String> {
    match value {
        toml::Value::String(text) => Ok(text),
        toml::Value::Integer(number) => Ok(number.to_string()),
        toml::Value::Boolean(switch) => Ok(switch.to_string()),
        toml::Value::Float(_) => Err("write fractions in quotes, so that no digit is lost".into()),
        other => Err(format!("expected one value, found {}", other.type_str())),
    }
}

fn shortened(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(80).collect()
}

/// `; did you mean …?` when a setting has a similar name.
fn suggest(name: &str) -> String {
    nearest(name, KEYS.iter().map(|key| key.name))
        .or_else(|| {
            // The right name in the wrong section is a common slip.
            let short = name.rsplit('.').next()?;
            KEYS.iter().map(|key| key.name).find(|key| key.ends_with(&format!(".{short}")))
        })
        .map_or_else(String::new, |name| format!("; did you mean {name}?"))
}

fn suggest_section(name: &str) -> String {
    let key = KEYS.iter().find(|key| key.short_name() == name);
    key.map_or_else(String::new, |key| format!("; write it under [{}]", key.section()))
}

fn nearest<'a>(name: &str, candidates: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let distance = |candidate: &str| strsim::damerau_levenshtein(name, candidate);
    let distance_max = name.len() / 4 + 1;
    candidates
        .filter(|candidate| distance(candidate) <= distance_max)
        .min_by_key(|candidate| distance(candidate))
}

/// Says that the system does not let this user read a file, and whom it might let.
fn unreadable(error: &std::io::Error) -> String {
    let is_denied = error.kind() == std::io::ErrorKind::PermissionDenied;
    let next = if is_denied { "; run this command as the file's user, with `sudo -u`" } else { "" };
    format!("cannot be read: {error}{next}")
}

#[cfg(test)]
mod tests {
    use std::io::ErrorKind;

    use super::unreadable;

    #[test]
    fn a_file_of_another_user_says_as_whom_to_run_the_command() {
        let told = |kind: ErrorKind| unreadable(&kind.into());
        assert!(
            told(ErrorKind::PermissionDenied)
                .ends_with("run this command as the file's user, with `sudo -u`")
        );
        assert!(!told(ErrorKind::NotFound).contains("sudo"));
    }
}

//! Settings that were chosen, as a file: those that are changed while the node runs have one of their own, and those of
//! a first start become a person's `farthing.toml`, which is never rewritten.

use std::{io, path::Path};

use farthing_os::{file_names, files};

use super::keys::SettingKey;

const HEAD: &str = "# Written by the node when settings are changed in the console or with `farthing chain set`.\n# It \
                    overrides farthing.toml; remove a line, or the file, to use farthing.toml again.\n";

const FIRST_HEAD: &str = "# The node's first start wrote this file once; your changes here stay.\n# `farthing config \
                          example` explains every setting.\n";

#[derive(Debug, Default, Clone, PartialEq)]
pub struct UserSettings(toml::Table);

impl UserSettings {
    /// Reads what is stored in the data folder; nothing when nothing is.
    pub fn read(data_dir: &Path) -> io::Result<Self> {
        let path = data_dir.join(file_names::CHOSEN_SETTINGS);
        match std::fs::read_to_string(&path) {
            Ok(text) => text.parse().map(Self).map_err(|_| {
                let problem = format!("{} is not valid TOML; correct or remove it", path.display());
                io::Error::new(io::ErrorKind::InvalidData, problem)
            }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Self::default()),
            Err(error) => Err(error),
        }
    }

    /// Sets `section.key`, or leaves it to the other sources with `None`.
    pub fn set(&mut self, key: &SettingKey, value: Option<&[String]>) {
        let section = self.0.entry(key.section()).or_insert_with(|| toml::Value::Table(toml::Table::new()));
        let Some(section) = section.as_table_mut() else { return };
        let text = |text: &String| toml::Value::String(text.clone());
        match value {
            None => drop(section.remove(key.short_name())),
            Some(values) if key.is_list() => {
                let values = toml::Value::Array(values.iter().map(text).collect());
                section.insert(key.short_name().to_owned(), values);
            }
            Some(values) => {
                section.extend(values.first().map(|value| (key.short_name().to_owned(), text(value))));
            }
        }
        self.0.retain(|_, section| section.as_table().is_none_or(|section| !section.is_empty()));
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// As it is stored.
    pub fn text(&self) -> String {
        format!("{HEAD}\n{}", self.0)
    }

    /// Stores it, readable by its owner alone: an address may hold an access key.
    ///
    /// # Errors
    /// What the file system says; the file is then as it was.
    pub fn write(&self, data_dir: &Path) -> io::Result<()> {
        files::replace_private(&data_dir.join(file_names::CHOSEN_SETTINGS), self.text().as_bytes())
    }

    /// Makes a person's settings file of it, which must not be there yet.
    ///
    /// # Errors
    /// What the file system says; a file that is there is left alone.
    pub fn create(&self, file: &Path) -> io::Result<()> {
        files::create_private(file, format!("{FIRST_HEAD}\n{}", self.0).as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_chosen_is_read_again_and_taken_back_without_a_trace() {
        let folder = tempfile::tempdir().unwrap();
        let mut chosen = UserSettings::read(folder.path()).unwrap();
        let (urls, confirmations) =
            (SettingKey::find("chain.rpc_urls").unwrap(), SettingKey::find("chain.confirmations").unwrap());
        chosen.set(urls, Some(&["https://a.example/\"key\"".to_owned(), "http://b.example".to_owned()]));
        chosen.set(confirmations, Some(&["7".to_owned()]));
        chosen.write(folder.path()).unwrap();
        let mut again = UserSettings::read(folder.path()).unwrap();
        assert_eq!(again, chosen);
        again.set(urls, None);
        again.set(confirmations, None);
        assert_eq!(again, UserSettings::default());
        std::fs::write(folder.path().join(file_names::CHOSEN_SETTINGS), "[").unwrap();
        assert!(UserSettings::read(folder.path()).unwrap_err().to_string().contains("correct or remove"));
    }
}

//! The surroundings of the program, which some defaults follow.
//!
//! A container is one node's alone: its folder is mounted, and its ports are published, by whoever runs it. Elsewhere the
//! node is one of a user's programs: it keeps what it has in the user's own folder, and only this machine talks to it.

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
};

use farthing_os::{container, files};

/// The folder of a container's node, and once of every node.
const ROOT_FOLDER: &str = "/data";

/// The wallet of a node that an earlier program made there.
const EARLIER_WALLET: &str = "/data/wallet.json";

/// The facts that defaults follow.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Surroundings {
    pub is_container: bool,
    /// The data folder where none is named; `None` where the user has no folder.
    pub data_dir: Option<PathBuf>,
}

impl Surroundings {
    /// Looks at where this process runs.
    pub fn here() -> Self {
        Self::of(container::is_here(), |name| std::env::var_os(name), files::is_own)
    }

    /// `is_own` tells whether something is there and the user's own.
    fn of(
        is_container: bool,
        variable: impl Fn(&str) -> Option<OsString>,
        is_own: impl Fn(&Path) -> bool,
    ) -> Self {
        let root_folder = PathBuf::from(ROOT_FOLDER);
        // The specification of these folders has relative ones ignored.
        let folder = |name| variable(name).map(PathBuf::from).filter(|folder| folder.is_absolute());
        let programs = folder("XDG_DATA_HOME").or_else(|| Some(folder("HOME")?.join(".local/share")));
        let own = programs.map(|programs| programs.join("farthing"));
        // Earlier programs had one default for all: who started a node with it finds it again.
        let is_earlier = || is_own(Path::new(EARLIER_WALLET)) && !own.as_deref().is_some_and(&is_own);
        let data_dir = if is_container || is_earlier() { Some(root_folder) } else { own };
        Self { is_container, data_dir }
    }

    /// The default of a setting, where it is another than the table has.
    pub(super) fn default_of(&self, name: &str) -> Option<String> {
        match name {
            "node.data_dir" => self.data_dir.as_ref().map(|folder| folder.display().to_string()),
            // Nobody reaches a container's own loopback interface.
            "gateway.listen" if self.is_container => Some("0.0.0.0:3000".to_owned()),
            "panel.listen" if self.is_container => Some("0.0.0.0:3002".to_owned()),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The data folder for these variables, with these paths there.
    fn folder(is_container: bool, variables: &[(&str, &str)], own: &[&str]) -> Option<PathBuf> {
        let variable = |name: &str| {
            variables.iter().find(|(set, _)| *set == name).map(|(_, value)| OsString::from(value))
        };
        let is_own = |path: &Path| own.iter().any(|own| Path::new(own) == path);
        let surroundings = Surroundings::of(is_container, variable, is_own);
        assert_eq!(surroundings.is_container, is_container);
        surroundings.data_dir
    }

    #[test]
    fn a_node_lives_in_its_users_folder_and_in_a_container_in_the_one_that_is_mounted() {
        let (home, data_home) = (("HOME", "/home/ann"), ("XDG_DATA_HOME", "/disk/ann"));
        let at = |path: &str| Some(PathBuf::from(path));
        assert_eq!(folder(false, &[home], &[]), at("/home/ann/.local/share/farthing"));
        assert_eq!(folder(false, &[home, data_home], &[]), at("/disk/ann/farthing"));
        assert_eq!(
            folder(false, &[home, ("XDG_DATA_HOME", "disk")], &[]),
            at("/home/ann/.local/share/farthing")
        );
        assert_eq!(folder(false, &[home, ("XDG_DATA_HOME", "")], &[]), at("/home/ann/.local/share/farthing"));
        assert_eq!(folder(false, &[], &[]), None);
        assert_eq!(folder(true, &[home, data_home], &[]), at("/data"));
        assert_eq!(folder(true, &[], &[]), at("/data"));
    }

    #[test]
    fn a_node_of_an_earlier_program_is_found_where_it_was_until_the_user_has_another() {
        let home = [("HOME", "/home/ann")];
        let (wallet, own) = ("/data/wallet.json", "/home/ann/.local/share/farthing");
        assert_eq!(
            folder(false, &home, &["/data"]),
            Some(own.into()),
            "a folder without a wallet is no node"
        );
        assert_eq!(folder(false, &home, &[wallet]), Some("/data".into()));
        assert_eq!(folder(false, &[], &[wallet]), Some("/data".into()));
        assert_eq!(folder(false, &home, &[wallet, own]), Some(own.into()));
    }

    #[test]
    fn only_a_container_listens_for_other_machines_by_default() {
        let of = |is_container| Surroundings { is_container, data_dir: None };
        assert_eq!(of(true).default_of("gateway.listen").as_deref(), Some("0.0.0.0:3000"));
        assert_eq!(of(true).default_of("panel.listen").as_deref(), Some("0.0.0.0:3002"));
        for name in ["gateway.listen", "panel.listen", "node.data_dir"] {
            assert_eq!(of(false).default_of(name), None, "{name}");
        }
        assert_eq!(of(true).default_of("gateway.tls"), None);
    }
}

//! The configuration files of programs that agents run in: where each lies, and how this program's entry gets in.
//!
//! Everything else that is in a file stays, in its order. A file that cannot be read as JSON is not touched.

use std::path::{Path, PathBuf};

use clap::ValueEnum;
use serde_json::{Map, Value, json};

/// The name of this program's entry.
const ENTRY: &str = "farthing";

/// A program that agents run in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum AgentProgram {
    ClaudeDesktop,
    Cursor,
    #[value(name = "vscode")]
    VsCode,
}

/// Folders of the user, from which the places of the files follow.
#[derive(Debug, Clone)]
pub struct UserFolders {
    pub home: PathBuf,
    /// `$XDG_CONFIG_HOME`, if it is set.
    pub config: Option<PathBuf>,
    pub is_macos: bool,
}

/// The reason that an entry is not put into a file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotMerged {
    #[error("it is not JSON: {0}")]
    NotJson(String),
    #[error("{0} is not an object")]
    NotAnObject(String),
}

impl AgentProgram {
    /// Returns its name, for people.
    #[must_use]
    pub const fn title(self) -> &'static str {
        match self {
            Self::ClaudeDesktop => "Claude Desktop",
            Self::Cursor => "Cursor",
            Self::VsCode => "VS Code",
        }
    }

    /// The file in which it looks for the programs that offer tools.
    #[must_use]
    pub fn file(self, folders: &UserFolders) -> PathBuf {
        match self {
            Self::ClaudeDesktop => folders.of_applications().join("Claude/claude_desktop_config.json"),
            Self::Cursor => folders.home.join(".cursor/mcp.json"),
            Self::VsCode => folders.of_applications().join("Code/User/mcp.json"),
        }
    }

    /// The member of the file that has an entry for each program.
    const fn member(self) -> &'static str {
        match self {
            Self::ClaudeDesktop | Self::Cursor => "mcpServers",
            Self::VsCode => "servers",
        }
    }

    fn entry(self, program: &str, arguments: &[String]) -> Value {
        match self {
            Self::ClaudeDesktop | Self::Cursor => json!({ "command": program, "args": arguments }),
            Self::VsCode => json!({ "type": "stdio", "command": program, "args": arguments }),
        }
    }

    /// A configuration that starts `program` with the arguments, and nothing else.
    #[must_use]
    pub fn configuration(self, program: &str, arguments: &[String]) -> Value {
        json!({ (self.member()): { (ENTRY): self.entry(program, arguments) } })
    }

    /// The text of a file with this program's entry in it, in place of an earlier one.
    ///
    /// # Errors
    /// [`NotMerged`] when the text is not such a file.
    pub fn merged(self, text: &str, program: &str, arguments: &[String]) -> Result<String, NotMerged> {
        let mut whole = match text.trim() {
            "" => Value::Object(Map::new()),
            text => serde_json::from_str(text).map_err(|error| NotMerged::NotJson(error.to_string()))?,
        };
        let members = whole.as_object_mut().ok_or_else(|| NotMerged::NotAnObject("the file".to_owned()))?;
        let entries = members.entry(self.member()).or_insert_with(|| Value::Object(Map::new()));
        let name = || NotMerged::NotAnObject(format!("`{}`", self.member()));
        let entries = entries.as_object_mut().ok_or_else(name)?;
        entries.insert(ENTRY.to_owned(), self.entry(program, arguments));
        Ok(format!("{whole:#}\n"))
    }
}

impl UserFolders {
    /// The folder in which programs with windows keep their files.
    fn of_applications(&self) -> PathBuf {
        if self.is_macos {
            return self.home.join("Library/Application Support");
        }
        let config = self.config.as_deref().filter(|config| config.is_absolute());
        config.map_or_else(|| self.home.join(".config"), Path::to_owned)
    }
}

/// The arguments with which an agent's program starts this one.
#[must_use]
pub fn arguments(data_dir: &str, secret: &str) -> Vec<String> {
    ["mcp", "--data", data_dir, "--secret", secret].map(str::to_owned).to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROGRAM: &str = "/usr/bin/farthing";

    fn folders(is_macos: bool, config: Option<&str>) -> UserFolders {
        UserFolders { home: "/home/ada".into(), config: config.map(PathBuf::from), is_macos }
    }

    #[test]
    fn each_program_has_its_file_and_its_form() {
        for (program, on_linux, on_macos, member) in [
            (
                AgentProgram::ClaudeDesktop,
                "/home/ada/.config/Claude/claude_desktop_config.json",
                "/home/ada/Library/Application Support/Claude/claude_desktop_config.json",
                "mcpServers",
            ),
            (AgentProgram::Cursor, "/home/ada/.cursor/mcp.json", "/home/ada/.cursor/mcp.json", "mcpServers"),
            (
                AgentProgram::VsCode,
                "/home/ada/.config/Code/User/mcp.json",
                "/home/ada/Library/Application Support/Code/User/mcp.json",
                "servers",
            ),
        ] {
            assert_eq!(program.file(&folders(false, None)), Path::new(on_linux));
            assert_eq!(program.file(&folders(true, None)), Path::new(on_macos));
            let configuration = program.configuration(PROGRAM, &arguments("/data", "agent"));
            let entry = &configuration[member]["farthing"];
            assert_eq!(entry["command"], PROGRAM);
            assert_eq!(entry["args"], json!(["mcp", "--data", "/data", "--secret", "agent"]));
            assert_eq!(entry["type"] == "stdio", program == AgentProgram::VsCode);
        }
        let elsewhere = AgentProgram::VsCode.file(&folders(false, Some("/etc/ada")));
        assert_eq!(elsewhere, Path::new("/etc/ada/Code/User/mcp.json"));
        let relative = AgentProgram::VsCode.file(&folders(false, Some("ada")));
        assert_eq!(relative, Path::new("/home/ada/.config/Code/User/mcp.json"));
    }

    #[test]
    fn an_entry_is_added_and_nothing_is_lost() {
        let before = r#"{"z": 1, "mcpServers": {"other": {"command": "x", "args": []}, "farthing": {"command": "old"}}, "a": [1.5]}"#;
        let after = AgentProgram::Cursor.merged(before, PROGRAM, &[]).unwrap();
        let told: Value = serde_json::from_str(&after).unwrap();
        assert_eq!(
            told,
            json!({ "z": 1, "mcpServers": {
                "other": { "command": "x", "args": [] }, "farthing": { "command": PROGRAM, "args": [] } }, "a": [1.5] })
        );
        assert!(after.find("\"z\"") < after.find("\"a\""), "members keep their order: {after}");
        assert_eq!(AgentProgram::Cursor.merged(&after, PROGRAM, &[]).unwrap(), after, "once is enough");
        for empty in ["", " \n", "{}"] {
            let fresh = AgentProgram::VsCode.merged(empty, PROGRAM, &[]).unwrap();
            let told: Value = serde_json::from_str(&fresh).unwrap();
            assert_eq!(told, AgentProgram::VsCode.configuration(PROGRAM, &[]));
        }
    }

    #[test]
    fn a_file_of_another_form_is_refused() {
        let merged = |text: &str| AgentProgram::VsCode.merged(text, PROGRAM, &[]).unwrap_err();
        assert!(matches!(merged("{ // a comment\n}"), NotMerged::NotJson(_)));
        assert_eq!(merged("[]"), NotMerged::NotAnObject("the file".to_owned()));
        assert_eq!(merged("{\"servers\": []}"), NotMerged::NotAnObject("`servers`".to_owned()));
    }
}

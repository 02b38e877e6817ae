//! Paths as words of commands that a person pastes into a shell.

use std::path::Path;

/// Marks that mean nothing to a shell.
const PLAIN: &str = "/._-+:@%,";

/// Writes `path` as one word of a command, whatever is in it: between quotes where a shell would read it otherwise.
pub fn word(path: &Path) -> String {
    let path = path.display().to_string();
    let is_plain = |mark: char| mark.is_ascii_alphanumeric() || PLAIN.contains(mark);
    if !path.is_empty() && path.chars().all(is_plain) {
        path
    } else {
        format!("'{}'", path.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn a_shell_reads_any_path_as_one_word() {
        for (path, written) in [
            ("/home/ann/.local/share/farthing", "/home/ann/.local/share/farthing"),
            ("/mnt/my disk/node", "'/mnt/my disk/node'"),
            ("/it's here", r"'/it'\''s here'"),
            ("~/node", "'~/node'"),
            ("/a$HOME`id`\"*;&", "'/a$HOME`id`\"*;&'"),
            ("/Gehäuse", "'/Gehäuse'"),
            ("", "''"),
        ] {
            assert_eq!(word(Path::new(path)), written);
            let script = format!("printf %s {written}");
            let read = Command::new("sh").args(["-c", &script]).output().unwrap();
            assert_eq!(String::from_utf8(read.stdout).unwrap(), path, "{written}");
        }
    }
}

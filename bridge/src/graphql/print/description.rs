//! Descriptions as block strings, or as quoted ones where a block string would change them.

use crate::graphql::sdl::strings::quoted;

/// Writes a description on lines of its own, `indent` before each; nothing when it is empty.
pub(super) fn write(out: &mut String, description: &str, indent: &str) {
    if description.is_empty() {
        return;
    }
    if !survives_in_block(description) {
        out.push_str(&format!("{indent}{}\n", quoted(description)));
        return;
    }
    let escaped = description.replace("\"\"\"", "\\\"\"\"");
    out.push_str(&format!("{indent}\"\"\"\n"));
    for line in escaped.split('\n') {
        // A blank line stays empty: spaces in it would become part of the text.
        let indent = if line.is_empty() { "" } else { indent };
        out.push_str(&format!("{indent}{line}\n"));
    }
    out.push_str(&format!("{indent}\"\"\"\n"));
}

/// A block string drops blank lines at both ends and the indentation all lines share, and takes control characters
/// as they are.
fn survives_in_block(text: &str) -> bool {
    let is_blank = |line: &str| line.bytes().all(|byte| matches!(byte, b' ' | b'\t'));
    let ends = [text.split('\n').next(), text.rsplit('\n').next()];
    let mut lines = text.split('\n');
    !text.chars().any(|c| c.is_control() && !matches!(c, '\n' | '\t'))
        && !ends.into_iter().flatten().any(is_blank)
        && !text.split('\n').any(|line| !line.is_empty() && is_blank(line))
        && lines.any(|line| !line.is_empty() && !line.starts_with([' ', '\t']))
}

//! Bodies of several parts (RFC 2046, 5.1; RFC 7578), read so strictly that no server can read other parts than we do.
//!
//! The content type names the boundary, once. Each part has a head of known fields and its content; whatever some readers
//! would take for a delimiter is one, or the body is refused. Nothing is copied: who is satisfied with the parts passes the
//! body on as it came. What is written here ([`written`]) is read back in the same way.

use std::str;

use crate::{
    limits::{PART_HEAD_BYTES_MAX, PARTS_MAX},
    media::without_parameters,
    shown,
};

/// The media type of forms with files.
const FORM_DATA: &str = "multipart/form-data";

/// A form's part has four; each is compared with all others.
const PART_FIELDS_MAX: usize = 16;

/// Room for the head of a part that is written.
const HEAD_BYTES_USUAL: usize = 256;

/// RFC 2046, 5.1.1.
const BOUNDARY_BYTES_MAX: usize = 70;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part<'b> {
    /// Empty where parts have no names, which is everywhere but in `multipart/form-data`.
    pub name: &'b str,
    /// True if it names a file.
    pub is_file: bool,
    pub content: &'b [u8],
}

/// A part of a form to be written.
#[derive(Debug, Clone, Copy)]
pub struct NewPart<'b> {
    pub name: &'b str,
    pub file: Option<NewFile<'b>>,
    pub content: &'b [u8],
}

/// The file that a part is said to be.
#[derive(Debug, Clone, Copy)]
pub struct NewFile<'b> {
    pub name: &'b str,
    /// Left out when it is empty, or none.
    pub media_type: &'b str,
}

/// The reason that a body is not passed on.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MultipartError {
    #[error(
        "the content type has no boundary, expected for example `multipart/form-data; boundary=x7d1`; let your HTTP \
         library write both"
    )]
    NoBoundary,
    #[error(
        "the boundary of the content type has 1 to 70 letters, digits and signs such as -, and is named once"
    )]
    Boundary,
    #[error("the body does not begin with the boundary of the content type")]
    Beginning,
    #[error(
        "the boundary is in part {0} itself, or its line ends otherwise than in CR LF; choose another boundary"
    )]
    Stray(usize),
    #[error("the body ends before its last boundary, after {0} parts")]
    Unfinished(usize),
    #[error("there is data after the last boundary; leave it out")]
    Behind,
    #[error("a body has at most {max} parts", max = PARTS_MAX)]
    TooMany,
    #[error("the head of part {number} {why}")]
    Head { number: usize, why: String },
}

/// Tells whether a content type is of bodies of several parts.
pub(crate) fn is_multipart(content_type: &str) -> bool {
    content_type.get(..10).is_some_and(|begin| begin.eq_ignore_ascii_case("multipart/"))
}

/// Tells whether a content type is of forms with files.
pub fn is_form(content_type: &str) -> bool {
    without_parameters(content_type).eq_ignore_ascii_case(FORM_DATA)
}

/// The content type to send with such a body: its type and boundary, and nothing else that was said.
pub(crate) fn sent_type(essence: &str, boundary: &str) -> String {
    let is_token = |b: u8| b.is_ascii_alphanumeric() || b"'+_.-".contains(&b);
    let quote = if boundary.bytes().all(is_token) { "" } else { "\"" };
    format!("{essence}; boundary={quote}{boundary}{quote}")
}

/// Returns the boundary that a content type names.
///
/// # Errors
/// [`MultipartError`] when there is none, more than one, or one that is none.
pub(crate) fn boundary(content_type: &str) -> Result<&str, MultipartError> {
    let parameters = content_type.split(';').skip(1).filter_map(|parameter| parameter.split_once('='));
    let mut named = parameters.filter(|(name, _)| name.trim().eq_ignore_ascii_case("boundary"));
    let (_, value) = named.next().ok_or(MultipartError::NoBoundary)?;
    let value = value.trim();
    let unquoted = value.strip_prefix('"').and_then(|value| value.strip_suffix('"')).unwrap_or(value);
    let is_allowed = |b: u8| b.is_ascii_alphanumeric() || b"'()+_,-./:=?".contains(&b);
    let fits = (1..=BOUNDARY_BYTES_MAX).contains(&unquoted.len()) && unquoted.bytes().all(is_allowed);
    if fits && named.next().is_none() { Ok(unquoted) } else { Err(MultipartError::Boundary) }
}

/// Reads the parts of a body of this content type.
///
/// # Errors
/// [`MultipartError`] for the first thing that servers could read in more than one way.
pub fn parts<'b>(content_type: &str, body: &'b [u8]) -> Result<Vec<Part<'b>>, MultipartError> {
    let is_form = is_form(content_type);
    let delimiter = format!("--{}", boundary(content_type)?);
    let delimiter = delimiter.as_bytes();
    let mut rest = body.strip_prefix(delimiter).ok_or(MultipartError::Beginning)?;
    let mut parts = Vec::new();
    loop {
        if let Some(behind) = rest.strip_prefix(b"--") {
            return if matches!(behind, b"" | b"\r\n") { Ok(parts) } else { Err(MultipartError::Behind) };
        }
        let number = parts.len() + 1;
        if number > PARTS_MAX {
            return Err(MultipartError::TooMany);
        }
        // Behind a delimiter that goes on otherwise some readers see a delimiter and others a line of the part.
        let part = rest.strip_prefix(b"\r\n").ok_or(MultipartError::Stray(parts.len().max(1)))?;
        let end = find(part, delimiter).ok_or(MultipartError::Unfinished(parts.len()))?;
        let whole = part[..end].strip_suffix(b"\r\n").ok_or(MultipartError::Stray(number))?;
        let head = |why: &str| MultipartError::Head { number, why: why.to_owned() };
        let head_bytes = find(whole, b"\r\n\r\n").ok_or_else(|| head("has no end: an empty line"))?;
        if head_bytes > PART_HEAD_BYTES_MAX {
            return Err(head("is too long"));
        }
        let content = &whole[head_bytes + 4..];
        let fields = str::from_utf8(&whole[..head_bytes]).map_err(|_| head("is not UTF-8 text"))?;
        let read = if is_form { form_part(fields, content) } else { other_part(fields, content) };
        parts.push(read.map_err(|why| MultipartError::Head { number, why })?);
        rest = &part[end + delimiter.len()..];
    }
}

/// Writes a form: its content type, which names the boundary, and its parts.
///
/// # Errors
/// [`MultipartError`] when the boundary is none or occurs in a content, and for a name that servers read in more than one
/// way.
pub fn written(boundary: &str, given: &[NewPart<'_>]) -> Result<(String, Vec<u8>), MultipartError> {
    let content_type = sent_type(FORM_DATA, boundary);
    let mut body = Vec::with_capacity(given.iter().map(|part| part.content.len() + HEAD_BYTES_USUAL).sum());
    for part in given {
        body.extend_from_slice(new_head(boundary, part).as_bytes());
        body.extend_from_slice(part.content);
        body.extend_from_slice(b"\r\n");
    }
    body.extend_from_slice(format!("--{boundary}--\r\n").as_bytes());
    let read = parts(&content_type, &body)?;
    let is_same = |(part, given): &(&Part<'_>, &NewPart<'_>)| {
        part.name == given.name && part.is_file == given.file.is_some() && part.content == given.content
    };
    match read.iter().zip(given).position(|both| !is_same(&both)) {
        Some(at) => {
            let why = "could be read in another way than intended".to_owned();
            Err(MultipartError::Head { number: at + 1, why })
        }
        None => Ok((content_type, body)),
    }
}

fn new_head(boundary: &str, part: &NewPart<'_>) -> String {
    let mut head = format!("--{boundary}\r\ncontent-disposition: form-data; name=\"{}\"", part.name);
    if let Some(file) = part.file {
        // It is a person's own, and tells nobody where anything is.
        let is_odd = |c: char| c.is_control() || matches!(c, '"' | '\\' | '/');
        head.push_str(&format!("; filename=\"{}\"", file.name.replace(is_odd, "_")));
        if !file.media_type.is_empty() && file.media_type.bytes().all(|b| b.is_ascii_graphic()) {
            head.push_str(&format!("\r\ncontent-type: {}", file.media_type));
        }
    }
    head.push_str("\r\n\r\n");
    head
}

fn find(text: &[u8], wanted: &[u8]) -> Option<usize> {
    // Most places differ in the first byte already.
    text.windows(wanted.len()).position(|window| window.first() == wanted.first() && window == wanted)
}

/// The fields of a part's head: names in lower case, and values.
fn fields(head: &str) -> Result<Vec<(String, &str)>, String> {
    let mut fields: Vec<(String, &str)> = Vec::new();
    for line in head.split("\r\n") {
        let (name, value) = field(line).ok_or("has a line that is not a field such as `name: value`")?;
        if fields.iter().any(|(known, _)| *known == name) {
            return Err(format!("has `{}` twice", shown(&name)));
        }
        fields.push((name, value));
        if fields.len() > PART_FIELDS_MAX {
            return Err(format!("has more than {PART_FIELDS_MAX} fields"));
        }
    }
    Ok(fields)
}

fn field(line: &str) -> Option<(String, &str)> {
    let (name, value) = line.split_once(':')?;
    let is_name = !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
    let is_value = value.chars().all(|c| !c.is_control() || c == '\t');
    (is_name && is_value).then(|| (name.to_ascii_lowercase(), value.trim()))
}

/// A part of a body whose parts have no names.
fn other_part<'b>(head: &'b str, content: &'b [u8]) -> Result<Part<'b>, String> {
    fields(head)?;
    Ok(Part { name: "", is_file: true, content })
}

fn form_part<'b>(head: &'b str, content: &'b [u8]) -> Result<Part<'b>, String> {
    let mut disposition = None;
    for (name, value) in fields(head)? {
        match &*name {
            "content-disposition" => disposition = Some(value),
            "content-type" => {}
            "content-length" if value.parse::<usize>().is_ok_and(|bytes| bytes == content.len()) => {}
            "content-length" => {
                return Err(format!("says `content-length: {}`, and the part has another", shown(value)));
            }
            "content-transfer-encoding" if is_plain_encoding(value) => {}
            "content-transfer-encoding" => {
                return Err("has an encoding that servers do not decode".to_owned());
            }
            _ => return Err(format!("has the field `{}`, which no part of a form has", shown(&name))),
        }
    }
    let disposition = disposition.ok_or("needs `content-disposition: form-data; name=\"…\"`")?;
    let (name, is_file) = named(disposition)?;
    Ok(Part { name, is_file, content })
}

fn is_plain_encoding(value: &str) -> bool {
    ["7bit", "8bit", "binary"].iter().any(|plain| value.eq_ignore_ascii_case(plain))
}

/// The name in a disposition, and whether there is a file's.
fn named(disposition: &str) -> Result<(&str, bool), String> {
    const EXPECTED: &str = "needs `content-disposition: form-data; name=\"…\"`";
    // Some readers end a text at an escaped quote, and others go on.
    if disposition.contains('\\') {
        return Err("has a backslash, which servers read differently; leave it out".to_owned());
    }
    let kind = disposition.get(..9).filter(|kind| kind.eq_ignore_ascii_case("form-data")).ok_or(EXPECTED)?;
    let mut rest = &disposition[kind.len()..];
    let (mut name, mut file, mut other_file) = (None, None, None);
    while !rest.trim().is_empty() {
        let (key, value, behind) = parameter(rest).ok_or(EXPECTED)?;
        let place = match &*key.to_ascii_lowercase() {
            "name" => &mut name,
            "filename" => &mut file,
            "filename*" => &mut other_file,
            _ => {
                return Err(format!(
                    "has `{}` in its disposition; name and filename may be there",
                    shown(key)
                ));
            }
        };
        if place.replace(value).is_some() {
            return Err(format!("has `{}` twice", shown(key)));
        }
        rest = behind;
    }
    let name = name.ok_or(EXPECTED)?;
    // Escapes of browsers, and words of RFC 2047, which some servers undo.
    let is_escaped =
        |name: &str| ["%22", "%0d", "%0a", "=?"].iter().any(|e| name.to_ascii_lowercase().contains(e));
    if name.is_empty() || is_escaped(name) {
        return Err("has a name that servers read differently".to_owned());
    }
    Ok((name, file.or(other_file).is_some()))
}

/// The next parameter of a disposition, its value, and what follows it.
fn parameter(text: &str) -> Option<(&str, &str, &str)> {
    let (key, value) = text.trim_start().strip_prefix(';')?.split_once('=')?;
    let (key, value) = (key.trim(), value.trim_start());
    let is_token = |text: &str| {
        // Some servers take a single quote for a quote; RFC 8187 has two of them in `filename*`.
        let is_one = |c: char| {
            c.is_ascii_graphic() && !"\"(),/:;<=>?@[]{}".contains(c) && (c != '\'' || key.ends_with('*'))
        };
        !text.is_empty() && text.chars().all(is_one)
    };
    let (value, behind) = match value.strip_prefix('"') {
        Some(quoted) => quoted.split_once('"')?,
        None => {
            let (value, behind) = value.split_at(value.find(';').unwrap_or(value.len()));
            (Some(value.trim()).filter(|value| is_token(value))?, behind)
        }
    };
    let is_end = behind.trim().is_empty() || behind.trim_start().starts_with(';');
    (is_token(key) && is_end).then_some((key, value, behind))
}

#[cfg(test)]
mod tests;

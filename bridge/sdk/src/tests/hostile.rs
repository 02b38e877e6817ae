//! Strangers' texts never become code: whatever they say, the code around them stays the same.

use std::sync::LazyLock;

use proptest::{collection::vec, prelude::*, sample::select};

use super::*;

/// Pieces that end a literal or a comment somewhere, or mean something inside of one.
fn pieces() -> Vec<String> {
    serde_json::from_str(include_str!("pieces.json")).expect("a list of texts")
}

fn hostile() -> impl Strategy<Value = String> {
    vec(select(pieces()), 1..8).prop_map(|pieces| pieces.concat())
}

/// The nasty description with every text for people replaced.
fn saying(text: &str) -> (ApiDescription, Options) {
    let description = texts::replaced(many(8), text);
    let text = text.to_owned();
    let options = Options {
        service_name: text.clone(),
        service_id: text.clone(),
        price: text.clone(),
        base_url: text,
        package: Some("quakes".to_owned()),
        ..options()
    };
    (description, options)
}

/// The code without the insides of literals, without comments, and without blank lines.
fn skeleton(comment: &[&str], blocks: &[(&str, &str)], text: &str) -> String {
    let mut left = String::new();
    let mut rest = text;
    'next: while let Some(c) = rest.chars().next() {
        for (begin, end) in blocks {
            if let Some(inside) = rest.strip_prefix(begin) {
                let mut from = 0;
                loop {
                    let found = inside[from..].find(end).map(|at| from + at).expect("a block that ends");
                    let escapes = inside[..found].bytes().rev().take_while(|byte| *byte == b'\\').count();
                    if *end == "*/" || escapes % 2 == 0 {
                        rest = &inside[found + end.len()..];
                        continue 'next;
                    }
                    from = found + 1;
                }
            }
        }
        if comment.iter().any(|begin| rest.starts_with(begin)) {
            rest = &rest[rest.find('\n').unwrap_or(rest.len())..];
            continue;
        }
        left.push(c);
        rest = &rest[c.len_utf8()..];
    }
    left.lines().map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>().join("\n")
}

/// What a file is without comments and the insides of literals; `None` for one that is no code, or that holds
/// nothing of strangers but what a literal says.
fn bones(path: &str, text: &str) -> Option<String> {
    const QUOTES: [(&str, &str); 2] = [("\"", "\""), ("'", "'")];
    const SCRIPT: [(&str, &str); 3] = [("/*", "*/"), ("\"", "\""), ("`", "`")];
    let extension = path.rsplit('.').next()?;
    match extension {
        "py" => Some(skeleton(&["#"], &[("\"\"\"", "\"\"\""), QUOTES[0], QUOTES[1]], text)),
        "sh" => Some(skeleton(&["#"], &QUOTES, &text.replace("$'", "'"))),
        // The runtime has regular expressions, whose quotes would confuse this reader.
        "ts" | "js" if !path.contains("runtime") => Some(skeleton(&["//"], &SCRIPT, text)),
        _ => None,
    }
}

/// What each language makes of harmless texts.
static HARMLESS: LazyLock<Vec<Sdk>> = LazyLock::new(|| {
    let (description, options) = saying("harmless");
    Language::all().map(|language| generate(&description, language, &options).unwrap()).collect()
});

proptest! {
    #![proptest_config(ProptestConfig { cases: 16, ..ProptestConfig::default() })]

    #[test]
    fn the_code_is_the_same_whatever_strangers_say(text in hostile()) {
        let (hostile, hostile_options) = saying(&text);
        for (language, one) in Language::all().zip(HARMLESS.iter()) {
            let other = generate(&hostile, language, &hostile_options).unwrap();
            prop_assert_eq!(one.files.len(), other.files.len());
            for (one, other) in one.files.iter().zip(&other.files) {
                prop_assert_eq!(&one.path, &other.path);
                prop_assert_eq!(bones(&one.path, &one.text), bones(&other.path, &other.text), "{}", one.path);
            }
        }
    }

    #[test]
    fn any_description_becomes_code_in_every_language(description in arbitrary::descriptions(), name in hostile()) {
        for language in Language::all() {
            generate(&description, language, &Options { service_name: name.clone(), ..options() }).unwrap();
        }
    }
}

/// What build tools, or the languages of their files, evaluate or end a text at, and what a build file says in its place.
const EVALUATED: [(&str, &str); 17] = [
    ("$([System.IO.File]::ReadAllText('/etc/hostname'))", "( System.IO.File ReadAllText(' etc hostname'))"),
    ("%(Identity)", "(Identity)"),
    ("@(Compile)", "(Compile)"),
    ("%24(HOME)", "24(HOME)"),
    ("${env.HOME}", "env.HOME"),
    ("$HOME", "HOME"),
    ("#{exit}", "exit"),
    ("\\(x)", "(x)"),
    ("`id`", "id"),
    ("*/ /*", ""),
    ("<!-- -->", "-- --"),
    ("]]>", ""),
    ("\"\"\"", ""),
    ("&#36;&lt;", "36 lt"),
    ("\\u0024\n\r\t", "u0024"),
    ("; // # =", ""),
    ("a\u{202e}b\u{200f}c", "abc"),
];

fn build_files(language: Language, text: &str) -> Vec<SdkFile> {
    let (description, options) = saying(text);
    let mut files = generate(&description, language, &options).unwrap().files;
    files.retain(|file| {
        let extension = file.path.rsplit('.').next().unwrap_or_default();
        ["csproj", "gemspec", "json", "kts", "mod", "toml", "xml"].contains(&extension)
            || file.path == "Package.swift"
    });
    files
}

#[test]
fn no_build_file_has_what_a_build_tool_evaluates() {
    let hostile = EVALUATED.map(|(text, _)| text).join(" ");
    let left = EVALUATED.map(|(_, left)| left).join(" ");
    let left = left.split_whitespace().collect::<Vec<_>>().join(" ");
    for language in Language::all() {
        let files = build_files(language, &hostile);
        assert_eq!(files, build_files(language, &left), "{language}");
        assert_eq!(files.is_empty(), language == Language::Shell, "{language}");
        let is_nameless =
            matches!(language, Language::Go | Language::Kotlin | Language::Shell | Language::Swift);
        assert_ne!(files.iter().any(|file| file.text.contains(&left)), is_nameless, "{language}");
        // A gem without a summary is not built.
        assert_eq!(build_files(language, "${}"), build_files(language, "quakes"), "{language}");
    }
}

#[test]
fn wire_names_stay_exact_in_literals() {
    let text = generate(&nasty(), Language::Python, &options()).unwrap();
    let text = all_text(&text);
    for literal in [r#""quote\"'$`\\""#, r#""惑星""#, r#""größe""#, r#""c\"at""#, "9007199254740993"] {
        assert!(text.contains(literal), "{literal}");
    }
}

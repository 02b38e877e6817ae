//! Uploads as the sandbox shows them, as programs: with the client of every language, and without one in those whose code
//! runs nowhere else.

use std::collections::BTreeMap;

use anyhow::{Context, Result, ensure};
use farthing_bridge::description::ApiDescription;
use farthing_sdk::{Language, Options, SnippetBody, UploadBody, UploadCall, UploadPart, snippet, upload};

/// Everything that a literal could take amiss, and a word to find.
const NOTE: &str = "it's \"x\" $(id) `id` ${HOME} #{1} \\ noted";
/// Width and height in the answer.
const SIZE: [&str; 2] = ["640", "480"];

/// Code of the sandbox as a program.
pub struct Program {
    pub text: String,
    /// Its calls, each of which prints what it paid.
    pub calls: u64,
    /// Whether it prints the note.
    has_note: bool,
}

/// The name of the file in which the script of a language looks for the program `snippet`.
pub const fn file_name(language: Language) -> &'static str {
    match language {
        Language::Python => "snippet.py",
        Language::TypeScript => "snippet.ts",
        Language::JavaScript => "snippet.js",
        Language::Go => "snippet.go",
        Language::Rust => "snippet.rs.txt",
        Language::Kotlin => "Snippet.kt",
        Language::Java => "Snippet.java",
        Language::CSharp => "Snippet.cs",
        Language::Ruby => "snippet.rb",
        Language::Php => "snippet.php",
        Language::Shell => "snippet.sh",
        Language::Swift => "snippet.swift",
    }
}

/// The programs of a language: a form and a whole body are sent with the client, for which `options` hold, and what is left
/// is sent to the service at `address`. The files are `odd` and, in Go without a client, `plain`.
pub fn programs(
    description: &ApiDescription,
    language: Language,
    options: &Options,
    address: &str,
    (odd, plain): (&str, &str),
) -> Result<Vec<Program>> {
    let (form, whole) = (parts(odd), SnippetBody::File(odd));
    let with_client = |id: &str, body| {
        let index = description.operations.iter().position(|operation| operation.id == id);
        let index = index.context("no such operation")?;
        snippet(description, index, &BTreeMap::new(), Some(body), language, options)?.context("no code")
    };
    let (form, whole) =
        (with_client("imageSize", SnippetBody::Parts(&form))?, with_client("rawImageSize", whole)?);
    let program =
        |codes: &[&str], calls, has_note| Program { text: around(language, codes), calls, has_note };
    let (form, whole) = (form.as_str(), whole.as_str());
    let mut programs = match language {
        // What a module imports stands in it once.
        Language::TypeScript | Language::JavaScript => {
            vec![program(&[form], 1, true), program(&[whole], 1, false)]
        }
        _ => vec![program(&[form, whole], 2, true)],
    };
    // Go's own writer escapes a quote by a backslash, which no part of a form may have.
    let file = if language == Language::Go { plain } else { odd };
    for (body, has_note) in without_client(language, &parts(file), file) {
        let path = if has_note { "size" } else { "size/raw" };
        let address = format!("{address}/{path}");
        let call = UploadCall { address: &address, method: "POST", headers: &[], body };
        let text = upload(&call, language)?.context("no code")?;
        // The crates of this workspace leave the choice of a cryptography to the program.
        let main = "async fn main() -> Result<(), Box<dyn Error>> {\n";
        let installs = "    rustls::crypto::ring::default_provider().install_default().expect(\"once\");\n";
        let text = text.replace(main, &format!("{main}{installs}"));
        programs.push(Program { text, calls: 1, has_note });
    }
    Ok(programs)
}

impl Program {
    /// Checks what it printed.
    pub fn check(&self, language: Language, out: &str) -> Result<()> {
        let paid = u64::try_from(out.matches("0.001").count())?;
        ensure!(paid >= self.calls, "{} calls, of which {paid} say what they paid:\n{out}", self.calls);
        // In these an object is no text: that it was paid says that the service found an image.
        if matches!(language, Language::Java | Language::CSharp) {
            return Ok(());
        }
        let words = SIZE.into_iter().chain(self.has_note.then_some("noted"));
        let missing: Vec<&str> = words.filter(|word| !out.contains(word)).collect();
        ensure!(missing.is_empty(), "{missing:?} is missing in:\n{out}");
        Ok(())
    }
}

fn parts(file: &str) -> [UploadPart; 2] {
    let part = |name: &str, value: &str, is_file| UploadPart {
        name: name.to_owned(),
        value: value.to_owned(),
        is_file,
    };
    [part("image", file, true), part("note", NOTE, false)]
}

/// The bodies that are sent without a client, and whether they have a note. Shell, Python and TypeScript are run beside the
/// console.
fn without_client<'b>(
    language: Language,
    parts: &'b [UploadPart],
    file: &'b str,
) -> Vec<(UploadBody<'b>, bool)> {
    let form = (UploadBody::Parts(parts), true);
    let whole = (UploadBody::File { name: file, content_type: "image/png" }, false);
    match language {
        Language::Go | Language::Kotlin | Language::Rust => vec![form, whole],
        _ => Vec::new(),
    }
}

/// A program of these codes, each in a block of its own where names are given once.
fn around(language: Language, codes: &[&str]) -> String {
    let blocks = |open: &str| {
        let lines = |code: &&str| code.lines().map(indented).collect::<String>();
        codes.iter().map(|code| format!("\t{open}\n{}\t}}\n", lines(code))).collect::<String>()
    };
    let all = codes.concat();
    match language {
        Language::Python | Language::Swift => all,
        Language::TypeScript | Language::JavaScript => {
            all.replace("from \"sizes\"", "from \"./sizes/src/index.js\"")
        }
        Language::Ruby => format!("require \"sizes\"\n{all}"),
        Language::Php => format!("<?php\nrequire \"sizes/autoload.php\";\n{all}"),
        Language::Shell => {
            let begin = "#!/usr/bin/env bash\nset -euo pipefail\ncp sizes/sizes.sh .";
            format!("{begin}\n{{\n{all}}} 2>said\ncat said\n")
        }
        Language::Go => {
            let imports = "import (\n\t\"context\"\n\t\"fmt\"\n\t\"log\"\n\t\"os\"\n\n\t\"sizes\"\n)";
            let begin = format!("package main\n\n{imports}\n\nfunc main() {{\n\tctx := context.Background()");
            format!("{begin}\n{}}}\n", blocks("{"))
        }
        Language::Rust => {
            let main = "#[tokio::main(flavor = \"current_thread\")]\nasync fn main() -> Result<(), Box<dyn std::error::Error>> {";
            let installs = "\trustls::crypto::ring::default_provider().install_default().expect(\"once\");";
            format!("{main}\n{installs}\n{}\tOk(())\n}}\n", blocks("{"))
        }
        Language::Kotlin => format!("import sizes.*\n\npublic fun main() {{\n{}}}\n", blocks("run {")),
        Language::Java => {
            let main = "public static void main(String[] arguments) throws Exception {";
            format!("import sizes.*;\n\nfinal class Snippet {{\n{main}\n{}}}\n}}\n", blocks("{"))
        }
        Language::CSharp => {
            let uses = "using System;\nusing System.Threading.Tasks;\nusing Sizes;\n";
            let class = "/// <summary>Two uploads.</summary>\npublic static class Snippet\n{";
            let main = "/// <summary>Makes them.</summary>\npublic static void Main() { Run().GetAwaiter().GetResult(); }";
            let run = "private static async Task Run()\n{";
            format!("{uses}\n{class}\n{main}\n\n{run}\n{}}}\n}}\n", blocks("{"))
        }
    }
}

/// A line of a block, as gofmt has it.
fn indented(line: &str) -> String {
    if line.is_empty() { "\n".to_owned() } else { format!("\t\t{line}\n") }
}

//! The runner of all suites (`tests/suites.mjs`), with programs of the system and commands in their place; and that examples of
//! documentation, and the tests of each library and program, are built exactly where there are some.

use std::{
    env,
    fs::read,
    io::Write as _,
    path::Path,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use serde_json::json;

use super::{
    packages,
    source::{repository, source_files},
};

/// Far longer than a process takes to end.
const PATIENCE: Duration = Duration::from_secs(30);

/// What cargo tells of a program that it has built in this folder.
fn built(kind: &str, name: &str, executable: &str, is_test: bool, folder: &Path) -> String {
    let target = json!({ "kind": [kind], "name": name, "src_path": folder.join(name) });
    let manifest = folder.join("Cargo.toml");
    json!({
        "reason": "compiler-artifact", "manifest_path": manifest, "target": target, "profile": { "test": is_test },
        "executable": executable,
    })
    .to_string()
}

/// Whether all suites passed, and what was printed; nothing where node is missing.
fn run(messages: &[String], commands: &[&str], seconds: &str) -> Option<(bool, String)> {
    let runner = Command::new("node")
        .arg(repository().join("tests/suites.mjs"))
        .args(commands)
        .env("SUITE_SECONDS", seconds)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn();
    let Ok(mut runner) = runner else {
        assert!(env::var_os("CI").is_none(), "node is missing");
        eprintln!("\n  SKIPPED: how all suites are run, because node is missing\n");
        return None;
    };
    let text = messages.join("\n");
    runner.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    let output = runner.wait_with_output().unwrap();
    Some((output.status.success(), String::from_utf8(output.stdout).unwrap()))
}

/// A suite that ends once the other one has begun as well.
fn waiting(own: &Path, awaited: &Path) -> String {
    let (own, awaited) = (own.display(), awaited.display());
    format!("echo begins; touch '{own}'; until [ -e '{awaited}' ]; do sleep 0.1; done; echo ends >&2")
}

#[test]
fn two_suites_run_side_by_side_and_each_is_shown_whole() {
    let folder = tempfile::tempdir().unwrap();
    let messages = [
        built("lib", "unit", "/bin/pwd", true, folder.path()),
        built("bin", "program", "/bin/false", false, folder.path()),
        "{\"reason\":\"build-finished\",\"success\":true}".to_owned(),
    ];
    let (one, other) = (folder.path().join("one"), folder.path().join("other"));
    let commands = [waiting(&one, &other), waiting(&other, &one)];
    let Some((passed, said)) = run(&messages, &[&commands[0], &commands[1]], "60") else { return };
    assert!(passed, "{said}");
    assert_eq!(said.matches("begins\nends\n").count(), 2, "{said}");
    assert!(
        said.contains(&format!("\n{}\n", folder.path().display())),
        "not in the package's folder:\n{said}"
    );
    assert!(said.contains("3 of 3 suites passed"), "{said}");
}

#[test]
fn suites_that_fail_keep_no_other_from_running_and_are_named_at_the_end() {
    let folder = tempfile::tempdir().unwrap();
    let messages = [built("test", "hostile", "/bin/false", true, folder.path())];
    let list = "printf '\\nfailures:\\n\\n---- a::b stdout ----\\nwhy\\n\\n\\nfailures:\\n    a::b\\n\\ntest result: FAILED\\n'; exit 101";
    let Some((passed, said)) = run(&messages, &[list, "echo last"], "60") else { return };
    assert!(!passed, "{said}");
    let (outputs, end) = said.split_once("\nerror: ").unwrap();
    assert!(outputs.contains("\nlast\n") && outputs.contains("\nwhy\n"), "{said}");
    assert!(end.contains("hostile ended with 1\n"), "{said}");
    assert!(end.contains("ended with 101\nfailures:\n    a::b\n"), "{said}");
    assert!(end.contains("1 of 3 suites passed"), "{said}");
}

#[test]
fn a_suite_that_hangs_is_ended_with_all_that_it_started() {
    let Some((passed, said)) = run(&[], &["sleep 1000 & echo \"waits for $!\"; wait"], "6") else { return };
    assert!(!passed && said.contains(" was ended after 6 s"), "{said}");
    let child = said.lines().find_map(|line| line.strip_prefix("waits for ")).unwrap();
    let began = Instant::now();
    // The command line of one that has ended is empty until somebody asks how it ended, and gone then.
    while read(format!("/proc/{child}/cmdline")).is_ok_and(|line| !line.is_empty()) {
        assert!(began.elapsed() < PATIENCE, "process {child} goes on");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn a_suite_finds_the_compiler_of_this_repository_in_whatever_folder() {
    let Some((passed, said)) = run(&[], &["cd / && command -v rustc"], "60") else { return };
    let found = said.lines().find(|line| line.ends_with("/rustc")).unwrap_or_default();
    let own = Path::new(env!("CARGO")).with_file_name("rustc");
    assert!(passed, "{said}");
    assert_eq!(Path::new(found).canonicalize().ok(), own.canonicalize().ok(), "{said}");
}

#[test]
fn a_run_of_no_suite_fails() {
    let Some((passed, said)) = run(&[], &[], "60") else { return };
    assert!(!passed && said.contains("nothing was tested"), "{said}");
}

/// What blocks of documentation hold that are no examples.
const NO_EXAMPLES: [&str; 2] = ["text", "toml"];

/// Whether a file's documentation has an example, which rustdoc compiles and runs.
fn has_example(text: &str) -> bool {
    let lines = text.lines().map(str::trim_start);
    let documentation =
        lines.filter_map(|line| line.strip_prefix("///").or_else(|| line.strip_prefix("//!")));
    let fences = documentation.filter_map(|words| words.trim_start().strip_prefix("```"));
    // Every second one ends a block.
    fences.step_by(2).any(|language| !NO_EXAMPLES.contains(&language))
}

#[test]
fn packages_are_searched_for_examples_exactly_where_they_have_some() {
    let (mut wrong, mut searched) = (Vec::new(), 0);
    for package in packages() {
        let has_some = source_files(&package.source()).iter().any(|file| has_example(file.everything()));
        searched += usize::from(package.runs_examples);
        if has_some != package.runs_examples {
            wrong.push(package.manifest);
        }
    }
    assert!(searched > 0, "no documentation has an example");
    assert!(
        wrong.is_empty(),
        "`doctest = false` stands below [lib] where no documentation has an example, and nowhere else: {wrong:#?}"
    );
}

#[test]
fn libraries_and_programs_are_built_for_tests_exactly_where_they_have_some() {
    let mut wrong = Vec::new();
    for package in packages() {
        for (begins, is_tested) in &package.units {
            let folder = begins.parent().unwrap();
            // `src/bin/name/main.rs` has files of its own; `src/main.rs` and `src/bin/name.rs` have none.
            let has_files =
                begins.ends_with("lib.rs") || !folder.ends_with("src") && begins.ends_with("main.rs");
            let is_program = |path: &str| path.contains("/src/bin/") || path.ends_with("/src/main.rs");
            let has_some = source_files(folder).iter().any(|file| {
                let is_own = if has_files {
                    begins.ends_with("main.rs") || !is_program(&file.path)
                } else {
                    begins.ends_with(&file.path)
                };
                is_own && ["#[test]", "#[tokio::test"].iter().any(|mark| file.everything().contains(mark))
            });
            if has_some != *is_tested {
                wrong.push(begins.clone());
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "`test = false` and `bench = false` stand below [lib] or [[bin]] where there is no test, and nowhere else: {wrong:#?}"
    );
}

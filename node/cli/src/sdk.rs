//! `farthing sdk`: client code for a service, written into a folder.
//!
//! Nothing is written unless everything can be: files that are there and differ are replaced with `--force` only.

use farthing_control::endpoint;
use std::{
    collections::BTreeMap,
    fs, io,
    os::unix::fs::PermissionsExt,
    path::{Component, Path, PathBuf},
};

use clap::{Args, Subcommand};
use farthing_control::types::{
    self,
    sdk::{SdkLanguage, SdkRequest},
};
use farthing_sdk::Language;
use serde::Serialize;

use super::{
    Context,
    failure::{Exit, Failure},
    output::table,
    pick::{self, ServiceName},
};

#[derive(Debug, Subcommand)]
pub enum Sdk {
    /// List the languages and what their code needs
    Languages,
    /// Write typed, documented client code for a service
    Generate(Box<Generate>),
}

#[derive(Debug, Args)]
pub struct Generate {
    /// Service: its name, its UUID from `farthing catalog search`, or the first digits of the UUID
    pub service: ServiceName,
    /// Language; `farthing sdk languages` lists them
    #[arg(short, long, value_name = "LANGUAGE")]
    pub language: String,
    /// Folder to write to; created if it does not exist
    #[arg(short, long, value_name = "FOLDER")]
    pub output: PathBuf,
    /// Write everything into one file, without tests and metadata
    #[arg(long)]
    pub single_file: bool,
    /// Name of the package; by default made from the service's name
    #[arg(long, value_name = "NAME")]
    pub package: Option<String>,
    /// Folder with templates that replace the built-in ones of the same name
    #[arg(long, value_name = "FOLDER")]
    pub template_dir: Option<PathBuf>,
    /// Overwrite existing files that differ
    #[arg(long)]
    pub force: bool,
}

/// One template of the caller's.
const TEMPLATE_BYTES_MAX: u64 = 1024 * 1024;
const TEMPLATES_MAX: usize = 100;

/// The package that was written, for programs.
#[derive(Debug, Serialize)]
struct WrittenPackage<'a> {
    package: &'a str,
    folder: &'a Path,
    files: Vec<&'a str>,
    warnings: &'a [String],
}

pub(super) async fn sdk(context: &Context, verb: Sdk) -> Result<(), Failure> {
    match verb {
        Sdk::Languages => {
            // The list is this program's own: no node has to run.
            context.output.data(&SdkLanguage::all(), |languages| {
                let row = |language: &SdkLanguage| {
                    [language.name.clone(), language.title.clone(), language.needs.clone()]
                };
                table(["NAME", "LANGUAGE", "NEEDS"], languages.iter().map(row))
            })
        }
        Sdk::Generate(arguments) => generate(context, *arguments).await,
    }
}

async fn generate(context: &Context, arguments: Generate) -> Result<(), Failure> {
    let Generate { service, language, output, single_file, package, template_dir, force } = arguments;
    let Some(language) = Language::parse(&language) else {
        let names: Vec<&str> = Language::all().map(Language::name).collect();
        let next = format!("--language is one of {}", names.join(", "));
        return Err(Failure::usage(format!("there is no language {language:?}")).next(next));
    };
    let templates = template_dir.map(|folder| templates(&folder)).transpose()?.unwrap_or_default();
    let node = context.node()?;
    let service = pick::of_network(context, &node, service).await?;
    let at = endpoint::SdkWithTemplates.of(service).of(language.name());
    let request = SdkRequest { package, single_file, templates };
    let made = node.tell(at, &request).await?;
    write(&output, &made, force)?;
    let files = made.files.iter().map(|file| file.path.as_str()).collect();
    let written = WrittenPackage { package: &made.package, folder: &output, files, warnings: &made.warnings };
    made.warnings.iter().for_each(|warning| context.output.prose(&format!("renamed: {warning}")));
    context.output.data(&written, |written| {
        let files = written.files.iter().map(|file| written.folder.join(file).display().to_string());
        files.collect::<Vec<_>>().join("\n")
    })
}

/// The files of a folder by their names; what is in folders below it is not looked at.
fn templates(folder: &Path) -> Result<BTreeMap<String, String>, Failure> {
    let unreadable = |path: &Path, error: io::Error| {
        Failure::usage(format!("{} cannot be read ({error})", path.display())).next("check --template-dir")
    };
    let mut templates = BTreeMap::new();
    for entry in fs::read_dir(folder).map_err(|error| unreadable(folder, error))? {
        let path = entry.map_err(|error| unreadable(folder, error))?.path();
        let metadata = fs::metadata(&path).map_err(|error| unreadable(&path, error))?;
        if !metadata.is_file() {
            continue;
        }
        if metadata.len() > TEMPLATE_BYTES_MAX || templates.len() >= TEMPLATES_MAX {
            let what = format!(
                "{} is too much: at most {TEMPLATES_MAX} templates of {TEMPLATE_BYTES_MAX} bytes",
                path.display()
            );
            return Err(Failure::usage(what).next("choose a folder that contains only templates"));
        }
        let text = fs::read_to_string(&path).map_err(|error| unreadable(&path, error))?;
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        templates.insert(name, text);
    }
    Ok(templates)
}

/// Writes all files, or none when one is in the way.
fn write(folder: &Path, sdk: &types::sdk::Sdk, force: bool) -> Result<(), Failure> {
    if let Some(file) = folder.ancestors().find(|part| part.exists()).filter(|part| !part.is_dir()) {
        let what = format!("{} is a file; nothing was written", file.display());
        return Err(Failure::usage(what).next("choose a folder for --output"));
    }
    let mut files: Vec<(PathBuf, &str)> = Vec::new();
    for file in &sdk.files {
        let relative = Path::new(&file.path);
        if !relative.components().all(|part| matches!(part, Component::Normal(_))) {
            return Err(Failure::new(
                Exit::Failure,
                format!("`{}` is not a path inside a folder", file.path),
            ));
        }
        let path = folder.join(relative);
        let same = match fs::read(&path) {
            Ok(bytes) => bytes == file.text.as_bytes(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => true,
            Err(_) => false,
        };
        if !same && !force {
            let what = format!("{} exists and differs; nothing was written", path.display());
            return Err(Failure::usage(what).next("choose another --output or add --force"));
        }
        files.push((path, &file.text));
    }
    for (path, text) in files {
        let parent = path.parent().unwrap_or(folder);
        fs::create_dir_all(parent)
            .and_then(|()| fs::write(&path, text))
            .and_then(|()| runnable(&path, text))
            .map_err(|error| {
                Failure::new(Exit::Failure, format!("{} cannot be written ({error})", path.display()))
                    .next("check --output")
            })?;
    }
    Ok(())
}

/// Lets a script be run: whoever may read it may start it.
fn runnable(path: &Path, text: &str) -> io::Result<()> {
    if !text.starts_with("#!") {
        return Ok(());
    }
    let mut permissions = fs::metadata(path)?.permissions();
    permissions.set_mode(permissions.mode() | (permissions.mode() & 0o444) >> 2);
    fs::set_permissions(path, permissions)
}

#[cfg(test)]
mod tests {
    use super::*;
    use farthing_control::types::sdk::SdkFile;

    fn sdk(files: &[(&str, &str)]) -> types::sdk::Sdk {
        let file = |(path, text): &(&str, &str)| SdkFile { path: (*path).into(), text: (*text).into() };
        types::sdk::Sdk {
            package: "quakes".into(),
            files: files.iter().map(file).collect(),
            warnings: Vec::new(),
        }
    }

    #[test]
    fn a_file_that_differs_is_replaced_only_by_force_and_then_nothing_else_is_written_either() {
        let folder = tempfile::tempdir().unwrap();
        let read = |path: &str| fs::read_to_string(folder.path().join(path)).ok();
        write(folder.path(), &sdk(&[("src/a.py", "1"), ("b.py", "2")]), false).unwrap();
        write(folder.path(), &sdk(&[("src/a.py", "1"), ("b.py", "2")]), false).unwrap();
        let refused = write(folder.path(), &sdk(&[("new.py", "x"), ("b.py", "3")]), false).unwrap_err();
        assert!(refused.to_string().contains("b.py") && refused.to_string().contains("--force"), "{refused}");
        assert_eq!((read("new.py"), read("b.py")), (None, Some("2".to_owned())));
        write(folder.path(), &sdk(&[("new.py", "x"), ("b.py", "3")]), true).unwrap();
        assert_eq!((read("new.py"), read("b.py")), (Some("x".to_owned()), Some("3".to_owned())));
    }

    #[test]
    fn a_script_can_be_run_as_it_is_written() {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path(), &sdk(&[("a.sh", "#!/usr/bin/env bash\n"), ("a.py", "1")]), false).unwrap();
        let mode = |name: &str| fs::metadata(folder.path().join(name)).unwrap().permissions().mode();
        assert!(mode("a.sh") & 0o100 != 0 && mode("a.py") & 0o111 == 0);
    }

    #[test]
    fn nothing_is_written_outside_of_the_folder() {
        let folder = tempfile::tempdir().unwrap();
        for path in ["../a", "/a", "a/../../b"] {
            assert!(write(folder.path(), &sdk(&[(path, "1")]), true).is_err(), "{path}");
        }
    }

    #[test]
    fn templates_are_the_files_of_the_folder() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("README.md"), "# x").unwrap();
        fs::create_dir(folder.path().join("below")).unwrap();
        assert_eq!(templates(folder.path()).unwrap(), [("README.md".to_owned(), "# x".to_owned())].into());
        let missing = templates(&folder.path().join("nothing")).unwrap_err().to_string();
        assert!(missing.contains("--template-dir"), "{missing}");
    }
}

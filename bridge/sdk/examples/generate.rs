//! Writes client code for a description in a file, without a node: `generate quakes.json python out`. With `--templates`
//! the files of a folder replace the built-in templates, so that one who writes them need not build anything.

use std::{fs, path::Path};

use farthing_bridge::read;
use farthing_sdk::{Language, Options, generate};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [source, language, folder, rest @ ..] = &arguments[..] else {
        return Err("usage: generate FILE LANGUAGE FOLDER [--single-file] [--templates FOLDER]".into());
    };
    let reading = read(&fs::read(source)?).map_err(|error| error.to_string())?;
    let language = Language::parse(language).ok_or("there is no such language")?;
    let templates = rest.iter().position(|flag| flag == "--templates").and_then(|at| rest.get(at + 1));
    let mut options = Options {
        service_id: "0b5f2a3e-6a3c-4c39-9a65-6a1c3f1d2e4b".to_owned(),
        price: "0.002".to_owned(),
        single_file: rest.iter().any(|flag| flag == "--single-file"),
        ..Options::default()
    };
    for entry in templates.map(fs::read_dir).transpose()?.into_iter().flatten() {
        let path = entry?.path();
        // Rust's own end in `.j2`, so that nobody takes them for code.
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default().replace(".j2", "");
        options.templates.insert(name, fs::read_to_string(&path)?);
    }
    let started = std::time::Instant::now();
    let sdk = generate(&reading.description, language, &options)?;
    let took = started.elapsed();
    for file in &sdk.files {
        let path = Path::new(folder).join(&file.path);
        fs::create_dir_all(path.parent().ok_or("a path without a folder")?)?;
        fs::write(path, &file.text)?;
    }
    let bytes: usize = sdk.files.iter().map(|file| file.text.len()).sum();
    println!("{} files, {bytes} bytes, {took:?}", sdk.files.len());
    sdk.warnings.iter().for_each(|warning| println!("{warning}"));
    Ok(())
}

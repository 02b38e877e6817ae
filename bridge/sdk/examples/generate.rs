//! Writes client code for a description in a file, without a node: `generate quakes.json python out`.

use std::{fs, path::Path};

use farthing_bridge::read;
use farthing_sdk::{Language, Options, generate};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [source, language, folder, rest @ ..] = &arguments[..] else {
        return Err("usage: generate FILE LANGUAGE FOLDER [--single-file]".into());
    };
    let reading = read(&fs::read(source)?).map_err(|error| error.to_string())?;
    let language = Language::parse(language).ok_or("there is no such language")?;
    let options = Options {
        service_id: "0b5f2a3e-6a3c-4c39-9a65-6a1c3f1d2e4b".to_owned(),
        price: "0.002".to_owned(),
        single_file: rest.iter().any(|flag| flag == "--single-file"),
        ..Options::default()
    };
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

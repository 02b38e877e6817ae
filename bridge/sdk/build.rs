//! Packs each file of `templates/`: half a megabyte of text that most programs never write from.

use std::{env, fs, io, path::Path};

use miniz_oxide::deflate::compress_to_vec;

/// The most that the packer takes pains.
const LEVEL: u8 = 10;

fn main() -> io::Result<()> {
    println!("cargo::rerun-if-changed=templates");
    let out = env::var_os("OUT_DIR").ok_or_else(|| io::Error::other("OUT_DIR is not set"))?;
    for folder in fs::read_dir("templates")? {
        let folder = folder?;
        if !folder.file_type()?.is_dir() {
            continue;
        }
        let packed = Path::new(&out).join(folder.file_name());
        fs::create_dir_all(&packed)?;
        for file in fs::read_dir(folder.path())? {
            let file = file?;
            fs::write(packed.join(file.file_name()), compress_to_vec(&fs::read(file.path())?, LEVEL))?;
        }
    }
    Ok(())
}

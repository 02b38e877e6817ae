//! The languages: of each the profile and the templates of its folder, read once.

use std::sync::LazyLock;

use miniz_oxide::inflate::decompress_to_vec;

use super::{
    Language,
    profile::{Profile, Template},
};

/// A file of the templates as `build.rs` has packed it.
macro_rules! packed {
    ($($path:literal),+) => {
        &include_bytes!(concat!(env!("OUT_DIR"), "/", $($path),+))[..]
    };
}

/// Each language with its folder, the file that its `profile.toml` goes on in, and its templates; one that it shares with
/// another language has a name of its own in both.
macro_rules! profiles {
    (@name $file:literal) => { $file };
    (@name $file:literal as $name:literal) => { $name };
    ($($language:ident in $folder:literal $(and $further:literal)?: $($file:literal $(as $name:literal)?)+;)+) => {
        impl Language {
            pub(super) fn profile(self) -> &'static Profile {
                match self {
                    $(Self::$language => {
                        static PROFILE: LazyLock<Profile> = LazyLock::new(|| {
                            let profile = [
                                packed!($folder, "/profile.toml"),
                                $(packed!($further),)?
                            ];
                            read(&profile, &[
                                $((profiles!(@name $file $(as $name)?), packed!($folder, "/", $file))),+
                            ])
                        });
                        LazyLock::force(&PROFILE)
                    })+
                }
            }
        }
    };
}

profiles! {
    Python in "python":
        "runtime.py" "models.py" "client.py" "init.py" "single.py" "README.md" "pyproject.toml" "example.py"
        "test.py" "snippet.py" "plain.py" "upload.py" "tls.py" "py.typed";
    TypeScript in "typescript" and "typescript/common.toml":
        "options.ts" "runtime.ts" "models.ts" "imports.ts" "params.ts" "docs.ts" "client.ts" "index.ts"
        "single.ts" "README.md" "package.json" "tsconfig.json" "example.ts" "test.ts" "snippet.ts" "plain.ts"
        "upload.ts" "tls.ts" "arguments";
    JavaScript in "javascript" and "typescript/common.toml":
        "../typescript/options.ts" "runtime.js" "runtime.d.ts" "../typescript/models.ts"
        "../typescript/imports.ts" "../typescript/params.ts" "../typescript/docs.ts" "client.js"
        "client.d.ts" "index.js" "../typescript/index.ts" as "index.d.ts" "single.js" "README.md"
        "package.json" "../typescript/example.ts" as "example.js" "../typescript/test.ts" as "test.js"
        "../typescript/snippet.ts" as "snippet.js" "../typescript/arguments";
    Go in "go":
        "runtime.go" "imports.go" "models.go" "client.go" "doc.go" "single.go" "README.md" "go.mod"
        "example.go" "test.go" "snippet.go" "plain.go" "upload.go" "tls.go";
    Rust in "rust":
        "runtime.rs.j2" "imports.rs.j2" "models.rs.j2" "client.rs.j2" "lib.rs.j2" "single.rs.j2"
        "README.md.j2" "Cargo.toml.j2" "example.rs.j2" "test.rs.j2" "snippet.rs.j2" "plain.rs.j2"
        "upload.rs.j2" "tls.rs.j2";
    Kotlin in "kotlin":
        "Farthing.kt" "imports.kt" "Models.kt" "Client.kt" "single.kt" "README.md" "build.gradle.kts"
        "example.kt" "test.kt" "snippet.kt" "plain.kt" "upload.kt" "tls.kt";
    Java in "java":
        "Farthing.java" "imports.java" "Models.java" "Client.java" "single.java" "README.md" "pom.xml"
        "example.java" "test.java" "snippet.java";
    CSharp in "csharp":
        "Farthing.cs" "imports.cs" "Models.cs" "Client.cs" "single.cs" "README.md" "project.csproj"
        "example.cs" "example.csproj" "test.cs" "snippet.cs";
    Ruby in "ruby":
        "runtime.rb" "models.rb" "client.rb" "init.rb" "single.rb" "README.md" "gemspec" "example.rb"
        "test.rb" "snippet.rb";
    Php in "php":
        "runtime.php" "models.php" "client.php" "autoload.php" "single.php" "README.md" "composer.json"
        "example.php" "test.php" "snippet.php";
    Shell in "shell":
        "client.sh" "example.sh" "test.sh" "snippet.sh" "plain.sh" "upload.sh" "README.md";
    Swift in "swift":
        "Runtime.swift" "imports.swift" "Models.swift" "Client.swift" "single.swift" "README.md"
        "Package.swift" "example.swift" "snippet.swift";
}

fn read(profile: &[&[u8]], files: &[(&'static str, &[u8])]) -> Profile {
    let profile: String = profile.iter().copied().map(unpacked).collect();
    let mut profile: Profile =
        toml::from_str(&profile).expect("the profiles are compiled in, and a test reads each");
    // Where tools would take a template for something else, it ends in `.j2`.
    let name =
        |file: &'static str| file.rsplit_once('/').map_or(file, |(_, name)| name).trim_end_matches(".j2");
    let template =
        |&(file, packed): &(&'static str, &[u8])| Template { name: name(file), text: unpacked(packed) };
    profile.templates = files.iter().map(template).collect();
    profile
}

fn unpacked(packed: &[u8]) -> String {
    let text = decompress_to_vec(packed).expect("build.rs has packed it");
    String::from_utf8(text).expect("templates are text")
}

# Rust: with the crates that this workspace has built, and every warning an error.
read -ra externs <<< "$EXTERNS"
compile() { rustc --edition 2024 -D warnings -L "dependency=$DEPENDENCIES" "${externs[@]}" "$@"; }
compile --crate-name shelf --crate-type rlib -o libshelf.rlib shelf/src/lib.rs
cp "$PROGRAMS/pages.rs.txt" pages.rs
compile --crate-name pages --extern shelf=libshelf.rlib -o pages pages.rs
exec ./pages

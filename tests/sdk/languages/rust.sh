# Rust: with the crates that this workspace has built, and every warning an error.
read -ra externs <<< "$EXTERNS"
compile() { rustc --edition 2024 -D warnings -L "dependency=$DEPENDENCIES" "${externs[@]}" "$@"; }
compile --crate-name nasty --crate-type rlib --emit metadata -o nasty.rmeta nasty/src/lib.rs
for package in quakes planets; do
    compile --crate-name "$package" --crate-type rlib -o "lib$package.rlib" "$package/src/lib.rs"
done
cp "$PROGRAMS/main.rs.txt" main.rs
compile --crate-name program --extern quakes=libquakes.rlib --extern planets=libplanets.rlib -o program main.rs
exec ./program

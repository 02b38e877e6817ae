//! The bounds: below, at and above; and nothing overflows the stack of a worker.

use super::{fine, read, refused};
use crate::limits::{SDL_BYTES_MAX, SDL_DEPTH_MAX, SDL_TOKENS_MAX, TYPES_MAX};

/// Runs on a stack as small as a runtime's worker has.
fn on_a_workers_stack<T: Send + 'static>(run: impl FnOnce() -> T + Send + 'static) -> T {
    let thread = std::thread::Builder::new().stack_size(2 * 1024 * 1024).spawn(run).expect("a thread");
    thread.join().expect("the thread neither panics nor overflows its stack")
}

#[test]
fn four_mebibytes_are_read_and_a_byte_more_is_not() {
    let head = "type Query { a: Int }\n";
    for (comment, is_accepted) in
        [(SDL_BYTES_MAX - 1, true), (SDL_BYTES_MAX, true), (SDL_BYTES_MAX + 1, false)]
    {
        let sdl = format!("{head}#{}", "x".repeat(comment - head.len() - 1));
        assert_eq!(read(sdl.as_bytes()).is_ok(), is_accepted, "{} bytes", sdl.len());
    }
}

#[test]
fn four_mebibytes_in_one_description_or_one_type_are_read() {
    let description = format!("\"\"\"\n{}\n\"\"\" type Query {{ a: Int }}", "line of text\n".repeat(300_000));
    assert!(description.len() > 3 * 1024 * 1024);
    fine(&description);
    let fields: String = (0..100_000).map(|n| format!("field_{n:028}: Int\n")).collect();
    let sdl = format!("type Query {{ {fields} }}");
    assert!(sdl.len() > 4 * 1024 * 1024 - 200_000 && sdl.len() <= SDL_BYTES_MAX, "{}", sdl.len());
    let reading = fine(&sdl);
    assert_eq!(
        reading.schema.fields(reading.schema.query.expect("a query root")).map(<[_]>::len),
        Some(100_000)
    );
}

#[test]
fn tokens_are_counted() {
    // Five of `type Query { … }`… and three a field.
    let fields = (SDL_TOKENS_MAX - 4) / 3;
    let sdl = |fields: usize| {
        let fields: String = (0..fields).map(|n| format!("f{n}:Int ")).collect();
        format!("type Query{{{fields}}}")
    };
    assert_eq!((SDL_TOKENS_MAX - 4) % 3, 0, "the limit is met exactly");
    fine(&sdl(fields));
    let refused = refused(&sdl(fields + 1));
    assert!(refused.contains("more than 400000 words and signs"), "{refused}");
}

#[test]
fn types_are_counted() {
    let sdl = |types: usize| {
        let types: String = (1..types).map(|n| format!("scalar S{n}\n")).collect();
        format!("type Query {{ a: Int }}\n{types}")
    };
    fine(&sdl(TYPES_MAX - 1));
    fine(&sdl(TYPES_MAX));
    assert!(refused(&sdl(TYPES_MAX + 1)).contains("20000 are the most"));
}

#[test]
fn brackets_nest_to_the_limit_on_a_workers_stack() {
    // Braces and parentheses around the default are two of them.
    let sdl = |depth: usize| {
        let (open, close) = ("[".repeat(depth - 2), "]".repeat(depth - 2));
        format!("scalar JSON type Query {{ a(x: JSON = {open}1{close}): Int }}")
    };
    on_a_workers_stack(move || {
        fine(&sdl(SDL_DEPTH_MAX - 1));
        fine(&sdl(SDL_DEPTH_MAX));
        let refused = refused(&sdl(SDL_DEPTH_MAX + 1));
        assert!(refused.contains("nested deeper than 64"), "{refused}");
    });
}

#[test]
fn objects_nest_to_the_limit_on_a_workers_stack() {
    let (open, close) = ("{a:".repeat(SDL_DEPTH_MAX - 2), "}".repeat(SDL_DEPTH_MAX - 2));
    let sdl = format!("scalar JSON type Query {{ a(x: JSON = {open}1{close}): Int }}");
    on_a_workers_stack(move || {
        let printed = super::understood(&sdl);
        assert_eq!(super::understood(&printed), printed);
    });
}

#[test]
fn five_thousand_nested_brackets_are_refused_on_a_workers_stack() {
    let nested = |open: &str, close: &str| (open.repeat(5_000), close.repeat(5_000));
    for (open, close) in [nested("[", "]"), nested("{a:", "}"), nested("(", ")"), nested("{", "}")] {
        for sdl in [
            format!("type Query {{ a(x: [Int] = {open}1{close}): Int }}"),
            format!("type Query {{ a: {open}Int{close} }}"),
            format!("type Query @d(x: {open}1{close}) {{ a: Int }}"),
            format!("type Query {{ a: Int }} {open}{close}"),
            open.clone(),
        ] {
            on_a_workers_stack(move || {
                let refused = refused(&sdl);
                assert!(refused.contains("nested deeper than 64"), "{refused}");
            });
        }
        let closed = format!("type Query {{ a: Int }} {close}");
        on_a_workers_stack(move || assert!(refused(&closed).contains("closes nothing")));
    }
}

#[test]
fn brackets_in_strings_and_comments_do_not_count() {
    let brackets = "[{(".repeat(5_000);
    let sdl = format!(
        "# {brackets}\n\"{brackets}\" type Query {{ \"\"\" {brackets} \\\"\"\" {brackets} \"\"\" a(x: String = \"\\\"{brackets}\"): Int }}"
    );
    fine(&sdl);
}

#[test]
fn lists_nest_to_the_limit() {
    let sdl = |depth: usize| format!("type Query {{ a: {}Int{} }}", "[".repeat(depth), "]".repeat(depth));
    fine(&sdl(15));
    fine(&sdl(16));
    assert_eq!(refused(&sdl(17)), "GraphQL SDL: line 1, column 17: lists are nested deeper than 16");
}

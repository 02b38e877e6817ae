//! The promises of bodies of several parts: what is read, and what could be read in two ways.

use super::*;

const TYPE: &str = "multipart/form-data; boundary=xYz";

fn body(parts: &[(&str, &str)]) -> String {
    let parts: String =
        parts.iter().map(|(head, content)| format!("--xYz\r\n{head}\r\n\r\n{content}\r\n")).collect();
    format!("{parts}--xYz--\r\n")
}

fn of(name: &str) -> String {
    format!("Content-Disposition: form-data; name=\"{name}\"")
}

fn told(content_type: &str, body: &str) -> String {
    parts(content_type, body.as_bytes()).expect_err(body).to_string()
}

#[test]
fn parts_are_read_as_they_were_written() {
    let every: Vec<u8> = (0..=255).collect();
    let head = "--xYz\r\ncontent-disposition: form-data; filename=\"a;b.png\"; name=photo\r\n\
                Content-Type: image/png\r\nContent-Length: 256\r\n\r\n";
    let file =
        [head.as_bytes(), &every, b"\r\n--xYz\r\n", of("name").as_bytes(), b"\r\n\r\n\r\n--xYz--"].concat();
    let read = parts(TYPE, &file).unwrap();
    assert_eq!(read[0], Part { name: "photo", is_file: true, content: &every });
    assert_eq!(read[1], Part { name: "name", is_file: false, content: b"" });
    assert_eq!(read.len(), 2);
    assert!(parts(TYPE, b"--xYz--").unwrap().is_empty());
    let quoted = body(&[("content-disposition: form-data; name=\"it's\"", "7")]);
    assert_eq!(parts(TYPE, quoted.as_bytes()).unwrap()[0].name, "it's");
    let utf8 = body(&[("content-disposition: form-data; name=\"größe\"; filename*=UTF-8''%e2%82%ac", "7")]);
    let read = parts(TYPE, utf8.as_bytes()).unwrap();
    assert_eq!((read[0].name, read[0].is_file), ("größe", true));
    let mixed = body(&[("content-type: text/plain", "a"), ("x-any: b", "c")]);
    assert_eq!(parts("multipart/mixed; boundary=xYz", mixed.as_bytes()).unwrap().len(), 2);
}

#[test]
fn what_servers_could_read_in_two_ways_is_refused() {
    let fine = body(&[(&of("a"), "1")]);
    for content_type in ["multipart/form-data", "multipart/form-data; charset=utf-8"] {
        assert!(told(content_type, &fine).contains("no boundary"), "{content_type}");
    }
    for value in ["", "\"\"", "a b", "a\"b", &"x".repeat(71), "xYz; boundary=xYz", "xYz; BOUNDARY=other"] {
        let content_type = format!("multipart/form-data; boundary={value}");
        assert!(told(&content_type, &fine).contains("named once"), "{content_type}");
    }
    assert!(parts("Multipart/Form-Data;Boundary=\"xYz\"", fine.as_bytes()).is_ok());
    for (body, expected) in [
        (String::new(), "does not begin"),
        (fine.replace("xYz", "other"), "does not begin"),
        (format!("\r\n{fine}"), "does not begin"),
        (format!("a preamble\r\n{fine}"), "does not begin"),
        (format!("{fine}--xYz--"), "after the last boundary"),
        (fine.replace("--xYz--\r\n", ""), "before its last boundary, after 0 parts"),
        (fine.replace("--xYz--", "--xYz"), "before its last boundary"),
        (body(&[(&of("a"), "1\n--xYz\nb")]), "boundary is in part 1"),
        (body(&[(&of("a"), "1\r--xYz")]), "boundary is in part 1"),
        (body(&[(&of("a"), "1--xYz--2")]), "boundary is in part 1"),
        (body(&[(&of("a"), "1\r\n--xYzw\r\n2")]), "boundary is in part 1"),
        (body(&[(&of("a"), "1\r\n--xYz \r\n2")]), "boundary is in part 1"),
        (body(&[(&of("a"), "1")]).replace("\r\n\r\n", "\n\n"), "part 1 has no end"),
        (body(&[(&format!("{}\r\nContent-Length: 2", of("a")), "1")]), "says `content-length: 2`"),
        (body(&[(&format!("{}\r\nContent-Transfer-Encoding: base64", of("a")), "MQ==")]), "do not decode"),
        (body(&[(&format!("{}\r\nX-Other: 1", of("a")), "1")]), "the field `x-other`"),
        (body(&[(&format!("{0}\r\n{0}", of("a")), "1")]), "`content-disposition` twice"),
        (body(&[(&format!("{}\r\n folded", of("a")), "1")]), "not a field"),
        (body(&[(&format!("{}\nX: y", of("a")), "1")]), "not a field"),
        (body(&[("Content-Type: text/plain", "1")]), "needs `content-disposition"),
        (body(&[("Content-Disposition: attachment; name=\"a\"", "1")]), "needs `content-disposition"),
        (body(&[("Content-Disposition: form-data; filename=\"a\"", "1")]), "needs `content-disposition"),
        (body(&[("Content-Disposition: form-data; name=\"a\"; name=\"b\"", "1")]), "`name` twice"),
        (body(&[("Content-Disposition: form-data; name=\"a\"; name*=UTF-8''b", "1")]), "`name*` in its"),
        (body(&[("Content-Disposition: form-data; name=\"a\\\"; name=\"b\"", "1")]), "a backslash"),
        (body(&[("Content-Disposition: form-data; name=\"a\" b", "1")]), "needs `content-disposition"),
        (body(&[("Content-Disposition: form-data; name='_method'", "1")]), "needs `content-disposition"),
        (
            body(&[("Content-Disposition: form-data; filename=a'; name=\"b\"", "1")]),
            "needs `content-disposition",
        ),
        (body(&[(&of("=?UTF-8?Q?=5Fmethod?="), "1")]), "servers read differently"),
        (body(&[(&of(""), "1")]), "differently"),
        (body(&[(&of("a%22b"), "1")]), "differently"),
    ] {
        let told = told(TYPE, &body);
        assert!(told.contains(expected), "{body}: {told}");
    }
}

#[test]
fn there_are_only_so_many_parts_and_heads_are_short() {
    let many = |n: usize| body(&vec![(&*of("a"), ""); n]);
    assert_eq!(parts(TYPE, many(PARTS_MAX).as_bytes()).unwrap().len(), PARTS_MAX);
    assert!(told(TYPE, &many(PARTS_MAX + 1)).contains("at most 1000 parts"));
    let head = |bytes: usize| of(&"a".repeat(bytes - of("").len()));
    assert!(parts(TYPE, body(&[(&head(PART_HEAD_BYTES_MAX), "")]).as_bytes()).is_ok());
    assert!(told(TYPE, &body(&[(&head(PART_HEAD_BYTES_MAX + 1), "")])).contains("too long"));
    let fields: Vec<String> = (0..=PART_FIELDS_MAX).map(|n| format!("x{n}: y")).collect();
    assert!(told(TYPE, &body(&[(&fields.join("\r\n"), "")])).contains("more than 16 fields"));
}

#[test]
fn a_boundary_is_quoted_where_it_has_to_be() {
    assert_eq!(sent_type(FORM_DATA, "x-Y.z_1"), "multipart/form-data; boundary=x-Y.z_1");
    assert_eq!(sent_type(FORM_DATA, "a=b:c"), "multipart/form-data; boundary=\"a=b:c\"");
    assert_eq!(boundary("multipart/form-data; boundary=\"a=b:c\""), Ok("a=b:c"));
}

#[test]
fn what_is_written_is_read_as_it_was_meant() {
    let every: Vec<u8> = (0..=255).collect();
    let file = |name, media_type| Some(NewFile { name, media_type });
    let given = [
        NewPart { name: "photo", file: file("a \"b\"\\c\r\n.png", "image/png"), content: &every },
        NewPart { name: "more", file: file("größe; x=1", "not a type"), content: b"" },
        NewPart { name: "größe", file: None, content: b"\r\n--other" },
    ];
    let (content_type, body) = written("x-7", &given).unwrap();
    assert_eq!(content_type, "multipart/form-data; boundary=x-7");
    let read = parts(&content_type, &body).unwrap();
    let seen: Vec<_> = read.iter().map(|part| (part.name, part.is_file, part.content.len())).collect();
    assert_eq!(seen, [("photo", true, 256), ("more", true, 0), ("größe", false, 9)]);
    let text = String::from_utf8_lossy(&body);
    assert!(text.contains("; filename=\"a _b__c__.png\"\r\ncontent-type: image/png\r\n\r\n"), "{text}");
    assert!(!text.contains("not a type"), "{text}");
    let (content_type, body) = written("x", &[]).unwrap();
    assert!(parts(&content_type, &body).unwrap().is_empty());
}

#[test]
fn what_would_be_read_otherwise_is_not_written() {
    let told = |boundary: &str, name: &str, content: &[u8]| {
        let part = NewPart { name, file: None, content };
        written(boundary, &[part]).expect_err(name).to_string()
    };
    assert!(told("x", "a", b"1\r\n--x\r\n2").contains("head of part 2 has no end"));
    let another = format!("1\r\n--x\r\n{}\r\n\r\n2", of("b"));
    assert!(told("x", "a", another.as_bytes()).contains("head of part 1 could be read"));
    assert!(told("x", "a", b"1--x--").contains("boundary is in part 1"));
    assert!(told("a b", "a", b"1").contains("1 to 70 letters"));
    for name in [
        "",
        "a\"",
        "a\\",
        "a\"; filename=\"b",
        "a\"; name=\"b",
        "a\r\nx: y",
        "a\r\n\r\nb",
        "a\"\r\n\r\nb",
        "a%22",
    ] {
        told("x", name, b"1");
    }
    let many = vec![NewPart { name: "a", file: None, content: b"1" }; PARTS_MAX + 1];
    assert_eq!(written("x", &many), Err(MultipartError::TooMany));
    assert!(written("x", &many[1..]).is_ok());
}

//! What a description is booked as is what it takes: otherwise a stranger's fills the memory within its bounds.
//!
//! A process of its own, since it looks at the memory of the whole.

use farthing_bridge::{
    Api,
    description::{ApiDescription, Content, Operation, Response, Status},
    document::{self, Bounds},
    limits::{OPERATIONS_MAX, PATH_SEGMENTS_MAX, UNPACKED_VALUES_MAX},
};
use serde_json::{Map, Value};

/// Memory of this process in bytes; `None` where the system does not say.
fn resident_bytes() -> Option<usize> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.trim().strip_suffix(" kB")?.parse::<usize>().ok()?.checked_mul(1024)
}

/// As many operations as may be, with `segments` in all, each written as `segment` makes it.
fn wide(segments: usize, segment: impl Fn(usize) -> String) -> ApiDescription {
    let operation = |number: usize| {
        let rest: Vec<String> = (1..segments / OPERATIONS_MAX).map(&segment).collect();
        let path = format!("/{number:x}/{}", rest.join("/"));
        Operation { path, id: format!("{number:x}"), ..Operation::default() }
    };
    ApiDescription {
        title: "wide".into(),
        operations: (0..OPERATIONS_MAX).map(operation).collect(),
        ..ApiDescription::default()
    }
}

/// An example of as many maps as may be, each of so many members: room for twice as many is taken.
fn of_maps(members: usize) -> ApiDescription {
    let map: Map<String, Value> = (0..members).map(|i| (format!("{i:x}"), 0.into())).collect();
    // A map counts as four values, and is told apart from the next.
    let maps = UNPACKED_VALUES_MAX / 21 * 20 / (members + 4);
    let example = Some(Value::Array(vec![map.into(); maps]));
    let content = Content { media_type: "application/json".into(), example, ..Content::default() };
    let response = Response { status: Status::Code(200), description: String::new(), content: Some(content) };
    let operation = Operation { path: "/a".into(), responses: vec![response], ..Operation::default() };
    ApiDescription { operations: vec![operation], ..ApiDescription::default() }
}

#[test]
fn a_description_takes_no_more_memory_than_it_is_booked_as() {
    let name = |at: usize| char::from(b'a' + u8::try_from(at % 26).unwrap());
    // A parameter counts as another segment.
    let half = PATH_SEGMENTS_MAX / 2;
    let descriptions = [
        ("a", wide(PATH_SEGMENTS_MAX, |_| "a".to_owned())),
        ("{a}", wide(half, |at| format!("{{{}}}", name(at)))),
        ("a{a}", wide(half, |at| format!("a{{{}}}", name(at)))),
        ("maps", of_maps(57)),
        ("small maps", of_maps(1)),
    ];
    let mut kept = Vec::new();
    for (form, description) in descriptions {
        let packed = document::encode(&description).unwrap();
        let Some(before) = resident_bytes() else { return };
        let unpacked = document::unpack(&packed, Bounds::ASKED_FOR).unwrap();
        kept.push(Api::new(unpacked.description).unwrap());
        let taken = resident_bytes().unwrap().saturating_sub(before);
        let booked = unpacked.memory_bytes;
        println!("{form}: booked {booked}, taken {taken}");
        assert!(taken <= booked, "{} bytes packed: booked {booked}, taken {taken}", packed.len());
    }
}

//! What a description is booked as is what it takes: otherwise a stranger's fills the memory within its bounds.
//!
//! A process of its own, since it looks at the memory of the whole.

use farthing_bridge::{
    Api,
    description::{ApiDescription, Operation},
    document::{self, Bounds},
    limits::{OPERATIONS_MAX, PATH_SEGMENTS_MAX},
};

/// Memory of this process in bytes; `None` where the system does not say.
fn resident_bytes() -> Option<usize> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.trim().strip_suffix(" kB")?.parse::<usize>().ok()?.checked_mul(1024)
}

/// As many operations and segments as may be, where each segment is written as `segment` makes it.
fn wide(segment: impl Fn(usize) -> String) -> ApiDescription {
    let operation = |number: usize| {
        let rest: Vec<String> = (1..PATH_SEGMENTS_MAX / OPERATIONS_MAX).map(&segment).collect();
        let path = format!("/{number:x}/{}", rest.join("/"));
        Operation { path, id: format!("{number:x}"), ..Operation::default() }
    };
    ApiDescription {
        title: "wide".into(),
        operations: (0..OPERATIONS_MAX).map(operation).collect(),
        ..ApiDescription::default()
    }
}

#[test]
fn a_description_takes_no_more_memory_than_it_is_booked_as() {
    let name = |at: usize| char::from(b'a' + u8::try_from(at % 26).unwrap());
    let forms: [&dyn Fn(usize) -> String; 3] =
        [&|_| "a".to_owned(), &|at| format!("{{{}}}", name(at)), &|at| format!("a{{{}}}", name(at))];
    let mut kept = Vec::new();
    for form in forms {
        let packed = document::encode(&wide(form)).unwrap();
        let Some(before) = resident_bytes() else { return };
        let unpacked = document::unpack(&packed, Bounds::ASKED_FOR).unwrap();
        kept.push(Api::new(unpacked.description).unwrap());
        let taken = resident_bytes().unwrap().saturating_sub(before);
        let booked = unpacked.memory_bytes;
        println!("{}: booked {booked}, taken {taken}", form(1));
        assert!(taken <= booked, "{} bytes packed: booked {booked}, taken {taken}", packed.len());
    }
}

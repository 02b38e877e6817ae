//! What client code costs: for a service of 300 operations one language takes at most 100 ms, and for the two services of
//! the demo all twelve together at most 200 ms.

use std::{hint::black_box, time::Duration};

use criterion::{Criterion, criterion_group, criterion_main};
use farthing_bridge::{description::ApiDescription, read};
use farthing_sdk::{Language, Options, generate};

const OPERATIONS: usize = 300;

/// The description that has everything, its operations repeated until there are 300.
fn large() -> ApiDescription {
    let mut description =
        read(include_bytes!("../src/tests/nasty.json")).expect("it is a description").description;
    let own = description.operations.clone();
    description.operations = own.iter().cloned().cycle().take(OPERATIONS).collect();
    for (index, operation) in description.operations.iter_mut().enumerate() {
        operation.path = format!("/v{index}{}", operation.path);
        operation.id = format!("{} {index}", operation.id);
    }
    description
}

/// Reads the descriptions of the demo's services.
fn demo() -> Vec<ApiDescription> {
    let documents: [&[u8]; 2] = [
        include_bytes!("../../../demo-services/src/earthquakes/openapi.json"),
        include_bytes!("planets.graphql"),
    ];
    documents.map(|document| read(document).expect("it is a description").description).into()
}

fn client_code(criterion: &mut Criterion) {
    let (large, demo) = (large(), demo());
    let options = Options::default();
    let mut group = criterion.benchmark_group("client code for 300 operations");
    for language in Language::all() {
        group.bench_function(language.name(), |bencher| {
            bencher.iter(|| generate(black_box(&large), language, &options));
        });
    }
    group.finish();
    criterion.bench_function("client code for both services of the demo in all languages", |bencher| {
        bencher.iter(|| {
            for description in &demo {
                for language in Language::all() {
                    black_box(generate(black_box(description), language, &options).is_ok());
                }
            }
        });
    });
}

/// Short, because the whole must end within a minute; the medians are steady.
fn short() -> Criterion {
    Criterion::default()
        .sample_size(20)
        .warm_up_time(Duration::from_millis(500))
        .measurement_time(Duration::from_secs(3))
        .without_plots()
}

criterion_group! {
    name = languages;
    config = short();
    targets = client_code
}
criterion_main!(languages);

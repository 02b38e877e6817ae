//! Descriptions of which every text for people is the same, and descriptions of many operations.

use farthing_bridge::{
    description::ApiDescription,
    walk::{WalkStep, walk_operations},
};

/// The description with every text for people replaced.
pub fn replaced(mut description: ApiDescription, text: &str) -> ApiDescription {
    for place in [&mut description.title, &mut description.description, &mut description.version] {
        text.clone_into(place);
    }
    for operation in &mut description.operations {
        text.clone_into(&mut operation.summary);
        text.clone_into(&mut operation.description);
        for parameter in &mut operation.parameters {
            text.clone_into(&mut parameter.description);
            parameter.schema.default = Some(text.into());
            // Longer ones are not shown.
            parameter.example = Some(text.chars().take(40).collect::<String>().into());
        }
        operation.body.iter_mut().for_each(|body| text.clone_into(&mut body.description));
        operation.responses.iter_mut().for_each(|response| text.clone_into(&mut response.description));
    }
    walk_operations(&mut description, &mut |schema, _| {
        text.clone_into(&mut schema.description);
        WalkStep::Descend
    });
    for named in &mut description.schemas {
        text.clone_into(&mut named.schema.description);
    }
    description
}

/// The same with operations up to this number, each with a path and a name of its own.
pub fn many(mut description: ApiDescription, count: usize) -> ApiDescription {
    let own = description.operations.clone();
    for (index, operation) in own.iter().cycle().take(count.saturating_sub(own.len())).enumerate() {
        let mut operation = operation.clone();
        operation.path = format!("/v{index}{}", operation.path);
        operation.id = format!("{} {index}", operation.id);
        description.operations.push(operation);
    }
    description
}

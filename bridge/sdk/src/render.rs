//! Templates and their values to files.

use minijinja::{AutoEscape, Environment, UndefinedBehavior, Value, syntax::SyntaxConfig};

use super::{
    Options, SdkError, SdkFile, escape,
    profile::{Output, Profile},
};

/// The files that `options` ask for.
pub(super) fn files(
    profile: &'static Profile,
    context: &Value,
    options: &Options,
) -> Result<Vec<SdkFile>, SdkError> {
    let environment = environment(profile, options)?;
    let outputs: &[Output] =
        if options.single_file { std::slice::from_ref(&profile.single_file) } else { &profile.files };
    let file = |output: &Output| {
        let path = environment.render_str(&output.path, context.clone());
        let path = path.map_err(|error| failed(&output.path, &error))?;
        Ok(SdkFile { path, text: render(&environment, &output.template, context)? })
    };
    outputs.iter().map(file).collect()
}

/// Renders one template with its values.
pub(super) fn one(
    profile: &'static Profile,
    template: &str,
    context: &Value,
    options: &Options,
) -> Result<String, SdkError> {
    render(&environment(profile, options)?, template, context)
}

fn environment<'t>(profile: &'static Profile, options: &'t Options) -> Result<Environment<'t>, SdkError> {
    let mut environment = Environment::new();
    let syntax = SyntaxConfig::builder()
        .trim_blocks(true)
        .lstrip_blocks(true)
        .keep_trailing_newline(true)
        .build()
        .map_err(|error| failed("", &error))?;
    environment.set_syntax(syntax);
    environment.set_undefined_behavior(UndefinedBehavior::SemiStrict);
    // Each language has its own escapes.
    environment.set_auto_escape_callback(|_| AutoEscape::None);
    escape::install(&mut environment, profile);
    for template in &profile.templates {
        let text = options.templates.get(template.name).map_or(template.text.as_str(), String::as_str);
        environment.add_template(template.name, text).map_err(|error| failed(template.name, &error))?;
    }
    let is_known = |name: &&String| profile.templates.iter().any(|template| template.name == **name);
    if let Some(name) = options.templates.keys().find(|name| !is_known(name)) {
        let known: Vec<_> = profile.templates.iter().map(|template| template.name).collect();
        return Err(SdkError::UnknownTemplate {
            name: farthing_bridge::shown(name),
            known: known.join(", "),
        });
    }
    Ok(environment)
}

fn render(environment: &Environment<'_>, template: &str, context: &Value) -> Result<String, SdkError> {
    let rendered = environment.get_template(template).and_then(|template| template.render(context.clone()));
    rendered.map_err(|error| failed(template, &error))
}

/// Names the template that the mistake is in, which may be an included one.
fn failed(template: &str, error: &minijinja::Error) -> SdkError {
    let mut detail = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        detail = format!("{detail}: {error}");
        cause = error.source();
    }
    SdkError::Template { name: template.to_owned(), detail }
}

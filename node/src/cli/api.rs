//! `farthing api`: my services.

use std::path::Path;

use farthing_protocol::ServiceId;

use super::{Context, args, failure::Failure, output::table};
use crate::control::types::{Api, OperationName, PriceRequest, ServiceFile, route};

pub(super) async fn api(context: &Context, verb: args::Api) -> Result<(), Failure> {
    let node = context.node()?;
    let none = &();
    let api: Api = match verb {
        args::Api::List => {
            let apis: Vec<Api> = node.get(route::APIS).await?;
            if apis.is_empty() {
                context.output.prose("No services yet; publish one with `farthing api add FILE`.");
            }
            return context.output.data(&apis, |apis| list(apis));
        }
        args::Api::Add { file } => node.post(route::APIS, &read(&file)?).await?,
        args::Api::Price { service, price, operation } => {
            let operation = operation.as_deref().map(operation_name).transpose()?;
            let request = PriceRequest { price: price.into(), operation };
            node.post(&path(route::API_PRICE, service), &request).await?
        }
        args::Api::Pause { service } => node.post(&path(route::API_PAUSE, service), none).await?,
        args::Api::Resume { service } => node.post(&path(route::API_RESUME, service), none).await?,
        args::Api::Remove { service } => node.delete(&path(route::API, service)).await?,
    };
    context.output.data(&api, |api| list(std::slice::from_ref(api)))
}

fn path(route: &str, service: ServiceId) -> String {
    route.replace("{id}", &service.to_string())
}

fn operation_name(text: &str) -> Result<OperationName, Failure> {
    let next = "write the operation as \"GET /v1/things\"";
    let (method, path) = text.trim().split_once(' ').ok_or_else(|| Failure::usage(next))?;
    let method = method.parse().map_err(|error| Failure::usage(format!("{error}; {next}")))?;
    Ok(OperationName { method, path: path.trim().to_owned() })
}

/// A service file is TOML, or JSON when its name says so.
fn read(file: &Path) -> Result<ServiceFile, Failure> {
    let shown = file.display();
    let text = if file == Path::new("-") {
        std::io::read_to_string(std::io::stdin())
    } else {
        std::fs::read_to_string(file)
    };
    let text =
        text.map_err(|error| Failure::usage(format!("{shown} cannot be read ({error}); check the path")))?;
    let json =
        file.extension().is_some_and(|extension| extension == "json") || text.trim_start().starts_with('{');
    let parsed = if json {
        serde_json::from_str(&text).map_err(|error| error.to_string())
    } else {
        toml::from_str(&text).map_err(|error| error.to_string())
    };
    parsed.map_err(|error| {
        Failure::usage(format!("{shown} is no service file: {error}\nCorrect it and try again."))
    })
}

fn list(apis: &[Api]) -> String {
    let row = |api: &Api| {
        [
            api.id.to_string(),
            api.name.clone(),
            api.state.to_string(),
            api.price.to_string(),
            api.operations.len().to_string(),
            api.calls.to_string(),
            api.earned.to_string(),
            format!("{} ({})", api.upstream, api.upstream_class),
        ]
    };
    let heading = ["SERVICE", "NAME", "STATE", "PRICE", "OPERATIONS", "CALLS", "EARNED", "UPSTREAM"];
    table(heading, apis.iter().map(row))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_operation_is_named_by_method_and_path() {
        let name = operation_name("get /v1/things").unwrap();
        assert_eq!((name.method.to_string().as_str(), name.path.as_str()), ("GET", "/v1/things"));
        assert!(operation_name("/v1/things").is_err());
        assert!(operation_name("FETCH /v1/things").is_err());
    }

    #[test]
    fn a_service_file_is_toml_or_json() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let path = folder.path().join(name);
            std::fs::write(&path, text).unwrap();
            path
        };
        let toml = write("a.toml", "name = \"a\"\nupstream = \"http://h\"\nprice = \"0.01\"\n");
        let json = write("a.json", r#"{"name":"a","upstream":"http://h","price":"0.01"}"#);
        assert_eq!(read(&toml).unwrap(), read(&json).unwrap());
        let wrong = write("b.toml", "name = \"a\"\nupstream = \"http://h\"\nprice = 0.01\n");
        assert!(read(&wrong).unwrap_err().to_string().contains("b.toml is no service file"));
    }
}

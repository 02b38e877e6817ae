//! A node with a console, and a browser without a face.

use anyhow::{Context, Result, ensure};
use farthing_control::{endpoint, types::Console};
use farthing_testnet::{NodeOptions, NodeProcess};
use farthing_tests::nodes::no_chain;
use reqwest::{Certificate, Client, Method, Response, header, redirect::Policy};

pub const PASSWORD: &str = "four random words";

/// A node that lives without a chain.
pub struct Node {
    pub process: NodeProcess,
    pub url: String,
    _folder: tempfile::TempDir,
}

impl Node {
    pub async fn start() -> Result<Self> {
        Self::with(Vec::new()).await
    }

    pub async fn with(settings: Vec<(String, String)>) -> Result<Self> {
        Self::in_environment(settings, Vec::new()).await
    }

    /// The environment ends with a restart.
    pub async fn in_environment(
        settings: Vec<(String, String)>,
        environment: Vec<(String, String)>,
    ) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let mut options = NodeOptions::new(folder.path().join("node"));
        (options.settings, options.environment) = (settings, environment);
        let process = NodeProcess::start_on(no_chain(), options).await?;
        let console = process.control().ask(endpoint::ShowConsole).await?;
        let url = console.origin().to_owned();
        Ok(Self { process, url, _folder: folder })
    }

    /// A node, and a browser that has set its console up.
    pub async fn opened() -> Result<(Self, Browser)> {
        let node = Self::start().await?;
        let browser = node.set_up().await?;
        Ok((node, browser))
    }

    /// Stops and starts the node, after which no password is fresh; the browser follows it to its new port.
    pub async fn restart(&mut self, browser: &mut Browser) -> Result<()> {
        self.process.stop().await?;
        self.process.restart(Vec::new()).await?;
        browser.moved_to(&self.console().await?.url);
        Ok(())
    }

    pub async fn console(&self) -> Result<Console> {
        Ok(self.process.control().ask(endpoint::ShowConsole).await?)
    }

    /// A browser that has never been here.
    pub fn browser(&self) -> Result<Browser> {
        Browser::of(&self.process, &self.url)
    }

    /// A browser that has set the console up.
    pub async fn set_up(&self) -> Result<Browser> {
        set_up(&self.process).await
    }
}

/// A browser that has set the console of a node up.
pub async fn set_up(process: &NodeProcess) -> Result<Browser> {
    let console = process.control().ask(endpoint::ShowConsole).await?;
    let mut browser = Browser::of(process, console.origin())?;
    let code = console.setup_code.context("no setup code")?;
    let fields = [("code", code.as_str()), ("password", PASSWORD), ("repeated", PASSWORD)];
    let answer = browser.post("/panel/setup", &fields).await?;
    ensure!(answer.status == 303, "{}: {}", answer.status, answer.body);
    Ok(browser)
}

/// An answer that has been read.
#[derive(Debug)]
pub struct Page {
    pub status: u16,
    pub headers: header::HeaderMap,
    pub body: String,
}

impl Page {
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
    }

    /// Whether the page asks for the password before it does what the form wants.
    pub fn asks_for_password(&self) -> bool {
        self.status == 403 && self.body.contains("<h1>Enter your password</h1>")
    }

    /// The value of a hidden field.
    pub fn field(&self, name: &str) -> Result<String> {
        let begins = format!("name=\"{name}\" value=\"");
        let at = self.body.find(&begins).with_context(|| format!("no field {name}"))? + begins.len();
        Ok(self.body[at..].chars().take_while(|c| *c != '"').collect())
    }
}

/// Keeps cookies and the key for changes, sends what browsers send, follows nothing.
#[derive(Clone)]
pub struct Browser {
    client: Client,
    url: String,
    pub cookies: Vec<(String, String)>,
    /// As `key.js` keeps them.
    pub key: Option<String>,
    pub device: Option<String>,
}

impl Browser {
    /// One that has never been at `url`, the console of a node.
    pub fn of(process: &NodeProcess, url: &str) -> Result<Self> {
        farthing_serve::tls::install_provider();
        let pem = std::fs::read(process.ca_file())?;
        let host = reqwest::Url::parse(url)?.host_str().context("no host")?.to_owned();
        // Not every machine's resolver finds names below localhost.
        let here = std::net::SocketAddr::from(([127, 0, 0, 1], 0));
        let client = Client::builder()
            .tls_certs_only([Certificate::from_pem(&pem)?])
            .resolve(&host, here)
            .redirect(Policy::none())
            .no_proxy()
            .build()?;
        Ok(Self { client, url: url.to_owned(), cookies: Vec::new(), key: None, device: None })
    }

    /// The same browser on a connection that is not there yet.
    pub fn reconnected(&self, node: &Node) -> Result<Self> {
        let client = Self::of(&node.process, &self.url)?.client;
        Ok(Self { client, ..self.clone() })
    }

    pub async fn get(&mut self, path: &str) -> Result<Page> {
        let request = self.request(Method::GET, path);
        self.send(request).await
    }

    /// A form as one of our pages sends it, with the key. Where the console asks for the password, it is typed.
    pub async fn post(&mut self, path: &str, fields: &[(&str, &str)]) -> Result<Page> {
        let page = self.press(path, fields).await?;
        if !page.asks_for_password() {
            return Ok(page);
        }
        self.press(path, &[fields, &[("console_password", PASSWORD)]].concat()).await
    }

    /// A form that is answered by being led to a page, and that page.
    pub async fn post_and_follow(&mut self, path: &str, fields: &[(&str, &str)]) -> Result<Page> {
        let page = self.post(path, fields).await?;
        ensure!(page.status == 303, "{path} answers the form itself: {page:?}");
        self.get(page.header("location")).await
    }

    /// A form as one of our pages sends it, with the key and without the password.
    pub async fn press(&mut self, path: &str, fields: &[(&str, &str)]) -> Result<Page> {
        let mut fields: Vec<(String, String)> =
            fields.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        fields.extend(self.key.iter().map(|key| ("console_key".to_owned(), key.clone())));
        let device = self.device.iter().filter(|_| path == "/panel/login");
        fields.extend(device.map(|device| ("device".to_owned(), device.clone())));
        let request = self.form(path, &fields);
        self.send(request).await
    }

    /// A form as one of our pages sends it, with nothing added.
    pub fn form(&self, path: &str, fields: &[(String, String)]) -> reqwest::RequestBuilder {
        let mut body = String::new();
        for (name, value) in fields {
            let value: String = value.bytes().map(|byte| format!("%{byte:02X}")).collect();
            body.push_str(&format!("{name}={value}&"));
        }
        self.request(Method::POST, path)
            .header("sec-fetch-site", "same-origin")
            .header(header::ORIGIN, &self.url)
            .header(header::CONTENT_TYPE, "application/x-www-form-urlencoded")
            .body(body)
    }

    /// A form with files, as one of our pages sends it: names, names of files and contents.
    pub async fn upload(&mut self, path: &str, parts: &[(&str, Option<&str>, &[u8])]) -> Result<Page> {
        let request = self.upload_with(path, self.key.as_deref().unwrap_or_default(), parts);
        self.send(request).await
    }

    pub fn upload_with(
        &self,
        path: &str,
        key: &str,
        parts: &[(&str, Option<&str>, &[u8])],
    ) -> reqwest::RequestBuilder {
        const BOUNDARY: &str = "----a-boundary-that-no-content-has";
        let mut body = Vec::new();
        for (name, file, content) in [("console_key", None, key.as_bytes())].iter().chain(parts) {
            let file = file.map_or_else(String::new, |file| format!("; filename=\"{file}\""));
            let head =
                format!("--{BOUNDARY}\r\ncontent-disposition: form-data; name=\"{name}\"{file}\r\n\r\n");
            body.extend_from_slice(head.as_bytes());
            body.extend_from_slice(content);
            body.extend_from_slice(b"\r\n");
        }
        body.extend_from_slice(format!("--{BOUNDARY}--\r\n").as_bytes());
        self.request(Method::POST, path)
            .header("sec-fetch-site", "same-origin")
            .header(header::ORIGIN, &self.url)
            .header(header::CONTENT_TYPE, format!("multipart/form-data; boundary={BOUNDARY}"))
            .body(body)
    }

    pub fn request(&self, method: Method, path: &str) -> reqwest::RequestBuilder {
        let pairs: Vec<String> = self.cookies.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let mut request = self.client.request(method, format!("{}{path}", self.url));
        if let Some(key) = self.key.as_ref().filter(|_| path.starts_with("/api/")) {
            request = request.header("x-console-key", key);
        }
        if pairs.is_empty() { request } else { request.header(header::COOKIE, pairs.join("; ")) }
    }

    pub async fn send(&mut self, request: reqwest::RequestBuilder) -> Result<Page> {
        let response = request.send().await?;
        self.keep(&response);
        let mut headers = response.headers().clone();
        let place = headers.get(header::LOCATION).and_then(|value| value.to_str().ok());
        if let Some((place, handed)) = place.and_then(|place| place.split_once('#')) {
            for (name, value) in handed.split('&').filter_map(|pair| pair.split_once('=')) {
                let kept = if name == "key" { &mut self.key } else { &mut self.device };
                *kept = Some(value.to_owned());
            }
            let place = header::HeaderValue::from_str(place)?;
            headers.insert(header::LOCATION, place);
        }
        Ok(Page { status: response.status().as_u16(), headers, body: response.text().await? })
    }

    /// The node listens at another port now, and has its name still.
    pub fn moved_to(&mut self, console: &str) {
        let port = console.trim_end_matches("/panel").rsplit(':').next().unwrap_or_default();
        let name = self.url.rsplit_once(':').map_or("", |(name, _)| name);
        self.url = format!("{name}:{port}");
    }

    /// A program that was sent the cookie and nothing else.
    pub fn thief(&self) -> Self {
        Self { key: None, device: None, ..self.clone() }
    }

    pub fn session(&self) -> Option<String> {
        self.cookies
            .iter()
            .find(|(name, _)| name == "__Host-farthing-console")
            .map(|(_, value)| value.clone())
    }

    fn keep(&mut self, response: &Response) {
        for line in response.headers().get_all(header::SET_COOKIE) {
            let pair = line.to_str().unwrap_or_default().split(';').next().unwrap_or_default();
            if let Some((name, value)) = pair.split_once('=') {
                self.cookies.retain(|(own, _)| own != name);
                if !value.is_empty() {
                    self.cookies.push((name.to_owned(), value.to_owned()));
                }
            }
        }
    }
}

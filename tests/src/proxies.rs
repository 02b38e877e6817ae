//! nginx as TLS proxies in a row: what a call through a middleman's infrastructure costs.

use std::{
    fs,
    net::{TcpListener, TcpStream},
    path::Path,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};

/// Running proxies; they end with this value.
#[derive(Debug)]
pub struct Proxies {
    child: Child,
    url: String,
    ca: Vec<u8>,
}

impl Proxies {
    /// `count` proxies, each TLS in front, the last one speaking plain HTTP to `upstream`.
    ///
    /// # Errors
    /// When nginx does not start.
    pub fn start(folder: &Path, upstream: &str, count: usize) -> Result<Self> {
        let folder = folder.join("nginx");
        fs::create_dir_all(&folder)?;
        let tls = farthing_serve::tls::own(&folder, &[])?;
        let ca = fs::read(tls.ca_file.context("an authority of its own")?)?;
        let ports: Vec<u16> = (0..count).map(|_| free_port()).collect::<Result<_>>()?;
        let servers: String = ports
            .iter()
            .enumerate()
            .map(|(i, port)| {
                let next = ports.get(i + 1).map(|next| format!("https://localhost:{next}"));
                server(&folder, *port, i, next.as_deref().unwrap_or(upstream))
            })
            .collect();
        let config = format!(
            "daemon off; master_process off; pid {0}/pid; error_log {0}/error.log; \
             events {{ worker_connections 512; }} http {{ access_log off; client_body_temp_path {0}/body; \
             proxy_temp_path {0}/proxy; fastcgi_temp_path {0}/f; uwsgi_temp_path {0}/u; scgi_temp_path {0}/s; \
             {servers} }}",
            folder.display()
        );
        fs::write(folder.join("nginx.conf"), config)?;
        let child = Command::new("nginx")
            .args(["-e", "error.log", "-p"])
            .arg(&folder)
            .arg("-c")
            .arg(folder.join("nginx.conf"))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        let proxies = Self { child, url: format!("https://localhost:{}", ports[0]), ca };
        let until = Instant::now() + Duration::from_secs(10);
        while ports.iter().any(|port| TcpStream::connect(("127.0.0.1", *port)).is_err()) {
            if Instant::now() > until {
                bail!(
                    "nginx does not start: {}",
                    fs::read_to_string(folder.join("error.log")).unwrap_or_default()
                );
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(proxies)
    }

    /// Calls through all of them.
    ///
    /// # Errors
    /// When no client can be made.
    pub fn caller(&self, path: &str) -> Result<Caller> {
        let ca = reqwest::Certificate::from_pem(&self.ca)?;
        let client = reqwest::Client::builder().no_proxy().tls_certs_only([ca]).build()?;
        Ok(Caller { client, url: format!("{}{path}", self.url) })
    }
}

impl Drop for Proxies {
    fn drop(&mut self) {
        // One process without workers; both errors mean that it has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A client of the first proxy.
#[derive(Debug)]
pub struct Caller {
    client: reqwest::Client,
    url: String,
}

impl Caller {
    /// One call; the time it took.
    ///
    /// # Errors
    /// When it fails.
    pub async fn call(&self) -> Result<Duration> {
        let started = Instant::now();
        self.client.get(&self.url).send().await?.error_for_status()?.bytes().await?;
        Ok(started.elapsed())
    }
}

fn server(folder: &Path, port: u16, i: usize, next: &str) -> String {
    let folder = folder.display();
    let host = next.split("//").nth(1).unwrap_or_default();
    format!(
        "upstream next{i} {{ server {host}; keepalive 16; }} \
         server {{ listen 127.0.0.1:{port} ssl; ssl_certificate {folder}/tls/server.pem; \
         ssl_certificate_key {folder}/tls/server.pem; \
         location / {{ proxy_pass {scheme}://next{i}; proxy_http_version 1.1; \
         proxy_set_header Connection \"\"; proxy_ssl_session_reuse on; }} }} ",
        scheme = next.split("://").next().unwrap_or("http"),
    )
}

fn free_port() -> Result<u16> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}

//! nginx as TLS proxies in a row: what a call through a middleman's infrastructure costs.

use std::{
    fs,
    net::{TcpListener, TcpStream},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};

/// Running proxies; they end with this value.
#[derive(Debug)]
pub struct Proxies {
    children: Vec<Child>,
    url: String,
    authority: PathBuf,
}

impl Proxies {
    /// `count` proxies in processes of their own, as many machines would have them: each TLS in front, the last one
    /// speaking plain HTTP to `upstream`.
    pub fn start(folder: &Path, upstream: &str, count: usize) -> Result<Self> {
        let folder = folder.join("nginx");
        fs::create_dir_all(&folder)?;
        let tls = farthing_serve::tls::own(&folder, &[])?;
        let authority = tls.ca_file.context("an authority of its own")?;
        let ports: Vec<u16> = (0..count).map(|_| free_port()).collect::<Result<_>>()?;
        let first = ports.first().context("at least one proxy")?;
        let url = format!("https://localhost:{first}");
        let next = ports.iter().skip(1).map(|port| format!("https://localhost:{port}"));
        let next: Vec<String> = next.chain([upstream.to_owned()]).collect();
        let mut proxies = Self { children: Vec::new(), url, authority };
        for (port, next) in ports.iter().zip(next) {
            proxies.children.push(start_one(&folder, *port, &next)?);
        }
        let until = Instant::now() + Duration::from_secs(10);
        for port in ports {
            while TcpStream::connect(("127.0.0.1", port)).is_err() {
                if Instant::now() > until {
                    let log = folder.join(port.to_string()).join("error.log");
                    bail!("nginx does not start: {}", fs::read_to_string(log).unwrap_or_default());
                }
                std::thread::sleep(Duration::from_millis(20));
            }
        }
        Ok(proxies)
    }

    /// The address of the first one.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The authority that signed their certificates.
    pub fn authority(&self) -> &Path {
        &self.authority
    }

    pub fn processes(&self) -> Vec<u32> {
        self.children.iter().map(Child::id).collect()
    }
}

impl Drop for Proxies {
    fn drop(&mut self) {
        for child in &mut self.children {
            // Processes without workers; both errors mean that it has ended already.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// One process without workers. Connections to the next are kept, as many as there are callers, and for ever.
fn start_one(folder: &Path, port: u16, next: &str) -> Result<Child> {
    let (scheme, host) = next.split_once("://").context("an address with a scheme")?;
    let (own, folder) = (folder.join(port.to_string()), folder.display());
    fs::create_dir_all(&own)?;
    let dir = own.display();
    let config = format!(
        "daemon off; master_process off; pid {dir}/pid; error_log {dir}/error.log; \
         events {{ worker_connections 2048; }} http {{ access_log off; keepalive_requests 1000000000; \
         client_body_temp_path {dir}/body; proxy_temp_path {dir}/proxy; fastcgi_temp_path {dir}/f; \
         uwsgi_temp_path {dir}/u; scgi_temp_path {dir}/s; \
         upstream next {{ server {host}; keepalive 512; keepalive_requests 1000000000; }} \
         server {{ listen 127.0.0.1:{port} ssl; ssl_certificate {folder}/tls/server.pem; \
         ssl_certificate_key {folder}/tls/server.pem; \
         location / {{ proxy_pass {scheme}://next; proxy_http_version 1.1; \
         proxy_set_header Connection \"\"; proxy_ssl_session_reuse on; }} }} }}",
    );
    let file = own.join("nginx.conf");
    fs::write(&file, config)?;
    let child = Command::new("nginx")
        .args(["-e", "error.log", "-p"])
        .arg(&own)
        .arg("-c")
        .arg(file)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    Ok(child)
}

fn free_port() -> Result<u16> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}

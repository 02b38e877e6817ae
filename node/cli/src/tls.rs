//! `farthing tls`: what a browser or script must trust to speak with this node.
//!
//! Read from the data folder, so it works without a running node. Trusting is the machine's owner's decision:
//! the commands are printed and nothing is changed.

use clap::Subcommand;
use farthing_config::{self as config, TlsMode};
use farthing_os::shell::word;
use farthing_serve::tls::{self, OnDisk, TlsError};
use serde::Serialize;

use super::{
    Context,
    failure::{Exit, Failure},
    output::pairs,
};

#[derive(Debug, Subcommand)]
pub enum Tls {
    /// Print the SHA-256 of the authority's certificate, so that you can compare it
    Fingerprint,
    /// Print the commands that make a machine trust this node; changes nothing
    Trust,
}

/// A certificate and how a machine is made to trust it.
#[derive(Serialize)]
struct Trust {
    file: String,
    sha256: String,
    commands: Vec<TrustCommand>,
}

#[derive(Serialize)]
struct TrustCommand {
    system: &'static str,
    command: String,
}

pub(super) fn tls(context: &Context, verb: &Tls) -> Result<(), Failure> {
    let config = config::load(&context.sources())?.config;
    let (found, is_ours) = match &config.gateway.tls_mode() {
        TlsMode::OwnAuthority => (tls::authority(&config.node.data_dir)?, true),
        TlsMode::Files { cert_file, .. } => (tls::certificate(cert_file)?, false),
        TlsMode::Off => {
            return Err(Failure::new(Exit::Failure, "this node's port speaks plain HTTP")
                .next("the proxy in front of it has the certificate"));
        }
    };
    match verb {
        Tls::Fingerprint => context.output.data(&found.fingerprint, Clone::clone),
        Tls::Trust if is_ours => {
            context.output.prose(
                "Nothing was changed. These commands make a machine trust this node. For another machine, copy the \
                 file there first and compare its SHA-256.\n",
            );
            context.output.data(&trust(&found), text)
        }
        Tls::Trust => {
            let what = "your own certificate authority issued the certificate";
            Err(Failure::new(Exit::Failure, what).next("trust that authority"))
        }
    }
}

fn trust(found: &OnDisk) -> Trust {
    let file = word(&found.file);
    let name = format!("farthing-{}.crt", found.fingerprint.replace(':', "").get(..8).unwrap_or_default());
    let command = |system, command| TrustCommand { system, command };
    Trust {
        file: found.file.display().to_string(),
        sha256: found.fingerprint.clone(),
        commands: vec![
            command(
                "Debian, Ubuntu",
                format!(
                    "sudo cp {file} /usr/local/share/ca-certificates/{name} && sudo update-ca-certificates"
                ),
            ),
            command("Fedora, RHEL, Arch", format!("sudo trust anchor {file}")),
            command(
                "macOS",
                format!(
                    "sudo security add-trusted-cert -d -r trustRoot -k /Library/Keychains/System.keychain {file}"
                ),
            ),
            command("Windows", format!("certutil -user -addstore Root {file}")),
            command("curl alone", format!("curl --cacert {file} …")),
            command("Python alone", format!("export SSL_CERT_FILE={file}")),
        ],
    }
}

fn text(trust: &Trust) -> String {
    let head = pairs([("File", trust.file.clone()), ("SHA-256", trust.sha256.clone())]);
    let command = |one: &TrustCommand| format!("\n# {}\n{}", one.system, one.command);
    let commands = trust.commands.iter().map(command).collect::<Vec<_>>().join("\n");
    format!(
        "{head}\n{commands}\n\n# Firefox\n# Settings › Privacy & Security › View Certificates › Authorities › Import"
    )
}

impl From<TlsError> for Failure {
    fn from(error: TlsError) -> Self {
        Self::new(Exit::Failure, &error).next_step(error.next_step())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_commands_of_trust_take_any_path_as_one_word() {
        let found = OnDisk { file: "/it's here/ca.pem".into(), fingerprint: "AB:CD:EF:01:23".to_owned() };
        let trust = trust(&found);
        assert!(trust.commands.iter().all(|one| one.command.contains(r"'/it'\''s here/ca.pem'")));
        assert!(text(&trust).contains("farthing-ABCDEF01.crt"));
    }
}

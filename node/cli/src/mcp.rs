//! `farthing mcp`: tools for an agent, the configuration of the program that the agent runs in, and calls that wait for the user.

use std::{
    env, fs,
    io::{self, IsTerminal},
    path::{Path, PathBuf},
};

use clap::{Args, Subcommand};
use farthing_control::{endpoint, types::Approval};
use farthing_mcp::clients::{self, AgentProgram, UserFolders};
use farthing_os::files;

use super::{
    Context,
    failure::{Exit, Failure},
    output::table,
};

#[derive(Debug, Args)]
pub struct Mcp {
    /// Consumer secret whose limits apply to the agent
    #[arg(long, value_name = "NAME", default_value = "default", global = true)]
    pub secret: String,
    #[command(subcommand)]
    pub verb: Option<McpVerb>,
}

#[derive(Debug, Subcommand)]
pub enum McpVerb {
    /// Show what to put into the configuration of a program that agents run in, or put it there
    Install(Install),
    /// List calls of agents that wait for your approval, and those that you decided lately
    Approvals,
    /// Approve one call of an agent, once, for ten minutes
    Approve {
        /// Id of the approval: the agent's `approval_id`, also in `farthing mcp approvals`
        id: String,
    },
    /// Refuse one call of an agent
    Refuse {
        /// Id of the approval: the agent's `approval_id`, also in `farthing mcp approvals`
        id: String,
    },
}

#[derive(Debug, Args)]
pub struct Install {
    /// Program that agents run in
    pub program: AgentProgram,
    /// Print the configuration; the default
    #[arg(long, conflicts_with = "write")]
    pub print: bool,
    /// Write the entry into the program's file; everything else in the file stays
    #[arg(long)]
    pub write: bool,
}

pub(super) async fn mcp(context: &Context, arguments: Mcp) -> Result<(), Failure> {
    let Mcp { secret, verb } = arguments;
    match verb {
        Some(McpVerb::Install(install)) => self::install(context, &secret, &install),
        Some(McpVerb::Approvals) => {
            let all = context.node()?.ask(endpoint::Approvals).await?;
            context.output.data(&all, |all| list(all))
        }
        Some(McpVerb::Approve { id }) => {
            let approved = context.node()?.ask(endpoint::ApproveCall.of(&id)).await?;
            context.output.prose("Approved. Tell the agent to repeat the call with the same arguments.");
            context.output.data(&approved, |approved| list(std::slice::from_ref(approved)))
        }
        Some(McpVerb::Refuse { id }) => {
            let refused = context.node()?.ask(endpoint::RefuseCall.of(&id)).await?;
            context.output.data(&refused, |refused| list(std::slice::from_ref(refused)))
        }
        None => serve(context, &secret).await,
    }
}

/// Calls of agents with all of their arguments, which are the agent's words: a table makes one line of each.
fn list(approvals: &[Approval]) -> String {
    let rows = approvals.iter().map(|approval| {
        let call = &approval.call;
        let params = serde_json::to_string(&call.params).unwrap_or_default();
        let body = call.body.as_ref().map(ToString::to_string).unwrap_or_default();
        [
            approval.id.clone(),
            approval.state.to_string(),
            approval.secret.clone(),
            approval.price.to_string(),
            format!("{} s", approval.expires_in_secs),
            format!("{} {}", call.api_id_public, approval.service_name),
            format!("{} {} {params} {body}", call.method, call.path),
        ]
    });
    table(["ID", "STATE", "SECRET", "USDC", "EXPIRES", "SERVICE", "CALL"], rows)
}

/// Serves an agent. Standard output belongs to the protocol.
async fn serve(context: &Context, secret: &str) -> Result<(), Failure> {
    if io::stdin().is_terminal() {
        context.output.prose(
            "This command speaks with an agent on standard input and output. `farthing mcp install` shows how a program \
             starts it. Press Ctrl-D to end it.",
        );
    }
    farthing_mcp::serve(context.node()?, secret)
        .await
        .map_err(|error| Failure::new(Exit::Failure, &error).next(error.next_step()))
}

fn install(context: &Context, secret: &str, install: &Install) -> Result<(), Failure> {
    let program = install.program;
    let command = text_of(env::current_exe().map_err(anyhow::Error::from)?)?;
    let folder = farthing_config::node_folder(&context.sources())?;
    let folder = std::path::absolute(&folder.path).map_err(anyhow::Error::from)?;
    let arguments = clients::arguments(&text_of(folder)?, secret);
    let file = program.file(&user_folders()?);
    if !install.write {
        let configuration = program.configuration(&command, &arguments);
        context.output.data(&configuration, |configuration| format!("{configuration:#}"))?;
        context.output.prose(&format!(
            "Put this into {}, or add --write. Then restart {}.",
            file.display(),
            program.title()
        ));
        return Ok(());
    }
    write(program, &file, &command, &arguments)?;
    context.output.data(&serde_json::json!({ "file": file }), |_| String::new())?;
    context.output.prose(&format!("Wrote {}. Restart {}.", file.display(), program.title()));
    Ok(())
}

/// Puts the entry into a file, in place of an earlier one; creates the file if it is missing.
fn write(program: AgentProgram, file: &Path, command: &str, arguments: &[String]) -> Result<(), Failure> {
    // A link stays one: its target is replaced.
    let file = file.canonicalize().unwrap_or_else(|_| file.to_owned());
    let failed = |what: &str, error: &dyn std::fmt::Display| {
        Failure::new(Exit::Failure, format!("{} cannot be {what}: {error}", file.display()))
    };
    let before = match fs::read_to_string(&file) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
        Err(error) => return Err(failed("read", &error).next("add the entry by hand; --print shows it")),
    };
    let after = program
        .merged(&before, command, arguments)
        .map_err(|error| failed("changed", &error).next("add the entry by hand; --print shows it"))?;
    if let Some(folder) = file.parent() {
        fs::create_dir_all(folder)
            .map_err(|error| failed("written", &error).next(files::next_step(&error)))?;
    }
    files::replace_private(&file, after.as_bytes())
        .map_err(|error| failed("written", &error).next(files::next_step(&error)))
}

fn user_folders() -> Result<UserFolders, Failure> {
    let home = env::var_os("HOME").filter(|home| !home.is_empty());
    let home = home.ok_or_else(|| Failure::usage("HOME is not set").next("set it to your home folder"))?;
    let config = env::var_os("XDG_CONFIG_HOME").map(PathBuf::from);
    Ok(UserFolders { home: home.into(), config, is_macos: cfg!(target_os = "macos") })
}

/// A path as the text that a file in JSON can have.
fn text_of(path: PathBuf) -> Result<String, Failure> {
    path.into_os_string().into_string().map_err(|path| {
        let what = format!("the path {} is not text", Path::new(&path).display());
        Failure::usage(what).next("move the program or the data folder to a path that is text")
    })
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    #[test]
    fn an_entry_is_written_into_the_file_and_a_file_of_another_form_stays() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("Code/User/mcp.json");
        write(AgentProgram::VsCode, &file, "/bin/farthing", &[]).unwrap();
        let read = || fs::read_to_string(&file).unwrap();
        let told: Value = serde_json::from_str(&read()).unwrap();
        assert_eq!(told["servers"]["farthing"]["command"], "/bin/farthing");
        let commented = "{ // mine\n}";
        fs::write(&file, commented).unwrap();
        let failure = write(AgentProgram::VsCode, &file, "/bin/farthing", &[]).unwrap_err();
        assert!(failure.to_string().contains("add the entry by hand"), "{failure}");
        assert_eq!(read(), commented);
    }
}

//! Who breaks and heals the parts of the shop: the `watertight` program beside this one, or a command such as
//! `docker compose`. Both know `kill SERVICE` and `start SERVICE`.

use std::path::{Path, PathBuf};
use std::process::Output;
use std::time::Duration;

use anyhow::{Context as _, bail};
use reqwest::Url;
use serde::Deserialize;
use tokio::process::Command;
use tokio::time::timeout;

/// Starting a container, or a whole Postgres, takes seconds; more than this is a fault.
pub(crate) const ANSWER_WITHIN: Duration = Duration::from_secs(60);

/// Who holds the shop.
#[derive(Clone, Debug)]
pub(crate) enum Control {
    /// The program of `cargo run`, for the shop in this folder or in the usual one.
    Watertight {
        /// Where the program is.
        program: PathBuf,
        /// The folder, if not the usual one.
        home: Option<PathBuf>,
    },
    /// A command that takes a verb and a service.
    Command(Vec<String>),
    /// Nobody: nothing can be broken.
    Nobody,
}

impl Control {
    /// The program that lies beside this one.
    ///
    /// # Errors
    /// When there is none.
    pub(crate) fn beside(home: Option<PathBuf>) -> anyhow::Result<Self> {
        let own = std::env::current_exe().context("cannot tell where this program is")?;
        let program = own.with_file_name("watertight");
        if !program.is_file() {
            let shown = program.display();
            bail!("there is no {shown}: start the shop with `cargo run --release`, or give --target");
        }
        Ok(Self::Watertight { program, home })
    }

    /// The words of `--control`.
    ///
    /// # Errors
    /// When there is no word.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let words: Vec<_> = text.split_whitespace().map(str::to_owned).collect();
        if words.is_empty() { Err("must be a command".into()) } else { Ok(Self::Command(words)) }
    }

    /// Does something to a part.
    ///
    /// # Errors
    /// When it is not done, with what the command said.
    pub(crate) async fn act(&self, verb: &str, part: &str) -> anyhow::Result<()> {
        let output = self.run(&[verb, part]).await?;
        if output.status.success() { Ok(()) } else { bail!("`{verb} {part}`: {}", said(&output)) }
    }

    /// Where the shop's pages are; `None` when whoever holds it cannot tell.
    ///
    /// # Errors
    /// When no shop is running.
    pub(crate) async fn storefront(&self) -> anyhow::Result<Option<Url>> {
        #[derive(Deserialize)]
        struct Status {
            storefront: String,
        }
        if !matches!(self, Self::Watertight { .. }) {
            return Ok(None);
        }
        let output = self.run(&["status", "--json"]).await?;
        if !output.status.success() {
            bail!("{}", said(&output));
        }
        let status: Status = serde_json::from_slice(&output.stdout).context("an unknown status")?;
        Ok(Some(Url::parse(&status.storefront)?))
    }

    /// Whether the books agree and every order is settled, and what the audit said; `None` when whoever
    /// holds the shop has no audit.
    ///
    /// # Errors
    /// When the audit cannot be run.
    pub(crate) async fn audit(&self) -> anyhow::Result<Option<(bool, String)>> {
        if !matches!(self, Self::Watertight { .. }) {
            return Ok(None);
        }
        let output = self.run(&["audit", "--settled"]).await?;
        Ok(Some((output.status.success(), said(&output))))
    }

    async fn run(&self, args: &[&str]) -> anyhow::Result<Output> {
        let mut command = match self {
            Self::Watertight { program, home } => watertight(program, home.as_deref()),
            Self::Command(words) => {
                let mut command = Command::new(&words[0]);
                command.args(&words[1..]);
                command
            }
            Self::Nobody => bail!("nobody can do `{}`: give --control", args.join(" ")),
        };
        command.args(args).stdin(std::process::Stdio::null()).kill_on_drop(true);
        let shown = command.as_std().get_program().to_string_lossy().into_owned();
        let output = timeout(ANSWER_WITHIN, command.output()).await;
        let output = output.with_context(|| format!("{shown} {} takes too long", args.join(" ")))?;
        output.with_context(|| format!("cannot run {shown}"))
    }
}

fn watertight(program: &Path, home: Option<&Path>) -> Command {
    let mut command = Command::new(program);
    command.envs(home.map(|home| ("WATERTIGHT_HOME", home)));
    command
}

fn said(output: &Output) -> String {
    let text = [output.stdout.as_slice(), output.stderr.as_slice()].concat();
    String::from_utf8_lossy(&text).trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_command_gets_verb_and_part_and_its_refusal_is_told() {
        let control = Control::parse("test payments = ").unwrap();
        // `test payments = kill payments` has one word too many.
        let refused = control.act("kill", "payments").await.unwrap_err().to_string();
        assert!(refused.starts_with("`kill payments`:"), "{refused}");
        Control::parse("true").unwrap().act("kill", "payments").await.unwrap();
        let missing =
            Control::parse("/nonexistent/compose").unwrap().act("kill", "payments").await.unwrap_err();
        assert!(format!("{missing:#}").contains("cannot run /nonexistent/compose"), "{missing:#}");
        assert!(Control::parse("  ").is_err());
    }

    #[tokio::test]
    async fn nobody_breaks_nothing() {
        assert!(Control::Nobody.act("kill", "payments").await.is_err());
        assert!(Control::Nobody.storefront().await.unwrap().is_none());
        assert!(Control::Nobody.audit().await.unwrap().is_none());
    }
}

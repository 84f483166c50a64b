//! Databases on a server: its address, and one more database on it.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context as _, bail};
use tokio::process::Command;
use tokio::time::timeout;
use url::Url;

/// How long one statement of ours may take. `CREATE DATABASE` copies files and syncs them.
const STATEMENT_WITHIN: Duration = Duration::from_secs(30);

/// The address of a database of this name on the server of `server`.
///
/// # Errors
/// When the name is not lower-case letters, digits and `_`.
pub fn url_of(server: &Url, name: &str) -> anyhow::Result<Url> {
    let plain = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '_';
    if name.is_empty() || !name.chars().all(plain) {
        bail!("{name:?} is no name for a database here: lower-case letters, digits and _ only");
    }
    let mut url = server.clone();
    url.set_path(name);
    Ok(url)
}

/// Creates the database if it is not there, and returns its address.
///
/// `server` is an address with a database that we may connect to, else `postgres` is taken. The work is done
/// by the program `psql`.
///
/// # Errors
/// When the server cannot be reached or refuses, with what psql said.
pub async fn create(psql: &Path, server: &Url, name: &str) -> anyhow::Result<Url> {
    let url = url_of(server, name)?;
    let mut by = server.clone();
    if by.path().len() < 2 {
        by.set_path("postgres");
    }
    let there = format!("SELECT count(*) FROM pg_database WHERE datname = '{name}'");
    if run(psql, &by, &there).await?.trim() == "0" {
        run(psql, &by, &format!("CREATE DATABASE {name}")).await?;
    }
    Ok(url)
}

/// Runs one statement with psql and returns what it printed, without headings.
///
/// # Errors
/// When it fails or takes more than 30 s, with what psql said.
pub async fn run(psql: &Path, database: &Url, statement: &str) -> anyhow::Result<String> {
    // The password goes by a variable: everyone on the machine can read arguments.
    let mut shown = database.clone();
    let password =
        shown.password().map(|word| percent_encoding::percent_decode_str(word).collect::<Vec<u8>>());
    if shown.set_password(None).is_err() {
        bail!("{database} is no address of a database");
    }
    let mut command = Command::new(psql);
    command.args(["--no-psqlrc", "--no-password", "--quiet", "--tuples-only", "--no-align"]);
    command.args(["--set", "ON_ERROR_STOP=1", "--dbname", shown.as_str(), "--command", statement]);
    for variable in ["PGOPTIONS", "PGSERVICE", "PGPASSFILE"] {
        command.env_remove(variable);
    }
    if let Some(password) = password {
        use std::os::unix::ffi::OsStringExt as _;
        command.env("PGPASSWORD", std::ffi::OsString::from_vec(password));
    }
    command.env("PGCONNECT_TIMEOUT", "10").stdin(Stdio::null()).kill_on_drop(true);
    let output = timeout(STATEMENT_WITHIN, command.output())
        .await
        .with_context(|| format!("psql took more than {STATEMENT_WITHIN:?} for: {statement}"))?
        .with_context(|| format!("cannot run {}", psql.display()))?;
    if !output.status.success() {
        bail!("psql at {shown}: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_would_need_quotes_is_refused() {
        let server = Url::parse("postgres://postgres:word@127.0.0.1:5000/?sslmode=disable").unwrap();
        let url = url_of(&server, "orders_2").unwrap();
        assert_eq!(url.as_str(), "postgres://postgres:word@127.0.0.1:5000/orders_2?sslmode=disable");
        for name in ["", "Orders", "a;b", "a'b", "a b", "a/b"] {
            assert!(url_of(&server, name).is_err(), "{name:?} was taken");
        }
    }
}

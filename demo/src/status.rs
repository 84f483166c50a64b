//! What `status` shows: the addresses and every part.
//!
//! The JSON is a door that tests and drills use from outside; its names are fixed.

use serde::{Deserialize, Serialize};

/// The shop at one moment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Status {
    /// Where its pages are.
    pub(crate) storefront: String,
    /// Where its console is; none yet.
    pub(crate) console: Option<String>,
    /// Every part, servers first.
    pub(crate) parts: Vec<PartStatus>,
}

/// One part at one moment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PartStatus {
    /// What the commands call it.
    pub(crate) name: String,
    /// Its process number; null when it is stopped.
    pub(crate) pid: Option<i32>,
    /// `running`, `stopped` or `paused`.
    pub(crate) state: String,
    /// Where it serves, `host:port`.
    pub(crate) public: Option<String>,
    /// Where it tells how it is, `host:port`; null for servers that are not ours.
    pub(crate) admin: Option<String>,
}

impl Status {
    /// A table for people.
    pub(crate) fn table(&self) -> String {
        let mut rows = vec![["PART", "STATE", "PID", "PUBLIC", "ADMIN"].map(str::to_owned)];
        let or_dash = |text: &Option<String>| text.clone().unwrap_or_else(|| "-".into());
        for part in &self.parts {
            rows.push([
                part.name.clone(),
                part.state.clone(),
                or_dash(&part.pid.map(|pid| pid.to_string())),
                or_dash(&part.public),
                or_dash(&part.admin),
            ]);
        }
        let width = |column: usize| rows.iter().map(|row| row[column].len()).max().unwrap_or(0);
        let widths: [usize; 5] = std::array::from_fn(width);
        let mut text = format!("storefront  {}\n", self.storefront);
        if let Some(console) = &self.console {
            text.push_str(&format!("console     {console}\n"));
        }
        for row in &rows {
            let line: Vec<String> =
                row.iter().zip(widths).map(|(cell, width)| format!("{cell:<width$}")).collect();
            text.push('\n');
            text.push_str(line.join("  ").trim_end());
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status() -> Status {
        Status {
            storefront: "http://127.0.0.1:8080".into(),
            console: None,
            parts: vec![
                PartStatus {
                    name: "postgres".into(),
                    pid: Some(12),
                    state: "running".into(),
                    public: Some("127.0.0.1:20001".into()),
                    admin: None,
                },
                PartStatus {
                    name: "payments".into(),
                    pid: None,
                    state: "stopped".into(),
                    public: Some("127.0.0.1:20002".into()),
                    admin: Some("127.0.0.1:20003".into()),
                },
            ],
        }
    }

    #[test]
    fn the_json_has_the_fixed_names_and_nothing_else() {
        let expected = serde_json::json!({
            "storefront": "http://127.0.0.1:8080",
            "console": null,
            "parts": [
                {"name": "postgres", "pid": 12, "state": "running", "public": "127.0.0.1:20001", "admin": null},
                {"name": "payments", "pid": null, "state": "stopped",
                 "public": "127.0.0.1:20002", "admin": "127.0.0.1:20003"},
            ],
        });
        assert_eq!(serde_json::to_value(status()).unwrap(), expected);
    }

    #[test]
    fn the_table_is_aligned() {
        let expected = "storefront  http://127.0.0.1:8080\n\n\
            PART      STATE    PID  PUBLIC           ADMIN\n\
            postgres  running  12   127.0.0.1:20001  -\n\
            payments  stopped  -    127.0.0.1:20002  127.0.0.1:20003";
        assert_eq!(status().table(), expected);
    }
}

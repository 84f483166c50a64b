//! The last lines of a log, for the moment when a part does not start.

use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::Path;

/// How much of the end of a log is looked at, in bytes.
const LOOK_AT: u64 = 16 * 1024;

/// The last lines of a log, each indented by two spaces, or a word on why there are none.
pub fn tail(path: &Path, lines: usize) -> String {
    match read_end(path) {
        Err(fault) => format!("  (cannot read {}: {fault})", path.display()),
        Ok(text) if text.trim().is_empty() => format!("  ({} is empty)", path.display()),
        Ok(text) => {
            let all: Vec<&str> = text.trim_end().lines().collect();
            let from = all.len().saturating_sub(lines);
            all.iter().skip(from).map(|line| format!("  {line}")).collect::<Vec<_>>().join("\n")
        }
    }
}

fn read_end(path: &Path) -> std::io::Result<String> {
    let mut file = File::open(path)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(LOOK_AT)))?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_lines_are_shown_and_an_empty_or_missing_log_says_so() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.log");
        assert!(tail(&path, 2).contains("cannot read"));
        std::fs::write(&path, "").unwrap();
        assert!(tail(&path, 2).contains("is empty"));
        std::fs::write(&path, "one\ntwo\nthree\n").unwrap();
        assert_eq!(tail(&path, 2), "  two\n  three");
    }
}

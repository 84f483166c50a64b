//! Finding server programs.
//!
//! Debian keeps Postgres's server programs out of `PATH`, one folder for each version, and puts wrappers for
//! the client programs into it. All programs of a cluster must be of one version, so a folder is looked for
//! that holds them all.

use std::path::{Path, PathBuf};

/// The folder that holds all these programs: the first in `PATH`, else the best of the others.
///
/// A program in `PATH` that is a link stands for the folder it leads to, where its siblings are.
pub(crate) fn folder_of(programs: &[&str], others: &[PathBuf]) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let in_path = std::env::split_paths(&path).filter_map(|folder| {
        let first = folder.join(programs.first()?).canonicalize().ok()?;
        Some(first.parent()?.to_path_buf())
    });
    in_path
        .chain(others.iter().cloned())
        .find(|folder| programs.iter().all(|name| is_program(&folder.join(name))))
}

/// The first program of this name in `PATH`.
pub(crate) fn in_path(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).map(|folder| folder.join(name)).find(|found| is_program(found))
}

/// `/usr/lib/postgresql/VERSION/bin`, the newest version first.
pub(crate) fn debian_postgres() -> Vec<PathBuf> {
    let mut versions: Vec<(u32, PathBuf)> = std::fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| Some((entry.file_name().to_str()?.parse().ok()?, entry.path().join("bin"))))
        .collect();
    versions.sort();
    versions.into_iter().rev().map(|(_, bin)| bin).collect()
}

fn is_program(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::metadata(path).is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_counts_only_with_all_programs_in_it() {
        assert!(in_path("sh").is_some());
        assert!(in_path("no-such-program-here").is_none());
        let sh = in_path("sh").unwrap().canonicalize().unwrap();
        let folder = sh.parent().unwrap().to_path_buf();
        assert!(folder_of(&["sh", "no-such-program-here"], &[folder]).is_none());
        assert!(folder_of(&["sh"], &[]).is_some());
    }
}

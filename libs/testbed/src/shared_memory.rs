//! The one thing of a killed Postgres that outlives its processes and its files.
//!
//! Postgres keeps a System V segment of a few bytes as a lock on its data. An orderly end removes it, a start
//! on the same data takes it over; but after a kill with the data thrown away it stays until the machine
//! restarts, and a machine has places for 4096 of them.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::process::Command;

/// Removes the segment of a cluster whose processes are gone. Call it before the data goes.
pub(crate) fn forget(data: &Path) {
    let Some(id) = segment_of(data) else { return };
    // A failure costs a few bytes of the machine's memory and must not cost anybody a test.
    match Command::new("ipcrm").args(["-m", &id.to_string()]).output() {
        Ok(done) if done.status.success() => {}
        Ok(done) => tracing::debug!(id, "ipcrm: {}", String::from_utf8_lossy(&done.stderr).trim()),
        Err(fault) => tracing::debug!(id, "cannot run ipcrm: {fault}"),
    }
}

/// The segment that the cluster's lock file names, if it is the cluster's owner's.
fn segment_of(data: &Path) -> Option<i32> {
    let lock = fs::read_to_string(data.join("postmaster.pid")).ok()?;
    let owner = fs::metadata(data).ok()?.uid();
    let segments = fs::read_to_string("/proc/sysvipc/shm").ok()?;
    same_segment(&lock, &segments, owner)
}

/// The seventh line of the lock file holds the key and the number of the segment. After a restart of the
/// machine the number may be another's: so key, number and owner all have to agree.
///
/// Whether it is still in use is not asked. The processes are gone by now, but the kernel may be at tidying up
/// the last one's memory; the segment then goes with it.
fn same_segment(lock: &str, segments: &str, owner: u32) -> Option<i32> {
    let mut named = lock.lines().nth(6)?.split_whitespace().map(|text| text.parse::<i64>().ok());
    let (key, id) = (named.next()??, named.next()??);
    let owner = i64::from(owner);
    // Columns: key shmid perms size cpid lpid nattch uid ..
    let found = segments.lines().any(|row| {
        let row: Vec<Option<i64>> = row.split_whitespace().map(|text| text.parse().ok()).collect();
        let column = |at: usize| row.get(at).copied().flatten();
        (column(0), column(1), column(7)) == (Some(key), Some(id), Some(owner))
    });
    if found { i32::try_from(id).ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_segment_with_this_key_number_and_owner_is_named() {
        let lock = "12\n/data\n1700000000\n24001\n\n127.0.0.1\n  1234567        42\nready   \n";
        let row = |key: i64, id: i32, uid: u32| {
            format!("key shmid perms\n {key} {id} 600 56 10 11 1 {uid} 104 101 104\n")
        };
        assert_eq!(same_segment(lock, &row(1_234_567, 42, 101), 101), Some(42));
        assert_eq!(same_segment(lock, &row(1_234_567, 42, 0), 101), None);
        assert_eq!(same_segment(lock, &row(1_234_567, 43, 101), 101), None);
        assert_eq!(same_segment(lock, &row(7, 42, 101), 101), None);
        assert_eq!(same_segment("12\n", &row(1_234_567, 42, 101), 101), None);
    }
}

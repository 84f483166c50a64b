//! Where a long start tells what it is doing.

use std::fmt;
use std::sync::Arc;

/// Takes short lines such as `installing postgresql with apt`.
#[derive(Clone)]
pub struct Progress(Arc<dyn Fn(&str) + Send + Sync>);

impl Progress {
    /// Lines go to this function.
    pub fn to(say: impl Fn(&str) + Send + Sync + 'static) -> Self {
        Self(Arc::new(say))
    }

    /// Lines go to standard error, as a test wants it.
    pub fn stderr() -> Self {
        Self::to(|line| eprintln!("{line}"))
    }

    /// Tells a line.
    pub fn say(&self, line: impl AsRef<str>) {
        (self.0)(line.as_ref());
    }
}

impl Default for Progress {
    fn default() -> Self {
        Self::stderr()
    }
}

impl fmt::Debug for Progress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Progress")
    }
}

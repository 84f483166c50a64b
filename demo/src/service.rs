//! One service, as a process of this same program: `watertight service payments`.
//!
//! So one build makes the whole shop. Each service is a program of its own as well, which is what its image
//! runs; both come in by the same `start`.

use std::ffi::OsString;
use std::process::ExitCode;

type Start = fn(Vec<OsString>) -> ExitCode;

/// The services of this program.
const SERVICES: [(&str, Start); 4] = [
    ("catalog", catalog::start),
    ("orders", orders::start),
    ("payments", payments::start),
    ("storefront", storefront::start),
];

/// Runs a service until it ends, and ends with its exit code.
pub(crate) fn run(name: &str, args: Vec<OsString>) -> ExitCode {
    let Some((_, start)) = SERVICES.iter().find(|(known, _)| *known == name) else {
        let known = SERVICES.map(|(name, _)| name).join(", ");
        eprintln!("there is no service {name}; there are {known}");
        return ExitCode::FAILURE;
    };
    // As in a program of its own, the first argument is the name.
    start(std::iter::once(OsString::from(name)).chain(args).collect())
}

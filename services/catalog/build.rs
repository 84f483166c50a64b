//! `sqlx::migrate!` reads a folder that cargo does not watch by itself.

fn main() {
    println!("cargo:rerun-if-changed=migrations");
}

//! Prints the definition of the custom resource, as it is generated from the Rust types.
//!
//! `cargo run --package krm-stream-declared --example print-crd | kubectl apply --server-side --filename -`

#[expect(clippy::print_stdout, reason = "printing is what it is for")]
fn main() -> Result<(), serde_json::Error> {
    print!("{}", krm_stream_declared::definition_json()?);
    Ok(())
}

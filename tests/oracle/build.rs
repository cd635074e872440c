//! Makes the messages of `proto/lf/a2a/v1` and their JSON, with generators that know nothing of us.

use std::error::Error;
use std::path::Path;

use protox::prost::Message as _;

const PACKAGE: &str = ".lf.a2a.v1";

fn main() -> Result<(), Box<dyn Error>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../proto");
    let source = folder.join("lf/a2a/v1/a2a.proto");
    println!("cargo::rerun-if-changed={}", source.display());
    let files = protox::compile([&source], [&folder])?;
    pbjson_build::Builder::new().register_descriptors(&files.encode_to_vec())?.build(&[PACKAGE])?;
    prost_build::Config::new()
        .compile_well_known_types()
        .extern_path(".google.protobuf", "::pbjson_types")
        .compile_fds(files)?;
    Ok(())
}

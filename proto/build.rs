//! Compiles the `.proto` files with protox, so that building needs no protoc.

use std::{env, error::Error, fs, path::PathBuf};

use prost::Message as _;

/// Where the package `berth.v1` lies.
const PACKAGE: &str = "berth/v1";

/// Imported by the error details that `tonic_types` carries, whose own descriptor set leaves it out.
const ALSO_REFLECTED: &str = "google/protobuf/any.proto";

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed={PACKAGE}");

    let mut files = vec![PathBuf::from(ALSO_REFLECTED)];
    for entry in fs::read_dir(PACKAGE)? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "proto") {
            files.push(path);
        }
    }
    // A directory comes in any order; the descriptor set has one.
    files.sort();

    // Imports and comments are kept: reflection serves both.
    let descriptors = protox::Compiler::new(["."])?
        .include_imports(true)
        .include_source_info(true)
        .open_files(files)?
        .file_descriptor_set();
    let out = PathBuf::from(env::var("OUT_DIR")?);
    fs::write(out.join("berth.v1.bin"), descriptors.encode_to_vec())?;

    tonic_prost_build::configure()
        // A map in hash order would make equal answers differ in their bytes.
        .btree_map(".")
        .compile_fds(descriptors)?;
    Ok(())
}

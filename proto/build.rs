//! Compiles the `.proto` files with protox, so that building needs no protoc.

use std::{env, error::Error, fs, path::PathBuf};

use prost::Message as _;
use prost_types::FileDescriptorSet;

/// Where the package `berth.v1` lies.
const PACKAGE: &str = "berth/v1";
/// Where the packages of others lie, which Berth speaks with and does not serve.
const FOREIGN: [&str; 2] = ["kubelet", "nri"];

/// Imported by the error details that `tonic_types` carries, whose own descriptor set leaves it out.
const ALSO_REFLECTED: &str = "google/protobuf/any.proto";

fn main() -> Result<(), Box<dyn Error>> {
    let mut files = protos(PACKAGE)?;
    files.push(PathBuf::from(ALSO_REFLECTED));
    files.sort();
    let descriptors = compiled(files)?;
    let out = PathBuf::from(env::var("OUT_DIR")?);
    fs::write(out.join("berth.v1.bin"), descriptors.encode_to_vec())?;
    generate(descriptors)?;

    for folder in FOREIGN {
        generate(compiled(protos(folder)?)?)?;
    }
    Ok(())
}

/// The `.proto` files of a folder. It comes in any order; the descriptor set has one.
fn protos(folder: &str) -> Result<Vec<PathBuf>, Box<dyn Error>> {
    println!("cargo::rerun-if-changed={folder}");
    let mut files = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "proto") {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

fn compiled(files: Vec<PathBuf>) -> Result<FileDescriptorSet, Box<dyn Error>> {
    // Imports and comments are kept: reflection serves both.
    Ok(protox::Compiler::new(["."])?
        .include_imports(true)
        .include_source_info(true)
        .open_files(files)?
        .file_descriptor_set())
}

fn generate(descriptors: FileDescriptorSet) -> Result<(), Box<dyn Error>> {
    // A map in hash order would make equal answers differ in their bytes.
    Ok(tonic_prost_build::configure().btree_map(".").compile_fds(descriptors)?)
}

//! What the contract `berth.v1` promises to those who read it.

#![allow(clippy::expect_used, reason = "helpers of tests fail as tests do")]

mod comments;
mod contract;
mod foreign;
mod json;
mod names;
mod reflection;

use prost_reflect::DescriptorPool;

/// The package whose contract this crate holds.
const PACKAGE: &str = "berth.v1";

/// Every descriptor of the crate's own set.
fn pool() -> DescriptorPool {
    DescriptorPool::decode(berth_proto::FILE_DESCRIPTOR_SET).expect("the descriptor set is complete")
}

/// The descriptors of one file written for a test, to show that a check can fail.
fn pool_of(source: &str) -> DescriptorPool {
    let file = protox::file::File::from_source("sample.proto", source).expect("the sample parses");
    let mut resolver = protox::file::ChainFileResolver::new();
    resolver.add(protox::file::GoogleFileResolver::new());
    resolver.add(Sample(file));
    let mut compiler = protox::Compiler::with_file_resolver(resolver);
    compiler.include_imports(true).include_source_info(true);
    compiler.open_file("sample.proto").expect("the sample compiles");
    DescriptorPool::decode(compiler.encode_file_descriptor_set().as_slice()).expect("the sample is complete")
}

/// Resolves `sample.proto`.
struct Sample(protox::file::File);

impl protox::file::FileResolver for Sample {
    fn open_file(&self, name: &str) -> Result<protox::file::File, protox::Error> {
        if name == "sample.proto" {
            return Ok(self.0.clone());
        }
        Err(protox::Error::file_not_found(name))
    }
}

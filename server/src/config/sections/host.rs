//! The host that answers are about.

use super::prelude::*;
use crate::{
    config::parse::{Form, TextFile},
    ingest::MAX_XML_BYTES,
};
use berth_model::profile;

section! {
    /// The host to answer about.
    Host "host";

    /// Answer about the host in this hwloc XML instead of this one. Its load is not known.
    topology_xml: Option<TextFile> =
        Setting::new("topology-xml", "FILE", parse::optional(parse::text_file(MAX_XML_BYTES)));

    /// Answer about the host of this hwloc synthetic description, such as "pack:2 [numa] l3:8 core:8 pu:2".
    topology_synthetic: Option<String> =
        Setting::new("topology-synthetic", "TEXT", parse::optional(parse::text()));

    /// The host's kernel, where it knows better: a release such as 6.12.95, or a profile's name.
    ///
    /// By default what the running kernel says of itself. Of a host that is not this one it is not known, and answers
    /// then hold for every released kernel.
    kernel: Option<String> = Setting::new("kernel", "KERNEL", parse::optional(kernel()));

    /// The CPU vendor as /proc/cpuinfo has it, such as AuthenticAMD.
    cpu_vendor: Option<String> = Setting::new("cpu-vendor", "VENDOR", parse::optional(parse::text()));

    /// The CPU family in decimal, such as 26.
    cpu_family: Option<u32> = Setting::new("cpu-family", "NUMBER", parse::optional(parse::number(1..=0xffff)));
}

fn kernel() -> Parser<String> {
    Parser::new(Form::Text, |text| match profile::from_text(text) {
        Ok(_) => Ok(text.to_owned()),
        Err(error) => Err(error.to_string()),
    })
}

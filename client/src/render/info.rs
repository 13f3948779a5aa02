//! `berth info`.

use berth_proto::v1::{GetInfoResponse, KernelIdentity, Limits};

use super::kernel;
use crate::{
    address::Address,
    text::{Page, Text, Tone, numbers},
};

/// The whole answer.
pub(crate) fn info(address: &Address, response: &GetInfoResponse, page: Page) -> String {
    let mut text = Text::new(page);
    let plain = |label, words| (label, Tone::Plain, words);
    text.heading("Server");
    let commit = if response.commit.is_empty() { String::new() } else { format!(" ({})", response.commit) };
    text.fields([
        ("status", Tone::Good, "serving".to_owned()),
        plain("address", address.to_string()),
        plain("host", response.host_name.clone()),
        plain("version", format!("{}{commit}", response.version)),
        plain("hwloc", response.hwloc_version.clone()),
        plain("started at", numbers::moment(response.started_at)),
        plain("you may", role(response)),
    ]);
    if let Some(identity) = &response.kernel {
        text.heading("Kernel");
        let chosen =
            response.profile.as_ref().map(|choice| kernel::chosen(choice, &identity.release, page.verbose));
        let rules = [("taken for", chosen.unwrap_or_default())];
        text.fields(
            kernel_fields(identity).into_iter().chain(rules).map(|(label, words)| plain(label, words)),
        );
        response.profile.iter().flat_map(|choice| &choice.evidence).for_each(|sentence| text.item(sentence));
    }
    if let Some(settings) = &response.settings {
        kernel::settings(&mut text, settings);
    }
    if let Some(limits) = &response.limits {
        text.heading("Limits of a question");
        text.fields(limit_fields(limits).map(|(label, words)| plain(label, words)));
    }
    text.finish()
}

fn role(response: &GetInfoResponse) -> String {
    use berth_proto::v1::get_info_response::Role;
    match response.role() {
        Role::NoRole => "ask nothing",
        Role::Read => "ask",
        Role::Hold => "ask, and hold CPUs",
        Role::Admin => "ask, hold CPUs for anyone, and report load",
    }
    .to_owned()
}

fn kernel_fields(identity: &KernelIdentity) -> [(&'static str, String); 6] {
    let family =
        if identity.cpu_family == 0 { String::new() } else { format!(" family {}", identity.cpu_family) };
    [
        ("release", identity.release.clone()),
        ("version", identity.version.clone()),
        ("signature", identity.version_signature.clone()),
        ("machine", identity.machine.clone()),
        ("CPU vendor", format!("{}{family}", identity.cpu_vendor).trim().to_owned()),
        ("CPU model", identity.cpu_model.clone()),
    ]
}

fn limit_fields(limits: &Limits) -> [(&'static str, String); 5] {
    [
        ("tasks", numbers::grouped(limits.tasks.into())),
        ("CPU numbers", format!("below {}", numbers::grouped(limits.cpus.into()))),
        ("XML", numbers::bytes(limits.xml_bytes.into())),
        ("time", numbers::wire_time(limits.deadline)),
        ("runs per proof", numbers::grouped(limits.proof_runs.into())),
    ]
}

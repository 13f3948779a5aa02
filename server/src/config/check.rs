//! What has to hold between several settings.

use super::{
    parse::Raw,
    sections::{Sections, address},
    setting::Problems,
    values::Values,
};

/// What can be told from the values as they were given, even though some are none.
pub(super) fn given(values: &Values, problems: &mut Problems) {
    tls(values, problems);
    if let (Some(xml), Some(synthetic)) =
        (values.get("host.topology_xml"), values.get("host.topology_synthetic"))
        && values.is_some("host.topology_xml")
        && values.is_some("host.topology_synthetic")
    {
        problems.add(format!("{xml}: it contradicts {synthetic}; give one of the two"));
    }
}

/// What TLS needs, and what needs TLS.
fn tls(values: &Values, problems: &mut Problems) {
    let (certificate, key) = (values.is_some("tls.certificate"), values.is_some("tls.key"));
    if certificate != key {
        problems.add("--tls-cert and --tls-key belong together; give both, or none");
    } else if values.is_some("tls.client_ca") && !certificate {
        problems.add("--tls-client-ca needs --tls-cert and --tls-key: a client proves itself within TLS");
    }
    let is = |key: &str, is: &dyn Fn(&str) -> bool| {
        values.get(key).is_some_and(|given| matches!(&given.raw, Raw::One(text) if is(text)))
    };
    let beyond = is("listen.tcp", &|text| address(text).is_some_and(|address| !address.ip().is_loopback()));
    let forced = is("listen.allow_plaintext_beyond_loopback", &|text| text == "true");
    if let Some(given) = values.get("listen.tcp")
        && beyond
        && !forced
        && !certificate
    {
        problems.add(format!(
            "{given}: other hosts reach it, and without TLS everyone on the way can read and change what is said; \
             give --tls-cert and --tls-key, or a loopback address such as 127.0.0.1:7117, or, if that is meant, \
             --allow-plaintext-beyond-loopback"
        ));
    }
}

/// What can be told once every value is one.
pub(super) fn sections(sections: &Sections, values: &Values, problems: &mut Problems) {
    let listen = &sections.listen;
    if listen.tcp.is_none() && listen.uds.is_none() {
        let given = values.get("listen.tcp").map(ToString::to_string).unwrap_or_default();
        problems.add(if values.is_some("listen.uds") {
            format!("{given} leaves nothing to listen on, since no folder for a unix socket is writable; give --uds")
        } else {
            format!("{given} and no unix socket leave nothing to listen on; leave one out")
        });
    }
    let holds = &sections.holds;
    if holds.hold_ttl > holds.max_hold_ttl {
        let given = |key| values.get(key).map(ToString::to_string).unwrap_or_default();
        problems.add(format!(
            "{}: it is longer than {}; expected at most that",
            given("holds.hold_ttl"),
            given("holds.max_hold_ttl")
        ));
    }
    if let Some(address) = sections.admin.listen
        && sections.admin.change_log
        && !address.ip().is_loopback()
    {
        let given = values.get("admin.change_log").map(ToString::to_string).unwrap_or_default();
        problems.add(format!(
            "{given}: every host that reaches {address} could change what is logged; expected false, or an admin address on loopback"
        ));
    }
}

//! What has to hold between several settings.

use super::{sections::Sections, setting::Problems, values::Values};

/// What can be told from the values as they were given, even though some are none.
pub(super) fn given(values: &Values, problems: &mut Problems) {
    if let (Some(xml), Some(synthetic)) =
        (values.get("host.topology_xml"), values.get("host.topology_synthetic"))
        && values.is_some("host.topology_xml")
        && values.is_some("host.topology_synthetic")
    {
        problems.add(format!("{xml}: it contradicts {synthetic}; give one of the two"));
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
}

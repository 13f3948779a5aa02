//! The one table of what each method needs.

use super::Role;

/// How long a call of a method lasts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lasts {
    /// Until it is answered: it has a deadline.
    ForAnAnswer,
    /// As long as both sides like.
    AsLongAsLiked,
}

/// What a method needs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Method {
    /// Its path on the wire.
    pub(crate) path: &'static str,
    /// The least role.
    pub(crate) role: Role,
    /// How long a call lasts.
    pub(crate) lasts: Lasts,
}

const fn answer(path: &'static str, role: Role) -> Method {
    Method { path, role, lasts: Lasts::ForAnAnswer }
}

const fn stream(path: &'static str, role: Role) -> Method {
    Method { path, role, lasts: Lasts::AsLongAsLiked }
}

/// Every method of `berth.v1`. `Advise` needs [`Role::Hold`] where its request has `hold`, which its service sees.
pub(crate) const METHODS: [Method; 18] = [
    answer("/berth.v1.PlacementService/Predict", Role::Read),
    answer("/berth.v1.PlacementService/Advise", Role::Read),
    answer("/berth.v1.PlacementService/Explain", Role::Read),
    answer("/berth.v1.PlacementService/Verify", Role::Read),
    answer("/berth.v1.HoldService/CreateHold", Role::Hold),
    answer("/berth.v1.HoldService/ListHolds", Role::Read),
    answer("/berth.v1.HoldService/GetHold", Role::Read),
    answer("/berth.v1.HoldService/RenewHold", Role::Hold),
    answer("/berth.v1.HoldService/ReleaseHold", Role::Hold),
    answer("/berth.v1.HoldService/AdoptHold", Role::Hold),
    stream("/berth.v1.HoldService/WatchHolds", Role::Read),
    answer("/berth.v1.InfoService/GetInfo", Role::Read),
    answer("/berth.v1.InfoService/ListProfiles", Role::Read),
    answer("/berth.v1.LoadService/GetLoad", Role::Read),
    stream("/berth.v1.LoadService/WatchLoad", Role::Read),
    stream("/berth.v1.LoadService/ReportLoad", Role::Admin),
    answer("/berth.v1.TopologyService/GetTopology", Role::Read),
    stream("/berth.v1.TopologyService/WatchTopology", Role::Read),
];

/// The streams of health and reflection, which have no role.
const STREAMS_BESIDE: [Method; 3] = [
    stream("/grpc.health.v1.Health/Watch", Role::None),
    stream("/grpc.reflection.v1.ServerReflection/ServerReflectionInfo", Role::None),
    stream("/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo", Role::None),
];

/// What the method of this path needs. One that is not in the table is a newer contract's: whoever may ask is told that
/// it is not served.
pub(crate) fn method(path: &str) -> Method {
    let known = METHODS.iter().chain(&STREAMS_BESIDE).find(|method| method.path == path);
    known.copied().unwrap_or_else(|| answer("", Role::Read))
}

#[cfg(test)]
mod tests {
    use super::*;
    use berth_proto::FILE_DESCRIPTOR_SETS;
    use prost::Message;
    use prost_types::FileDescriptorSet;
    use std::collections::BTreeMap;

    /// The contract has these methods and no others, and these of them are streams.
    #[test]
    fn the_table_is_the_contract() {
        let sets = FILE_DESCRIPTOR_SETS.iter().map(|set| FileDescriptorSet::decode(*set).unwrap());
        let files = sets.flat_map(|set| set.file).filter(|file| file.package() == "berth.v1");
        let methods: BTreeMap<String, bool> = files
            .flat_map(|file| file.service)
            .flat_map(|service| {
                let name = service.name().to_owned();
                service.method.into_iter().map(move |method| {
                    let streams = method.client_streaming() || method.server_streaming();
                    (format!("/berth.v1.{name}/{}", method.name()), streams)
                })
            })
            .collect();
        let table: BTreeMap<String, bool> = METHODS
            .iter()
            .map(|method| (method.path.to_owned(), method.lasts == Lasts::AsLongAsLiked))
            .collect();
        assert_eq!(table, methods);
        assert_eq!(table.len(), METHODS.len());
    }
}

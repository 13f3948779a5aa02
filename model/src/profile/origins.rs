//! The kernel changes that the profiles are made of.

use super::provenance::{Origin, Source};

const fn commit(id: &'static str, since: &'static str, what: &'static str) -> Origin {
    Origin { source: Source::Commit(id), what, since }
}

const fn mail(name: &'static str, what: &'static str) -> Origin {
    Origin { source: Source::Mail(name), what, since: "not merged" }
}

const BY_LOAD: Origin = Origin {
    source: Source::ReadAt("de53fd7aedb1"),
    what: "groups are told apart by their load, then by their average load",
    since: "before v5.3",
};
const EPYC: Origin = commit(
    "a55c7454a8c8",
    "v5.4",
    "on EPYC, forks and execs spread up to a NUMA distance of 32 instead of 30",
);
const IDLEST: Origin = commit(
    "57abff067a08",
    "v5.5",
    "groups are told apart by type, then by their idle CPUs; any idle CPU keeps a task local",
);
const TIE: Origin = commit("3edecfef0285", "v5.9", "equally idle groups are told apart by utilisation");
const PCT: Origin = commit("2208cdaa56c9", "v5.10", "imbalance_pct above the LLC from 125 to 117");
const FLOATING: Origin =
    commit("7d2b5dd0bcc4", "v5.11", "balancing tolerates two tasks while a quarter of the node is busy");
const FORK_LIMIT: Origin =
    commit("23e6082a522e", "v5.11", "a fork stays local only while a quarter of the domain is busy");
const CLUSTER: Origin = commit("778c558f49a2", "v5.16", "a level for CPUs that share a cluster");
const CLUSTER_X86: Origin =
    commit("66558b730f25", "v5.16", "the cluster level on x86: CPUs that share the L2");
const CPU_NODES: Origin = commit("0fb3978b0aac", "v5.18", "nodes without CPUs make no NUMA level");
const CONSISTENT: Origin =
    commit("2cfb7a1b031b", "v5.18", "fork and balancing count the destination's tasks with the new one");
const IMB_NUMA_NR: Origin = commit(
    "e496132ebedd",
    "v5.18",
    "the tolerated imbalance follows the number of LLCs in a node: imb_numa_nr",
);
const LIMITS: Origin =
    commit("cb29a5c19d2d", "v6.0", "a fork tolerates no larger imbalance than balancing does: two idle CPUs");
const CHANNELS: Origin =
    commit("026b98a93bbd", "v6.0", "imb_numa_nr of a node with one LLC from a quarter of it to an eighth");
const AFFINITY: Origin =
    commit("f5b2eeb49991", "v6.0", "imb_numa_nr is capped by the number of allowed CPUs in the local group");
const ALLOWED: Origin = commit("82d6e01a0699", "v6.19", "a group's statistics count its allowed CPUs only");

pub(super) const V5_3: &[Origin] = &[BY_LOAD];
pub(super) const V5_4: &[Origin] = &[BY_LOAD, EPYC];
pub(super) const V5_5: &[Origin] = &[EPYC, IDLEST];
pub(super) const V5_9: &[Origin] = &[EPYC, IDLEST, TIE];
pub(super) const V5_10: &[Origin] = &[EPYC, IDLEST, TIE, PCT];
pub(super) const V5_10_FIXED: &[Origin] = &[
    EPYC,
    IDLEST,
    TIE,
    PCT,
    ALLOWED,
    commit("b1f4dc174294", "5.10.261", "82d6e01a0699 in the 5.10.y stable series"),
];
pub(super) const V5_11: &[Origin] = &[EPYC, IDLEST, TIE, PCT, FLOATING, FORK_LIMIT];
pub(super) const V5_13: &[Origin] = &[
    EPYC,
    IDLEST,
    TIE,
    PCT,
    FLOATING,
    FORK_LIMIT,
    commit(
        "c6f886546cb8",
        "v5.13",
        "idle CPUs refresh their own blocked load: no rule, but other ties and spread",
    ),
];
pub(super) const V5_15_FIXED: &[Origin] = &[
    EPYC,
    IDLEST,
    TIE,
    PCT,
    FLOATING,
    FORK_LIMIT,
    ALLOWED,
    commit("d99f14f8b142", "5.15.212", "82d6e01a0699 in the 5.15.y stable series"),
];
pub(super) const V5_16: &[Origin] = &[EPYC, IDLEST, TIE, PCT, FLOATING, FORK_LIMIT, CLUSTER, CLUSTER_X86];
pub(super) const V5_16_FIXED: &[Origin] =
    &[EPYC, IDLEST, TIE, PCT, FLOATING, FORK_LIMIT, CLUSTER, CLUSTER_X86, ALLOWED];

pub(super) const MEL_V3: &[Origin] = &[mail(
    "Mel Gorman's NUMA imbalance series, v3, 1 December 2021",
    "one tolerated imbalance for all NUMA levels, from half an LLC, the LLCs of a node and the nodes",
)];
pub(super) const MEL_V4: &[Origin] = &[mail(
    "Mel Gorman's NUMA imbalance series, v4, 10 December 2021",
    "an imbalance from the square of the LLC over the node, scaled up per level",
)];
pub(super) const MEL_V4_PS: &[Origin] = &[
    MEL_V4[0],
    mail(
        "suggestion of 13 December 2021 on v4",
        "levels are scaled by the span of the first without PREFER_SIBLING",
    ),
];
pub(super) const MEL_V5: &[Origin] = &[mail(
    "Mel Gorman's NUMA imbalance series, v5, 3 February 2022",
    "imb_numa_nr as merged in v5.18, but the fork must stay below it",
)];
pub(super) const MEL_V5_PRATEEK: &[Origin] = &[
    MEL_V5[0],
    mail(
        "Prateek Nayak's affinity patch, v1, February 2022, on v5",
        "capped by the allowed CPUs of the local group",
    ),
];
pub(super) const MEL_V6: &[Origin] = &[
    mail("Mel Gorman's NUMA imbalance series, v6, 8 February 2022", "imb_numa_nr as merged in v5.18"),
    CONSISTENT,
    IMB_NUMA_NR,
];
pub(super) const MEL_V6_PRATEEK: &[Origin] = &[
    MEL_V6[0],
    CONSISTENT,
    IMB_NUMA_NR,
    mail(
        "Prateek Nayak's affinity patch, v2, 9 February 2022, on v6",
        "capped by the allowed CPUs of the local group",
    ),
];

pub(super) const V5_18: &[Origin] =
    &[EPYC, IDLEST, TIE, PCT, CLUSTER, CLUSTER_X86, CPU_NODES, CONSISTENT, IMB_NUMA_NR];
pub(super) const V5_18_FIXED: &[Origin] =
    &[EPYC, IDLEST, TIE, PCT, CLUSTER, CLUSTER_X86, CPU_NODES, CONSISTENT, IMB_NUMA_NR, ALLOWED];
pub(super) const THIS_SERIES: &[Origin] = &[
    mail(
        "Mel Gorman's NUMA imbalance series of May 2022, measured on v5.18-rc4",
        "the first two of the v6.0 changes",
    ),
    LIMITS,
    CHANNELS,
];
pub(super) const V6_0: &[Origin] =
    &[EPYC, IDLEST, TIE, PCT, CLUSTER, CLUSTER_X86, CPU_NODES, IMB_NUMA_NR, LIMITS, CHANNELS, AFFINITY];
pub(super) const V6_1_FIXED: &[Origin] =
    &with_backport(commit("3c9019ea13be", "6.1.178", "82d6e01a0699 in the 6.1.y stable series"));
pub(super) const V6_6_FIXED: &[Origin] =
    &with_backport(commit("5a3218fbdeac", "6.6.145", "82d6e01a0699 in the 6.6.y stable series"));
pub(super) const V6_18_FIXED: &[Origin] =
    &with_backport(commit("75e1d2787005", "6.18.39", "82d6e01a0699 in the 6.18.y stable series"));
pub(super) const V6_19: &[Origin] = &[
    EPYC,
    IDLEST,
    TIE,
    PCT,
    CLUSTER,
    CLUSTER_X86,
    CPU_NODES,
    IMB_NUMA_NR,
    LIMITS,
    CHANNELS,
    AFFINITY,
    ALLOWED,
];

const fn with_backport(backport: Origin) -> [Origin; 13] {
    [
        EPYC,
        IDLEST,
        TIE,
        PCT,
        CLUSTER,
        CLUSTER_X86,
        CPU_NODES,
        IMB_NUMA_NR,
        LIMITS,
        CHANNELS,
        AFFINITY,
        ALLOWED,
        backport,
    ]
}

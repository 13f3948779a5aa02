//! Every profile, as data. Each row says what it changes against the row that it starts from; the test
//! `the_table` holds all columns of all rows.

use super::{
    BalanceRule, ImbNumaRule, NumaForkRule, Profile, StatsRule, TieRule, origins, posted,
    provenance::{Knowledge, Origin, Provenance, Status},
};

/// Every profile: kernel.org's releases oldest first, then stable backports, vendors' combinations, and what was
/// only ever posted on the mailing list.
pub fn all() -> &'static [Profile] {
    ALL
}

static ALL: &[Profile] = &[
    V5_3,
    V5_4,
    V5_5,
    V5_7,
    V5_8,
    V5_9,
    V5_10,
    V5_12,
    V5_13,
    V5_16,
    V5_18,
    V5_19,
    V6_0,
    V6_1,
    V6_6,
    V6_12,
    V6_18,
    V6_19,
    V6_18_FIXED,
    V6_12_FIXED,
    V6_6_FIXED,
    V6_1_FIXED,
    V5_15_FIXED,
    V5_10_FIXED,
    V5_18_FIXED,
    V5_16_FIXED,
    posted::V5_13_REVERT,
    posted::TIP_5_16,
    posted::TIP_5_17,
    posted::MEL_V3,
    posted::MEL_V4,
    posted::MEL_V4_PS,
    posted::MEL_V5,
    posted::MEL_V5_PRATEEK,
    posted::MEL_V6,
    posted::MEL_V6_PRATEEK,
    posted::BASELINE,
    posted::BASELINE_REVERT,
    posted::THIS_SERIES,
    posted::THIS_SERIES_REVERT,
];

const fn released(releases: &'static str, knowledge: Knowledge, origins: &'static [Origin]) -> Provenance {
    Provenance { releases, origins, knowledge, status: Status::Released, note: "" }
}

pub(super) const V5_3: Profile = Profile {
    name: "v5.3",
    provenance: Provenance {
        note: "read in the source of a candidate for v5.4, and taken to be the same",
        ..released("v5.3", Knowledge::Inferred, origins::V5_3)
    },
    imb_numa: ImbNumaRule::None,
    numa_fork: NumaForkRule::ByLoad,
    stats: StatsRule::All,
    tie: TieRule::First,
    imbalance_pct: 125,
    balance: BalanceRule::ByLoad,
    group_runnable: false,
    epyc_distance: 30,
    cpu_nodes_only: false,
    cluster_level: false,
};

pub(super) const V5_4: Profile = Profile {
    name: "v5.4",
    provenance: released("v5.4 and 5.4.y", Knowledge::SourceRead, origins::V5_4),
    epyc_distance: 32,
    ..V5_3
};

pub(super) const V5_5: Profile = Profile {
    name: "v5.5",
    provenance: Provenance {
        note: "v5.7's rules without runnable_avg; what load balancing tolerates was not read",
        ..released("v5.5 and v5.6", Knowledge::Inferred, origins::V5_5)
    },
    numa_fork: NumaForkRule::AnyIdle,
    balance: BalanceRule::V5_7,
    ..V5_4
};

pub(super) const V5_7: Profile = Profile {
    name: "v5.7",
    provenance: released("v5.7", Knowledge::SourceRead, origins::V5_5),
    group_runnable: true,
    ..V5_5
};

pub(super) const V5_8: Profile = Profile {
    name: "v5.8",
    provenance: Provenance {
        note: "no change of a rule was found between v5.7 and v5.9",
        ..released("v5.8", Knowledge::Unconfirmed, origins::V5_5)
    },
    ..V5_7
};

pub(super) const V5_9: Profile = Profile {
    name: "v5.9",
    provenance: released("v5.9", Knowledge::Inferred, origins::V5_9),
    tie: TieRule::Utilisation,
    ..V5_8
};

pub(super) const V5_10: Profile = Profile {
    name: "v5.10",
    provenance: released("v5.10; 5.10.y to 5.10.260", Knowledge::PatchMail, origins::V5_10),
    imbalance_pct: 117,
    ..V5_9
};

pub(super) const V5_12: Profile = Profile {
    name: "v5.12",
    provenance: released("v5.11 and v5.12", Knowledge::SourceRead, origins::V5_11),
    numa_fork: NumaForkRule::Span25,
    balance: BalanceRule::V5_11,
    ..V5_10
};

/// Ties and moments differ from v5.12 (c6f886546cb8), and run times spread more; no rule does.
pub(super) const V5_13: Profile = Profile {
    name: "v5.13",
    provenance: Provenance {
        note: "run times were reported to spread widely with c6f886546cb8",
        ..released(
            "v5.13; by inference v5.14, v5.15 and 5.15.y to 5.15.211",
            Knowledge::SourceRead,
            origins::V5_13,
        )
    },
    ..V5_12
};

pub(super) const V5_16: Profile = Profile {
    name: "v5.16",
    provenance: released("v5.16 and v5.17", Knowledge::Inferred, origins::V5_16),
    cluster_level: true,
    ..V5_13
};

pub(super) const V5_18: Profile = Profile {
    name: "v5.18",
    provenance: released("v5.18", Knowledge::SourceRead, origins::V5_18),
    imb_numa: ImbNumaRule::Llc25,
    numa_fork: NumaForkRule::PlusOneNotMore,
    balance: BalanceRule::MelV6,
    cpu_nodes_only: true,
    ..V5_16
};

pub(super) const V5_19: Profile =
    Profile { name: "v5.19", provenance: released("v5.19", Knowledge::SourceRead, origins::V5_18), ..V5_18 };

pub(super) const V6_0: Profile = Profile {
    name: "v6.0",
    provenance: released("v6.0", Knowledge::SourceRead, origins::V6_0),
    imb_numa: ImbNumaRule::Llc12,
    numa_fork: NumaForkRule::AdjustedAllowed,
    balance: BalanceRule::V6_0,
    ..V5_19
};

pub(super) const V6_1: Profile = Profile {
    name: "v6.1",
    provenance: released("6.1.y to 6.1.177; by inference v6.2 to v6.5", Knowledge::SourceRead, origins::V6_0),
    ..V6_0
};

pub(super) const V6_6: Profile = Profile {
    name: "v6.6",
    provenance: Provenance {
        note: "not read itself; v6.1 and v6.12 agree",
        ..released("6.6.y to 6.6.144; by inference v6.7 to v6.11", Knowledge::Unconfirmed, origins::V6_0)
    },
    ..V6_1
};

pub(super) const V6_12: Profile = Profile {
    name: "v6.12",
    provenance: released(
        "6.12.y to 6.12.96; by inference v6.13 to v6.17",
        Knowledge::SourceRead,
        origins::V6_0,
    ),
    ..V6_6
};

pub(super) const V6_18: Profile = Profile {
    name: "v6.18",
    provenance: released("6.18.y to 6.18.38", Knowledge::SourceRead, origins::V6_0),
    ..V6_12
};

pub(super) const V6_19: Profile = Profile {
    name: "v6.19",
    provenance: released("v6.19; by inference every later release", Knowledge::SourceRead, origins::V6_19),
    stats: StatsRule::Allowed,
    ..V6_18
};

pub(super) const V6_18_FIXED: Profile = Profile {
    name: "6.18.39+",
    provenance: released("6.18.y from 6.18.39", Knowledge::SourceRead, origins::V6_18_FIXED),
    ..V6_19
};

pub(super) const V6_12_FIXED: Profile = Profile {
    name: "6.12.97+",
    provenance: released("6.12.y from 6.12.97", Knowledge::SourceRead, origins::V6_19),
    ..V6_19
};

pub(super) const V6_6_FIXED: Profile = Profile {
    name: "6.6.145+",
    provenance: Provenance {
        note: "82d6e01a0699 is in the stable tree's list of changes from 6.6.144 to 6.6.145; not read itself",
        ..released("6.6.y from 6.6.145", Knowledge::Inferred, origins::V6_6_FIXED)
    },
    ..V6_19
};

pub(super) const V6_1_FIXED: Profile = Profile {
    name: "6.1.178+",
    provenance: released("6.1.y from 6.1.178", Knowledge::SourceRead, origins::V6_1_FIXED),
    ..V6_19
};

pub(super) const V5_15_FIXED: Profile = Profile {
    name: "5.15.212+",
    provenance: Provenance {
        note: "82d6e01a0699 is in the stable tree's list of changes from 5.15.211 to 5.15.212; not read itself",
        ..released("5.15.y from 5.15.212", Knowledge::Inferred, origins::V5_15_FIXED)
    },
    stats: StatsRule::Allowed,
    ..V5_13
};

pub(super) const V5_10_FIXED: Profile = Profile {
    name: "5.10.261+",
    provenance: Provenance {
        note: "82d6e01a0699 is in the stable tree's list of changes from 5.10.260 to 5.10.261; not read itself",
        ..released("5.10.y from 5.10.261", Knowledge::Inferred, origins::V5_10_FIXED)
    },
    stats: StatsRule::Allowed,
    ..V5_10
};

pub(super) const V5_18_FIXED: Profile = Profile {
    name: "v5.18-allowed",
    provenance: vendor("v5.18's rules with 82d6e01a0699", origins::V5_18_FIXED),
    stats: StatsRule::Allowed,
    ..V5_18
};

pub(super) const V5_16_FIXED: Profile = Profile {
    name: "v5.16-allowed",
    provenance: vendor("v5.16's rules with 82d6e01a0699", origins::V5_16_FIXED),
    stats: StatsRule::Allowed,
    ..V5_16
};

const fn vendor(releases: &'static str, origins: &'static [Origin]) -> Provenance {
    let note = "no release of kernel.org; a vendor's kernel of that base may have taken the fix";
    Provenance { releases, origins, knowledge: Knowledge::Inferred, status: Status::Vendor, note }
}

/// See [`Profile::ideal`].
pub(super) static BERTH_AUTO: Profile = Profile {
    name: "berth-auto",
    provenance: Provenance {
        releases: "no kernel",
        origins: origins::V6_19,
        knowledge: Knowledge::Inferred,
        status: Status::Ideal,
        note: "v6.19's rules, with group weight and capacity of the allowed CPUs",
    },
    stats: StatsRule::AllowedWhole,
    ..V6_19
};

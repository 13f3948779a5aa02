//! Profiles that were only ever posted: the series and the trees of the mailing-list reports of 2021 and 2022.

use super::{
    BalanceRule, ImbNumaRule, NumaForkRule, Profile, origins,
    provenance::{Knowledge, Origin, Provenance, Status},
    table::{V5_13, V5_16, V5_18},
};

const fn posted(releases: &'static str, origins: &'static [Origin], note: &'static str) -> Provenance {
    Provenance { releases, origins, knowledge: Knowledge::PatchMail, status: Status::MailingList, note }
}

const REVERT: &str = "same rules: c6f886546cb8 moves when blocked load decays, not where tasks go";

pub(super) const V5_13_REVERT: Profile = Profile {
    name: "v5.13-revert-c6f886546cb8",
    provenance: posted("v5.13 without c6f886546cb8, as reported", origins::V5_11, REVERT),
    ..V5_13
};

// The tip trees of that time had the cluster level, merged for v5.16, and not yet 0fb3978b0aac (v5.18).
pub(super) const TIP_5_16: Profile = Profile {
    name: "tip-5.16-rc1",
    provenance: posted("the scheduler tree on v5.16-rc1", origins::V5_16, "v5.16's rules"),
    ..V5_16
};

pub(super) const TIP_5_17: Profile = Profile {
    name: "tip-5.17-rc1",
    provenance: posted("the scheduler tree on v5.17-rc1", origins::V5_16, "v5.16's rules"),
    ..V5_16
};

pub(super) const MEL_V3: Profile = Profile {
    name: "mel-v3",
    provenance: posted("the series on the scheduler tree of December 2021", origins::MEL_V3, ""),
    imb_numa: ImbNumaRule::V3,
    numa_fork: NumaForkRule::Less,
    balance: BalanceRule::MelV3,
    ..TIP_5_16
};

pub(super) const MEL_V4: Profile = Profile {
    name: "mel-v4",
    provenance: posted("the series on the scheduler tree of December 2021", origins::MEL_V4, ""),
    imb_numa: ImbNumaRule::V4,
    numa_fork: NumaForkRule::NotMore,
    balance: BalanceRule::MelV4,
    ..TIP_5_16
};

pub(super) const MEL_V4_PS: Profile = Profile {
    name: "mel-v4-ps",
    provenance: posted("v4 with the suggested scaling", origins::MEL_V4_PS, ""),
    imb_numa: ImbNumaRule::V4PreferSibling,
    ..MEL_V4
};

pub(super) const MEL_V5: Profile = Profile {
    name: "mel-v5",
    provenance: posted("the series on the scheduler tree of February 2022", origins::MEL_V5, ""),
    imb_numa: ImbNumaRule::Llc25,
    numa_fork: NumaForkRule::PlusOneLess,
    balance: BalanceRule::MelV5,
    ..TIP_5_17
};

pub(super) const MEL_V5_PRATEEK: Profile = Profile {
    name: "mel-v5-prateek-v1",
    provenance: posted("v5 with the affinity patch", origins::MEL_V5_PRATEEK, ""),
    numa_fork: NumaForkRule::PlusOneLessAllowed,
    ..MEL_V5
};

pub(super) const MEL_V6: Profile = Profile {
    name: "mel-v6",
    provenance: Provenance {
        knowledge: Knowledge::SourceRead,
        ..posted("the series on the scheduler tree of February 2022", origins::MEL_V6, "merged in v5.18")
    },
    numa_fork: NumaForkRule::PlusOneNotMore,
    balance: BalanceRule::MelV6,
    ..MEL_V5
};

pub(super) const MEL_V6_PRATEEK: Profile = Profile {
    name: "mel-v6-prateek-v2",
    provenance: posted("v6 with the affinity patch", origins::MEL_V6_PRATEEK, ""),
    numa_fork: NumaForkRule::PlusOneNotMoreAllowed,
    ..MEL_V6
};

pub(super) const BASELINE: Profile = Profile {
    name: "v5.18rc4-baseline",
    provenance: posted("v5.18-rc4, as reported", origins::V5_18, "v5.18's rules"),
    ..V5_18
};

pub(super) const BASELINE_REVERT: Profile = Profile {
    name: "v5.18rc4-revert-c6f886546cb8",
    provenance: posted("v5.18-rc4 without c6f886546cb8, as reported", origins::V5_18, REVERT),
    ..V5_18
};

pub(super) const THIS_SERIES: Profile = Profile {
    name: "v5.18rc4-this_series",
    provenance: Provenance {
        knowledge: Knowledge::SourceRead,
        ..posted(
            "v5.18-rc4 with the series of May 2022",
            origins::THIS_SERIES,
            "merged in v6.0 with f5b2eeb49991",
        )
    },
    imb_numa: ImbNumaRule::Llc12,
    numa_fork: NumaForkRule::Adjusted,
    balance: BalanceRule::V6_0,
    ..V5_18
};

pub(super) const THIS_SERIES_REVERT: Profile = Profile {
    name: "v5.18rc4-this_series-revert-c6f886546cb8",
    provenance: posted("the same without c6f886546cb8, as reported", origins::THIS_SERIES, REVERT),
    ..THIS_SERIES
};

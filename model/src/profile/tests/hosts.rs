//! What real hosts say, and what they may run.

use super::{summary, told};
use crate::profile::*;

#[test]
fn plain_releases() {
    for (release, expected) in [
        ("6.12.95", "Exact v6.12"),
        ("v6.12.95", "Exact v6.12"),
        ("6.12.0", "Exact v6.12"),
        ("6.12.96", "Exact v6.12"),
        ("6.12.97", "Exact 6.12.97+"),
        ("6.12.117", "Exact 6.12.97+"),
        ("6.18.38", "Exact v6.18"),
        ("6.18.39", "Exact 6.18.39+"),
        ("6.1.177", "Exact v6.1"),
        ("6.1.178", "Exact 6.1.178+"),
        ("6.19", "Exact v6.19"),
        ("6.19.3", "Exact v6.19"),
        ("6.0.19", "Exact v6.0"),
        ("5.19.17", "Exact v5.19"),
        ("5.18.0", "Exact v5.18"),
        ("5.13.19", "Exact v5.13"),
        ("5.12.4", "Exact v5.12"),
        ("5.10.100", "Exact v5.10"),
        ("5.7.1", "Exact v5.7"),
        ("5.4.300", "Exact v5.4"),
        // Between known releases, or with rules that were not read themselves.
        ("5.3.18", "Inferred v5.3"),
        ("5.5.19", "Inferred v5.5"),
        ("5.6.0", "Inferred v5.5"),
        ("5.8.0", "Inferred v5.8"),
        ("5.9.0", "Inferred v5.9"),
        ("5.10.261", "Inferred 5.10.261+"),
        ("5.11.0", "Inferred v5.12"),
        ("5.14.0", "Inferred v5.13"),
        ("5.15.211", "Inferred v5.13"),
        ("5.15.212", "Inferred 5.15.212+"),
        ("5.16.5", "Inferred v5.16"),
        ("5.17.0", "Inferred v5.16"),
        ("6.2.0", "Inferred v6.1"),
        ("6.5.13", "Inferred v6.1"),
        ("6.6.144", "Inferred v6.6"),
        ("6.6.145", "Inferred 6.6.145+"),
        ("6.10.3", "Inferred v6.6"),
        ("6.13.0", "Inferred v6.12"),
        ("6.13", "Inferred v6.12"),
        ("6.17.9", "Inferred v6.12"),
        ("7.0", "Inferred v6.19"),
        ("7.1.5", "Inferred v6.19"),
        // A series is any kernel of it.
        ("6.12", "Ambiguous v6.12 6.12.97+"),
        ("6.6", "Ambiguous v6.6 6.6.145+"),
        ("5.15", "Ambiguous v5.13 5.15.212+"),
        // Between two releases, a candidate may lack what the second brought.
        ("6.12.0-rc3", "Exact v6.12"),
        ("6.12-rc3", "Exact v6.12"),
        ("6.19.0-rc1", "Ambiguous v6.19 v6.18"),
        ("v5.18rc4", "Ambiguous v5.18 v5.16"),
        ("5.19-rc1", "Exact v5.19"),
        ("6.12.97-rc1", "Ambiguous v6.12 6.12.97+"),
        ("6.12.96-rc1", "Exact v6.12"),
        // Trees beyond a release.
        ("6.18.0-00123-gabcdef012345", "Ambiguous v6.18 6.18.39+"),
        ("5.17.0-next-20220401", "Ambiguous v5.16 v5.16-allowed v5.18"),
        ("6.1.123+", "Ambiguous v6.1 6.1.178+"),
    ] {
        assert_eq!(summary(&told(release, "", "")), expected, "{release}");
        assert_eq!(summary(&from_text(release).unwrap()), expected, "{release} typed");
    }
}

#[test]
fn distributions() {
    let old_ubuntu = "#45-Ubuntu SMP PREEMPT_DYNAMIC Fri Aug 30 12:02:04 UTC 2024";
    let cut_ubuntu = "#45~22.04.1-Ubuntu SMP PREEMPT_DYNAMIC Wed Sep 11 15:25:05 UTC 2";
    let el9_before = "#1 SMP PREEMPT_DYNAMIC Wed Apr 10 10:29:16 EDT 2024";
    let el9 = "Ambiguous v6.0 v5.19 v5.16 v5.13 6.1.178+ v5.18-allowed v5.16-allowed 5.15.212+";
    for (release, version, signature, expected) in [
        // Debian.
        (
            "6.1.0-57-cloud-amd64",
            "#1 SMP PREEMPT_DYNAMIC Debian 6.1.192-3 (2026-11-26)",
            "",
            "Exact 6.1.178+",
        ),
        ("6.1.0-47-cloud-amd64", "#1 SMP PREEMPT_DYNAMIC Debian 6.1.170-3 (2026-05-08)", "", "Exact v6.1"),
        ("6.1.0-57-cloud-amd64", "", "", "Ambiguous v6.1 6.1.178+"),
        ("6.12.43+deb13-amd64", "#1 SMP PREEMPT_DYNAMIC Debian 6.12.43-1 (2025-08-27)", "", "Exact v6.12"),
        (
            "6.12.117+deb12-cloud-amd64",
            "#1 SMP PREEMPT_DYNAMIC Debian 6.12.117-1~deb12u1 (2026-11-14)",
            "",
            "Exact 6.12.97+",
        ),
        ("6.12.117+deb12-cloud-amd64", "", "", "Exact 6.12.97+"),
        ("5.10.0-32-amd64", "#1 SMP Debian 5.10.223-1 (2024-08-10)", "", "Exact v5.10"),
        ("6.12-amd64", "#1 SMP PREEMPT_DYNAMIC Debian 6.12-1~exp1 (2024-11-17)", "", "Exact v6.12"),
        ("6.6.31+rpt-rpi-v8", "#1 SMP PREEMPT Debian 1:6.6.31-1+rpt1 (2024-05-29)", "", "Inferred v6.6"),
        ("6.12.13-amd64", "#1 SMP PREEMPT_DYNAMIC Kali 6.12.13-1kali1 (2025-02-11)", "", "Exact v6.12"),
        ("6.5.0-0.deb12.4-amd64", "", "", "Inferred v6.1"),
        // Ubuntu: fixes of its own, so never exact; a build from before the fix lacks it.
        ("6.8.0-45-generic", old_ubuntu, "Ubuntu 6.8.0-45.45-generic 6.8.12", "Inferred v6.6"),
        ("6.8.0-45-generic", cut_ubuntu, "Ubuntu 6.8.0-45.45-generic 6.8.12", "Ambiguous v6.6 6.6.145+"),
        ("6.8.0-1012-aws", "", "", "Ambiguous v6.6 6.6.145+"),
        ("5.15.0-1053-gcp", "", "Ubuntu 5.15.0-1053.61-gcp 5.15.212", "Inferred 5.15.212+"),
        (
            "6.10.3-061003-generic",
            "#202408031234 SMP PREEMPT_DYNAMIC Sat Aug  3 12:40:14 UTC 2024",
            "",
            "Inferred v6.6",
        ),
        ("5.4.0-190-generic", "", "Ubuntu 5.4.0-190.210-generic 5.4.276", "Inferred v5.4"),
        // Red Hat and its rebuilds.
        ("5.14.0-570.12.1.el9_6.x86_64", "#1 SMP PREEMPT_DYNAMIC Fri Apr 4 10:41:31 EDT 2025", "", el9),
        ("5.14.0-427.13.1.el9_4.x86_64", el9_before, "", "Ambiguous v6.0 v5.19 v5.16 v5.13"),
        ("6.12.0-55.9.1.el10_0.x86_64", "", "", "Ambiguous v6.12 6.12.97+"),
        ("6.10.3-1.el9.elrepo.x86_64", "", "", "Inferred v6.6"),
        ("5.15.0-300.163.18.el9uek.x86_64", "", "", "Ambiguous v5.13 5.15.212+"),
        ("6.10.3-200.fc40.x86_64", "", "", "Inferred v6.6"),
        ("6.12.0-0.rc3.20241017git6efbea77b390.32.fc42.x86_64", "", "", "Exact v6.12"),
        // SUSE.
        (
            "6.4.0-150600.23.7-default",
            "#1 SMP PREEMPT_DYNAMIC Thu Jun  6 08:03:39 UTC 2024 (0aca4a3)",
            "",
            "Inferred v6.1",
        ),
        ("6.4.0-150600.23.7-default", "", "", "Ambiguous v6.1 6.1.178+"),
        ("6.12.0-160000.5-default", "", "", "Ambiguous v6.12 6.12.97+"),
        ("6.11.8-1-default", "", "", "Inferred v6.6"),
        // Others.
        ("6.1.102-111.182.amzn2023.x86_64", "", "", "Inferred v6.1"),
        (
            "5.10.134-16.3.al8.x86_64",
            "",
            "",
            "Ambiguous v6.0 v5.19 v5.16 v5.13 v5.10 6.1.178+ v5.18-allowed v5.16-allowed 5.15.212+ 5.10.261+",
        ),
        ("5.15.153.1-microsoft-standard-WSL2", "", "", "Inferred v5.13"),
        ("6.8.12-4-pve", "#1 SMP PREEMPT_DYNAMIC PMX 6.8.12-4 (2024-11-06T15:04Z)", "", "Inferred v6.6"),
        ("5.10.157-android13-4-00003-g4b7ef0a5a8a5-ab10234567", "", "", "Ambiguous v5.10 5.10.261+"),
        ("6.18.44-fc-v769", "#1 SMP PREEMPT_DYNAMIC @0", "", "Inferred 6.18.39+"),
        ("6.12.8-arch1-1", "#1 SMP PREEMPT_DYNAMIC Thu, 02 Jan 2025 22:52:26 +0000", "", "Exact v6.12"),
        ("6.12.1-2-cachyos", "", "", "Inferred v6.12"),
        ("6.12.30", "#1-NixOS SMP PREEMPT_DYNAMIC Tue Jan  1 00:00:00 UTC 1980", "", "Exact v6.12"),
        ("6.1.0-rockchip", "", "", "Ambiguous v6.1 6.1.178+"),
        // Whoever built it may have taken the fix, unless that was before there was one.
        (
            "6.12.95-custom",
            "#2 SMP PREEMPT_DYNAMIC Mon Jun 8 10:00:00 UTC 2026",
            "",
            "Ambiguous v6.12 6.12.97+",
        ),
        ("6.12.3-custom", "#2 SMP PREEMPT_DYNAMIC Mon Dec 9 10:00:00 UTC 2024", "", "Inferred v6.12"),
        ("6.12.97-custom", "", "", "Inferred 6.12.97+"),
        // Texts that are no use, or speak of two kernels.
        ("6.1.0-57-cloud-amd64", "garbage Debian six", "Ubuntu", "Ambiguous v6.1 6.1.178+"),
        ("5.15.0-1-amd64", "#1 SMP Debian 6.12.95-1 (2026-07-01)", "", "Ambiguous v5.13 5.15.212+ v6.12"),
    ] {
        let found = told(release, version, signature);
        assert_eq!(summary(&found), expected, "{release} / {version} / {signature}: {:#?}", found.evidence);
    }
}

#[test]
fn late_builds_turn_the_order() {
    let found = told("6.1.0-60-cloud-arm64", "#1 SMP Wed Nov 25 08:00:00 UTC 2026", "");
    assert_eq!(summary(&found), "Ambiguous 6.1.178+ v6.1");
}

#[test]
fn evidence_is_in_plain_sentences() {
    let found = told("6.1.0-57-cloud-amd64", "#1 SMP PREEMPT_DYNAMIC Debian 6.1.192-3 (2026-11-26)", "");
    assert_eq!(
        found.evidence,
        [
            "The release is 6.1.0-57-cloud-amd64.",
            "It is marked as Debian or a derivative, which follows kernel.org's releases.",
            "uname -v tells the real version: 6.1.192.",
            "82d6e01a0699 is in 6.1.y from 6.1.178 on.",
        ]
    );
    let found = told("6.1.0-57-cloud-amd64", "", "");
    assert_eq!(
        found.evidence[2..],
        [
            "The 0 in it may stand for any stable level of 6.1.",
            "Whether it has 82d6e01a0699 is not told: both are possible.",
        ]
    );
}

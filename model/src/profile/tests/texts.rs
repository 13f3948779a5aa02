//! Texts that are no kernels, and texts of every other kind.

use super::told;
use crate::profile::*;
use proptest::prelude::*;

#[test]
fn what_is_no_kernel_is_refused() {
    for (text, message) in [
        (
            "six",
            "release `six` is not a kernel release: it does not begin with a number; expected MAJOR.MINOR or \
                 MAJOR.MINOR.PATCH, then nothing, -rcN or a vendor's suffix, such as 6.12.95, 6.18-rc3 or \
                 6.1.0-57-cloud-amd64",
        ),
        (
            "4.18.0-553.el8_10.x86_64",
            "release `4.18.0-553.el8_10.x86_64` is not modelled: kernels before 5.3; \
                 expected 5.3 or later; its vendor mixes in scheduler changes of later releases that the number \
                 does not tell, so name a profile",
        ),
        (
            "5.2.0-190-generic",
            "release `5.2.0-190-generic` is not modelled: kernels before 5.3; expected 5.3 or later",
        ),
        ("5.3-rc3", "release `5.3-rc3` is not modelled: kernels before 5.3; expected 5.3 or later"),
    ] {
        let error = candidates(&KernelIdentity::new(text)).unwrap_err();
        assert_eq!((error.to_string().as_str(), error.field()), (message, Field::Release));
    }
    for text in
        ["", " ", "6.", "6.12.x", "6.99999999999", "mel-v7", "berth-auto", "6.12.95\n6.1", "\u{202e}6.1"]
    {
        let error = from_text(text).unwrap_err();
        assert!(matches!(error, Error::Malformed { field: Field::Kernel, .. }), "{text:?}: {error}");
        assert!(error.to_string().ends_with(", or a profile's name, such as mel-v5"), "{error}");
    }
    assert!(matches!(from_text("5.2"), Err(Error::BeforeModelled { field: Field::Kernel, .. })));
}

#[test]
fn megabytes_are_refused_in_a_short_message() {
    let garbage = "ß\n".repeat(1 << 19);
    let with = |release: &str, version: &str, signature: &str| KernelIdentity {
        release: release.to_owned(),
        version: Some(version.to_owned()),
        version_signature: Some(signature.to_owned()),
    };
    for (identity, field) in [
        (with(&garbage, "", ""), Field::Release),
        (with("6.1.1", &garbage, ""), Field::Version),
        (with("6.1.1", "", &garbage), Field::VersionSignature),
    ] {
        let error = candidates(&identity).unwrap_err();
        assert!(matches!(error, Error::TooLong { .. }) && error.field() == field, "{error}");
        assert!(error.to_string().len() < 500 && !error.to_string().contains('\n'), "{error}");
    }
}

/// Text that comes close to what kernels print.
fn nearly() -> impl Strategy<Value = String> {
    let part = prop_oneof![
        (0u32..400).prop_map(|number| number.to_string()),
        prop::sample::select(vec![
            ".",
            "-",
            "+",
            "~",
            " ",
            "v",
            "rc",
            "-rc1",
            ".el9",
            ".fc41",
            "uek",
            "-generic",
            "-amd64",
            "+deb13",
            "-150600.",
            "-default",
            "Debian ",
            "Ubuntu ",
            "-Ubuntu ",
            "Kali ",
            "(2026-05-08)",
            "Aug ",
            "2024",
            "-g",
            "abcdef012",
            "-next-",
            "5.",
            "6.",
            "6.1.",
            "6.12.",
            "99999999999",
            ":",
            "#1 SMP ",
        ])
        .prop_map(str::to_owned),
        any::<char>().prop_map(String::from),
    ];
    prop::collection::vec(part, 0..12).prop_map(|parts| parts.concat())
}

fn any_text() -> impl Strategy<Value = String> {
    prop_oneof![
        nearly(),
        "\\PC{0,80}",
        any::<String>(),
        (5u8..8, 0u8..30, 0u16..300).prop_map(|(a, b, c)| format!("{a}.{b}.{c}"))
    ]
}

proptest! {
    #[test]
    fn no_text_breaks_it(
        release in any_text(),
        version in prop::option::of(any_text()),
        version_signature in prop::option::of(any_text()),
    ) {
        let _ = from_text(&release);
        match candidates(&KernelIdentity { release, version, version_signature }) {
            Ok(found) => {
                prop_assert_eq!(found.profiles.len() > 1, found.confidence == Confidence::Ambiguous);
                prop_assert!(!found.profiles.is_empty());
                for (at, profile) in found.profiles.iter().enumerate() {
                    prop_assert!(!found.profiles[..at].iter().any(|other| other.same_rules(profile)));
                    prop_assert!(matches!(profile.provenance.status, Status::Released | Status::Vendor));
                }
                prop_assert!(found.evidence.iter().all(|line| line.ends_with('.') && !line.contains('\n')));
            }
            Err(error) => prop_assert!(!error.to_string().contains('\n') && error.to_string().len() < 2000),
        }
    }

    /// Hiding the level never loses the truth: what holds for every candidate holds for the real kernel.
    #[test]
    fn less_knowledge_is_never_narrower(minor in prop::sample::select(vec![1u16, 5, 6, 8, 12, 13, 18, 19]), level in 0u16..250) {
        let hidden = told(&format!("6.{minor}.0-7-amd64"), "", "");
        let series = from_text(&format!("6.{minor}")).unwrap();
        let vendor = told(&format!("6.{minor}.0-45-generic"), "", "");
        let real = told(
            &format!("6.{minor}.0-7-amd64"),
            &format!("#1 SMP PREEMPT_DYNAMIC Debian 6.{minor}.{level}-1 (2026-11-01)"),
            "",
        );
        prop_assert_eq!(real.profiles.len(), 1);
        for wider in [hidden, series, vendor] {
            prop_assert!(wider.profiles.iter().any(|profile| profile.same_rules(real.profiles[0])));
        }
    }
}

//! Whose kernel it is, from the marks that vendors leave in `uname`.

/// What a vendor does with kernel.org's releases.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Patching {
    /// Ships them: the rules are those of the release, once its stable level is known.
    Upstream,
    /// Adds fixes of its own choice: 82d6e01a0699 may be there at any level.
    Fixes,
    /// Adds whole series of later releases too: the rules may be those of any later release.
    Features,
}

/// A vendor, told by the first rule of [`VENDORS`] that fits.
#[derive(Debug)]
pub(super) struct Vendor {
    pub(super) name: &'static str,
    pub(super) patching: Patching,
    /// A patch level of 0 is meant: it does not stand for "some level of this series".
    pub(super) zero_is_level: bool,
    /// Its kernels are known to carry no scheduler changes of their own.
    pub(super) plain: bool,
    fits: fn(&Clues<'_>) -> bool,
}

/// What vendors leave their marks in.
#[derive(Debug)]
pub(super) struct Clues<'a> {
    /// What follows the numbers in `uname -r`, in lower case.
    pub(super) suffix: &'a str,
    /// `uname -v`.
    pub(super) version: &'a str,
    /// There is a `/proc/version_signature`: only Ubuntu's kernels have it.
    pub(super) signed: bool,
}

pub(super) fn find(clues: &Clues<'_>) -> Option<&'static Vendor> {
    VENDORS.iter().find(|vendor| (vendor.fits)(clues))
}

// The order matters: UEK and ELRepo carry Red Hat's mark too, and Ubuntu's flavours are named after clouds.
static VENDORS: &[Vendor] = &[
    fixes("Oracle's UEK", |c| c.suffix.contains("uek")),
    plain("ELRepo", true, |c| c.suffix.contains(".elrepo")),
    features("Red Hat Enterprise Linux or a rebuild of it", |c| has_numbered(c.suffix, ".el")),
    plain("Fedora", true, |c| has_numbered(c.suffix, ".fc")),
    follows("Amazon Linux", |c| c.suffix.contains(".amzn")),
    features("SUSE Linux Enterprise or openSUSE Leap", |c| has_six_digits(c.suffix, &["15", "16"])),
    plain("Ubuntu's mainline builds", true, |c| has_six_digits(c.suffix, &["05", "06", "07"])),
    features("openEuler", |c| has_numbered(c.suffix, ".oe")),
    features("Anolis or Alibaba Cloud Linux", |c| {
        has_numbered(c.suffix, ".an") || has_numbered(c.suffix, ".al")
    }),
    features("TencentOS", |c| has_numbered(c.suffix, ".tl")),
    features("Kylin", |c| has_numbered(c.suffix, ".ky")),
    fixes("Android", |c| c.suffix.contains("-android")),
    fixes("Proxmox", |c| c.suffix.ends_with("-pve")),
    follows("WSL", |c| c.suffix.contains("microsoft")),
    follows("Azure Linux", |c| has_numbered(c.suffix, ".azl") || has_numbered(c.suffix, ".cm")),
    fixes("Ubuntu", is_ubuntu),
    plain("Debian or a derivative", false, is_debian),
    follows("openSUSE", |c| c.suffix.ends_with("-default")),
    plain("Arch Linux", true, |c| has_numbered(c.suffix, "-arch")),
    follows("a build with scheduler patches of its own", |c| {
        ["-zen", "-lqx", "xanmod", "cachyos", "-tkg", "bore"].iter().any(|mark| c.suffix.contains(mark))
    }),
];

const fn plain(name: &'static str, zero_is_level: bool, fits: fn(&Clues<'_>) -> bool) -> Vendor {
    Vendor { name, patching: Patching::Upstream, zero_is_level, plain: true, fits }
}

const fn follows(name: &'static str, fits: fn(&Clues<'_>) -> bool) -> Vendor {
    Vendor { name, patching: Patching::Upstream, zero_is_level: false, plain: false, fits }
}

const fn fixes(name: &'static str, fits: fn(&Clues<'_>) -> bool) -> Vendor {
    Vendor { name, patching: Patching::Fixes, zero_is_level: false, plain: false, fits }
}

const fn features(name: &'static str, fits: fn(&Clues<'_>) -> bool) -> Vendor {
    Vendor { name, patching: Patching::Features, zero_is_level: false, plain: false, fits }
}

/// `.el9`, `.fc41`: the mark with a digit behind it.
fn has_numbered(suffix: &str, mark: &str) -> bool {
    suffix
        .match_indices(mark)
        .any(|(at, _)| suffix[at + mark.len()..].starts_with(|c: char| c.is_ascii_digit()))
}

/// `-150600.23.7-default`, `-061003-generic`: a part of six digits that begins in one of these ways.
fn has_six_digits(suffix: &str, beginnings: &[&str]) -> bool {
    suffix.split(['-', '.']).any(|part| {
        part.len() == 6
            && part.bytes().all(|b| b.is_ascii_digit())
            && beginnings.iter().any(|beginning| part.starts_with(beginning))
    })
}

/// `-45-generic`, or the word in `uname -v`.
fn is_ubuntu(clues: &Clues<'_>) -> bool {
    const FLAVOURS: [&str; 12] = [
        "generic",
        "lowlatency",
        "aws",
        "azure",
        "gcp",
        "gke",
        "gkeop",
        "oracle",
        "ibm",
        "kvm",
        "nvidia",
        "raspi",
    ];
    let mut parts = clues.suffix.split('-').skip(1);
    let number =
        parts.next().is_some_and(|part| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit()));
    let flavour = parts.next().is_some_and(|part| FLAVOURS.contains(&part));
    clues.signed || clues.version.contains("-Ubuntu") || (number && flavour)
}

/// `-57-cloud-amd64`, `+deb13-amd64`, or the word in `uname -v`.
fn is_debian(clues: &Clues<'_>) -> bool {
    const MARKS: [&str; 6] = ["+deb", ".deb", "+bpo", "+rpt", "+kali", "-kali"];
    const ENDS: [&str; 7] = ["-amd64", "-arm64", "-686", "-686-pae", "-armmp", "-riscv64", "-powerpc64le"];
    clues.version.contains(" Debian ")
        || clues.version.contains(" Kali ")
        || MARKS.iter().any(|mark| clues.suffix.contains(mark))
        || ENDS.iter().any(|end| clues.suffix.ends_with(end))
}

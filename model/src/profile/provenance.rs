//! Where a profile's rules come from.

/// Where a profile's rules come from, and how well they are known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Provenance {
    /// The kernels that the row stands for, in words.
    pub releases: &'static str,
    /// The changes that brought its rules, oldest first.
    pub origins: &'static [Origin],
    /// How its rules are known.
    pub knowledge: Knowledge,
    /// Whether a host can be expected to run it.
    pub status: Status,
    /// What else a reader should know; empty if nothing.
    pub note: &'static str,
}

/// A change of the kernel that brought a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Origin {
    /// The change itself.
    pub source: Source,
    /// What it did to placement.
    pub what: &'static str,
    /// The first release with it, such as `v5.11`, `not merged`, or `before v5.3`.
    pub since: &'static str,
}

/// Where a change can be looked up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Source {
    /// It is older than every source that was read; a commit whose source has it.
    ReadAt(&'static str),
    /// A commit of Linus Torvalds' or the stable tree, by the first 12 digits of its id.
    Commit(&'static str),
    /// A patch or test report on the kernel's mailing list, by what it was called there.
    Mail(&'static str),
}

/// How the rules of a profile are known, best first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Knowledge {
    /// Read in the source at a commit of that release, or of the same series.
    SourceRead,
    /// Read in the patch mails or in test reports on them.
    PatchMail,
    /// Put together from rows on both sides and a list of changes; the source itself was not read.
    Inferred,
    /// Assumed because no change was found; the source was not read.
    Unconfirmed,
}

impl Knowledge {
    /// Whether the rules were read, as source or as patch.
    pub fn is_confirmed(self) -> bool {
        self <= Self::PatchMail
    }
}

/// What kind of kernel a profile stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Status {
    /// A release of kernel.org, mainline or stable.
    Released,
    /// A series posted on the mailing list, or the tree that a report there measured. Nobody's production kernel.
    MailingList,
    /// Rules that no kernel.org release combines, but a vendor's kernel may.
    Vendor,
    /// Berth's own.
    Ideal,
}

//! Why nothing was done about a hold: a part of the table in [`super::status`].
//!
//! | condition | code | details beside `ErrorInfo` |
//! |---|---|---|
//! | no such hold, for this caller | `NOT_FOUND` | `ResourceInfo` |
//! | a request id or a name that is in use | `ALREADY_EXISTS` | `ResourceInfo` |
//! | CPUs that others hold, or too many holds | `RESOURCE_EXHAUSTED` | `QuotaFailure`, `RetryInfo` from the next expiry |
//! | a hold that has ended, or cannot do what is asked of it | `FAILED_PRECONDITION` | `PreconditionFailure` |

use std::time::Duration;
use tonic::Code;
use tonic_types::{ErrorDetails, PreconditionViolation, QuotaViolation};

/// Why nothing was done about a hold.
#[derive(Debug, Clone)]
pub(crate) enum HoldFailure {
    /// There is none of this id or name that the caller may see.
    NotFound { what: &'static str, key: String },
    /// The request id stands for another request.
    RequestIdUsed { request_id: String, id: String },
    /// A living hold has the name.
    NameUsed { name: String, id: String },
    /// Others hold the CPUs.
    Taken { asked: u32, free: u32, cpus: String, holders: String, retry: Option<Duration> },
    /// As many holds are in force as can be.
    Full { limit: usize },
    /// The hold has ended.
    Ended { id: String, why: &'static str },
    /// It has no expiry that could be set anew.
    NoExpiry { id: String },
    /// It has CPUs, so that no hold can belong to it.
    NotAClaim { id: String },
}

impl HoldFailure {
    pub(super) fn code(&self) -> Code {
        match self {
            Self::NotFound { .. } => Code::NotFound,
            Self::RequestIdUsed { .. } | Self::NameUsed { .. } => Code::AlreadyExists,
            Self::Taken { .. } | Self::Full { .. } => Code::ResourceExhausted,
            Self::Ended { .. } | Self::NoExpiry { .. } | Self::NotAClaim { .. } => Code::FailedPrecondition,
        }
    }

    pub(super) fn reason(&self) -> &'static str {
        match self {
            Self::NotFound { .. } => "HOLD_NOT_FOUND",
            Self::RequestIdUsed { .. } => "REQUEST_ID_USED",
            Self::NameUsed { .. } => "HOLD_NAME_USED",
            Self::Taken { .. } => "CPUS_HELD",
            Self::Full { .. } => "TOO_MANY_HOLDS",
            Self::Ended { .. } => "HOLD_ENDED",
            Self::NoExpiry { .. } => "HOLD_WITHOUT_EXPIRY",
            Self::NotAClaim { .. } => "NOT_A_CLAIM",
        }
    }

    pub(super) fn message(&self) -> String {
        match self {
            Self::NotFound { what, key } => {
                format!("{what}: there is no hold `{key}` of yours; name one that `ListHolds` gives")
            }
            Self::RequestIdUsed { request_id, id } => format!(
                "hold.request_id: `{request_id}` has made the hold {id} by a request of other content; take another id for another request"
            ),
            Self::NameUsed { name, id } => {
                format!(
                    "hold.name: the hold {id} is called `{name}` already; take another name, or release it"
                )
            }
            Self::Taken { asked, free, cpus, holders, .. } => format!(
                "{asked} CPUs are asked for and {free} of them are free: {holders} keep CPUs {cpus}; name other CPUs, or ask again"
            ),
            Self::Full { limit } => format!("{limit} holds are in force, and no more are kept; release some"),
            Self::Ended { id, why } => format!("the hold {id} has ended: {why}; make another"),
            Self::NoExpiry { id } => {
                format!("ttl: the hold {id} has no expiry that could be set anew; give a time to set one")
            }
            Self::NotAClaim { id } => {
                format!("hold.claim: the hold {id} has CPUs; name a claim, which has none")
            }
        }
    }

    pub(super) fn metadata(&self) -> Vec<(&'static str, String)> {
        match self {
            Self::NotFound { what, key } => vec![("field", (*what).to_owned()), ("hold", key.clone())],
            Self::RequestIdUsed { request_id, id } => {
                vec![("request_id", request_id.clone()), ("hold", id.clone())]
            }
            Self::NameUsed { name, id } => vec![("name", name.clone()), ("hold", id.clone())],
            Self::Taken { asked, free, cpus, holders, .. } => vec![
                ("asked", asked.to_string()),
                ("free", free.to_string()),
                ("held", cpus.clone()),
                ("by", holders.clone()),
            ],
            Self::Full { limit } => vec![("limit", limit.to_string())],
            Self::Ended { id, why } => vec![("hold", id.clone()), ("why", (*why).to_owned())],
            Self::NoExpiry { id } | Self::NotAClaim { id } => vec![("hold", id.clone())],
        }
    }

    pub(super) fn tell(&self, details: &mut ErrorDetails) {
        let message = self.message();
        let hold = |name: &str| ("berth.v1.Hold".to_owned(), name.to_owned());
        match self {
            Self::NotFound { key: name, .. }
            | Self::RequestIdUsed { id: name, .. }
            | Self::NameUsed { id: name, .. } => {
                let (kind, name) = hold(name);
                details.set_resource_info(kind, name, "", message);
            }
            Self::Taken { retry, .. } => {
                details.set_quota_failure(vec![QuotaViolation::new("cpus", message)]);
                details.set_retry_info(*retry);
            }
            Self::Full { .. } => {
                details.set_quota_failure(vec![QuotaViolation::new("holds", message)]);
            }
            Self::Ended { id, .. } | Self::NoExpiry { id } | Self::NotAClaim { id } => {
                let kind = match self {
                    Self::Ended { .. } => "HOLD_IN_FORCE",
                    Self::NoExpiry { .. } => "HOLD_EXPIRES",
                    _ => "CLAIM",
                };
                details.set_precondition_failure(vec![PreconditionViolation::new(kind, id, message)]);
            }
        }
    }
}

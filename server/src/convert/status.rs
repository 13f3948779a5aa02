//! The one table that turns what went wrong into a gRPC status.
//!
//! | condition | code | details beside `ErrorInfo` |
//! |---|---|---|
//! | fields that cannot be taken | `INVALID_ARGUMENT` | `BadRequest`, one violation per field |
//! | a host that the question cannot be answered for as it is | `FAILED_PRECONDITION` | `PreconditionFailure` |
//! | no core that could be had now | `RESOURCE_EXHAUSTED` | `QuotaFailure`, `RetryInfo` |
//! | a generation that has moved | `ABORTED` | |
//! | no snapshot yet, a load that is too old | `UNAVAILABLE` | `RetryInfo` |
//! | nobody that is known | `UNAUTHENTICATED` | |
//! | a caller that may not do it | `PERMISSION_DENIED` | |
//! | a user that holds too much | `RESOURCE_EXHAUSTED` | `QuotaFailure` |
//! | too many requests at a time | `UNAVAILABLE` | `RetryInfo` |
//! | a store of holds that fails, or cannot be used | `UNAVAILABLE`, `FAILED_PRECONDITION` | `RetryInfo`, `PreconditionFailure` |
//! | what goes against a hold | as in [`hold_failure`](super::hold_failure) | |
//! | the deadline has passed | `DEADLINE_EXCEEDED` | |
//! | a field or method that is not served yet | `UNIMPLEMENTED` | |
//! | our own fault | `INTERNAL` | |
//!
//! Each has an `ErrorInfo` with a reason, the domain `berth` and the numbers of the message.

use super::{faults::Fault, hold_failure::HoldFailure};
use crate::{auth::Role, layers::request_id, ledger::Unusable};
use std::{collections::HashMap, fmt::Display, time::Duration};
use tonic::{Code, Status};
use tonic_types::{ErrorDetails, FieldViolation, PreconditionViolation, QuotaViolation, StatusExt};

/// The domain of every `ErrorInfo`.
pub(crate) const DOMAIN: &str = "berth";

/// When to ask again if the server was too busy.
const RETRY_WHEN_BUSY: Duration = Duration::from_millis(100);
/// When to ask again if something is known only after the next sample.
const RETRY_AFTER_SAMPLE: Duration = Duration::from_secs(1);

/// Why a request got no answer.
#[derive(Debug)]
pub(crate) enum Failure {
    /// Fields that cannot be taken, at least one.
    Fields(Vec<Fault>),
    /// Something has to be different on the host first.
    Precondition(Precondition),
    /// The caller has seen another generation.
    Moved { what: &'static str, expected: u64, now: u64 },
    /// Cores are not to be shared with other jobs, and none is free now.
    NoFreeCore { cores: usize },
    /// The tasks do not fit as is demanded: now, or ever.
    NoRoom { reason: &'static str, said: String, asked: usize, free: usize, allowed: usize },
    /// Nothing was read yet.
    NoSnapshot,
    /// The load is older than the caller wants it, or not known.
    LoadTooOld { age: Option<Duration>, most: Duration },
    /// Nothing tells who the caller is.
    NotKnown { caller: String, expected: &'static str },
    /// The caller may not do it.
    RoleTooLow { caller: String, role: Role, needed: Role, what: String },
    /// The calling process has ended, so that nothing tells which CPUs it may use.
    CallerGone { caller: String },
    /// CPUs that the caller may not use itself.
    OutsideCpuset { field: &'static str, cpus: String, own: String },
    /// The caller holds too much already.
    Quota { of: &'static str, asked: usize, most: usize, caller: String },
    /// The server stops.
    Stopping,
    /// Too many requests at a time.
    Overloaded { limit: usize, of: &'static str },
    /// Nothing was done about a hold.
    Hold(HoldFailure),
    /// No holds are kept.
    HoldsNotKept(Unusable),
    /// The deadline has passed.
    Deadline { limit: Duration },
    /// Fields of the contract that are not served yet.
    FieldsNotServed(Vec<String>),
    /// Our own fault. The cause is for the log only.
    Internal(String),
}

/// What has to be different on the host first.
#[derive(Debug)]
pub(crate) enum Precondition {
    /// None of the CPUs of a field is online.
    CpusOffline { field: &'static str, cpus: String },
    /// The host's kernel is one that the model does not cover.
    KernelNotModelled { evidence: String },
    /// berthd serves a host that was described to it, on which no processes are to be seen.
    HostDescribed,
    /// Not all threads of the host can be seen.
    ThreadsHidden { said: String },
}

impl Failure {
    /// Our own fault; the cause goes to the log.
    pub(crate) fn internal(cause: impl Display) -> Self {
        Self::Internal(cause.to_string())
    }

    fn code(&self) -> Code {
        match self {
            Self::Fields(_) => Code::InvalidArgument,
            Self::Precondition(_) => Code::FailedPrecondition,
            Self::NoRoom { asked, allowed, .. } if asked > allowed => Code::FailedPrecondition,
            Self::NoRoom { .. } | Self::NoFreeCore { .. } | Self::Quota { .. } => Code::ResourceExhausted,
            Self::Moved { .. } => Code::Aborted,
            Self::NoSnapshot | Self::LoadTooOld { .. } | Self::Stopping | Self::Overloaded { .. } => {
                Code::Unavailable
            }
            Self::NotKnown { .. } => Code::Unauthenticated,
            Self::RoleTooLow { .. } | Self::CallerGone { .. } | Self::OutsideCpuset { .. } => {
                Code::PermissionDenied
            }
            Self::Hold(failure) => failure.code(),
            Self::HoldsNotKept(unusable) if unusable.may_pass() => Code::Unavailable,
            Self::HoldsNotKept(_) => Code::FailedPrecondition,
            Self::Deadline { .. } => Code::DeadlineExceeded,
            Self::FieldsNotServed(_) => Code::Unimplemented,
            Self::Internal(_) => Code::Internal,
        }
    }

    pub(crate) fn reason(&self) -> &'static str {
        match self {
            Self::Fields(_) => "FIELDS_NOT_VALID",
            Self::Precondition(Precondition::CpusOffline { .. }) => "CPUS_OFFLINE",
            Self::Precondition(Precondition::KernelNotModelled { .. }) => "KERNEL_NOT_MODELLED",
            Self::Precondition(Precondition::HostDescribed) => "HOST_DESCRIBED",
            Self::Precondition(Precondition::ThreadsHidden { .. }) => "THREADS_HIDDEN",
            Self::NoFreeCore { .. } => "NO_FREE_CORE",
            Self::NoRoom { reason, .. } => reason,
            Self::Moved { .. } => "GENERATION_MOVED",
            Self::NoSnapshot => "NO_SNAPSHOT",
            Self::LoadTooOld { .. } => "LOAD_TOO_OLD",
            Self::NotKnown { .. } => "CREDENTIALS_MISSING",
            Self::RoleTooLow { .. } => "ROLE_TOO_LOW",
            Self::CallerGone { .. } => "CALLER_GONE",
            Self::OutsideCpuset { .. } => "OUTSIDE_CPUSET",
            Self::Quota { .. } => "QUOTA_EXCEEDED",
            Self::Stopping => "STOPPING",
            Self::Overloaded { .. } => "OVERLOADED",
            Self::Hold(failure) => failure.reason(),
            Self::HoldsNotKept(unusable) if unusable.may_pass() => "STORE_FAILS",
            Self::HoldsNotKept(_) => "STORE_NOT_USABLE",
            Self::Deadline { .. } => "DEADLINE_EXCEEDED",
            Self::FieldsNotServed(_) => "FIELDS_NOT_SERVED",
            Self::Internal(_) => "INTERNAL",
        }
    }

    fn message(&self) -> String {
        match self {
            Self::Fields(faults) => {
                // The details have them all; the message is for those who see nothing else.
                const TOLD: usize = 8;
                let each = faults.iter().take(TOLD).map(|f| format!("{}: {}", f.field, f.description));
                let mut each: Vec<String> = each.collect();
                if faults.len() > TOLD {
                    each.push(format!("and {} more fields", faults.len() - TOLD));
                }
                each.join("; ")
            }
            Self::Precondition(Precondition::CpusOffline { field, cpus }) => {
                format!("{field}: none of the CPUs {cpus} is online; name one that is, or bring one up")
            }
            Self::Precondition(Precondition::KernelNotModelled { evidence }) => {
                format!("{evidence} Name a kernel in `kernel` to ask about that one.")
            }
            Self::Precondition(Precondition::HostDescribed) => {
                "berthd serves a host that was described to it, on which no processes are to be seen; ask a berthd that reads its own host".to_owned()
            }
            Self::Precondition(Precondition::ThreadsHidden { said }) => {
                format!("what runs cannot be told: {said}; start berthd in the host's PID namespace")
            }
            Self::NoFreeCore { cores } => {
                format!(
                    "smt: FULL_CORES shares no core with other jobs, and each of the {cores} allowed cores runs one; name other CPUs, or ask again"
                )
            }
            Self::NoRoom { said, .. } => said.clone(),
            Self::Moved { what, expected, now } => {
                format!("the {what} has moved from generation {expected} to {now}; look at it again")
            }
            Self::NoSnapshot => "the host has not been read yet; ask again".to_owned(),
            Self::LoadTooOld { age: Some(age), most } => {
                format!(
                    "the load is {} ms old; at most {} ms were asked for",
                    age.as_millis(),
                    most.as_millis()
                )
            }
            Self::LoadTooOld { age: None, .. } => "the load of this host is not known; ask again".to_owned(),
            Self::NotKnown { caller, expected } => {
                format!("{caller} is not known; come with {expected}")
            }
            Self::RoleTooLow { caller, role, needed, what } => {
                format!("{what} needs the role {needed}, and {caller} has the role {role}")
            }
            Self::CallerGone { caller } => {
                format!(
                    "the process of {caller} that connected has ended or cannot be seen, so that its cpuset is not known; connect anew"
                )
            }
            Self::OutsideCpuset { field, cpus, own } => {
                format!("{field}: the CPUs {cpus} are outside of the caller's own cpuset {own}")
            }
            Self::Quota { of, asked, most, caller } => {
                format!("{caller} would hold {asked} {of}, and may hold {most}; release some first")
            }
            Self::Stopping => "the server stops; ask again".to_owned(),
            Self::Overloaded { limit, of } => format!("{limit} {of} are being answered already; ask again"),
            Self::Hold(failure) => failure.message(),
            Self::HoldsNotKept(unusable) => unusable.to_string(),
            Self::Deadline { limit } => format!("not answered within {} ms", limit.as_millis()),
            Self::FieldsNotServed(fields) => {
                format!("this version does not serve {} yet; leave it out", fields.join(", "))
            }
            Self::Internal(_) => {
                "an internal error; the server's log tells more under the request's id".to_owned()
            }
        }
    }

    fn metadata(&self) -> HashMap<String, String> {
        let pairs: Vec<(&str, String)> = match self {
            Self::Fields(faults) => vec![("fields", faults.len().to_string())],
            Self::Precondition(Precondition::CpusOffline { field, cpus }) => {
                vec![("field", (*field).to_owned()), ("cpus", cpus.clone())]
            }
            Self::NoFreeCore { cores } => vec![("cores", cores.to_string())],
            Self::NoRoom { asked, free, allowed, .. } => vec![
                ("asked", asked.to_string()),
                ("free", free.to_string()),
                ("allowed", allowed.to_string()),
            ],
            Self::Moved { what, expected, now } => {
                vec![
                    ("what", (*what).to_owned()),
                    ("expected", expected.to_string()),
                    ("now", now.to_string()),
                ]
            }
            Self::LoadTooOld { age, most } => {
                let age = age.map(|age| ("age_ms", age.as_millis().to_string()));
                age.into_iter().chain([("most_ms", most.as_millis().to_string())]).collect()
            }
            Self::NotKnown { caller, .. } | Self::CallerGone { caller } => vec![("caller", caller.clone())],
            Self::RoleTooLow { caller, role, needed, what } => {
                vec![
                    ("caller", caller.clone()),
                    ("role", role.to_string()),
                    ("needed", needed.to_string()),
                    ("what", what.clone()),
                ]
            }
            Self::OutsideCpuset { field, cpus, own } => {
                vec![("field", (*field).to_owned()), ("cpus", cpus.clone()), ("own", own.clone())]
            }
            Self::Quota { of, asked, most, caller } => {
                vec![
                    ("of", (*of).to_owned()),
                    ("asked", asked.to_string()),
                    ("most", most.to_string()),
                    ("caller", caller.clone()),
                ]
            }
            Self::Overloaded { limit, of } => vec![("limit", limit.to_string()), ("of", (*of).to_owned())],
            Self::Hold(failure) => failure.metadata(),
            Self::Deadline { limit } => vec![("limit_ms", limit.as_millis().to_string())],
            Self::FieldsNotServed(fields) => vec![("fields", fields.join(","))],
            Self::Internal(_) => request_id::current().map(|id| ("request_id", id)).into_iter().collect(),
            Self::Precondition(
                Precondition::KernelNotModelled { .. }
                | Precondition::HostDescribed
                | Precondition::ThreadsHidden { .. },
            )
            | Self::HoldsNotKept(_)
            | Self::NoSnapshot
            | Self::Stopping => Vec::new(),
        };
        pairs.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
    }

    fn details(&self) -> ErrorDetails {
        let mut details = ErrorDetails::with_error_info(self.reason(), DOMAIN, self.metadata());
        match self {
            Self::Fields(faults) => {
                let violations = faults.iter().map(|f| FieldViolation::new(&f.field, &f.description));
                details.set_bad_request(violations.collect::<Vec<_>>());
            }
            Self::Precondition(Precondition::CpusOffline { field, cpus }) => {
                let subject = format!("{field}={cpus}");
                let violation = PreconditionViolation::new("CPUS_ONLINE", subject, self.message());
                details.set_precondition_failure(vec![violation]);
            }
            Self::Precondition(Precondition::KernelNotModelled { .. }) => {
                let violation = PreconditionViolation::new("KERNEL_MODELLED", "kernel", self.message());
                details.set_precondition_failure(vec![violation]);
            }
            Self::Precondition(Precondition::HostDescribed | Precondition::ThreadsHidden { .. }) => {
                let violation = PreconditionViolation::new("PROCESSES_SEEN", "host", self.message());
                details.set_precondition_failure(vec![violation]);
            }
            Self::NoFreeCore { .. } => {
                details.set_quota_failure(vec![QuotaViolation::new("cores", self.message())]);
                details.set_retry_info(Some(RETRY_AFTER_SAMPLE));
            }
            Self::NoRoom { asked, allowed, .. } if asked > allowed => {
                let violation = PreconditionViolation::new("ROOM", "allowed", self.message());
                details.set_precondition_failure(vec![violation]);
            }
            Self::NoRoom { .. } => {
                details.set_quota_failure(vec![QuotaViolation::new("cpus", self.message())]);
                details.set_retry_info(Some(RETRY_AFTER_SAMPLE));
            }
            Self::Quota { of, .. } => {
                details.set_quota_failure(vec![QuotaViolation::new(*of, self.message())]);
            }
            Self::NoSnapshot | Self::LoadTooOld { .. } | Self::Stopping => {
                details.set_retry_info(Some(RETRY_AFTER_SAMPLE));
            }
            Self::Overloaded { .. } => {
                details.set_retry_info(Some(RETRY_WHEN_BUSY));
            }
            Self::Hold(failure) => failure.tell(&mut details),
            Self::HoldsNotKept(unusable) if unusable.may_pass() => {
                details.set_retry_info(Some(RETRY_AFTER_SAMPLE));
            }
            Self::HoldsNotKept(_) => {
                let violation = PreconditionViolation::new("STORE_USABLE", "store", self.message());
                details.set_precondition_failure(vec![violation]);
            }
            Self::Moved { .. }
            | Self::NotKnown { .. }
            | Self::RoleTooLow { .. }
            | Self::CallerGone { .. }
            | Self::OutsideCpuset { .. }
            | Self::Deadline { .. }
            | Self::FieldsNotServed(_)
            | Self::Internal(_) => {}
        }
        details
    }
}

impl From<Failure> for Status {
    fn from(failure: Failure) -> Self {
        if let Failure::Internal(cause) = &failure {
            tracing::error!(cause, "internal error");
        }
        Status::with_error_details(failure.code(), failure.message(), failure.details())
    }
}

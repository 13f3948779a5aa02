//! What a server's error says, in terms of what was typed.

use tonic::{Code, Status};
use tonic_types::StatusExt as _;

use crate::{
    Exit,
    flags::{as_typed, flag_of},
    text::numbers,
};

/// The exit status that an error of the server leads to.
pub(crate) fn exit(status: &Status) -> Exit {
    match status.code() {
        Code::Unavailable | Code::DeadlineExceeded | Code::Cancelled => Exit::NoAnswer,
        _ => Exit::Refused,
    }
}

/// What happened, in one line.
pub(crate) fn headline(status: &Status) -> String {
    let what = match status.code() {
        Code::InvalidArgument | Code::OutOfRange => "the question cannot be answered as it stands",
        Code::FailedPrecondition => "this cannot be answered on that host",
        Code::ResourceExhausted => "there is not enough room for it",
        Code::NotFound => "there is no such thing",
        Code::AlreadyExists => "that is taken already",
        Code::Aborted => "the host has changed meanwhile",
        Code::Unavailable => "the server cannot answer now",
        Code::DeadlineExceeded | Code::Cancelled => "the server ran out of time",
        Code::Unimplemented => "this berthd cannot answer that",
        Code::PermissionDenied | Code::Unauthenticated => "the server does not allow it",
        _ => "the server failed",
    };
    let code = code_name(status.code());
    match status.message() {
        message if message.is_empty() || repeats(status) => format!("{what} ({code})"),
        message => format!("{what} ({code}): {}", as_typed(message)),
    }
}

/// The message only says over again what the details say field by field.
fn repeats(status: &Status) -> bool {
    let details = status.get_error_details();
    details.has_bad_request_violations()
        || details.has_precondition_failure_violations()
        || details
            .quota_failure()
            .is_some_and(|d| d.violations.iter().any(|v| v.description == status.message()))
        || details.resource_info().is_some_and(|resource| resource.description == status.message())
}

/// Every detail, one line each, and the flag that it concerns first. `mask` is the flag of the field `allowed`.
pub(crate) fn details(status: &Status, mask: &'static str) -> Vec<String> {
    let flag_of = |field: &str| if field == "allowed" { Some(mask) } else { flag_of(field) };
    let about_field = |subject: &str, description: &str| about_field(subject, description, flag_of);
    let details = status.get_error_details();
    let mut lines = Vec::new();
    for fault in details.bad_request().into_iter().flat_map(|d| &d.field_violations) {
        lines.push(about_field(&fault.field, &fault.description));
    }
    for fault in details.precondition_failure().into_iter().flat_map(|d| &d.violations) {
        lines.push(about_field(&fault.subject, &fault.description));
    }
    for fault in details.quota_failure().into_iter().flat_map(|d| &d.violations) {
        lines.push(about_field(&fault.subject, &fault.description));
    }
    let fields = details.error_info().and_then(|info| info.metadata.get("fields"));
    for flag in fields.into_iter().flat_map(|fields| fields.split(',')).filter_map(flag_of) {
        lines.push(format!("{flag}: not served by this berthd"));
    }
    if let Some(resource) = details.resource_info() {
        // It starts with the field that names the resource, which may be no flag but an argument.
        let (field, rest) = resource.description.split_once(": ").unwrap_or(("", &resource.description));
        lines.push(match flag_of(field) {
            Some(flag) => format!("{flag}: {}", as_typed(rest)),
            None => as_typed(rest),
        });
    }
    if status.code() == Code::DeadlineExceeded {
        lines.push("--timeout allows more, up to the server's own limit.".to_owned());
    }
    if let Some(delay) = details.retry_info().and_then(|d| d.retry_delay) {
        lines.push(format!("Worth another try in {}.", numbers::time(delay)));
    }
    lines
}

/// A subject may be a field, or a field and its value as in `allowed=8-15`; a description may start with the field.
fn about_field(subject: &str, description: &str, flag_of: impl Fn(&str) -> Option<&'static str>) -> String {
    let field = subject.split_once('=').map_or(subject, |(field, _)| field);
    let description =
        description.strip_prefix(field).and_then(|rest| rest.strip_prefix(": ")).unwrap_or(description);
    let description = as_typed(description);
    match flag_of(field) {
        Some(flag) => format!("{flag}: {description}"),
        None if field.is_empty() => description,
        None => format!("{subject}: {description}"),
    }
}

/// The code as the wire contract spells it.
fn code_name(code: Code) -> &'static str {
    match code {
        Code::Ok => "OK",
        Code::Cancelled => "CANCELLED",
        Code::Unknown => "UNKNOWN",
        Code::InvalidArgument => "INVALID_ARGUMENT",
        Code::DeadlineExceeded => "DEADLINE_EXCEEDED",
        Code::NotFound => "NOT_FOUND",
        Code::AlreadyExists => "ALREADY_EXISTS",
        Code::PermissionDenied => "PERMISSION_DENIED",
        Code::ResourceExhausted => "RESOURCE_EXHAUSTED",
        Code::FailedPrecondition => "FAILED_PRECONDITION",
        Code::Aborted => "ABORTED",
        Code::OutOfRange => "OUT_OF_RANGE",
        Code::Unimplemented => "UNIMPLEMENTED",
        Code::Internal => "INTERNAL",
        Code::Unavailable => "UNAVAILABLE",
        Code::DataLoss => "DATA_LOSS",
        Code::Unauthenticated => "UNAUTHENTICATED",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;
    use tonic_types::ErrorDetails;

    fn refused(code: Code, message: &str, fill: impl FnOnce(&mut ErrorDetails)) -> Status {
        let mut details = ErrorDetails::new();
        fill(&mut details);
        Status::with_error_details(code, message, details)
    }

    #[test]
    fn every_fault_is_shown_with_its_flag() {
        let status = refused(Code::InvalidArgument, "2 fields are not valid", |d| {
            d.add_bad_request_violation("tasks", "0 tasks; 1 to 65,536 are accepted");
            d.add_bad_request_violation("host.load[1].cpus", "CPU 9 is not on the host");
            d.add_bad_request_violation("scenario.gap", "longer than 10 s");
            d.add_bad_request_violation("must_include", "CPU 9 is not on the host");
        });
        assert_eq!(exit(&status), Exit::Refused);
        assert_eq!(headline(&status), "the question cannot be answered as it stands (INVALID_ARGUMENT)");
        assert_eq!(
            details(&status, "--cpus"),
            [
                "--tasks: 0 tasks; 1 to 65,536 are accepted",
                "--host-load: CPU 9 is not on the host",
                "--gap: longer than 10 s",
                "must_include: CPU 9 is not on the host",
            ]
        );
    }

    #[test]
    fn what_can_be_tried_again_is_no_answer() {
        let status = refused(Code::Unavailable, "", |d| {
            d.set_retry_info(Some(Duration::from_millis(250)));
        });
        assert_eq!(exit(&status), Exit::NoAnswer);
        assert_eq!(headline(&status), "the server cannot answer now (UNAVAILABLE)");
        assert_eq!(details(&status, "--cpus"), ["Worth another try in 250 ms."]);
    }

    #[test]
    fn preconditions_and_quotas_are_told() {
        let status = refused(Code::FailedPrecondition, "no CPU left", |d| {
            d.add_precondition_failure_violation(
                "CPUS_ONLINE",
                "allowed=2-3",
                "allowed: 2-3 are all offline",
            );
        });
        assert_eq!(headline(&status), "this cannot be answered on that host (FAILED_PRECONDITION)");
        assert_eq!(details(&status, "--cpus"), ["--cpus: 2-3 are all offline"]);
        assert_eq!(details(&status, "--allowed"), ["--allowed: 2-3 are all offline"]);
        let status = refused(Code::ResourceExhausted, "cpus: no room", |d| {
            d.add_quota_failure_violation("cpus=0", "cpus: no room");
        });
        assert_eq!(headline(&status), "there is not enough room for it (RESOURCE_EXHAUSTED)");
        assert_eq!(details(&status, "--cpus"), ["--cpus: no room"]);
        let status = refused(Code::ResourceExhausted, "no room", |d| {
            d.add_quota_failure_violation("node 1", "asked 8, free 4");
        });
        assert_eq!(headline(&status), "there is not enough room for it (RESOURCE_EXHAUSTED): no room");
        assert_eq!(details(&status, "--cpus"), ["node 1: asked 8, free 4"]);
    }

    #[test]
    fn what_is_not_there_is_said_once() {
        let resource = |code, message: &str| {
            refused(code, message, |d| {
                d.set_resource_info("berth.v1.Hold", "a", "", message);
            })
        };
        let status =
            resource(Code::NotFound, "hold.claim: there is no hold `a`; name one that `ListHolds` gives");
        assert_eq!(headline(&status), "there is no such thing (NOT_FOUND)");
        assert_eq!(
            details(&status, "--cpus"),
            ["--under: there is no hold `a`; name one that `berth holds` gives"]
        );
        let status = resource(Code::AlreadyExists, "id: `a` is taken");
        assert_eq!(headline(&status), "that is taken already (ALREADY_EXISTS)");
        assert_eq!(details(&status, "--cpus"), ["`a` is taken"]);
    }

    #[test]
    fn fields_that_are_not_served_are_named_as_flags() {
        let status = refused(Code::Unimplemented, "this version does not serve smt yet", |d| {
            d.set_error_info(
                "FIELDS_NOT_SERVED",
                "berth",
                [("fields".to_owned(), "smt,launch EXEC".to_owned())],
            );
        });
        assert_eq!(
            details(&status, "--cpus"),
            ["--smt: not served by this berthd", "--launch: not served by this berthd"]
        );
    }
}

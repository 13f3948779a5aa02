//! Questions of a hook: each has little time, and all together have until the hook must end.

use std::{io, time::Duration};

use tokio::time::{Instant, sleep};
use tonic::{Code, Request, Response, Status, transport::Channel};
use tonic_types::StatusExt as _;

use super::hook;
use crate::{Error, command::Asker, connection::Connection};

/// How long one call takes at most.
const LIMIT: Duration = Duration::from_millis(250);
/// How long to wait before asking a busy server again, if it does not say.
const AGAIN: Duration = Duration::from_millis(20);

/// So many connections may break.
const BROKEN: u32 = 5;

/// The server, to a hook.
#[derive(Debug)]
pub(super) struct Server {
    connection: Connection,
    deadline: Instant,
}

impl Server {
    pub(super) fn of(asker: &Asker) -> Self {
        let limit = asker.connection.limit().min(LIMIT);
        Self { connection: asker.connection.within(limit), deadline: hook::last_call().into() }
    }

    /// Asks, and again as long as there is time and it may help.
    pub(super) async fn ask<Q: Clone, A>(
        &self,
        question: &Q,
        call: impl AsyncFn(Channel, Request<Q>) -> Result<Response<A>, Status>,
    ) -> Result<A, Error> {
        let (mut broken, mut before) = (0, None);
        loop {
            let left = self.deadline.saturating_duration_since(Instant::now());
            // An answer in no time cannot be hoped for.
            if let Some(error) = before.take_if(|_| left < LIMIT / 4) {
                return Err(error);
            }
            let connection = self.connection.within(self.connection.limit().min(left));
            let asked =
                connection.ask(question.clone(), async |channel, request| call(channel, request).await);
            let error = match Box::pin(asked).await {
                Ok(answer) => return Ok(answer),
                Err(error) => error,
            };
            broken += u32::from(matches!(error, Error::Unreachable { .. }));
            match pause(&error, broken) {
                Some(pause) if Instant::now() + pause < self.deadline => {
                    before = Some(error);
                    sleep(pause).await;
                }
                _ => return Err(error),
            }
        }
    }
}

/// How long to wait before the same question may be answered, after so many broken connections. `None`: it will not be.
fn pause(error: &Error, broken: u32) -> Option<Duration> {
    match error {
        Error::Refused { status, .. } if status.code() == Code::Unavailable => {
            let retry = status.get_details_retry_info().and_then(|info| info.retry_delay);
            Some(retry.unwrap_or(AGAIN).min(LIMIT))
        }
        // The server knows how long it is waited for, and may be the first to say that it was too long.
        Error::Refused { status, .. } if status.code() == Code::DeadlineExceeded => Some(Duration::ZERO),
        Error::Timeout { .. } => Some(Duration::ZERO),
        // Nobody is there, or nobody for this user.
        Error::Unreachable {
            kind: io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused | io::ErrorKind::PermissionDenied,
            ..
        } => None,
        // It may be a crowd that is too large for now.
        Error::Unreachable { .. } if broken < BROKEN => Some(AGAIN * broken),
        _ => None,
    }
}

/// Whether the server was there and did not want that.
pub(super) fn is_refused(error: &Error, codes: &[Code]) -> bool {
    matches!(error, Error::Refused { status, .. } if codes.contains(&status.code()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::address::Address;

    fn refused(status: Status) -> Error {
        Error::Refused { status: Box::new(status), mask: "--cpus" }
    }

    fn unreachable(kind: io::ErrorKind) -> Error {
        let address = Address::of_the_system();
        Error::Unreachable { address, cause: String::new(), kind }
    }

    #[test]
    fn what_may_pass_is_asked_again() {
        assert_eq!(pause(&refused(Status::unavailable("busy")), 0), Some(AGAIN));
        assert_eq!(pause(&refused(Status::deadline_exceeded("late")), 0), Some(Duration::ZERO));
        let late = Error::Timeout { address: Address::of_the_system(), limit: LIMIT };
        assert_eq!(pause(&late, 0), Some(Duration::ZERO));
        assert_eq!(pause(&unreachable(io::ErrorKind::BrokenPipe), 2), Some(AGAIN * 2));
    }

    #[test]
    fn what_will_not_pass_is_not() {
        assert_eq!(pause(&refused(Status::resource_exhausted("full")), 0), None);
        assert_eq!(pause(&unreachable(io::ErrorKind::BrokenPipe), BROKEN), None);
        for nobody in
            [io::ErrorKind::NotFound, io::ErrorKind::ConnectionRefused, io::ErrorKind::PermissionDenied]
        {
            assert_eq!(pause(&unreachable(nobody), 1), None, "{nobody}");
        }
    }
}

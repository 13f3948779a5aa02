//! The caller of the request that is being answered, for limits that lie deep below its service.

use super::Key;

tokio::task_local! {
    static CURRENT: Key;
}

/// Whom a limit is to count.
pub(crate) fn current() -> Key {
    CURRENT.try_with(Clone::clone).unwrap_or_else(|_| Key::Uid(rustix::process::geteuid().as_raw()))
}

/// Answers a request as this caller's.
pub(crate) async fn scope<F: Future>(caller: Key, answer: F) -> F::Output {
    CURRENT.scope(caller, answer).await
}

//! CPUs kept for owners: what is held, what conflicts, what ends when.
//!
//! A pure state machine. [`Book`] is all that is held at one moment; each of its operations is given the time, which is
//! that of a clock that nobody sets ([`Moment`]). Whoever keeps the book writes it down before it answers.

mod book;
mod end;
mod kept;
mod part;
mod running;
mod time;

pub use book::{Book, Broken, Error, MAX_HOLDS, New, Released};
pub use end::{Gone, KEPT_ENDED, MAX_ENDED, running_on};
pub use kept::{End, Ended, Expiry, Hold, Id, Mode, Owner, Process, Uid};
pub use part::Part;
pub use running::Running;
pub use time::Moment;

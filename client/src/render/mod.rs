//! Answers for people.
//!
//! One file per answer, and one for each part that several answers share. All of it is plain text made from the
//! contract's messages: nothing here asks, and nothing writes.

mod advice;
mod advise;
mod compare;
mod distances;
mod explain;
mod hardware;
mod hold;
mod info;
mod kernel;
mod lists;
mod load;
mod map;
mod outcome;
mod places;
mod predict;
mod profiles;
mod proof;
mod question;
#[cfg(test)]
mod samples;
mod spread;
mod top;
mod topology;
mod trace;
mod verify;
mod wakes;
mod watch;
mod why;

pub(crate) use advise::advise;
pub(crate) use explain::explain;
pub(crate) use hold::{held_by_advice, hold, holds, released};
pub(crate) use info::info;
pub(crate) use lists::lists;
pub(crate) use load::load;
pub(crate) use map::{Host, Scene, svg, terminal};
pub(crate) use predict::predict;
pub(crate) use profiles::profiles;
pub(crate) use question::Question;
pub(crate) use top::Top;
pub(crate) use topology::topology;
pub(crate) use verify::verify;
pub(crate) use watch::{Seen, generation, sample};

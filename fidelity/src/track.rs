//! Where a case's tasks are as time goes on: load balancing moves some while others are still being forked.

use crate::record::{Case, Move};
use berth_model::cpuset::Cpu;

/// The tasks of a case so far.
#[derive(Debug)]
pub struct Track<'a> {
    moves: &'a [Move],
    /// Where each task is by now.
    pub tasks: Vec<Cpu>,
}

impl<'a> Track<'a> {
    /// Before the first task.
    pub fn new(case: &'a Case) -> Self {
        Self { moves: &case.moves, tasks: Vec::with_capacity(case.n as usize) }
    }

    /// The next move of a task before a moment, in microseconds since the first fork; it is taken into account.
    pub fn next_move_before(&mut self, at: u64) -> Option<Move> {
        while let Some((&next, rest)) = self.moves.split_first().filter(|(next, _)| next.at < at) {
            self.moves = rest;
            let task = next.task.and_then(|task| self.tasks.get_mut(task));
            if let Some(on) = task.filter(|on| **on == next.from) {
                *on = next.to;
                return Some(next);
            }
        }
        None
    }
}

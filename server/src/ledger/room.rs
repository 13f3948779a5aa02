//! How much the store keeps, of one user and of all.
//!
//! A file reaches about four times of this, since redb rounds up and writes pages anew: it can always be read whole.

use crate::convert::Failure;
use berth_model::hold::{Book, Id, Part, Uid};
use std::collections::BTreeMap;

/// The most bytes that are kept for one user.
const OF_ONE: usize = 24 << 20;
/// The most bytes that are kept.
const OF_ALL: usize = 96 << 20;
/// About what the count of one CPU takes where a hold is written.
const COUNT: usize = 16;

/// The bytes of the answers that are kept.
#[derive(Debug, Default)]
pub(super) struct Room(BTreeMap<Id, usize>);

impl Room {
    pub(super) fn of(answers: &[(Id, Vec<u8>)]) -> Self {
        let mut room = Self::default();
        room.written(answers, &[]);
        room
    }

    /// Takes note of what was written.
    pub(super) fn written(&mut self, answers: &[(Id, Vec<u8>)], forgotten: &[Id]) {
        self.0.extend(answers.iter().map(|(id, answer)| (*id, answer.len())));
        for id in forgotten {
            self.0.remove(id);
        }
    }

    /// Goes on only if there is room for a hold of this user with these masks, and an answer of so many bytes.
    ///
    /// # Errors
    ///
    /// If there is none.
    pub(super) fn check(
        &self,
        book: &Book,
        new: &[(Id, Vec<u8>)],
        uid: Uid,
        (parts, answer): (&[Part], usize),
    ) -> Result<(), Failure> {
        let new: BTreeMap<Id, usize> = new.iter().map(|(id, answer)| (*id, answer.len())).collect();
        let answered = |id| self.0.get(&id).or_else(|| new.get(&id)).copied().unwrap_or(0);
        let more = bytes_of(parts) + answer;
        let (mut own, mut all) = (more, more);
        for hold in book.changed_since(0) {
            let bytes = bytes_of(&hold.parts) + answered(hold.id);
            all += bytes;
            own += if hold.uid == uid { bytes } else { 0 };
        }
        let over = [(own, OF_ONE, format!("uid {}", uid.0)), (all, OF_ALL, "all users".to_owned())];
        match over.into_iter().find(|(asked, most, _)| asked > most) {
            Some((asked, most, caller)) => Err(Failure::Quota { of: "kept_bytes", asked, most, caller }),
            None => Ok(()),
        }
    }
}

/// About what the masks of a hold take.
fn bytes_of(parts: &[Part]) -> usize {
    parts.iter().map(|part| COUNT * (1 + part.counts().len())).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use berth_model::{
        cpuset::CpuSet,
        hold::{Mode, Moment, New, Owner},
    };

    fn make(book: &mut Book, uid: Uid) -> Id {
        let (name, claim, labels, request_id) = Default::default();
        let parts = vec![Part::spread(&CpuSet::parse("0-7").unwrap(), 8)];
        let (owner, mode, ttl) = (Owner::Cgroup("/a".to_owned()), Mode::Shared, None);
        let new = New {
            uid,
            name,
            owner,
            parts,
            mode,
            claim,
            foreign: false,
            keep: false,
            ttl,
            before: 0,
            request_id,
            labels,
        };
        book.make(new, Moment::default()).unwrap().id
    }

    #[test]
    fn one_user_leaves_room_for_others_and_all_together_have_an_end() {
        let (mut book, mut room) = (Book::default(), Room::default());
        let fill = |book: &mut Book, room: &mut Room, uid| {
            let mut filled = 0;
            while room.check(book, &[], uid, (&[], 1 << 20)).is_ok() {
                room.written(&[(make(book, uid), vec![0; 1 << 20])], &[]);
                filled += 1;
            }
            filled
        };
        assert_eq!(fill(&mut book, &mut room, Uid(1)), 23);
        let more: Vec<usize> = (2..6).map(|uid| fill(&mut book, &mut room, Uid(uid))).collect();
        assert_eq!(more[..3], [23, 23, 23]);
        assert!(more[3] < 8, "{more:?}");
        // What waits to be written counts too, and what is forgotten no more.
        let ended = book.living().next().unwrap().id;
        book.release(ended, Moment::default()).unwrap();
        assert!(room.check(&book, &[], Uid(1), (&[], 1 << 20)).is_err(), "it is kept for a while");
        book.forget(Moment::since_boot(std::time::Duration::from_secs(3600)));
        room.written(&[], &[ended]);
        assert!(room.check(&book, &[], Uid(1), (&[], 1 << 20)).is_ok());
        let next = make(&mut book, Uid(1));
        assert!(room.check(&book, &[(next, vec![0; 1 << 20])], Uid(1), (&[], 1 << 20)).is_err());
    }
}

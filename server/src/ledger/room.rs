//! How much the store keeps, of one user and of all.
//!
//! A file reaches about four times of this, since redb rounds up and writes pages anew: it can always be read whole.

use crate::convert::Failure;
use berth_model::hold::{Book, Hold, Id, New, Owner, Part, Uid};
use std::collections::BTreeMap;

/// The most bytes that are kept for one user.
const OF_ONE: usize = 24 << 20;
/// The most bytes that are kept.
const OF_ALL: usize = 96 << 20;
/// About what the count of one CPU takes where a hold is written.
const COUNT: usize = 16;
/// The most that a byte of a text takes there.
const ESCAPED: usize = 6;

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

    /// Goes on only if there is room for a new hold, and an answer of so many bytes. `answers` wait to be written.
    ///
    /// # Errors
    ///
    /// If there is none.
    pub(super) fn check(
        &self,
        book: &Book,
        answers: &[(Id, Vec<u8>)],
        new: &New,
        answer: usize,
    ) -> Result<(), Failure> {
        let New { parts, owner, name, request_id, labels, .. } = new;
        let more = bytes_of(parts, owner, [name, request_id], labels) + answer;
        let of_answers = self.0.values().chain(waiting(answers).values()).sum::<usize>();
        let all = more + of_answers + book.changed_since(0).map(|hold| bytes_of_hold(hold)).sum::<usize>();
        // No user has more than all.
        let own = if all > OF_ONE { more + self.of_user(book, answers, new.uid) } else { all };
        let over = [(own, OF_ONE, format!("uid {}", new.uid.0)), (all, OF_ALL, "all users".to_owned())];
        match over.into_iter().find(|(asked, most, _)| asked > most) {
            Some((asked, most, caller)) => Err(Failure::Quota { of: "kept_bytes", asked, most, caller }),
            None => Ok(()),
        }
    }

    /// The bytes that are kept for one user.
    fn of_user(&self, book: &Book, answers: &[(Id, Vec<u8>)], uid: Uid) -> usize {
        let waiting = waiting(answers);
        let answered = |id| self.0.get(&id).or_else(|| waiting.get(&id)).copied().unwrap_or(0);
        let own = book.changed_since(0).filter(|hold| hold.uid == uid);
        own.map(|hold| bytes_of_hold(hold) + answered(hold.id)).sum()
    }
}

/// The bytes of answers that wait to be written.
fn waiting(answers: &[(Id, Vec<u8>)]) -> BTreeMap<Id, usize> {
    answers.iter().map(|(id, answer)| (*id, answer.len())).collect()
}

/// About the most that a hold takes but for what was answered.
fn bytes_of_hold(hold: &Hold) -> usize {
    bytes_of(&hold.parts, &hold.owner, [&hold.name, &hold.request_id], &hold.labels)
}

/// About the most that the masks and texts of a hold take.
fn bytes_of(parts: &[Part], owner: &Owner, texts: [&String; 2], labels: &BTreeMap<String, String>) -> usize {
    let cgroup = if let Owner::Cgroup(path) = owner { path.len() } else { 0 };
    let labels: usize = labels.iter().map(|(key, value)| key.len() + value.len()).sum();
    let texts = cgroup + labels + texts.iter().map(|text| text.len()).sum::<usize>();
    ESCAPED * texts + parts.iter().map(|part| COUNT * (1 + part.counts().len())).sum::<usize>()
}

#[cfg(test)]
mod tests {
    use super::*;
    use berth_model::{
        cpuset::CpuSet,
        hold::{Mode, Moment},
    };

    fn new(uid: Uid) -> New {
        let (name, claim, labels, request_id) = Default::default();
        let parts = vec![Part::spread(&CpuSet::parse("0-7").unwrap(), 8)];
        let (owner, mode, ttl) = (Owner::Cgroup("/a".to_owned()), Mode::Shared, None);
        New {
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
        }
    }

    fn make(book: &mut Book, uid: Uid) -> Id {
        book.make(new(uid), Moment::default()).unwrap().id
    }

    /// However many holds a user may have, their labels have an end too.
    #[test]
    fn labels_take_room() {
        let (mut book, room) = (Book::default(), Room::default());
        let labels = (0..16).map(|key| (format!("{key:0>256}"), "\u{1}".repeat(256))).collect();
        let labelled = New { labels, ..new(Uid(1)) };
        for _ in 0..1000 {
            if room.check(&book, &[], &labelled, 0).is_ok() {
                book.make(labelled.clone(), Moment::default()).unwrap();
            }
        }
        let written: usize = book.living().map(|hold| super::super::store::write(hold).len()).sum();
        assert!(written <= OF_ONE, "{written}");
        assert!(room.check(&book, &[], &new(Uid(2)), 0).is_ok());
    }

    #[test]
    fn one_user_leaves_room_for_others_and_all_together_have_an_end() {
        let (mut book, mut room) = (Book::default(), Room::default());
        let fill = |book: &mut Book, room: &mut Room, uid| {
            let mut filled = 0;
            while room.check(book, &[], &new(uid), 1 << 20).is_ok() {
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
        assert!(room.check(&book, &[], &new(Uid(1)), 1 << 20).is_err(), "it is kept for a while");
        book.forget(Moment::since_boot(std::time::Duration::from_secs(3600)));
        room.written(&[], &[ended]);
        assert!(room.check(&book, &[], &new(Uid(1)), 1 << 20).is_ok());
        let next = make(&mut book, Uid(1));
        assert!(room.check(&book, &[(next, vec![0; 1 << 20])], &new(Uid(1)), 1 << 20).is_err());
    }
}

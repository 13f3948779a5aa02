//! A table of which few entries are ever used: what a burst touches of a host, however large that is.

/// Values by index; indices without one cost four bytes each.
#[derive(Debug)]
pub(crate) struct Sparse<T> {
    /// One more than the place of each index's value; 0 if it has none.
    slots: Vec<u32>,
    values: Vec<T>,
}

impl<T> Sparse<T> {
    /// A table for indices below `limit`, with room for so many values before it grows.
    pub(crate) fn new(limit: usize, room: usize) -> Self {
        Self { slots: vec![0; limit], values: Vec::with_capacity(room.min(limit)) }
    }

    /// The value at an index.
    pub(crate) fn get(&self, index: usize) -> Option<&T> {
        let place = self.slots.get(index)?.checked_sub(1)?;
        self.values.get(place as usize)
    }

    /// The value at an index, to be changed.
    pub(crate) fn get_mut(&mut self, index: usize) -> Option<&mut T> {
        let place = self.slots.get(index)?.checked_sub(1)?;
        self.values.get_mut(place as usize)
    }

    /// Gives an index a value; nothing happens beyond the table's limit.
    pub(crate) fn set(&mut self, index: usize, value: T) {
        if let Some(known) = self.get_mut(index) {
            *known = value;
        } else if let Some(slot) = self.slots.get_mut(index) {
            self.values.push(value);
            *slot = u32::try_from(self.values.len()).unwrap_or(u32::MAX);
        }
    }

    /// All values, to be changed.
    pub(crate) fn values_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.values.iter_mut()
    }
}

impl<T: Clone> Clone for Sparse<T> {
    /// With the same room: a copy that is about to grow does not move.
    fn clone(&self) -> Self {
        let mut values = Vec::with_capacity(self.values.capacity());
        values.extend_from_slice(&self.values);
        Self { slots: self.slots.clone(), values }
    }
}

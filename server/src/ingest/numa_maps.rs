//! On which NUMA nodes a process has its memory.

use super::process::unless_gone;
use std::{
    collections::BTreeMap,
    fs::File,
    io::{self, BufRead, BufReader, Read},
    path::Path,
    time::{Duration, Instant},
};

/// The most that is read of one process: some 100,000 mappings.
const MOST_BYTES: u64 = 16 << 20;
/// The kernel walks the page tables for every line: no longer than this.
const MOST_TIME: Duration = Duration::from_millis(500);

/// Bytes on each node.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Memory {
    /// By the number of the node.
    pub(crate) bytes: BTreeMap<u32, u64>,
    /// There was more than is read at a time.
    pub(crate) cut: bool,
}

/// The memory of a process. Nothing if it has ended.
///
/// # Errors
///
/// If it cannot be read: it is another user's, or the kernel knows of no nodes.
pub(crate) fn of_process(root: &Path, pid: u32) -> io::Result<Option<Memory>> {
    let file = unless_gone(File::open(root.join(format!("proc/{pid}/numa_maps"))))?;
    file.map(|file| read(BufReader::new(file.take(MOST_BYTES)), MOST_TIME)).transpose()
}

fn read(mut lines: impl BufRead, most: Duration) -> io::Result<Memory> {
    let (mut memory, mut line, mut bytes, begun) = (Memory::default(), Vec::new(), 0, Instant::now());
    loop {
        line.clear();
        let read = lines.read_until(b'\n', &mut line)?;
        bytes += read as u64;
        if read == 0 {
            memory.cut |= bytes >= MOST_BYTES;
            return Ok(memory);
        }
        memory.add(&line);
        if begun.elapsed() > most {
            memory.cut = true;
            return Ok(memory);
        }
    }
}

impl Memory {
    /// Adds a mapping: `7f… default file=/a anon=3 N0=2 N1=1 kernelpagesize_kB=4`.
    fn add(&mut self, line: &[u8]) {
        let line = String::from_utf8_lossy(line);
        let words = || line.split_ascii_whitespace().filter_map(|word| word.split_once('='));
        let size = words().find(|(key, _)| *key == "kernelpagesize_kB");
        let size: u64 = size.and_then(|(_, kib)| kib.parse().ok()).unwrap_or(4);
        for (key, pages) in words() {
            let node = key.strip_prefix('N').and_then(|node| node.parse().ok());
            if let (Some(node), Ok(pages)) = (node, pages.parse::<u64>()) {
                let bytes = self.bytes.entry(node).or_default();
                *bytes = bytes.saturating_add(pages.saturating_mul(size << 10));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAPS: &str = "\
        5600 default file=/usr/bin/a N=1 mapped=2 N0=2 kernelpagesize_kB=4\n\
        7f00 bind:1 anon=3 dirty=3 N0=1 N1=2 kernelpagesize_kB=2048\n\
        7fff default stack anon=1\n\
        nonsense N1=x N2= =\n";

    #[test]
    fn pages_of_any_size_by_node() {
        let memory = read(MAPS.as_bytes(), MOST_TIME).unwrap();
        let expected = [(0, (2 << 12) + (1 << 21)), (1, 2 << 21)];
        assert_eq!((memory.bytes, memory.cut), (expected.into(), false));
        assert!(read(MAPS.as_bytes(), Duration::ZERO).unwrap().cut);
    }

    #[test]
    fn this_process() {
        match of_process(Path::new("/"), std::process::id()) {
            Ok(Some(memory)) => assert!(memory.bytes.values().sum::<u64>() > 1 << 20, "{memory:?}"),
            Ok(None) => panic!("it has not ended"),
            Err(error) => println!("skipped: {error}"),
        }
    }
}

//! Conversations that a real runtime had, as they were recorded: `testdata/nri`.

use std::{fs, io::Read as _, path::Path};

use serde_json::Value;

use super::plugin::recording;

/// How many there are.
const FILES: usize = 27;

/// One of the recorded files.
#[derive(Debug)]
pub(super) struct Recording {
    pub(super) name: String,
    json: Value,
}

/// Bytes of one side of a connection, as they came.
#[derive(Debug)]
pub(super) struct Chunk {
    pub(super) of_runtime: bool,
    pub(super) bytes: Vec<u8>,
}

/// A message whose bytes were recorded whole.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Recorded {
    pub(super) of_runtime: bool,
    pub(super) connection: u32,
    pub(super) stream: u32,
    pub(super) kind: u8,
    pub(super) body: Vec<u8>,
}

impl Recording {
    /// Every file.
    pub(super) fn all() -> Vec<Self> {
        let folder = recording("");
        let mut names: Vec<String> = fs::read_dir(folder)
            .expect("the recordings are there")
            .map(|entry| entry.expect("it can be read").file_name().into_string().expect("UTF-8"))
            .filter(|name| name.ends_with(".json.gz"))
            .collect();
        names.sort();
        assert_eq!(names.len(), FILES, "{names:?}");
        names.iter().map(|name| Self::named(name)).collect()
    }

    /// One of them.
    pub(super) fn named(name: &str) -> Self {
        let mut text = String::new();
        let file = fs::File::open(recording(name)).expect("the recording is there");
        flate2::read::GzDecoder::new(file).read_to_string(&mut text).expect("it is gzip");
        let name = Path::new(name).file_name().and_then(|name| name.to_str()).expect("UTF-8").to_owned();
        Self { name, json: serde_json::from_str(&text).expect("it is JSON") }
    }

    fn list(&self, key: &str) -> &[Value] {
        self.json[key].as_array().map_or(&[], Vec::as_slice)
    }

    /// The connections in it.
    pub(super) fn connections(&self) -> Vec<u64> {
        let opened = self.list("chunks").iter().filter(|chunk| chunk["event"] == "open");
        opened.map(|chunk| chunk["conn"].as_u64().expect("a number")).collect()
    }

    /// What came on a connection, up to the first chunk that was not kept whole.
    pub(super) fn chunks(&self, connection: u64) -> Vec<Chunk> {
        let of_it = self
            .list("chunks")
            .iter()
            .filter(|chunk| chunk["conn"] == connection && chunk["dir"].is_string());
        let whole = of_it.take_while(|chunk| chunk.get("bytes").is_none());
        let chunk = |chunk: &Value| Chunk {
            of_runtime: chunk["dir"] == "runtime->plugin",
            bytes: unhex(chunk["hex"].as_str().expect("text")),
        };
        whole.map(chunk).collect()
    }

    /// What was understood of it when it was recorded, in the order in which messages were complete.
    pub(super) fn understood(&self, connection: u64) -> Vec<&Value> {
        self.list("messages").iter().filter(|message| message["conn"] == connection).collect()
    }
}

/// The messages in these chunks, in the order in which they were complete.
pub(super) fn messages(chunks: &[Chunk]) -> Vec<Recorded> {
    let mut messages = Vec::new();
    let mut sides = [Side::default(), Side::default()];
    for chunk in chunks {
        let side = &mut sides[usize::from(chunk.of_runtime)];
        side.bytes.extend(&chunk.bytes);
        side.take(chunk.of_runtime, &mut messages);
    }
    messages
}

/// What one side has said and is not taken yet.
#[derive(Debug, Default)]
struct Side {
    bytes: Vec<u8>,
    unframed: [Vec<u8>; 3],
}

impl Side {
    fn take(&mut self, of_runtime: bool, messages: &mut Vec<Recorded>) {
        let number = |bytes: &[u8]| u32::from_be_bytes(bytes.try_into().expect("four bytes"));
        let size = |bytes: &[u8]| usize::try_from(number(bytes)).expect("it fits");
        while self.bytes.len() >= 8 && self.bytes.len() >= 8 + size(&self.bytes[4..8]) {
            let (connection, length) = (number(&self.bytes[..4]), size(&self.bytes[4..8]));
            let unframed = &mut self.unframed[usize::try_from(connection).expect("it is small")];
            unframed.extend(self.bytes.drain(..8 + length).skip(8));
            while unframed.len() >= 10 && unframed.len() >= 10 + size(&unframed[..4]) {
                let length = 10 + size(&unframed[..4]);
                let message: Vec<u8> = unframed.drain(..length).collect();
                messages.push(Recorded {
                    of_runtime,
                    connection,
                    stream: number(&message[4..8]),
                    kind: message[8],
                    body: message[10..].to_vec(),
                });
            }
        }
    }
}

fn unhex(text: &str) -> Vec<u8> {
    let digits = text.as_bytes().chunks_exact(2).map(|pair| std::str::from_utf8(pair).expect("ASCII"));
    digits.map(|pair| u8::from_str_radix(pair, 16).expect("hex")).collect()
}

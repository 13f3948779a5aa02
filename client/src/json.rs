//! Answers as proto3's canonical JSON.

use std::sync::LazyLock;

use prost::Message;
use prost_reflect::{DescriptorPool, DynamicMessage, SerializeOptions};

use crate::Error;

/// The contract's messages by name.
static POOL: LazyLock<Result<DescriptorPool, String>> = LazyLock::new(|| {
    DescriptorPool::decode(berth_proto::FILE_DESCRIPTOR_SET).map_err(|error| error.to_string())
});

/// Numbers that are 0, texts and lists that are empty are written too, so that a program finds each field where it looks for
/// it; only what has no value at all is left out.
const OPTIONS: SerializeOptions = SerializeOptions::new().skip_default_fields(false);

/// The message as one document, with a newline at its end. `name` is the message's own, such as `PredictResponse`.
///
/// # Errors
///
/// The contract has no such message; a fault of this program.
pub(crate) fn document(name: &str, message: &impl Message) -> Result<String, Error> {
    let mut serializer = serde_json::Serializer::pretty(Vec::new());
    dynamic(name, message)?.serialize_with_options(&mut serializer, &OPTIONS).map_err(failed)?;
    text(serializer.into_inner())
}

/// The message on one line, with a newline at its end.
///
/// # Errors
///
/// As [`document`].
pub(crate) fn line(name: &str, message: &impl Message) -> Result<String, Error> {
    let mut serializer = serde_json::Serializer::new(Vec::new());
    dynamic(name, message)?.serialize_with_options(&mut serializer, &OPTIONS).map_err(failed)?;
    text(serializer.into_inner())
}

fn dynamic(name: &str, message: &impl Message) -> Result<DynamicMessage, Error> {
    let descriptor = POOL
        .as_ref()
        .map_err(failed)?
        .get_message_by_name(&format!("berth.v1.{name}"))
        .ok_or_else(|| failed(format!("the contract has no message {name}")))?;
    DynamicMessage::decode(descriptor, message.encode_to_vec().as_slice()).map_err(failed)
}

fn text(bytes: Vec<u8>) -> Result<String, Error> {
    String::from_utf8(bytes).map(|text| text + "\n").map_err(failed)
}

fn failed(error: impl ToString) -> Error {
    Error::Json(error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use berth_proto::v1::{CpuCount, CpuLoad, PredictResponse, Prediction, Snapshot, verdict};

    #[test]
    fn names_and_numbers_are_canonical() {
        let response = PredictResponse {
            verdict: verdict::Value::PileUp.into(),
            prediction: Some(Prediction { most_on_one_cpu: 10, ..Prediction::default() }),
            snapshot: Some(Snapshot { load_generation: 3, ..Snapshot::default() }),
            ..PredictResponse::default()
        };
        let text = document("PredictResponse", &response).unwrap();
        for expected in [
            "\n  \"verdict\": \"PILE_UP\",\n",
            "\n    \"mostOnOneCpu\": 10,\n",
            "\n    \"loadGeneration\": \"3\",\n",
        ] {
            assert!(text.contains(expected), "{expected}: {text}");
        }
    }

    #[test]
    fn zeros_are_written_and_absence_is_not() {
        let load = CpuLoad { cpus: "0".to_owned(), runnable: Some(0), ..CpuLoad::default() };
        assert_eq!(
            line("CpuLoad", &load).unwrap(),
            "{\"cpus\":\"0\",\"runnable\":0,\"source\":\"UNKNOWN\"}\n"
        );
        let count = CpuCount { tasks: 1, ..CpuCount::default() };
        assert_eq!(line("CpuCount", &count).unwrap(), "{\"cpu\":0,\"tasks\":1,\"before\":0}\n");
    }

    #[test]
    fn a_message_that_is_not_in_the_contract_is_a_fault() {
        assert!(document("Nothing", &PredictResponse::default()).is_err());
    }
}

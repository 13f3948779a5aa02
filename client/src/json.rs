//! Answers as proto3's canonical JSON.

use prost::Message;
use prost_reflect::{DescriptorPool, DynamicMessage};

use crate::Error;

/// The message as one document, with a newline at its end. `name` is the message's own, such as `PredictResponse`.
///
/// # Errors
///
/// The contract has no such message; a fault of this program.
pub(crate) fn document(name: &str, message: &impl Message) -> Result<String, Error> {
    let pool = DescriptorPool::decode(berth_proto::FILE_DESCRIPTOR_SET).map_err(failed)?;
    let descriptor = pool
        .get_message_by_name(&format!("berth.v1.{name}"))
        .ok_or_else(|| failed(format!("the contract has no message {name}")))?;
    let dynamic = DynamicMessage::decode(descriptor, message.encode_to_vec().as_slice()).map_err(failed)?;
    let mut text = serde_json::to_string_pretty(&dynamic).map_err(failed)?;
    text.push('\n');
    Ok(text)
}

fn failed(error: impl ToString) -> Error {
    Error::Json(error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use berth_proto::v1::{PredictResponse, Prediction, Snapshot, verdict};

    #[test]
    fn names_and_numbers_are_canonical() {
        let response = PredictResponse {
            verdict: verdict::Value::PileUp.into(),
            prediction: Some(Prediction { most_on_one_cpu: 10, ..Prediction::default() }),
            snapshot: Some(Snapshot { load_generation: 3, ..Snapshot::default() }),
            ..PredictResponse::default()
        };
        let text = document("PredictResponse", &response).unwrap();
        let expected = r#"{
  "verdict": "PILE_UP",
  "prediction": {
    "mostOnOneCpu": 10
  },
  "snapshot": {
    "loadGeneration": "3"
  }
}
"#;
        assert_eq!(text, expected);
    }

    #[test]
    fn a_message_that_is_not_in_the_contract_is_a_fault() {
        assert!(document("Nothing", &PredictResponse::default()).is_err());
    }
}

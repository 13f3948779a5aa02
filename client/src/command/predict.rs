//! `berth predict`.

use berth_proto::v1::{PredictRequest, launch, placement_service_client::PlacementServiceClient, verdict};

use super::{Answer, Asker, several_kernels, view};
use crate::{
    Error, Exit,
    cli::Predict,
    connection::MAX_ANSWER,
    render::{self, Question},
};

pub(super) async fn answer(args: &Predict, asker: &Asker) -> Result<Answer, Error> {
    let tasks = &args.launch;
    let request = PredictRequest {
        tasks: tasks.tasks,
        allowed: tasks.cpus.clone().unwrap_or_default(),
        origin: tasks.from,
        origin_is_task: tasks.origin_is_task,
        host: args.host.read(Some(&args.load))?,
        kernel: args.kernel.message(),
        launch: launch::Value::from(tasks.launch).into(),
        scenario: args.scenario.message(),
        view: view(args.explain),
        trace: args.trace,
        trace_tasks: args.trace_tasks.clone().unwrap_or_default(),
        ..PredictRequest::default()
    };
    let response = asker
        .connection
        .ask(request, async |channel, request| {
            let mut client = PlacementServiceClient::new(channel).max_decoding_message_size(MAX_ANSWER);
            client.predict(request).await
        })
        .await?;
    let question = Question::new(tasks, &args.kernel, &args.host, &args.load).under(&args.scenario);
    let document = asker.document("PredictResponse", &response, |response, page| {
        render::predict(&question, response, page)
    })?;
    let exit = match response.verdict() {
        verdict::Value::PileUp if args.check => Exit::PileUp,
        verdict::Value::Unknown if args.check => Exit::NotKnown,
        _ => Exit::Answered,
    };
    let mut warnings = response.warnings;
    warnings.extend(several_kernels(response.profile.as_ref(), &args.kernel));
    Ok(Answer { exit, ..Answer::of_server(document, warnings) })
}

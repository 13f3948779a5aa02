//! `berth advise`.

use berth_proto::v1::{
    AdviseRequest, form, launch, placement_service_client::PlacementServiceClient, policy, proof, smt,
};

use super::{Answer, Asker, several_kernels, view};
use crate::{
    Error, Exit,
    cli::{Advise, Form},
    connection::MAX_ANSWER,
    render::{self, Question},
};

pub(super) async fn answer(args: &Advise, asker: &Asker) -> Result<Answer, Error> {
    let response = asker
        .connection
        .ask(request(args)?, async |channel, request| {
            let mut client = PlacementServiceClient::new(channel).max_decoding_message_size(MAX_ANSWER);
            client.advise(request).await
        })
        .await?;
    let question = Question::new(&args.launch, &args.kernel, &args.host, &args.load)
        .under(&args.scenario)
        .with_policy(args.policy);
    let document = asker.document_or_list(
        "AdviseResponse",
        &response,
        |response, page| render::advise(&question, response, page),
        render::lists,
    )?;
    let proof = response.advice.as_ref().and_then(|advice| advice.proof.as_ref());
    let exit = match proof.map_or(proof::Result::NotProven, |proof| proof.result()) {
        _ if !args.check => Exit::Answered,
        proof::Result::Safe => Exit::Answered,
        proof::Result::Unsafe => Exit::PileUp,
        proof::Result::Cut | proof::Result::NotProven => Exit::NotKnown,
    };
    let mut warnings = response.warnings;
    warnings.extend(several_kernels(response.profile.as_ref(), &args.kernel));
    Ok(Answer { exit, ..Answer::of_server(document, warnings) })
}

fn request(args: &Advise) -> Result<AdviseRequest, Error> {
    let tasks = &args.launch;
    Ok(AdviseRequest {
        tasks: tasks.tasks,
        allowed: tasks.cpus.clone().unwrap_or_default(),
        policy: policy::Value::from(args.policy).into(),
        origin: tasks.from,
        origin_is_task: tasks.origin_is_task,
        host: args.host.read(Some(&args.load))?,
        kernel: args.kernel.message(),
        smt: smt::Value::from(args.smt).into(),
        can_apply: args.form.iter().map(|&form| form::Value::from(form).into()).collect(),
        single_cpus: !args.form.is_empty() && args.form.iter().all(|form| *form == Form::PerTask),
        launch: launch::Value::from(tasks.launch).into(),
        scenario: args.scenario.message(),
        view: view(args.explain),
        trace: args.trace,
        ..AdviseRequest::default()
    })
}

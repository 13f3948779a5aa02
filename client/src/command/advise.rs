//! `berth advise`.

use berth_proto::v1::{
    AdviseRequest, AdviseResponse, Formatted, Near, Within, form, format, launch, level, near,
    placement_service_client::PlacementServiceClient, policy, proof, smt,
};

use super::{Answer, Asker, several_kernels, view};
use crate::{
    Error, Exit,
    cli::{Advise, Form, Output},
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
    let document = match args.format {
        Some(_) if asker.output == Output::Table => pasted(&response)?,
        _ => asker.document_or_list(
            "AdviseResponse",
            &response,
            |response, page| render::advise(&question, response, page),
            render::lists,
        )?,
    };
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

/// The texts to paste, one after the other; empty where it is best not to bind.
fn pasted(response: &AdviseResponse) -> Result<String, Error> {
    let unbound = response.advice.as_ref().is_some_and(|advice| advice.form() == form::Value::None);
    let text = |formatted: &Formatted| match (&formatted.text, &formatted.because) {
        (text, _) if !text.is_empty() => Ok(format!("{text}\n")),
        _ if unbound => Ok(String::new()),
        (_, because) => Err(Error::NoSuchWords(because.clone())),
    };
    response.formatted.iter().map(text).collect()
}

fn request(args: &Advise) -> Result<AdviseRequest, Error> {
    let tasks = &args.launch;
    let (forms, single) = match args.format.filter(|_| args.form.is_empty()) {
        Some(format) => format.applies(),
        None => (&args.form[..], args.form == [Form::PerTask]),
    };
    let near = args.near_cpu.map(near::Place::Cpu).or_else(|| args.near_node.map(near::Place::Node));
    Ok(AdviseRequest {
        tasks: tasks.tasks,
        allowed: tasks.cpus.clone().unwrap_or_default(),
        policy: policy::Value::from(args.policy).into(),
        origin: tasks.from,
        origin_is_task: tasks.origin_is_task,
        host: args.host.read(Some(&args.load))?,
        kernel: args.kernel.message(),
        smt: smt::Value::from(args.smt).into(),
        cpus_per_task: args.cpus_per_task,
        within: args
            .within
            .map(|level| Within { level: level::Value::from(level).into(), required: args.within_required }),
        near: near.map(|place| Near { place: Some(place) }),
        exclusive: args.exclusive.map_or(level::Value::Unspecified, level::Value::from).into(),
        can_apply: forms.iter().map(|&form| form::Value::from(form).into()).collect(),
        single_cpus: single,
        formats: args.format.map(|format| format::Value::from(format).into()).into_iter().collect(),
        slurm_cpus: args.slurm_cpus.clone(),
        launch: launch::Value::from(tasks.launch).into(),
        scenario: args.scenario.message(),
        view: view(args.explain),
        trace: args.trace,
        ..AdviseRequest::default()
    })
}

//! `berth advise`.

use berth_proto::v1::{
    AdviseRequest, form, launch, placement_service_client::PlacementServiceClient, policy, smt,
};

use super::{Answer, Asker, view};
use crate::{
    Error,
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
    let question = Question::new(&args.launch, &args.kernel, &args.host, &args.load);
    let document = asker
        .document("AdviseResponse", &response, |response, page| render::advise(&question, response, page))?;
    Ok(Answer::of_server(document, response.warnings))
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
        view: view(args.explain),
        ..AdviseRequest::default()
    })
}

//! `berth map`: a host as a picture, with what runs there, or with where new tasks go.

use std::{env, fs, path::Path};

use berth_model::CpuSet;
use berth_proto::v1::{
    AdviseRequest, AdviseResponse, GetLoadRequest, GetTopologyRequest, Topology, form,
    load_service_client::LoadServiceClient, placement_service_client::PlacementServiceClient, policy,
    topology_service_client::TopologyServiceClient, view,
};

use super::{Answer, Asker};
use crate::{
    Error,
    cli::{Map, Output},
    connection::MAX_ANSWER,
    render::{self, Host, Scene},
    text::numbers,
};

pub(super) async fn answer(args: &Map, asker: &Asker) -> Result<Answer, Error> {
    if asker.output != Output::Table {
        return Err(Error::NoPicture);
    }
    let request = GetTopologyRequest { host: args.host.read(None)?, view: view::Value::Full.into() };
    let response = asker
        .connection
        .ask(request, async |channel, request| {
            let mut client = TopologyServiceClient::new(channel).max_decoding_message_size(MAX_ANSWER);
            client.get_topology(request).await
        })
        .await?;
    let topology = response.topology.unwrap_or_default();
    let (scenes, warnings) = match args.tasks {
        Some(tasks) => outcomes(args, tasks, asker).await?,
        None => (vec![now(args, &topology, asker).await?], Vec::new()),
    };
    let host = Host::of(&topology);
    let document = match &args.svg {
        None => render::terminal(&host, &scenes, args.ascii || !is_utf8(), asker.page),
        Some(file) => {
            let picture = render::svg(&host, &scenes);
            if file.as_os_str() == "-" { picture } else { written(file, &picture)? }
        }
    };
    Ok(Answer::of_server(document, warnings))
}

/// What runs on the host now.
async fn now(args: &Map, topology: &Topology, asker: &Asker) -> Result<Scene, Error> {
    let online = CpuSet::parse(&topology.online).unwrap_or_default();
    let name = if topology.model.is_empty() { args.host.label() } else { topology.model.clone() };
    let mut scene = Scene {
        title: if name.is_empty() { "this host".to_owned() } else { name },
        said: format!("{} CPUs", online.len()),
        allowed: online,
        ..Scene::default()
    };
    if args.host.read(None)?.is_some() {
        return Ok(scene);
    }
    let request = GetLoadRequest { cpus: String::new(), view: view::Value::Full.into() };
    let response = asker
        .connection
        .ask(request, async |channel, request| {
            let mut client = LoadServiceClient::new(channel).max_decoding_message_size(MAX_ANSWER);
            client.get_load(request).await
        })
        .await?;
    let load = response.load.unwrap_or_default();
    let (mut tasks, mut crowded) = (0, 0);
    for entry in &load.cpus {
        for cpu in &CpuSet::parse(&entry.cpus).unwrap_or_default() {
            let runnable = entry.runnable.unwrap_or(0);
            (tasks, crowded) = (tasks + runnable, crowded + u32::from(runnable > 1));
            if runnable > 0 {
                scene.tasks.insert(cpu, runnable);
            }
            scene.busy.extend(entry.utilisation.map(|busy| (cpu, busy)));
        }
    }
    scene.said = match (load.known, crowded) {
        (false, _) => format!("{}; what runs is not known yet", scene.said),
        (true, 0) => format!("{}, {tasks} runnable tasks", scene.said),
        (true, _) => format!("{}, {tasks} runnable tasks, several on {crowded} CPUs", scene.said),
    };
    Ok(scene)
}

/// What the kernel does with new tasks, and what Berth advises.
async fn outcomes(
    args: &Map,
    tasks: u32,
    asker: &Asker,
) -> Result<(Vec<Scene>, Vec<berth_proto::v1::Warning>), Error> {
    let request = AdviseRequest {
        tasks,
        allowed: args.cpus.clone().unwrap_or_default(),
        origin: args.from,
        policy: policy::Value::from(args.policy).into(),
        host: args.host.read(Some(&args.load))?,
        kernel: args.kernel.message(),
        view: view::Value::Full.into(),
        ..AdviseRequest::default()
    };
    let response = asker
        .connection
        .ask(request, async |channel, request| {
            let mut client = PlacementServiceClient::new(channel).max_decoding_message_size(MAX_ANSWER);
            client.advise(request).await
        })
        .await?;
    let allowed = CpuSet::parse(&response.allowed).unwrap_or_default();
    let outcome = |title: String, prediction: Option<&berth_proto::v1::Prediction>| {
        let prediction = prediction.cloned().unwrap_or_default();
        let gets = prediction.cpu_use.map_or(0.0, |cpu_use| cpu_use.expected);
        let said = format!(
            "{} on the fullest CPU, {} allowed CPUs idle: {} of the CPU time",
            numbers::count(prediction.most_on_one_cpu, "task"),
            prediction.idle_allowed_count,
            numbers::percent(gets)
        );
        Scene::counted(title, said, allowed.clone(), &prediction.cpus)
    };
    let profile = response.profile.as_ref().map(|profile| profile.release.clone()).unwrap_or_default();
    let kernel = args.kernel.kernel.clone().unwrap_or(profile);
    let kernel = if kernel.is_empty() { "this kernel".to_owned() } else { format!("Linux {kernel}") };
    let asked = match &args.cpus {
        Some(cpus) => format!("{} under taskset -c {cpus}", numbers::count(tasks, "task")),
        None => numbers::count(tasks, "task"),
    };
    let scenes = vec![
        outcome(format!("{asked}: {kernel}"), response.without.as_ref()),
        outcome(format!("Berth: {}", advice(&response)), response.with.as_ref()),
    ];
    Ok((scenes, response.warnings))
}

/// The advice in a few words.
fn advice(response: &AdviseResponse) -> String {
    let Some(advice) = &response.advice else { return String::new() };
    match advice.form() {
        form::Value::None => "no binding".to_owned(),
        form::Value::PerTask => "CPUs of its own for each task".to_owned(),
        _ => {
            let part = |part: &berth_proto::v1::Part| format!("{} on {}", part.tasks, part.cpus);
            let mut parts: Vec<String> = advice.parts.iter().take(4).map(part).collect();
            if advice.parts.len() > parts.len() {
                parts.push(format!("and {} more masks", advice.parts.len() - parts.len()));
            }
            parts.join(", ")
        }
    }
}

/// Writes a file in one step; says so.
fn written(file: &Path, picture: &str) -> Result<String, Error> {
    let failed = |source| Error::NotWritten { path: file.to_owned(), source };
    let mut new = file.as_os_str().to_owned();
    new.push(".new");
    fs::write(&new, picture).map_err(failed)?;
    if let Err(source) = fs::rename(&new, file) {
        // Nothing is left behind.
        let _ = fs::remove_file(&new);
        return Err(failed(source));
    }
    Ok(format!("{} is written.\n", file.display()))
}

/// Whether the locale says that other letters than those of ASCII can be shown.
pub(super) fn is_utf8() -> bool {
    let set = |name: &str| env::var(name).ok().filter(|value| !value.is_empty());
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().find_map(set).unwrap_or_default();
    let locale = locale.to_ascii_lowercase();
    locale.contains("utf-8") || locale.contains("utf8")
}

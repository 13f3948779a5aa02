//! CPUs that the kubelet gives out itself: berthd is told of them, so that it gives them to nobody else.

use std::{collections::BTreeMap, path::Path, time::Duration};

use berth_model::{Cpu, CpuSet};
use berth_proto::{kubelet::pod_resources::PodResources, v1::verdict};
use tokio::time::{Instant, sleep};
use tonic::Code;

use super::{
    counts::Counts,
    keeper::{Keeper, is, short},
    manager::Manager,
    say,
};
use crate::{Error, kube::kubelet::Kubelet};

/// How often the kubelet is asked.
const EVERY: Duration = Duration::from_secs(5);
/// How long it is waited for.
const LIMIT: Duration = Duration::from_secs(2);
/// How often holds are renewed, which last much longer.
const RENEW_EVERY: Duration = Duration::from_secs(60);

/// What a container has of the kubelet, as berthd knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Given {
    pub(super) cpus: CpuSet,
    pub(super) hold: String,
    /// Its CPUs would be filled badly.
    pub(super) piles_up: bool,
}

/// Tells berthd of the kubelet's CPUs for as long as it gives some out. Does not end.
pub(super) async fn follow(keeper: Keeper, socket: &Path, manager_state: &Path, counts: &Counts) {
    let kubelet = Kubelet::at(socket, LIMIT);
    let mut told = Told { keeper, known: None, renewed: Instant::now() };
    let mut said = String::new();
    loop {
        let manager = Manager::read(manager_state);
        counts.policy(manager);
        let wanted = match manager {
            Manager::Static => {
                kubelet.pods().await.map(|pods| given_out(&pods)).map_err(|unheard| unheard.to_string())
            }
            Manager::None => Ok(BTreeMap::new()),
            Manager::Unknown => Err(String::new()),
        };
        let done = match wanted {
            Ok(wanted) => told.tell(wanted).await.map_err(|error| error.to_string()),
            // What was given out stays so until more is known.
            Err(why) => told.renew().await.map_err(|error| error.to_string()).and(Err(why)),
        };
        let why = done.err().unwrap_or_default();
        if !why.is_empty() && why != said {
            counts.failures.inc();
            say!("warning: berthd is not told which CPUs the kubelet gives out: {why}");
        }
        said = why;
        told.count(counts);
        sleep(EVERY).await;
    }
}

/// The CPUs of each container that has some for itself, by namespace, pod and name.
fn given_out(pods: &[PodResources]) -> BTreeMap<String, CpuSet> {
    let containers = pods.iter().flat_map(|pod| pod.containers.iter().map(move |container| (pod, container)));
    let given = containers.map(|(pod, container)| {
        let cpus = container.cpu_ids.iter().filter_map(|&id| u32::try_from(id).ok().and_then(Cpu::try_new));
        (short(&format!("{}/{}/{}", pod.namespace, pod.name, container.name)), cpus.collect::<CpuSet>())
    });
    given.filter(|(_, cpus)| !cpus.is_empty()).collect()
}

/// What berthd was told.
#[derive(Debug)]
struct Told {
    keeper: Keeper,
    /// By namespace, pod and name. `None`: it is not known yet what an earlier life has told.
    known: Option<BTreeMap<String, Given>>,
    renewed: Instant,
}

impl Told {
    /// Tells what has changed.
    async fn tell(&mut self, wanted: BTreeMap<String, CpuSet>) -> Result<(), Error> {
        if self.known.is_none() {
            // Under a policy that gives out nothing there is mostly nobody to tell.
            self.known = Some(self.keeper.given().await?);
        }
        let known = self.known.get_or_insert_default();
        let gone: Vec<String> = known
            .iter()
            .filter(|(title, given)| wanted.get(*title) != Some(&given.cpus))
            .map(|(title, _)| title.clone())
            .collect();
        for title in gone {
            if let Some(given) = known.get(&title) {
                self.keeper.release(given.hold.clone()).await?;
                say!("{title}: the kubelet has taken CPUs {} back", given.cpus);
                known.remove(&title);
            }
        }
        for (title, cpus) in wanted {
            if known.contains_key(&title) {
                continue;
            }
            let tasks = u32::try_from(cpus.len()).unwrap_or(u32::MAX);
            let piles_up = self.keeper.predict(tasks, cpus.to_string()).await? == verdict::Value::PileUp;
            let hold = self.keeper.give(&title, &cpus).await?.id;
            say!("{title}: the kubelet has given out CPUs {cpus}");
            if piles_up {
                say!(
                    "warning: {title}: {tasks} tasks on CPUs {cpus}, which the kubelet has given out, pile up"
                );
            }
            known.insert(title, Given { cpus, hold, piles_up });
        }
        self.renew().await
    }

    /// Has all holds last longer.
    async fn renew(&mut self) -> Result<(), Error> {
        if self.renewed.elapsed() < RENEW_EVERY {
            return Ok(());
        }
        self.renewed = Instant::now();
        let Some(known) = &mut self.known else { return Ok(()) };
        for (title, given) in known.clone() {
            match self.keeper.renew(&given.hold).await {
                // It is told of anew.
                Err(error) if is(&error, Code::NotFound) => _ = known.remove(&title),
                renewed => renewed?,
            }
        }
        Ok(())
    }

    fn count(&self, counts: &Counts) {
        let known = || self.known.iter().flat_map(BTreeMap::values);
        let number = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
        counts.foreign_cpus.set(number(known().map(|given| given.cpus.len()).sum()));
        counts.foreign_pile_ups.set(number(known().filter(|given| given.piles_up).count()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use berth_proto::kubelet::pod_resources::ContainerResources;

    #[test]
    fn only_containers_with_cpus_of_their_own_count() {
        let container = |name: &str, cpu_ids: &[i64]| ContainerResources {
            name: name.to_owned(),
            cpu_ids: cpu_ids.to_vec(),
            ..ContainerResources::default()
        };
        let pod = PodResources {
            name: "web".to_owned(),
            namespace: "default".to_owned(),
            containers: vec![
                container("main", &[9, 1, 8]),
                container("side", &[]),
                container("odd", &[-1, 1 << 40]),
            ],
        };
        let given = given_out(&[pod]);
        let shown: Vec<String> = given.iter().map(|(title, cpus)| format!("{title} {cpus}")).collect();
        assert_eq!(shown, ["default/web/main 1,8-9"]);
    }
}

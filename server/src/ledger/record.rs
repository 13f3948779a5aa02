//! A hold as it is written down: one JSON object.

use berth_model::{
    cpuset::CpuSet,
    hold::{End, Ended, Expiry, Hold, Id, Mode, Moment, Owner, Part, Process, Uid},
};
use serde::{Deserialize, Serialize};
use std::{collections::BTreeMap, time::Duration};

/// A hold. Times are nanoseconds since boot.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Record {
    id: u64,
    uid: u32,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    name: String,
    owner: OwnerRecord,
    parts: Vec<PartRecord>,
    #[serde(default, skip_serializing_if = "is_false")]
    exclusive: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    claim: Option<u64>,
    #[serde(default, skip_serializing_if = "is_false")]
    foreign: bool,
    #[serde(default, skip_serializing_if = "is_false")]
    keep: bool,
    #[serde(default, skip_serializing_if = "is_false")]
    tasks_seen: bool,
    #[serde(default)]
    before: u32,
    created_at: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    expiry: Option<ExpiryRecord>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    request_id: String,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    labels: BTreeMap<String, String>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    missing: String,
    generation: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    ended: Option<EndRecord>,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
fn is_false(value: &bool) -> bool {
    !value
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum OwnerRecord {
    Lease,
    Process { pid: u32, start_time: u64 },
    Cgroup(String),
}

/// A mask: as many tasks as the key count on each CPU of its list.
#[derive(Debug, Serialize, Deserialize)]
struct PartRecord {
    tasks: u32,
    counts: BTreeMap<u32, String>,
}

#[derive(Debug, Serialize, Deserialize)]
struct ExpiryRecord {
    ttl: u64,
    at: u64,
}

#[derive(Debug, Serialize, Deserialize)]
struct EndRecord {
    why: WhyRecord,
    at: u64,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum WhyRecord {
    Released,
    ProcessDied,
    CgroupEmpty,
    Expired,
    TasksSeen,
    ClaimEnded,
    Rebooted,
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

fn moment(nanos: u64) -> Moment {
    Moment::since_boot(Duration::from_nanos(nanos))
}

impl From<&Hold> for Record {
    fn from(hold: &Hold) -> Self {
        Self {
            id: hold.id.number(),
            uid: hold.uid.0,
            name: hold.name.clone(),
            owner: match &hold.owner {
                Owner::Lease => OwnerRecord::Lease,
                Owner::Process(Process { pid, start_time }) => {
                    OwnerRecord::Process { pid: *pid, start_time: *start_time }
                }
                Owner::Cgroup(path) => OwnerRecord::Cgroup(path.clone()),
            },
            parts: hold.parts.iter().map(PartRecord::from).collect(),
            exclusive: hold.mode == Mode::Exclusive,
            claim: hold.claim.map(Id::number),
            foreign: hold.foreign,
            keep: hold.keep,
            tasks_seen: hold.tasks_seen,
            before: hold.before,
            created_at: nanos(hold.created_at.after_boot()),
            expiry: hold
                .expiry
                .map(|expiry| ExpiryRecord { ttl: nanos(expiry.ttl), at: nanos(expiry.at.after_boot()) }),
            request_id: hold.request_id.clone(),
            labels: hold.labels.clone(),
            missing: hold.missing.to_string(),
            generation: hold.generation,
            ended: hold.ended.map(|Ended { why, at }| EndRecord {
                why: match why {
                    End::Released => WhyRecord::Released,
                    End::ProcessDied => WhyRecord::ProcessDied,
                    End::CgroupEmpty => WhyRecord::CgroupEmpty,
                    End::Expired => WhyRecord::Expired,
                    End::TasksSeen => WhyRecord::TasksSeen,
                    End::ClaimEnded => WhyRecord::ClaimEnded,
                    End::Rebooted => WhyRecord::Rebooted,
                },
                at: nanos(at.after_boot()),
            }),
        }
    }
}

impl From<&Part> for PartRecord {
    fn from(part: &Part) -> Self {
        let mut counts: BTreeMap<u32, CpuSet> = BTreeMap::new();
        for &(cpu, tasks) in part.counts() {
            counts.entry(tasks).or_default().insert(cpu);
        }
        let counts = counts.into_iter().map(|(tasks, cpus)| (tasks, cpus.to_string())).collect();
        Self { tasks: part.tasks(), counts }
    }
}

impl TryFrom<Record> for Hold {
    type Error = String;

    fn try_from(record: Record) -> Result<Self, String> {
        let parts: Result<Vec<Part>, String> = record.parts.into_iter().map(Part::try_from).collect();
        Ok(Self {
            id: Id::new(record.id),
            uid: Uid(record.uid),
            name: record.name,
            owner: match record.owner {
                OwnerRecord::Lease => Owner::Lease,
                OwnerRecord::Process { pid, start_time } => Owner::Process(Process { pid, start_time }),
                OwnerRecord::Cgroup(path) => Owner::Cgroup(path),
            },
            parts: parts?,
            mode: if record.exclusive { Mode::Exclusive } else { Mode::Shared },
            claim: record.claim.map(Id::new),
            foreign: record.foreign,
            keep: record.keep,
            tasks_seen: record.tasks_seen,
            before: record.before,
            created_at: moment(record.created_at),
            expiry: record
                .expiry
                .map(|expiry| Expiry { ttl: Duration::from_nanos(expiry.ttl), at: moment(expiry.at) }),
            request_id: record.request_id,
            labels: record.labels,
            missing: cpus(&record.missing)?,
            generation: record.generation,
            ended: record.ended.map(|EndRecord { why, at }| Ended {
                why: match why {
                    WhyRecord::Released => End::Released,
                    WhyRecord::ProcessDied => End::ProcessDied,
                    WhyRecord::CgroupEmpty => End::CgroupEmpty,
                    WhyRecord::Expired => End::Expired,
                    WhyRecord::TasksSeen => End::TasksSeen,
                    WhyRecord::ClaimEnded => End::ClaimEnded,
                    WhyRecord::Rebooted => End::Rebooted,
                },
                at: moment(at),
            }),
        })
    }
}

impl TryFrom<PartRecord> for Part {
    type Error = String;

    fn try_from(record: PartRecord) -> Result<Self, String> {
        let mut counts = BTreeMap::new();
        for (tasks, list) in record.counts {
            for cpu in &cpus(&list)? {
                if counts.insert(cpu, tasks).is_some() {
                    return Err(format!("CPU {cpu} is counted twice"));
                }
            }
        }
        Ok(Self::counted(counts.into_iter().collect()).for_tasks(record.tasks))
    }
}

fn cpus(list: &str) -> Result<CpuSet, String> {
    CpuSet::parse(list).map_err(|error| error.to_string())
}

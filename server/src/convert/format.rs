//! An advice in launchers' formats, to the wire.

use super::{Faults, predict::known_enum};
use berth_model::{
    advise::{Advice, Form},
    cpuset::{Cpu, CpuSet, MAX_CPUS},
    format::{Dialect, Mask, Scope, write},
    topology::Topology,
};
use berth_proto::v1::{self, format::Value};

/// The most formats that one asks for: each of them, and some twice.
const MAX_FORMATS: usize = 32;

/// The longest text of one format, in bytes.
const MOST: usize = 1 << 20;

/// What the advice is to be written in.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Formats {
    dialects: Vec<Dialect>,
    slurm_cpus: Vec<Cpu>,
}

const ALL: [(Value, Dialect); 10] = [
    (Value::TasksetList, Dialect::TasksetList),
    (Value::TasksetHex, Dialect::TasksetHex),
    (Value::Numactl, Dialect::Numactl),
    (Value::Omp, Dialect::Omp),
    (Value::Gomp, Dialect::Gomp),
    (Value::SlurmCpuBind, Dialect::SlurmCpuBind),
    (Value::OpenmpiRankfile, Dialect::OpenmpiRankfile),
    (Value::Systemd, Dialect::Systemd),
    (Value::Cgroup, Dialect::Cgroup),
    (Value::Docker, Dialect::Docker),
];

impl Formats {
    pub(crate) fn from_wire(formats: &[i32], slurm_cpus: &[u32], faults: &mut Faults) -> Self {
        if formats.len() > MAX_FORMATS {
            faults.add("formats", format!("{} formats; expected at most {MAX_FORMATS}", formats.len()));
        }
        let mut dialects = Vec::new();
        for (i, &number) in formats.iter().take(MAX_FORMATS).enumerate() {
            let (field, format) = (format!("formats[{i}]"), Value::try_from(number));
            known_enum(&field, number, format.is_ok(), faults);
            match format {
                Ok(Value::Unspecified) => {
                    faults.add(field, "UNSPECIFIED is no format; expected ALL or one by name")
                }
                Ok(wanted) => {
                    let of = ALL.iter().filter(|(format, _)| wanted == Value::All || *format == wanted);
                    dialects.extend(of.map(|&(_, dialect)| dialect));
                }
                Err(_) => {}
            }
        }
        let mut known = CpuSet::new();
        for (i, &number) in slurm_cpus.iter().enumerate() {
            match Cpu::try_new(number) {
                Some(cpu) if known.insert(cpu) => {}
                Some(_) => {
                    faults.add(format!("slurm_cpus[{i}]"), format!("CPU {number} has two of Slurm's numbers"))
                }
                None => {
                    let said = format!("CPU {number} is out of range; expected 0 to {}", MAX_CPUS - 1);
                    faults.add(format!("slurm_cpus[{i}]"), said);
                }
            }
            if faults.are_many() {
                break;
            }
        }
        let slurm_cpus = slurm_cpus.iter().copied().filter_map(Cpu::try_new).collect();
        let mut seen = Vec::new();
        dialects.retain(|dialect| {
            !seen.contains(dialect) && {
                seen.push(*dialect);
                true
            }
        });
        Self { dialects, slurm_cpus }
    }

    /// The advice in each of them, in the order in which they were asked for.
    pub(crate) fn of(&self, advice: &Advice, topology: &Topology) -> Vec<v1::Formatted> {
        let masks: Vec<Mask> = match advice.form {
            Form::None => Vec::new(),
            _ => advice.parts.iter().map(|part| mask(topology, &part.cpus, part.tasks)).collect(),
        };
        let is_each = advice.form == Form::PerTask;
        self.dialects.iter().flat_map(|&dialect| self.written(dialect, &masks, is_each)).collect()
    }

    fn written(&self, dialect: Dialect, masks: &[Mask], is_each: bool) -> Vec<v1::Formatted> {
        let format = ALL.iter().find(|(_, known)| *known == dialect).map_or(Value::Unspecified, |(f, _)| *f);
        let empty = v1::Formatted { format: format.into(), ..v1::Formatted::default() };
        let texts = match write(dialect, masks, &self.slurm_cpus) {
            Ok(texts) => texts,
            Err(error) => return vec![v1::Formatted { because: format!("{error}."), ..empty }],
        };
        let mut told = Vec::new();
        let mut first_task = 0;
        for text in texts {
            let of = |part, task| v1::Formatted { text: text.text.clone(), part, task, ..empty.clone() };
            match text.scope {
                Scope::All => told.push(of(None, None)),
                // An entry is told once for each task that has it: the answer has no parts then.
                Scope::Mask(index) if is_each => {
                    let tasks = first_task..first_task + masks[index].tasks;
                    first_task = tasks.end;
                    told.extend(tasks.map(|task| of(None, Some(task))));
                }
                Scope::Mask(index) => told.push(of(Some(super::count(index)), None)),
            }
        }
        if told.iter().map(|formatted| formatted.text.len()).sum::<usize>() > MOST {
            let said = "Written out it would be very long: ask for fewer tasks, or write it from the advice.";
            return vec![v1::Formatted { because: said.to_owned(), ..empty }];
        }
        told
    }
}

/// A mask with the nodes of its CPUs.
fn mask(topology: &Topology, cpus: &CpuSet, tasks: u32) -> Mask {
    let nodes = topology.nodes().iter().filter(|node| node.cpus.intersects(cpus));
    let memory_nodes = nodes.filter_map(|node| Cpu::try_new(node.id)).collect();
    Mask { cpus: cpus.clone(), memory_nodes, tasks }
}

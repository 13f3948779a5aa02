//! Masks in the words of launchers. The launchers' own parsers read the same texts in `dialects`.

use crate::bursts::{cpu, cpus};
use berth_model::format::{Dialect, Error, Mask, write};

fn mask(list: &str, nodes: &str, tasks: u32) -> Mask {
    let memory_nodes = if nodes.is_empty() { Default::default() } else { cpus(nodes) };
    Mask { cpus: cpus(list), memory_nodes, tasks }
}

fn lines(dialect: Dialect, masks: &[Mask]) -> String {
    let texts = write(dialect, masks, &[]).unwrap().into_iter().map(|text| text.text);
    texts.collect::<Vec<_>>().join("\n")
}

/// lxd#15272: CPUs of node 1 come with memory of node 1, wherever memory can be said.
#[test]
fn memory_comes_from_the_node_of_the_cpus() {
    let one = [mask("16-31,48-63", "1", 8)];
    assert_eq!(lines(Dialect::Numactl, &one), "numactl --physcpubind=16-31,48-63 --preferred=1");
    assert_eq!(
        lines(Dialect::Systemd, &one),
        "[Service]\nCPUAffinity=16-31,48-63\nAllowedCPUs=16-31,48-63\nNUMAPolicy=preferred\nNUMAMask=1"
    );
    assert_eq!(lines(Dialect::Cgroup, &one), "echo 16-31,48-63 > cpuset.cpus\necho 1 > cpuset.mems");
    assert_eq!(lines(Dialect::Docker, &one), "--cpuset-cpus=16-31,48-63 --cpuset-mems=1");
    assert_eq!(lines(Dialect::TasksetList, &one), "taskset -c 16-31,48-63");
    assert_eq!(lines(Dialect::TasksetHex, &one), "taskset 0xffff0000ffff0000");
}

#[test]
fn openmp_places_are_as_short_as_they_can_be() {
    let singles = |list: &[u32]| list.iter().map(|&n| mask(&n.to_string(), "", 1)).collect::<Vec<_>>();
    let omp = |masks: &[Mask]| lines(Dialect::Omp, masks).lines().next().unwrap().to_owned();
    let gomp = |masks: &[Mask]| lines(Dialect::Gomp, masks);
    assert_eq!(omp(&singles(&[0, 16, 32, 48])), "export OMP_PLACES=\"{0}:4:16\"");
    assert_eq!(omp(&singles(&[0, 16, 33])), "export OMP_PLACES=\"{0},{16},{33}\"");
    assert_eq!(omp(&singles(&[5])), "export OMP_PLACES=\"{5}\"");
    assert_eq!(omp(&[mask("0-3,8", "", 2), mask("4-7", "", 2)]), "export OMP_PLACES=\"{0:4,8},{4:4}\"");
    assert_eq!(gomp(&singles(&[0, 16, 32, 48])), "export GOMP_CPU_AFFINITY=\"0-48:16\"");
    assert_eq!(gomp(&singles(&[3, 0, 1, 2, 9, 9])), "export GOMP_CPU_AFFINITY=\"3 0-2 9 9\"");
    let uneven = [mask("0-159", "", 160), mask("160-175", "", 16)];
    assert_eq!(write(Dialect::Omp, &uneven, &[]).unwrap_err(), Error::Uneven);
    assert_eq!(write(Dialect::Gomp, &uneven, &[]).unwrap_err(), Error::Shared);
}

#[test]
fn ranks_have_an_entry_each() {
    let split = [mask("0-1", "", 2), mask("4", "", 1)];
    let file = "rank 0=localhost slot=0-1\nrank 1=localhost slot=0-1\nrank 2=localhost slot=4";
    assert_eq!(lines(Dialect::OpenmpiRankfile, &split).split_once('\n').unwrap().1, file);
    // Slurm numbers threads core by core: its 0 and 1 are CPUs 0 and 4.
    let slurm = [0, 4, 1, 5].map(cpu);
    let bind = write(Dialect::SlurmCpuBind, &split, &slurm).unwrap();
    assert_eq!(bind[0].text, "--cpu-bind=mask_cpu:0x5*2,0x2");
    assert_eq!(write(Dialect::SlurmCpuBind, &split, &[]).unwrap_err(), Error::NoNumbering);
    let short = [0, 1].map(cpu);
    assert_eq!(write(Dialect::SlurmCpuBind, &split, &short).unwrap_err(), Error::NotSlurms(cpu(4)));
}

#[test]
fn nothing_is_written_where_nothing_is_bound() {
    for dialect in Dialect::ALL {
        assert_eq!(write(dialect, &[], &[]).unwrap_err(), Error::Unbound, "{dialect:?}");
    }
}

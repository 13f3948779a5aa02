//! Real machines from `testdata/topologies`, read as far as these tests need: packages, nodes, last-level caches, cores,
//! CPUs, distances. The daemon reads them with hwloc itself.

use berth_model::{
    cpuset::{Cpu, CpuSet},
    topology::{Description, NodeDescription, Processor, PuDescription, Topology},
};

/// An element of the XML: its type and attributes.
struct Object<'a> {
    kind: &'a str,
    tag: &'a str,
}

impl<'a> Object<'a> {
    fn attribute(&self, name: &str) -> Option<&'a str> {
        let (_, rest) = self.tag.split_once(&format!(" {name}=\""))?;
        rest.split_once('"').map(|(value, _)| value)
    }

    fn number(&self, name: &str) -> u32 {
        self.attribute(name).unwrap().parse().unwrap()
    }
}

/// The machine of a file, as an Intel host.
pub(crate) fn machine(file: &str) -> Topology {
    let path = format!("{}/../testdata/topologies/{file}", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(path).unwrap();
    let mut above: Vec<Object<'_>> = Vec::new();
    let mut pus: Vec<PuDescription> = Vec::new();
    let mut nodes: Vec<(u32, CpuSet)> = Vec::new();
    for tag in text.split('<').skip(1).map(|element| element.split('>').next().unwrap()) {
        if tag.starts_with("/object") {
            above.pop();
        } else if tag.starts_with("object ") {
            let mut object = Object { kind: "", tag };
            object.kind = object.attribute("type").unwrap();
            let within = |kind: &str| above.iter().find(|object| object.kind == kind);
            if object.kind == "NUMANode" {
                nodes.push((object.number("os_index"), mask(object.attribute("cpuset").unwrap_or("0x0"))));
            } else if object.kind == "PU" {
                let package = within("Package").map_or(0, |package| package.number("os_index"));
                // The outermost cache is the last level.
                let llc = above.iter().find(|object| object.kind.ends_with("Cache"));
                let core = within("Core").map_or_else(
                    || object.number("os_index"),
                    |core| package << 16 | core.number("os_index"),
                );
                pus.push(PuDescription {
                    cpu: Cpu::try_new(object.number("os_index")).unwrap(),
                    package,
                    node: 0,
                    llc: llc.map_or(0, |cache| cache.number("gp_index")),
                    cluster: None,
                    core,
                    capacity: 0,
                });
            }
            if !tag.ends_with('/') {
                above.push(object);
            }
        }
    }
    for pu in &mut pus {
        let node = nodes.iter().find(|(_, cpus)| cpus.contains(pu.cpu));
        // Nodes that the cpuset of that time did not allow are not in the file.
        pu.node = node.map_or(1000 + pu.package, |(id, _)| *id);
    }
    Topology::try_new(Description {
        nodes: nodes.iter().map(|&(id, _)| NodeDescription { id, memory: None }).collect(),
        distances: distances(&text, nodes.len()),
        processor: Processor { vendor: "GenuineIntel".to_owned(), family: Some(6) },
        pus,
        ..Description::default()
    })
    .unwrap()
}

/// `0x000000ff,,0x1`: groups of 32 bits, empty for 0.
fn mask(text: &str) -> CpuSet {
    let groups: Vec<String> = text
        .split(',')
        .map(|group| format!("{:08x}", u32::from_str_radix(group.trim_start_matches("0x"), 16).unwrap_or(0)))
        .collect();
    CpuSet::parse(&groups.join(",")).unwrap()
}

/// The matrix of all nodes, in the order of the file.
fn distances(text: &str, nodes: usize) -> Option<Vec<Vec<u32>>> {
    let (_, rest) = text.split_once("<distances2 type=\"NUMANode\"")?;
    let (matrix, _) = rest.split_once("</distances2>")?;
    let values = matrix.split("<u64values").skip(1).map(|part| part.split(['>', '<']).nth(1).unwrap());
    let values: Vec<u32> =
        values.flat_map(str::split_whitespace).map(|value| value.parse().unwrap()).collect();
    assert_eq!(values.len(), nodes * nodes);
    Some(values.chunks(nodes).map(<[u32]>::to_vec).collect())
}

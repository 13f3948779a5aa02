//! Flags of what Kubernetes' nodes run.

use std::{fmt, path::PathBuf, str::FromStr, time::Duration};

use berth_model::CpuSet;
use clap::{Args, Subcommand, ValueEnum};

use super::{
    Policy, examples,
    kube_nri::{KubeNri, NriNode},
    time,
};

/// Heading of flags that say where the kubelet is.
const KUBELET: &str = "The kubelet";
/// Heading of flags that say what is offered.
const DEVICES: &str = "The devices";
/// Heading of flags that say what becomes of devices that a container was given.
const GIVEN: &str = "What containers are given";

/// `berth kube`.
#[derive(Debug, Subcommand)]
pub enum Kube {
    /// Offer this node's cores or last-level caches to the kubelet as devices, and hold those that containers are given
    ///
    /// The kubelet counts the devices as a resource of the node, which pods ask for as for any other. Which of them a container
    /// should get is berthd's advice, given the load of the moment; if it does not come in time, neighbours are chosen by the topology alone. CPUs of
    /// devices that a container has are held in berthd until the kubelet does not list them any more. A container is told the hold's
    /// id: in BERTH_HOLD, and its runtime in the annotation berth.dev/hold. It is not bound to the CPUs by that.
    ///
    /// Runs until SIGTERM. Whatever berthd does or does not, containers are given their devices.
    #[command(after_help = examples::KUBE_DEVICE_PLUGIN)]
    DevicePlugin(DevicePlugin),
    /// Show how kubelet, device plugin and berthd of this node stand to each other
    #[command(after_help = examples::KUBE_STATUS)]
    Status(KubeStatus),
    /// Write cpusets of containers: a plugin of the container runtime, by its Node Resource Interface (NRI)
    ///
    /// A container whose pod has the annotation berth.dev/policy (auto, spread, compact or off), or whose CPUs the device plugin has
    /// held, is created with one mask, on which the tasks that it is for do not pile up. They are as many as its CPU limit, rounded
    /// up, or as berth.dev/tasks says. It never gets fewer CPUs than its limit. Further annotations: berth.dev/exclusive,
    /// berth.dev/memory. KEY.CONTAINER counts before KEY, for the container of that name.
    ///
    /// Nothing is written unless the kubelet's CPU manager policy is `none`: under `static`, berthd is told which CPUs the kubelet
    /// has given out. Runs until SIGTERM. Whatever fails, a container is created as it would have been.
    #[command(after_help = examples::KUBE_NRI)]
    Nri(KubeNri),
}

/// Where the kubelet is.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = KUBELET)]
pub struct KubeletArgs {
    /// The folder of kubelet.sock and of the plugins' sockets
    #[arg(long, value_name = "DIR", default_value = "/var/lib/kubelet/device-plugins")]
    pub plugin_dir: PathBuf,
    /// The socket on which the kubelet tells what pods have
    #[arg(long, value_name = "FILE", default_value = "/var/lib/kubelet/pod-resources/kubelet.sock")]
    pub pod_resources: PathBuf,
}

/// `berth kube device-plugin`.
#[derive(Debug, Args)]
pub struct DevicePlugin {
    /// What one device is
    #[arg(long, value_enum, default_value_t, help_heading = DEVICES)]
    pub devices: DeviceKind,
    /// The resource whose devices they are. Default: berth.dev/cpu for cores, berth.dev/llc for caches
    #[arg(long, value_name = "DOMAIN/NAME", help_heading = DEVICES)]
    pub resource: Option<Resource>,
    /// CPUs that are no part of any device, beside those that the kubelet has reserved for the system and tells of
    #[arg(long, value_name = "CPUS", help_heading = DEVICES)]
    pub reserved: Option<CpuSet>,
    /// What the kubelet is told of where a device is
    #[arg(long, value_enum, default_value_t, help_heading = DEVICES)]
    pub topology: DeviceTopology,
    /// How the devices of one container should lie towards each other
    #[arg(long, value_enum, ignore_case = true, default_value_t = Policy::Compact, help_heading = GIVEN)]
    pub policy: Policy,
    /// How long berthd is waited for while the kubelet waits, which starts no other pod meanwhile
    #[arg(long, value_name = "TIME", default_value = "500ms", value_parser = time::parse, help_heading = GIVEN)]
    pub deadline: Duration,
    /// How long devices stay held after the kubelet has last listed them as some pod's
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = time::any, help_heading = GIVEN)]
    pub grace: Duration,
    /// How often the kubelet is asked what pods have
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = time::parse, help_heading = GIVEN)]
    pub every: Duration,
    /// How long CPUs stay held if nobody renews that, as while this program is not there
    #[arg(long, value_name = "TIME", default_value = "10m", value_parser = time::hold, help_heading = GIVEN)]
    pub lease: Duration,
    /// Something binds containers to the CPUs of their hold, as `berth kube nri` does: tell them also which these are
    ///
    /// In BERTH_CPUS and BERTH_MEMORY_NODES, and in OMP_PLACES and OMP_PROC_BIND where a container has a single CPU.
    #[arg(long, help_heading = GIVEN)]
    pub enforced: bool,
    /// Where the kubelet is.
    #[command(flatten)]
    pub kubelet: KubeletArgs,
}

/// `berth kube status`.
#[derive(Debug, Args)]
pub struct KubeStatus {
    /// A resource whose device plugin is looked at; may be repeated. Default: berth.dev/cpu and berth.dev/llc
    #[arg(long, value_name = "DOMAIN/NAME")]
    pub resource: Vec<Resource>,
    /// Where the kubelet is.
    #[command(flatten)]
    pub kubelet: KubeletArgs,
    /// The node.
    #[command(flatten)]
    pub node: NriNode,
}

impl KubeStatus {
    /// The resources to look at.
    pub fn resources(&self) -> Vec<Resource> {
        match &self.resource[..] {
            [] => [DeviceKind::Cores, DeviceKind::Llc].map(Resource::usual).into(),
            named => named.to_vec(),
        }
    }
}

/// What one device is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum DeviceKind {
    /// A core with all its hardware threads
    #[default]
    Cores,
    /// A last-level cache with all its cores
    Llc,
}

/// What the kubelet is told of where a device is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum DeviceTopology {
    /// `node`; on hosts of more than 8 NUMA nodes, which kubelets do not align by themselves, `package`
    #[default]
    Auto,
    /// Its NUMA node
    Node,
    /// All NUMA nodes of its package
    Package,
    /// Nothing
    None,
}

/// The name of a resource that nodes have beside CPU and memory, such as `berth.dev/cpu`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resource(String);

impl Resource {
    /// The usual name for devices of a kind.
    pub fn usual(kind: DeviceKind) -> Self {
        Self(match kind {
            DeviceKind::Cores => "berth.dev/cpu".to_owned(),
            DeviceKind::Llc => "berth.dev/llc".to_owned(),
        })
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Resource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for Resource {
    type Err = String;

    /// Reads what a kubelet takes for a resource of a vendor.
    fn from_str(text: &str) -> Result<Self, String> {
        /// The longest domain and the longest name. Kubernetes makes quotas of both with a prefix of nine letters.
        const DOMAIN: usize = 253 - "requests.".len();
        const NAME: usize = 63;
        let is_word = |word: &str, also: &str, most: usize| {
            let ends = |c: char| c.is_ascii_alphanumeric();
            (1..=most).contains(&word.len())
                && word.starts_with(ends)
                && word.ends_with(ends)
                && word.chars().all(|c| ends(c) || also.contains(c))
        };
        let (domain, name) = text.split_once('/').unwrap_or_default();
        let has_letters =
            |label: &str| is_word(label, "-", 63) && !label.contains(|c: char| c.is_uppercase());
        let is_domain = domain.len() <= DOMAIN && domain.split('.').all(has_letters);
        let is_kubernetes = domain == "kubernetes.io" || domain.ends_with(".kubernetes.io");
        if is_domain && is_word(name, "-_.", NAME) && !is_kubernetes && !domain.starts_with("requests.") {
            Ok(Self(text.to_owned()))
        } else {
            Err("write a domain and a name such as berth.dev/cpu; kubernetes.io is Kubernetes' own"
                .to_owned())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resources_are_named_as_kubelets_take_them() {
        for name in ["berth.dev/cpu", "example.com/My_cpu.v1-x", "a/b"] {
            assert_eq!(name.parse::<Resource>().map(|resource| resource.to_string()), Ok(name.to_owned()));
        }
        let long = format!("berth.dev/{}", "x".repeat(64));
        for name in [
            "",
            "cpu",
            "/cpu",
            "berth.dev/",
            "berth.dev/a/b",
            "kubernetes.io/cpu",
            "x.kubernetes.io/cpu",
            "requests.berth.dev/cpu",
            "Berth.dev/cpu",
            "berth..dev/cpu",
            "berth.dev/-cpu",
            "berth.dev/c u",
            &long,
        ] {
            assert!(name.parse::<Resource>().is_err(), "{name}");
        }
    }
}

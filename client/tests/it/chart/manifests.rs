//! Manifests: as reviewed, as Kubernetes takes them, and with no right that is not needed.

use std::fs;

use serde_json::{Value, json};

use super::{Helm, KUBERNETES, all_values, containers, documents, file, list, pod, text};
use crate::tools::{said, tool};

#[test]
fn helm_finds_no_fault() {
    let Some(helm) = Helm::try_new() else { return };
    for (name, values) in all_values() {
        let told = said(&mut helm.command(&["lint", "--strict"], Some(&values)));
        assert!(told.contains("1 chart(s) linted, 0 chart(s) failed"), "{name}: {told}");
        println!("{name}: {}", told.trim().lines().last().unwrap_or_default());
    }
}

/// Golden files: a change of what is deployed is seen in review. INSTA_UPDATE=always writes them anew.
#[test]
fn manifests_are_as_reviewed() {
    let Some(helm) = Helm::try_new() else { return };
    let [oldest, newest] = KUBERNETES;
    for (name, values) in all_values() {
        let manifests = helm.template(&values, newest);
        assert_eq!(manifests, helm.template(&values, oldest), "{name}: the same for every Kubernetes");
        insta::assert_snapshot!(name, manifests);
    }
}

/// By Kubernetes' own schemas, which know every field.
#[test]
fn kubernetes_takes_every_manifest() {
    let (Some(helm), Some(_)) = (Helm::try_new(), tool("kubernetes-validate")) else { return };
    for (name, values) in all_values() {
        let manifests = helm.manifests(&values);
        // What others define has no schema in Kubernetes.
        let own: Vec<&Value> =
            manifests.iter().filter(|one| !text(one, "/apiVersion").contains(".coreos.com/")).collect();
        let told = validate(&own).unwrap_or_else(|told| panic!("{name}: {told}"));
        let passed = told.lines().filter(|line| line.contains(" passed for resource ")).count();
        assert_eq!(passed, own.len() * KUBERNETES.len(), "{told}");
        println!("{name}: {} manifests pass for Kubernetes {}", own.len(), KUBERNETES.join(" and "));
    }
    let wrong = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"},
        "spec": {"containers": [{"name": "a", "image": "a", "imagePolicy": "Never"}]}});
    assert!(validate(&[&wrong]).is_err(), "an unknown field is a fault");
}

fn validate(manifests: &[&Value]) -> Result<String, String> {
    let file = tempfile::NamedTempFile::with_suffix(".yaml").expect("a file");
    let documents: Vec<String> = manifests.iter().map(|manifest| manifest.to_string()).collect();
    fs::write(file.path(), documents.join("\n---\n")).expect("it is written");
    let mut command = tool("kubernetes-validate").expect("it is there");
    KUBERNETES.iter().for_each(|version| _ = command.args(["-k", version]));
    let output = command.arg("--strict").arg(file.path()).output().expect("it starts");
    let told = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    if output.status.success() { Ok(told) } else { Err(told) }
}

/// Chart, image and crates carry one version.
#[test]
fn the_chart_has_the_crates_version() {
    let version = env!("CARGO_PKG_VERSION");
    let chart = file("Chart.yaml");
    for line in [format!("version: {version}"), format!("appVersion: \"{version}\"")] {
        assert!(chart.lines().any(|other| other == line), "{line}: {chart}");
    }
}

/// Another pod that looks like one of the DaemonSet's would be taken for its own, and ended.
#[test]
fn the_tests_pod_is_not_the_daemon_sets() {
    let Some(helm) = Helm::try_new() else { return };
    let (_, values) = &all_values()[0];
    let manifests = helm.manifests(values);
    let of_kind = |kind: &str| manifests.iter().find(|one| text(one, "/kind") == kind).expect("it is there");
    let selector = of_kind("DaemonSet").pointer("/spec/selector/matchLabels").and_then(Value::as_object);
    let labels = |manifest: &Value, pointer: &str| manifest.pointer(pointer).cloned().unwrap_or_default();
    let is_selected =
        |labels: &Value| selector.is_some_and(|all| all.iter().all(|(k, v)| labels.get(k) == Some(v)));
    assert!(is_selected(&labels(of_kind("DaemonSet"), "/spec/template/metadata/labels")));
    assert!(!is_selected(&labels(of_kind("Pod"), "/metadata/labels")));
}

#[test]
fn nothing_may_ask_the_api_server() {
    let Some(helm) = Helm::try_new() else { return };
    for (name, values) in all_values() {
        let manifests = helm.manifests(&values);
        let kinds: Vec<&str> = manifests.iter().map(|manifest| text(manifest, "/kind")).collect();
        assert!(!kinds.iter().any(|kind| kind.contains("Role")), "{name}: {kinds:?}");
        for manifest in &manifests {
            let may = match text(manifest, "/kind") {
                "ServiceAccount" => manifest.get("automountServiceAccountToken"),
                "DaemonSet" | "Pod" => pod(manifest).and_then(|pod| pod.get("automountServiceAccountToken")),
                _ => continue,
            };
            assert_eq!(may, Some(&Value::Bool(false)), "{name}: {manifest}");
        }
    }
}

/// What an intruder would find: containers that cannot become more than they are.
#[test]
fn containers_have_the_rights_they_need_and_no_others() {
    let Some(helm) = Helm::try_new() else { return };
    for (name, values) in all_values() {
        let manifests = helm.manifests(&values);
        let pods: Vec<&Value> = manifests.iter().filter_map(pod).collect();
        assert_eq!(pods.len(), 2, "{name}: the DaemonSet's and the test's");
        for pod in pods {
            assert!(!pod["hostNetwork"].as_bool().unwrap_or_default(), "{name}");
            let of_pod = &pod["securityContext"];
            assert_eq!(of_pod["runAsNonRoot"], true, "{name}");
            assert_eq!(of_pod["seccompProfile"]["type"], "RuntimeDefault", "{name}");
            containers(pod).for_each(has_few_rights);
        }
    }
}

fn has_few_rights(container: &Value) {
    let name = text(container, "/name");
    let own = &container["securityContext"];
    assert_eq!(own["allowPrivilegeEscalation"], false, "{name}");
    assert_eq!(own["readOnlyRootFilesystem"], true, "{name}");
    assert_eq!(own["capabilities"]["drop"], json!(["ALL"]), "{name}");
    assert!(own.get("privileged").is_none(), "{name}");
    assert!(container.pointer("/resources/limits/memory").is_some(), "{name} may not take all memory");
    assert!(list(container, "/ports").iter().all(|port| port.get("hostPort").is_none()), "{name}");
    // Root are those who give folders away, and those whose peers' sockets are root's own.
    let gives = ["socket-dir", "state-dir"].contains(&name);
    let adapts = ["device-plugin", "nri"].contains(&name);
    let may = if gives { json!(["CHOWN", "FOWNER"]) } else { Value::Null };
    assert_eq!(own["capabilities"]["add"], may, "{name}");
    assert_eq!(own.get("runAsUser").is_some_and(|user| user == 0), gives || adapts, "{name}");
    // They run beside what the node lets them reach: of its folders they write to these alone.
    let writes: Vec<&str> = list(container, "/volumeMounts")
        .iter()
        .filter(|mount| mount["readOnly"] != true)
        .map(|mount| text(mount, "/name"))
        .collect();
    let expected: &[&str] = match name {
        "berthd" => &["socket-dir", "state-dir"],
        "socket-dir" => &["socket-dir"],
        "state-dir" => &["state-dir"],
        // Its own socket lies beside kubelet's.
        "device-plugin" => &["device-plugins"],
        _ => &[],
    };
    assert_eq!(writes, expected, "{name}");
}

/// Each folder of the node that is mounted is told in the documentation, with what for.
#[test]
fn mounts_are_explained() {
    let Some(helm) = Helm::try_new() else { return };
    let page = fs::read_to_string(super::folder().join("../docs/kubernetes.md")).expect("it is there");
    let (_, values) = all_values().into_iter().find(|(name, _)| name == "adapters").expect("it is there");
    let manifests = helm.manifests(&values);
    let pods: Vec<&Value> = manifests.iter().filter_map(pod).collect();
    for volume in pods.iter().flat_map(|pod| list(pod, "/volumes")) {
        let path = text(volume, "/hostPath/path");
        assert!(page.contains(&format!("| `{path}` |")), "{path} is not in docs/kubernetes.md");
    }
}

#[test]
fn yaml_is_read_as_kubernetes_reads_it() {
    if tool("yaml2json").is_none() {
        return;
    }
    assert_eq!(documents("a: on\n---\n---\nb: [0o7, x]\n"), [json!({"a": true}), json!({"b": ["0o7", "x"]})]);
}

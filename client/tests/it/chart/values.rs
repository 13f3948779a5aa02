//! Values: each is known to the schema, used, and refused where it cannot be meant.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{Helm, all_values, documents, file, folder};
use crate::tools::tool;

/// Paths of all values, of lists and of free maps the whole.
fn paths(value: &Value, before: &str, into: &mut BTreeSet<String>) {
    const FREE: [&str; 9] = [
        ".resources",
        ".devicePlugin.resources",
        ".nri.resources",
        ".adapterSELinux",
        ".updateStrategy",
        ".nodeSelector",
        ".affinity",
        ".podLabels",
        ".podAnnotations",
    ];
    match value.as_object() {
        Some(fields)
            if !FREE.contains(&before) && !before.ends_with("labels") && !before.ends_with("annotations") =>
        {
            fields.iter().for_each(|(name, value)| paths(value, &format!("{before}.{name}"), into));
        }
        _ => _ = into.insert(before.to_owned()),
    }
}

fn at<'a>(value: &'a Value, path: &str) -> Option<&'a Value> {
    value.pointer(&path.replace('.', "/"))
}

/// So that no branch of a template goes unrendered.
#[test]
fn one_file_sets_every_value_to_something_else() {
    if tool("yaml2json").is_none() {
        return;
    }
    let [defaults, everything] =
        ["values.yaml", "ci/everything-values.yaml"].map(|name| documents(&file(name)).remove(0));
    let mut all = BTreeSet::new();
    paths(&defaults, "", &mut all);
    assert!(all.len() > 40, "{all:?}");
    for path in &all {
        let (default, other) = (at(&defaults, path), at(&everything, path));
        assert!(other.is_some() && default != other, "{path}: {other:?}");
    }
}

#[test]
fn what_cannot_be_meant_is_refused() {
    let Some(helm) = Helm::try_new() else { return };
    let (_, values) = &all_values().into_iter().find(|(name, _)| name == "default").expect("it is there");
    for (set, named) in [
        ("nonsense=1", "nonsense"),
        ("image.tags=1", "tags"),
        ("image.repository=", "repository"),
        ("socketDir=run/berth", "socketDir"),
        ("socketDir=/run/../etc", "socketDir"),
        ("stateDir=/", "stateDir"),
        ("runAsUser=0", "runAsUser"),
        ("hostPID=perhaps", "hostPID"),
        ("log.format=xml", "format"),
        ("devicePlugin.enabled=1", "enabled"),
        ("devicePlugin.resource=cpu", "resource"),
        ("devicePlugin.resource=x.kubernetes.io/cpu", "resource"),
        ("devicePlugin.devices=threads", "devices"),
        ("devicePlugin.enforced=true", "nri"),
        ("nri.within=soon", "within"),
        ("nri.socket=/run/nri.sock", "nri"),
        ("metrics.serviceMonitor.enabled=true", "metrics"),
        ("metrics.prometheusRule.enabled=true", "metrics"),
        ("metrics.dashboard.enabled=true", "metrics"),
        ("metrics.port=80", "port"),
        ("metrics.port=7117", "port"),
        ("updateStrategy.type=Recreate", "type"),
        ("updateStrategy.rollingUpdate.maxSurge=1", "maxSurge"),
        ("networkPolicy.metricsFrom=all", "metricsFrom"),
        ("resources.limit.memory=1Gi", "limit"),
    ] {
        let output =
            helm.command(&["template", "berth", "--set", set], Some(values)).output().expect("it starts");
        let told = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success(), "{set} was taken");
        assert!(told.contains(named) && told.contains("schema"), "{set}: {told}");
    }
}

/// Names stay within what Kubernetes takes, however long the release's is.
#[test]
fn a_long_name_of_a_release_is_cut() {
    let Some(_) = Helm::try_new() else { return };
    let Some(mut helm) = tool("helm") else { return };
    let release = "a".repeat(53);
    helm.args(["template", &release])
        .arg(folder())
        .arg("--values")
        .arg(folder().join("ci/adapters-values.yaml"));
    for manifest in documents(&crate::tools::said(&mut helm)) {
        let name = super::text(&manifest, "/metadata/name");
        assert!(name.len() <= 63, "{name}");
    }
}

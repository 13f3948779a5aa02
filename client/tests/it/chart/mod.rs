//! The Helm chart, by the real helm: what it makes of each file of values in `helm/ci`, and whether Kubernetes, Prometheus and
//! Berth's own programs take that.

mod manifests;
mod metrics;
mod programs;
mod prometheus;
mod values;

use std::{
    fs,
    io::Write as _,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use serde_json::Value;
use tempfile::TempDir;

use crate::tools::{said, tool};

/// The oldest and the newest Kubernetes that manifests are held against.
const KUBERNETES: [&str; 2] = ["1.30", "1.37"];

/// The chart's folder.
fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../helm")
}

/// A file of the chart.
fn file(name: &str) -> String {
    fs::read_to_string(folder().join(name)).expect("it is there")
}

/// The files of values that the chart is checked with, by what they are called before `-values.yaml`.
fn all_values() -> Vec<(String, PathBuf)> {
    let files =
        fs::read_dir(folder().join("ci")).expect("a folder").map(|entry| entry.expect("a file").path());
    let mut values: Vec<_> = files
        .filter_map(|file| {
            let name = file.file_name()?.to_str()?.strip_suffix("-values.yaml")?.to_owned();
            Some((name, file))
        })
        .collect();
    values.sort();
    assert!(values.len() >= 3, "{values:?}");
    values
}

/// The real helm, with folders of its own to write to.
struct Helm {
    _home: TempDir,
    home: PathBuf,
}

impl Helm {
    /// None, and said so, if there is none.
    fn try_new() -> Option<Self> {
        tool("helm")?;
        let home = tempfile::tempdir().expect("a folder");
        Some(Self { home: home.path().to_owned(), _home: home })
    }

    /// A call of it about the chart.
    fn command(&self, args: &[&str], values: Option<&Path>) -> Command {
        let mut command = tool("helm").expect("it is there");
        for name in ["HELM_CACHE_HOME", "HELM_CONFIG_HOME", "HELM_DATA_HOME"] {
            command.env(name, &self.home);
        }
        command.args(args).arg(folder());
        if let Some(values) = values {
            command.arg("--values").arg(values);
        }
        command
    }

    /// Every manifest as one text.
    fn template(&self, values: &Path, kubernetes: &str) -> String {
        let args = ["template", "berth", "--namespace", "advice", "--kube-version", kubernetes];
        said(&mut self.command(&args, Some(values)))
    }

    /// Every manifest as Kubernetes reads it.
    fn manifests(&self, values: &Path) -> Vec<Value> {
        documents(&self.template(values, KUBERNETES[1]))
    }
}

/// YAML documents as JSON, read as Kubernetes reads them.
fn documents(yaml: &str) -> Vec<Value> {
    let mut command = tool("yaml2json").expect("it comes with helm");
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it starts");
    child.stdin.take().expect("it is piped").write_all(yaml.as_bytes()).expect("it reads");
    let output = child.wait_with_output().expect("it ends");
    assert!(output.status.success(), "{yaml}");
    let all: Vec<Value> = serde_json::from_slice(&output.stdout).expect("it writes JSON");
    all.into_iter().filter(|document| !document.is_null()).collect()
}

/// The entries of a list; none if there is no such list.
fn list<'a>(value: &'a Value, pointer: &str) -> &'a [Value] {
    value.pointer(pointer).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// A text below a value.
#[track_caller]
fn text<'a>(value: &'a Value, pointer: &str) -> &'a str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_else(|| panic!("{pointer} in {value}"))
}

/// The pod of a manifest that makes any.
fn pod(manifest: &Value) -> Option<&Value> {
    match text(manifest, "/kind") {
        "DaemonSet" => manifest.pointer("/spec/template/spec"),
        "Pod" => manifest.pointer("/spec"),
        _ => None,
    }
}

/// Its containers, those that run first too.
fn containers(pod: &Value) -> impl Iterator<Item = &Value> {
    list(pod, "/initContainers").iter().chain(list(pod, "/containers"))
}

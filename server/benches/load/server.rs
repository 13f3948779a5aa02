//! A berthd of its own, with what can be read of it.

use hyper_util::rt::TokioIo;
use std::{
    fs,
    path::PathBuf,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};
use tempfile::TempDir;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpStream, UnixStream},
};
use tonic::transport::{Channel, Endpoint};
use tonic_health::pb::{HealthCheckRequest, health_client::HealthClient};
use tower::service_fn;

const PROGRAM: &str = env!("CARGO_BIN_EXE_berthd");

/// A running berthd. Killed when dropped.
pub(crate) struct Server {
    program: Child,
    folder: TempDir,
    /// From its start until health said SERVING.
    pub(crate) took: Duration,
}

impl Server {
    pub(crate) async fn start(flags: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut command = Command::new(PROGRAM);
        command.env_clear().args(["--config", "none", "--no-tcp", "--admin", "127.0.0.1:0"]).args(flags);
        command.arg("--uds").arg(folder.path().join("socket"));
        command.arg("--ready-file").arg(folder.path().join("ready"));
        command.arg("--state-dir").arg(folder.path().join("state"));
        let begun = Instant::now();
        let program = command.stderr(Stdio::inherit()).env("BERTH_LOG", "warn,audit=off").spawn().unwrap();
        let mut server = Self { program, folder, took: Duration::ZERO };
        while !server.socket().exists() {
            assert!(server.program.try_wait().unwrap().is_none(), "berthd ended");
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        let mut health = HealthClient::new(server.channel().await);
        while health.check(HealthCheckRequest::default()).await.map_or(0, |said| said.into_inner().status)
            != 1
        {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        server.took = begun.elapsed();
        while !server.folder.path().join("ready").exists() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        server
    }

    fn socket(&self) -> PathBuf {
        self.folder.path().join("socket")
    }

    pub(crate) async fn channel(&self) -> Channel {
        let path = self.socket();
        let connect = service_fn(move |_| {
            let path = path.clone();
            async move { UnixStream::connect(path).await.map(TokioIo::new) }
        });
        loop {
            if let Ok(channel) =
                Endpoint::from_static("http://unix").connect_with_connector(connect.clone()).await
            {
                return channel;
            }
        }
    }

    pub(crate) fn resident_mib(&self) -> f64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.program.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        line.trim().trim_end_matches("kB").trim().parse::<f64>().unwrap() / 1024.0
    }

    /// CPU seconds that it and this process have spent, on whatever.
    pub(crate) fn cpu(&self) -> f64 {
        self.own_cpu() + cpu_of("self")
    }

    /// CPU seconds that it alone has spent.
    pub(crate) fn own_cpu(&self) -> f64 {
        cpu_of(&self.program.id().to_string())
    }

    /// CPU seconds that it has spent on computing answers.
    pub(crate) async fn computing(&self) -> f64 {
        let ready = fs::read_to_string(self.folder.path().join("ready")).unwrap();
        let ready: serde_json::Value = serde_json::from_str(&ready).unwrap();
        let mut connection = TcpStream::connect(ready["admin"].as_str().unwrap()).await.unwrap();
        connection.write_all(b"GET /metrics HTTP/1.0\r\n\r\n").await.unwrap();
        let mut metrics = String::new();
        connection.read_to_string(&mut metrics).await.unwrap();
        let lines = metrics.lines().filter(|line| line.starts_with("berth_computing_cpu_seconds_total"));
        lines.map(|line| line.rsplit(' ').next().unwrap().parse::<f64>().unwrap()).sum()
    }
}

/// User and system time of a process, in seconds; the kernel counts in hundredths.
fn cpu_of(process: &str) -> f64 {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap();
    let (_, after_name) = stat.rsplit_once(')').unwrap();
    let fields: Vec<&str> = after_name.split_whitespace().collect();
    (fields[11].parse::<f64>().unwrap() + fields[12].parse::<f64>().unwrap()) / 100.0
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.program.kill();
        let _ = self.program.wait();
    }
}

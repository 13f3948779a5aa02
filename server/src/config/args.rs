//! The flags as they are typed. Their values are checked in [`super::read`], all at once.

use clap::Parser;
use std::path::PathBuf;

/// Answers over gRPC where this host's kernel would put new tasks, and where they should go instead.
///
/// It listens on loopback TCP and on a unix socket. Ask it with `berth`, or with any gRPC client; the server has
/// reflection:
///
///   grpcurl -plaintext -d '{"tasks": 8}' 127.0.0.1:7117 berth.v1.PlacementService/Predict
///   grpcurl -plaintext -unix /run/berth/berthd.sock berth.v1.InfoService/GetInfo
///
/// It needs no rights: it reads /proc and /sys, and changes nothing.
#[derive(Debug, Parser)]
#[command(name = "berthd", version, verbatim_doc_comment, max_term_width = 100, args_override_self = true, after_help = AFTER, after_long_help = AFTER)]
pub(super) struct Args {
    /// Listen on this TCP address.
    ///
    /// A loopback address: there is no TLS yet, so nothing else is accepted. Port 0 takes a free one, which the log
    /// and --ready-file tell.
    #[arg(long, value_name = "ADDRESS:PORT", env = "BERTH_TCP", default_value = "127.0.0.1:7117", help_heading = LISTEN)]
    pub(super) tcp: String,

    /// Do not listen on TCP.
    #[arg(long, env = "BERTH_NO_TCP", help_heading = LISTEN)]
    pub(super) no_tcp: bool,

    /// Listen on this unix socket.
    ///
    /// What a dead server left is replaced; a live server's is not. [default: /run/berth/berthd.sock if that folder
    /// is or can be made writable, else berth/berthd.sock in $XDG_RUNTIME_DIR, else none]
    #[arg(long, value_name = "PATH", env = "BERTH_UDS", help_heading = LISTEN)]
    pub(super) uds: Option<PathBuf>,

    /// Do not listen on a unix socket.
    #[arg(long, env = "BERTH_NO_UDS", help_heading = LISTEN)]
    pub(super) no_uds: bool,

    /// Write this file once the daemon serves: one JSON object with pid, tcp and uds.
    #[arg(long, value_name = "PATH", env = "BERTH_READY_FILE", help_heading = LISTEN)]
    pub(super) ready_file: Option<PathBuf>,

    /// Answer about the host in this hwloc XML instead of this one. Its load is not known.
    #[arg(long, value_name = "FILE", env = "BERTH_TOPOLOGY_XML", help_heading = HOST)]
    pub(super) topology_xml: Option<PathBuf>,

    /// Answer about the host of this hwloc synthetic description, such as "pack:2 [numa] l3:8 core:8 pu:2".
    #[arg(long, value_name = "TEXT", env = "BERTH_TOPOLOGY_SYNTHETIC", help_heading = HOST)]
    pub(super) topology_synthetic: Option<String>,

    /// The host's kernel, where it knows better: a release such as 6.12.95, or a profile's name.
    ///
    /// By default what the running kernel says of itself. Of a host that is not this one it is not known, and
    /// answers then hold for every released kernel.
    #[arg(long, value_name = "KERNEL", env = "BERTH_KERNEL", help_heading = HOST)]
    pub(super) kernel: Option<String>,

    /// The CPU vendor as /proc/cpuinfo has it, such as AuthenticAMD.
    #[arg(long, value_name = "VENDOR", env = "BERTH_CPU_VENDOR", help_heading = HOST)]
    pub(super) cpu_vendor: Option<String>,

    /// The CPU family in decimal, such as 26.
    #[arg(long, value_name = "NUMBER", env = "BERTH_CPU_FAMILY", help_heading = HOST)]
    pub(super) cpu_family: Option<String>,

    /// Time between two readings of the load, from 100ms to 1m.
    #[arg(long, value_name = "TIME", env = "BERTH_SAMPLE_INTERVAL", default_value = "1s", help_heading = LIMITS)]
    pub(super) sample_interval: String,

    /// The longest that a request may take; a caller's own deadline counts if it is shorter.
    #[arg(long, value_name = "TIME", env = "BERTH_DEADLINE", default_value = "30s", help_heading = LIMITS)]
    pub(super) deadline: String,

    /// Requests that are answered at a time; more are refused at once and told to try again.
    #[arg(long, value_name = "NUMBER", env = "BERTH_MAX_REQUESTS", default_value = "256", help_heading = LIMITS)]
    pub(super) max_requests: String,

    /// How long requests may still take after SIGTERM or SIGINT.
    #[arg(long, value_name = "TIME", env = "BERTH_SHUTDOWN_TIMEOUT", default_value = "5s", help_heading = LIMITS)]
    pub(super) shutdown_timeout: String,

    /// What is logged to stderr, in the form of RUST_LOG, such as debug or berthd=debug,info.
    #[arg(long, value_name = "FILTER", env = "BERTH_LOG", default_value = "info", help_heading = LOG)]
    pub(super) log: String,

    /// How it is logged: text or json.
    #[arg(long, value_name = "FORMAT", env = "BERTH_LOG_FORMAT", default_value = "text", help_heading = LOG)]
    pub(super) log_format: String,
}

const LISTEN: &str = "Where to listen";
const HOST: &str = "The host to answer about";
const LIMITS: &str = "Limits";
const LOG: &str = "Log";

const AFTER: &str = "\
Times are written 500ms, 2s or 1m. A flag counts before its variable of the environment.
HWLOC_* variables are ignored: they would make it read another host than this one.
Exit status: 0 stopped as told; 1 failed; 64 told something that cannot be; 69 could not listen.";

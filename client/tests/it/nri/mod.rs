//! The plugin of container runtimes: against a runtime of ours whose containers are real processes, a real berthd, and what a real
//! runtime was recorded to say.

mod failures;
mod given;
mod kubelet;
mod node;
mod placing;
mod plugin;
mod recorded;
mod replay;
mod wire;

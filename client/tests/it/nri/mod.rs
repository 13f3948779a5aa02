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

use crate::berthd::Berthd;

/// What the plugin counts once it has placed a container, as `/metrics` has it.
pub(crate) fn metrics_of_a_container() -> String {
    let server = Berthd::start();
    let place = plugin::Place::with_policy("none");
    let mut node = node::Node::listen(&place);
    let plugin = plugin::Plugin::start(&place, &server.address());
    node.take_in();
    let asks = [("berth.dev/policy", "spread")];
    let (id, _) = node.create(node::Wanted::new("one", &asks).limit(600));
    node.start(&id);
    let page = || plugin.page("/metrics");
    plugin::wait_until("it is looked at", || page().contains("berth_nri_containers_found_total{"), page);
    page()
}

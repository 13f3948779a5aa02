//! What `berth kube status` says of cpusets on this node.

use super::{keeper::Keeper, manager::Manager};
use crate::{cli::NriNode, connection::Connection, kube::status::Fact};

/// Who writes cpusets, and which were written.
pub(in crate::kube) async fn facts(node: &NriNode, connection: &Connection) -> Vec<Fact> {
    let manager = Manager::read(&node.cpu_manager_state);
    let said = format!("policy {manager}: {}", manager.meaning());
    let manager = match manager {
        Manager::None => Fact::good("CPU manager", said),
        Manager::Static => Fact::doubtful("CPU manager", said),
        Manager::Unknown => Fact::doubtful(
            "CPU manager",
            format!("{said} ({} says nothing of it)", node.cpu_manager_state.display()),
        ),
    };
    let socket = node.nri_socket.display();
    let runtime = if node.nri_socket.exists() {
        Fact::good("NRI", format!("the runtime takes plugins at {socket}"))
    } else {
        Fact::bad("NRI", format!("there is no {socket}: the runtime does not run, or takes no plugins"))
    };
    let keeper = Keeper::new(connection.clone());
    let held = match (keeper.all().await, keeper.given().await) {
        (Ok(placed), Ok(given)) => {
            let given = if given.is_empty() {
                String::new()
            } else {
                format!("; {} have CPUs of the kubelet's", given.len())
            };
            Fact::good("containers", format!("{} are placed by Berth{given}", placed.len()))
        }
        (Err(error), _) | (_, Err(error)) => Fact::bad("containers", error.to_string()),
    };
    vec![manager, runtime, held]
}

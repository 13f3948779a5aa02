//! `berth health`, as probes and scripts call it.

use crate::berthd::Berthd;

#[test]
fn a_server_that_serves_is_told_by_the_status_alone() {
    let server = Berthd::start();
    let said = server.berth(["health"]).answer();
    assert_eq!(said, format!("SERVING: berthd at {}\n", server.address()));
    assert_eq!(server.berth(["health", "-o", "json"]).json()["status"], "SERVING");
    let said = server.berth(["health", "berth.v1.HoldService"]).answer();
    assert_eq!(said, format!("SERVING: berth.v1.HoldService at {}\n", server.address()));
}

#[test]
fn what_does_not_serve_is_an_answer_and_counts_as_none() {
    let server = Berthd::start_with(["--no-tcp", "--state-dir", "none"]);
    server.berth(["health"]).answer();
    let said = server.berth(["health", "berth.v1.HoldService"]);
    assert_eq!((said.status, said.stderr.as_str()), (3, ""));
    assert_eq!(said.stdout, format!("NOT_SERVING: berth.v1.HoldService at {}\n", server.address()));
    let said = server.berth(["health", "berth.v1.Nothing"]).refusal(1);
    assert!(said.contains("NOT_FOUND"), "{said}");
}

//! Who asks, and what that one may do.

use crate::support::{Served, config, info, load, over_tcp, over_unix, placement};
use berth_proto::v1::{self, get_info_response::Role, hold_service_client::HoldServiceClient};
use tonic::{Code, Status, transport::Channel};
use tonic_types::StatusExt;

async fn role(channel: &Channel) -> Result<Role, Status> {
    let answer = info(channel).get_info(v1::GetInfoRequest {}).await?;
    Ok(answer.into_inner().role())
}

fn reason(status: &Status) -> (Code, String) {
    let details = status.get_error_details();
    let told = details.error_info().unwrap();
    assert_eq!(told.domain, "berth");
    (status.code(), told.reason.clone())
}

#[tokio::test(flavor = "multi_thread")]
async fn loopback_may_only_read_and_the_daemons_user_may_all() {
    let served = Served::start(&[]).await;
    let tcp = over_tcp(&served.daemon).await;
    assert_eq!(role(&tcp).await.unwrap(), Role::Read);
    let refused = HoldServiceClient::new(tcp.clone()).create_hold(v1::CreateHoldRequest::default()).await;
    assert_eq!(reason(&refused.unwrap_err()), (Code::PermissionDenied, "ROLE_TOO_LOW".to_owned()));
    let held = v1::AdviseRequest { tasks: 1, hold: Some(v1::HoldSpec::default()), ..Default::default() };
    let refused = placement(&tcp).advise(held).await.unwrap_err();
    assert_eq!(reason(&refused), (Code::PermissionDenied, "ROLE_TOO_LOW".to_owned()));
    let reports = tokio_stream::iter([v1::ReportLoadRequest::default()]);
    let refused = load(&tcp).report_load(reports).await.unwrap_err();
    assert_eq!(reason(&refused), (Code::PermissionDenied, "ROLE_TOO_LOW".to_owned()));
    assert_eq!(refused.get_error_details().error_info().unwrap().metadata["needed"], "admin");
    let unix = over_unix(served.daemon.uds().unwrap()).await;
    assert_eq!(role(&unix).await.unwrap(), Role::Admin);
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_that_name_nobody_let_nobody_in() {
    let nobody = ["--allow-read", "uid:4000000", "--allow-hold", "none", "--allow-admin", "none"];
    let served = Served::start(&nobody).await;
    let tcp = role(&over_tcp(&served.daemon).await).await.unwrap_err();
    assert_eq!(reason(&tcp), (Code::Unauthenticated, "CREDENTIALS_MISSING".to_owned()));
    let unix = role(&over_unix(served.daemon.uds().unwrap()).await).await.unwrap_err();
    assert_eq!(reason(&unix), (Code::PermissionDenied, "ROLE_TOO_LOW".to_owned()));
}

/// What SIGHUP changes counts for connections that are there already.
#[tokio::test(flavor = "multi_thread")]
async fn roles_change_while_it_runs() {
    let mut served = Served::start(&[]).await;
    let unix = over_unix(served.daemon.uds().unwrap()).await;
    assert_eq!(role(&unix).await.unwrap(), Role::Admin);
    let folder = tempfile::tempdir().unwrap();
    served.daemon.reload(Ok(config(folder.path(), &["--allow-admin", "none", "--allow-hold", "none"])));
    assert_eq!(role(&unix).await.unwrap(), Role::Read);
    served.daemon.reload(Ok(config(folder.path(), &["--allow-admin", "none"])));
    assert_eq!(role(&unix).await.unwrap(), Role::Hold);
}

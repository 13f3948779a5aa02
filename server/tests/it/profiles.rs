//! `ListProfiles`.

use crate::support::{Served, info, release};
use berth_proto::v1;

#[tokio::test(flavor = "multi_thread")]
async fn the_kernels_that_are_known() {
    let served = Served::start(&[]).await;
    for (_, channel) in served.channels().await {
        let list = async |request: v1::ListProfilesRequest| {
            info(&channel).list_profiles(request).await.unwrap().into_inner()
        };
        let released = list(v1::ListProfilesRequest::default()).await;
        let all = list(v1::ListProfilesRequest { all: true, kernel: None }).await;
        assert!(released.profiles.len() < all.profiles.len() && released.choice.is_none());
        let names: Vec<&str> = all.profiles.iter().map(|profile| profile.name.as_str()).collect();
        assert!(names.contains(&"mel-v5") && names.contains(&"6.12.97+"));
        let rule = |profile: &str, rule: &str| {
            let profile = all.profiles.iter().find(|known| known.name == profile).unwrap();
            profile.rules.iter().find(|known| known.name == rule).unwrap().value.clone()
        };
        assert_eq!(
            (rule("v6.12", "stats"), rule("6.12.97+", "stats")),
            ("all".to_owned(), "allowed".to_owned())
        );
        let fixed = all.profiles.iter().find(|profile| profile.name == "6.12.97+").unwrap();
        assert_eq!((fixed.since.as_slice(), fixed.released), (["6.12.97".to_owned()].as_slice(), true));
        for profile in &all.profiles {
            assert_eq!(profile.rules.len(), 10);
            assert!(
                profile.rules.iter().all(|rule| !rule.value.is_empty() && !rule.meaning.is_empty()),
                "{profile:?}"
            );
        }

        let chosen =
            list(v1::ListProfilesRequest { all: false, kernel: release("6.1.0-57-cloud-amd64") }).await;
        assert_eq!(chosen.profiles.len(), 2);
        assert_eq!(chosen.choice.unwrap().name, chosen.profiles[0].name, "likeliest first");
    }
}

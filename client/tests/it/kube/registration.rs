//! The kubelet knows the plugin, whatever becomes of either.

use std::{fs, os::unix::net::UnixListener, path::PathBuf};

use super::{
    CPU, berthd,
    kubelet::{Kubelet, Manner, wait},
    plugin::Plugin,
};

fn sockets(kubelet: &Kubelet) -> Vec<PathBuf> {
    let files = fs::read_dir(kubelet.plugin_dir()).expect("it is there").flatten().map(|file| file.path());
    files.filter(|path| path.to_string_lossy().contains("berth.dev_cpu-")).collect()
}

#[test]
fn it_serves_before_it_registers() {
    let (server, kubelet) = (berthd(), Kubelet::start());
    let plugin = Plugin::start(&kubelet, &server.address(), ["--reserved", "0,16-17"]);
    let devices = kubelet.wait_for(CPU, |devices| devices.len() == 15);
    assert_eq!(kubelet.calls(), ["Register", "GetDevicePluginOptions", "ListAndWatch"]);
    // Core 0 is reserved, and of core 1 a thread is left.
    let ids: Vec<&str> = devices.iter().map(|device| &*device.id).collect();
    assert_eq!((ids[0], ids[14]), ("core-1", "core-15"));
    assert!(devices.iter().all(|device| device.health == "Healthy"), "{devices:?}");
    let nodes = |i: usize| -> Vec<i64> {
        devices[i].topology.iter().flat_map(|topology| &topology.nodes).map(|node| node.id).collect()
    };
    assert_eq!((nodes(0), nodes(2), nodes(3), nodes(14)), (vec![0], vec![0], vec![1], vec![3]));
    assert!(plugin.log().iter().any(|line| line == "berth: 15 of 15 devices of berth.dev/cpu are healthy"));
}

#[test]
fn what_the_kubelet_has_reserved_is_no_device() {
    let (server, kubelet) = (berthd(), Kubelet::start());
    kubelet.gives((2..16).chain(18..32));
    let _plugin = Plugin::start(&kubelet, &server.address(), [""; 0]);
    kubelet.wait_for(CPU, |devices| devices.len() == 14);
    kubelet.gives((4..16).chain(20..32));
    kubelet.wait_for(CPU, |devices| devices.len() == 12);
}

#[test]
fn a_kubelet_that_starts_anew_knows_it_again() {
    let (server, mut kubelet) = (berthd(), Kubelet::start());
    let plugin = Plugin::start(&kubelet, &server.address(), [""; 0]);
    kubelet.wait_for(CPU, |devices| devices.len() == 16);
    let given = kubelet.admit("pod", "main", (CPU, 2), &[]).expect("there is room");
    for _ in 0..3 {
        let (before, said) = (kubelet.endpoint(CPU).expect("it is registered"), plugin.log().len());
        kubelet.stop();
        kubelet.forget_calls();
        kubelet.begin();
        kubelet.wait_for(CPU, |devices| devices.len() == 16);
        assert_eq!(kubelet.calls(), ["Register", "GetDevicePluginOptions", "ListAndWatch"]);
        let after = kubelet.endpoint(CPU).expect("it is registered");
        assert_ne!(before, after, "a name of its own for each socket");
        assert_eq!(sockets(&kubelet), [kubelet.plugin_dir().join(after)]);
        plugin.says(said, "is gone: the folder was emptied");
        plugin.says(said, "registered berth.dev/cpu with the kubelet");
    }
    // The pod has had its devices all the time.
    plugin.says(0, "given: ");
    let holds = super::held(&server);
    assert_eq!(holds.len(), 1, "{holds:?}");
    assert_eq!(Some(&given.told.envs["BERTH_HOLD"]), holds[0]["id"].as_str().map(str::to_owned).as_ref());
    plugin.log().iter().for_each(|line| println!("{line}"));
}

/// The inode of `kubelet.sock` may be the same again; the folder may be emptied by others, or be gone for a while.
#[test]
fn it_survives_what_happens_to_the_folder() {
    let (server, mut kubelet) = (berthd(), Kubelet::start());
    let mut plugin = Plugin::start(&kubelet, &server.address(), [""; 0]);
    kubelet.wait_for(CPU, |devices| devices.len() == 16);

    // Its own socket alone is lost.
    let before = kubelet.endpoint(CPU).expect("it is registered");
    fs::remove_file(kubelet.plugin_dir().join(&before)).expect("it is there");
    let after = wait(|| kubelet.endpoint(CPU).filter(|name| *name != before));
    kubelet.wait_for(CPU, |devices| devices.iter().all(|device| device.health == "Healthy"));

    // The kubelet's alone is made anew, and is another kubelet's.
    kubelet.stop();
    fs::remove_file(kubelet.plugin_dir().join("kubelet.sock")).expect("it is there");
    plugin.says(0, "kubelet.sock is gone");
    let kept = kubelet.plugin_dir().join("kept");
    fs::rename(kubelet.plugin_dir().join(&after), &kept).expect("it is there");
    kubelet.begin();
    kubelet.wait_for(CPU, |devices| devices.len() == 16);

    // The folder is gone.
    kubelet.stop();
    fs::remove_dir_all(kubelet.plugin_dir()).expect("it is there");
    plugin.says(0, "no socket can be made in");
    assert!(plugin.is_alive());
    kubelet.begin();
    kubelet.wait_for(CPU, |devices| devices.len() == 16);
}

#[test]
fn a_kubelet_that_refuses_is_asked_again() {
    let (server, kubelet) = (berthd(), Kubelet::start());
    kubelet.behave(Manner::Refusing);
    let plugin = Plugin::start(&kubelet, &server.address(), [""; 0]);
    wait(|| (kubelet.calls().len() >= 3).then_some(()));
    let said: Vec<String> =
        plugin.log().into_iter().filter(|line| line.contains("not registered: ")).collect();
    assert_eq!(said, ["berth: not registered: the kubelet refuses: the ResourceName is invalid"]);
    kubelet.behave(Manner::Good);
    kubelet.wait_for(CPU, |devices| devices.len() == 16);
}

#[test]
fn a_kubelet_that_does_not_watch_is_told_again() {
    for manner in [Manner::Forgetful, Manner::Fickle] {
        let (server, kubelet) = (berthd(), Kubelet::start());
        kubelet.behave(manner);
        let plugin = Plugin::start(&kubelet, &server.address(), [""; 0]);
        plugin.says(0, "registered berth.dev/cpu");
        plugin.says(0, "the kubelet does not watch the devices");
        kubelet.behave(Manner::Good);
        kubelet.wait_for(CPU, |devices| {
            devices.len() == 16 && devices.iter().all(|device| device.health == "Healthy")
        });
    }
}

#[test]
fn a_slow_kubelet_is_waited_for() {
    let (server, kubelet) = (berthd(), Kubelet::start());
    kubelet.behave(Manner::Slow);
    let plugin = Plugin::start(&kubelet, &server.address(), [""; 0]);
    kubelet.wait_for(CPU, |devices| devices.len() == 16);
    assert!(!plugin.log().iter().any(|line| line.contains("not registered")), "{:?}", plugin.log());
}

#[test]
fn a_socket_that_is_no_kubelets_harms_nobody() {
    let server = berthd();
    let mut kubelet = Kubelet::start();
    kubelet.stop();
    let door = kubelet.plugin_dir().join("kubelet.sock");
    fs::remove_file(&door).expect("it is there");
    // Nobody listens; then somebody who says nothing and hangs up.
    drop(UnixListener::bind(&door).expect("it can be made"));
    let mut plugin = Plugin::start(&kubelet, &server.address(), [""; 0]);
    plugin.says(0, "not registered: no kubelet answers at");
    fs::remove_file(&door).expect("it is there");
    let babbler = UnixListener::bind(&door).expect("it can be made");
    std::thread::spawn(move || {
        for mut caller in babbler.incoming().flatten().take(2) {
            let _ = std::io::Write::write_all(&mut caller, &[b'?'; 4096]);
        }
    });
    let said = plugin.log().len();
    plugin.says(said, "not registered: ");
    assert!(plugin.is_alive());
    kubelet.begin();
    kubelet.wait_for(CPU, |devices| devices.len() == 16);
}

#[test]
fn it_ends_cleanly_and_a_successor_removes_what_a_killed_one_left() {
    let (server, kubelet) = (berthd(), Kubelet::start());
    for signal in ["TERM", "INT"] {
        let mut plugin = Plugin::start(&kubelet, &server.address(), [""; 0]);
        kubelet.wait_for(CPU, |devices| devices.iter().any(|device| device.health == "Healthy"));
        kubelet.admit(signal, "main", (CPU, 2), &[]).expect("there is room");
        plugin.signal(signal);
        assert!(plugin.ended().success(), "{:?}", plugin.log());
        assert!(sockets(&kubelet).is_empty(), "{:?}", sockets(&kubelet));
        // The kubelet sees that it is gone.
        kubelet.wait_for(CPU, |devices| devices.iter().all(|device| device.health == "Unhealthy"));
    }
    // What containers have, they keep.
    assert_eq!(super::held(&server).len(), 2);

    let mut killed = Plugin::start(&kubelet, &server.address(), [""; 0]);
    kubelet.wait_for(CPU, |devices| devices.iter().any(|device| device.health == "Healthy"));
    let left = sockets(&kubelet);
    killed.signal("KILL");
    killed.ended();
    assert_eq!(sockets(&kubelet), left);
    let _successor = Plugin::start(&kubelet, &server.address(), [""; 0]);
    wait(|| (sockets(&kubelet).len() == 1 && sockets(&kubelet) != left).then_some(()));
    kubelet.wait_for(CPU, |devices| devices.iter().any(|device| device.health == "Healthy"));
    assert_eq!(super::held(&server).len(), 2, "the successor holds nothing twice");
}

#[test]
fn what_cannot_be_typed_is_refused() {
    for (flags, expected) in [
        (&["--resource", "cpu"][..], "write a domain and a name such as berth.dev/cpu"),
        (&["--resource", "kubernetes.io/cpu"], "kubernetes.io is Kubernetes' own"),
        (&["--reserved", "zero"], "--reserved"),
        (&["--devices", "threads"], "cores, llc"),
        (&["--every", "0s"], "write a time"),
    ] {
        let said = crate::berth::berth(["kube", "device-plugin"].iter().chain(flags)).refusal(2);
        assert!(said.contains(expected), "{flags:?}: {said}");
    }
}

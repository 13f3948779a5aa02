//! `berth map`: hosts as pictures. `BERTH_PICTURES=write` (`make pictures`) draws those of the documentation anew.

use std::{env, fs, path::Path};

use crate::{
    berth::{Said, berth_with, machine},
    berthd::Berthd,
};

const TURIN: &str = "seeds/turin-2s-l3-as-numa.xml";

fn map(server: &Berthd, flags: &[&str], locale: &str) -> Said {
    let address = server.address();
    let args = ["--server", &address, "map"].iter().chain(flags).copied().collect::<Vec<&str>>();
    let change = |command: &mut std::process::Command| {
        command.env_remove("LC_ALL").env_remove("LC_CTYPE").env("LANG", locale).env("COLUMNS", "80");
    };
    berth_with(args, change, "")
}

/// The picture of the README: what the kernel does with 176 tasks under `taskset -c 0-175`, and what Berth does.
#[test]
fn the_picture_of_the_readme_is_drawn_so() {
    let server = Berthd::start();
    let xml = machine(TURIN);
    let flags = [
        "-n",
        "176",
        "--cpus",
        "0-175",
        "--from",
        "0",
        "--host-xml",
        xml.to_str().unwrap(),
        "--kernel",
        "6.12.95",
        "--svg",
        "-",
    ];
    let drawn = map(&server, &flags, "C").answer();
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/pictures/turin.svg");
    if env::var_os("BERTH_PICTURES").is_some_and(|how| how == "write") {
        fs::write(&file, &drawn).unwrap();
    }
    assert!(
        drawn.contains("18.18 % of the CPU time") && drawn.contains("100.00 % of the CPU time"),
        "{drawn}"
    );
    assert_eq!(fs::read_to_string(&file).unwrap_or_default(), drawn, "`make pictures` draws it anew");
}

/// A cache with more CPUs than a line has room for takes several.
#[test]
fn no_line_is_wider_than_the_page() {
    let server = Berthd::start();
    for (synthetic, cpus) in [("pack:2 [numa] l3:1 core:56 pu:2", 224), ("[numa] l3:1 core:300 pu:1", 300)] {
        let drawn = map(&server, &["--host-synthetic", synthetic], "C.UTF-8").answer();
        assert!(drawn.lines().all(|line| line.chars().count() <= 80), "{drawn}");
        assert_eq!(drawn.matches('○').count(), cpus + 1, "and one in the legend: {drawn}");
    }
}

/// A screen of 80 columns and 24 lines holds 640 CPUs twice, without the legend and the prompt.
#[test]
fn a_large_host_fits_a_screen() {
    let server = Berthd::start();
    let xml = machine(TURIN);
    let host = ["--host-xml", xml.to_str().unwrap(), "--kernel", "6.12.95"];
    let question = [&["-n", "176", "--cpus", "0-175", "--from", "0"][..], &host].concat();
    let drawn = map(&server, &question, "C.UTF-8").answer();
    insta::assert_snapshot!("map_turin", drawn);
    assert!(drawn.lines().all(|line| line.chars().count() <= 80), "{drawn}");
    let ascii = map(&server, &question, "C").answer();
    assert!(ascii.is_ascii() && ascii.contains("++++++++++++++++ ----------------"), "{ascii}");
    let alone = map(&server, &host, "C.UTF-8").answer();
    assert!(
        alone.contains("640 CPUs") && alone.matches('○').count() == 641,
        "and one in the legend: {alone}"
    );
}

#[test]
fn this_host_and_strange_ones() {
    let server = Berthd::start();
    let here = map(&server, &[], "C.UTF-8").answer();
    assert!(here.contains(" CPU") && here.contains("idle"), "{here}");
    for synthetic in ["pu:1", "pack:1 [numa] core:3 pu:1", "pack:8 [numa] l3:8 core:8 pu:2", "core:300 pu:1"]
    {
        let said =
            map(&server, &["-n", "3", "--host-synthetic", synthetic, "--kernel", "6.12.95"], "C").answer();
        assert!(said.contains("Berth: "), "{synthetic}: {said}");
        let svg = ["-n", "3", "--host-synthetic", synthetic, "--kernel", "6.12.95", "--svg", "-"];
        let svg = map(&server, &svg, "C").answer();
        assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"), "{synthetic}");
    }
    let folder = tempfile::tempdir().unwrap();
    map(&server, &["--svg", folder.path().join(".").to_str().unwrap()], "C").refusal(2);
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 0, "nothing is left behind");
    let file = folder.path().join("map.svg");
    let said = map(&server, &["--svg", file.to_str().unwrap()], "C").answer();
    assert_eq!(said, format!("{} is written.\n", file.display()));
    assert!(fs::read_to_string(&file).unwrap().starts_with("<svg "));
    assert!(map(&server, &["--svg", "/nowhere/map.svg"], "C").refusal(2).contains("/nowhere/map.svg"));
    assert!(map(&server, &["-o", "json"], "C").refusal(2).contains("berth topology"));
    map(&server, &["--cpus", "0"], "C").refusal(2);
}

//! The picture as SVG: a square for each CPU, told by colour and by number, for light and dark pages.

use std::{collections::BTreeMap, fmt::Write as _};

use berth_model::Cpu;

use super::{Cache, Host, Look, Package, Scene};

/// The side of a CPU's square with the gap to the next.
const CELL: usize = 13;
const SQUARE: usize = 11;
/// Around a cache.
const PAD: usize = 5;
/// The line with a cache's name.
const NAME: usize = 13;
/// The line with a package's name.
const HEAD: usize = 22;
/// Title and what it comes to.
const TITLE: usize = 44;
const MARGIN: usize = 16;
/// A line below the legend.
const NOTE: usize = 16;
/// The widest picture, but for a single cache that is wider.
const WIDTH: usize = 1240;

/// The colours are those of Okabe and Ito, which the colour-blind tell apart; numbers say the same.
const STYLE: &str = "\
text{font:11px ui-sans-serif,system-ui,sans-serif;fill:#1f2328}\
.t{font-size:15px;font-weight:600}.s{font-size:12px}.n{font-size:8px;text-anchor:middle;fill:#fff}\
.box{fill:#f6f8fa;stroke:#d0d7de}\
.forbidden{fill:none;stroke:#c8ced4;stroke-dasharray:2 2}.idle{fill:#fff;stroke:#57606a}\
.busy{fill:#cfe4f3;stroke:#0072b2}.one{fill:#0072b2}.some{fill:#b57000}.many{fill:#c24100}\
@media(prefers-color-scheme:dark){text{fill:#e6edf3}.box{fill:#161b22;stroke:#30363d}\
.forbidden{stroke:#484f58}.idle{fill:#0d1117;stroke:#8b949e}.busy{fill:#12344d;stroke:#3a9bdc}.one{fill:#3a9bdc}.some{fill:#e69f00}.many{fill:#ff6a2b}.n{fill:#000}}";

/// The scenes below each other, as one document.
pub(crate) fn svg(host: &Host, scenes: &[Scene]) -> String {
    let row = row_of(host);
    let (panel, width) = (height_of(host, row), width_of(host, row) + 2 * MARGIN);
    let height = scenes.len() * (TITLE + panel + MARGIN) + HEAD + MARGIN + host.notes.len() * NOTE;
    let mut out = String::new();
    let title: Vec<&str> = scenes.iter().map(|scene| scene.title.as_str()).collect();
    // Writing to a text does not fail.
    let _ = write!(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\" role=\"img\">\n\
         <title>{}</title>\n<desc>{}</desc>\n<style>{STYLE}</style>\n",
        escaped(&title.join("; ")),
        escaped(&scenes.iter().map(|scene| scene.said.as_str()).collect::<Vec<_>>().join(" ")),
    );
    let mut y = MARGIN;
    for scene in scenes {
        text(&mut out, "t", MARGIN, y + 16, &scene.title);
        text(&mut out, "s", MARGIN, y + 34, &scene.said);
        packages(&mut out, host, scene, row, y + TITLE);
        y += TITLE + panel + MARGIN;
    }
    legend(&mut out, host, y);
    out += "</svg>\n";
    out
}

fn packages(out: &mut String, host: &Host, scene: &Scene, row: usize, mut y: usize) {
    for package in &host.packages {
        text(out, "s", MARGIN, y + 14, &format!("package {}", package.id));
        y += HEAD;
        for caches in package.caches.chunks(row) {
            let mut x = MARGIN;
            for one in caches {
                cache(out, host, one, scene, (x, y));
                x += cache_width(one) + PAD;
            }
            y += row_height(caches) + PAD;
        }
    }
}

fn cache(out: &mut String, host: &Host, cache: &Cache, scene: &Scene, (x, y): (usize, usize)) {
    let (width, height) = (cache_width(cache), cache_height(cache));
    let name = match cache.node {
        Some(node) if host.nodes_are_caches() => format!("node {node}"),
        Some(node) => format!("node {node}, LLC {}", cache.id),
        None => format!("LLC {}", cache.id),
    };
    let _ = writeln!(
        out,
        "<rect class=\"box\" x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" rx=\"3\"><title>{name}: CPUs {}</title></rect>",
        cache.cpus()
    );
    text(out, "", x + PAD, y + NAME - 2, &name);
    // Those without a task are one path for each look: there are many.
    let mut empty: BTreeMap<Look, String> = BTreeMap::new();
    for (row, thread) in cache.threads.iter().enumerate() {
        for (column, cpu) in thread.iter().enumerate() {
            let Some(cpu) = *cpu else { continue };
            let (x, y) = (x + PAD + column * CELL, y + NAME + 2 + row * CELL);
            if scene.tasks_on(cpu) > 0 {
                square(out, scene, cpu, (x, y));
            } else {
                let path = empty.entry(scene.look(cpu)).or_default();
                let _ = write!(path, "M{x} {y}h{SQUARE}v{SQUARE}h-{SQUARE}z");
            }
        }
    }
    for (look, path) in empty {
        let _ = writeln!(out, "<path class=\"{}\" d=\"{path}\"/>", class(look));
    }
}

/// A CPU with tasks.
fn square(out: &mut String, scene: &Scene, cpu: Cpu, (x, y): (usize, usize)) {
    let (look, tasks) = (scene.look(cpu), scene.tasks_on(cpu));
    let said = if tasks == 1 { "1 task".to_owned() } else { format!("{tasks} tasks") };
    let _ = write!(
        out,
        "<rect class=\"{}\" x=\"{x}\" y=\"{y}\" width=\"{SQUARE}\" height=\"{SQUARE}\"><title>CPU {cpu}: {said}</title></rect>",
        class(look)
    );
    text(out, "n", x + SQUARE / 2, y + SQUARE - 2, &tasks.to_string());
}

fn class(look: Look) -> &'static str {
    match look {
        Look::Forbidden => "forbidden",
        Look::Idle => "idle",
        Look::Busy => "busy",
        Look::One => "one",
        Look::Some => "some",
        Look::Many => "many",
    }
}

fn legend(out: &mut String, host: &Host, y: usize) {
    let mut x = MARGIN;
    for look in Look::ALL {
        let _ = writeln!(
            out,
            "<rect class=\"{}\" x=\"{x}\" y=\"{y}\" width=\"{SQUARE}\" height=\"{SQUARE}\" rx=\"2\"/>",
            class(look)
        );
        text(out, "", x + CELL + 3, y + SQUARE - 1, look.words());
        x += 40 + 7 * look.words().len();
    }
    for (note, line) in host.notes.iter().zip(1..) {
        text(out, "", MARGIN, y + SQUARE + line * NOTE, note);
    }
}

fn text(out: &mut String, class: &str, x: usize, y: usize, text: &str) {
    let class = if class.is_empty() { String::new() } else { format!(" class=\"{class}\"") };
    let _ = writeln!(out, "<text{class} x=\"{x}\" y=\"{y}\">{}</text>", escaped(text));
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

fn cache_width(cache: &Cache) -> usize {
    let cores = cache.threads.iter().map(Vec::len).max().unwrap_or(0);
    (2 * PAD + cores * CELL).max(70)
}

fn cache_height(cache: &Cache) -> usize {
    NAME + cache.threads.len() * CELL + PAD
}

fn row_height(caches: &[Cache]) -> usize {
    caches.iter().map(cache_height).max().unwrap_or(0)
}

/// How many caches stand beside each other.
fn row_of(host: &Host) -> usize {
    let widest = host.caches().map(|(_, cache)| cache_width(cache)).max().unwrap_or(1);
    let most = host.packages.iter().map(|package| package.caches.len()).max().unwrap_or(1).max(1);
    let fits = (WIDTH / (widest + PAD)).clamp(1, most);
    // As many rows, and no ragged one if that can be.
    most.div_ceil(most.div_ceil(fits))
}

fn width_of(host: &Host, row: usize) -> usize {
    let of = |package: &Package| {
        let rows = package.caches.chunks(row);
        rows.map(|caches| caches.iter().map(|cache| cache_width(cache) + PAD).sum()).max().unwrap_or(0)
    };
    host.packages.iter().map(of).max().unwrap_or(0).max(560)
}

fn height_of(host: &Host, row: usize) -> usize {
    let of = |package: &Package| {
        HEAD + package.caches.chunks(row).map(|caches| row_height(caches) + PAD).sum::<usize>()
    };
    host.packages.iter().map(of).sum()
}

#[cfg(test)]
mod tests {
    use super::{super::tests::irregular, *};
    use berth_model::CpuSet;

    #[test]
    fn a_square_for_each_cpu_with_its_number() {
        let scene = Scene {
            title: "2 < 3 & \"so\"".to_owned(),
            said: "said of it".to_owned(),
            allowed: CpuSet::parse("0-3").unwrap(),
            tasks: [(Cpu::from(1), 12)].into(),
            busy: Default::default(),
        };
        let drawn = svg(&Host::of(&irregular()), &[scene]);
        assert!(drawn.contains("<title>2 &lt; 3 &amp; &quot;so&quot;</title>"), "{drawn}");
        assert_eq!(drawn.matches(&format!("h{SQUARE}v{SQUARE}h-{SQUARE}z")).count(), 6);
        assert!(drawn.contains("<title>node 1: CPUs 2-3,6</title>"), "{drawn}");
        assert!(
            drawn.contains("class=\"many\"")
                && drawn.contains("CPU 1: 12 tasks")
                && drawn.contains(">12</text>")
        );
        assert!(drawn.contains("memory only: 2") && !drawn.contains("<script"));
    }
}

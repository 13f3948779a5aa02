//! The picture in a terminal: a line for each last-level cache, a letter for each CPU.

use anstyle::{AnsiColor, Style};
use berth_model::Cpu;

use super::{Host, Look, Scene, empty};
use crate::text::{Page, Tone};

/// Between two pictures beside each other.
const GAP: &str = "   ";
/// The least that a cache's letters are given.
const LEAST: usize = 8;

/// The scenes beside each other if the page is wide enough, else below each other. `ascii`: no other letters.
pub(crate) fn terminal(host: &Host, scenes: &[Scene], ascii: bool, page: Page) -> String {
    let labels = host.names();
    let label = labels.iter().map(|label| label.chars().count()).max().unwrap_or(0);
    let room = page.width.saturating_sub(label + 2).max(LEAST);
    let width = host.caches().map(|(_, cache)| cache.width()).max().unwrap_or(0).min(room);
    let beside = (room + GAP.len()) / (width + GAP.len()).max(1);
    let mut out = String::new();
    for group in scenes.chunks(beside.clamp(1, scenes.len().max(1))) {
        let pad = " ".repeat(label + 2);
        for line in heads(group, width, |scene| &scene.title) {
            out += &format!("{pad}{}\n", Tone::Heading.paint(line.trim_end(), page.colour));
        }
        for line in heads(group, width, |scene| &scene.said) {
            out += &format!("{pad}{}\n", line.trim_end());
        }
        for ((package, cache), name) in host.caches().zip(&labels) {
            if package.starts_with(cache) && host.packages.len() > 1 {
                out += &Tone::Heading.paint(&format!("package {}", package.id), page.colour);
                out.push('\n');
            }
            for (nth, threads) in cache.lines(width).iter().enumerate() {
                let name = if nth == 0 { name } else { "" };
                let parts = group.iter().map(|scene| line(threads, scene, ascii, page.colour, width));
                let text = parts.collect::<Vec<_>>().join(GAP);
                out += &format!("{name:label$}  {}\n", text.trim_end());
            }
        }
        out.push('\n');
    }
    for note in &host.notes {
        out += &format!("{note}\n");
    }
    out += &legend(ascii, page.colour);
    out
}

/// A text of each scene, broken to its width, line by line.
fn heads<'a>(scenes: &'a [Scene], width: usize, text: impl Fn(&'a Scene) -> &'a String) -> Vec<String> {
    let width = width.max(24);
    let broken: Vec<Vec<String>> = scenes.iter().map(|scene| words(text(scene), width)).collect();
    let height = broken.iter().map(Vec::len).max().unwrap_or(0);
    let line = |nth: usize| {
        let part = |lines: &Vec<String>| format!("{:width$}", lines.get(nth).map_or("", String::as_str));
        broken.iter().map(part).collect::<Vec<_>>().join(GAP)
    };
    (0..height).map(line).collect()
}

fn words(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let Some(last) = lines.last_mut() else { break };
        if last.is_empty() {
            last.push_str(word);
        } else if last.chars().count() + 1 + word.chars().count() <= width {
            *last = format!("{last} {word}");
        } else {
            lines.push(word.to_owned());
        }
    }
    lines.retain(|line| !line.is_empty());
    lines
}

fn line(threads: &[&[Option<Cpu>]], scene: &Scene, ascii: bool, colour: bool, width: usize) -> String {
    let used = threads.iter().map(|thread| thread.len()).sum::<usize>() + threads.len().saturating_sub(1);
    let threads = threads.iter().map(|thread| {
        let letter = |cpu: &Option<Cpu>| match cpu {
            Some(cpu) => {
                let (look, letter) = scene.letter(*cpu, ascii);
                paint(look, &letter, colour)
            }
            None => " ".to_owned(),
        };
        thread.iter().map(letter).collect::<String>()
    });
    let text = threads.collect::<Vec<_>>().join(" ");
    format!("{text}{}", " ".repeat(width.saturating_sub(used)))
}

fn paint(look: Look, text: &str, colour: bool) -> String {
    let style = match look {
        Look::Forbidden => Style::new().dimmed(),
        Look::Idle => Style::new(),
        Look::Busy | Look::One => AnsiColor::Cyan.on_default(),
        Look::Some => AnsiColor::Yellow.on_default().bold(),
        Look::Many => AnsiColor::Red.on_default().bold().invert(),
    };
    if colour { format!("{style}{text}{style:#}") } else { text.to_owned() }
}

fn legend(ascii: bool, colour: bool) -> String {
    let words = |look: Look| match look {
        Look::One | Look::Some => None,
        Look::Many => Some("1-9 tasks, + more".to_owned()),
        other => Some(format!("{} {}", paint(other, empty(other, ascii), colour), other.words())),
    };
    let all: Vec<String> = Look::ALL.into_iter().filter_map(words).collect();
    format!("{}\n", all.join("   "))
}

#[cfg(test)]
mod tests {
    use super::{super::tests::irregular, *};
    use berth_model::CpuSet;

    fn drawn(width: usize, ascii: bool) -> String {
        let scene = |title: &str, tasks: &[(u16, u32)]| Scene {
            title: title.to_owned(),
            said: "said of it".to_owned(),
            allowed: CpuSet::parse("0-3").unwrap(),
            tasks: tasks.iter().map(|&(cpu, tasks)| (Cpu::from(cpu), tasks)).collect(),
            busy: [(Cpu::from(6), 0.9)].into(),
        };
        let scenes = [scene("the kernel", &[(0, 1), (1, 12)]), scene("Berth", &[(0, 1), (2, 1)])];
        terminal(&Host::of(&irregular()), &scenes, ascii, Page { width, colour: false, verbose: false })
    }

    #[test]
    fn beside_each_other_or_below() {
        insta::assert_snapshot!("beside", drawn(80, false));
        insta::assert_snapshot!("below", drawn(12, true));
        assert!(drawn(80, true).is_ascii());
    }
}

//! `berth top`: what the screen shows of what is known.

use std::collections::BTreeMap;

use berth_model::{Cpu, CpuSet};
use berth_proto::v1::{Hold, Load, hold};
use ratatui::{
    Frame,
    layout::{Constraint, Layout, Rect},
    style::{Color, Modifier, Style, Stylize as _},
    text::{Line, Span},
    widgets::{Clear, Paragraph},
};

use super::map::{Host, Look, Scene};
use crate::text::cpus;

/// What is known, and which part of it is looked at.
#[derive(Debug, Default)]
pub(crate) struct Top {
    pub(crate) host: Host,
    /// What the host is called.
    pub(crate) title: String,
    scene: Scene,
    said: String,
    holds: BTreeMap<String, Hold>,
    /// Why nothing new comes.
    pub(crate) away: Option<String>,
    /// Lines of the host that were scrolled past.
    scroll: usize,
    pub(crate) help: bool,
    ascii: bool,
}

impl Top {
    /// A host of which nothing else is known yet. `ascii`: no other letters.
    pub(crate) fn new(host: Host, title: String, ascii: bool) -> Self {
        Self { host, title, ascii, ..Self::default() }
    }

    /// Takes a sample in.
    pub(crate) fn load(&mut self, load: &Load, online: CpuSet, age: &str) {
        let mut scene = Scene { allowed: online, ..Scene::default() };
        let (mut tasks, mut busy) = (0, 0.0);
        for entry in &load.cpus {
            for cpu in &CpuSet::parse(&entry.cpus).unwrap_or_default() {
                let runnable = entry.runnable.unwrap_or(0);
                tasks += runnable;
                if runnable > 0 {
                    scene.tasks.insert(cpu, runnable);
                }
                if let Some(share) = entry.utilisation {
                    busy += share;
                    scene.busy.insert(cpu, share);
                }
            }
        }
        self.said = match load.known {
            true => {
                format!("{} CPUs, {busy:.1} busy, {tasks} runnable tasks, {age} old", scene.allowed.len())
            }
            false => format!("{} CPUs; what runs is not known yet", scene.allowed.len()),
        };
        self.scene = scene;
        self.away = None;
    }

    /// Takes changes of holds in; `complete`: any other is gone.
    pub(crate) fn holds(&mut self, changed: Vec<Hold>, complete: bool) {
        if complete {
            self.holds.clear();
        }
        for hold in changed {
            if hold.state() == hold::State::Ended {
                self.holds.remove(&hold.id);
            } else {
                self.holds.insert(hold.id.clone(), hold);
            }
        }
    }

    /// Scrolls by so many lines; past the last one there is nothing, which drawing sees to.
    pub(crate) fn by(&mut self, lines: isize) {
        self.scroll = self.scroll.saturating_add_signed(lines);
    }

    /// Draws all of it.
    pub(crate) fn draw(&mut self, frame: &mut Frame<'_>) {
        let holds = u16::try_from(self.holds.len() + 1).unwrap_or(u16::MAX);
        let most = frame.area().height / 3;
        let [head, host, crowd, kept, foot] = Layout::vertical([
            Constraint::Length(2),
            Constraint::Min(3),
            Constraint::Length(1),
            Constraint::Length(holds.clamp(2, most.max(2))),
            Constraint::Length(1),
        ])
        .areas(frame.area());
        self.head(frame, head);
        self.caches(frame, host);
        frame.render_widget(self.crowded(), crowd);
        self.held(frame, kept);
        frame.render_widget(Line::from("q quit   ↑ ↓ PgUp PgDn scroll   ? help").dim(), foot);
        if self.help {
            help(frame);
        }
    }

    fn head(&self, frame: &mut Frame<'_>, area: Rect) {
        let title = Line::from(Span::styled(format!("berth top: {}", self.title), Modifier::BOLD));
        let said = match &self.away {
            Some(why) => Line::from(Span::styled(why.clone(), style(Look::Many))),
            None => Line::from(self.said.clone()),
        };
        frame.render_widget(Paragraph::new(vec![title, said]), area);
    }

    fn caches(&mut self, frame: &mut Frame<'_>, area: Rect) {
        let mut lines: Vec<Line<'static>> = Vec::new();
        let names = self.host.names();
        let width = names.iter().map(|name| name.chars().count()).max().unwrap_or(0);
        let room = usize::from(area.width).saturating_sub(width + 2).max(1);
        for ((package, cache), name) in self.host.caches().zip(&names) {
            if package.starts_with(cache) && self.host.packages() > 1 {
                lines.push(Line::from(Span::styled(format!("package {}", package.id()), Modifier::BOLD)));
            }
            for (nth, threads) in cache.lines(room).iter().enumerate() {
                let name = if nth == 0 { name } else { "" };
                let mut spans = vec![Span::from(format!("{name:width$}  "))];
                for (nth, thread) in threads.iter().enumerate() {
                    if nth > 0 {
                        spans.push(Span::from(" "));
                    }
                    spans.extend(thread.iter().map(|cpu| self.letter(*cpu)));
                }
                lines.push(Line::from(spans));
            }
        }
        let last = lines.len().saturating_sub(usize::from(area.height));
        self.scroll = self.scroll.min(last);
        let shown: Vec<Line<'_>> =
            lines.into_iter().skip(self.scroll).take(usize::from(area.height)).collect();
        frame.render_widget(Paragraph::new(shown), area);
    }

    fn letter(&self, cpu: Option<Cpu>) -> Span<'static> {
        let Some(cpu) = cpu else { return Span::from(" ") };
        let (look, letter) = self.scene.letter(cpu, self.ascii);
        Span::styled(letter, style(look))
    }

    /// Whether CPUs have several tasks while others idle.
    fn crowded(&self) -> Line<'_> {
        let crowded: CpuSet =
            self.scene.tasks.iter().filter(|(_, tasks)| **tasks > 1).map(|(cpu, _)| *cpu).collect();
        let idle = self.scene.allowed.iter().filter(|cpu| self.scene.look(*cpu) == Look::Idle).count();
        if crowded.is_empty() || idle == 0 {
            return Line::from("No CPU has several tasks while others are idle.").dim();
        }
        let cpus = cpus::short(&crowded.to_string(), false);
        let said = format!("Several tasks on CPUs {cpus} while {idle} are idle: berth verify --all");
        Line::from(Span::styled(said, style(Look::Some)))
    }

    fn held(&self, frame: &mut Frame<'_>, area: Rect) {
        let title = match self.holds.len() {
            0 => "Nothing is held.".to_owned(),
            1 => "1 hold".to_owned(),
            many => format!("{many} holds"),
        };
        let mut lines = vec![Line::from(Span::styled(title, Modifier::BOLD))];
        for hold in self.holds.values() {
            let name = if hold.name.is_empty() { &hold.id } else { &hold.name };
            let cpus = if hold.cpus.is_empty() { "a claim" } else { &hold.cpus };
            let whose = format!("uid {}", hold.uid);
            let wrong = if hold.violations.is_empty() { "" } else { "  violated" };
            lines.push(Line::from(format!(
                "  {name}  CPUs {}  {} tasks  {whose}  {}{wrong}",
                cpus::short(cpus, false),
                hold.tasks,
                hold.mode().as_str_name().to_ascii_lowercase()
            )));
        }
        let left = lines.len().saturating_sub(usize::from(area.height));
        if left > 0 {
            lines.truncate(usize::from(area.height).saturating_sub(1));
            lines.push(Line::from(format!("  and {} more: berth holds --all", left + 1)));
        }
        frame.render_widget(Paragraph::new(lines), area);
    }
}

fn help(frame: &mut Frame<'_>) {
    let lines = [
        "",
        "  A letter for each CPU: ○ idle, 1-9 runnable tasks, + more, ● busy where tasks",
        "  are not counted. A line for each last-level cache: first the first hardware",
        "  threads of its cores, then the second ones.",
        "",
        "  ↑ k   ↓ j        a line       PgUp PgDn     ten lines",
        "  Home End         the ends     q Esc Ctrl-C  quit",
        "",
    ];
    let area = frame.area();
    let height = u16::try_from(lines.len()).unwrap_or(8).min(area.height);
    let width = 82.min(area.width);
    let at = Rect::new((area.width - width) / 2, (area.height - height) / 2, width, height);
    frame.render_widget(Clear, at);
    let text: Vec<Line<'_>> = lines.into_iter().map(Line::from).collect();
    frame.render_widget(Paragraph::new(text).style(Style::new().add_modifier(Modifier::REVERSED)), at);
}

fn style(look: Look) -> Style {
    match look {
        Look::Forbidden => Style::new().add_modifier(Modifier::DIM),
        Look::Idle => Style::new(),
        Look::Busy | Look::One => Style::new().fg(Color::Cyan),
        Look::Some => Style::new().fg(Color::Yellow).add_modifier(Modifier::BOLD),
        Look::Many => Style::new().fg(Color::Red).add_modifier(Modifier::BOLD),
    }
}

#[cfg(test)]
mod tests {
    use berth_proto::v1::{Core, CpuLoad, Topology};
    use ratatui::{Terminal, backend::TestBackend};

    use super::*;

    /// Two packages of four caches of eight cores, two threads each.
    fn top() -> Top {
        let core = |number: u32| {
            let (package, llc) = (number / 32, number / 8);
            let cpus = format!("{number},{}", number + 64);
            Core { cpus, llc, node: Some(package), package, ..Core::default() }
        };
        let topology = Topology { cores: (0..64).map(core).collect(), ..Topology::default() };
        let mut top = Top { host: Host::of(&topology), title: "a host".to_owned(), ..Top::default() };
        let entry = |cpus: &str, runnable, busy| CpuLoad {
            cpus: cpus.to_owned(),
            runnable: Some(runnable),
            utilisation: Some(busy),
            ..CpuLoad::default()
        };
        let cpus =
            vec![entry("0-3", 1, 1.0), entry("32", 12, 1.0), entry("64-65", 2, 1.0), entry("66-127", 0, 0.0)];
        let load = Load { known: true, cpus, ..Load::default() };
        top.load(&load, CpuSet::parse("0-127").unwrap(), "0.4 s");
        let hold = |id: &str, cpus: &str| Hold {
            id: id.to_owned(),
            cpus: cpus.to_owned(),
            tasks: 4,
            uid: 1000,
            state: hold::State::Active.into(),
            mode: hold::Mode::Exclusive.into(),
            ..Hold::default()
        };
        top.holds((1..=12).map(|id| hold(&format!("h{id}"), "8-11")).collect(), true);
        top.holds(vec![Hold { state: hold::State::Ended.into(), ..hold("h2", "8") }], false);
        top
    }

    fn drawn(top: &mut Top, width: u16, height: u16) -> String {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        terminal.draw(|frame| top.draw(frame)).unwrap();
        let text = terminal.backend().to_string();
        text.lines().map(|line| line.trim_matches('"').trim_end().to_owned() + "\n").collect()
    }

    #[test]
    fn small_and_large_screens() {
        let mut top = top();
        insta::assert_snapshot!("small", drawn(&mut top, 80, 24));
        top.help = true;
        insta::assert_snapshot!("help", drawn(&mut top, 100, 40));
        // However small it is.
        for (width, height) in [(1, 1), (10, 3), (500, 2), (20, 200)] {
            drawn(&mut top, width, height);
        }
    }

    #[test]
    fn scrolled_and_away() {
        let mut top = top();
        top.by(1000);
        top.away = Some("no berthd answers".to_owned());
        let text = drawn(&mut top, 60, 12);
        assert!(text.contains("no berthd answers") && text.contains("LLC 7"), "{text}");
        top.by(-1);
        assert!(!drawn(&mut top, 60, 12).contains("LLC 7"), "each key is seen");
        top.by(-1000);
        assert!(drawn(&mut top, 60, 12).contains("LLC 0"));
    }
}

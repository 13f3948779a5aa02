//! `berth top`: load, holds and pile-ups of this host, live.

use std::{
    cell::RefCell,
    io::{self, IsTerminal as _},
    thread,
    time::Duration,
};

use berth_model::CpuSet;
use berth_proto::v1::{
    GetTopologyRequest, WatchHoldsRequest, WatchLoadRequest, hold_service_client::HoldServiceClient,
    load_service_client::LoadServiceClient, topology_service_client::TopologyServiceClient, view,
};
use ratatui::{
    DefaultTerminal,
    crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers},
};
use tokio::{
    signal::unix::{SignalKind, signal},
    sync::mpsc,
    time::sleep,
};

use super::{Answer, Asker, map};
use crate::{
    Error, Exit,
    cli::Top as Asked,
    connection::{MAX_ANSWER, Next},
    render::{Host, Top},
    text::numbers,
};

/// How long to wait before a server that is away is asked again.
const AGAIN: Duration = Duration::from_secs(1);

pub(super) async fn answer(args: &Asked, asker: &Asker) -> Result<Answer, Error> {
    if !io::stdout().is_terminal() || !io::stdin().is_terminal() {
        return Err(Error::NoTerminal);
    }
    // What cannot be had at first is an error, and not a screen that says so.
    let (host, title, online) = topology(asker).await?;
    let terminal = ratatui::try_init().map_err(Error::Output)?;
    let top = Top::new(host, title, args.ascii || !map::is_utf8());
    let mut screen = Screen { terminal, top, online };
    screen.draw();
    let screen = RefCell::new(screen);
    let ended = tokio::select! {
        ended = keys(&screen) => ended,
        ended = told_to_end() => ended,
        never = follow_load(&screen, asker) => match never {},
        never = follow_holds(&screen, asker) => match never {},
    };
    ratatui::restore();
    ended.map_err(Error::Output)?;
    Ok(Answer { document: String::new(), warnings: Vec::new(), exit: Exit::Answered, asked: true })
}

/// The terminal, and what it shows.
struct Screen {
    terminal: DefaultTerminal,
    top: Top,
    online: CpuSet,
}

impl Screen {
    /// Says that nothing new comes.
    fn away(&mut self, why: &Error) {
        self.top.away = Some(why.to_string());
        self.draw();
    }

    /// Draws anew. Who cannot see it is gone, and the keys tell.
    fn draw(&mut self) {
        let Self { terminal, top, .. } = self;
        let _ = terminal.draw(|frame| top.draw(frame));
    }
}

async fn topology(asker: &Asker) -> Result<(Host, String, CpuSet), Error> {
    let request = GetTopologyRequest { host: None, view: view::Value::Full.into() };
    let response = asker
        .connection
        .ask(request, async |channel, request| {
            let mut client = TopologyServiceClient::new(channel).max_decoding_message_size(MAX_ANSWER);
            client.get_topology(request).await
        })
        .await?;
    let topology = response.topology.unwrap_or_default();
    let title = if topology.model.is_empty() { "this host".to_owned() } else { topology.model.clone() };
    Ok((Host::of(&topology), title, CpuSet::parse(&topology.online).unwrap_or_default()))
}

/// Shows each sample. A server that goes away is asked again, and its host may be another one then.
async fn follow_load(screen: &RefCell<Screen>, asker: &Asker) -> std::convert::Infallible {
    loop {
        let request = WatchLoadRequest { view: view::Value::Full.into(), ..WatchLoadRequest::default() };
        let mut generation = None;
        let followed = asker.connection.follow(
            request,
            async |channel, request| {
                let mut client = LoadServiceClient::new(channel).max_decoding_message_size(MAX_ANSWER);
                client.watch_load(request).await
            },
            |message| {
                let snapshot = message.snapshot.unwrap_or_default();
                let now = Some(snapshot.topology_generation);
                if generation.is_some() && generation != now {
                    return Ok(Next::Stop);
                }
                generation = now;
                let mut screen = screen.borrow_mut();
                let online = screen.online.clone();
                let age = numbers::wire_time(snapshot.load_age);
                screen.top.load(&message.load.unwrap_or_default(), online, &age);
                screen.draw();
                Ok(Next::GoOn)
            },
        );
        match followed.await {
            Ok(()) => {}
            Err(error) => {
                screen.borrow_mut().away(&error);
                sleep(AGAIN).await;
            }
        }
        if let Ok((host, title, online)) = topology(asker).await {
            let mut screen = screen.borrow_mut();
            (screen.top.host, screen.top.title, screen.online) = (host, title, online);
        }
    }
}

/// Shows each change of the holds that this user may see.
async fn follow_holds(screen: &RefCell<Screen>, asker: &Asker) -> std::convert::Infallible {
    loop {
        let followed = asker.connection.follow(
            WatchHoldsRequest { uid: None },
            async |channel, request| {
                let mut client = HoldServiceClient::new(channel).max_decoding_message_size(MAX_ANSWER);
                client.watch_holds(request).await
            },
            |message| {
                let mut screen = screen.borrow_mut();
                screen.top.holds(message.holds, message.complete);
                screen.draw();
                Ok(Next::GoOn)
            },
        );
        // The load tells that the server is away.
        let _ = followed.await;
        sleep(AGAIN).await;
    }
}

/// Does what is typed, until that is to quit.
async fn keys(screen: &RefCell<Screen>) -> io::Result<()> {
    let (sender, mut typed) = mpsc::channel(16);
    // Reading blocks, and ends with this process.
    thread::spawn(move || {
        while let event = event::read()
            && let is_last = event.is_err()
            && sender.blocking_send(event).is_ok()
            && !is_last
        {}
    });
    while let Some(event) = typed.recv().await {
        let mut screen = screen.borrow_mut();
        if let Event::Key(key) = event?
            && key.kind != KeyEventKind::Release
            && quits(&mut screen.top, key)
        {
            return Ok(());
        }
        screen.draw();
    }
    Ok(())
}

/// Whether the key means to quit; else it does what it does.
fn quits(top: &mut Top, key: KeyEvent) -> bool {
    let is_control = key.modifiers.contains(KeyModifiers::CONTROL);
    match key.code {
        KeyCode::Char('c') if is_control => return true,
        KeyCode::Esc | KeyCode::Char('q' | '?' | 'h') if top.help => top.help = false,
        KeyCode::Char('q') | KeyCode::Esc => return true,
        KeyCode::Char('?' | 'h') => top.help = true,
        KeyCode::Up | KeyCode::Char('k') => top.by(-1),
        KeyCode::Down | KeyCode::Char('j') => top.by(1),
        KeyCode::PageUp => top.by(-10),
        KeyCode::PageDown | KeyCode::Char(' ') => top.by(10),
        KeyCode::Home => top.by(isize::MIN + 1),
        KeyCode::End => top.by(isize::MAX),
        _ => {}
    }
    false
}

/// Waits for a signal to end.
async fn told_to_end() -> io::Result<()> {
    let (mut terminate, mut hangup) = (signal(SignalKind::terminate())?, signal(SignalKind::hangup())?);
    // Ctrl-C is a key here; this is what others send.
    let mut interrupt = signal(SignalKind::interrupt())?;
    tokio::select! {
        _ = terminate.recv() => {}
        _ = hangup.recv() => {}
        _ = interrupt.recv() => {}
    }
    Ok(())
}

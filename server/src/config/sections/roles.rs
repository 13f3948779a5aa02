//! Who may do what.

use super::prelude::*;
use crate::{auth::Subject, config::parse::Form};

section! {
    /// Who may do what.
    Roles "roles";

    /// Who may ask.
    ///
    /// `unix` is every process that reaches the unix socket, `loopback` this host over TCP, `tcp` every host over TCP,
    /// `certificate` every certificate of the client CA, `daemon` the user that berthd runs as. One of them by name:
    /// uid:1000, user:slurm, gid:27, group:batch, cert:agent.example. Users and groups count over the unix socket alone.
    read: Vec<Subject> =
        Setting::new("allow-read", "WHO", parse::list(subject())).or("unix,loopback,certificate").live();

    /// Who may ask and hold CPUs.
    ///
    /// A certificate needs the uid that its holds belong to: cert:agent.example=1000.
    hold: Vec<Subject> = Setting::new("allow-hold", "WHO", parse::list(holder())).or("unix").live();

    /// Who may do all: report load, hold for others, see others' holds and processes.
    admin: Vec<Subject> = Setting::new("allow-admin", "WHO", parse::list(holder())).or("uid:0,daemon").live();
}

fn subject() -> Parser<Subject> {
    Parser::new(Form::Text, Subject::parse)
}

/// One that holds can belong to.
fn holder() -> Parser<Subject> {
    Parser::new(Form::Text, |text| {
        let subject = Subject::parse(text)?;
        if subject.has_uid() {
            return Ok(subject);
        }
        Err("its holds would belong to nobody; expected a uid after a certificate's name, as in cert:agent.example=1000".to_owned())
    })
}

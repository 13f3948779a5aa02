//! The sections, a file each. This is where a setting is added: see [`crate::config`].

mod admin;
mod holds;
mod host;
mod limits;
mod listen;
mod load;
mod log;
mod roles;
mod tls;

pub use admin::Admin;
pub use holds::Holds;
pub use host::Host;
pub use limits::Limits;
pub use listen::Listen;
pub(super) use listen::address;
pub use load::Load;
pub use log::{Log, LogFormat};
pub use roles::Roles;
pub use tls::Tls;

use super::{
    setting::{AboutSection, Problems, Section},
    values::Values,
};

/// What each section's file begins with.
mod prelude {
    pub(super) use crate::config::{
        parse::{self, Parser, ms, s},
        setting::{Setting, section},
    };
    pub(super) use std::{path::PathBuf, time::Duration};
}

/// The sections in the order in which they are told.
macro_rules! sections {
    ($($field:ident: $Section:ty,)+) => {
        /// Every setting.
        #[derive(Debug, Clone)]
        #[non_exhaustive]
        pub struct Sections {
            $(
                #[doc = concat!("`[", stringify!($field), "]`")]
                pub $field: $Section,
            )+
        }

        impl Sections {
            pub(super) fn about() -> Vec<AboutSection> {
                vec![$(<$Section>::about()),+]
            }

            /// Nothing if a value is none; all problems are noted all the same.
            pub(super) fn read(values: &Values, problems: &mut Problems) -> Option<Self> {
                $(let $field = <$Section>::read(values, problems);)+
                Some(Self { $($field: $field?),+ })
            }

            /// Takes what is live from another one.
            pub(super) fn take_live(&mut self, newer: &Self) {
                $(self.$field.take_live(&newer.$field);)+
            }
        }
    };
}

sections! {
    listen: Listen,
    tls: Tls,
    roles: Roles,
    host: Host,
    load: Load,
    holds: Holds,
    limits: Limits,
    admin: Admin,
    log: Log,
}

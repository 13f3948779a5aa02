//! The contract as one text, `contract.txt`: whoever changes it sees that in the diff of the text.

use std::{fmt::Write as _, fs, path::Path};

use prost_reflect::{Cardinality, DescriptorPool, EnumDescriptor, FieldDescriptor, Kind, MessageDescriptor};

use crate::{PACKAGE, pool, pool_of};

/// Set to write `contract.txt` anew.
const BLESS: &str = "BERTH_BLESS";

#[test]
fn contract_is_the_reviewed_one() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("contract.txt");
    let now = render(&pool());
    if std::env::var_os(BLESS).is_some() {
        fs::write(&path, &now).expect("contract.txt is writable");
        return;
    }
    let reviewed = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        now == reviewed,
        "proto/contract.txt is not what berth/v1/*.proto say:\n{}\nIf the change is meant, and breaks no client that is \
         out there, write it anew with\n    {BLESS}=1 cargo test -p berth-proto",
        difference(&reviewed, &now),
    );
}

#[test]
fn rendering_shows_every_kind_of_change() {
    let base = r#"
        syntax = "proto3";
        package berth.v1;
        service S { rpc Do(A) returns (stream A); }
        message A {
          message Nested { enum Value { ONE = 0; } }
          uint32 plain = 1;
          optional uint32 present = 2;
          repeated Nested.Value many = 3;
          map<string, A> named = 4;
          oneof either { string left = 5; A right = 6; }
        }
    "#;
    let before = render(&pool_of(base));
    let changes = [
        ("stream A", "A"),
        ("Do(A)", "Do(stream A)"),
        ("uint32 plain", "uint64 plain"),
        ("plain = 1", "simple = 1"),
        ("plain = 1", "plain = 7"),
        ("optional uint32 present", "uint32 present"),
        ("repeated Nested.Value many", "Nested.Value many"),
        ("map<string, A>", "map<uint32, A>"),
        ("oneof either { string left = 5; A right = 6; }", "string left = 5; A right = 6;"),
        ("ONE = 0", "NONE = 0"),
        ("ONE = 0;", "ONE = 0; TWO = 2;"),
        ("service S", "service T"),
    ];
    for (from, to) in changes {
        assert!(base.contains(from), "{from} is in the sample");
        assert_ne!(before, render(&pool_of(&base.replacen(from, to, 1))), "{from} became {to}");
    }
}

/// The services, messages and enums of the package, sorted by name; fields and values by number.
fn render(pool: &DescriptorPool) -> String {
    let mut text = format!("package {PACKAGE}\n");

    let mut services: Vec<_> = pool.services().filter(|s| s.package_name() == PACKAGE).collect();
    services.sort_by(|a, b| a.full_name().cmp(b.full_name()));
    for service in services {
        line(&mut text, format_args!("\nservice {}", service.name()));
        for method in service.methods() {
            let (asks, answers) = (method.is_client_streaming(), method.is_server_streaming());
            line(
                &mut text,
                format_args!(
                    "  {}({}{}) -> {}{}",
                    method.name(),
                    if asks { "stream " } else { "" },
                    short(method.input().full_name()),
                    if answers { "stream " } else { "" },
                    short(method.output().full_name()),
                ),
            );
        }
    }

    let mut messages: Vec<_> =
        pool.all_messages().filter(|m| m.package_name() == PACKAGE && !m.is_map_entry()).collect();
    messages.sort_by(|a, b| a.full_name().cmp(b.full_name()));
    for message in messages {
        render_message(&mut text, &message);
    }

    let mut enums: Vec<_> = pool.all_enums().filter(|e| e.package_name() == PACKAGE).collect();
    enums.sort_by(|a, b| a.full_name().cmp(b.full_name()));
    for descriptor in enums {
        render_enum(&mut text, &descriptor);
    }
    text
}

fn render_message(text: &mut String, message: &MessageDescriptor) {
    line(text, format_args!("\nmessage {}", short(message.full_name())));
    let mut fields: Vec<_> = message.fields().collect();
    fields.sort_by_key(FieldDescriptor::number);
    for field in fields {
        line(text, format_args!("  {} {}: {}", field.number(), field.name(), type_of(&field)));
    }
    for range in message.reserved_ranges() {
        line(text, format_args!("  reserved {} to {}", range.start, range.end - 1));
    }
    for name in message.reserved_names() {
        line(text, format_args!("  reserved {name}"));
    }
}

fn render_enum(text: &mut String, descriptor: &EnumDescriptor) {
    line(text, format_args!("\nenum {}", short(descriptor.full_name())));
    let mut values: Vec<_> = descriptor.values().collect();
    values.sort_by_key(prost_reflect::EnumValueDescriptor::number);
    for value in values {
        line(text, format_args!("  {} {}", value.number(), value.name()));
    }
}

fn type_of(field: &FieldDescriptor) -> String {
    if let Kind::Message(entry) = field.kind()
        && entry.is_map_entry()
    {
        let key = kind_of(&entry.map_entry_key_field());
        let value = kind_of(&entry.map_entry_value_field());
        return format!("map<{key}, {value}>");
    }
    let kind = kind_of(field);
    match (field.cardinality(), field.containing_oneof()) {
        (Cardinality::Repeated, _) => format!("repeated {kind}"),
        (_, Some(oneof)) if oneof.is_synthetic() => format!("optional {kind}"),
        (_, Some(oneof)) => format!("{kind} (oneof {})", oneof.name()),
        _ => kind,
    }
}

fn kind_of(field: &FieldDescriptor) -> String {
    match field.kind() {
        Kind::Message(message) => short(message.full_name()).to_owned(),
        Kind::Enum(descriptor) => short(descriptor.full_name()).to_owned(),
        scalar => format!("{scalar:?}"),
    }
}

/// A name without the package, where it is the contract's own.
fn short(full_name: &str) -> &str {
    full_name.strip_prefix(PACKAGE).and_then(|rest| rest.strip_prefix('.')).unwrap_or(full_name)
}

fn line(text: &mut String, content: std::fmt::Arguments<'_>) {
    writeln!(text, "{content}").expect("writing to a string does not fail");
}

/// Lines that only one of the two has, each below the last heading before it.
fn difference(reviewed: &str, now: &str) -> String {
    let (reviewed, now) = (with_headings(reviewed), with_headings(now));
    let gone = reviewed.iter().filter(|l| !now.contains(l)).map(|l| format!("- {l}"));
    let come = now.iter().filter(|l| !reviewed.contains(l)).map(|l| format!("+ {l}"));
    gone.chain(come).collect::<Vec<_>>().join("\n")
}

fn with_headings(text: &str) -> Vec<String> {
    let mut heading = "";
    text.lines()
        .filter(|l| !l.is_empty())
        .map(|l| {
            if l.starts_with(' ') {
                return format!("{heading}: {}", l.trim());
            }
            heading = l;
            l.to_owned()
        })
        .collect()
}

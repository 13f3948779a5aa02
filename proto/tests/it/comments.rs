//! Every element says what it is: its unit, its default, its limit, and what its absence means.

use prost_reflect::DescriptorPool;

use crate::{PACKAGE, foreign, pool, pool_of};

#[test]
fn every_element_has_a_comment() {
    let bare = uncommented(&pool(), PACKAGE);
    assert!(bare.is_empty(), "no comment above: {}", bare.join(", "));
}

#[test]
fn so_has_what_others_speak() {
    for (file, package) in foreign::FILES {
        let pool = foreign::pool(file);
        assert!(
            pool.all_messages().any(|message| message.package_name() == package),
            "{file} has no {package}"
        );
        let bare = uncommented(&pool, package);
        assert!(bare.is_empty(), "no comment above: {}", bare.join(", "));
    }
}

#[test]
fn an_element_without_a_comment_is_found() {
    let sample = r#"
        syntax = "proto3";
        package berth.v1;
        // A service.
        service Said { rpc Unsaid(A) returns (A); }
        message A {
          // A field.
          uint32 said = 1;
          uint32 unsaid = 2;
          oneof either { uint32 left = 3; }
          // An enum.
          enum Value { ZERO = 0; }
        }
    "#;
    let bare = uncommented(&pool_of(sample), PACKAGE);
    let expected = ["Said.Unsaid", "A", "A.unsaid", "A.left", "A.either", "A.ZERO"]
        .map(|name| format!("{PACKAGE}.{name}"));
    assert_eq!(bare, expected);
}

/// Full names of the elements that have no comment right above them, in the order of their kinds.
fn uncommented(pool: &DescriptorPool, package: &str) -> Vec<String> {
    let mut bare = Vec::new();
    let mut check = |said: Option<&str>, name: &str| {
        if said.is_none_or(|text| text.trim().is_empty()) {
            bare.push(name.to_owned());
        }
    };
    for file in pool.files().filter(|f| f.package_name() == package) {
        let descriptor = file.file_descriptor_proto();
        let locations = descriptor.source_code_info.as_ref().map_or(&[][..], |info| &info.location);
        let comment = |path: &[i32]| {
            locations.iter().find(|l| l.path == path).and_then(|l| l.leading_comments.as_deref())
        };

        for service in file.services() {
            check(comment(service.path()), service.full_name());
            for method in service.methods() {
                check(comment(method.path()), method.full_name());
            }
        }
        let messages = pool.all_messages().filter(|m| m.parent_file() == file && !m.is_map_entry());
        for message in messages {
            check(comment(message.path()), message.full_name());
            for field in message.fields() {
                check(comment(field.path()), field.full_name());
            }
            for oneof in message.oneofs().filter(|o| !o.is_synthetic()) {
                check(comment(oneof.path()), oneof.full_name());
            }
        }
        for descriptor in pool.all_enums().filter(|e| e.parent_file() == file) {
            check(comment(descriptor.path()), descriptor.full_name());
            for value in descriptor.values() {
                check(comment(value.path()), value.full_name());
            }
        }
    }
    bare
}

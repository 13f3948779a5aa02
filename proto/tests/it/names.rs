//! Names follow buf's STANDARD rules (`buf.yaml` states which), so that they read alike in every language.

use prost_reflect::{DescriptorPool, MessageDescriptor, MethodDescriptor};

use crate::{PACKAGE, pool, pool_of};

#[test]
fn names_are_in_the_usual_style() {
    let faults = misnamed(&pool());
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn a_name_in_another_style_is_found() {
    let sample = r#"
        syntax = "proto3";
        package berth.v1;
        service Short { rpc Do(DoRequest) returns (DoReply); }
        message DoRequest { uint32 camelCase = 1; uint32 twice__under = 2; }
        message DoReply { enum Value { lower = 0; } }
    "#;
    let faults = misnamed(&pool_of(sample));
    let about =
        ["Short: ", "Short.Do: ", "DoRequest.camelCase: ", "DoRequest.twice__under: ", "DoReply.lower: "];
    assert_eq!(faults.len(), about.len(), "{faults:?}");
    for start in about {
        let start = format!("{PACKAGE}.{start}");
        assert!(faults.iter().any(|fault| fault.starts_with(&start)), "{start} in {faults:?}");
    }
}

#[test]
fn values_typed_by_people_have_no_prefix() {
    for descriptor in pool().all_enums().filter(|e| e.package_name() == PACKAGE) {
        let parent = descriptor.parent_message();
        let parent = parent.as_ref().map(MessageDescriptor::name);
        assert!(parent.is_some(), "{} is nested, so its values need no prefix", descriptor.full_name());
        for value in descriptor.values() {
            let prefix = format!("{}_", parent.unwrap_or_default().to_uppercase());
            assert!(!value.name().starts_with(&prefix), "{} repeats its message's name", value.full_name());
        }
    }
}

/// One sentence for each name that is not in the usual style.
fn misnamed(pool: &DescriptorPool) -> Vec<String> {
    let mut faults = Vec::new();
    for service in pool.services().filter(|s| s.package_name() == PACKAGE) {
        if !service.name().ends_with("Service") {
            faults.push(format!("{}: a service's name ends in Service", service.full_name()));
        }
        faults.extend(service.methods().filter_map(|method| misnamed_types(&method)));
    }
    for message in pool.all_messages().filter(|m| m.package_name() == PACKAGE) {
        for field in message.fields() {
            if !is_snake(field.name(), |c| c.is_ascii_lowercase()) {
                faults.push(format!("{}: a field is in lower_snake_case", field.full_name()));
            }
        }
    }
    for descriptor in pool.all_enums().filter(|e| e.package_name() == PACKAGE) {
        for value in descriptor.values() {
            if !is_snake(value.name(), |c| c.is_ascii_uppercase()) {
                faults.push(format!("{}: a value is in UPPER_SNAKE_CASE", value.full_name()));
            }
        }
    }
    faults
}

/// The types of a method bear its name, so no two methods share one.
fn misnamed_types(method: &MethodDescriptor) -> Option<String> {
    let (input, output) = (method.input(), method.output());
    let named =
        |message: &MessageDescriptor, ending: &str| message.name() == format!("{}{ending}", method.name());
    (!named(&input, "Request") || !named(&output, "Response"))
        .then(|| format!("{}: its types are not named after it", method.full_name()))
}

fn is_snake(name: &str, letter: impl Fn(char) -> bool) -> bool {
    name.split('_').all(|word| !word.is_empty() && word.chars().all(|c| letter(c) || c.is_ascii_digit()))
}

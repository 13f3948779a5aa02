//! Berth's wire contract: the gRPC package `berth.v1`, its generated types, clients and servers, and its
//! descriptor set.
//!
//! The contract itself is `berth/v1/*.proto`; what each field means, its unit, its limit and what its absence
//! says stands there and is repeated in the documentation of [`v1`]. `contract.txt` is the same contract as one
//! sorted text, and a test keeps it equal, so that a change of it is seen in review.
//!
//! # Enumerations
//!
//! Values are nested in messages, so that people can type them without a prefix: the policy `SPREAD` is
//! [`v1::policy::Value::Spread`].
//!
//! # Reflection
//!
//! A server registers each set of [`FILE_DESCRIPTOR_SETS`]: [`FILE_DESCRIPTOR_SET`] for this package and all
//! that it imports, and the one that `tonic_types` carries for the `google.rpc` types of error details, which are
//! therefore not copied here.
//!
//! # JSON
//!
//! Nothing here serialises to JSON. Whoever needs the canonical JSON of a message decodes its bytes with
//! `prost-reflect` (feature `serde`) through [`FILE_DESCRIPTOR_SET`], as `tests/it/json.rs` shows. That costs no
//! generated code; `pbjson` would add more than three times the present amount for every user of this crate.

/// The package `berth.v1`.
#[allow(
    missing_docs,
    missing_debug_implementations,
    unreachable_pub,
    clippy::all,
    clippy::or_fun_call,
    clippy::large_futures,
    rustdoc::broken_intra_doc_links,
    rustdoc::bare_urls,
    rustdoc::invalid_html_tags,
    reason = "generated"
)]
pub mod v1 {
    tonic::include_proto!("berth.v1");
}

/// What a kubelet speaks, in packages of its own names: not part of Berth's contract, and not served by berthd.
pub mod kubelet {
    /// The package `v1beta1`: device plugins.
    #[allow(
        missing_docs,
        missing_debug_implementations,
        unreachable_pub,
        clippy::all,
        clippy::or_fun_call,
        clippy::large_futures,
        reason = "generated"
    )]
    pub mod device_plugin {
        tonic::include_proto!("v1beta1");
    }

    /// The package `v1`: what pods have.
    #[allow(
        missing_docs,
        missing_debug_implementations,
        unreachable_pub,
        clippy::all,
        clippy::or_fun_call,
        clippy::large_futures,
        reason = "generated"
    )]
    pub mod pod_resources {
        tonic::include_proto!("v1");
    }
}

/// What a container runtime and its plugins say to each other, the Node Resource Interface: no part of Berth's contract either.
#[allow(
    missing_docs,
    missing_debug_implementations,
    unreachable_pub,
    clippy::all,
    clippy::or_fun_call,
    reason = "generated"
)]
pub mod nri {
    tonic::include_proto!("nri.pkg.api.v1alpha1");

    /// What stands around each of these messages.
    pub mod ttrpc {
        tonic::include_proto!("ttrpc");
    }
}

/// `berth.v1` and every file it imports, encoded as `google.protobuf.FileDescriptorSet`, comments included.
pub const FILE_DESCRIPTOR_SET: &[u8] = tonic::include_file_descriptor_set!("berth.v1");

/// What a server registers for reflection: [`FILE_DESCRIPTOR_SET`] and the `google.rpc` types of error details.
///
/// Health and reflection bring sets of their own.
pub const FILE_DESCRIPTOR_SETS: [&[u8]; 2] = [FILE_DESCRIPTOR_SET, tonic_types::pb::FILE_DESCRIPTOR_SET];

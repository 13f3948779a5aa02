//! The names in a client's certificate, which the TLS library has found to be signed by the configured authority.

use x509_cert::{
    Certificate,
    der::{
        Decode,
        asn1::{PrintableStringRef, Utf8StringRef},
        oid::db::rfc4519::COMMON_NAME,
    },
    ext::pkix::{SubjectAltName, name::GeneralName},
};

/// The common name, and the subject's alternative names that are a host, a URI or a mail address. Empty if there are
/// none, or it cannot be read.
pub(super) fn names(der: &[u8]) -> Vec<String> {
    let Ok(certificate) = Certificate::from_der(der) else { return Vec::new() };
    let subject = &certificate.tbs_certificate;
    let attributes = subject.subject.0.iter().flat_map(|relative| relative.0.iter());
    let common = attributes.filter(|attribute| attribute.oid == COMMON_NAME).filter_map(|attribute| {
        let utf8 = attribute.value.decode_as::<Utf8StringRef<'_>>().map(|text| text.as_str().to_owned());
        utf8.or_else(|_| {
            attribute.value.decode_as::<PrintableStringRef<'_>>().map(|text| text.as_str().to_owned())
        })
        .ok()
    });
    let alternative = match subject.get::<SubjectAltName>() {
        Ok(Some((_, names))) => names.0,
        _ => Vec::new(),
    };
    let alternative = alternative.into_iter().filter_map(|name| match name {
        GeneralName::DnsName(text)
        | GeneralName::Rfc822Name(text)
        | GeneralName::UniformResourceIdentifier(text) => Some(text.as_str().to_owned()),
        _ => None,
    });
    let mut names: Vec<String> = common.chain(alternative).filter(|name| !name.is_empty()).collect();
    names.dedup();
    names
}

#[cfg(test)]
mod tests {
    use super::*;
    use rcgen::{CertificateParams, DnType, KeyPair, SanType};

    #[test]
    fn common_and_alternative_names() {
        let mut params = CertificateParams::new(["node7.example".to_owned()]).unwrap();
        params.distinguished_name.push(DnType::CommonName, "berth agent");
        params.subject_alt_names.push(SanType::URI("spiffe://example/agent".try_into().unwrap()));
        let certificate = params.self_signed(&KeyPair::generate().unwrap()).unwrap();
        assert_eq!(names(certificate.der()), ["berth agent", "node7.example", "spiffe://example/agent"]);
        assert_eq!(names(b"none"), Vec::<String>::new());
    }
}

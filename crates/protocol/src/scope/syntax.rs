//! The spellings that Kubernetes allows for the parts of a scope and of a label selector.

/// A DNS label, [RFC 1123](https://www.rfc-editor.org/rfc/rfc1123): at most 63 lower-case letters, digits and `-`.
pub(super) fn is_dns_label(text: &str) -> bool {
    text.len() <= 63 && is_dns_part(text)
}

/// A DNS subdomain as Kubernetes checks it: at most 253 bytes, parts joined by dots.
pub(super) fn is_dns_subdomain(text: &str) -> bool {
    text.len() <= 253 && text.split('.').all(is_dns_part)
}

/// A DNS label that begins with a letter, [RFC 1035](https://www.rfc-editor.org/rfc/rfc1035): what versions and
/// plural names of resources are.
pub(super) fn is_dns_1035_label(text: &str) -> bool {
    is_dns_label(text) && text.starts_with(|first: char| first.is_ascii_lowercase())
}

/// A name that can stand as one segment of a path: [not `.` or `..`, no `/` and no `%`][rule], and no control character. Names
/// of RBAC objects (`system:node`) are such names, and no stricter rule holds for all kinds.
///
/// [rule]: https://kubernetes.io/docs/concepts/overview/working-with-objects/names/#path-segment-names
pub(super) fn is_path_segment_name(text: &str) -> bool {
    !text.is_empty()
        && text != "."
        && text != ".."
        && !text.contains(|character: char| character == '/' || character == '%' || character.is_control())
}

/// A [qualified name](https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/#syntax-and-character-set):
/// a label's key.
pub(super) fn is_qualified_name(text: &str) -> bool {
    let name = match text.split_once('/') {
        Some((prefix, name)) if is_dns_subdomain(prefix) => name,
        Some(_) => return false,
        None => text,
    };
    !name.is_empty() && is_label_value(name)
}

/// The value of a label: empty, or at most 63 letters, digits, `-`, `_` and `.` between a letter or digit at each end.
pub(super) fn is_label_value(text: &str) -> bool {
    let bytes = text.as_bytes();
    bytes.len() <= 63
        && bytes
            .iter()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'))
        && bytes.first().is_none_or(u8::is_ascii_alphanumeric)
        && bytes.last().is_none_or(u8::is_ascii_alphanumeric)
}

fn is_dns_part(text: &str) -> bool {
    let bytes = text.as_bytes();
    let is_plain = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    bytes.iter().all(|byte| is_plain(byte) || *byte == b'-')
        && bytes.first().is_some_and(is_plain)
        && bytes.last().is_some_and(is_plain)
}

//! What the server's errors say to the author of a file.

use schema::{ErrorKind, FieldError};
use serde_json::Value as Json;
use std::borrow::Cow;

/// Longest value that is shown, in bytes.
const VALUE_SIZE_MAX: usize = 80;
/// Longest explanation, in bytes; expressions of CEL repeat themselves in theirs.
const DETAIL_SIZE_MAX: usize = 600;

/// Parts of a definition that the server keeps elsewhere than authors write them: what all
/// versions have in common, and the parts of a conversion.
const MOVED: [(&str, &str); 7] = [
    ("spec.validation", "spec.versions[0].schema"),
    ("spec.subresources", "spec.versions[0].subresources"),
    ("spec.additionalPrinterColumns", "spec.versions[0].additionalPrinterColumns"),
    ("spec.selectableFields", "spec.versions[0].selectableFields"),
    ("spec.version", "spec.versions[0].name"),
    ("spec.conversion.webhookClientConfig", "spec.conversion.webhook.clientConfig"),
    (
        "spec.conversion.conversionReviewVersions",
        "spec.conversion.webhook.conversionReviewVersions",
    ),
];

/// The path of a field as the author of a definition wrote it.
pub(super) fn written_path(path: &str) -> String {
    let moved = MOVED.iter().find_map(|(inside, written)| {
        let rest = path.strip_prefix(inside)?;
        let is_whole = rest.is_empty() || rest.starts_with(['.', '[']);
        is_whole.then(|| format!("{written}{rest}"))
    });
    let path = moved.unwrap_or_else(|| path.to_owned());
    match path.strip_suffix(".JSONPath") {
        Some(column) => format!("{column}.jsonPath"),
        None => path,
    }
}

/// What the server says of a field, in its words.
pub(super) fn describe_error(path: &str, error: &FieldError) -> String {
    let mut text = format!("{path}: {}", error.kind.title());
    let shows_value = !matches!(
        error.kind,
        ErrorKind::Required | ErrorKind::Forbidden | ErrorKind::TooLong | ErrorKind::Internal
    );
    if let Some(value) = error.bad_value.as_ref().filter(|_| shows_value).and_then(short_value) {
        text.push_str(": ");
        text.push_str(&value);
    }
    let detail = one_line(&error.detail);
    if !detail.is_empty() {
        text.push_str(": ");
        text.push_str(&detail);
    }
    text
}

/// A value that is short enough to be shown. Objects and lists stand in the file.
fn short_value(value: &Json) -> Option<String> {
    match value {
        Json::Array(_) | Json::Object(_) => None,
        value => Some(value.to_string()).filter(|text| text.len() <= VALUE_SIZE_MAX),
    }
}

/// An explanation without the drawings that compilers add to theirs.
fn one_line(detail: &str) -> String {
    let detail = detail.replace("spec.validation.openAPIV3Schema", SCHEMA);
    let said = detail.lines().filter(|line| !line.starts_with(' '));
    let said = said.map(|line| line.trim_end_matches("regex parse error:").trim_end_matches(": "));
    let mut text = said.collect::<Vec<_>>().join(": ");
    if text.len() > DETAIL_SIZE_MAX {
        let end = (0..=DETAIL_SIZE_MAX).rev().find(|at| text.is_char_boundary(*at));
        text.truncate(end.unwrap_or_default());
        text.push('…');
    }
    text
}

const SCHEMA: &str = "spec.versions[0].schema.openAPIV3Schema";

/// Advice by a part of what the server says.
const HINTS: [(&str, &str); 24] = [
    ("uniqueItems cannot be set", "use x-kubernetes-list-type: set"),
    ("$ref is not supported", "write the schema in place"),
    (
        "must not be empty for specified",
        "every property and item of a structural schema has a type",
    ),
    ("must not be empty at the root", "set type: object"),
    ("must be object at the root", "set type: object"),
    ("type cannot be set to null", "nullable: true allows null"),
    ("must be a schema object and not an array", "write one schema that all items have"),
    ("mutual exclusive", "an object has either known fields or keys of its user's choice"),
    ("to be structural", "describe values outside of allOf, anyOf, oneOf and not"),
    ("in a nested context", "describe values outside of allOf, anyOf, oneOf and not"),
    ("because it is defined in", "add it to the schema that has the condition"),
    ("name and generateName", "Kubernetes defines the rest of metadata"),
    (
        "x-kubernetes-embedded-resource is true without",
        "set x-kubernetes-preserve-unknown-fields: true",
    ),
    (
        "valid regular expression",
        "patterns are those of RE2, which has no look-around and no back-references",
    ),
    (
        "must not have unknown fields",
        "declare the fields in the schema, or take them out of the default",
    ),
    (
        "compilation failed",
        "expressions are checked against the schema they stand in: name fields that it declares",
    ),
    ("must evaluate to a bool", "write a condition, such as self.min <= self.max"),
    (
        "oldSelf cannot be used",
        "an element of a list can be compared with its old self only in a list of type map",
    ),
    ("if rule contains line breaks", "add a message in one line"),
    ("must include at least one of v1, v1beta1", "set conversionReviewVersions: [v1]"),
    ("in spec.versions[*].schema instead", "remove preserveUnknownFields; it was for v1beta1"),
    (
        "exactly one version marked as storage",
        "set storage: true for one version and false for the others",
    ),
    ("protected groups must have approval", "choose a group under a domain of yours"),
    ("must not be set in top-level", "Kubernetes fills in apiVersion, kind and metadata"),
];

/// What to do about an error.
pub(super) fn advise_on(path: &str, error: &FieldError) -> Cow<'static, str> {
    if let Some((_, hint)) = HINTS.iter().find(|(part, _)| error.detail.contains(part)) {
        return Cow::Borrowed(hint);
    }
    let field = path.rsplit('.').next().unwrap_or(path);
    match error.kind {
        ErrorKind::Required => Cow::Owned(format!("add {field}")),
        ErrorKind::NotSupported => Cow::Borrowed("write one of the supported values"),
        ErrorKind::Forbidden => Cow::Owned(format!("remove {field}")),
        ErrorKind::Duplicate => Cow::Borrowed("keep one of them"),
        _ if super::is_default(path) => {
            Cow::Borrowed("a default has to be a value that its own schema allows")
        }
        _ => Cow::Borrowed("an API server refuses the definition as it is"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_those_of_the_file() {
        for (inside, written) in [
            (
                "spec.validation.openAPIV3Schema.type",
                "spec.versions[0].schema.openAPIV3Schema.type",
            ),
            ("spec.version", "spec.versions[0].name"),
            ("spec.versions[1].name", "spec.versions[1].name"),
            (
                "spec.conversion.webhookClientConfig.service",
                "spec.conversion.webhook.clientConfig.service",
            ),
            (
                "spec.additionalPrinterColumns[1].JSONPath",
                "spec.versions[0].additionalPrinterColumns[1].jsonPath",
            ),
        ] {
            assert_eq!(written_path(inside), written);
        }
    }

    #[test]
    fn compilers_are_quoted_without_their_drawings() {
        let cel =
            "compilation failed: ERROR: <input>:1:5: undefined field 'b'\n | self.b\n | ....^";
        assert_eq!(one_line(cel), "compilation failed: ERROR: <input>:1:5: undefined field 'b'");
        let regex = "must be a valid regular expression, but isn't: regex parse error:\n    (\n    ^\nerror: unclosed group";
        assert_eq!(
            one_line(regex),
            "must be a valid regular expression, but isn't: error: unclosed group"
        );
    }
}

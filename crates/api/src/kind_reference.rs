//! How kinds are written.
//!
//! ```text
//!   buckets.s3.example.org/v1beta1     plural, singular or kind; `.`, group; `/`, version
//!   *.s3.example.org                   every kind of a group, in any served version
//!   Bucket.s3.example.org/v1           the kind, as in documents
//!   s3.example.org/v1, Kind=Bucket     as Kubernetes prints it
//! ```
//!
//! A group has a dot: those of Kubernetes itself come with no package.

use std::fmt;

/// The longest part between two dots.
const LABEL_SIZE_MAX: usize = 63;
/// The longest group.
const GROUP_SIZE_MAX: usize = 253;

/// What stands for every kind of a group in the key of a pin.
const WHOLE_GROUP: &str = "_";

/// A kind, or all kinds of a group, in one version or in any.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct KindReference {
    /// Plural, singular or kind, in lower case; `None` is every kind.
    pub name: Option<String>,
    /// The group.
    pub group: String,
    /// The version; `None` is any that is served.
    pub version: Option<String>,
}

/// Why a text names no kind.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GrammarError {
    /// No group, or none that packages could define kinds in.
    #[error("`{0}` has no group: write NAME.GROUP, where the group has a dot in it")]
    Group(String),
    /// Not a name.
    #[error("`{0}` is not the name of a kind: it has letters, digits and `-`, or is `*`")]
    Name(String),
    /// Not a version.
    #[error("`{0}` is not a version such as v1, v1beta1 or v2alpha1")]
    Version(String),
}

impl KindReference {
    /// Reads a kind in any of its forms.
    pub fn parse(text: &str) -> Result<Self, GrammarError> {
        let text = text.trim();
        let printed = text.split_once(", Kind=").or_else(|| text.split_once(",Kind="));
        if let Some((api_version, kind)) = printed {
            let (group, version) = api_version.split_once('/').unwrap_or((api_version, "*"));
            return Self::assemble(kind, group, version);
        }
        let (named, version) = text.split_once('/').unwrap_or((text, "*"));
        let (name, group) =
            named.split_once('.').ok_or_else(|| GrammarError::Group(text.to_owned()))?;
        Self::assemble(name, group, version)
    }

    fn assemble(name: &str, group: &str, version: &str) -> Result<Self, GrammarError> {
        let lower = name.to_ascii_lowercase();
        if name != "*" && !is_label(&lower) {
            return Err(GrammarError::Name(name.to_owned()));
        }
        if !group.contains('.') || !is_group(group) {
            return Err(GrammarError::Group(format!("{name}.{group}")));
        }
        if version != "*" && !is_version(version) {
            return Err(GrammarError::Version(version.to_owned()));
        }
        Ok(Self {
            name: (name != "*").then_some(lower),
            group: group.to_owned(),
            version: (version != "*").then(|| version.to_owned()),
        })
    }

    /// Whether a definition with these names is one that is meant, in whatever version. The plural is
    /// in lower case by the rules of API servers; singular and kind are compared without case.
    pub fn names_definition(&self, group: &str, plural: &str, singular: &str, kind: &str) -> bool {
        let is_name = |name: &String| {
            name == plural || name.eq_ignore_ascii_case(singular) || name.eq_ignore_ascii_case(kind)
        };
        self.group == group && self.name.as_ref().is_none_or(is_name)
    }

    /// Whether a version is one that is meant.
    pub fn accepts_version(&self, version: &str) -> bool {
        self.version.as_deref().is_none_or(|wanted| wanted == version)
    }

    /// The key under which a package is pinned for it. Keys of a `ConfigMap` have no `*`.
    pub fn pin_key(&self) -> String {
        format!("{}.{}", self.name.as_deref().unwrap_or(WHOLE_GROUP), self.group)
    }

    /// The keys under which a package may be pinned for it, the first that is there counts: by the
    /// name of its definition, by the name that it is called here, for its whole group.
    pub fn pin_keys(&self, crd: &str) -> [String; 3] {
        let whole = Self { name: None, ..self.clone() };
        [crd.to_owned(), self.pin_key(), whole.pin_key()]
    }

    /// `name.group`, without the version; `*` stands for every kind.
    pub fn bare(&self) -> String {
        format!("{}.{}", self.name.as_deref().unwrap_or("*"), self.group)
    }
}

impl fmt::Display for KindReference {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.bare())?;
        self.version.iter().try_for_each(|version| write!(formatter, "/{version}"))
    }
}

/// Whether a text is a DNS label in lower case, as plurals are.
pub fn is_label(text: &str) -> bool {
    let bytes = text.as_bytes();
    let is_plain = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    bytes.len() <= LABEL_SIZE_MAX
        && bytes.first().is_some_and(is_plain)
        && bytes.last().is_some_and(is_plain)
        && bytes.iter().all(|byte| is_plain(byte) || *byte == b'-')
}

/// Whether a text is the name of a group of kinds: DNS labels in lower case with dots between them.
pub fn is_group(text: &str) -> bool {
    text.len() <= GROUP_SIZE_MAX && text.split('.').all(is_label)
}

/// The plural and the group in the name of a definition; nothing if API servers serve no kind that is
/// called so. Where rights are written, `*` is every kind, and `a/b` a part of one.
pub fn split_definition_name(name: &str) -> Option<(&str, &str)> {
    let (plural, group) = name.split_once('.')?;
    (is_label(plural) && is_group(group)).then_some((plural, group))
}

/// `vN`, `vNalphaN` or `vNbetaN`.
fn is_version(text: &str) -> bool {
    let Some(rest) = text.strip_prefix('v') else { return false };
    let is_number = |text: &str| {
        !text.starts_with('0') && !text.is_empty() && text.bytes().all(|it| it.is_ascii_digit())
    };
    let split = rest.split_once("alpha").or_else(|| rest.split_once("beta"));
    split.map_or(is_number(rest), |(major, minor)| is_number(major) && is_number(minor))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_written_in_several_forms_and_come_to_one() {
        for (text, normal) in [
            ("buckets.s3.example.org", "buckets.s3.example.org"),
            ("buckets.s3.example.org/*", "buckets.s3.example.org"),
            ("buckets.s3.example.org/v1beta1", "buckets.s3.example.org/v1beta1"),
            ("Bucket.s3.example.org/v1", "bucket.s3.example.org/v1"),
            ("s3.example.org/v1, Kind=Bucket", "bucket.s3.example.org/v1"),
            ("s3.example.org/v1,Kind=Bucket", "bucket.s3.example.org/v1"),
            (" gitlabcluster.gitlab.com/v1alpha1 ", "gitlabcluster.gitlab.com/v1alpha1"),
            ("*.yourstack.example.org/v1alpha1", "*.yourstack.example.org/v1alpha1"),
            ("*.yourstack.example.org", "*.yourstack.example.org"),
            ("x-y.a.b/v10alpha12", "x-y.a.b/v10alpha12"),
        ] {
            assert_eq!(KindReference::parse(text).unwrap().to_string(), normal, "{text}");
            let again = KindReference::parse(normal).unwrap();
            assert_eq!(again.to_string(), normal, "what is printed is read as the same");
        }
    }

    #[test]
    fn a_definition_is_meant_by_its_plural_its_singular_or_its_kind() {
        let is_meant = |text: &str| {
            let reference = KindReference::parse(text).unwrap();
            reference.names_definition("s3.example.org", "policies", "policy", "BucketPolicy")
        };
        for text in ["policies", "policy", "bucketpolicy", "BucketPolicy", "*"] {
            assert!(is_meant(&format!("{text}.s3.example.org/v1")), "{text}");
        }
        assert!(!is_meant("policies.example.org") && !is_meant("buckets.s3.example.org"));
        let any = KindReference::parse("*.s3.example.org").unwrap();
        let beta = KindReference::parse("*.s3.example.org/v1beta1").unwrap();
        assert!(any.accepts_version("v1") && !beta.accepts_version("v1"));
        assert!(beta.accepts_version("v1beta1"));
    }

    #[test]
    fn a_package_is_pinned_for_a_kind_or_for_its_group() {
        let kind = KindReference::parse("bucket.s3.example.org/v1").unwrap();
        let keys = ["buckets.s3.example.org", "bucket.s3.example.org", "_.s3.example.org"];
        assert_eq!(kind.pin_keys(keys[0]), keys);
        assert_eq!(KindReference::parse("*.s3.example.org").unwrap().pin_key(), keys[2]);
    }

    #[test]
    fn names_of_definitions_are_split_where_a_kind_can_be_called_so() {
        let long = format!("{}.cert-manager.io", "x".repeat(LABEL_SIZE_MAX + 1));
        for (name, expected) in [
            ("issuers.cert-manager.io", Some(("issuers", "cert-manager.io"))),
            ("deployments.apps", Some(("deployments", "apps"))),
            ("*.cert-manager.io", None),
            ("issuers.*", None),
            ("issuers/status.cert-manager.io", None),
            ("Issuers.cert-manager.io", None),
            ("issuers.Cert-manager.io", None),
            ("issuers.cert-manager.io.", None),
            ("issuers.", None),
            (".cert-manager.io", None),
            ("issuers", None),
            ("", None),
            ("-issuers.cert-manager.io", None),
            ("issuers\n.cert-manager.io", None),
            (long.as_str(), None),
        ] {
            assert_eq!(split_definition_name(name), expected, "{name:?}");
        }
    }

    #[test]
    fn what_is_no_kind_is_refused_with_the_part_that_is_wrong() {
        use GrammarError::{Group, Name, Version};
        for (text, error) in [
            ("", Group(String::new())),
            ("pods", Group("pods".to_owned())),
            ("deployments.apps", Group("deployments.apps".to_owned())),
            ("buckets.", Group("buckets.".to_owned())),
            ("buckets.a..b", Group("buckets.a..b".to_owned())),
            ("buckets.S3.example.org", Group("buckets.S3.example.org".to_owned())),
            (".a.b", Name(String::new())),
            ("b*.a.b", Name("b*".to_owned())),
            ("ä.a.b", Name("ä".to_owned())),
            ("buckets.a.b/", Version(String::new())),
            ("buckets.a.b/1", Version("1".to_owned())),
            ("buckets.a.b/v0", Version("v0".to_owned())),
            ("buckets.a.b/v1beta", Version("v1beta".to_owned())),
            ("buckets.a.b/v1/v2", Version("v1/v2".to_owned())),
        ] {
            assert_eq!(KindReference::parse(text).unwrap_err(), error, "{text:?}");
        }
    }
}

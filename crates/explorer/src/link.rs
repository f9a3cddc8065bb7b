//! Addresses of pages.

use catalog::answer::FieldMatch;
use catalog::http::encode;

/// A package; with a reference, one of its versions.
pub(crate) fn package_page(repository: &str, reference: Option<&str>) -> String {
    let repository = encode(repository);
    match reference {
        Some(reference) => format!("/p/{repository}@{}", encode(reference)),
        None => format!("/p/{repository}"),
    }
}

/// A part of a package's page.
pub(crate) fn package_view(repository: &str, reference: Option<&str>, view: &str) -> String {
    let page = package_page(repository, reference);
    if view.is_empty() { page } else { format!("{page}?view={view}") }
}

/// A kind, by `plural.group`; with a version, that one.
pub(crate) fn kind_page(name: &str, version: Option<&str>) -> String {
    let name = encode(name);
    match version {
        Some(version) => format!("/crd/{name}/{}", encode(version)),
        None => format!("/crd/{name}"),
    }
}

/// A field in the schema of its kind.
pub(crate) fn field_page(field: &FieldMatch) -> String {
    let page = kind_page(&field.crd, Some(&field.version));
    format!("{}#{}", with_query(&page, &[("field", &field.path)]), encode(&field.path))
}

/// All kinds of a group.
pub(crate) fn group_page(group: &str) -> String {
    format!("/group/{}", encode(group))
}

/// Where news of a control plane are told.
pub(crate) const PLANE_NEWS: &str = "/plane/news";

/// An installed package, by kind and name.
pub(crate) fn plane_package(id: &str) -> String {
    format!("/plane/{}", encode(id))
}

/// What changed between two versions of a package.
pub(crate) fn changes_page(repository: &str, from: &str, to: &str) -> String {
    with_query(&format!("/diff/{}", encode(repository)), &[("from", from), ("to", to)])
}

/// What is found by some words.
pub(crate) fn search_page(words: &str) -> String {
    with_query("/search", &[("q", words)])
}

/// An address with a query, of which empty values are left out.
pub(crate) fn with_query(path: &str, pairs: &[(&str, &str)]) -> String {
    let said = pairs.iter().filter(|(_, value)| !value.is_empty());
    let query: Vec<String> =
        said.map(|(key, value)| format!("{key}={}", encode(value).replace('/', "%2F"))).collect();
    if query.is_empty() { path.to_owned() } else { format!("{path}?{}", query.join("&")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_hold_whatever_a_name_holds() {
        assert_eq!(package_page("team/p", Some("v1.0.0")), "/p/team/p@v1.0.0");
        assert_eq!(package_page("a\"><script>", None), "/p/a%22%3E%3Cscript%3E");
        assert_eq!(with_query("/", &[("type", ""), ("q", "a&b=c")]), "/?q=a%26b%3Dc");
    }
}

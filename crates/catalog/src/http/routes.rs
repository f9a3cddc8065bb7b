//! Every address below `/api/v1`: what it answers, what it takes, and what the document about it says.
//!
//! A repository's name has slashes in it, and ends at a part that is `-`, which is no part of any name.

use super::answers::Call;
use super::{Answer, Problem};

/// An address.
pub(super) struct ApiRoute {
    /// Its path, with names in braces for what varies.
    pub(super) path: &'static str,
    /// What is there, in a few words.
    pub(super) summary: &'static str,
    /// What may stand in the query.
    pub(super) parameters: &'static [Parameter],
    /// The form of the answer.
    pub(super) media: Media,
    /// How it is answered.
    pub(super) responder: Responder,
}

/// Something in a query.
#[derive(Clone, Copy)]
pub(super) struct Parameter {
    pub(super) name: &'static str,
    pub(super) about: &'static str,
    pub(super) form: ParameterForm,
    pub(super) is_required: bool,
}

/// The values that a parameter takes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum ParameterForm {
    Text,
    Flag,
    Number(usize),
    Choice(&'static [&'static str]),
}

/// The form of an answer.
pub(super) enum Media {
    /// An object that always has these members.
    Object(&'static [&'static str]),
    /// Some JSON.
    Json,
    /// Something else.
    Other(&'static str),
}

/// How an address is answered.
#[derive(Clone, Copy)]
pub(super) enum Responder {
    /// By one question to the index.
    Question(fn(&Call) -> Result<Answer, Problem>),
    /// By a file that is written while it is sent.
    Export,
    /// By news, as they come.
    Events,
}

const fn text(name: &'static str, about: &'static str) -> Parameter {
    Parameter { name, about, form: ParameterForm::Text, is_required: false }
}

const fn flag(name: &'static str, about: &'static str) -> Parameter {
    Parameter { name, about, form: ParameterForm::Flag, is_required: false }
}

const fn required(name: &'static str, about: &'static str) -> Parameter {
    Parameter { name, about, form: ParameterForm::Text, is_required: true }
}

const LIMIT: Parameter = Parameter {
    name: "limit",
    about: "how long a page may be",
    form: ParameterForm::Number(crate::index::PAGE_LENGTH_MAX),
    is_required: false,
};
const CURSOR: Parameter = text("cursor", "where the last page ended; `Link` has it");
const WORDS: Parameter = text("q", "words to look for");
const GROUP: Parameter = text("group", "only of this API group");
const TYPE: Parameter = text("type", "only packages of this type");
const CATEGORY: Parameter = text("category", "only packages of this category");
const KEYWORD: Parameter = text("keyword", "only packages with this keyword");
const LICENSE: Parameter = text("license", "only packages under this licence");
const CAPABILITY: Parameter = text("capability", "only packages with this capability");
const REQUIRES: Parameter =
    text("requires", "only packages that need this repository, or this kind in whatever version");
const PACKAGE: Parameter = text("package", "as this repository's packages have it");
const PAGE: Media = Media::Object(&["items", "next"]);
const DEPTH: Parameter = Parameter {
    name: "depth",
    about: "how far dependencies are followed",
    form: ParameterForm::Number(16),
    is_required: false,
};
const GRAPH_FORMAT: Parameter = Parameter {
    name: "format",
    about: "json, or dot for Graphviz",
    form: ParameterForm::Choice(&["json", "dot"]),
    is_required: false,
};

const fn question(
    path: &'static str,
    summary: &'static str,
    parameters: &'static [Parameter],
    media: Media,
    respond: fn(&Call) -> Result<Answer, Problem>,
) -> ApiRoute {
    ApiRoute { path, summary, parameters, media, responder: Responder::Question(respond) }
}

/// All of them.
pub(super) static ROUTES: &[ApiRoute] = &[
    question(
        "/openapi.json",
        "this document",
        &[],
        Media::Object(&["openapi", "paths"]),
        Call::document,
    ),
    question(
        "/search",
        "packages, kinds and fields by words",
        &[required("q", "words to look for")],
        Media::Object(&["packages", "crds"]),
        Call::search,
    ),
    question(
        "/resolve",
        "the packages to install for a kind, or for all kinds of a group",
        &[
            required("crd", "NAME.GROUP or NAME.GROUP/VERSION; the name may be *"),
            TYPE,
            text("package", "only this repository"),
            text("constraint", "only versions within these bounds"),
            flag("prerelease", "pre-releases, too"),
            flag("lenient", "answer 200 whatever the verdict"),
        ],
        Media::Object(&["crd", "verdict", "kinds", "candidates"]),
        Call::resolve,
    ),
    question(
        "/crds",
        "kinds by words or by name",
        &[WORDS, GROUP, LIMIT, CURSOR],
        PAGE,
        Call::kinds,
    ),
    question(
        "/crds/{crd}",
        "a kind",
        &[],
        Media::Object(&["name", "group", "kind", "versions", "packages"]),
        Call::kind,
    ),
    question(
        "/crds/{crd}/packages",
        "the packages that bring a kind",
        &[text("version", "only those with this version of it"), CURSOR],
        Media::Object(&["crd", "group", "packages", "ambiguous", "next"]),
        Call::definers,
    ),
    question(
        "/crds/{crd}/versions/{version}/schema",
        "the schema of a version of a kind",
        &[PACKAGE],
        Media::Json,
        Call::schema,
    ),
    question(
        "/crds/{crd}/versions/{version}/sample",
        "an object of a kind to begin with",
        &[PACKAGE],
        Media::Object(&["apiVersion", "kind", "metadata"]),
        Call::sample,
    ),
    question(
        "/crds/{crd}/versions/{version}/raw",
        "the document that defines a kind",
        &[PACKAGE],
        Media::Object(&["apiVersion", "kind", "spec"]),
        Call::raw,
    ),
    question("/groups", "API groups by name", &[LIMIT, CURSOR], PAGE, Call::groups),
    question(
        "/groups/{group}",
        "an API group",
        &[],
        Media::Object(&["group", "kinds", "packages"]),
        Call::group,
    ),
    question(
        "/packages",
        "packages by words or by name",
        &[WORDS, TYPE, GROUP, CATEGORY, KEYWORD, LICENSE, CAPABILITY, REQUIRES, LIMIT, CURSOR],
        PAGE,
        Call::packages,
    ),
    question(
        "/facets",
        "what packages have in common, and how many have it",
        &[WORDS, TYPE, GROUP, CATEGORY, KEYWORD, LICENSE, CAPABILITY, REQUIRES],
        Media::Object(&["facets"]),
        Call::facets,
    ),
    question(
        "/packages/{repository}",
        "a package",
        &[],
        Media::Object(&["repository", "newest", "versions"]),
        Call::package,
    ),
    question(
        "/packages/{repository}/-/versions",
        "the versions of a package",
        &[LIMIT, CURSOR],
        PAGE,
        Call::versions,
    ),
    question(
        "/packages/{repository}/-/versions/{reference}",
        "a version of a package, by tag, digest or constraint",
        &[],
        Media::Object(&["repository", "digest", "tags", "state"]),
        Call::version,
    ),
    question(
        "/packages/{repository}/-/versions/{reference}/crds",
        "the kinds that a version brings",
        &[LIMIT, CURSOR],
        PAGE,
        Call::definitions,
    ),
    question(
        "/packages/{repository}/-/versions/{reference}/dependencies",
        "what a version needs",
        &[],
        PAGE,
        Call::dependencies,
    ),
    question(
        "/packages/{repository}/-/versions/{reference}/graph",
        "what a version needs, and what that needs",
        &[DEPTH, GRAPH_FORMAT],
        Media::Object(&["root", "nodes", "edges"]),
        Call::graph,
    ),
    question(
        "/packages/{repository}/-/dependents",
        "the packages that need a package",
        &[LIMIT, CURSOR],
        PAGE,
        Call::dependents,
    ),
    question(
        "/packages/{repository}/-/diff",
        "what changed between two versions",
        &[required("from", "the old version"), required("to", "the new version")],
        Media::Object(&["repository", "from", "to", "breaking", "changes"]),
        Call::diff,
    ),
    question(
        "/packages/{repository}/-/breaking",
        "what may break between two versions",
        &[required("from", "the old version"), required("to", "the new version")],
        Media::Object(&["repository", "from", "to", "breaking", "changes"]),
        Call::breaking,
    ),
    ApiRoute {
        path: "/index.jsonl.gz",
        summary: "the whole catalog in one file",
        parameters: &[],
        media: Media::Other("application/gzip"),
        responder: Responder::Export,
    },
    ApiRoute {
        path: "/events",
        summary: "repositories whose packages changed, as server-sent events",
        parameters: &[],
        media: Media::Other("text/event-stream"),
        responder: Responder::Events,
    },
];

/// What stands where a path has a name in braces.
pub(super) type Captured = Vec<(&'static str, String)>;

/// The address that a path leads to.
pub(super) fn find_route(parts: &[String]) -> Option<(&'static ApiRoute, Captured)> {
    ROUTES.iter().find_map(|route| Some((route, match_path(route.path, parts)?)))
}

fn match_path(path: &'static str, parts: &[String]) -> Option<Captured> {
    let (mut captured, mut rest) = (Vec::new(), parts);
    for wanted in path.split('/').skip(1) {
        let name = wanted.strip_prefix('{').and_then(|it| it.strip_suffix('}'));
        let count = match name {
            Some("repository") => rest.iter().position(|it| it == "-").unwrap_or(rest.len()),
            _ => 1,
        };
        let (taken, left) = rest.split_at_checked(count)?;
        let first = taken.first()?;
        match name {
            Some(name) => captured.push((name, taken.join("/"))),
            None if first == wanted => {}
            None => return None,
        }
        rest = left;
    }
    rest.is_empty().then_some(captured)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_lead_to_addresses_and_names_of_repositories_may_have_slashes() {
        let found = |path: &str| {
            let parts: Vec<String> =
                path.split('/').filter(|it| !it.is_empty()).map(str::to_owned).collect();
            find_route(&parts).map(|(route, captured)| {
                let values: Vec<String> = captured.into_iter().map(|(_, value)| value).collect();
                format!("{} {}", route.path, values.join(" "))
            })
        };
        for (path, leads_to) in [
            ("/crds/a.b.c", Some("/crds/{crd} a.b.c")),
            ("/packages/a", Some("/packages/{repository} a")),
            ("/packages/a/b/c/-/versions", Some("/packages/{repository}/-/versions a/b/c")),
            (
                "/packages/a/b/-/versions/v1/crds",
                Some("/packages/{repository}/-/versions/{reference}/crds a/b v1"),
            ),
            ("/packages/-/versions", None),
            ("/packages/a/-", None),
            ("/packages/a/-/nothing", None),
            ("/crds/a.b.c/versions", None),
            ("/", None),
        ] {
            assert_eq!(found(path).as_deref(), leads_to, "{path}");
        }
    }
}

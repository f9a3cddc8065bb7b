//! The table of built-in kinds.

use std::sync::Arc;

use super::{Kind, LazyShape, Scale};
use schema::object::name::NameRule;

/// A row: what differs between built-in kinds.
struct Row {
    at: (&'static str, &'static str),
    names: (&'static str, &'static str, &'static str),
    short: &'static [&'static str],
    marks: &'static str,
    fields: &'static [&'static str],
}

/// `marks`: c cluster-wide, s status, g generation, r scale, a category `all`,
/// e category `api-extensions`, d/l/p names are labels/1035 labels/path segments,
/// v a version is needed to update, q a question: answered, never stored, u counted when it is asked for.
const fn row(
    at: (&'static str, &'static str),
    names: (&'static str, &'static str, &'static str),
    short: &'static [&'static str],
    marks: &'static str,
    fields: &'static [&'static str],
) -> Row {
    Row { at, names, short, marks, fields }
}

const CORE: (&str, &str) = ("", "v1");
const APPS: (&str, &str) = ("apps", "v1");
const AUTHENTICATION: (&str, &str) = ("authentication.k8s.io", "v1");
const AUTHORIZATION: (&str, &str) = ("authorization.k8s.io", "v1");
const RBAC: (&str, &str) = ("rbac.authorization.k8s.io", "v1");
const ADMISSION: (&str, &str) = ("admissionregistration.k8s.io", "v1");
const METRICS: (&str, &str) = ("metrics.k8s.io", "v1beta1");
const EXTENSIONS: (&str, &str) = ("apiextensions.k8s.io", "v1");

const EVENT_FIELDS: &[&str] = &[
    "involvedObject.kind",
    "involvedObject.namespace",
    "involvedObject.name",
    "involvedObject.uid",
    "involvedObject.apiVersion",
    "involvedObject.resourceVersion",
    "involvedObject.fieldPath",
    "reason",
    "reportingComponent",
    "source",
    "type",
];
const POD_FIELDS: &[&str] = &[
    "spec.nodeName",
    "spec.restartPolicy",
    "spec.schedulerName",
    "spec.serviceAccountName",
    "spec.hostNetwork",
    "status.phase",
    "status.podIP",
    "status.nominatedNodeName",
];

/// The same in the newer API.
const NEWER_EVENT_FIELDS: &[&str] = &[
    "reason",
    "regarding.kind",
    "regarding.namespace",
    "regarding.name",
    "regarding.uid",
    "regarding.apiVersion",
    "regarding.resourceVersion",
    "regarding.fieldPath",
    "reportingController",
    "type",
];

/// Groups in the order in which discovery lists them.
const ROWS: &[Row] = &[
    row(CORE, ("configmaps", "configmap", "ConfigMap"), &["cm"], "", &[]),
    row(CORE, ("endpoints", "endpoints", "Endpoints"), &["ep"], "", &[]),
    row(CORE, ("events", "event", "Event"), &["ev"], "", EVENT_FIELDS),
    row(CORE, ("namespaces", "namespace", "Namespace"), &["ns"], "csd", &["status.phase"]),
    row(CORE, ("nodes", "node", "Node"), &["no"], "cs", &["spec.unschedulable"]),
    row(CORE, ("pods", "pod", "Pod"), &["po"], "sga", POD_FIELDS),
    row(CORE, ("secrets", "secret", "Secret"), &[], "", &["type"]),
    row(CORE, ("serviceaccounts", "serviceaccount", "ServiceAccount"), &["sa"], "", &[]),
    row(
        CORE,
        ("services", "service", "Service"),
        &["svc"],
        "sal",
        &["spec.clusterIP", "spec.type"],
    ),
    row(APPS, ("deployments", "deployment", "Deployment"), &["deploy"], "sgra", &[]),
    row(APPS, ("replicasets", "replicaset", "ReplicaSet"), &["rs"], "sgra", &["status.replicas"]),
    row((super::event::GROUP, "v1"), ("events", "event", "Event"), &["ev"], "", NEWER_EVENT_FIELDS),
    row(
        AUTHENTICATION,
        ("selfsubjectreviews", "selfsubjectreview", "SelfSubjectReview"),
        &[],
        "cq",
        &[],
    ),
    row(AUTHENTICATION, ("tokenreviews", "tokenreview", "TokenReview"), &[], "cq", &[]),
    row(
        AUTHORIZATION,
        ("localsubjectaccessreviews", "localsubjectaccessreview", "LocalSubjectAccessReview"),
        &[],
        "q",
        &[],
    ),
    row(
        AUTHORIZATION,
        ("selfsubjectaccessreviews", "selfsubjectaccessreview", "SelfSubjectAccessReview"),
        &[],
        "cq",
        &[],
    ),
    row(
        AUTHORIZATION,
        ("selfsubjectrulesreviews", "selfsubjectrulesreview", "SelfSubjectRulesReview"),
        &[],
        "cq",
        &[],
    ),
    row(
        AUTHORIZATION,
        ("subjectaccessreviews", "subjectaccessreview", "SubjectAccessReview"),
        &[],
        "cq",
        &[],
    ),
    row(RBAC, ("clusterrolebindings", "clusterrolebinding", "ClusterRoleBinding"), &[], "cp", &[]),
    row(RBAC, ("clusterroles", "clusterrole", "ClusterRole"), &[], "cp", &[]),
    row(RBAC, ("rolebindings", "rolebinding", "RoleBinding"), &[], "p", &[]),
    row(RBAC, ("roles", "role", "Role"), &[], "p", &[]),
    row(
        ADMISSION,
        (
            "mutatingwebhookconfigurations",
            "mutatingwebhookconfiguration",
            "MutatingWebhookConfiguration",
        ),
        &[],
        "cge",
        &[],
    ),
    row(
        ADMISSION,
        (
            "validatingwebhookconfigurations",
            "validatingwebhookconfiguration",
            "ValidatingWebhookConfiguration",
        ),
        &[],
        "cge",
        &[],
    ),
    row(
        EXTENSIONS,
        ("customresourcedefinitions", "customresourcedefinition", "CustomResourceDefinition"),
        &["crd", "crds"],
        "csgev",
        &[],
    ),
    row(("coordination.k8s.io", "v1"), ("leases", "lease", "Lease"), &[], "v", &[]),
    row(
        ("discovery.k8s.io", "v1"),
        ("endpointslices", "endpointslice", "EndpointSlice"),
        &[],
        "g",
        &[],
    ),
];

/// As a metrics server lists them, which has no name for one.
const USAGE_ROWS: [Row; 2] = [
    row(METRICS, ("nodes", "", "NodeMetrics"), &[], "cu", &[]),
    row(METRICS, ("pods", "", "PodMetrics"), &[], "u", &[]),
];

pub(super) fn is_kind(api_version: &str, name: &str) -> bool {
    ROWS.iter().any(|row| {
        let (group, version) = row.at;
        let said = if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") };
        said == api_version && row.names.2 == name
    })
}

/// What is asked of `serviceaccounts/NAME/token`; there is no collection of these.
pub(super) fn token_request() -> Kind {
    let names = ("tokenrequests", "tokenrequest", "TokenRequest");
    kind(&row(AUTHENTICATION, names, &[], "q", &[]))
}

pub(super) fn table(has_usage: bool) -> Vec<Arc<Kind>> {
    let usage = USAGE_ROWS.iter().filter(|_| has_usage);
    ROWS.iter().chain(usage).map(|row| Arc::new(kind(row))).collect()
}

fn kind(row: &Row) -> Kind {
    let (plural, singular, kind) = row.names;
    let has = |mark: char| row.marks.contains(mark);
    let names = match () {
        () if has('d') => NameRule::Label,
        () if has('l') => NameRule::Label1035,
        () if has('p') => NameRule::Segment,
        () => NameRule::Subdomain,
    };
    let mut categories = Vec::new();
    if has('a') {
        categories.push("all".to_owned());
    }
    if has('e') {
        categories.push("api-extensions".to_owned());
    }
    Kind {
        group: row.at.0.to_owned(),
        version: row.at.1.to_owned(),
        plural: plural.to_owned(),
        singular: singular.to_owned(),
        kind: kind.to_owned(),
        list_kind: format!("{kind}List"),
        short_names: row.short.iter().map(|name| (*name).to_owned()).collect(),
        categories,
        namespaced: !has('c'),
        status: has('s'),
        scale: has('r').then(scale),
        custom: false,
        generation: has('g'),
        unconditional: !has('v'),
        names,
        selectable: row.fields.iter().map(|path| (*path).to_owned()).collect(),
        columns: super::print::columns(plural),
        storage_version: row.at.1.to_owned(),
        shape: LazyShape::builtin(
            if row.at.0.is_empty() {
                row.at.1.to_owned()
            } else {
                format!("{}/{}", row.at.0, row.at.1)
            },
            kind.to_owned(),
        ),
        stored_shape: None,
        conversion: None,
        fleeting: has('q'),
        counted: has('u'),
        terminating: false,
        deprecation: (row.at.0.is_empty() && kind == "Endpoints").then(|| {
            "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice".to_owned()
        }),
    }
}

fn scale() -> Scale {
    Scale {
        spec_path: ".spec.replicas".to_owned(),
        status_path: ".status.replicas".to_owned(),
        selector_path: None,
    }
}

/// What a column means, in the words of the API's own documentation.
pub(super) fn description(plural: &str, column: &str) -> String {
    match (plural, column) {
        (_, "Name") => super::NAME,
        (_, "Age" | "Created At") => super::AGE,
        ("namespaces", "Status") => "The status of the namespace",
        ("configmaps", "Data") => {
            "Data contains the configuration data. Each key must consist of alphanumeric \
             characters, '-', '_' or '.'. Values with non-UTF-8 byte sequences must use the \
             BinaryData field. The keys stored in Data must not overlap with the keys in the \
             BinaryData field, this is enforced during validation process."
        }
        _ => "",
    }
    .to_owned()
}

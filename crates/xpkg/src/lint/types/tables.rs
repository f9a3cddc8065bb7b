//! The types of the kinds that packages may contain: field by field, as Crossplane and Kubernetes
//! have them.

use super::Type::{
    self, Any, Bool, Both, Bytes, Fields, Float, Int32, Int64, List, Map, SchemaOrBool,
    SchemaOrList, SchemaOrNames, String,
};
use crate::lint::kinds::ObjectKind;

const TEXTS: &Type = &List(&String);
const TEXT_BY_TEXT: &Type = &Map(&String);

pub(super) const META: &Type = &Fields(&[
    ("name", &String),
    ("generateName", &String),
    ("namespace", &String),
    ("selfLink", &String),
    ("uid", &String),
    ("resourceVersion", &String),
    ("generation", &Int64),
    ("creationTimestamp", &String),
    ("deletionTimestamp", &String),
    ("deletionGracePeriodSeconds", &Int64),
    ("labels", TEXT_BY_TEXT),
    ("annotations", TEXT_BY_TEXT),
    ("finalizers", TEXTS),
    ("ownerReferences", &List(&Fields(OWNER))),
    ("managedFields", &List(&Fields(MANAGED))),
]);
const OWNER: &[(&str, &Type)] = &[
    ("apiVersion", &String),
    ("kind", &String),
    ("name", &String),
    ("uid", &String),
    ("controller", &Bool),
    ("blockOwnerDeletion", &Bool),
];
const MANAGED: &[(&str, &Type)] = &[
    ("manager", &String),
    ("operation", &String),
    ("apiVersion", &String),
    ("time", &String),
    ("fieldsType", &String),
    ("fieldsV1", &Any),
    ("subresource", &String),
];
const SELECTOR: &Type = &Fields(&[
    ("matchLabels", TEXT_BY_TEXT),
    (
        "matchExpressions",
        &List(&Fields(&[("key", &String), ("operator", &String), ("values", TEXTS)])),
    ),
]);
const CONDITIONS: &Type = &List(&Fields(&[
    ("type", &String),
    ("status", &String),
    ("lastTransitionTime", &String),
    ("reason", &String),
    ("message", &String),
    ("observedGeneration", &Int64),
]));
const CLIENT: &Type = &Fields(&[
    ("url", &String),
    (
        "service",
        &Fields(&[("namespace", &String), ("name", &String), ("path", &String), ("port", &Int32)]),
    ),
    ("caBundle", &Bytes),
]);

const NAMES: &Type = &Fields(&[
    ("plural", &String),
    ("singular", &String),
    ("shortNames", TEXTS),
    ("kind", &String),
    ("listKind", &String),
    ("categories", TEXTS),
]);
const SUBRESOURCES: &Type = &Fields(&[("status", &Fields(&[])), ("scale", SCALE)]);
const SCALE: &Type = &Fields(&[
    ("specReplicasPath", &String),
    ("statusReplicasPath", &String),
    ("labelSelectorPath", &String),
]);
const COLUMNS: &Type = &List(&Both(COLUMN, &Fields(&[("jsonPath", &String)])));
const COLUMN: &Type = &Fields(&[
    ("name", &String),
    ("type", &String),
    ("format", &String),
    ("description", &String),
    ("priority", &Int32),
]);
const SELECTABLE: &Type = &List(&Fields(&[("jsonPath", &String)]));
const CONVERSION: &Type = &Fields(&[
    ("strategy", &String),
    ("webhook", &Fields(&[("clientConfig", CLIENT), ("conversionReviewVersions", TEXTS)])),
]);
const VALIDATION: &Type = &Fields(&[("openAPIV3Schema", &SCHEMA)]);
/// A schema that is decoded later, if at all.
const OPAQUE: &Type = &Fields(&[("openAPIV3Schema", &Any)]);

pub(super) static SCHEMA: Type = Fields(&[
    ("id", &String),
    ("$schema", &String),
    ("$ref", &String),
    ("description", &String),
    ("type", &String),
    ("format", &String),
    ("title", &String),
    ("default", &Any),
    ("maximum", &Float),
    ("exclusiveMaximum", &Bool),
    ("minimum", &Float),
    ("exclusiveMinimum", &Bool),
    ("maxLength", &Int64),
    ("minLength", &Int64),
    ("pattern", &String),
    ("maxItems", &Int64),
    ("minItems", &Int64),
    ("uniqueItems", &Bool),
    ("multipleOf", &Float),
    ("enum", &List(&Any)),
    ("maxProperties", &Int64),
    ("minProperties", &Int64),
    ("required", TEXTS),
    ("items", &SchemaOrList),
    ("allOf", &List(&SCHEMA)),
    ("oneOf", &List(&SCHEMA)),
    ("anyOf", &List(&SCHEMA)),
    ("not", &SCHEMA),
    ("properties", &Map(&SCHEMA)),
    ("additionalProperties", &SchemaOrBool),
    ("patternProperties", &Map(&SCHEMA)),
    ("dependencies", &Map(&SchemaOrNames)),
    ("additionalItems", &SchemaOrBool),
    ("definitions", &Map(&SCHEMA)),
    ("externalDocs", &Fields(&[("description", &String), ("url", &String)])),
    ("example", &Any),
    ("nullable", &Bool),
    ("x-kubernetes-preserve-unknown-fields", &Bool),
    ("x-kubernetes-embedded-resource", &Bool),
    ("x-kubernetes-int-or-string", &Bool),
    ("x-kubernetes-list-map-keys", TEXTS),
    ("x-kubernetes-list-type", &String),
    ("x-kubernetes-map-type", &String),
    ("x-kubernetes-validations", &List(&Fields(RULE))),
]);
const RULE: &[(&str, &Type)] = &[
    ("rule", &String),
    ("message", &String),
    ("messageExpression", &String),
    ("reason", &String),
    ("fieldPath", &String),
    ("optionalOldSelf", &Bool),
];

const CRD: &[(&str, &Type)] = &[
    (
        "spec",
        &Fields(&[
            ("group", &String),
            ("names", NAMES),
            ("scope", &String),
            ("versions", &List(CRD_VERSION)),
            ("conversion", CONVERSION),
            ("preserveUnknownFields", &Bool),
        ]),
    ),
    ("status", CRD_STATUS),
];
const CRD_VERSION: &Type =
    &Both(VERSION, &Fields(&[("schema", VALIDATION), ("additionalPrinterColumns", COLUMNS)]));
/// What versions of all definitions have.
const VERSION: &Type = &Fields(&[
    ("name", &String),
    ("served", &Bool),
    ("storage", &Bool),
    ("deprecated", &Bool),
    ("deprecationWarning", &String),
    ("subresources", SUBRESOURCES),
    ("selectableFields", SELECTABLE),
]);
const CRD_STATUS: &Type = &Fields(&[
    ("conditions", CONDITIONS),
    ("acceptedNames", NAMES),
    ("storedVersions", TEXTS),
    ("observedGeneration", &Int64),
]);

/// The same before version 1.
const OLD_CRD: &[(&str, &Type)] = &[
    (
        "spec",
        &Fields(&[
            ("group", &String),
            ("version", &String),
            ("names", NAMES),
            ("scope", &String),
            ("validation", VALIDATION),
            ("subresources", SUBRESOURCES),
            ("versions", &List(OLD_CRD_VERSION)),
            ("additionalPrinterColumns", OLD_COLUMNS),
            ("selectableFields", SELECTABLE),
            (
                "conversion",
                &Fields(&[
                    ("strategy", &String),
                    ("webhookClientConfig", CLIENT),
                    ("conversionReviewVersions", TEXTS),
                ]),
            ),
            ("preserveUnknownFields", &Bool),
        ]),
    ),
    ("status", CRD_STATUS),
];
const OLD_CRD_VERSION: &Type =
    &Both(VERSION, &Fields(&[("schema", VALIDATION), ("additionalPrinterColumns", OLD_COLUMNS)]));
const OLD_COLUMNS: &Type = &List(&Both(COLUMN, &Fields(&[("JSONPath", &String)])));

const MRD: &[(&str, &Type)] = &[
    (
        "spec",
        &Fields(&[
            ("group", &String),
            ("names", NAMES),
            ("scope", &String),
            ("versions", &List(MRD_VERSION)),
            ("conversion", CONVERSION),
            ("preserveUnknownFields", &Bool),
            ("state", &String),
            ("connectionDetails", &List(&Fields(&[("name", &String), ("description", &String)]))),
        ]),
    ),
    ("status", &Fields(&[("conditions", CONDITIONS)])),
];
const MRD_VERSION: &Type =
    &Both(VERSION, &Fields(&[("schema", OPAQUE), ("additionalPrinterColumns", COLUMNS)]));

const XRD: &[(&str, &Type)] = &[
    (
        "spec",
        &Fields(&[
            ("group", &String),
            ("names", NAMES),
            ("claimNames", NAMES),
            ("scope", &String),
            ("connectionSecretKeys", TEXTS),
            ("defaultCompositeDeletePolicy", &String),
            ("defaultCompositionRef", NAMED),
            ("defaultCompositionRevisionSelector", SELECTOR),
            ("defaultCompositionUpdatePolicy", &String),
            ("enforcedCompositionRef", NAMED),
            ("versions", &List(&Fields(XRD_VERSION))),
            ("conversion", CONVERSION),
            ("metadata", &Fields(&[("labels", TEXT_BY_TEXT), ("annotations", TEXT_BY_TEXT)])),
        ]),
    ),
    (
        "status",
        &Fields(&[
            ("conditions", CONDITIONS),
            (
                "controllers",
                &Fields(&[
                    ("compositeResourceType", TYPE_REFERENCE),
                    ("compositeResourceClaimType", TYPE_REFERENCE),
                ]),
            ),
        ]),
    ),
];
const XRD_VERSION: &[(&str, &Type)] = &[
    ("name", &String),
    ("referenceable", &Bool),
    ("served", &Bool),
    ("deprecated", &Bool),
    ("deprecationWarning", &String),
    ("schema", OPAQUE),
    ("subresources", &Fields(&[("scale", SCALE)])),
    ("additionalPrinterColumns", COLUMNS),
];
const NAMED: &Type = &Fields(&[("name", &String)]);
const TYPE_REFERENCE: &Type = &Fields(&[("apiVersion", &String), ("kind", &String)]);

const COMPOSITION: &[(&str, &Type)] = &[(
    "spec",
    &Fields(&[
        ("compositeTypeRef", TYPE_REFERENCE),
        ("mode", &String),
        ("pipeline", PIPELINE),
        ("writeConnectionSecretsToNamespace", &String),
    ]),
)];
const PIPELINE: &Type = &List(&Fields(&[
    ("step", &String),
    ("functionRef", NAMED),
    ("input", &Any),
    (
        "credentials",
        &List(&Fields(&[
            ("name", &String),
            ("source", &String),
            ("secretRef", &Fields(&[("name", &String), ("namespace", &String)])),
        ])),
    ),
    (
        "requirements",
        &Fields(&[
            ("requiredResources", &List(&Fields(REQUIRED))),
            (
                "requiredSchemas",
                &List(&Fields(&[
                    ("requirementName", &String),
                    ("apiVersion", &String),
                    ("kind", &String),
                ])),
            ),
        ]),
    ),
]));
const REQUIRED: &[(&str, &Type)] = &[
    ("requirementName", &String),
    ("apiVersion", &String),
    ("kind", &String),
    ("name", &String),
    ("namespace", &String),
    ("matchLabels", TEXT_BY_TEXT),
];

const POLICY: &[(&str, &Type)] = &[
    ("spec", &Fields(&[("activate", TEXTS)])),
    ("status", &Fields(&[("conditions", CONDITIONS), ("activated", TEXTS)])),
];

const OPERATION_SPEC: &Type =
    &Fields(&[("mode", &String), ("pipeline", PIPELINE), ("retryLimit", &Int64)]);
const OPERATION: &[(&str, &Type)] = &[
    ("spec", OPERATION_SPEC),
    ("status", &Fields(&[("conditions", CONDITIONS), ("failures", &Int64)])),
];
const CRON_OPERATION: &[(&str, &Type)] = &[
    (
        "spec",
        &Fields(&[
            ("schedule", &String),
            ("startingDeadlineSeconds", &Int64),
            ("concurrencyPolicy", &String),
            ("successfulHistoryLimit", &Int32),
            ("failedHistoryLimit", &Int32),
            ("operationTemplate", OPERATION_TEMPLATE),
        ]),
    ),
    ("status", &Fields(&[("conditions", CONDITIONS)])),
];
const WATCH_OPERATION: &[(&str, &Type)] = &[
    (
        "spec",
        &Fields(&[
            (
                "watch",
                &Fields(&[
                    ("apiVersion", &String),
                    ("kind", &String),
                    ("matchLabels", TEXT_BY_TEXT),
                    ("namespace", &String),
                ]),
            ),
            ("concurrencyPolicy", &String),
            ("successfulHistoryLimit", &Int32),
            ("failedHistoryLimit", &Int32),
            ("operationTemplate", OPERATION_TEMPLATE),
        ]),
    ),
    ("status", &Fields(&[("conditions", CONDITIONS)])),
];
const OPERATION_TEMPLATE: &Type = &Fields(&[("metadata", META), ("spec", OPERATION_SPEC)]);

const VALIDATING: &[(&str, &Type)] = &[("webhooks", &List(WEBHOOK))];
const WEBHOOK: &Type = &Fields(&[
    ("name", &String),
    ("clientConfig", CLIENT),
    (
        "rules",
        &List(&Fields(&[
            ("operations", TEXTS),
            ("apiGroups", TEXTS),
            ("apiVersions", TEXTS),
            ("resources", TEXTS),
            ("scope", &String),
        ])),
    ),
    ("failurePolicy", &String),
    ("matchPolicy", &String),
    ("namespaceSelector", SELECTOR),
    ("objectSelector", SELECTOR),
    ("sideEffects", &String),
    ("timeoutSeconds", &Int32),
    ("admissionReviewVersions", TEXTS),
    ("matchConditions", &List(&Fields(&[("name", &String), ("expression", &String)]))),
]);
const MUTATING: &[(&str, &Type)] =
    &[("webhooks", &List(&Both(WEBHOOK, &Fields(&[("reinvocationPolicy", &String)]))))];

/// The fields of an object, but for its metadata.
pub(super) fn fields(
    kind: ObjectKind,
    api_version: &str,
) -> &'static [(&'static str, &'static Type)] {
    match kind {
        ObjectKind::CustomResourceDefinition if api_version.ends_with("/v1beta1") => OLD_CRD,
        ObjectKind::CustomResourceDefinition => CRD,
        ObjectKind::ManagedResourceDefinition => MRD,
        ObjectKind::MutatingWebhookConfiguration => MUTATING,
        ObjectKind::ValidatingWebhookConfiguration => VALIDATING,
        ObjectKind::CompositeResourceDefinition => XRD,
        ObjectKind::Composition => COMPOSITION,
        ObjectKind::ManagedResourceActivationPolicy => POLICY,
        ObjectKind::Operation => OPERATION,
        ObjectKind::CronOperation => CRON_OPERATION,
        ObjectKind::WatchOperation => WATCH_OPERATION,
    }
}

//! Definitions of `v1beta1` in `v1`.

use super::{APP, read, shown};
use crate::definition::beta::convert_definition;
use serde_json::json;

fn convert(text: &str) -> String {
    let definition = yaml::parse(text, 1, &yaml::Limits::default()).unwrap().to_json();
    let made = convert_definition(&definition);
    let errors = schema::validate_crd(&made.object, None);
    assert!(errors.is_empty(), "{errors:?}");
    let told: Vec<String> =
        made.unchecked.iter().map(|(version, why)| format!("# {version}: {why}\n")).collect();
    format!("{}{}", told.concat(), yaml::write::to_string(&made.object["spec"]))
}

#[test]
fn everything_said_once_is_said_of_each_version() {
    insta::assert_snapshot!(convert(
        "
apiVersion: apiextensions.k8s.io/v1beta1
kind: CustomResourceDefinition
metadata: {name: things.example.org}
spec:
  group: example.org
  names: {kind: Thing, plural: things, shortNames: [th], categories: [all]}
  version: v1
  versions:
  - {name: v1, served: true, storage: true}
  - {name: v1beta1, served: true, storage: false}
  preserveUnknownFields: false
  subresources:
    status: {}
    scale: {specReplicasPath: .spec.replicas, statusReplicasPath: .status.replicas}
  additionalPrinterColumns:
  - {name: SIZE, type: integer, JSONPath: .spec.size, priority: 1}
  validation:
    openAPIV3Schema:
      type: object
      properties:
        spec: {type: object, properties: {size: {type: integer, minimum: 1}, replicas: {type: integer}}}
        status: {type: object, properties: {replicas: {type: integer}}}
  conversion:
    strategy: Webhook
    webhookClientConfig: {url: 'https://convert.example.org/'}
    conversionReviewVersions: [v1beta1, v1]
"
    ));
}

#[test]
fn each_version_may_say_it_itself() {
    insta::assert_snapshot!(convert(
        "
apiVersion: apiextensions.k8s.io/v1beta1
kind: CustomResourceDefinition
metadata: {name: things.example.org}
spec:
  group: example.org
  names: {kind: Thing, plural: things}
  scope: Cluster
  preserveUnknownFields: false
  versions:
  - name: v2
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, x-kubernetes-preserve-unknown-fields: true}}}}
    additionalPrinterColumns: [{name: A, type: string, JSONPath: .spec.a}]
  - name: v1
    served: false
    storage: false
    schema: {openAPIV3Schema: {type: object}}
    subresources: {status: {}}
  conversion: {strategy: None, webhookClientConfig: null}
"
    ));
}

/// Unless it says otherwise, v1beta1 keeps what its schema does not know; so does what is made of it.
#[test]
fn fields_that_were_kept_are_kept() {
    let schema = json!({"properties": {
        "metadata": {"type": "object"},
        "spec": {"type": "object", "properties": {
            "list": {"type": "array", "items": {"type": "object"}},
            "map": {"type": "object", "additionalProperties": {"type": "object"}},
            "pod": {"type": "object", "x-kubernetes-embedded-resource": true,
                    "properties": {"metadata": {"type": "object"}}},
        }},
    }});
    let definition = json!({"spec": {"version": "v1", "validation": {"openAPIV3Schema": schema}}});
    let made = convert_definition(&definition);
    assert_eq!(made.unchecked, []);
    let schema = &made.object["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
    let compiled = schema::Structural::compile(schema).unwrap();
    let mut object = json!({
        "apiVersion": "example.org/v1", "kind": "Thing", "metadata": {"name": "t"}, "more": 1,
        "spec": {"a": 1, "list": [{"b": 2}], "map": {"k": {"c": 3}}, "pod": {
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"d": 4},
        }},
    });
    let before = object.clone();
    let pruned = compiled.prune(&mut object, schema::Root::Resource);
    assert_eq!((pruned, object), (Vec::new(), before));
}

#[test]
fn schemas_that_are_not_structural_check_nothing_any_more_and_that_is_told() {
    let crd = "apiVersion: apiextensions.k8s.io/v1beta1
kind: CustomResourceDefinition
metadata: {name: things.samples.example.org}
spec:
  group: samples.example.org
  names: {kind: Thing, plural: things}
  version: v1
  validation: {openAPIV3Schema: {type: object, properties: {port: {oneOf: [{type: string}, {type: integer}]}}}}
";
    let (stack, findings) = read(&[("app.yaml", APP), ("resources/crd.yaml", crd)]);
    insta::assert_snapshot!(shown(&findings));
    let version = &stack.unwrap().definitions[0].object["spec"]["versions"][0];
    assert_eq!(
        version["schema"]["openAPIV3Schema"],
        json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true})
    );
}

//! The document about all addresses, made from the table that answers them.

use super::PREFIX;
use super::routes::{ApiRoute, Media, Parameter, ParameterForm, ROUTES};
use serde_json::{Map, Value as Json, json};

/// The document, as `OpenAPI` 3.1 wants it.
pub fn describe_routes() -> Json {
    let paths: Map<String, Json> = ROUTES
        .iter()
        .map(|route| (format!("{PREFIX}{}", route.path), json!({ "get": describe_route(route) })))
        .collect();
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "The catalog of an apron registry",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Which package brings a kind, and what a package brings. Answers show \
                what their reader may pull. Names of repositories have slashes in them, which stay \
                as they are in paths.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "/"}],
        "paths": paths,
        "components": {
            "schemas": {"Problem": problem_schema()},
            "securitySchemes": {
                "password": {"type": "http", "scheme": "basic"},
                "token": {"type": "http", "scheme": "bearer"},
            },
        },
        "security": [{}, {"password": []}, {"token": []}],
    })
}

fn problem_schema() -> Json {
    json!({
        "type": "object",
        "description": "what could not be answered, as RFC 9457 writes it",
        "required": ["type", "title", "status", "detail", "hint"],
        "properties": {
            "type": {"type": "string", "format": "uri-reference"},
            "title": {"type": "string"},
            "status": {"type": "integer"},
            "detail": {"type": "string"},
            "hint": {"type": "string", "description": "what to do about it"},
            "suggestions": {"type": "array", "items": {"type": "string"}},
        },
    })
}

fn describe_route(route: &ApiRoute) -> Json {
    let names = route.path.split('/').filter_map(|it| it.strip_prefix('{')?.strip_suffix('}'));
    let in_path = names.map(describe_name);
    let in_query = route.parameters.iter().map(describe_parameter);
    let problem = |about: &str| {
        let schema = json!({"$ref": "#/components/schemas/Problem"});
        json!({"description": about, "content": {"application/problem+json": {"schema": schema}}})
    };
    let mut responses = json!({
        "200": {"description": route.summary, "content": describe_media(route)},
        "304": {"description": "what the asker has is what there is"},
        "400": problem("the question cannot be understood"),
        "401": problem("the asker is not known"),
        "404": problem("there is nothing that the asker may read"),
        "421": problem("another name is meant"),
        "429": problem("too many questions"),
        "503": problem("too many readers"),
    });
    if route.path == "/resolve" {
        responses["409"] = problem("several packages bring the kind");
        responses["422"] = problem("no version that can be installed serves the kind");
    }
    json!({
        "operationId": operation_name(route.path),
        "summary": route.summary,
        "parameters": in_path.chain(in_query).collect::<Vec<Json>>(),
        "responses": responses,
    })
}

/// A name for programs: `packages-repository-versions`.
fn operation_name(path: &str) -> String {
    let is_letter = |letter: char| letter.is_ascii_alphanumeric();
    let words = path.split(|letter| !is_letter(letter)).filter(|word| !word.is_empty());
    words.collect::<Vec<_>>().join("-")
}

fn describe_name(name: &str) -> Json {
    let about = match name {
        "crd" => "PLURAL.GROUP; a singular or a kind will do for the plural",
        "repository" => "the name of a repository, without the registry",
        "reference" => "a tag, a digest, or a constraint such as >=v1.0.0",
        "version" => "a version of the kind, such as v1beta1",
        _ => "an API group",
    };
    let schema = json!({"type": "string", "minLength": 1});
    json!({"name": name, "in": "path", "required": true, "description": about, "schema": schema})
}

fn describe_parameter(parameter: &Parameter) -> Json {
    let schema = match parameter.form {
        ParameterForm::Text if parameter.is_required => {
            json!({"type": "string", "minLength": 1, "maxLength": 512})
        }
        ParameterForm::Text => json!({"type": "string", "maxLength": 512}),
        ParameterForm::Flag => json!({"type": "boolean"}),
        ParameterForm::Number(most) => json!({"type": "integer", "minimum": 1, "maximum": most}),
        ParameterForm::Choice(all) => json!({"type": "string", "enum": all}),
    };
    json!({
        "name": parameter.name,
        "in": "query",
        "required": parameter.is_required,
        "description": parameter.about,
        "schema": schema,
    })
}

fn describe_media(route: &ApiRoute) -> Json {
    let json_form = |schema: Json| json!({"application/json": {"schema": schema}});
    let takes_dot =
        route.parameters.iter().any(|it| it.form == ParameterForm::Choice(&["json", "dot"]));
    let mut media = match route.media {
        Media::Object(members) => json_form(json!({"type": "object", "required": members})),
        Media::Json => json_form(json!({})),
        Media::Other(name) => json!({ name: {"schema": {"type": "string"}} }),
    };
    if takes_dot {
        media["text/vnd.graphviz"] = json!({"schema": {"type": "string"}});
    }
    media
}

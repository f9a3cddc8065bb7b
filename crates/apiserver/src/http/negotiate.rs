//! In which form an answer is wanted.

/// The form of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// The object itself.
    Object,
    /// A table for people.
    Table,
    /// Its metadata only.
    Metadata,
    /// Discovery, all at once.
    Discovery,
}

/// What an `Accept` header asks for, if it asks for anything we have. Answers are JSON;
/// clients that prefer protobuf always list JSON too.
pub fn accept(header: &str, discovery: bool) -> Option<Form> {
    if header.trim().is_empty() {
        return Some(Form::Object);
    }
    header.split(',').find_map(|clause| form(clause, discovery))
}

fn form(clause: &str, discovery: bool) -> Option<Form> {
    let mut parts = clause.split(';').map(str::trim);
    let media = parts.next().unwrap_or_default();
    if !["application/json", "*/*", "application/*"].contains(&media) {
        return None;
    }
    let parameters: Vec<(&str, &str)> = parts.filter_map(|part| part.split_once('=')).collect();
    let get = |name: &str| parameters.iter().find(|(key, _)| *key == name).map(|(_, v)| *v);
    match get("as") {
        None => Some(Form::Object),
        Some("Table") if get("g") == Some("meta.k8s.io") && get("v") == Some("v1") => {
            Some(Form::Table)
        }
        Some("PartialObjectMetadata" | "PartialObjectMetadataList")
            if get("g") == Some("meta.k8s.io") && get("v") == Some("v1") =>
        {
            Some(Form::Metadata)
        }
        Some("APIGroupDiscoveryList") if discovery && get("v") == Some("v2") => {
            Some(Form::Discovery)
        }
        Some(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_form_we_have_wins() {
        let check = |header: &str, expect: Option<Form>| {
            assert_eq!(accept(header, true), expect, "{header}");
        };
        check("", Some(Form::Object));
        check("application/vnd.kubernetes.protobuf,application/json", Some(Form::Object));
        check("application/json;as=Table;v=v1;g=meta.k8s.io,application/json", Some(Form::Table));
        check(
            "application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json",
            Some(Form::Object),
        );
        check("application/x-foo", None);
        check(
            "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList",
            Some(Form::Discovery),
        );
    }
}

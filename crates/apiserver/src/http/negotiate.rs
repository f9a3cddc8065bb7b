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

/// What an answer is to be, and how it is to be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Accepted {
    /// What.
    pub form: Form,
    /// As YAML rather than as JSON.
    pub yaml: bool,
}

/// What YAML is called.
pub const YAML: &str = "application/yaml";

/// What an `Accept` header asks for, if it asks for anything we have. Answers are JSON or YAML;
/// clients that prefer protobuf always list JSON too.
pub fn accept(header: &str, discovery: bool) -> Option<Accepted> {
    if header.trim().is_empty() {
        return Some(Accepted { form: Form::Object, yaml: false });
    }
    let mut clauses: Vec<Clause<'_>> = header.split(',').map(Clause::parse).collect();
    // What is wanted most comes first, and what is said exactly before what stands for many.
    clauses.sort_by_key(|clause| (std::cmp::Reverse(clause.weight), clause.width()));
    clauses.iter().find_map(|clause| clause.accepted(discovery))
}

/// One of the things that a client would take.
struct Clause<'a> {
    media: &'a str,
    parameters: Vec<(&'a str, &'a str)>,
    /// How much it is wanted, in thousandths.
    weight: u32,
}

impl<'a> Clause<'a> {
    fn parse(text: &'a str) -> Self {
        let mut parts = text.split(';').map(str::trim);
        let media = parts.next().unwrap_or_default();
        let parameters: Vec<(&str, &str)> = parts.filter_map(|part| part.split_once('=')).collect();
        let said = parameters.iter().find(|(key, _)| *key == "q").map(|(_, value)| *value);
        Self { media, weight: said.map_or(1000, thousandths), parameters }
    }

    /// How many things it stands for: one, some, all.
    fn width(&self) -> usize {
        self.media.split('/').filter(|part| *part == "*").count()
    }

    fn accepted(&self, discovery: bool) -> Option<Accepted> {
        let yaml = self.media == YAML;
        if !yaml && !["application/json", "*/*", "application/*"].contains(&self.media) {
            return None;
        }
        form(&self.parameters, discovery).map(|form| Accepted { form, yaml })
    }
}

/// `0.5` as 500; nonsense counts as much as nothing said.
fn thousandths(text: &str) -> u32 {
    let Some(share) = text.parse::<f64>().ok().filter(|share| (0.0..=1.0).contains(share)) else {
        return 1000;
    };
    format!("{:.0}", share * 1000.0).parse().unwrap_or(1000)
}

fn form(parameters: &[(&str, &str)], discovery: bool) -> Option<Form> {
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
            assert_eq!(accept(header, true).map(|it| it.form), expect, "{header}");
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
        check("application/yaml;as=Table;v=v1;g=meta.k8s.io", Some(Form::Table));
    }

    #[test]
    fn what_is_wanted_most_or_said_exactly_wins() {
        let yaml = |header: &str| accept(header, false).map(|accepted| accepted.yaml);
        assert_eq!(yaml("application/yaml, application/json"), Some(true));
        assert_eq!(yaml("application/json, application/yaml"), Some(false));
        assert_eq!(yaml("application/json;q=0.5, application/yaml"), Some(true));
        assert_eq!(yaml("application/*, application/yaml"), Some(true));
        assert_eq!(yaml("*/*"), Some(false));
        assert_eq!(yaml("text/yaml"), None);
    }
}

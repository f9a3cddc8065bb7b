//! Topics: pages of the manual, and parts of pages, by a word that is easy to type.

/// A page, or a part of one.
#[derive(Debug, Clone, Copy)]
pub struct Topic {
    /// What is typed.
    pub name: &'static str,
    /// The page's path in the manual.
    pub page: &'static str,
    /// The heading of the part that is meant; empty, if all of the page is.
    heading: &'static str,
    /// All of the page.
    source: &'static str,
}

macro_rules! topics {
    ($($name:literal: $page:literal $(, $heading:literal)?;)*) => {
        /// Every topic, in the order in which they are listed.
        pub const TOPICS: &[Topic] = &[$(Topic {
            name: $name,
            page: $page,
            heading: concat!("", $($heading)?),
            source: include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/", $page)),
        }),*];
    };
}

topics! {
    "overview": "overview.md";
    "writing": "how-to/write.md";
    "packages": "explanation/packages.md";
    "references": "reference/references.md";
    "dependencies": "explanation/versions.md";
    "kinds": "kinds.md";
    "trust": "explanation/trust.md";
    "signatures": "how-to/signatures.md";
    "rights": "how-to/permissions.md";
    "conditions": "reference/conditions.md";
    "lint-rules": "lint.md";
    "control-plane": "explanation/control-plane.md";
    "runtime": "how-to/run.md";
    "api-server": "how-to/apiserver.md";
    "registries": "how-to/registries.md";
    "serve": "how-to/serve.md";
    "durability": "explanation/registry.md";
    "catalogs": "catalog.md";
    "pages": "explorer.md";
    "installation": "how-to/install.md";
    "ci": "how-to/publish.md";
    "air-gap": "how-to/air-gap.md";
    "cluster": "how-to/cluster.md";
    "crossplane": "how-to/move.md";
    "upgrades": "how-to/upgrade.md";
    "first-format": "how-to/first-format.md";
    "gitops": "how-to/gitops.md";
    "backup": "how-to/backup.md";
    "monitoring": "how-to/monitor.md";
    "environment": "reference/environment.md", "Variables";
    "exit-codes": "reference/environment.md", "Exit codes";
    "files": "reference/files.md";
    "performance": "explanation/performance.md";
    "testing": "explanation/testing.md";
    "specifications": "specifications.md";
    "limits": "explanation/limits.md";
}

/// The topic of a name.
pub fn find_topic(name: &str) -> Option<&'static Topic> {
    TOPICS.iter().find(|topic| topic.name == name)
}

impl Topic {
    /// What it is about: its heading.
    pub fn title(&self) -> &'static str {
        match self.heading {
            "" => self.source.lines().next().unwrap_or_default().trim_start_matches('#').trim(),
            heading => heading,
        }
    }

    /// Its Markdown.
    pub fn source(&self) -> &'static str {
        match self.heading {
            "" => self.source,
            heading => page_section(self.source, heading),
        }
    }
}

/// The part of a page below a heading of the second level, with the heading.
fn page_section<'a>(page: &'a str, heading: &str) -> &'a str {
    let marked = format!("## {heading}\n");
    let start = page.find(&marked).unwrap_or(page.len());
    let rest = &page[start..];
    let end = rest[marked.len().min(rest.len())..].find("\n## ").map(|at| at + marked.len());
    &rest[..end.unwrap_or(rest.len())]
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_topic_has_a_title_a_text_and_a_name_of_its_own() {
        let names: BTreeSet<&str> = TOPICS.iter().map(|topic| topic.name).collect();
        assert_eq!(names.len(), TOPICS.len());
        for topic in TOPICS {
            assert!(!topic.title().is_empty(), "{}", topic.name);
            assert!(topic.source().lines().count() > 4, "{}: {:?}", topic.name, topic.source());
        }
    }

    #[test]
    fn a_part_of_a_page_ends_where_the_next_begins() {
        let page = "# P\n\n## A\n\none\n\n### B\n\ntwo\n\n## C\n\nthree\n";
        assert_eq!(page_section(page, "A"), "## A\n\none\n\n### B\n\ntwo\n");
        assert_eq!(page_section(page, "C"), "## C\n\nthree\n");
        assert_eq!(page_section(page, "D"), "");
        let codes = find_topic("exit-codes").unwrap().source();
        assert!(codes.starts_with("## Exit codes\n") && !codes.contains("## Streams"));
    }
}

//! Pages that are typed as printed, from top to bottom.

use super::typist::Typist;
use super::{is_updating, page_paths};
use crate::readme::repository;

/// Types a page, which has at least so many lines to type.
#[track_caller]
fn type_page(name: &str, at_least: usize) {
    let path = repository().join("docs").join(name);
    let page = fs_err::read_to_string(&path).unwrap();
    let (typed, answered) = Typist::new().follow_page(&page, is_updating());
    assert!(typed >= at_least, "{name}: only {typed} lines were typed");
    if is_updating() {
        fs_err::write(&path, &answered).unwrap();
    } else {
        assert_eq!(page, answered, "{name} has commands that nobody answered");
    }
}

macro_rules! typed_pages {
    ($($test:ident: $page:literal, $least:literal;)*) => {
        $(#[test]
        fn $test() {
            type_page($page, $least);
        })*

        /// Pages with a `console` block are in the table above.
        #[test]
        fn every_page_with_something_to_type_is_typed() {
            let typed = [$($page),*];
            for path in page_paths() {
                let text = fs_err::read_to_string(&path).unwrap();
                let name = path.strip_prefix(repository().join("docs")).unwrap().to_str().unwrap();
                let has_lines = text.lines().any(|line| line == "```console");
                let is_known = typed.contains(&name);
                assert!(is_known || !has_lines, "nothing types {name}: add it to manual/typed.rs");
            }
        }
    };
}

typed_pages! {
    the_readme_is_typed: "../README.md", 2;
    the_tutorial_is_typed: "tutorial.md", 20;
    writing_is_typed: "how-to/write.md", 4;
    installing_is_typed: "how-to/install.md", 4;
    serving_is_typed: "how-to/serve.md", 8;
    permissions_are_typed: "how-to/permissions.md", 10;
    the_api_server_is_typed: "how-to/apiserver.md", 7;
    references_are_typed: "reference/references.md", 5;
    git_is_typed: "how-to/gitops.md", 8;
    moving_over_is_typed: "how-to/move.md", 4;
    dependencies_on_kinds_are_typed: "kinds.md", 8;
    the_catalog_is_typed: "catalog.md", 5;
    publishing_is_typed: "how-to/publish.md", 8;
    upgrading_is_typed: "how-to/upgrade.md", 8;
    registries_are_typed: "how-to/registries.md", 5;
    the_air_gap_is_typed: "how-to/air-gap.md", 5;
    signatures_are_typed: "how-to/signatures.md", 4;
    the_first_format_is_typed: "how-to/first-format.md", 4;
    running_in_a_cluster_is_typed: "how-to/cluster.md", 8;
    backups_are_typed: "how-to/backup.md", 4;
    monitoring_is_typed: "how-to/monitor.md", 2;
}

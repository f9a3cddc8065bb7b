//! What a token may be asked for: no scope makes reading panic, reading it again means the same,
//! and grants are never worth more than their words.

#![no_main]
#![expect(dead_code, reason = "only what reads scopes is used here")]

use libfuzzer_sys::fuzz_target;

#[path = "../../crates/registry/src/name.rs"]
mod name;
#[path = "../../crates/registry/src/auth/rules.rs"]
mod rules;
#[path = "../../crates/registry/src/auth/scope.rs"]
mod scope;

use rules::Actions;
use scope::{Grant, Scope};

fn check_scope(scope: &Scope) {
    let Scope::Repository(name, actions) = scope else { return };
    let words = actions.words().join(",");
    let again = Scope::parse(&format!("repository:{name}:{words}"));
    assert_eq!(again.as_ref(), Some(scope));
    let grant = Grant {
        kind: "repository".to_owned(),
        name: name.to_string(),
        actions: actions.words().into_iter().map(str::to_owned).collect(),
    };
    let grants = [grant];
    assert_eq!(scope::held(&grants, name.as_str()), *actions);
    assert_eq!(scope::held(&grants, &format!("{name}/x")), Actions::NONE);
    assert!(!scope::lists(&grants));
}

fuzz_target!(|text: &str| {
    for scope in Scope::parse_all(std::iter::once(text)) {
        check_scope(&scope);
    }
    if let Some(scope) = Scope::parse(text) {
        check_scope(&scope);
    }
    // Grants as a token brings them: `*` is for asking, and worth nothing there.
    if let Ok(grants) = serde_json::from_str::<Vec<Grant>>(text) {
        let named: Vec<&Grant> = grants.iter().filter(|it| it.kind == "repository").collect();
        for grant in &named {
            let held = scope::held(&grants, &grant.name);
            for word in held.words() {
                let same = named.iter().filter(|it| it.name == grant.name);
                assert!(
                    same.flat_map(|it| &it.actions).any(|it| it == word || it == "admin"),
                    "{text}"
                );
            }
        }
        let _ = scope::lists(&grants);
    }
    if let Some(actions) = Actions::parse(text) {
        assert_eq!(Actions::parse(&actions.to_string()), Some(actions));
    }
});

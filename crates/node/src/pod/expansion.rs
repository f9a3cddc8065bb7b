//! `$(VAR)` in commands, arguments and variables, exactly as Kubernetes replaces it.

/// Replaces each `$(NAME)` whose value is known. `$$` is a dollar sign, and what is unknown or
/// not finished stays as it is.
pub fn expand_references<'a>(text: &str, lookup: impl Fn(&str) -> Option<&'a str>) -> String {
    let mut told = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('$') {
        told.push_str(before);
        if let Some(after) = after.strip_prefix('$') {
            told.push('$');
            rest = after;
            continue;
        }
        let reference = after.strip_prefix('(').and_then(|inner| inner.split_once(')'));
        let Some((name, after)) = reference else {
            told.push('$');
            rest = after;
            continue;
        };
        match lookup(name) {
            Some(value) => told.push_str(value),
            None => told.extend(["$(", name, ")"]),
        }
        rest = after;
    }
    told.push_str(rest);
    told
}

/// The same where each name has to be known; the error is the first that is not.
pub fn expand_known<'a>(
    text: &str,
    lookup: impl Fn(&str) -> Option<&'a str>,
) -> Result<String, String> {
    let missing = std::cell::RefCell::new(None);
    let told = expand_references(text, |name| {
        let found = lookup(name);
        if found.is_none() {
            missing.borrow_mut().get_or_insert_with(|| name.to_owned());
        }
        found
    });
    match missing.into_inner() {
        Some(name) => Err(name),
        None => Ok(told),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn lookup(name: &str) -> Option<&'static str> {
        match name {
            "VAR_A" => Some("A"),
            "VAR_B" => Some("B"),
            "VAR_REF" => Some("$(VAR_A)"),
            "VAR_EMPTY" => Some(""),
            _ => None,
        }
    }

    /// The table of Kubernetes' own test (`third_party/forked/golang/expansion/expand_test.go`).
    #[test]
    fn references_are_expanded_as_kubernetes_does_it() {
        for (text, expected) in [
            ("$(VAR_A)", "A"),
            ("___$(VAR_B)___", "___B___"),
            ("___$(VAR_B)", "___B"),
            ("$(VAR_A)-1", "A-1"),
            ("$(VAR_A)_$(VAR_B)", "A_B"),
            ("$$(VAR_B)_$(VAR_A)", "$(VAR_B)_A"),
            ("$$(VAR_A)_$$(VAR_B)", "$(VAR_A)_$(VAR_B)"),
            ("f000-$$VAR_A", "f000-$VAR_A"),
            ("foo\\$(VAR_A)bar", "foo\\Abar"),
            ("foo\\\\$(VAR_A)bar", "foo\\\\Abar"),
            ("foo$(VAR_EMPTY)bar", "foobar"),
            ("$(VAR_REF)", "$(VAR_A)"),
            ("$$(VAR_REF)", "$(VAR_REF)"),
            ("$(VAR_DNE)", "$(VAR_DNE)"),
            ("$$$$$$$(BAD_VAR)", "$$$$(BAD_VAR)"),
            ("$$$$$$$(VAR_A)", "$$$A"),
            ("$VAR_A)", "$VAR_A)"),
            ("${VAR_A}", "${VAR_A}"),
            ("$(VAR_A", "$(VAR_A"),
            ("$()", "$()"),
            ("$", "$"),
            ("a$", "a$"),
            ("$(VAR_A))", "A)"),
            ("$(foo$$bar)", "$(foo$$bar)"),
            ("größe $(VAR_A) $ü", "größe A $ü"),
        ] {
            assert_eq!(expand_references(text, lookup), expected, "{text}");
        }
        assert_eq!(expand_known("a/$(VAR_A)", lookup), Ok("a/A".to_owned()));
        assert_eq!(expand_known("$(NO)/$(VAR_A)", lookup), Err("NO".to_owned()));
    }

    proptest! {
        #[test]
        fn doubled_dollars_bring_any_text_back(text in ".*") {
            prop_assert_eq!(expand_references(&text.replace('$', "$$"), lookup), text);
        }
    }
}

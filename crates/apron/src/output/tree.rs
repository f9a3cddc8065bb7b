//! Branches, drawn as trees.

/// A line, and what hangs below it.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Branch {
    pub(crate) line: String,
    pub(crate) below: Vec<Self>,
}

impl Branch {
    /// A line with nothing below it.
    pub(crate) fn leaf(line: impl Into<String>) -> Self {
        Self { line: line.into(), below: Vec::new() }
    }
}

/// The lines of a tree, its root first.
pub(crate) fn lines(root: &Branch) -> Vec<String> {
    let mut all = vec![root.line.clone()];
    hang(&root.below, "", &mut all);
    all
}

fn hang(branches: &[Branch], stem: &str, all: &mut Vec<String>) {
    for (index, branch) in branches.iter().enumerate() {
        let is_last = index + 1 == branches.len();
        let (elbow, more) = if is_last { ("└─", "   ") } else { ("├─", "│  ") };
        all.push(format!("{stem}{elbow} {}", branch.line));
        hang(&branch.below, &format!("{stem}{more}"), all);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn branches_hang_together() {
        let below = vec![
            Branch { line: "b".to_owned(), below: vec![Branch::leaf("c"), Branch::leaf("d")] },
            Branch::leaf("e"),
        ];
        let root = Branch { line: "a".to_owned(), below };
        assert_eq!(lines(&root), ["a", "├─ b", "│  ├─ c", "│  └─ d", "└─ e"]);
    }
}

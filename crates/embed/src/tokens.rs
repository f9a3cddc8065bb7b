//! Tokens of further users, from a file in the format that kube-apiserver reads:
//! `token,user,uid,"group1,group2"` in each line.

use apiserver::auth::{Token, User};
use ground::failure::{Failure, Outcome};
use std::path::Path;

/// Reads the file.
pub fn read(path: &Path) -> Outcome<Vec<Token>> {
    let text = fs_err::read_to_string(path).map_err(|error| Failure::file(&error))?;
    parse(&text).map_err(|(line, why)| {
        let hint = "a line is a token, a user, a uid and, if any, groups: x1,jane,1,\"devs,ops\"";
        Failure::new(format!("{}:{line}: {why}", path.display()), hint)
    })
}

fn parse(text: &str) -> Result<Vec<Token>, (usize, &'static str)> {
    let mut tokens: Vec<Token> = Vec::new();
    for (at, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let wrong = |why| (at + 1, why);
        let fields = fields(line).ok_or(wrong("a quote is not closed"))?;
        let [secret, name, uid, groups @ ..] = fields.as_slice() else {
            return Err(wrong("a token, a user and a uid are needed"));
        };
        if secret.is_empty() || name.is_empty() {
            return Err(wrong("the token and the user cannot be empty"));
        }
        if tokens.iter().any(|token| token.secret == *secret) {
            return Err(wrong("the same token was given before"));
        }
        let groups = groups.first().map(String::as_str).unwrap_or_default().split(',');
        let groups = groups.map(str::trim).filter(|group| !group.is_empty());
        let user = User {
            name: name.clone(),
            uid: uid.clone(),
            groups: groups.map(str::to_owned).collect(),
            ..User::default()
        };
        tokens.push(Token { secret: secret.clone(), user });
    }
    Ok(tokens)
}

/// The fields of a line; commas inside quotes do not end a field.
fn fields(line: &str) -> Option<Vec<String>> {
    let (mut fields, mut quoted) = (vec![String::new()], false);
    for c in line.chars() {
        match c {
            '"' => quoted = !quoted,
            ',' if !quoted => fields.push(String::new()),
            c => fields.last_mut()?.push(c),
        }
    }
    let trimmed = fields.iter().map(|field| field.trim().to_owned());
    (!quoted).then(|| trimmed.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_become_users() {
        let tokens = parse("t1,jane,7,\"devs, ops\"\n\nt2,joe,8\n").unwrap();
        let shown: Vec<_> = tokens
            .iter()
            .map(|it| {
                format!("{} {} {} {:?}", it.secret, it.user.name, it.user.uid, it.user.groups)
            })
            .collect();
        assert_eq!(shown, ["t1 jane 7 [\"devs\", \"ops\"]", "t2 joe 8 []"]);
    }

    #[test]
    fn lines_that_make_no_sense_are_named() {
        let check =
            |text: &str, line: usize| assert_eq!(parse(text).unwrap_err().0, line, "{text}");
        check("t1,jane", 1);
        check("t1,jane,1\n,joe,2", 2);
        check("t1,jane,1\n\nt1,joe,2", 3);
        check("t1,jane,1,\"a", 1);
    }
}

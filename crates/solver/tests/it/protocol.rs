//! Asking for what is not known: only what matters, and to the same end.

use crate::world::{read, settle, show};
use insta::assert_snapshot;
use solver::{Known, Listing, Need, Outcome, Problem, Settlement, solve};

/// Solves with nothing known, finding out what is asked for; also says what that was.
fn solve_by_asking(problem: &Problem, world: &Known) -> (Settlement, Vec<Need>) {
    let mut known = Known::default();
    let mut asked = Vec::new();
    loop {
        match solve(problem, &known) {
            Outcome::Settled(settlement) => return (settlement, asked),
            Outcome::Missing(needs) => {
                for need in needs {
                    assert!(!asked.contains(&need), "asked for {need:?} twice");
                    match &need {
                        Need::Listing(source) => {
                            let listing = world.listings.get(source).cloned();
                            let listing = listing.unwrap_or_else(|| Listing::Tags(Vec::new()));
                            known.listings.insert(source.clone(), listing);
                        }
                        Need::Contents(source, pin) => {
                            let key = (source.clone(), pin.clone());
                            let contents = world.contents.get(&key).cloned();
                            known.contents.insert(key, contents.unwrap());
                        }
                        Need::Bringer(crd) => {
                            let bringer = world.bringers.get(crd).cloned();
                            known.bringers.insert(crd.clone(), bringer.unwrap());
                        }
                    }
                    asked.push(need);
                }
            }
        }
    }
}

const WORLD: &str = "
    app v1.0.0: provider >=v1.0.0, function v1
    provider v1.0.0
    provider v1.1.0: family v2.0.0
    provider v1.2.0: family v3.0.0
    function v1.0.0
    function v1.1.0
    family v1.0.0
    family v2.0.0
    unrelated v1.0.0
    installed unrelated v1.0.0 any
    want app v1.0.0
";

#[test]
fn only_what_the_answer_rests_on_is_asked_for() {
    let (problem, known) = read(WORLD);
    let (_, asked) = solve_by_asking(&problem, &known);
    let asked: Vec<String> = asked
        .iter()
        .map(|need| match need {
            Need::Listing(source) => format!("tags of {source}"),
            Need::Contents(source, pin) => format!("contents of {source} {pin}"),
            Need::Bringer(crd) => format!("who brings {crd}"),
        })
        .collect();
    assert_snapshot!(asked.join("\n"), @r"
    contents of app v1.0.0
    contents of unrelated v1.0.0
    tags of function
    tags of provider
    contents of function v1.1.0
    contents of provider v1.2.0
    tags of family
    contents of provider v1.1.0
    contents of family v2.0.0
    ");
}

#[test]
fn asking_leads_to_the_same_answer_as_knowing() {
    let (problem, known) = read(WORLD);
    let (settlement, _) = solve_by_asking(&problem, &known);
    assert_eq!(show(&settlement), show(&settle(&problem, &known)));
}

#[test]
fn nothing_is_asked_when_nothing_is_wanted() {
    let outcome = solve(&Problem::default(), &Known::default());
    assert_eq!(outcome, Outcome::Settled(Settlement::default()));
}

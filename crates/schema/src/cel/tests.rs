//! What expressions come to.

use super::value::Trouble;
use super::*;
use serde_json::json;

fn run(text: &str) -> Result<bool, Trouble> {
    let object = json!({
        "name": "a-b", "n": 3, "f": 1.5, "list": [1, 2, 3], "words": ["x", "y"],
        "map": {"a": 1, "b": 2}, "none": null, "when": "2024-02-29T12:00:00Z",
    });
    let program = Program::read(text).unwrap_or_else(|error| panic!("{text}: {error}"));
    program.holds(&[("self", &object)], CALL_LIMIT).value
}

#[test]
fn expressions_hold() {
    for text in [
        "1 + 2 * 3 == 7 && -3 % 2 == -1 && 7 / 2 == 3",
        "self.n == 3 && self.n == 3.0 && self.n < 3.5",
        "'a' + 'b' == 'ab' && size('äb') == 2",
        "has(self.name) && !has(self.other)",
        "self.list.all(x, x > 0) && self.list.exists(x, x == 2) && self.list.exists_one(x, x == 3)",
        "self.list.map(x, x * 2) == [2, 4, 6] && self.list.filter(x, x > 1) == [2, 3]",
        "self.list.map(x, x > 1, x * 2) == [4, 6]",
        "self.list.all(i, v, v == i + 1)",
        "self.map.all(k, v, k in ['a', 'b'] && v > 0) && self.map.exists(k, k == 'a')",
        "self.map.transformMap(k, v, v + 1) == {'a': 2, 'b': 3}",
        "self.words.transformList(i, v, v + string(i)) == ['x0', 'y1']",
        "self.words.transformMapEntry(i, v, {v: i}) == {'x': 0, 'y': 1}",
        "[3, 1, 2].sort() == [1, 2, 3] && ['bb', 'a'].sortBy(x, size(x)) == ['a', 'bb']",
        "self.?other.orValue(7) == 7 && self.?name.hasValue() && self.?n.optMap(x, x + 1).value() == 4",
        "[1, ?optional.none(), 2] == [1, 2] && self.map[?'z'].or(optional.of(9)).value() == 9",
        "true || 1 / 0 == 1",
        "1 / 0 == 1 || true",
        "self.name.matches('^[a-z]-b$') && 'foobar'.find('o+') == 'oo' && 'a1b2'.findAll('[0-9]') == ['1', '2']",
        "'a,b,c'.split(',') == ['a', 'b', 'c'] && ['a', 'b'].join('-') == 'a-b' && 'abc'.substring(1) == 'bc'",
        "'abcabc'.indexOf('c') == 2 && 'abcabc'.lastIndexOf('c') == 5 && 'Ab'.lowerAscii() == 'ab'",
        "'%s is %d and %.2f'.format(['x', 3, 1.5]) == 'x is 3 and 1.50'",
        "sets.contains([1, 2, 3], [2]) && sets.equivalent([1, 2], [2, 1, 1]) && sets.intersects([1], [1, 2])",
        "[1, 2, 3].sum() == 6 && [1, 2].max() == 2 && [1, 2].isSorted() && [1, 2, 3].slice(0, 2) == [1, 2]",
        "lists.range(3) == [0, 1, 2] && [1, 1].distinct() == [1] && [[1], [2]].flatten() == [1, 2]",
        "quantity('1Gi').isGreaterThan(quantity('1G')) && quantity('500m').add(quantity('0.5')) == quantity('1')",
        "isQuantity('2Ki') && !isQuantity('x') && quantity('50k').asInteger() == 50000",
        "ip('10.0.0.1').family() == 4 && cidr('10.0.0.0/8').containsIP('10.1.2.3') && !isIP('x')",
        "cidr('192.168.0.0/16').containsCIDR('192.168.1.0/24') && ip.isCanonical('::1')",
        "url('https://example.org:8443/a?b=c').getHost() == 'example.org:8443'",
        "url('https://example.org:8443/a?b=c').getQuery() == {'b': ['c']} && isURL('/path')",
        "semver('1.2.3').isLessThan(semver('1.10.0')) && semver('v1.2', true).minor() == 2",
        "format.dns1123Label().validate('a-b') == optional.none() && format.named('uuid').hasValue()",
        "!format.dns1123Label().validate('A').hasValue() == false",
        "timestamp(self.when).getFullYear() == 2024 && timestamp(self.when).getDayOfMonth() == 28",
        "timestamp(self.when) + duration('24h') == timestamp('2024-03-01T12:00:00Z')",
        "duration('90m').getHours() == 1 && string(duration('90s')) == '90s'",
        "type(self.n) == int && type(self.name) == string && type(1.0) == double",
        "int('3') == 3 && double('1.5') == 1.5 && string(3) == '3' && bool('true') && uint(3) == 3u",
        r#"b'abc' == bytes('abc') && r'\d' == '\\d' && "\u00e4" == 'ä' && '''a'b''' == "a'b""#,
        "{'a': 1}.a == 1 && {'a': 1}['a'] == 1 && 'a' in {'a': 1} && self.none == null",
        "self.f == 1.5 ? true : false",
    ] {
        assert_eq!(run(text), Ok(true), "{text}");
    }
}

#[test]
fn what_goes_wrong_has_the_known_words() {
    for (text, why) in [
        ("self.other == 1", "no such key: other"),
        ("self.list[3] == 1", "index out of bounds: 3"),
        ("1 / 0 == 1", "division by zero"),
        ("9223372036854775807 + 1 == 0", "integer overflow"),
        ("self.n + self.name == 'x'", "no such overload"),
    ] {
        assert_eq!(run(text), Err(Trouble::new(why)), "{text}");
    }
}

#[test]
fn a_rule_that_costs_too_much_is_stopped() {
    let ten = "[0,1,2,3,4,5,6,7,8,9]";
    for text in [
        format!("{ten}.all(a, {ten}.all(b, {ten}.all(c, {ten}.all(d, {ten}.all(e, {ten}.all(f, a + b + c + d + e + f >= 0))))))"),
        "lists.range(1000000000).size() > 0".to_owned(),
        "[['a']].map(l, l + l + l + l + l + l + l + l).map(l, l.map(a, l.map(b, l))).size() >= 0 && lists.range(100000).all(x, lists.range(100000).size() > 0)".to_owned(),
        format!("['{}'].map(a, a + a + a + a + a + a + a + a + a + a).map(a, a + a + a + a + a + a + a + a + a + a).map(a, a + a + a + a + a + a + a + a + a + a).map(a, a + a + a + a + a + a + a + a + a + a).size() == 1", "a".repeat(5000)),
    ] {
        assert_eq!(run(&text), Err(Trouble::Cost), "{}", &text[..60]);
    }
}

#[test]
fn deep_expressions_are_refused_and_long_ones_are_not() {
    let nested = format!("{}true{}", "(".repeat(5000), ")".repeat(5000));
    assert!(Program::read(&nested).is_err());
    assert!(Program::read(&vec!["1"; 5000].join(" + ")).is_err());
    assert!(Program::read(&format!("self{}", ".a".repeat(5000))).is_err());
    assert_eq!(run(&vec!["true"; 5000].join(" && ")), Ok(true));
    assert_eq!(run(&format!("{} == 240", vec!["1"; 240].join(" + "))), Ok(true));
    let names: [(&str, Type); 0] = [];
    let lists = format!("{}{} == []", "[".repeat(98), "]".repeat(98));
    assert!(Program::checked(&lists, &names).is_ok());
    assert_eq!(run(&lists), Ok(false));
}

#[test]
fn what_makes_no_sense_is_found_before_any_value() {
    let names = [("self", Type::map(Type::String, Type::Int))];
    let wrong = |text: &str| match Program::checked(text, &names) {
        Ok((_, kind)) => panic!("{text}: {kind}"),
        Err(error) => error.lines().next().unwrap_or_default().to_owned(),
    };
    assert_eq!(
        wrong("foo == 1"),
        "ERROR: <input>:1:1: undeclared reference to 'foo' (in container '')"
    );
    assert_eq!(
        wrong("self.a == 'x'"),
        "ERROR: <input>:1:8: found no matching overload for '_==_' applied to '(int, string)'"
    );
    assert_eq!(
        wrong("self.size() + 1.0 > 2.0"),
        "ERROR: <input>:1:13: found no matching overload for '_+_' applied to '(int, double)'"
    );
    assert_eq!(
        wrong("self.a.bar()"),
        "ERROR: <input>:1:11: undeclared reference to 'bar' (in container '')"
    );
    assert_eq!(
        wrong("[1, 'a'] == []"),
        "ERROR: <input>:1:5: expected type 'int' but found 'string'"
    );
    assert!(wrong("self.a ==").contains("Syntax error"));
}

#[test]
fn names_of_fields_are_escaped_and_back() {
    for (name, escaped) in [
        ("namespace", "__namespace__"),
        ("a-b", "a__dash__b"),
        ("a.b/c", "a__dot__b__slash__c"),
        ("a__b", "a__underscores__b"),
        ("plain_name", "plain_name"),
    ] {
        assert_eq!(escape(name).as_deref(), Some(escaped));
        assert_eq!(unescape(escaped).as_deref(), Some(name));
    }
    assert_eq!(escape("ä"), None);
    assert_eq!(escape("1a"), None);
}

/// What an expression comes to, and what it takes.
fn measured(text: &str, object: &serde_json::Value) -> (Result<bool, Trouble>, u64) {
    let program = Program::read(text).unwrap_or_else(|error| panic!("{text}: {error}"));
    let mut eval = eval::Eval::new(&[("self", Val::read(object, Shape::Plain))], CALL_LIMIT);
    let value = match eval.run(&program.expr) {
        Ok(Val::Bool(truth)) => Ok(truth),
        Ok(_) => Err(Trouble::overload()),
        Err(trouble) => Err(trouble),
    };
    (value, eval.steps())
}

fn sized(count: usize) -> serde_json::Value {
    let map: serde_json::Map<String, serde_json::Value> =
        (0..count).map(|at| (format!("k{at}"), json!(at))).collect();
    json!({
        "l": vec![0; count], "n": (0..count).collect::<Vec<_>>(), "s": "a".repeat(count),
        "w": vec!["word"; count], "m": map, "p": "(a{1,200}){1,20}",
    })
}

/// M1: every index copied the list, and cost 1: 32,000 numbers took 83 s.
#[test]
fn m1_work_grows_as_the_object_does() {
    for text in [
        "self.l.all(x, self.l[0] == 0)",
        "self.l.all(x, self.l.exists(y, y == 0))",
        "self.l.all(x, self.l.first().hasValue() && size(self.l) > 0)",
        "self.l.all(x, self.s != 'b')",
        "self.n.all(x, x >= 0) && self.w.all(x, x.matches('^w[a-z]+$'))",
        "self.m.all(k, v, v >= 0) && self.l == self.l && self.m == self.m",
        "self.w.join(',').size() > 0 && self.s.replace('a', 'bb').size() > 0",
        "self.n.sum() >= 0 && self.n.max() >= 0 && self.n.isSorted() && 0 in self.n",
        "self.s.contains('b') || self.s.split('').size() > 0",
        "self.n.sort().size() > 0 && self.n.map(x, x + 1).size() > 0",
    ] {
        let (small, few) = measured(text, &sized(2_000));
        let (big, many) = measured(text, &sized(8_000));
        assert_eq!((small, big), (Ok(true), Ok(true)), "{text}");
        assert!(many < 5 * few, "{text}: {few} steps, then {many}");
    }
    let (value, steps) = measured("self.l.all(x, self.l[0] == 0)", &sized(32_000));
    assert_eq!(value, Ok(true));
    assert!(steps < 20 * 32_000, "{steps}");
}

/// M1: what takes more than its length is stopped, however little it seems to cost.
#[test]
fn m1_the_budget_ends_what_costs_more_than_it_says() {
    let object = sized(32_000);
    let long = vec!["true"; 1000].join(" && ");
    for text in [
        "self.l.all(x, self.l.all(y, true))",
        "self.l.all(x, self.l == self.l)",
        "self.l.all(x, [self.l] == [self.l])",
        "self.l.all(x, self.m == self.m)",
        "self.l.all(x, self.m.exists(k, true))",
        "self.l.all(x, size(self.w.join(self.s)) > 0)",
        "self.w.join(self.s).size() > 0",
        "self.s.replace('a', self.s).size() > 0",
        "self.s.replace('', self.s).size() > 0",
        "self.n.distinct().size() > 0",
        "self.l.map(x, self.l).flatten().size() > 0",
        "'%s'.format([self.l.map(x, self.l)]).size() > 0",
        "self.l.map(x, self.s).sort().size() > 0",
        "self.l.map(x, self.s).isSorted()",
        "self.n.all(x, sets.contains([self.n], [self.n]))",
        "self.l.all(x, (self.n + self.n).size() > 0)",
        "self.l.all(x, self.s.split('').size() > 0)",
        "self.l.all(x, self.s.lowerAscii() == self.s)",
        "self.l.all(x, 'aaaa'.matches(self.p))",
        "self.l.all(x, self.m[self.s] == 0)",
        &format!("self.l.all(x, {long})"),
    ] {
        let (value, steps) = measured(text, &object);
        assert_eq!(value, Err(Trouble::Cost), "{text}: {steps}");
        assert!(steps <= 11 * CALL_LIMIT || text.contains("self.s)"), "{text}: {steps}");
    }
}

#[test]
fn h2_times_at_the_limits_of_their_types_are_refused() {
    for text in [
        "timestamp(9223372036854775807).getHours('+01:00') == 0",
        "timestamp(-9223372036854775808).getHours('-23:59') == 0",
        "timestamp('9999-12-31T23:59:59Z') + duration('24h') > timestamp('2024-01-01T00:00:00Z')",
    ] {
        assert_eq!(run(text), Err(Trouble::new("timestamp overflow")), "{text}");
    }
    assert!(run("duration('9999999999h') > duration('1h')").is_err());
    assert_eq!(run("timestamp(253402300799).getFullYear('+01:00') == 10000"), Ok(true));
}

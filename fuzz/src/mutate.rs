//! Changes that a client would make: values at the limits of their types, other methods, other media
//! types, deeper and longer documents. Chance alone hardly ever writes `18446744073709551615`.

/// Values that numbers, names, times and selectors break at.
const VALUES: [&str; 36] = [
    "",
    "0",
    "-1",
    "1",
    "2147483647",
    "2147483648",
    "-2147483649",
    "9223372036854775807",
    "-9223372036854775808",
    "9223372036854775808",
    "18446744073709551615",
    "18446744073709551616",
    "1e309",
    "-0.0",
    "0x7fffffff",
    "999999999999999999999999999999999999999",
    "1h",
    "290y",
    "9223372036.854775807s",
    "9999-12-31T23:59:59Z",
    "0000-01-01T00:00:00Z",
    "true",
    "null",
    "%00",
    "%2e%2e%2f",
    "a%2Fb",
    "..",
    "*",
    "a=b,c!=d,e in (f,g),!h",
    "a in (",
    "metadata.name=x,metadata.namespace=y",
    "\u{fffd}\u{202e}",
    "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    "sha256:0",
    "0-18446744073709551615",
    "18446744073709551614-18446744073709551615",
];

/// Parameters that the servers read.
const PARAMETERS: [&str; 26] = [
    "watch",
    "timeoutSeconds",
    "timeout",
    "limit",
    "continue",
    "resourceVersion",
    "resourceVersionMatch",
    "allowWatchBookmarks",
    "sendInitialEvents",
    "fieldSelector",
    "labelSelector",
    "fieldManager",
    "fieldValidation",
    "force",
    "dryRun",
    "gracePeriodSeconds",
    "propagationPolicy",
    "pretty",
    "n",
    "last",
    "digest",
    "mount",
    "from",
    "artifactType",
    "sinceSeconds",
    "tailLines",
];

const METHODS: [&str; 8] =
    ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE"];

const HEADERS: [&str; 14] = [
    "Content-Type: application/json-patch+json",
    "Content-Type: application/merge-patch+json",
    "Content-Type: application/strategic-merge-patch+json",
    "Content-Type: application/apply-patch+yaml",
    "Content-Type: application/vnd.kubernetes.protobuf",
    "Content-Type: application/yaml",
    "Content-Type: application/vnd.oci.image.manifest.v1+json",
    "Accept: application/json;as=Table;v=v1;g=meta.k8s.io",
    "Accept: application/vnd.kubernetes.protobuf",
    "Accept-Encoding: gzip",
    "Range: bytes=0-18446744073709551615",
    "Content-Range: 0-18446744073709551615",
    "Content-Length: 18446744073709551615",
    "Impersonate-User: x",
];

/// Dice of one mutation.
struct Dice(u32);

impl Dice {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 17;
        self.0 ^= self.0 << 5;
        self.0 as usize % end.max(1)
    }

    fn pick<'a>(&mut self, choices: &[&'a str]) -> &'a str {
        choices[self.below(choices.len())]
    }
}

/// Changes the input of a target in place, as the engine asks for it: every other time as a client
/// would, else as the engine does by itself. Answers with the new length.
pub fn change_in_place(data: &mut [u8], size: usize, max_size: usize, seed: u32) -> usize {
    if seed.is_multiple_of(2)
        && let Some(changed) = change(&data[..size], seed)
        && changed.len() <= max_size
    {
        data[..changed.len()].copy_from_slice(&changed);
        return changed.len();
    }
    libfuzzer_sys::fuzzer_mutate(data, size, max_size)
}

/// A conversation changed in one place, or nothing if it is not a text.
fn change(input: &[u8], seed: u32) -> Option<Vec<u8>> {
    let text = std::str::from_utf8(input).ok()?;
    let mut dice = Dice(seed | 1);
    let mut requests: Vec<String> = text.split("\n---\n").map(str::to_owned).collect();
    let at = dice.below(requests.len());
    let chosen = requests[at].clone();
    match dice.below(9) {
        0 => requests.insert(dice.below(requests.len()), chosen),
        1 => requests[at] = with_method(&chosen, dice.pick(&METHODS)),
        2 => requests[at] = with_header(&chosen, dice.pick(&HEADERS)),
        3 | 4 => requests[at] = with_parameter(&chosen, &mut dice),
        5 | 6 => requests[at] = with_other_value(&chosen, &mut dice)?,
        7 => requests[at] = with_deeper_body(&chosen, &mut dice)?,
        _ => requests[at] = with_longer_body(&chosen, &mut dice)?,
    }
    Some(requests.join("\n---\n").into_bytes())
}

fn with_method(request: &str, method: &str) -> String {
    request.split_once(' ').map_or_else(String::new, |(_, rest)| format!("{method} {rest}"))
}

fn with_header(request: &str, header: &str) -> String {
    match request.split_once('\n') {
        Some((first, rest)) => format!("{first}\n{header}\n{rest}"),
        None => format!("{request}\n{header}\n\n"),
    }
}

fn with_parameter(request: &str, dice: &mut Dice) -> String {
    let (first, rest) = request.split_once('\n').unwrap_or((request, ""));
    let mark = if first.contains('?') { '&' } else { '?' };
    let (name, value) = (dice.pick(&PARAMETERS), dice.pick(&VALUES).replace(' ', "%20"));
    format!("{first}{mark}{name}={value}\n{rest}")
}

/// Another value in place of a number or text of the body.
fn with_other_value(request: &str, dice: &mut Dice) -> Option<String> {
    let (head, body) = request.split_once("\n\n")?;
    let starts: Vec<usize> = body.match_indices(':').map(|(at, _)| at + 1).collect();
    let start = *starts.get(dice.below(starts.len()))?;
    let end = body[start..].find([',', '}', ']', '\n']).map_or(body.len(), |end| start + end);
    let value = dice.pick(&VALUES);
    let value = if dice.below(2) == 0 { format!("\"{value}\"") } else { value.to_owned() };
    Some(format!("{head}\n\n{}{value}{}", &body[..start], &body[end..]))
}

/// The body's first object inside of many others.
fn with_deeper_body(request: &str, dice: &mut Dice) -> Option<String> {
    let (head, body) = request.split_once("\n\n")?;
    let starts: Vec<usize> = body.match_indices(':').map(|(at, _)| at + 1).collect();
    let start = *starts.get(dice.below(starts.len()))?;
    let depth = [2, 30, 110, 126, 130, 400][dice.below(6)];
    let (open, close) = if dice.below(2) == 0 { ("{\"a\":", "}") } else { ("[", "]") };
    let end = body[start..].find([',', '}', ']']).map_or(body.len(), |end| start + end);
    let value = format!("{}{}{}", open.repeat(depth), &body[start..end], close.repeat(depth));
    Some(format!("{head}\n\n{}{value}{}", &body[..start], &body[end..]))
}

/// A part of the body many times over.
fn with_longer_body(request: &str, dice: &mut Dice) -> Option<String> {
    let (head, body) = request.split_once("\n\n")?;
    let starts: Vec<usize> = body.match_indices([',', '[', '{']).map(|(at, _)| at + 1).collect();
    let start = *starts.get(dice.below(starts.len()))?;
    let end = body[start..].find(',').map(|end| start + end + 1)?;
    let times = [2, 20, 300][dice.below(3)];
    Some(format!("{head}\n\n{}{}{}", &body[..start], body[start..end].repeat(times), &body[start..]))
}

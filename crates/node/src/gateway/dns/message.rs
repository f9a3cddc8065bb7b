//! DNS messages as far as pods' resolvers need them (RFC 1035, RFC 2782, RFC 6891): queries are read, answers written.
//!
//! What is read comes from programs that the node does not trust: each access is checked, each length bounded.

use std::net::Ipv4Addr;

/// The longest message over TCP, and the longest that is read at all.
pub const MESSAGE_MAX: usize = 65_535;
/// What a UDP answer holds for a resolver that does not say more (RFC 1035).
pub const UDP_ANSWER_MIN: usize = 512;
/// What a UDP answer holds at most, whatever the resolver says: larger ones are asked for over TCP.
pub const UDP_ANSWER_MAX: usize = 1232;
/// How long resolvers may keep what is said about the cluster.
const TTL_SECONDS: u32 = 5;
const HEADER_BYTES: usize = 12;
const NAME_BYTES_MAX: usize = 255;
const RECORDS_SKIPPED_MAX: u16 = 64;

/// IPv4 address.
pub const KIND_A: u16 = 1;
/// Start of a zone.
pub const KIND_SOA: u16 = 6;
/// IPv6 address.
pub const KIND_AAAA: u16 = 28;
/// Where a named port is.
pub const KIND_SRV: u16 = 33;
/// Any record.
pub const KIND_ANY: u16 = 255;
const KIND_OPT: u16 = 41;
const CLASS_IN: u16 = 1;

/// Four bits that say what became of a query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResponseCode {
    /// Answered, if only with nothing.
    NoError = 0,
    /// The query cannot be read.
    FormatError = 1,
    /// The server has a problem.
    ServerFailure = 2,
    /// There is no such name.
    NoSuchName = 3,
    /// The server does not do this.
    NotImplemented = 4,
    /// The server does not want to do this.
    Refused = 5,
}

/// A query with one question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DnsQuery {
    id: u16,
    recursion_desired: bool,
    /// Lower-case labels; one that is not UTF-8 matches nothing.
    pub labels: Vec<String>,
    /// The kind of records asked for.
    pub kind: u16,
    /// The question's bytes, which come back as they are.
    question: Vec<u8>,
    /// What the resolver takes over UDP, if it says so (RFC 6891).
    payload_max: Option<u16>,
}

impl DnsQuery {
    /// The most bytes that a UDP answer may have.
    pub fn udp_answer_max(&self) -> usize {
        let said = self.payload_max.map_or(UDP_ANSWER_MIN, usize::from);
        said.clamp(UDP_ANSWER_MIN, UDP_ANSWER_MAX)
    }

    /// Whether a message answers this query.
    pub fn is_answered_by(&self, message: &[u8]) -> bool {
        let is_response = message.get(2).is_some_and(|flags| flags & 0x80 != 0);
        let end = HEADER_BYTES.saturating_add(self.question.len());
        let question = message.get(HEADER_BYTES..end);
        is_response
            && read_u16(message, 0) == Some(self.id)
            && read_u16(message, 4) == Some(1)
            && question.is_some_and(|question| question.eq_ignore_ascii_case(&self.question))
    }
}

/// Why a message is not a query that can be answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnreadableQuery {
    /// Not a query, or not even a header: nothing is answered.
    Ignored,
    /// Answered with a code.
    Answered(u16, ResponseCode),
}

/// Reads a query.
pub fn parse_query(message: &[u8]) -> Result<DnsQuery, UnreadableQuery> {
    let id = read_u16(message, 0).ok_or(UnreadableQuery::Ignored)?;
    let flags = read_u16(message, 2).ok_or(UnreadableQuery::Ignored)?;
    if message.len() < HEADER_BYTES || flags & 0x8000 != 0 {
        return Err(UnreadableQuery::Ignored);
    }
    if flags & 0x7800 != 0 {
        return Err(UnreadableQuery::Answered(id, ResponseCode::NotImplemented));
    }
    let unreadable = UnreadableQuery::Answered(id, ResponseCode::FormatError);
    if message.len() > MESSAGE_MAX || read_u16(message, 4) != Some(1) {
        return Err(unreadable);
    }
    let (labels, name_end) = read_labels(message, HEADER_BYTES).ok_or(unreadable)?;
    let kind = read_u16(message, name_end).ok_or(unreadable)?;
    let class = read_u16(message, name_end.saturating_add(2)).ok_or(unreadable)?;
    if class != CLASS_IN {
        return Err(UnreadableQuery::Answered(id, ResponseCode::Refused));
    }
    let end = name_end.saturating_add(4);
    let question = message.get(HEADER_BYTES..end).ok_or(unreadable)?.to_vec();
    let payload_max = find_payload_max(message, end);
    Ok(DnsQuery { id, recursion_desired: flags & 0x0100 != 0, labels, kind, question, payload_max })
}

fn read_u16(message: &[u8], at: usize) -> Option<u16> {
    let bytes = message.get(at..at.checked_add(2)?)?;
    Some(u16::from_be_bytes(bytes.try_into().ok()?))
}

/// A name of a question, which is never compressed, and where it ends.
fn read_labels(message: &[u8], mut at: usize) -> Option<(Vec<String>, usize)> {
    let start = at;
    let mut labels = Vec::new();
    loop {
        let length = usize::from(*message.get(at)?);
        at = at.checked_add(1)?;
        if length == 0 {
            return Some((labels, at));
        }
        if length > 63 {
            return None;
        }
        let end = at.checked_add(length)?;
        let label = String::from_utf8_lossy(message.get(at..end)?);
        labels.push(label.to_ascii_lowercase());
        at = end;
        if at.saturating_sub(start) >= NAME_BYTES_MAX {
            return None;
        }
    }
}

/// The size in an OPT record behind the question. What cannot be read there says nothing.
fn find_payload_max(message: &[u8], mut at: usize) -> Option<u16> {
    let answers = read_u16(message, 6)?.checked_add(read_u16(message, 8)?)?;
    let records = answers.checked_add(read_u16(message, 10)?)?;
    for _ in 0..records.min(RECORDS_SKIPPED_MAX) {
        at = skip_name(message, at)?;
        let kind = read_u16(message, at)?;
        let class = read_u16(message, at.checked_add(2)?)?;
        if kind == KIND_OPT {
            return Some(class);
        }
        let length = usize::from(read_u16(message, at.checked_add(8)?)?);
        at = at.checked_add(10)?.checked_add(length)?;
    }
    None
}

fn skip_name(message: &[u8], mut at: usize) -> Option<usize> {
    loop {
        let length = *message.get(at)?;
        if length & 0xc0 == 0xc0 {
            return at.checked_add(2);
        }
        at = at.checked_add(1)?.checked_add(usize::from(length))?;
        if length == 0 {
            return Some(at);
        }
    }
}

/// What is said about the name that was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DnsRecord {
    /// Its address.
    Address(Ipv4Addr),
    /// A port, and the labels of the name it is at.
    Port(u16, Vec<String>),
}

/// What becomes of a query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DnsAnswer {
    /// What became of it.
    pub code: ResponseCode,
    /// What was found.
    pub records: Vec<DnsRecord>,
    /// Labels of the zone that says so, if it does: told when nothing was found.
    pub zone: Vec<String>,
}

impl DnsAnswer {
    /// An answer with nothing in it.
    pub fn with_code(code: ResponseCode) -> Self {
        Self { code, records: Vec::new(), zone: Vec::new() }
    }
}

/// Writes an answer of at most `size_max` bytes; what does not fit is left out, and the answer says that it was cut.
pub fn write_answer(query: &DnsQuery, answer: &DnsAnswer, size_max: usize) -> Vec<u8> {
    let option = query.payload_max.map(|_| write_option());
    let room = size_max.saturating_sub(option.as_ref().map_or(0, Vec::len));
    let mut message = write_header(query, answer);
    let (mut found, mut authority, mut is_cut) = (0_u16, 0_u16, false);
    for record in &answer.records {
        let bytes = write_record(record);
        if message.len().saturating_add(bytes.len()) > room {
            is_cut = true;
            break;
        }
        message.extend(bytes);
        found = found.saturating_add(1);
    }
    if answer.records.is_empty() && !answer.zone.is_empty() {
        let bytes = write_zone_start(&answer.zone);
        if message.len().saturating_add(bytes.len()) <= room {
            message.extend(bytes);
            authority = 1;
        }
    }
    put_u16(&mut message, 6, found);
    put_u16(&mut message, 8, authority);
    if let Some(option) = option {
        message.extend(option);
        put_u16(&mut message, 10, 1);
    }
    if is_cut {
        mark_cut(&mut message);
    }
    message
}

/// An answer that only says that it is to be asked for over TCP.
pub fn write_cut_answer(query: &DnsQuery) -> Vec<u8> {
    let nothing = DnsAnswer::with_code(ResponseCode::NoError);
    let mut message = write_answer(query, &nothing, UDP_ANSWER_MIN);
    mark_cut(&mut message);
    message
}

/// An answer to a query that could not be read.
pub fn write_failure(id: u16, code: ResponseCode) -> Vec<u8> {
    let mut message = id.to_be_bytes().to_vec();
    message.extend([0x80, code as u8]);
    message.resize(HEADER_BYTES, 0);
    message
}

fn write_header(query: &DnsQuery, answer: &DnsAnswer) -> Vec<u8> {
    let mut message = query.id.to_be_bytes().to_vec();
    let authoritative = if answer.zone.is_empty() { 0 } else { 0x04 };
    message.extend([
        0x80 | authoritative | u8::from(query.recursion_desired),
        0x80 | answer.code as u8,
    ]);
    message.extend([0, 1, 0, 0, 0, 0, 0, 0]);
    message.extend(&query.question);
    message
}

fn write_record(record: &DnsRecord) -> Vec<u8> {
    let (kind, data) = match record {
        DnsRecord::Address(address) => (KIND_A, address.octets().to_vec()),
        DnsRecord::Port(port, target) => {
            let mut data = vec![0, 0, 0, 100];
            data.extend(port.to_be_bytes());
            data.extend(write_labels(target));
            (KIND_SRV, data)
        }
    };
    // The name is the question's, which begins behind the header.
    let mut bytes = vec![0xc0, 0x0c];
    bytes.extend(write_record_rest(kind, &data));
    bytes
}

fn write_record_rest(kind: u16, data: &[u8]) -> Vec<u8> {
    let length = u16::try_from(data.len()).unwrap_or_default();
    let mut bytes = kind.to_be_bytes().to_vec();
    bytes.extend(CLASS_IN.to_be_bytes());
    bytes.extend(TTL_SECONDS.to_be_bytes());
    bytes.extend(length.to_be_bytes());
    bytes.extend(data.iter().take(usize::from(length)));
    bytes
}

/// The record that lets resolvers keep for a moment that there is nothing.
fn write_zone_start(zone: &[String]) -> Vec<u8> {
    let below = |label: &str| {
        let mut labels = vec![label.to_owned()];
        labels.extend_from_slice(zone);
        write_labels(&labels)
    };
    let mut data = below("ns");
    data.extend(below("hostmaster"));
    for number in [1, 7200, 1800, 86_400, TTL_SECONDS] {
        data.extend(number.to_be_bytes());
    }
    let mut bytes = write_labels(zone);
    bytes.extend(write_record_rest(KIND_SOA, &data));
    bytes
}

fn write_option() -> Vec<u8> {
    let mut bytes = vec![0];
    bytes.extend(KIND_OPT.to_be_bytes());
    bytes.extend(u16::try_from(UDP_ANSWER_MAX).unwrap_or_default().to_be_bytes());
    bytes.extend([0; 6]);
    bytes
}

/// Labels as in a message; the rest of a name that is too long is left out.
fn write_labels(labels: &[String]) -> Vec<u8> {
    let mut bytes: Vec<u8> = Vec::new();
    for label in labels {
        let length = label.len().min(63);
        if bytes.len().saturating_add(length).saturating_add(2) > NAME_BYTES_MAX {
            break;
        }
        bytes.push(u8::try_from(length).unwrap_or_default());
        bytes.extend(label.bytes().take(length));
    }
    bytes.push(0);
    bytes
}

fn put_u16(message: &mut [u8], at: usize, number: u16) {
    if let Some(place) = message.get_mut(at..at.saturating_add(2)) {
        place.copy_from_slice(&number.to_be_bytes());
    }
}

fn mark_cut(message: &mut [u8]) {
    if let Some(flags) = message.get_mut(2) {
        *flags |= 0x02;
    }
}

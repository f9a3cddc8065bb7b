//! What resolvers send and are answered, byte for byte.

use super::ClusterZone;
use super::message::*;
use crate::protocol::{ServiceEntry, ServicePortEntry};
use proptest::prelude::*;
use std::net::Ipv4Addr;

fn write_query(name: &str, kind: u16, option: Option<u16>) -> Vec<u8> {
    let mut message = vec![0x12, 0x34, 0x01, 0x00, 0, 1, 0, 0, 0, 0, 0, u8::from(option.is_some())];
    for label in name.split('.').filter(|label| !label.is_empty()) {
        message.push(u8::try_from(label.len()).unwrap());
        message.extend(label.bytes());
    }
    message.push(0);
    message.extend(kind.to_be_bytes());
    message.extend([0, 1]);
    if let Some(size) = option {
        message.extend([0, 0, 41]);
        message.extend(size.to_be_bytes());
        message.extend([0; 6]);
    }
    message
}

fn zone() -> ClusterZone {
    let pods = [Ipv4Addr::new(10, 244, 0, 7), Ipv4Addr::new(10, 244, 0, 8)];
    let port = |name: Option<&str>, port| ServicePortEntry {
        name: name.map(str::to_owned),
        port,
        targets: Vec::new(),
    };
    let entry = |namespace: &str, name: &str, address: Option<Ipv4Addr>| ServiceEntry {
        namespace: namespace.to_owned(),
        name: name.to_owned(),
        address,
        ports: vec![port(Some("grpc"), 9443), port(None, 80)],
        pods: pods.to_vec(),
        hosts: vec![("first".to_owned(), pods[0])],
        is_sticky: false,
    };
    let entries = [
        entry("crossplane-system", "fn", Some(Ipv4Addr::new(10, 96, 1, 5))),
        entry("crossplane-system", "fn", Some(Ipv4Addr::new(10, 96, 1, 6))),
        entry("data", "db", None),
        // The API server's name cannot be taken.
        entry("default", "kubernetes", Some(Ipv4Addr::new(10, 96, 6, 6))),
    ];
    ClusterZone::new("cluster.local", "10.96.0.1:443".parse().unwrap(), &entries)
}

/// The code and the records, as text.
fn ask(name: &str, kind: u16) -> Option<(ResponseCode, Vec<String>)> {
    let query = parse_query(&write_query(name, kind, None)).unwrap();
    let answer = zone().answer_query(&query)?;
    assert!(query.is_answered_by(&write_answer(&query, &answer, UDP_ANSWER_MIN)));
    let describe = |record: &DnsRecord| match record {
        DnsRecord::Address(address) => address.to_string(),
        DnsRecord::Port(port, labels) => format!("{port} {}", labels.join(".")),
    };
    Some((answer.code, answer.records.iter().map(describe).collect()))
}

#[test]
fn names_of_the_cluster_lead_to_services_and_pods() {
    use ResponseCode::{NoError, NoSuchName};
    let table: &[(&str, u16, ResponseCode, &[&str])] = &[
        ("fn.crossplane-system.svc.cluster.local", KIND_A, NoError, &["10.96.1.5"]),
        ("FN.Crossplane-System.SVC.cluster.LOCAL", KIND_A, NoError, &["10.96.1.5"]),
        ("fn.crossplane-system.svc.cluster.local", KIND_AAAA, NoError, &[]),
        ("fn.crossplane-system.svc.cluster.local", 16, NoError, &[]),
        ("db.data.svc.cluster.local", KIND_A, NoError, &["10.244.0.7", "10.244.0.8"]),
        ("10-244-0-8.db.data.svc.cluster.local", KIND_A, NoError, &["10.244.0.8"]),
        ("10-244-0-9.db.data.svc.cluster.local", KIND_A, NoSuchName, &[]),
        ("first.db.data.svc.cluster.local", KIND_A, NoError, &["10.244.0.7"]),
        ("first.db.data.svc.cluster.local", KIND_AAAA, NoError, &[]),
        ("second.db.data.svc.cluster.local", KIND_A, NoSuchName, &[]),
        ("first.fn.crossplane-system.svc.cluster.local", KIND_A, NoSuchName, &[]),
        ("10-244-0-8.fn.crossplane-system.svc.cluster.local", KIND_A, NoSuchName, &[]),
        (
            "_grpc._tcp.fn.crossplane-system.svc.cluster.local",
            KIND_SRV,
            NoError,
            &["9443 fn.crossplane-system.svc.cluster.local"],
        ),
        (
            "_grpc._tcp.db.data.svc.cluster.local",
            KIND_SRV,
            NoError,
            &[
                "9443 10-244-0-7.db.data.svc.cluster.local",
                "9443 10-244-0-8.db.data.svc.cluster.local",
            ],
        ),
        ("_grpc._tcp.fn.crossplane-system.svc.cluster.local", KIND_A, NoError, &[]),
        ("_http._tcp.fn.crossplane-system.svc.cluster.local", KIND_SRV, NoSuchName, &[]),
        ("_tcp.fn.crossplane-system.svc.cluster.local", KIND_SRV, NoError, &[]),
        ("kubernetes.default.svc.cluster.local", KIND_A, NoError, &["10.96.0.1"]),
        (
            "_https._tcp.kubernetes.default.svc.cluster.local",
            KIND_SRV,
            NoError,
            &["443 kubernetes.default.svc.cluster.local"],
        ),
        ("cluster.local", KIND_A, NoError, &[]),
        ("svc.cluster.local", KIND_A, NoError, &[]),
        ("data.svc.cluster.local", KIND_A, NoError, &[]),
        ("nothing.svc.cluster.local", KIND_A, NoSuchName, &[]),
        ("fn.data.svc.cluster.local", KIND_A, NoSuchName, &[]),
        ("github.com.data.svc.cluster.local", KIND_A, NoSuchName, &[]),
        ("github.com.cluster.local", KIND_A, NoSuchName, &[]),
    ];
    for (name, kind, code, records) in table {
        let (said, found) = ask(name, *kind).unwrap();
        assert_eq!(
            (said, found),
            (*code, records.iter().map(ToString::to_string).collect()),
            "{name} {kind}"
        );
    }
    for outside in [
        "github.com",
        "local",
        "cluster.local.example.org",
        "notcluster.local",
        "fn.crossplane-system",
    ] {
        assert_eq!(ask(outside, KIND_A), None, "{outside}");
    }
}

#[test]
fn an_answer_is_what_resolvers_read() {
    let query = parse_query(&write_query("db.data.svc.cluster.local", KIND_A, Some(4096))).unwrap();
    assert_eq!(query.udp_answer_max(), UDP_ANSWER_MAX);
    let answer = zone().answer_query(&query).unwrap();
    let message = write_answer(&query, &answer, UDP_ANSWER_MAX);
    assert_eq!(message[..12], [0x12, 0x34, 0x85, 0x80, 0, 1, 0, 2, 0, 0, 0, 1]);
    assert_eq!(message[12..43], write_query("db.data.svc.cluster.local", KIND_A, None)[12..]);
    assert_eq!(message[43..59], [0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 5, 0, 4, 10, 244, 0, 7]);
    assert_eq!(message[75..], [0, 0, 41, 4, 208, 0, 0, 0, 0, 0, 0]);
}

#[test]
fn an_answer_that_does_not_fit_says_so() {
    let query = parse_query(&write_query("db.data.svc.cluster.local", KIND_A, None)).unwrap();
    let records = vec![DnsRecord::Address(Ipv4Addr::LOCALHOST); 1000];
    let answer = DnsAnswer { records, ..DnsAnswer::with_code(ResponseCode::NoError) };
    let cut = write_answer(&query, &answer, query.udp_answer_max());
    assert!(cut.len() <= UDP_ANSWER_MIN && cut[2] & 2 != 0 && cut[7] == 29);
    let whole = write_answer(&query, &answer, MESSAGE_MAX);
    assert!(whole[2] & 2 == 0 && whole[6..8] == [3, 232]);
    assert!(write_cut_answer(&query)[2] & 2 != 0);
}

#[test]
fn what_is_no_query_is_answered_with_a_code_or_not_at_all() {
    use UnreadableQuery::{Answered, Ignored};
    let query = write_query("a.b", KIND_A, None);
    let changed = |at: usize, byte: u8| {
        let mut message = query.clone();
        message[at] = byte;
        parse_query(&message).unwrap_err()
    };
    assert_eq!(parse_query(&query[..11]), Err(Ignored));
    assert_eq!(changed(2, 0x81), Ignored, "a response, which is never answered");
    assert_eq!(changed(2, 0x28), Answered(0x1234, ResponseCode::NotImplemented), "an update");
    assert_eq!(changed(5, 0), Answered(0x1234, ResponseCode::FormatError), "no question");
    assert_eq!(changed(5, 2), Answered(0x1234, ResponseCode::FormatError), "two");
    assert_eq!(changed(12, 0xc0), Answered(0x1234, ResponseCode::FormatError), "a compressed name");
    assert_eq!(changed(20, 3), Answered(0x1234, ResponseCode::Refused), "another class");
    let long = write_query(&"abcdefg.".repeat(40), KIND_A, None);
    assert_eq!(parse_query(&long), Err(Answered(0x1234, ResponseCode::FormatError)));
    for end in 12..query.len() {
        assert!(parse_query(&query[..end]).is_err(), "cut at {end}");
    }
    assert_eq!(
        write_failure(0x1234, ResponseCode::Refused),
        [0x12, 0x34, 0x80, 5, 0, 0, 0, 0, 0, 0, 0, 0]
    );
}

proptest! {
    #[test]
    fn no_message_makes_reading_panic_and_answers_fit(
        name in "[a-z_.-]{0,80}",
        kind in any::<u16>(),
        option in proptest::option::of(any::<u16>()),
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6),
        end in any::<prop::sample::Index>(),
    ) {
        let name = format!("{name}.cluster.local").replace("..", ".");
        let mut message = write_query(&name, kind, option);
        for (at, byte) in changes {
            let at = at.index(message.len());
            message[at] = byte;
        }
        for part in [&message[..], &message[..end.index(message.len())]] {
            let Ok(query) = parse_query(part) else { continue };
            let Some(answer) = zone().answer_query(&query) else { continue };
            for size in [UDP_ANSWER_MIN, UDP_ANSWER_MAX, MESSAGE_MAX] {
                let written = write_answer(&query, &answer, size);
                prop_assert!(written.len() <= size);
                prop_assert!(query.is_answered_by(&written));
            }
        }
    }
}

//! Queries of pods for names: no message makes reading panic, and answers fit and answer it.

#![no_main]

use libfuzzer_sys::fuzz_target;
use message::{DnsAnswer, DnsRecord, ResponseCode, parse_query, write_answer, write_cut_answer};

// The file alone: the room brings the client of a cluster, which takes long to build with these flags.
#[path = "../../crates/node/src/gateway/dns/message.rs"]
#[allow(dead_code)]
mod message;

fuzz_target!(|bytes: &[u8]| {
    let Ok(query) = parse_query(bytes) else { return };
    assert!(query.labels.iter().all(|label| !label.is_empty() && label.len() <= 3 * 63));
    let zone = vec!["cluster".to_owned(), "local".to_owned()];
    let ports = (0..40).map(|port| DnsRecord::Port(port, query.labels.clone())).collect();
    let addresses = (0..40_u8).map(|last| DnsRecord::Address([10, 0, 0, last].into())).collect();
    for records in [Vec::new(), ports, addresses] {
        let answer = DnsAnswer { code: ResponseCode::NoError, records, zone: zone.clone() };
        for size in [query.udp_answer_max(), message::MESSAGE_MAX] {
            let written = write_answer(&query, &answer, size);
            assert!(written.len() <= size);
            assert!(query.is_answered_by(&written));
        }
    }
    assert!(query.is_answered_by(&write_cut_answer(&query)));
});

//! Counters, as Prometheus reads them.

use http::{Method, StatusCode};
use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};

const METHODS: [&str; 7] = ["GET", "HEAD", "POST", "PATCH", "PUT", "DELETE", "other"];
const CLASSES: [&str; 6] = ["1xx", "2xx", "3xx", "4xx", "5xx", "other"];

/// What has been counted since the start.
#[derive(Debug, Default)]
pub(crate) struct Metrics {
    requests: [[AtomicU64; CLASSES.len()]; METHODS.len()],
    received: AtomicU64,
}

impl Metrics {
    pub(crate) fn count(&self, method: &Method, status: StatusCode) {
        let named = METHODS.iter().position(|name| *name == method.as_str());
        let class = usize::from(status.as_u16() / 100).saturating_sub(1).min(CLASSES.len() - 1);
        let counter = &self.requests[named.unwrap_or(METHODS.len() - 1)][class];
        counter.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn received(&self, bytes: u64) {
        self.received.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(crate) fn text(&self) -> String {
        let mut text = "# TYPE apron_registry_requests_total counter\n".to_owned();
        for (method, row) in METHODS.iter().zip(&self.requests) {
            for (class, counter) in CLASSES.iter().zip(row) {
                let value = counter.load(Ordering::Relaxed);
                if value > 0 {
                    let labels = format!("method=\"{method}\",status=\"{class}\"");
                    let _ = writeln!(text, "apron_registry_requests_total{{{labels}}} {value}");
                }
            }
        }
        let received = self.received.load(Ordering::Relaxed);
        let _ = writeln!(text, "# TYPE apron_registry_upload_bytes_total counter");
        let _ = writeln!(text, "apron_registry_upload_bytes_total {received}");
        text
    }
}

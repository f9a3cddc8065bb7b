//! What pods and the machine use: the node counts now and then, whether somebody asks or not.

use super::Station;
use crate::pod::usage::{UsageRates, UsageTable, compare_samples};
use k8s_openapi::jiff::Timestamp;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How often it is counted, as a metrics server asks. It reads two small files and a link for each process of a pod.
const COUNT_PAUSE: Duration = Duration::from_secs(15);
/// The pause before it is tried again while there is no node.
const NODE_PAUSE: Duration = Duration::from_secs(1);

/// What pods and the machine use now.
#[derive(Clone, Debug, Default)]
pub struct LiveUsage {
    table: Arc<Mutex<UsageTable>>,
}

impl LiveUsage {
    /// What a pod uses, if that is known.
    pub fn of_pod(&self, uid: &str) -> Option<UsageRates> {
        self.table().pods.get(uid).cloned()
    }

    /// What the machine uses, as one part.
    pub fn of_machine(&self) -> Option<UsageRates> {
        self.table().machine.clone()
    }

    fn table(&self) -> MutexGuard<'_, UsageTable> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Counts, as long as it is waited for.
pub(crate) async fn keep_counting(station: &Station) {
    let mut before = None;
    loop {
        let counted = match station.machine.present() {
            Some((_, node)) => tokio::time::timeout(COUNT_PAUSE, node.count_usage()).await.ok(),
            None => None,
        };
        let Some(Ok(sample)) = counted else {
            // What ran in a node that ended uses nothing.
            *station.usage.table() = UsageTable::default();
            tokio::time::sleep(NODE_PAUSE).await;
            continue;
        };
        *station.usage.table() = compare_samples(before.as_ref(), &sample, Timestamp::now());
        before = Some(sample);
        tokio::time::sleep(COUNT_PAUSE).await;
    }
}

//! What pods leave on the disk: images that none of them names any more, and the output of those that are gone.

use super::Station;
use crate::pod::all_containers;
use crate::removal::remove_tree;
use fs_err as fs;
use k8s_openapi::api::core::v1::Pod;
use oci::Digest;
use std::collections::{BTreeSet, HashSet};
use std::io;
use std::path::Path;
use std::time::Duration;

/// How often it is looked whether there are too many images.
const COLLECT_PAUSE: Duration = Duration::from_secs(300);
/// What all images may take on the disk before those go that no pod names: the next pod may want them again.
const IMAGES_BYTES_MAX: u64 = 10 << 30;

/// Removes images that no pod names whenever all of them take too much, as long as it is waited for.
pub(crate) async fn collect_images(station: &Station) {
    loop {
        tokio::time::sleep(COLLECT_PAUSE).await;
        remove_unnamed_images(station, IMAGES_BYTES_MAX).await;
    }
}

/// Removes images that no pod names until all of them take no more than this, and says how many that were.
pub(crate) async fn remove_unnamed_images(station: &Station, bytes_max: u64) -> usize {
    let named = station.named_images().into_iter();
    let keep = named.filter_map(|name| find_digest(station, &name)).collect();
    // What cannot be removed now may be the next time.
    station.images.collect(keep, bytes_max).await.unwrap_or_default()
}

fn find_digest(station: &Station, name: &str) -> Option<Digest> {
    let said = name.split_once('@').and_then(|(_, digest)| digest.parse().ok());
    said.or_else(|| station.images.remembered(name).ok().flatten().map(|image| image.digest))
}

/// The images of a pod, as it names them.
pub(crate) fn image_names(pod: &Pod) -> BTreeSet<String> {
    let containers = pod.spec.iter().flat_map(all_containers);
    containers.filter_map(|one| one.image.clone()).collect()
}

/// Removes what pods printed that are not there any more. Pods that went while this node did not run left it.
pub(crate) async fn sweep_logs(logs: &Path, present: &HashSet<String>) {
    let (logs, present) = (logs.to_owned(), present.clone());
    // A directory that cannot be removed now is left to the next start.
    let _ = tokio::task::spawn_blocking(move || remove_stale_logs(&logs, &present)).await;
}

/// Directories are called `NAMESPACE_NAME_UID`; others are left alone.
fn remove_stale_logs(logs: &Path, present: &HashSet<String>) -> io::Result<()> {
    for entry in fs::read_dir(logs)? {
        let entry = entry?;
        let name = entry.file_name();
        let uid = name.to_str().and_then(|name| Some(name.rsplit_once('_')?.1));
        let is_stale = uid.is_some_and(|uid| !present.contains(uid));
        if is_stale && entry.file_type()?.is_dir() {
            remove_tree(&entry.path())?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[tokio::test]
    async fn what_pods_that_are_gone_printed_goes_and_the_rest_stays() {
        let logs = tempfile::tempdir().unwrap();
        for name in ["n_here_1-2", "n_gone_3-4", "other"] {
            fs::create_dir_all(logs.path().join(name).join("c")).unwrap();
            fs::write(logs.path().join(name).join("c/0.log"), "x").unwrap();
        }
        fs::write(logs.path().join("n_file_5-6"), "x").unwrap();
        sweep_logs(logs.path(), &HashSet::from(["1-2".to_owned()])).await;
        let mut left: Vec<_> =
            fs::read_dir(logs.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        left.sort();
        assert_eq!(left, ["n_file_5-6", "n_here_1-2", "other"]);
        assert!(logs.path().join("n_here_1-2/c/0.log").exists());
        sweep_logs(&logs.path().join("none"), &HashSet::new()).await;
    }

    #[test]
    fn a_pod_names_the_images_of_all_its_containers() {
        let pod: Pod = serde_json::from_value(json!({"spec": {
            "initContainers": [{"name": "i", "image": "one"}],
            "containers": [{"name": "c", "image": "two"}, {"name": "d", "image": "one"}, {"name": "e"}],
        }}))
        .unwrap();
        assert_eq!(image_names(&pod).into_iter().collect::<Vec<_>>(), ["one", "two"]);
    }
}

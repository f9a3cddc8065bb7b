use super::super::cache::count_bytes;
use super::super::*;
use super::craft::{CraftedImage, options, pull_into, put_index};
use oci::{Digest, Identifier};
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use store::Memory;

fn names(directory: &Path) -> Vec<String> {
    let entries = fs_err::read_dir(directory).unwrap();
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

/// Images can be pulled again, so that a version that keeps them otherwise need not understand these.
#[tokio::test]
async fn images_of_another_format_are_removed_and_those_of_this_one_stay() {
    let directory = tempfile::tempdir().unwrap();
    let image = CraftedImage::of(&[&["bin/program=x"]]);
    let store = Memory::new();
    let raw = image.put(&store).await;
    let identifier = Identifier::Digest(raw.digest.clone());
    let cache = ImageCache::open(directory.path(), options()).unwrap();
    drop(cache.pull(&store, &identifier, &|_| ()).await.unwrap());
    drop(cache);
    let note = directory.path().join("format");
    assert_eq!(fs_err::read_to_string(&note).unwrap(), "1\n");
    let is_there = || {
        let cache = ImageCache::open(directory.path(), options()).unwrap();
        cache.cached(&raw.digest).unwrap().is_some()
    };
    assert!(is_there());
    // From before there was a note.
    fs_err::remove_file(&note).unwrap();
    assert!(is_there());
    fs_err::write(&note, "2\n").unwrap();
    assert!(!is_there());
    assert_eq!(names(&directory.path().join("rootfs")), Vec::<String>::new());
    assert_eq!(fs_err::read_to_string(&note).unwrap(), "1\n");
}

#[tokio::test]
async fn an_image_is_pulled_once_and_found_again_without_its_store() {
    let directory = tempfile::tempdir().unwrap();
    let image = CraftedImage::of(&[&["bin/program=x"]]);
    let store = Memory::new();
    let raw = image.put(&store).await;
    let identifier = Identifier::Digest(raw.digest.clone());
    let told = std::sync::Mutex::new(Vec::new());
    let on_progress = |progress: PullProgress| told.lock().unwrap().push(progress);
    let cache = ImageCache::open(directory.path(), options()).unwrap();
    let pulled = cache.pull(&store, &identifier, &on_progress).await.unwrap();
    let total = image.layers[0].len() as u64;
    assert_eq!(
        *told.lock().unwrap(),
        [PullProgress { fetched: 0, total }, PullProgress { fetched: total, total }]
    );
    assert_eq!(pulled.digest, raw.digest);
    assert_eq!(pulled.defaults.entrypoint, ["/bin/program"]);
    let config = &raw.manifest().unwrap().config.digest;
    let own = directory.path().join("rootfs").join(config.to_string().replace(':', "-"));
    assert_eq!(pulled.rootfs, own.join("fs"));
    cache.remember("registry.example.org/a:v1", &pulled).unwrap();
    drop((cache, pulled));
    // Another process, and a registry that is not there.
    let cache = ImageCache::open(directory.path(), options()).unwrap();
    let nowhere = Memory::new();
    let again = cache.pull(&nowhere, &identifier, &|_| panic!("fetched again")).await.unwrap();
    assert_eq!(fs_err::read_to_string(again.rootfs.join("bin/program")).unwrap(), "x");
    assert_eq!(again.defaults.entrypoint, ["/bin/program"]);
    let remembered = cache.remembered("registry.example.org/a:v1").unwrap().unwrap();
    assert_eq!(remembered.digest, raw.digest);
    assert!(cache.remembered("registry.example.org/a:v2").unwrap().is_none());
    assert!(cache.cached(&Digest::of(b"other")).unwrap().is_none());
    assert_eq!(names(&directory.path().join("tmp")), [""; 0]);
}

#[tokio::test]
async fn what_is_not_there_is_said() {
    let directory = tempfile::tempdir().unwrap();
    let cache = ImageCache::open(directory.path(), options()).unwrap();
    let identifier = Identifier::Tag("v1".to_owned());
    let error = cache.pull(&Memory::new(), &identifier, &|_| {}).await.unwrap_err();
    assert_eq!(
        (error.reason(), error.to_string().as_str()),
        ("ErrImagePull", "v1 is not in memory")
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn pulls_of_one_image_at_one_time_are_one() {
    let directory = tempfile::tempdir().unwrap();
    let cache = ImageCache::open(directory.path(), options()).unwrap();
    let (store, fetched) = (Memory::new(), AtomicU64::new(0));
    let raw = CraftedImage::of(&[&["f=x"], &["g=y"]]).put(&store).await;
    let identifier = Identifier::Digest(raw.digest);
    let on_progress = |progress: PullProgress| {
        if progress.fetched == 0 {
            fetched.fetch_add(1, Ordering::SeqCst);
        }
    };
    let pulls = (0..8).map(|_| cache.pull(&store, &identifier, &on_progress));
    for pulled in futures::future::join_all(pulls).await {
        assert!(pulled.unwrap().rootfs.join("g").exists());
    }
    assert_eq!(fetched.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn the_image_for_this_machine_is_pulled_and_none_for_another() {
    let directory = tempfile::tempdir().unwrap();
    let cache = ImageCache::open(directory.path(), options()).unwrap();
    let store = Memory::new();
    let mut arm = CraftedImage::of(&[&["machine=arm"]]);
    arm.platform = "linux/arm64".parse().unwrap();
    let amd = CraftedImage::of(&[&["machine=amd"]]);
    let index = put_index(&store, &[&arm, &amd]).await;
    let identifier = Identifier::Digest(index.digest.clone());
    let pulled = cache.pull(&store, &identifier, &|_| {}).await.unwrap();
    assert_eq!(pulled.digest, index.digest);
    assert_eq!(fs_err::read_to_string(pulled.rootfs.join("machine")).unwrap(), "amd");
    let only_arm = put_index(&store, &[&arm]).await.digest;
    for digest in [only_arm, arm.put(&store).await.digest] {
        let pulled = cache.pull(&store, &Identifier::Digest(digest), &|_| {}).await;
        let error = pulled.unwrap_err();
        let expected = "exec format error: the image is linux/arm64, this machine linux/amd64";
        assert_eq!((error.reason(), error.to_string().as_str()), ("RunContainerError", expected));
    }
}

#[tokio::test]
async fn layers_of_a_package_are_left_out_and_do_not_take_the_place_of_the_whole() {
    let directory = tempfile::tempdir().unwrap();
    let cache = ImageCache::open(directory.path(), options()).unwrap();
    let store = Memory::new();
    let mut image = CraftedImage::of(&[&["bin/program=x"], &["package.yaml=y"]]);
    image.annotations[1] = Some("io.crossplane.xpkg");
    let package = Identifier::Digest(image.put(&store).await.digest);
    image.annotations = vec![Some("other.example.org"), None];
    let whole = Identifier::Digest(image.put(&store).await.digest);
    let package = cache.pull(&store, &package, &|_| {}).await.unwrap();
    let whole = cache.pull(&store, &whole, &|_| {}).await.unwrap();
    assert!(package.rootfs.join("bin/program").exists());
    assert!(!package.rootfs.join("package.yaml").exists());
    assert!(whole.rootfs.join("package.yaml").exists());
}

#[tokio::test]
async fn what_a_process_left_half_made_is_removed_at_the_next_start() {
    let directory = tempfile::tempdir().unwrap();
    let image = CraftedImage::of(&[&["f=x"]]);
    let pulled = pull_into(directory.path(), &image, options()).await.unwrap();
    let half = directory.path().join("tmp/.tmpAbc/image/fs/deep/down");
    fs_err::create_dir_all(&half).unwrap();
    fs_err::write(half.join("f"), "x").unwrap();
    fs_err::write(directory.path().join("tmp/record"), "x").unwrap();
    let cache = ImageCache::open(directory.path(), options()).unwrap();
    assert_eq!(names(&directory.path().join("tmp")), [""; 0]);
    assert!(cache.cached(&pulled.digest).unwrap().unwrap().rootfs.join("f").exists());
}

#[tokio::test]
async fn a_directory_is_used_by_one_process() {
    let directory = tempfile::tempdir().unwrap();
    let cache = ImageCache::open(directory.path(), options()).unwrap();
    let error = ImageCache::open(directory.path(), options()).unwrap_err().to_string();
    assert_eq!(error, format!("{} is used by another apron", directory.path().display()));
    drop(cache);
    ImageCache::open(directory.path(), options()).unwrap();
}

#[tokio::test]
async fn images_that_are_not_used_are_removed() {
    let directory = tempfile::tempdir().unwrap();
    let cache = ImageCache::open(directory.path(), options()).unwrap();
    let store = Memory::new();
    let mut pulled = Vec::new();
    for content in ["f=1", "f=2", "f=3"] {
        let raw = CraftedImage::of(&[&[content]]).put(&store).await;
        let image = cache.pull(&store, &Identifier::Digest(raw.digest), &|_| {}).await.unwrap();
        cache.remember(content, &image).unwrap();
        pulled.push(image);
    }
    let digests: Vec<Digest> = pulled.iter().map(|image| image.digest.clone()).collect();
    assert_eq!(cache.collect(BTreeSet::new(), 0).await.unwrap(), 0);
    // One is in use, one is to be kept, and one is neither.
    pulled.truncate(1);
    assert_eq!(cache.collect(BTreeSet::from([digests[1].clone()]), 0).await.unwrap(), 1);
    assert!(pulled[0].rootfs.join("f").exists());
    let is_there = |position: usize| cache.cached(&digests[position]).unwrap().is_some();
    assert_eq!((is_there(0), is_there(1), is_there(2)), (true, true, false));
    for (part, left) in [("rootfs", 2), ("images", 2), ("names", 2), ("tmp", 0)] {
        assert_eq!(names(&directory.path().join(part)).len(), left, "{part}");
    }
    assert!(cache.remembered("f=3").unwrap().is_none());
    let raw = CraftedImage::of(&[&["f=3"]]).put(&store).await;
    let again = cache.pull(&store, &Identifier::Digest(raw.digest), &|_| {}).await.unwrap();
    assert!(again.rootfs.join("f").exists());
}

#[tokio::test]
async fn images_that_are_not_used_stay_as_long_as_there_is_room() {
    let directory = tempfile::tempdir().unwrap();
    let cache = ImageCache::open(directory.path(), options()).unwrap();
    let store = Memory::new();
    let mut digests = Vec::new();
    for content in ["f=1", "f=2", "f=3"] {
        let raw = CraftedImage::of(&[&[content]]).put(&store).await;
        let identifier = Identifier::Digest(raw.digest.clone());
        cache.pull(&store, &identifier, &|_| {}).await.unwrap();
        digests.push(raw.digest);
        // The next one is younger, on a file system with coarse clocks, too.
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    assert_eq!(cache.collect(BTreeSet::new(), 1 << 30).await.unwrap(), 0);
    // Room for all but a byte is room for those that came last.
    let rootfs = directory.path().join("rootfs");
    let sizes = names(&rootfs).into_iter().map(|name| count_bytes(&rootfs.join(name)).unwrap());
    let total: u64 = sizes.sum();
    assert_eq!(cache.collect(BTreeSet::new(), total - 1).await.unwrap(), 1);
    let is_there = |digest: &Digest| cache.cached(digest).unwrap().is_some();
    assert_eq!(digests.iter().map(is_there).collect::<Vec<_>>(), [false, true, true]);
}

#[tokio::test]
async fn an_image_without_places_for_kernel_files_gets_them_when_it_is_laid_down() {
    let directory = tempfile::tempdir().unwrap();
    let image = CraftedImage::of(&[&["bin/program=x"]]);
    let pulled = pull_into(directory.path(), &image, options()).await.unwrap();
    for name in ["proc", "sys", "dev", "etc"] {
        let metadata = pulled.rootfs.join(name).symlink_metadata().unwrap();
        assert!(metadata.is_dir(), "{name}");
        assert_eq!(std::os::unix::fs::PermissionsExt::mode(&metadata.permissions()) & 0o777, 0o755);
    }
    for name in ["hosts", "hostname", "resolv.conf"] {
        let path = pulled.rootfs.join("etc").join(name);
        assert_eq!(fs_err::read_to_string(path).unwrap(), "", "{name}");
    }
}

#[tokio::test]
async fn places_for_kernel_files_leave_what_an_image_has_and_stay_inside_of_it() {
    let directory = tempfile::tempdir().unwrap();
    let outside = directory.path().join("outside");
    let link = format!("etc/resolv.conf->{}", outside.display());
    let lines = ["usr/etc/hosts=own", "etc->usr/etc", &link, "etc/hostname->../kept", "usr/kept=k"];
    let image = CraftedImage::of(&[&lines]);
    let pulled = pull_into(&directory.path().join("images"), &image, options()).await.unwrap();
    let read = |path: &str| fs_err::read_to_string(pulled.rootfs.join(path)).unwrap();
    assert_eq!(read("usr/etc/hosts"), "own");
    // A link that leads to something in the image is one that is mounted over; one that leads nowhere becomes a file.
    assert!(pulled.rootfs.join("usr/etc/hostname").symlink_metadata().unwrap().is_symlink());
    assert!(pulled.rootfs.join("usr/etc/resolv.conf").symlink_metadata().unwrap().is_file());
    assert!(!outside.exists());
}

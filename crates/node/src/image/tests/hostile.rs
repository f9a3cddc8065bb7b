use super::super::*;
use super::craft::{CraftedImage, gzip, layer, options, pull_into};
use oci::Digest;
use oci::layer::Limits;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// A directory of images, and one beside it that nothing may touch.
struct Yard {
    directory: tempfile::TempDir,
}

impl Yard {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        fs_err::create_dir(directory.path().join("outside")).unwrap();
        fs_err::write(directory.path().join("outside/secret"), "secret").unwrap();
        Self { directory }
    }

    fn images(&self) -> PathBuf {
        self.directory.path().join("images")
    }

    fn outside(&self) -> String {
        self.directory.path().join("outside").to_str().unwrap().to_owned()
    }

    /// Nothing was written or changed outside.
    fn check_outside(&self) {
        let names = fs_err::read_dir(self.outside()).unwrap().count();
        assert_eq!(names, 1);
        assert_eq!(fs_err::read(self.outside() + "/secret").unwrap(), b"secret");
        let links = fs_err::metadata(self.outside() + "/secret").unwrap().nlink();
        assert_eq!(links, 1);
    }
}

/// Nothing is left of a pull that failed.
fn check_nothing_left(images: &Path) {
    for part in ["rootfs", "tmp", "images", "names"] {
        assert_eq!(fs_err::read_dir(images.join(part)).unwrap().count(), 0, "{part}");
    }
}

async fn refusal(image: &CraftedImage, options: ImageOptions) -> String {
    let yard = Yard::new();
    let error = pull_into(&yard.images(), image, options).await.unwrap_err();
    check_nothing_left(&yard.images());
    yard.check_outside();
    let digest = Digest::of(image.layers.last().unwrap());
    error.replace(&format!("layer {digest}: "), "LAYER: ")
}

async fn refused(layers: &[&[&str]], expected: &str) {
    assert_eq!(refusal(&CraftedImage::of(layers), options()).await, expected);
}

/// What is at a path of an image: a file's content, a link's target after `->`, `/` for a directory.
async fn laid_down(layers: &[&[&str]], paths: &[(&str, Option<&str>)]) {
    let yard = Yard::new();
    let image = CraftedImage::of(layers);
    let pulled = pull_into(&yard.images(), &image, options()).await.unwrap();
    for (path, expected) in paths {
        let found = describe(&pulled.rootfs.join(path));
        assert_eq!(found.as_deref(), *expected, "{path} of {layers:?}");
    }
}

fn describe(path: &Path) -> Option<String> {
    let metadata = fs_err::symlink_metadata(path).ok()?;
    if metadata.is_dir() {
        Some("/".to_owned())
    } else if metadata.is_symlink() {
        Some(format!("->{}", fs_err::read_link(path).unwrap().display()))
    } else {
        Some(fs_err::read_to_string(path).unwrap())
    }
}

#[tokio::test]
async fn names_that_climb_out_are_refused() {
    for name in ["../x=1", "a/../../x=1", "/../x=1"] {
        let name_only = name.trim_end_matches("=1");
        let expected = format!(
            "LAYER: the layer has an entry named `{name_only}`, which points outside of it"
        );
        refused(&[&[name]], &expected).await;
    }
}

#[tokio::test]
async fn absolute_names_are_in_the_image() {
    laid_down(
        &[&["/etc/x=1", "./a/./b//c=2", "a/../d=3"]],
        &[("etc/x", Some("1")), ("a/b/c", Some("2")), ("d", Some("3"))],
    )
    .await;
}

#[tokio::test]
async fn links_that_lead_out_lead_to_places_in_the_image() {
    let yard = Yard::new();
    let outside = yard.outside();
    let image = CraftedImage::of(&[
        &[&format!("out->{outside}"), "up->../../../../../../..", &format!("f->{outside}/secret")],
        &["out/new=1", "up/top=2", "f=3", "out/secret=4"],
    ]);
    let pulled = pull_into(&yard.images(), &image, options()).await.unwrap();
    yard.check_outside();
    let inside = pulled.rootfs.join(outside.trim_start_matches('/'));
    assert_eq!(describe(&inside.join("new")).unwrap(), "1");
    assert_eq!(describe(&inside.join("secret")).unwrap(), "4");
    assert_eq!(describe(&pulled.rootfs.join("top")).unwrap(), "2");
    assert_eq!(describe(&pulled.rootfs.join("f")).unwrap(), "3");
    assert_eq!(describe(&pulled.rootfs.join("out")).unwrap(), format!("->{outside}"));
}

#[tokio::test]
async fn hard_links_stay_in_the_image() {
    refused(
        &[&["x=>../../etc/passwd"]],
        "LAYER: the layer's entry `x` is a link to `../../etc/passwd`, outside of it",
    )
    .await;
    refused(
        &[&["x=>/etc/passwd"]],
        "LAYER: the layer's entry `x` is a link to `etc/passwd`, which does not exist",
    )
    .await;
    refused(&[&["d/"], &["x=>d"]], "LAYER: the entry `x` is a link to `d`, which is a directory")
        .await;
    refused(&[&["x=>/"]], "LAYER: the entry `x` is a link to ``, which is a directory").await;
    refused(
        &[&["d!", "x=>d"]],
        "LAYER: the layer's entry `x` is a link to `d`, which does not exist",
    )
    .await;
    let yard = Yard::new();
    let link = format!("out->{}", yard.outside());
    let image = CraftedImage::of(&[&[&link, "x=>out/secret"]]);
    let error = pull_into(&yard.images(), &image, options()).await.unwrap_err();
    assert!(error.ends_with("`out/secret`, which does not exist"), "{error}");
    check_nothing_left(&yard.images());
}

#[tokio::test]
async fn a_hard_link_to_a_link_is_the_link_and_writes_go_nowhere_else() {
    let yard = Yard::new();
    let link = format!("l->{}/secret", yard.outside());
    let image = CraftedImage::of(&[&[&link, "h=>l"], &["h=changed"]]);
    let pulled = pull_into(&yard.images(), &image, options()).await.unwrap();
    yard.check_outside();
    assert_eq!(describe(&pulled.rootfs.join("h")).unwrap(), "changed");
    assert!(describe(&pulled.rootfs.join("l")).unwrap().starts_with("->"));
}

#[tokio::test]
async fn hard_links_share_their_content_until_one_is_replaced() {
    laid_down(
        &[&["a=x", "d/b=>a"], &["a=y", "c=>d/b"]],
        &[("a", Some("y")), ("d/b", Some("x")), ("c", Some("x"))],
    )
    .await;
    // A link to what it replaces, or to what is in what it replaces.
    laid_down(&[&["a=x", "a=>a"]], &[("a", Some("x"))]).await;
    laid_down(&[&["d/f=x", "d=>d/f"]], &[("d", Some("x"))]).await;
    laid_down(&[&["a=x", "a/b=>a"]], &[("a/b", Some("x"))]).await;
}

#[tokio::test]
async fn devices_are_left_out_and_what_they_replace_is_gone() {
    laid_down(
        &[&["dev/null=file", "dev/sda!"], &["dev/null!"]],
        &[("dev", Some("/")), ("dev/null", None), ("dev/sda", None)],
    )
    .await;
}

#[tokio::test]
async fn bits_that_give_rights_are_dropped() {
    let yard = Yard::new();
    let image = CraftedImage::of(&[&[
        "4755 su=x",
        "2755 group=x",
        "7777 d",
        "640 f=x",
        "0 hidden",
        "0 none=x",
    ]]);
    let pulled = pull_into(&yard.images(), &image, options()).await.unwrap();
    let mode = |path: &str| {
        fs_err::symlink_metadata(pulled.rootfs.join(path)).unwrap().permissions().mode() & 0o7777
    };
    assert_eq!((mode("su"), mode("group"), mode("f")), (0o755, 0o755, 0o640));
    // Without owners, a directory that its owner could not change could not be removed either.
    assert_eq!((mode("d"), mode("hidden"), mode("none")), (0o1777, 0o700, 0));
    assert_eq!(fs_err::metadata(pulled.rootfs.join("f")).unwrap().mtime(), 1_234_567_890);
}

#[tokio::test]
async fn owners_are_shifted_for_an_administrator_and_for_nobody_else() {
    let yard = Yard::new();
    let image = CraftedImage::of(&[&["d/", "d/f=x", "l->nowhere", "i/f=x"]]);
    let options = ImageOptions { owners: FileOwners::Shifted { base: 2_000_000 }, ..options() };
    let pulled = pull_into(&yard.images(), &image, options).await;
    if !rustix::process::geteuid().is_root() {
        assert!(pulled.unwrap_err().contains("Operation not permitted"));
        return check_nothing_left(&yard.images());
    }
    let pulled = pulled.unwrap();
    let owner = |path: &str| {
        let metadata = fs_err::symlink_metadata(pulled.rootfs.join(path)).unwrap();
        (metadata.uid(), metadata.gid())
    };
    for path in ["d", "d/f", "l", "i/f"] {
        assert_eq!(owner(path), (2_000_007, 2_000_008), "{path}");
    }
    for path in ["", "i"] {
        assert_eq!(owner(path), (2_000_000, 2_000_000), "{path}");
    }
}

fn limited(change: impl FnOnce(&mut ImageLimits)) -> ImageOptions {
    let mut options = options();
    change(&mut options.limits);
    options
}

#[tokio::test]
async fn bombs_are_refused_with_the_limit() {
    let many: Vec<String> = (0..60).map(|number| format!("f{number}=x")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    let one = CraftedImage::of(&[&many]);
    let two = CraftedImage::of(&[&many, &["other=x"]]);
    let few = |max: u64| limited(|limits| limits.layers.entries_max = max);
    let expected = "LAYER: the layer exceeds the limit of 50 entries (entries_max)";
    assert_eq!(refusal(&one, few(50)).await, expected);
    let expected = "LAYER: the layer exceeds the limit of 60 entries (entries_max)";
    assert_eq!(refusal(&two, few(60)).await, expected);
    let big = CraftedImage::of(&[&["f=x"], &[&format!("f={}", "0".repeat(4 << 20))]]);
    let small = limited(|limits| limits.layers.expanded_bytes_max = 1 << 20);
    let expected = "LAYER: the layer exceeds the limit of 1048576 bytes (expanded_bytes_max)";
    assert_eq!(refusal(&big, small).await, expected);
    let fetched = limited(|limits| limits.fetched_bytes_max = 100);
    let expected = "the image exceeds the limit of 100 bytes (fetched_bytes_max)";
    assert_eq!(refusal(&big, fetched).await, expected);
    let layers = limited(|limits| limits.layers_max = 1);
    let expected = "the image exceeds the limit of 1 layers (layers_max)";
    assert_eq!(refusal(&big, layers).await, expected);
    let config = limited(|limits| limits.config_bytes_max = 10);
    let expected = "the image exceeds the limit of 10 bytes (config_bytes_max)";
    assert_eq!(refusal(&big, config).await, expected);
}

#[tokio::test]
async fn directories_that_no_entry_names_are_counted_and_not_too_deep() {
    let chains: Vec<String> =
        (0..10).map(|number| format!("{number}{}=x", "/d".repeat(9))).collect();
    let chains: Vec<&str> = chains.iter().map(String::as_str).collect();
    let image = CraftedImage::of(&[&chains]);
    let few = limited(|limits| limits.layers.entries_max = 50);
    let expected = "LAYER: the layer exceeds the limit of 50 entries (entries_max)";
    assert_eq!(refusal(&image, few).await, expected);
    let flat = limited(|limits| limits.depth_max = 5);
    let expected = "LAYER: the layer exceeds the limit of 5 directories in each other (depth_max)";
    assert_eq!(refusal(&image, flat).await, expected);
    // A link does not help.
    let deep = ["/d".repeat(4).trim_start_matches('/').to_owned() + "/", "l->d/d/d/d".to_owned()];
    let image = CraftedImage::of(&[&[&deep[0], &deep[1], "l/d/d/d=x"]]);
    let error = refusal(&image, limited(|limits| limits.depth_max = 5)).await;
    assert!(error.contains("depth_max"), "{error}");
    let enough = limited(|limits| limits.depth_max = 6);
    pull_into(&Yard::new().images(), &image, enough).await.unwrap();
}

#[tokio::test]
async fn a_pack_of_zeros_does_not_unfold() {
    let mut archive = layer(&["f=x"]);
    // Zeros behind the end of the archive, which decompress a thousandfold.
    archive.resize(64 << 20, 0);
    let image = CraftedImage::of_archives(&[archive]);
    assert!(image.layers[0].len() < 1 << 20);
    let small = limited(|limits| limits.layers.expanded_bytes_max = 1 << 20);
    let expected = "LAYER: the layer exceeds the limit of 1048576 bytes (expanded_bytes_max)";
    assert_eq!(refusal(&image, small).await, expected);
}

#[tokio::test]
async fn sizes_and_digests_that_lie_are_refused() {
    let mut archive = layer(&["f=x"]);
    archive.truncate(512);
    let mut image = CraftedImage::of_archives(&[archive]);
    assert_eq!(refusal(&image, options()).await, "LAYER: the layer's archive is truncated");
    let (expected, actual) = (Digest::of(b"other"), Digest::of(&layer(&["f=x"])));
    image = CraftedImage::of(&[&["f=x"]]);
    image.diff_ids = vec![expected.clone()];
    assert_eq!(
        refusal(&image, options()).await,
        format!(
            "LAYER: its content has the digest {actual}, the image's config says {expected} (diff_ids)"
        )
    );
    image = CraftedImage::of(&[&["f=x"]]);
    image.diff_ids.clear();
    assert_eq!(
        refusal(&image, options()).await,
        "the image is malformed: its manifest has 1 layers, its config 0 (diff_ids)"
    );
    image = CraftedImage::of(&[&["f=x"]]);
    image.layers[0].truncate(30);
    assert!(refusal(&image, options()).await.starts_with("LAYER: "));
    image = CraftedImage::of_archives(&[b"no archive at all".repeat(100)]);
    assert_eq!(
        refusal(&image, options()).await,
        "LAYER: the layer is not a tar archive: a header's checksum is wrong"
    );
}

#[tokio::test]
async fn the_last_of_two_entries_with_one_name_counts() {
    laid_down(&[&["f=1", "f=2"]], &[("f", Some("2"))]).await;
    laid_down(&[&["f=1", "f/"]], &[("f", Some("/"))]).await;
    laid_down(&[&["d/x=1", "d=2"]], &[("d", Some("2"))]).await;
    laid_down(&[&["d/x=1", "d/"]], &[("d/x", Some("1"))]).await;
    laid_down(&[&["f=1", "f/x=2"]], &[("f/x", Some("2"))]).await;
    laid_down(&[&["d/x=1", "d->e", "d/x=2"]], &[("d", Some("->e")), ("e/x", Some("2"))]).await;
}

#[tokio::test]
async fn whiteouts_hide_what_lower_layers_left() {
    laid_down(&[&["d/f=1", "d/g=2"], &["d/.wh.f="]], &[("d/f", None), ("d/g", Some("2"))]).await;
    laid_down(&[&["d/f=1"], &[".wh.d="]], &[("d", None)]).await;
    laid_down(&[&["d/e/f=1"], &["d/g=2", "d/.wh..wh..opq="]], &[("d/e", None), ("d/g", Some("2"))])
        .await;
    laid_down(
        &[&["a=1", "b/c=1"], &[".wh..wh..opq=", "d=1"]],
        &[("a", None), ("b", None), ("d", Some("1"))],
    )
    .await;
    laid_down(&[&["f=1"], &["f=2", ".wh.f="]], &[("f", Some("2"))]).await;
    laid_down(
        &[&["f=1"], &[".wh..wh.aufs=", ".wh..wh.plnk/f=", "x/.wh.none="]],
        &[("f", Some("1")), (".wh..wh.plnk", None)],
    )
    .await;
}

#[tokio::test]
async fn whiteouts_of_the_root_and_of_what_is_above_are_refused() {
    for (name, layers) in
        [(".wh.", "a=1"), (".wh..", "a=1"), ("d/.wh...", "d/a=1"), ("d/.wh.", "d/a=1")]
    {
        let expected = format!("LAYER: the whiteout `{name}` names no file");
        refused(&[&[layers], &[&format!("{name}=")]], &expected).await;
    }
    refused(&[&["a=1"], &["x/..=x"]], "LAYER: the root of the file system is a regular file").await;
    refused(&[&["./->/etc"]], "LAYER: the root of the file system is a symbolic link").await;
    laid_down(&[&["./", "a=1"]], &[("a", Some("1"))]).await;
}

#[tokio::test]
async fn links_between_layers_are_followed_and_whiteouts_follow_them() {
    let base: &[&str] = &["usr/lib/", "usr/lib/a=1", "lib->usr/lib"];
    laid_down(
        &[base, &["lib/b=2"]],
        &[("lib", Some("->usr/lib")), ("usr/lib/a", Some("1")), ("usr/lib/b", Some("2"))],
    )
    .await;
    laid_down(&[base, &["lib/.wh.a="]], &[("lib", Some("->usr/lib")), ("usr/lib/a", None)]).await;
    laid_down(
        &[base, &["lib/", "lib/b=2"]],
        &[("lib", Some("/")), ("lib/b", Some("2")), ("usr/lib/a", Some("1"))],
    )
    .await;
    // A directory that replaces a link hides where the link led, and not what is there.
    laid_down(
        &[base, &["lib/", "lib/.wh..wh..opq="]],
        &[("lib", Some("/")), ("usr/lib/a", Some("1"))],
    )
    .await;
    // The place that a link leads to is made if it is not there.
    laid_down(&[&["run->var/run"], &["run/f=1"]], &[("var/run/f", Some("1"))]).await;
}

#[tokio::test]
async fn links_in_a_circle_are_refused() {
    let expected = "LAYER: the path of the entry `a/x` leads through too many symbolic links";
    refused(&[&["a->b", "b->a", "a/x=1"]], expected).await;
    refused(&[&["a->a/a/a", "a/x=1"]], expected).await;
    let expected = expected.replace("a/x", "a/.wh.x");
    refused(&[&["a->b", "b->a"], &["a/.wh.x="]], &expected).await;
}

#[tokio::test]
async fn layers_are_recognised_by_their_bytes() {
    let yard = Yard::new();
    let plain = layer(&["a=1"]);
    let mut image = CraftedImage::of_archives(&[plain.clone(), layer(&["b=2"])]);
    image.layers = vec![plain, gzip(&layer(&["b=2"]))];
    let pulled = pull_into(&yard.images(), &image, options()).await.unwrap();
    assert_eq!(describe(&pulled.rootfs.join("a")).unwrap(), "1");
    assert_eq!(describe(&pulled.rootfs.join("b")).unwrap(), "2");
    let limits = Limits { compressed_bytes_max: 600, ..Limits::default() };
    let options = limited(|all| all.layers = limits);
    let error = pull_into(&yard.directory.path().join("other"), &image, options).await.unwrap_err();
    assert_eq!(error, "the image exceeds the limit of 600 bytes (compressed_bytes_max)");
}

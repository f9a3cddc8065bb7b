use super::*;
use std::io::Write as _;

const PACKAGE: &str = "apiVersion: meta.pkg.crossplane.io/v1
kind: Configuration
metadata: {name: c}
---
# only a comment
---
apiVersion: apiextensions.crossplane.io/v1
kind: Composition
metadata: {name: one}
spec: {mode: Pipeline, port: 0x10}";

fn gzip(directory: &Path, text: &str) -> PathBuf {
    let path = directory.join("given.gz");
    let file = fs_err::File::create(&path).unwrap();
    let mut file = flate2::write::GzEncoder::new(file, flate2::Compression::fast());
    file.write_all(text.as_bytes()).unwrap();
    file.finish().unwrap();
    path
}

struct Place {
    cache: Cache,
    directory: tempfile::TempDir,
    elsewhere: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        let (directory, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let cache = Cache::open(directory.path()).unwrap();
        Self { cache, directory, elsewhere }
    }

    async fn put(&self, text: &str) -> Result<Digest, CacheError> {
        let digest = Digest::of(text.as_bytes());
        let origin = Origin::Gzip(gzip(self.elsewhere.path(), text));
        self.cache.put(Name::Image(digest.clone()), origin).await?;
        Ok(digest)
    }

    fn names(&self) -> Vec<String> {
        let all = fs_err::read_dir(self.directory.path()).unwrap();
        let mut names: Vec<_> =
            all.map(|one| one.unwrap().file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }
}

#[tokio::test]
async fn a_package_comes_back_document_by_document() {
    let place = Place::new();
    let digest = place.put(PACKAGE).await.unwrap();
    // Another process, which has nothing in memory.
    let cache = Cache::open(place.directory.path()).unwrap();
    let contents = cache.contents(&digest).await.unwrap();
    assert_eq!(contents.len(), 2);
    assert_eq!(contents.opened.reports[1].identity.name, "one");
    assert_eq!(contents.opened.meta().unwrap().name(), "c");
    let document = cache.document(&digest, 1, str::to_owned).await.unwrap();
    let document: Json = serde_json::from_str(&document).unwrap();
    assert_eq!(document["spec"]["port"], 16);
    let beyond = cache.document(&digest, 2, str::to_owned).await.unwrap_err();
    assert!(beyond.to_string().contains("document 3"), "{beyond}");
}

#[tokio::test]
async fn other_tools_can_read_the_file() {
    let place = Place::new();
    let digest = place.put(PACKAGE).await.unwrap();
    let file = fs_err::File::open(place.cache.file(&format!("{}.gz", digest.hex()))).unwrap();
    let mut text = String::new();
    MultiGzDecoder::new(file).read_to_string(&mut text).unwrap();
    let expected = PACKAGE.replace("---\n# only a comment\n", "");
    assert_eq!(text, format!("---\n{expected}\n"));
}

#[tokio::test]
async fn a_tag_means_what_it_meant_while_that_is_there() {
    let place = Place::new();
    let digest = Digest::of(PACKAGE.as_bytes());
    place.cache.remember("r.io/p:v1", &digest).unwrap();
    assert_eq!(place.cache.tag("r.io/p:v1"), None);
    place.put(PACKAGE).await.unwrap();
    assert_eq!(place.cache.tag("r.io/p:v1"), Some(digest));
    assert_eq!(place.cache.tag("r.io/p:v2"), None);
}

/// Changes a byte near the end of one of a package's files.
fn harm(place: &Place, digest: &Digest, end: &str) {
    let path = place.cache.file(&format!("{}.{end}", digest.hex()));
    let mut bytes = fs_err::read(&path).unwrap();
    let last = bytes.len() - 12;
    bytes[last] ^= 1;
    fs_err::write(&path, bytes).unwrap();
}

#[tokio::test]
async fn changed_bytes_are_noticed_and_the_package_is_fetched_again() {
    let place = Place::new();
    let digest = place.put(PACKAGE).await.unwrap();
    harm(&place, &digest, TEXTS);
    let cache = Cache::open(place.directory.path()).unwrap();
    let error = cache.contents(&digest).await.unwrap_err();
    assert!(matches!(error, CacheError::Damaged { .. }), "{error}");
    assert!(!cache.has(&digest));
    assert_eq!(place.names(), Vec::<String>::new());
    place.put(PACKAGE).await.unwrap();
    assert!(place.cache.document(&digest, 1, str::to_owned).await.is_ok());
}

/// A record without a format is from before there were formats, and has the first one.
#[tokio::test]
async fn a_package_of_another_format_is_damaged_to_this_version() {
    let place = Place::new();
    let digest = place.put(PACKAGE).await.unwrap();
    let path = place.directory.path().join(format!("{}.{RECORD}", digest.hex()));
    let written = fs_err::read_to_string(&path).unwrap();
    for (format, is_read) in [("", true), ("\"format\":1,", true), ("\"format\":2,", false)] {
        fs_err::write(&path, written.replace("\"format\":1,", format)).unwrap();
        let found = Cache::open(place.directory.path()).unwrap().contents(&digest).await;
        match found {
            Ok(_) => assert!(is_read, "{format}"),
            Err(error) => {
                assert!(matches!(error, CacheError::Damaged { .. }), "{error}");
                assert!(!is_read, "{format}");
            }
        }
    }
}

#[tokio::test]
async fn what_documents_say_is_read_from_their_texts_if_it_is_lost() {
    let place = Place::new();
    let digest = place.put(PACKAGE).await.unwrap();
    let whole = place.cache.document(&digest, 1, str::to_owned).await.unwrap();
    harm(&place, &digest, OBJECTS);
    assert_eq!(place.cache.document(&digest, 1, str::to_owned).await.unwrap(), whole);
    fs_err::remove_file(place.cache.file(&format!("{}.{OBJECTS}", digest.hex()))).unwrap();
    assert_eq!(place.cache.document(&digest, 1, str::to_owned).await.unwrap(), whole);
    harm(&place, &digest, TEXTS);
    let error = place.cache.document(&digest, 1, str::to_owned).await.unwrap_err();
    assert!(matches!(error, CacheError::Damaged { .. }), "{error}");
    assert_eq!(place.names(), Vec::<String>::new());
}

#[tokio::test]
async fn what_aliases_make_of_a_document_takes_no_place() {
    let place = Place::new();
    let list = |name: &str, of: &str| format!("{name}: &{name} [{}]\n", [of; 10].join(", "));
    let [a, b] = [list("a", &"some text".repeat(30)), list("b", "*a")];
    let digest = place.put(&format!("{PACKAGE}\n---\n{a}{b}c: [*b, *b]\n")).await.unwrap();
    let long = place.cache.document(&digest, 2, str::to_owned).await.unwrap();
    let file = place.cache.file(&format!("{}.{OBJECTS}", digest.hex()));
    let mut kept = String::new();
    let file = fs_err::File::open(file).unwrap();
    MultiGzDecoder::new(file).read_to_string(&mut kept).unwrap();
    assert!(long.len() > 30_000 && kept.len() < 500, "{} {}", long.len(), kept.len());
}

#[tokio::test]
async fn what_is_wrong_is_told_with_the_lines_of_the_package_by_every_process() {
    let place = Place::new();
    let package = PACKAGE.replace("kind: Composition", "kind: Deployment");
    let digest = place.put(&package).await.unwrap();
    let told = |contents: &Contents| {
        let all = contents.opened.diagnostics.iter();
        all.map(|one| (one.rule, one.line, one.message.clone())).collect::<Vec<_>>()
    };
    let first = told(&place.cache.contents(&digest).await.unwrap());
    let line = package.lines().position(|line| line == "kind: Deployment").unwrap() + 1;
    assert!(first.iter().any(|(_, at, _)| *at as usize == line), "{line}: {first:?}");
    let cache = Cache::open(place.directory.path()).unwrap();
    assert_eq!(told(&cache.contents(&digest).await.unwrap()), first);
}

#[tokio::test]
async fn what_cannot_be_read_leaves_nothing_behind() {
    let place = Place::new();
    let error = place.put("a: 1\n--- b\nc: 2\n").await.unwrap_err();
    assert!(matches!(error, CacheError::Package(_)), "{error}");
    assert_eq!(place.names(), Vec::<String>::new());
}

#[tokio::test]
async fn what_a_killed_process_left_goes() {
    let place = Place::new();
    let whole = place.put(PACKAGE).await.unwrap();
    fs_err::write(place.cache.file("mine.gz"), "x").unwrap();
    let kept = place.names();
    fs_err::write(place.cache.file(".partial-x"), "half").unwrap();
    // Killed before the record came.
    let lost = Digest::of(b"lost");
    for end in [TEXTS, OBJECTS] {
        fs_err::write(place.cache.file(&format!("{}.{end}", lost.hex())), "x").unwrap();
    }
    let cache = Cache::open(place.directory.path()).unwrap();
    assert_eq!(place.names(), kept);
    cache.contents(&whole).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn packages_that_nobody_needs_go_and_those_of_people_stay() {
    let place = Place::new();
    let old = place.put(PACKAGE).await.unwrap();
    place.cache.remember("r.io/p:v1", &old).unwrap();
    fs_err::write(place.cache.file("mine.xpkg"), "x").unwrap();
    assert!(place.cache.keep(|_| false).await.unwrap().is_empty(), "it came only lately");
    tokio::time::advance(GRACE).await;
    let new = place.put(&PACKAGE.replace("one", "two")).await.unwrap();
    tokio::time::advance(GRACE).await;
    let kept = new.clone();
    assert_eq!(place.cache.keep(move |one| *one == kept).await.unwrap(), [old]);
    let expected = [TEXTS, RECORD, OBJECTS].map(|end| format!("{}.{end}", new.hex()));
    assert_eq!(place.names(), [&expected[..], &["mine.xpkg".to_owned()]].concat());
}

#[test]
fn names_that_lead_elsewhere_are_none() {
    let place = Place::new();
    fs_err::write(place.elsewhere.path().join("x.xpkg"), "x").unwrap();
    let away = place.elsewhere.path().join("x").display().to_string();
    assert_eq!(place.cache.provided(&away, "xpkg"), None);
    let up = format!("../{}/x", place.elsewhere.path().file_name().unwrap().to_str().unwrap());
    assert_eq!(place.cache.provided(&up, "xpkg"), None);
    fs_err::write(place.cache.file("x.xpkg"), "x").unwrap();
    assert!(place.cache.provided("x", "xpkg").is_some());
}

#[test]
fn a_full_disk_says_so() {
    let source = io::Error::from(io::ErrorKind::StorageFull);
    let error = CacheError::Disk { directory: "/cache".into(), source };
    assert_eq!(error.to_string(), "cannot use the package cache /cache: the disk is full");
    assert_eq!(error.advice(), Some("free some space or give the cache more"));
}

/// M7: whoever parses a package stops when nobody waits for it, so that a signal is obeyed at once.
#[tokio::test]
async fn m7_work_that_nobody_waits_for_ends() {
    let (tell, told) = std::sync::mpsc::channel();
    let (start, running) = tokio::sync::oneshot::channel();
    let work = abandonable(move |is_cancelled| {
        let _ = start.send(());
        while !is_cancelled() {
            std::thread::yield_now();
        }
        tell.send(()).map_err(|error| CacheError::Disk {
            directory: PathBuf::new(),
            source: io::Error::other(error),
        })
    });
    tokio::select! {
        _ = work => panic!("nobody cancelled it"),
        running = running => running.unwrap(),
    }
    tokio::task::spawn_blocking(move || told.recv()).await.unwrap().unwrap();
}

/// M7: a package that expands without proportion is refused whole, and leaves nothing.
#[tokio::test]
async fn m7_a_package_of_alias_documents_is_not_kept() {
    let place = Place::new();
    let one = "a: &a [1,1,1,1,1,1,1,1,1,1]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: [*b,*b,*b,*b]\n---\n";
    let error = place.put(&format!("{PACKAGE}\n---\n{}", one.repeat(2000))).await.unwrap_err();
    assert!(matches!(error, CacheError::Package(OpenError::Copies(_))), "{error:?}");
    assert_eq!(place.names(), Vec::<String>::new());
}

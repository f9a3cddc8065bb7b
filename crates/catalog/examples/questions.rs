//! How long the catalog takes: to find the packages of a kind among 1,000,000 that packages bring, to
//! search 100,000 versions of packages, and to read one package with many kinds.
//!
//! `scripts/bench-catalog` runs it. `questions ask DIRECTORY [REPOSITORIES]` makes an index of made-up
//! packages (20 versions of each, with 10 kinds of 12 fields) and asks it; `questions read FILE
//! DIRECTORY` reads a `package.yaml` into an empty index, which is kept there. Times are by the clock and
//! of the processor; other work on the machine matters to the first, and less to the second. Beside each
//! figure is what it should be, and whether it is.

#![expect(clippy::print_stdout, reason = "a program for people")]

use bytes::Bytes;
use catalog::{
    Definition, Head, Index, KindReference, Origin, Outcome, Package, Rights, Schema,
    ServedVersion, ShelfQuestion,
};
use flate2::Compression;
use flate2::write::ZlibEncoder;
use oci::layer::LayerWriter;
use oci::{Descriptor, Digest, Identifier, Manifest, MediaType, Raw};
use std::error::Error;
use std::io::Write as _;
use std::path::Path;
use std::time::{Duration, Instant};
use store::{Memory, Store as _};

const REPOSITORIES: usize = 5000;
const VERSIONS: usize = 20;
const KINDS: usize = 10;
const LOOKUPS: usize = 20_000;
const SEARCHES: usize = 2000;
const FIELDS: usize = 12;
const PAGES: usize = 200;

const WORDS: [&str; 20] = [
    "bucket", "queue", "topic", "table", "cluster", "node", "network", "route", "gateway",
    "policy", "role", "secret", "key", "domain", "zone", "instance", "volume", "function",
    "stream", "metric",
];

type Failed = Box<dyn Error>;

fn main() -> Result<(), Failed> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["ask", directory] => ask_questions(Path::new(directory), REPOSITORIES),
        ["ask", directory, count] => ask_questions(Path::new(directory), count.parse()?),
        ["read", file, directory] => read_file(Path::new(file), Path::new(directory)),
        _ => {
            Err("usage: questions ask DIRECTORY [REPOSITORIES] | questions read FILE DIRECTORY"
                .into())
        }
    }
}

/// Numbers that look random and are the same each time.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, most: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963);
        usize::try_from(self.0 >> 33).unwrap_or_default() % most.max(1)
    }

    fn word(&mut self) -> &'static str {
        WORDS[self.below(WORDS.len())]
    }
}

fn capital(word: &str) -> String {
    word.chars().take(1).flat_map(char::to_uppercase).chain(word.chars().skip(1)).collect()
}

fn define_kind(repository: usize, kind: usize) -> Definition {
    let mut numbers = Numbers((repository * KINDS + kind) as u64 + 7);
    let (one, two) = (numbers.word(), numbers.word());
    let group = format!("{}.cloud{repository}.example.org", numbers.word());
    let singular = format!("{one}{two}{kind}");
    Definition {
        name: format!("{singular}s.{group}"),
        group,
        kind: format!("{}{}{kind}", capital(one), capital(two)),
        plural: format!("{singular}s"),
        singular,
        short_names: Vec::new(),
        scope: "Cluster".to_owned(),
        origin: Origin::Crd,
        versions: ["v1", "v1beta1"].map(serve_version).to_vec(),
    }
}

fn serve_version(name: &str) -> ServedVersion {
    ServedVersion {
        name: name.to_owned(),
        served: true,
        storage: name == "v1",
        deprecated: false,
        schema: None,
    }
}

/// A schema of a kind, with fields of its own choice.
fn describe_kind(repository: usize, kind: usize) -> Result<Schema, Failed> {
    let mut numbers = Numbers((repository * KINDS + kind) as u64 + 99);
    let mut fields: Vec<String> = (0..FIELDS)
        .map(|_| format!("{}{}", numbers.word(), numbers.below(50)))
        .chain(["region".to_owned(), "forprovider".to_owned(), "spec".to_owned()])
        .collect();
    fields.sort();
    fields.dedup();
    let inner: serde_json::Map<String, serde_json::Value> = fields
        .iter()
        .map(|field| {
            (field.clone(), serde_json::json!({"type": "string", "description": "a text"}))
        })
        .collect();
    let schema = serde_json::json!({"type": "object", "properties": {"spec": {"type": "object",
        "properties": {"forprovider": {"type": "object", "properties": inner}}}}});
    let bytes = serde_json::to_vec(&schema)?;
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(&bytes)?;
    let (digest, compressed) = (Digest::of(&bytes).to_string(), encoder.finish()?);
    Ok(Schema { digest, compressed, fields })
}

fn make_index(directory: &Path, repositories: usize) -> Result<Index, Failed> {
    let index = Index::create(&directory.join("catalog.db"))?;
    for repository in 0..repositories {
        let mut definitions: Vec<Definition> =
            (0..KINDS).map(|kind| define_kind(repository, kind)).collect();
        let mut schemas = Vec::new();
        for (kind, definition) in definitions.iter_mut().enumerate() {
            let schema = describe_kind(repository, kind)?;
            definition.versions.iter_mut().for_each(|it| it.schema = Some(schema.digest.clone()));
            schemas.push(schema);
        }
        let first = &definitions[0].singular;
        let name = format!("team{}/provider-{first}-{repository}", repository % 97);
        let digest = |version: usize| format!("sha256:{repository:032x}{version:032x}");
        let heads: Vec<Head> = (0..VERSIONS)
            .map(|version| Head {
                digest: digest(version),
                tags: vec![format!("v1.{version}.0")],
                is_damaged: false,
            })
            .collect();
        index.settle(&name, &heads)?;
        for version in 0..VERSIONS {
            let package = Package {
                kind: "Provider".to_owned(),
                name: name.clone(),
                description: Some(format!("brings {} and more", definitions[1].kind)),
                definitions: definitions.clone(),
                schemas: schemas.clone(),
                ..Package::default()
            };
            index.learn(&digest(version), &Outcome::Package(Box::new(package)))?;
        }
    }
    Ok(index)
}

fn ask_questions(directory: &Path, repositories: usize) -> Result<(), Failed> {
    let begun = Instant::now();
    let index = make_index(directory, repositories)?;
    println!(
        "{} versions that bring {} kinds: indexed in {:.0} s",
        repositories * VERSIONS,
        repositories * VERSIONS * KINDS,
        begun.elapsed().as_secs_f64()
    );
    let (all, mut numbers) = (Rights::all(), Numbers(1));
    let mut lookups = Vec::new();
    for _ in 0..LOOKUPS {
        let name = define_kind(numbers.below(repositories), numbers.below(KINDS)).name;
        lookups.push(KindReference::parse(&name)?);
    }
    let goal = Goal { slow: 1.0, busy: 100.0 };
    report("the packages of a kind", goal, lookups.len(), |at| {
        Ok(index.definers(&lookups[at], None, &all)?.packages.len() == 1)
    })?;
    let few = Rights::when(|name| name.ends_with('7'));
    report("the packages of a kind, if a tenth may be read", goal, lookups.len(), |at| {
        Ok(index.definers(&lookups[at], None, &few)?.packages.len() <= 1)
    })?;
    let mut searches = Vec::new();
    for at in 0..SEARCHES {
        let (one, two) = (numbers.word(), numbers.word());
        searches.push(match at % 5 {
            0 => one.chars().take(1 + at % 3).collect(),
            1 => one.to_owned(),
            2 => format!("{one} {two}"),
            3 => format!("forprovider.{one}{}", at % 50),
            _ => format!("{one}{two}"),
        });
    }
    let goal = Goal { slow: 50.0, busy: f64::INFINITY };
    report("search", goal, searches.len(), |at| Ok(index.search(&searches[at], &all).is_ok()))?;
    report("search, if a tenth may be read", goal, searches.len(), |at| {
        Ok(index.search(&searches[at], &few).is_ok())
    })?;
    let shelf = ShelfQuestion { limit: 24, ..ShelfQuestion::default() };
    report("all packages, the first page", goal, PAGES, |_| {
        Ok(index.shelf(&shelf, &all)?.package_count == repositories)
    })?;
    print_size(directory)
}

/// Prints what the index has on the disk.
fn print_size(directory: &Path) -> Result<(), Failed> {
    let size = fs_err::metadata(directory.join("catalog.db"))?.len();
    println!("the file has {} MB", size >> 20);
    Ok(())
}

/// Asks many times, and prints how long answers took.
fn report(
    what: &str,
    goal: Goal,
    count: usize,
    mut ask: impl FnMut(usize) -> Result<bool, Failed>,
) -> Result<(), Failed> {
    let (mut times, busy) = (Vec::with_capacity(count), processor_time()?);
    for at in 0..count {
        let begun = Instant::now();
        if !ask(at)? {
            return Err(format!("{what}: question {at} was not answered as expected").into());
        }
        times.push(begun.elapsed());
    }
    let busy = processor_time()?.saturating_sub(busy);
    times.sort_unstable();
    let at = |part: usize| times[(count - 1) * part / 100].as_secs_f64() * 1e3;
    let each = busy.as_secs_f64() * 1e6 / f64::from(u32::try_from(count)?);
    println!(
        "{what}: p50 {:.3} ms, p99 {:.3} ms, slowest {:.3} ms; {each:.0} µs of processor each ({count}); {}",
        at(50),
        at(99),
        at(100),
        goal.judge(at(99), each),
    );
    Ok(())
}

/// What an answer should take.
#[derive(Clone, Copy)]
struct Goal {
    /// 99 of 100 are faster, in ms.
    slow: f64,
    /// The processor's time, in µs.
    busy: f64,
}

impl Goal {
    fn judge(self, slow: f64, busy: f64) -> String {
        let verdict = |is_met| if is_met { "met" } else { "MISSED" };
        let told = format!("goal p99 < {} ms: {}", self.slow, verdict(slow < self.slow));
        if self.busy.is_infinite() {
            return told;
        }
        format!("{told}, < {} µs: {}", self.busy, verdict(busy < self.busy))
    }
}

/// What this thread has had of a processor, as Linux counts it.
fn processor_time() -> Result<Duration, Failed> {
    let text = fs_err::read_to_string("/proc/thread-self/schedstat")?;
    Ok(Duration::from_nanos(text.split_whitespace().next().unwrap_or_default().parse()?))
}

/// Reads a package into an empty index.
fn read_file(path: &Path, directory: &Path) -> Result<(), Failed> {
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    let (memory, raw) = runtime.block_on(pack_image(path))?;
    let before = resident_memory("VmRSS:")?;
    let begun = Instant::now();
    let found = runtime.block_on(catalog::read(&memory, &raw.digest, directory))?;
    let read = begun.elapsed();
    let Outcome::Package(package) = &found else { return Err(format!("{found:?}").into()) };
    let index = Index::create(&directory.join("catalog.db"))?;
    let digest = raw.digest.to_string();
    let head = Head { digest: digest.clone(), tags: vec!["v1.0.0".to_owned()], is_damaged: false };
    index.settle("team/package", &[head])?;
    index.learn(&digest, &found)?;
    let (indexed, most) = (begun.elapsed().as_secs_f64(), resident_memory("VmHWM:")? >> 10);
    let verdict = |is_met| if is_met { "met" } else { "MISSED" };
    println!(
        "{} kinds: read after {:.2} s, indexed after {indexed:.2} s, goal < 5 s: {}; at most {most} MB, {} MB of that before (the image), goal < 150 MB: {}",
        package.definitions.len(),
        read.as_secs_f64(),
        verdict(indexed < 5.0),
        before >> 10,
        verdict(most < 150),
    );
    Ok(())
}

/// Memory of this process in KiB, as Linux counts it.
fn resident_memory(which: &str) -> Result<u64, Failed> {
    let text = fs_err::read_to_string("/proc/self/status")?;
    let line = text.lines().find_map(|line| line.strip_prefix(which)).unwrap_or_default();
    Ok(line.split_whitespace().next().unwrap_or_default().parse()?)
}

/// An image with a package, in memory; the text is streamed, so that it is never there whole.
async fn pack_image(path: &Path) -> Result<(Memory, Raw), Failed> {
    let memory = Memory::new();
    let mut file = fs_err::File::open(path)?;
    let mut writer = LayerWriter::new(Vec::new())?;
    writer.start_file("package.yaml", file.metadata()?.len())?;
    std::io::copy(&mut file, &mut writer)?;
    let (bytes, written) = writer.finish()?;
    let mut layer = written.descriptor;
    memory.put_blob(&layer, &Bytes::from(bytes)).await?;
    layer.annotations.insert("io.crossplane.xpkg".to_owned(), "base".to_owned());
    let config = Bytes::from_static(b"{}");
    let described = Descriptor::of(MediaType::DOCKER_CONFIG, &config);
    memory.put_blob(&described, &config).await?;
    let raw = Raw::from_manifest(&Manifest::docker(described, vec![layer]))?;
    memory.put_manifest(&Identifier::Digest(raw.digest.clone()), &raw).await?;
    Ok((memory, raw))
}

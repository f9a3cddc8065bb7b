//! Packages in layers.

use super::{APP, CRD, shown};
use crate::{RECORD_FIELD, StackLimits, find_ignored, read_layers, read_stack, read_stream};
use oci::layer::{LayerSource, LayerWriter};
use std::io::{self, Read, Write as _};

struct Stacked(Vec<Vec<u8>>);

impl LayerSource for Stacked {
    fn count(&self) -> usize {
        self.0.len()
    }

    fn open(&self, layer: usize) -> io::Result<Box<dyn Read + '_>> {
        Ok(Box::new(self.0[layer].as_slice()))
    }
}

fn layer(files: &[(&str, &str)]) -> Vec<u8> {
    let mut writer = LayerWriter::new(Vec::new()).unwrap();
    for (path, text) in files {
        writer.start_file(path, text.len() as u64).unwrap();
        writer.write_all(text.as_bytes()).unwrap();
    }
    writer.finish().unwrap().0
}

#[test]
fn an_image_is_read_as_its_layers_leave_it() {
    let lower = [
        ("bin/controller", "program"),
        (".registry/app.yaml", "title: old\n"),
        (".registry/resources/old.crd.yaml", CRD),
        (".registry/notes.txt", "nothing"),
    ];
    let upper = [
        (".registry/app.yaml", APP),
        (".registry/resources/.wh.old.crd.yaml", ""),
        (".registry/resources/new/crd.yaml", CRD),
    ];
    let layers = Stacked(vec![layer(&lower), layer(&upper)]);
    let limits = StackLimits::default();
    let files = read_layers(&layers, &limits).unwrap().unwrap();
    let paths: Vec<&str> = files.files.iter().map(|file| file.path.as_str()).collect();
    assert_eq!(paths, ["app.yaml", "resources/new/crd.yaml"]);
    let (stack, findings) = read_stack(&files, &limits);
    let stack = stack.unwrap_or_else(|| panic!("{}", shown(&findings)));
    assert_eq!(stack.app.find_text("title"), Some("Sample"));
}

#[test]
fn an_image_without_the_directory_is_none() {
    let layers = Stacked(vec![layer(&[("bin/controller", "program"), ("registry/app.yaml", APP)])]);
    assert_eq!(read_layers(&layers, &StackLimits::default()).unwrap(), None);
}

#[test]
fn a_truncated_layer_is_an_error() {
    let mut whole = layer(&[(".registry/app.yaml", APP)]);
    whole.truncate(whole.len() / 2);
    assert!(read_layers(&Stacked(vec![whole]), &StackLimits::default()).is_err());
}

#[test]
fn an_image_is_the_stream_of_a_package_of_today_with_its_record() {
    let files = [(".registry/app.yaml", APP), (".registry/resources/crd.yaml", CRD)];
    let stream = read_stream(&Stacked(vec![layer(&files)])).unwrap().unwrap();
    let opened = xpkg::open::read_strictly(stream.as_bytes(), &xpkg::Limits::default()).unwrap();
    let errors: Vec<&str> = opened
        .diagnostics
        .iter()
        .filter(|one| one.severity == xpkg::diagnostic::Severity::Error)
        .map(|one| one.message.as_str())
        .collect();
    assert_eq!(errors, [""; 0]);
    assert!(opened.meta().is_some());
    let (metadata, definition) = stream.trim_start_matches("---\n").split_once("---\n").unwrap();
    let metadata = yaml::parse(metadata, 1, &yaml::Limits::default()).unwrap().to_json();
    assert_eq!(metadata["kind"], "Provider");
    assert_eq!(metadata[RECORD_FIELD]["kind"], "Package");
    assert_eq!(metadata[RECORD_FIELD]["spec"]["title"], "Sample");
    assert!(definition.contains("packages.crossplane.io/package-title: Sample"), "{definition}");
    assert!(read_stream(&Stacked(vec![layer(&[("bin/x", "")])])).unwrap().is_none());
}

#[test]
fn an_image_of_today_with_the_directory_is_told_that_nothing_reads_it() {
    let today = [("package.yaml", "kind: Provider\n"), (".registry/app.yaml", APP)];
    let found = find_ignored(&Stacked(vec![layer(&today)])).unwrap();
    assert_eq!(found.len(), 1);
    assert_eq!((found[0].file.as_str(), found[0].rule), (".registry", "stack-registry-ignored"));
    assert_eq!(find_ignored(&Stacked(vec![layer(&today[..1])])).unwrap(), []);
}

#[test]
fn what_a_package_depends_on_is_in_its_stream() {
    let app = format!(
        "{APP}dependsOn:\n- crd: networks.net.example.org/v1\n- crd: '*.other.example.org'\n"
    );
    let files = [(".registry/app.yaml", app.as_str()), (".registry/resources/crd.yaml", CRD)];
    let stream = read_stream(&Stacked(vec![layer(&files)])).unwrap().unwrap();
    let opened = xpkg::open::read_strictly(stream.as_bytes(), &xpkg::Limits::default()).unwrap();
    let needed: Vec<String> = opened
        .meta()
        .unwrap()
        .dependencies()
        .iter()
        .filter_map(|one| one.target.as_ref().map(|target| target.package.clone()))
        .collect();
    assert_eq!(needed, ["networks.net.example.org/v1", "*.other.example.org"]);
}

#[test]
fn an_image_whose_files_are_wrong_says_all_that_is() {
    let files = [(".registry/app.yaml", "title: [1]\n"), (".registry/install.yaml", "kind: Pod\n")];
    let said = read_stream(&Stacked(vec![layer(&files)])).unwrap_err().to_string();
    for expected in [".registry/app.yaml", ".registry/install.yaml", "no definition"] {
        assert!(said.contains(expected), "{said}");
    }
}

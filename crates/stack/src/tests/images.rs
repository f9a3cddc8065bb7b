//! Packages in layers.

use super::{APP, CRD, shown};
use crate::{StackLimits, read_layers, read_stack};
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

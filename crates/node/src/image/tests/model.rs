//! Random stacks of layers, laid down and compared with a model of a file system: a tree in memory, in which
//! paths are followed as a program with that root follows them.

use super::super::plan::{PlannedLayer, PullPlan};
use super::super::unpack::lay_down_image;
use super::super::{ImageDefaults, ImageOptions};
use super::craft::{layer, options};
use oci::layer::LayerSource;
use oci::{Descriptor, Digest, MediaType};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::io::{self, Read};
use std::path::Path;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Node {
    Directory(BTreeMap<String, Self>),
    File(String),
    Link(String),
}

#[derive(Clone, Debug)]
enum Line {
    File(String, String),
    Directory(String),
    Link(String, String),
    HardLink(String, String),
    Whiteout(String, String),
    Opaque(String),
}

/// Why a stack is refused.
#[derive(Debug, PartialEq, Eq)]
enum Refused {
    Loop,
    HardLink,
}

type Way = Vec<String>;

struct Model {
    root: Node,
}

impl Model {
    fn at(&mut self, way: &[String]) -> Option<&mut Node> {
        let mut node = &mut self.root;
        for name in way {
            let Node::Directory(children) = node else { return None };
            node = children.get_mut(name)?;
        }
        Some(node)
    }

    fn children(&mut self, way: &[String]) -> &mut BTreeMap<String, Node> {
        match self.at(way) {
            Some(Node::Directory(children)) => children,
            other => panic!("{way:?} is {other:?}"),
        }
    }

    /// Where a path leads, made if `make` says so.
    fn follow(&mut self, path: &str, make: bool) -> Result<Option<Way>, Refused> {
        let mut way = Way::new();
        let mut rest: Vec<String> = path.split('/').rev().map(str::to_owned).collect();
        let mut links = 0;
        while let Some(name) = rest.pop() {
            match name.as_str() {
                "" | "." => continue,
                ".." => {
                    way.pop();
                    continue;
                }
                _ => way.push(name),
            }
            match self.at(&way).cloned() {
                Some(Node::Directory(_)) => {}
                Some(Node::Link(target)) => {
                    links += 1;
                    if links > 40 {
                        return Err(Refused::Loop);
                    }
                    way.pop();
                    if target.starts_with('/') {
                        way.clear();
                    }
                    rest.extend(target.split('/').rev().map(str::to_owned));
                }
                _ if !make => return Ok(None),
                _ => self.put(&way.clone(), Node::Directory(BTreeMap::new())),
            }
        }
        Ok(Some(way))
    }

    fn put(&mut self, way: &[String], node: Node) {
        let (name, parent) = way.split_last().unwrap();
        self.children(parent).insert(name.clone(), node);
    }

    fn hide(&mut self, line: &Line) -> Result<(), Refused> {
        match line {
            Line::Whiteout(directory, name) => {
                if let Some(way) = self.follow(directory, false)? {
                    self.children(&way).remove(name);
                }
            }
            Line::Opaque(directory) => {
                if let Some(way) = self.follow(directory, false)? {
                    self.children(&way).clear();
                }
            }
            Line::Directory(path) => {
                let (directory, name) = split(path);
                if let Some(way) = self.follow(directory, false)? {
                    let children = self.children(&way);
                    if !matches!(children.get(name), Some(Node::Directory(_))) {
                        children.remove(name);
                    }
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn add(&mut self, line: &Line) -> Result<(), Refused> {
        let (path, node) = match line {
            Line::File(path, content) => (path, Node::File(content.clone())),
            Line::Link(path, target) => (path, Node::Link(target.clone())),
            Line::Directory(path) => (path, Node::Directory(BTreeMap::new())),
            Line::HardLink(path, target) => {
                let (directory, name) = split(target);
                let mut way = self.follow(directory, false)?.ok_or(Refused::HardLink)?;
                way.push(name.to_owned());
                match self.at(&way).cloned() {
                    Some(node @ (Node::File(_) | Node::Link(_))) => (path, node),
                    _ => return Err(Refused::HardLink),
                }
            }
            Line::Whiteout(..) | Line::Opaque(_) => return Ok(()),
        };
        let (directory, name) = split(path);
        let Some(mut way) = self.follow(directory, true)? else { return Ok(()) };
        way.push(name.to_owned());
        let is_directory = |node: &Node| matches!(node, Node::Directory(_));
        if !(is_directory(&node) && self.at(&way).is_some_and(|node| is_directory(node))) {
            self.put(&way, node);
        }
        Ok(())
    }
}

fn split(path: &str) -> (&str, &str) {
    path.rsplit_once('/').unwrap_or(("", path))
}

fn model(layers: &[Vec<Line>]) -> Result<Node, Refused> {
    let mut model = Model { root: Node::Directory(BTreeMap::new()) };
    for lines in layers {
        lines.iter().try_for_each(|line| model.hide(line))?;
        lines.iter().try_for_each(|line| model.add(line))?;
    }
    Ok(model.root)
}

fn written(line: &Line) -> String {
    match line {
        Line::File(path, content) => format!("{path}={content}"),
        Line::Directory(path) => format!("{path}/"),
        Line::Link(path, target) => format!("{path}->{target}"),
        Line::HardLink(path, target) => format!("{path}=>{target}"),
        Line::Whiteout(directory, name) => format!("{directory}/.wh.{name}="),
        Line::Opaque(directory) => format!("{directory}/.wh..wh..opq="),
    }
}

struct Archives(Vec<Vec<u8>>);

impl LayerSource for Archives {
    fn count(&self) -> usize {
        self.0.len()
    }

    fn open(&self, layer: usize) -> io::Result<Box<dyn Read + '_>> {
        Ok(Box::new(self.0[layer].as_slice()))
    }
}

fn laid_down(layers: &[Vec<Line>], options: &ImageOptions) -> Result<Node, String> {
    let archives = layers.iter().map(|lines| {
        let lines: Vec<String> = lines.iter().map(written).collect();
        layer(&lines.iter().map(String::as_str).collect::<Vec<_>>())
    });
    lay_down_archives(archives.collect(), options)
}

/// Lays archives down in a directory that is all there is in another one, and checks that it stays so.
pub(super) fn lay_down_archives(
    archives: Vec<Vec<u8>>,
    options: &ImageOptions,
) -> Result<Node, String> {
    let archives = Archives(archives);
    let planned = archives.0.iter().map(|bytes| PlannedLayer {
        descriptor: Descriptor::of(MediaType::OCI_LAYER, bytes),
        diff_id: Digest::of(bytes),
    });
    let plan = PullPlan {
        config: bytes::Bytes::new(),
        defaults: ImageDefaults::default(),
        layers: planned.collect(),
        name: String::new(),
    };
    let outside = tempfile::tempdir().unwrap();
    let directory = outside.path().join("own");
    fs_err::create_dir(&directory).unwrap();
    let laid_down = lay_down_image(&directory, &plan, &archives, options);
    let count = |path: &Path| fs_err::read_dir(path).unwrap().count();
    assert_eq!((count(outside.path()), count(&directory)), (1, 2));
    assert_eq!(count(&directory.join("image")), 1);
    laid_down.map_err(|error| error.to_string())?;
    assert_eq!(count(&directory.join("staging")), 0);
    Ok(read_node(&directory.join("image/fs")))
}

pub(super) fn read_node(path: &Path) -> Node {
    let metadata = fs_err::symlink_metadata(path).unwrap();
    if metadata.is_symlink() {
        return Node::Link(fs_err::read_link(path).unwrap().to_str().unwrap().to_owned());
    }
    if metadata.is_file() {
        return Node::File(String::from_utf8_lossy(&fs_err::read(path).unwrap()).into_owned());
    }
    let children = fs_err::read_dir(path).unwrap().map(|entry| {
        let entry = entry.unwrap();
        (entry.file_name().into_string().unwrap(), read_node(&entry.path()))
    });
    Node::Directory(children.collect())
}

fn paths() -> impl Strategy<Value = String> {
    proptest::collection::vec("[abc]", 1..4).prop_map(|names| names.join("/"))
}

fn targets() -> impl Strategy<Value = String> {
    let name = prop_oneof![4 => "[abc]", 1 => Just("..".to_owned())];
    let names = proptest::collection::vec(name, 1..4).prop_map(|names| names.join("/"));
    (names, any::<bool>())
        .prop_map(|(names, is_absolute)| if is_absolute { format!("/{names}") } else { names })
}

fn lines() -> impl Strategy<Value = Line> {
    prop_oneof![
        4 => (paths(), "[0-9]").prop_map(|(path, content)| Line::File(path, content)),
        2 => paths().prop_map(Line::Directory),
        3 => (paths(), targets()).prop_map(|(path, target)| Line::Link(path, target)),
        1 => (paths(), paths()).prop_map(|(path, target)| Line::HardLink(path, target)),
        2 => (paths(), "[abc]").prop_map(|(directory, name)| Line::Whiteout(directory, name)),
        1 => paths().prop_map(Line::Opaque),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn any_stack_of_layers_is_laid_down_as_the_model_has_it(
        layers in proptest::collection::vec(proptest::collection::vec(lines(), 0..10), 1..4),
    ) {
        match (laid_down(&layers, &options()), model(&layers)) {
            (Ok(found), Ok(expected)) => prop_assert_eq!(found, expected),
            (Err(error), Err(Refused::Loop)) => {
                prop_assert!(error.contains("too many symbolic links"), "{}", error);
            }
            (Err(error), Err(Refused::HardLink)) => {
                prop_assert!(error.contains("is a link to"), "{}", error);
            }
            (found, expected) => prop_assert!(false, "{found:?} instead of {expected:?}"),
        }
    }
}

/// A header that says anything, with a checksum that is right.
fn raw_entries() -> impl Strategy<Value = Vec<u8>> {
    let name = proptest::collection::vec(proptest::sample::select(b"ab./.wh\xff\0".to_vec()), 0..9);
    let kind = proptest::sample::select(b"0012345567LKxgS7A\0".to_vec());
    let size = prop_oneof![4 => 0_u64..3, 1 => 500_u64..1200, 1 => Just(u64::MAX)];
    (name.clone(), name, kind, size, any::<u32>(), proptest::collection::vec(any::<u8>(), 0..600))
        .prop_map(|(name, target, kind, size, mode, content)| {
            let mut header = tar::Header::new_gnu();
            header.as_old_mut().name[..name.len()].copy_from_slice(&name);
            header.as_old_mut().linkname[..target.len()].copy_from_slice(&target);
            header.as_old_mut().linkflag = [kind];
            // What was written can be read again, also by a test that is not root.
            header.set_mode(mode | 0o600);
            header.set_uid(u64::from(mode));
            header.set_mtime(u64::MAX - u64::from(mode));
            header.set_size(size);
            header.set_cksum();
            let mut bytes = header.as_bytes().to_vec();
            let length = content.len().min(usize::try_from(size).unwrap_or(usize::MAX));
            bytes.extend_from_slice(&content[..length]);
            bytes.resize(bytes.len().next_multiple_of(512), 0);
            bytes
        })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    /// Whatever archives say, nothing but the file system is touched, and it is a file system.
    #[test]
    fn any_archives_are_laid_down_or_refused(
        layers in proptest::collection::vec(proptest::collection::vec(raw_entries(), 0..8), 1..3),
    ) {
        let _ = lay_down_archives(layers.iter().map(|entries| entries.concat()).collect(), &options());
    }
}

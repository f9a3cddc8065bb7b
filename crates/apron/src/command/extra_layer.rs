//! Layers that packages bring for other readers: directories, packed as they are.

use crate::directory;
use crate::failure::{Failure, Outcome};
use crate::interrupt;
use oci::layer::{LayerWriter, WrittenLayer};
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use xpkg::locate;

/// The longest value of an annotation that anything needs.
const ROLE_LENGTH_MAX: usize = 255;

/// A directory that becomes a layer.
#[derive(Clone, Debug)]
pub(crate) struct ExtraLayer {
    /// The annotation's value.
    pub(crate) role: String,
    pub(crate) root: PathBuf,
}

impl FromStr for ExtraLayer {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let Some((role, root)) = text.split_once('=').filter(|(_, root)| !root.is_empty()) else {
            return Err("it is not of the form VALUE=DIR".to_owned());
        };
        if [locate::BASE, locate::EXAMPLES].contains(&role) {
            return Err(format!("`{role}` is a layer that every build makes itself"));
        }
        if role.is_empty() || role.len() > ROLE_LENGTH_MAX || role.contains(char::is_control) {
            return Err("the value is empty, too long or not printable".to_owned());
        }
        Ok(Self { role: role.to_owned(), root: root.into() })
    }
}

/// Packs all files of a directory, whatever their times and owners are.
pub(crate) fn write(root: &Path, to: &Path) -> Outcome<WrittenLayer> {
    let files = directory::list_all(root)?;
    if files.iter().any(|(path, _)| path == locate::PACKAGE_FILE) {
        return Err(Failure::new(
            format!("{} has a package.yaml, which would hide that of the package", root.display()),
            "rename the file, or leave the directory away",
        ));
    }
    pack_files((root, ""), &files, to)
}

/// Packs all files of the directory of a package of the first format, below its name.
pub(crate) fn write_registry(root: &Path, to: &Path) -> Outcome<WrittenLayer> {
    let files = directory::list_all(root)?;
    pack_files((root, &format!("{}/", stack::REGISTRY_DIRECTORY)), &files, to)
}

fn pack_files(from: (&Path, &str), files: &[(String, u64)], to: &Path) -> Outcome<WrittenLayer> {
    let root = from.0;
    write_files(from, files, to).map_err(|error| {
        Failure::new(
            format!("cannot pack {}", root.display()),
            "check the files' permissions and names (255 letters at most), and that nothing changes them",
        )
        .because(&error)
    })
}

fn write_files(
    (root, prefix): (&Path, &str),
    files: &[(String, u64)],
    to: &Path,
) -> io::Result<WrittenLayer> {
    let mut layer = LayerWriter::new(BufWriter::new(fs_err::File::create(to)?))?;
    for (path, size) in files {
        interrupt::check()?;
        layer.start_file(&format!("{prefix}{path}"), *size)?;
        io::copy(&mut fs_err::File::open(root.join(path))?, &mut layer)?;
    }
    Ok(layer.finish()?.1)
}

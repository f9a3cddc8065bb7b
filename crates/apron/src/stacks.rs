//! Packages of the first format, wherever they are: `.registry/` of a directory or of an image.

use crate::args::registry::RegistryArguments;
use crate::directory;
use crate::failure::{Failure, Outcome};
use crate::interrupt;
use crate::output;
use crate::place::{self, Layers, Place};
use crate::settings::Settings;
use oci::Platform;
use stack::files::{Gathering, RegistryFiles, UnreadReason};
use stack::{REGISTRY_DIRECTORY, Stack, StackLimits, VersionTag};
use std::io::Read as _;
use std::path::{Path, PathBuf};
use xpkg::diagnostic::{Diagnostic, Severity};
use xpkg::facts::Inspection;
use xpkg::source::{METADATA_FILE, SkipReason};

/// A package of the first format that was read, sound or not.
pub(crate) struct FoundStack {
    pub(crate) files: RegistryFiles,
    pub(crate) stack: Option<Stack>,
    pub(crate) findings: Vec<Diagnostic>,
}

impl FoundStack {
    /// Reads files; findings name them below `shown`.
    fn read_files(files: RegistryFiles, shown: &str, tag: VersionTag<'_>) -> Self {
        let (stack, mut findings) = stack::read_stack(&files, &StackLimits::default());
        findings.extend(stack.iter().filter_map(|stack| stack.app.check_tag(tag)));
        for finding in &mut findings {
            if finding.file != REGISTRY_DIRECTORY {
                finding.file = format!("{shown}{}", finding.file);
            }
        }
        Self { files, stack, findings }
    }

    /// What there is to say about it.
    pub(crate) fn inspect(&self, source: String) -> Inspection {
        stack::inspect_stack(source, &self.files, self.stack.as_ref(), &self.findings)
    }

    /// The package, if nothing is wrong with it; findings are told.
    pub(crate) fn require_sound(self) -> Outcome<Stack> {
        output::findings(&self.findings, output::say_always);
        let errors = self.findings.iter().filter(|one| one.severity == Severity::Error).count();
        self.stack.filter(|_| errors == 0).ok_or_else(|| {
            let message = format!("the package has {}", output::count(errors, "error"));
            Failure::new(message, "fix what is listed above; `apron lint` shows the same list")
        })
    }
}

/// The directory with the files of a package of the first format, and how findings name it; `None` if
/// a directory holds something else. One with a `crossplane.yaml` is a package of today.
pub(crate) fn find_registry(root: &Path) -> Option<(PathBuf, String)> {
    if root.join(METADATA_FILE).exists() {
        return None;
    }
    let below = root.join(REGISTRY_DIRECTORY);
    if below.symlink_metadata().is_ok() {
        return Some((below, format!("{REGISTRY_DIRECTORY}/")));
    }
    let is_itself = root.join("app.yaml").is_file()
        && (root.join("resources").is_dir() || root.join("install.yaml").is_file());
    is_itself.then(|| (root.to_owned(), String::new()))
}

/// Reads a directory as a package of the first format, if it is one.
pub(crate) fn read_directory(root: &Path) -> Outcome<Option<FoundStack>> {
    let Some((registry, shown)) = find_registry(root) else { return Ok(None) };
    let limits = StackLimits::default();
    let mut gathering = Gathering::new(&limits);
    if registry.is_symlink() || !registry.is_dir() {
        let is_link = registry.is_symlink();
        gathering
            .add_unread("", if is_link { UnreadReason::Link } else { UnreadReason::Irregular });
        return Ok(Some(FoundStack::read_files(gathering.finish(), &shown, VersionTag::Untagged)));
    }
    let (files, skipped) = directory::list_everything(&registry)?;
    for one in &skipped {
        gathering.add_unread(&one.path, reason_of(one.why));
    }
    for (path, size) in &files {
        interrupt::check().map_err(|error| Failure::file(&error))?;
        if gathering.accepts_file(path, *size) {
            let file =
                fs_err::File::open(registry.join(path)).map_err(|error| Failure::file(&error))?;
            let mut bytes = Vec::new();
            let read = file.take(limits.file_bytes_max + 1).read_to_end(&mut bytes);
            read.map_err(|error| Failure::file(&error))?;
            gathering.add_file(path, bytes);
        }
    }
    Ok(Some(FoundStack::read_files(gathering.finish(), &shown, VersionTag::Untagged)))
}

fn reason_of(why: SkipReason) -> UnreadReason {
    match why {
        SkipReason::Link
        | SkipReason::LinkToDirectory
        | SkipReason::LinkOutside
        | SkipReason::LinkBroken => UnreadReason::Link,
        SkipReason::TooDeep => UnreadReason::TooDeep,
        SkipReason::NotUtf8 | SkipReason::NotRegular => UnreadReason::Irregular,
    }
}

/// Reads the layers of an image as a package of the first format, if they hold one.
pub(crate) fn read_image(
    name: &str,
    layers: &Layers,
    tag: VersionTag<'_>,
) -> Outcome<Option<FoundStack>> {
    let files = stack::read_layers(layers, &StackLimits::default()).map_err(|error| {
        let hint =
            "the package is damaged or made to do harm; get it again from a source you trust";
        Failure::new(format!("{name} cannot be read as a package"), hint).because(&error)
    })?;
    let shown = format!("{REGISTRY_DIRECTORY}/");
    Ok(files.map(|files| FoundStack::read_files(files, &shown, tag)))
}

/// The tag a place names.
pub(crate) fn tag_of(place: &Place) -> VersionTag<'_> {
    let id = match place {
        Place::Registry(reference) => Some(reference.identifier()),
        Place::Archive(_, id) | Place::Layout(_, id) => id.as_ref(),
        Place::Directory(_) | Place::File(_) => None,
    };
    id.and_then(oci::Identifier::as_tag).map_or(VersionTag::Untagged, VersionTag::Tag)
}

/// A sound package of the first format, the place it came from, and its image if that has a name.
pub(crate) struct NamedStack {
    pub(crate) stack: Stack,
    pub(crate) place: Place,
    pub(crate) image: Option<String>,
}

/// Reads what must be a package of the first format, from anywhere.
pub(crate) fn require_stack(
    text: &str,
    platform: Option<&Platform>,
    arguments: &RegistryArguments,
    settings: &Settings,
) -> Outcome<NamedStack> {
    let place = Place::parse(text, arguments)?;
    let found = match &place {
        Place::Directory(root) => read_directory(root)?,
        other => {
            let (name, located) = crate::block_on(async {
                let opened = place::open(other, arguments, settings).await?;
                let located = place::locate(&opened, platform, settings).await?;
                Ok((opened.name, located))
            })?;
            let limits = xpkg::Limits::default();
            let is_today = xpkg::open::package_yaml(&located.layers, &limits).is_ok();
            if is_today { None } else { read_image(&name, &located.layers, tag_of(other))? }
        }
    };
    let found = found.ok_or_else(|| {
        Failure::new(
            format!("{text} is not a package of the first format: it has no .registry"),
            "`apron inspect` shows packages of today",
        )
    })?;
    let image = match &place {
        Place::Registry(reference) => Some(reference.to_string()),
        _ => None,
    };
    Ok(NamedStack { stack: found.require_sound()?, place, image })
}

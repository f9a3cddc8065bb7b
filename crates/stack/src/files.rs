//! The files of a package: which names count where, and how much of them is held.
//!
//! A directory and an image feed the same [`Gathering`]: each name is offered with its size, and
//! only what is accepted is read. What cannot be read (links, devices, files too large) is kept as
//! a reason, and becomes a finding.

use super::icon::IconMedia;
use super::limits::StackLimits;

/// A file that was read; its path is relative to `.registry`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StackFile {
    /// The path, separated by `/`.
    pub path: String,
    /// The content.
    pub bytes: Vec<u8>,
}

/// Something below `.registry` that was not read, though its name means something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnreadFile {
    /// The path, separated by `/`.
    pub path: String,
    /// Why not.
    pub reason: UnreadReason,
}

/// Why a file was not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnreadReason {
    /// It is a link, and links are not followed.
    Link,
    /// It is no regular file, or its name is no text.
    Irregular,
    /// It lies below more directories than are walked.
    TooDeep,
    /// It has more bytes than a file may have.
    TooLarge,
    /// All files together have more bytes than a package may have.
    TooMuch,
    /// There are more files than a package may have. Said once, of the first that is too many.
    TooMany,
}

/// All files of a package.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RegistryFiles {
    /// What was read, in the order of paths.
    pub files: Vec<StackFile>,
    /// What was not.
    pub unread: Vec<UnreadFile>,
}

/// What a file is for, by its name alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FileRole {
    App,
    Install,
    Behavior,
    Rights,
    Group,
    Resource,
    Icon(IconMedia),
    UiSchema,
    Definition,
}

/// The directory of everything that is about definitions.
const RESOURCES: &str = "resources/";

impl FileRole {
    /// What a file of this base name is for, if anything.
    pub(crate) fn of_path(path: &str) -> Option<Self> {
        let name = base_name(path);
        match name {
            "app.yaml" => return Some(Self::App),
            "install.yaml" => return Some(Self::Install),
            "behavior.yaml" => return Some(Self::Behavior),
            "rbac.yaml" => return Some(Self::Rights),
            "group.yaml" => return Some(Self::Group),
            _ => {}
        }
        if name.ends_with("resource.yaml") {
            return Some(Self::Resource);
        }
        if name.ends_with("ui-schema.yaml") {
            return Some(Self::UiSchema);
        }
        if name.ends_with("crd.yaml") {
            return Some(Self::Definition);
        }
        let (stem, extension) = name.rsplit_once('.')?;
        stem.ends_with("icon").then(|| IconMedia::of_extension(extension).map(Self::Icon))?
    }

    /// Whether a file for this counts at its place.
    pub(crate) fn counts_at(self, path: &str) -> bool {
        let (at_root, below) = (!path.contains('/'), path.starts_with(RESOURCES));
        match self {
            Self::App | Self::Install | Self::Behavior | Self::Rights => at_root,
            Self::Group | Self::Resource | Self::Definition => below,
            Self::Icon(_) | Self::UiSchema => at_root || below,
        }
    }

    /// Where such a file belongs.
    pub(crate) fn place(self) -> &'static str {
        match self {
            Self::App | Self::Install | Self::Behavior | Self::Rights => ".registry itself",
            Self::Group | Self::Resource | Self::Definition => ".registry/resources or below",
            Self::Icon(_) | Self::UiSchema => ".registry itself, or .registry/resources or below",
        }
    }
}

/// The name a file would have a role under, if its extension were written out.
pub(crate) fn find_yaml_name(path: &str) -> Option<String> {
    let name = format!("{}.yaml", path.strip_suffix(".yml")?);
    FileRole::of_path(&name).map(|_| base_name(&name).to_owned())
}

/// The last part of a path.
pub(crate) fn base_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// The directory a path lies in; empty for the root.
pub(crate) fn directory_of(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(directory, _)| directory)
}

/// Whether what lies in one directory is about what lies in the other: the same, or one below.
pub(crate) fn reaches_directory(from: &str, to: &str) -> bool {
    from.is_empty()
        || to.strip_prefix(from).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Takes files one by one, within limits.
#[derive(Debug)]
pub struct Gathering<'l> {
    limits: &'l StackLimits,
    found: RegistryFiles,
    count: usize,
    bytes: u64,
}

impl<'l> Gathering<'l> {
    /// Begins with a package.
    pub fn new(limits: &'l StackLimits) -> Self {
        Self { limits, found: RegistryFiles::default(), count: 0, bytes: 0 }
    }

    /// Whether a regular file of this name and size is to be read and handed over. A size is what
    /// was announced; [`Self::add_file`] holds the content to it.
    pub fn accepts_file(&mut self, path: &str, size: u64) -> bool {
        if !self.counts_another(path) || FileRole::of_path(path).is_none() {
            // A misspelt extension is told of, for which the name is enough.
            if !self.is_full() && find_yaml_name(path).is_some() {
                self.found.files.push(StackFile { path: path.to_owned(), bytes: Vec::new() });
            }
            return false;
        }
        let is_icon = matches!(FileRole::of_path(path), Some(FileRole::Icon(_)));
        // An icon that is somewhat too large is read, so that the finding can say by how much.
        if size > self.limits.file_bytes_max || (is_icon && size > 4 * self.limits.icon_bytes_max) {
            self.refuse_file(path, UnreadReason::TooLarge);
            return false;
        }
        if self.bytes.saturating_add(size) > self.limits.registry_bytes_max {
            self.refuse_file(path, UnreadReason::TooMuch);
            return false;
        }
        self.bytes += size;
        true
    }

    /// Hands over the content of an accepted file.
    pub fn add_file(&mut self, path: &str, bytes: Vec<u8>) {
        if bytes.len() as u64 > self.limits.file_bytes_max {
            self.refuse_file(path, UnreadReason::TooLarge);
        } else {
            self.found.files.push(StackFile { path: path.to_owned(), bytes });
        }
    }

    /// Tells of something that is no regular file.
    pub fn add_unread(&mut self, path: &str, reason: UnreadReason) {
        if self.counts_another(path) {
            self.refuse_file(path, reason);
        }
    }

    /// Everything, in the order of paths.
    pub fn finish(mut self) -> RegistryFiles {
        self.found.files.sort_by(|left, right| xpkg::source::order(&left.path, &right.path));
        self.found.unread.sort_by(|left, right| xpkg::source::order(&left.path, &right.path));
        self.found
    }

    fn is_full(&self) -> bool {
        self.count > self.limits.files_max
    }

    fn counts_another(&mut self, path: &str) -> bool {
        if self.is_full() {
            return false;
        }
        self.count += 1;
        if self.is_full() {
            self.refuse_file(path, UnreadReason::TooMany);
        }
        !self.is_full()
    }

    fn refuse_file(&mut self, path: &str, reason: UnreadReason) {
        self.found.unread.push(UnreadFile { path: path.to_owned(), reason });
    }
}

//! How much of everything a package of this format may ask for.

/// All limits of reading one; exceeding any is a finding or an error that names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StackLimits {
    /// Files and directories below `.registry`, read or not.
    pub files_max: usize,
    /// Bytes of one file.
    pub file_bytes_max: u64,
    /// Bytes of all files that are read.
    pub registry_bytes_max: u64,
    /// Bytes of one icon, which is repeated on every definition it is for.
    pub icon_bytes_max: u64,
    /// Bytes of keys and values of all annotations of one object, as API servers have it.
    pub annotation_bytes_max: usize,
    /// Nodes of all YAML documents together, aliases expanded.
    pub nodes_max: u64,
    /// Of the layers it is found in.
    pub layer: oci::layer::Limits,
    /// Of each document.
    pub yaml: yaml::Limits,
}

impl Default for StackLimits {
    /// The largest package of this format that is known has about a hundred definitions.
    fn default() -> Self {
        let package = xpkg::Limits::default();
        Self {
            files_max: 10_000,
            file_bytes_max: 8 << 20,
            registry_bytes_max: 64 << 20,
            icon_bytes_max: 64 << 10,
            annotation_bytes_max: 256 << 10,
            nodes_max: 10_000_000,
            layer: package.layer,
            yaml: package.yaml,
        }
    }
}

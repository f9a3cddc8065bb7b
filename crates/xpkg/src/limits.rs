//! How much of everything a package may ask for.

/// All limits of reading a package; each has a safe default, and exceeding one is an error that
/// names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of `package.yaml`. The default is what upstream's tools read before they stop.
    pub package_bytes_max: u64,
    /// Nodes of all its documents together, aliases expanded.
    pub package_nodes_max: u64,
    /// Bytes of what is kept of its documents while it is looked at as a whole.
    pub report_bytes_max: usize,
    /// Of the layers it is found in.
    pub layer: oci::layer::Limits,
    /// Of its documents.
    pub yaml: yaml::Limits,
}

impl Limits {
    /// What the documents of one package may come to together.
    pub(crate) fn total(&self) -> yaml::Total {
        yaml::Total::new(self.package_nodes_max)
    }
}

impl Default for Limits {
    /// The largest package known to us has 2,065 documents, the largest of 1.7 MB, with about 4
    /// million nodes in all; there is room for several of it. A node takes 150 bytes, and the
    /// manager may have 512 MiB.
    fn default() -> Self {
        Self {
            package_bytes_max: 200 << 20,
            package_nodes_max: 40_000_000,
            report_bytes_max: 64 << 20,
            layer: oci::layer::Limits::default(),
            yaml: yaml::Limits {
                // An API server takes no more.
                document_bytes_max: 3 << 20,
                documents_max: 20_000,
                nodes_max: 500_000,
                alias_bytes_max: 8 << 20,
                ..yaml::Limits::default()
            },
        }
    }
}

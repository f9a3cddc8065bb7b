//! How much of everything a package may ask for.

/// All limits of reading a package; each has a safe default, and exceeding one is an error that
/// names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of `package.yaml`. The default is what upstream's tools read before they stop.
    pub package_bytes_max: u64,
    /// Of the layers it is found in.
    pub layer: oci::layer::Limits,
    /// Of its documents.
    pub yaml: yaml::Limits,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            package_bytes_max: 200 << 20,
            layer: oci::layer::Limits::default(),
            yaml: yaml::Limits::default(),
        }
    }
}

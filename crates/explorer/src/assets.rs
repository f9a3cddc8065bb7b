//! The files that pages need, by names that change with their content.

use oci::Digest;
use std::sync::LazyLock;

/// Digits of a digest in a name.
const DIGITS: usize = 16;

/// A file that is part of the program.
pub(crate) struct Asset {
    /// Its name, with the digest of its content.
    pub(crate) name: String,
    pub(crate) media_type: &'static str,
    pub(crate) content: &'static str,
}

static STYLE: LazyLock<Asset> = LazyLock::new(|| {
    Asset::new("explorer", "css", "text/css; charset=utf-8", include_str!("../assets/explorer.css"))
});
static SCRIPT: LazyLock<Asset> = LazyLock::new(|| {
    let kind = "text/javascript; charset=utf-8";
    Asset::new("explorer", "js", kind, include_str!("../assets/explorer.js"))
});
static MARK: LazyLock<Asset> = LazyLock::new(|| {
    Asset::new("mark", "svg", "image/svg+xml", include_str!("../assets/mark.svg"))
});

impl Asset {
    fn new(stem: &str, end: &str, media_type: &'static str, content: &'static str) -> Self {
        let digest = Digest::of(content.as_bytes());
        let digits = digest.hex().get(..DIGITS).unwrap_or_default();
        Self { name: format!("{stem}.{digits}.{end}"), media_type, content }
    }

    /// Where it is served.
    pub(crate) fn address(&self) -> String {
        format!("/assets/{}", self.name)
    }
}

/// The style sheet.
pub(crate) fn style_sheet() -> &'static Asset {
    &STYLE
}

/// The script.
pub(crate) fn page_script() -> &'static Asset {
    &SCRIPT
}

/// The picture in a browser's tab.
pub(crate) fn tab_mark() -> &'static Asset {
    &MARK
}

/// A file by its name.
pub(crate) fn find_asset(name: &str) -> Option<&'static Asset> {
    [style_sheet(), page_script(), tab_mark()].into_iter().find(|asset| asset.name == name)
}

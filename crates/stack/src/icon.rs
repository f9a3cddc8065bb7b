//! Icons: their types, their shape, and how an annotation carries one.

use super::files::{StackFile, base_name};
use super::findings::StackFindings;
use super::limits::StackLimits;
use super::rules;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use yaml::Position;

/// The types of icons, the preferred one first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum IconMedia {
    Svg,
    Png,
    Jpeg,
    Gif,
}

impl IconMedia {
    /// The type that an extension stands for.
    pub(crate) fn of_extension(extension: &str) -> Option<Self> {
        match extension {
            "svg" => Some(Self::Svg),
            "png" => Some(Self::Png),
            "jpg" | "jpeg" => Some(Self::Jpeg),
            "gif" => Some(Self::Gif),
            _ => None,
        }
    }

    fn media_type(self) -> &'static str {
        match self {
            Self::Svg => "image/svg+xml",
            Self::Png => "image/png",
            Self::Jpeg => "image/jpeg",
            Self::Gif => "image/gif",
        }
    }
}

/// An icon of a package.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StackIcon {
    /// The file.
    pub path: String,
    media: IconMedia,
    data: String,
    /// What stands before `icon` in the name: empty, or `kind.`.
    pub(crate) prefix: String,
}

impl StackIcon {
    /// The type, as headers write it.
    pub fn media_type(&self) -> &'static str {
        self.media.media_type()
    }

    /// The content as base64.
    pub fn base64_data(&self) -> &str {
        &self.data
    }

    /// The icon as a data URI.
    pub(crate) fn data_uri(&self) -> String {
        format!("data:{};base64,{}", self.media_type(), self.data)
    }

    /// How much an icon is preferred over others of its directory; less is better.
    pub(crate) fn preference(&self) -> (bool, IconMedia) {
        (self.prefix.is_empty(), self.media)
    }

    /// Reads an icon, and says what is wrong with it.
    pub(crate) fn read_icon(
        file: &StackFile,
        media: IconMedia,
        limits: &StackLimits,
        findings: &mut StackFindings,
    ) -> Option<Self> {
        let place = (file.path.as_str(), Position::default());
        let size = file.bytes.len() as u64;
        if size > limits.icon_bytes_max {
            let limit = limits.icon_bytes_max;
            let message = format!("icon has {size} bytes, more than {limit} (icon_bytes_max)");
            let hint = "make it smaller: an svg, or a bitmap of 64 by 64 dots";
            findings.advise_at(&rules::ICON_SIZE, place, message, hint);
            return None;
        }
        check_shape(file, media, findings);
        let stem = base_name(&file.path).rsplit_once('.').map_or("", |(stem, _)| stem);
        Some(Self {
            path: file.path.clone(),
            media,
            data: STANDARD.encode(&file.bytes),
            prefix: stem.strip_suffix("icon").unwrap_or_default().to_owned(),
        })
    }
}

fn check_shape(file: &StackFile, media: IconMedia, findings: &mut StackFindings) {
    let place = (file.path.as_str(), Position::default());
    let size = match media {
        IconMedia::Svg => return,
        IconMedia::Png => measure_png(&file.bytes),
        IconMedia::Jpeg => measure_jpeg(&file.bytes),
        IconMedia::Gif => measure_gif(&file.bytes),
    };
    match size {
        None => {
            let message = format!("icon is not an image of the type {}", media.media_type());
            let hint = "save it as what its name says, or rename it";
            findings.advise_at(&rules::ICON_SHAPE, place, message, hint);
        }
        Some((width, height)) if width != height => {
            let message = format!("icon is {width} dots wide and {height} high");
            findings.advise_at(&rules::ICON_SHAPE, place, message, "make it as wide as it is high");
        }
        Some(_) => {}
    }
}

fn measure_png(bytes: &[u8]) -> Option<(u32, u32)> {
    let rest = bytes.strip_prefix(b"\x89PNG\r\n\x1a\n")?;
    let word =
        |at: usize| Some(u32::from_be_bytes(rest.get(at..at.checked_add(4)?)?.try_into().ok()?));
    (rest.get(4..8)? == b"IHDR").then_some(())?;
    Some((word(8)?, word(12)?))
}

fn measure_gif(bytes: &[u8]) -> Option<(u32, u32)> {
    let rest = bytes.strip_prefix(b"GIF87a").or_else(|| bytes.strip_prefix(b"GIF89a"))?;
    let [width, more, height, most, ..] = rest else { return None };
    let word = |low: &u8, high: &u8| u32::from(u16::from_le_bytes([*low, *high]));
    Some((word(width, more), word(height, most)))
}

/// Walks the segments of a JPEG to the one that begins a frame.
fn measure_jpeg(bytes: &[u8]) -> Option<(u32, u32)> {
    let mut rest = bytes.strip_prefix(&[0xff, 0xd8])?;
    loop {
        let [0xff, marker, high, low, ..] = rest else { return None };
        let length = usize::from(u16::from_be_bytes([*high, *low]));
        let is_frame = matches!(marker, 0xc0..=0xcf) && !matches!(marker, 0xc4 | 0xc8 | 0xcc);
        if is_frame {
            let word = |at: usize| {
                let pair = rest.get(at..at.checked_add(2)?)?.try_into().ok()?;
                Some(u32::from(u16::from_be_bytes(pair)))
            };
            return Some((word(7)?, word(5)?));
        }
        rest = rest.get(length.checked_add(2)?..)?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shape_of_bitmaps_is_read_from_their_headers() {
        let png = b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR\0\0\0\x10\0\0\0\x20rest";
        assert_eq!(measure_png(png), Some((16, 32)));
        assert_eq!(measure_gif(b"GIF89a\x10\0\x20\0rest"), Some((16, 32)));
        let jpeg = b"\xff\xd8\xff\xe0\0\x04ab\xff\xc0\0\x11\x08\0\x20\0\x10rest";
        assert_eq!(measure_jpeg(jpeg), Some((16, 32)));
    }

    #[test]
    fn what_is_no_bitmap_has_no_shape() {
        for bytes in
            [&b""[..], b"\xff\xd8", b"\xff\xd8\xff\xe0\xff\xff", b"GIF89a", b"\x89PNG\r\n\x1a\n"]
        {
            assert_eq!(measure_png(bytes), None);
            assert_eq!(measure_gif(bytes), None);
            assert_eq!(measure_jpeg(bytes), None);
        }
    }
}

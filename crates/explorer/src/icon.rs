//! Small pictures: our own as inline SVG, those of packages as data.

use crate::words::last_part;
use maud::{Markup, PreEscaped, html};

/// The largest icon that a page carries; larger ones give way to a letter.
const ICON_SIZE_MAX: usize = 32 << 10;
/// How many tints there are for letters.
const TINTS: u32 = 6;

/// Kinds of pictures that browsers draw without running anything.
const PICTURES: [&str; 5] = ["png", "jpeg", "gif", "webp", "svg+xml"];

/// A package's picture, or the first letter of its name on a tint of its own.
pub(crate) fn package_icon(repository: &str, icon: Option<&str>, is_large: bool) -> Markup {
    let size = if is_large { "icon large" } else { "icon" };
    if let Some(data) = icon.filter(|data| is_safe(data)) {
        let pixels = if is_large { "72" } else { "44" };
        return html! { img class=(size) src=(data) alt="" width=(pixels) height=(pixels); };
    }
    let name = last_part(repository);
    let bare = ["provider-", "configuration-", "function-"]
        .iter()
        .find_map(|prefix| name.strip_prefix(prefix))
        .unwrap_or(name);
    let letter: String = bare.chars().take(1).flat_map(char::to_uppercase).collect();
    let sum = name.bytes().fold(0_u32, |sum, byte| sum.wrapping_mul(31).wrapping_add(byte.into()));
    let class = format!("{size} tint{}", sum % TINTS);
    html! { span class=(class) aria-hidden="true" { (letter) } }
}

/// A picture of a kind, if it is the data of one and nothing else.
pub(crate) fn data_picture(data: &str) -> Option<Markup> {
    let drawn = || html! { img class="icon" src=(data) alt="" width="28" height="28"; };
    is_safe(data).then(drawn)
}

/// Whether an icon is the data of a picture and nothing else.
fn is_safe(icon: &str) -> bool {
    let Some((kind, data)) =
        icon.strip_prefix("data:image/").and_then(|rest| rest.split_once(";base64,"))
    else {
        return false;
    };
    let is_base64 = |byte: u8| byte.is_ascii_alphanumeric() || b"+/=".contains(&byte);
    icon.len() <= ICON_SIZE_MAX && PICTURES.contains(&kind) && data.bytes().all(is_base64)
}

fn drawing(paths: &'static str) -> Markup {
    html! {
        svg class="glyph" viewBox="0 0 20 20" width="16" height="16" aria-hidden="true" {
            (PreEscaped(paths))
        }
    }
}

/// The sign of the house.
pub(crate) fn brand_mark() -> Markup {
    PreEscaped(include_str!("../assets/mark.svg").trim().replacen(
        "<svg ",
        "<svg aria-hidden=\"true\" ",
        1,
    ))
}

pub(crate) fn search_glyph() -> Markup {
    drawing(r#"<circle cx="8.5" cy="8.5" r="5.5"/><path d="m13 13 4.5 4.5"/>"#)
}

pub(crate) fn theme_glyph() -> Markup {
    drawing(r#"<circle cx="10" cy="10" r="7"/><path class="solid" d="M10 3a7 7 0 0 1 0 14z"/>"#)
}

pub(crate) fn warning_glyph() -> Markup {
    drawing(r#"<path d="M10 2.5 18.5 17h-17zM10 8v4.2M10 14.6v.1"/>"#)
}

pub(crate) fn check_glyph() -> Markup {
    drawing(r#"<circle cx="10" cy="10" r="7.5"/><path d="m6.5 10.2 2.4 2.4 4.6-5"/>"#)
}

pub(crate) fn box_glyph() -> Markup {
    drawing(r#"<path d="m10 2 7 4v8l-7 4-7-4V6zM3 6l7 4 7-4M10 10v8"/>"#)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_data_of_pictures_is_shown() {
        let drawn = |icon: &str| package_icon("team/p", Some(icon), false).into_string();
        assert!(drawn("data:image/svg+xml;base64,PHN2Zy8+").starts_with("<img"));
        for icon in [
            "https://evil.example.org/pixel.png",
            "javascript:alert(1)",
            "data:text/html;base64,PHNjcmlwdD4=",
            "data:image/svg+xml;base64,\" onerror=\"alert(1)",
            "data:image/svg+xml,<svg onload=alert(1)>",
            "data:image/svg+xml;base64,PHN2Zy8+#x",
        ] {
            assert!(drawn(icon).starts_with("<span"), "{icon}");
        }
        let large = format!("data:image/png;base64,{}", "A".repeat(ICON_SIZE_MAX));
        assert!(drawn(&large).starts_with("<span"));
    }

    #[test]
    fn a_package_without_a_picture_has_the_letter_of_its_name() {
        let drawn = package_icon("team/provider-harbour", None, true).into_string();
        assert!(drawn.contains(">H<"), "{drawn}");
    }
}

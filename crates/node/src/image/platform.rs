//! Which of an index's images runs on this machine.

use super::PullError;
use oci::{Descriptor, Index, Platform};

/// What this machine is, in the words of images.
pub fn machine_platform() -> Platform {
    let architecture = match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "x86" => "386",
        "aarch64" => "arm64",
        "powerpc64" if cfg!(target_endian = "little") => "ppc64le",
        "loongarch64" => "loong64",
        other => other,
    };
    let mut platform = Platform::new("linux", architecture);
    if architecture == "arm" {
        "v7".clone_into(&mut platform.variant);
    }
    platform
}

/// The image of an index that runs on the machine, the one that is made for it most closely if there are several.
pub(super) fn choose_image<'index>(
    index: &'index Index,
    machine: &Platform,
) -> Result<&'index Descriptor, PullError> {
    // One that does not say what it is for is asked last; its config says so.
    let ranked = index.manifests.iter().filter_map(|child| match &child.platform {
        Some(platform) => Some((Some(variant_rank(platform, machine)?), child)),
        None => Some((None, child)),
    });
    // Of equals, the first.
    let best = ranked.rev().max_by_key(|(rank, _)| *rank).map(|(_, child)| child);
    best.ok_or_else(|| PullError::Platform {
        image: list_platforms(index),
        machine: machine.to_string(),
    })
}

/// Whether an image of this platform runs on the machine.
pub(super) fn check_platform(image: &Platform, machine: &Platform) -> Result<(), PullError> {
    // Tools that make images without programs leave it out.
    if image.os.is_empty() && image.architecture.is_empty() {
        return Ok(());
    }
    if variant_rank(image, machine).is_some() {
        return Ok(());
    }
    Err(PullError::Platform { image: image.to_string(), machine: machine.to_string() })
}

/// How well an image's platform suits a machine; nothing if it does not.
fn variant_rank(image: &Platform, machine: &Platform) -> Option<u32> {
    if image.os != machine.os || image.architecture != machine.architecture {
        return None;
    }
    let image_level = variant_level(&image.architecture, &image.variant)?;
    let machine_level = variant_level(&machine.architecture, &machine.variant)?;
    // An older processor's programs run on a newer one.
    (image_level <= machine_level).then_some(image_level)
}

/// A variant as a number that grows; without one, what the architecture's programs are usually made for.
fn variant_level(architecture: &str, variant: &str) -> Option<u32> {
    let usual = match architecture {
        "amd64" => 1,
        "arm" => 7,
        "arm64" => 8,
        _ => 0,
    };
    match variant {
        "" => Some(usual),
        other => other.strip_prefix('v').unwrap_or(other).parse().ok(),
    }
}

/// What an index has, for messages; attestations, which run nowhere, are left out.
fn list_platforms(index: &Index) -> String {
    const NAMED_MAX: usize = 8;
    let platforms = index.manifests.iter().filter_map(|child| child.platform.as_ref());
    let mut names: Vec<String> = platforms
        .filter(|platform| platform.os != "unknown")
        .take(NAMED_MAX)
        .map(ToString::to_string)
        .collect();
    names.dedup();
    if names.is_empty() { "for no platform".to_owned() } else { names.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use oci::MediaType;

    fn index(platforms: &[&str]) -> Index {
        let children = platforms.iter().map(|name| {
            let mut child = Descriptor::of(MediaType::OCI_MANIFEST, name.as_bytes());
            child.platform = (!name.is_empty()).then(|| name.parse().unwrap());
            child
        });
        Index::oci(children.collect())
    }

    fn chosen(platforms: &[&str], machine: &str) -> Result<String, String> {
        let index = index(platforms);
        match choose_image(&index, &machine.parse().unwrap()) {
            Ok(child) => Ok(child.platform.as_ref().unwrap().to_string()),
            Err(error) => Err(error.to_string()),
        }
    }

    #[test]
    fn the_image_for_the_machine_is_chosen() {
        let check = |platforms: &[&str], machine: &str, expected: &str| {
            assert_eq!(chosen(platforms, machine), Ok(expected.to_owned()), "{platforms:?}");
        };
        check(&["linux/arm64", "linux/amd64"], "linux/amd64", "linux/amd64");
        check(&["", "linux/arm64/v8"], "linux/arm64", "linux/arm64/v8");
        check(&["linux/amd64/v3", "linux/amd64/v1"], "linux/amd64", "linux/amd64/v1");
        check(&["linux/arm/v5", "linux/arm/v7", "linux/arm/v6"], "linux/arm/v7", "linux/arm/v7");
        check(&["linux/arm/v5", "linux/arm/v8"], "linux/arm/v7", "linux/arm/v5");
    }

    #[test]
    fn an_image_for_other_machines_is_refused_with_what_it_is_for() {
        assert_eq!(
            chosen(&["linux/arm64", "unknown/unknown", "windows/amd64"], "linux/amd64"),
            Err("exec format error: the image is linux/arm64, windows/amd64, this machine linux/amd64".into())
        );
        assert_eq!(
            chosen(&["unknown/unknown"], "linux/amd64"),
            Err("exec format error: the image is for no platform, this machine linux/amd64".into())
        );
        let machine = Platform::linux_amd64();
        assert_eq!(
            check_platform(&"linux/arm64".parse().unwrap(), &machine).unwrap_err().to_string(),
            "exec format error: the image is linux/arm64, this machine linux/amd64"
        );
        assert!(check_platform(&Platform::default(), &machine).is_ok());
    }

    #[test]
    fn this_machine_is_one_that_images_are_made_for() {
        let machine = machine_platform();
        assert_eq!(machine.os, "linux");
        assert!(check_platform(&machine, &machine).is_ok());
    }
}

//! Images of the local container engine, whichever answers.

use crate::programs::find_program;
use ground::failure::{Failure, Outcome};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Engines, in the order in which they are asked.
pub(crate) const ENGINES: [&str; 2] = ["docker", "podman"];

/// Writes an image of a container engine as a docker-save archive. `search` is where programs are looked for.
pub fn save_image(image: &str, archive: &Path, search: &OsStr) -> Outcome {
    let engines: Vec<(&str, PathBuf)> =
        ENGINES.into_iter().filter_map(|name| Some((name, find_program(name, search)?))).collect();
    let mut failure = Failure::new(
        format!("cannot get the image {image} from a container engine"),
        "start Docker or Podman and pull the image, or save it elsewhere and give the archive (--embed-runtime-image-tarball, --from-xpkg)",
    );
    if engines.is_empty() {
        failure.causes.push("neither docker nor podman is on the PATH".to_owned());
    }
    for (name, program) in engines {
        let saved = Command::new(program)
            .args(["save", "--output"])
            .arg(archive)
            .arg(image)
            .stdin(Stdio::null())
            .output();
        match saved {
            Ok(saved) if saved.status.success() => return Ok(()),
            Ok(saved) => {
                let words = String::from_utf8_lossy(&saved.stderr);
                let last = words.lines().rfind(|line| !line.trim().is_empty()).unwrap_or_default();
                failure.causes.push(format!("{name} says: {}", last.trim()));
            }
            Err(error) => failure.causes.push(format!("{name} cannot be started: {error}")),
        }
        // A half-written archive of one engine must not be mistaken for the other's.
        let _ = fs_err::remove_file(archive);
    }
    Err(failure)
}

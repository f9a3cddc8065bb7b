//! `image build`: an image of this very program.

use crate::failure::{Failure, Outcome};
use crate::output::{self, Format};
use machine::program::{OwnImage, write_own_image};
use serde_json::json;
use std::path::{Path, PathBuf};

/// What to write.
pub(crate) struct Request {
    pub(crate) file: PathBuf,
    pub(crate) format: Format,
}

/// Writes the image.
pub(crate) fn run(request: &Request) -> Outcome {
    if request.file == Path::new("-") {
        let hint = "name a file with -o, for example -o apron.tar";
        return Err(Failure::new("an image cannot be written to standard output", hint));
    }
    let image = write_own_image(&request.file)?;
    if request.format == Format::Json {
        let OwnImage { platform, digest, size, files } = &image;
        return output::print_json(&json!({
            "file": request.file, "platform": platform, "digest": digest, "size": size,
            "files": files,
        }));
    }
    output::print(format_args!("built an image of apron for {}", image.platform));
    output::print(format_args!("  file    {}", output::bold(request.file.display())));
    output::print(format_args!("  size    {}", output::size(image.size)));
    output::print(format_args!("  digest  {}", image.digest));
    if !image.has_certificates() {
        output::warn(
            "this machine has no certificates to trust; registries with TLS need --ca-bundle-path",
        );
    }
    output::say(format_args!(
        "{} send it to a registry that the cluster can reach: `apron copy {} REGISTRY/apron:TAG`",
        output::dim("next:"),
        request.file.display()
    ));
    Ok(())
}

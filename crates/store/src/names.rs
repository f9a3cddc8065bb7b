//! `index.json` of a layout: which manifest has which name.
//!
//! Pure functions over [`oci::Index`], shared by the layout directory and the archive form of
//! it. A manifest's name is its `org.opencontainers.image.ref.name` annotation; tools write
//! either the bare tag or a whole reference there, so both are understood.

use oci::{Descriptor, Digest, Document, Identifier, Index, MediaType, Raw};

/// The annotation that names a manifest in `index.json`.
pub(crate) const REF_NAME: &str = "org.opencontainers.image.ref.name";
/// The file that says which manifests a layout has.
pub(crate) const INDEX_FILE: &str = "index.json";
/// The file that says a directory is a layout.
pub(crate) const LAYOUT_FILE: &str = "oci-layout";
/// What that file says.
pub(crate) const LAYOUT_CONTENT: &[u8] = br#"{"imageLayoutVersion":"1.0.0"}"#;

/// Where a blob lies, relative to the layout.
pub(crate) fn blob_path(digest: &Digest) -> String {
    format!("blobs/{}/{}", digest.algorithm().as_str(), digest.hex())
}

/// The tag a descriptor of `index.json` has.
pub(crate) fn tag(descriptor: &Descriptor) -> Option<&str> {
    let name = descriptor.annotations.get(REF_NAME)?;
    match name.rsplit_once(':') {
        Some((_, tag)) if !tag.contains('/') => Some(tag),
        _ => Some(name),
    }
}

/// The descriptor a tag or digest stands for. A digest may also be that of a nested manifest,
/// which only the blobs know; the caller looks there next.
pub(crate) fn find<'index>(index: &'index Index, id: &Identifier) -> Option<&'index Descriptor> {
    index.manifests.iter().find(|descriptor| match id {
        Identifier::Tag(wanted) => tag(descriptor) == Some(wanted),
        Identifier::Digest(wanted) => descriptor.digest == *wanted,
    })
}

/// All tags, sorted.
pub(crate) fn tags(index: &Index) -> Vec<String> {
    let mut tags: Vec<String> =
        index.manifests.iter().filter_map(|each| tag(each).map(str::to_owned)).collect();
    tags.sort();
    tags.dedup();
    tags
}

/// Enters a manifest. A tag moves if it was there; children of an index that were entered only
/// to be reachable meanwhile are taken out, for the index now reaches them.
pub(crate) fn enter(index: &mut Index, id: &Identifier, raw: &Raw) {
    let mut descriptor = describe(raw);
    match id {
        Identifier::Tag(name) => {
            index.manifests.retain(|each| tag(each) != Some(name));
            index.manifests.retain(|each| tag(each).is_some() || each.digest != raw.digest);
            descriptor.annotations.insert(REF_NAME.to_owned(), name.clone());
        }
        Identifier::Digest(_) if find(index, &Identifier::Digest(raw.digest.clone())).is_some() => {
            return;
        }
        Identifier::Digest(_) => {}
    }
    index.manifests.push(descriptor);
    if let Document::Index(children) = &raw.document {
        let child = |digest: &Digest| children.manifests.iter().any(|each| each.digest == *digest);
        index.manifests.retain(|each| tag(each).is_some() || !child(&each.digest));
    }
}

/// An empty `index.json`.
pub(crate) fn empty() -> Index {
    Index::oci(Vec::new())
}

/// A descriptor of a manifest as referrers lists show it.
pub(crate) fn describe(raw: &Raw) -> Descriptor {
    let mut descriptor = raw.descriptor();
    match &raw.document {
        Document::Manifest(manifest) => {
            let is_image = [MediaType::OCI_CONFIG, MediaType::DOCKER_CONFIG]
                .contains(&manifest.config.media_type);
            let fallback = (!is_image).then(|| manifest.config.media_type.to_string());
            descriptor.artifact_type = manifest.artifact_type.clone().or(fallback);
            descriptor.annotations.clone_from(&manifest.annotations);
        }
        Document::Index(index) => {
            descriptor.artifact_type.clone_from(&index.artifact_type);
            descriptor.annotations.clone_from(&index.annotations);
        }
    }
    descriptor.annotations.remove(REF_NAME);
    descriptor
}

/// The subject of a manifest.
pub(crate) fn subject(raw: &Raw) -> Option<&Descriptor> {
    match &raw.document {
        Document::Manifest(manifest) => manifest.subject.as_ref(),
        Document::Index(index) => index.subject.as_ref(),
    }
}

/// Whether a referrer is of the artifact type asked for.
pub(crate) fn is_of_type(descriptor: &Descriptor, artifact_type: Option<&str>) -> bool {
    artifact_type.is_none_or(|wanted| descriptor.artifact_type.as_deref() == Some(wanted))
}

#[cfg(test)]
mod tests {
    use super::*;
    use oci::Manifest;

    fn raw(text: &str) -> Raw {
        let config = Descriptor::of(MediaType::OCI_CONFIG, text.as_bytes());
        Raw::from_manifest(&Manifest::docker(config, Vec::new())).unwrap()
    }

    #[test]
    fn a_tag_moves_and_a_digest_is_entered_once() {
        let (one, two) = (raw("one"), raw("two"));
        let mut index = empty();
        enter(&mut index, &Identifier::Digest(one.digest.clone()), &one);
        enter(&mut index, &Identifier::Digest(one.digest.clone()), &one);
        assert_eq!(index.manifests.len(), 1);
        enter(&mut index, &Identifier::Tag("v1".into()), &one);
        enter(&mut index, &Identifier::Tag("v1".into()), &two);
        assert_eq!(tags(&index), ["v1"]);
        assert_eq!(find(&index, &Identifier::Tag("v1".into())).unwrap().digest, two.digest);
    }

    #[test]
    fn whole_references_in_ref_name_are_tags_too() {
        let mut descriptor = raw("one").descriptor();
        for name in ["v1", "r.io:5000/a/b:v1", "docker.io/library/a:v1"] {
            descriptor.annotations.insert(REF_NAME.into(), name.into());
            assert_eq!(tag(&descriptor), Some("v1"));
        }
    }
}

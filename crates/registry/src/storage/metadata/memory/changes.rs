//! Uploads, blobs and manifests.

use super::Memory;
use crate::error::Error;
use crate::name::{Name, Selector, Tag};
use crate::storage::Missing;
use crate::storage::metadata::{
    Arrived, Blobs, Found, Kept, Manifests, Mount, NewManifest, Recorded, Uploads,
};
use oci::Digest;

impl Uploads for Memory {
    fn keep_upload(&self, upload: Kept) -> Result<(), Error> {
        self.write(|tables| {
            tables.uploads.insert(upload.id.clone(), upload);
            Ok(())
        })
    }

    fn kept_upload(&self, id: &str) -> Result<Option<Kept>, Error> {
        Ok(self.read(|tables| tables.uploads.get(id).cloned()))
    }

    fn uploads_before(&self, limit: i64) -> Result<Vec<String>, Error> {
        let old = |it: &&Kept| it.updated < limit;
        Ok(self
            .read(|tables| tables.uploads.values().filter(old).map(|it| it.id.clone()).collect()))
    }

    fn forget_upload(&self, id: &str) -> Result<(), Error> {
        self.write(|tables| {
            tables.uploads.remove(id);
            Ok(())
        })
    }

    fn finish_upload(&self, it: Arrived) -> Result<Vec<Name>, Error> {
        self.write(|tables| {
            tables.check_quota(&it.repository, &it.digest, it.size, it.quota)?;
            let mut waiting = tables.record(&it.digest, it.size);
            if tables.ensure(&it.repository).take(&it.digest, it.lease) {
                waiting.push(it.repository);
            }
            it.upload.map(|id| tables.uploads.remove(&id));
            Ok(waiting)
        })
    }
}

impl Blobs for Memory {
    fn blob(&self, name: &Name, digest: &Digest) -> Result<Found, Error> {
        self.read(|tables| tables.look(name, digest))
    }

    fn is_known(&self, digest: &Digest) -> Result<bool, Error> {
        Ok(self.read(|tables| tables.blobs.contains_key(digest)))
    }

    fn renew_lease(&self, name: &Name, digest: &Digest, lease: i64) -> Result<(), Error> {
        self.write(|tables| {
            tables.look(name, digest)?;
            tables.known_mut(name)?.link(digest, lease);
            Ok(())
        })
    }

    fn mount(&self, it: Mount) -> Result<bool, Error> {
        self.write(|tables| {
            let Ok(found) = tables.look(&it.from, &it.digest) else { return Ok(false) };
            tables.check_quota(&it.to, &it.digest, found.size, it.quota)?;
            tables.ensure(&it.to).take(&it.digest, it.lease);
            Ok(true)
        })
    }

    fn delete_blob(&self, name: &Name, digest: &Digest) -> Result<(), Error> {
        self.write(|tables| {
            if tables.look(name, digest)?.used {
                return Err(Error::BlobInUse(digest.clone()));
            }
            tables.known_mut(name)?.leases.remove(digest);
            Ok(())
        })
    }

    fn holders(&self, digest: &Digest, limit: usize) -> Result<Vec<Name>, Error> {
        Ok(self.read(|tables| {
            let all = tables.repositories.iter().filter(|(_, it)| it.leases.contains_key(digest));
            all.map(|(name, _)| name.clone()).take(limit).collect()
        }))
    }

    fn used(&self, name: &Name) -> Result<u64, Error> {
        Ok(self.read(|tables| tables.used(name)))
    }
}

impl Manifests for Memory {
    fn push(&self, it: NewManifest) -> Result<Recorded, Error> {
        self.write(|tables| {
            let row = &it.row;
            tables.ensure(&it.repository);
            if it.missing == Missing::Refuse {
                let here = tables.known(&it.repository)?;
                let is_missing = |child: &&Digest| {
                    let blob = here.leases.contains_key(child) && tables.blobs.contains_key(child);
                    !blob && !here.manifests.contains_key(child)
                };
                let missing: Vec<Digest> =
                    row.required.iter().filter(is_missing).cloned().collect();
                if !missing.is_empty() {
                    return Err(Error::ManifestBlobUnknown(missing));
                }
            }
            tables.check_quota(&it.repository, &row.digest, row.size, it.quota)?;
            let mut healed = tables.record(&row.digest, row.size);
            healed.retain(|name| *name != it.repository);
            let here = tables.ensure(&it.repository);
            here.manifests.insert(row.digest.clone(), (row.clone(), it.at));
            here.generation = here.generation.saturating_add(1);
            let tags = it.tags.iter().map(|tag| here.set_tag(tag, &row.digest, it.versions));
            Ok(Recorded { before: tags.collect::<Result<_, _>>()?, healed })
        })
    }

    fn manifest(&self, name: &Name, selector: &Selector) -> Result<(Digest, String), Error> {
        self.read(|tables| {
            let here = tables.known(name)?;
            let digest = match selector {
                Selector::Digest(digest) => Some(digest),
                Selector::Tag(tag) => here.tags.get(tag.as_str()),
            };
            let served = digest.filter(|digest| tables.blobs.contains_key(digest));
            let found = served.and_then(|digest| here.manifests.get(digest));
            let (row, _) = found.ok_or_else(|| Error::ManifestUnknown(selector.to_string()))?;
            Ok((row.digest.clone(), row.media_type.to_string()))
        })
    }

    fn delete_tag(&self, name: &Name, tag: &Tag) -> Result<(), Error> {
        self.write(|tables| {
            let here = tables.known_mut(name)?;
            here.generation = here.generation.saturating_add(1);
            let deleted = here.tags.remove(tag.as_str());
            deleted.map(drop).ok_or_else(|| Error::ManifestUnknown(tag.to_string()))
        })
    }

    fn delete_manifest(&self, name: &Name, digest: &Digest, lease: i64) -> Result<(), Error> {
        self.write(|tables| tables.known_mut(name)?.delete(digest, lease))
    }
}

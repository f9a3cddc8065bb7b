//! Lists, the steps of a collection, and what views show.

use super::{Memory, Repository};
use crate::error::Error;
use crate::name::Name;
use crate::storage::metadata::{
    Behind, Counts, Entry, Garbage, Lists, Pictures, Restored, Row, Shown,
};
use oci::{Descriptor, Digest};
use std::collections::BTreeSet;

impl Lists for Memory {
    fn tags(&self, name: &Name, last: &str, limit: usize) -> Result<Vec<String>, Error> {
        self.read(|tables| {
            let all = tables.known(name)?.tags.keys();
            Ok(all.filter(|tag| tag.as_str() > last).take(limit).cloned().collect())
        })
    }

    fn manifests(&self, name: &Name, last: &str, limit: usize) -> Result<Vec<Digest>, Error> {
        self.read(|tables| {
            let all = tables.known(name)?.manifests.keys();
            Ok(all.filter(|digest| is_after(digest, last)).take(limit).cloned().collect())
        })
    }

    fn repositories(&self, last: &str, limit: usize) -> Result<Vec<Name>, Error> {
        Ok(self.read(|tables| {
            let all = tables.repositories.iter().filter(|(_, it)| !it.manifests.is_empty());
            let names = all.map(|(name, _)| name).filter(|name| name.as_str() > last);
            names.take(limit).cloned().collect()
        }))
    }

    fn referrers(
        &self,
        name: &Name,
        subject: &Digest,
        artifact_type: Option<&str>,
        last: &str,
        limit: usize,
    ) -> Result<Vec<Descriptor>, Error> {
        Ok(self.read(|tables| {
            let all =
                tables.repositories.get(name).into_iter().flat_map(|it| it.manifests.values());
            let fits = |row: &&Row| {
                row.subject.as_ref() == Some(subject)
                    && is_after(&row.digest, last)
                    && artifact_type
                        .is_none_or(|wanted| row.artifact_type.as_deref() == Some(wanted))
            };
            all.map(|(row, _)| row).filter(fits).take(limit).map(described).collect()
        }))
    }

    fn changes(&self, last: &str, limit: usize) -> Result<Vec<(Name, i64)>, Error> {
        Ok(self.read(|tables| {
            let all = tables.repositories.iter().filter(|(_, it)| !it.manifests.is_empty());
            let all = all.filter(|(name, _)| name.as_str() > last);
            all.take(limit).map(|(name, it)| (name.clone(), it.generation)).collect()
        }))
    }

    fn heads(&self, name: &Name) -> Result<Vec<(Digest, Option<String>)>, Error> {
        self.read(|tables| {
            let here = tables.known(name)?;
            let mut all = Vec::new();
            for (digest, (row, _)) in &here.manifests {
                let tags = here.tags.iter().filter(|(_, meant)| *meant == digest);
                let before = all.len();
                all.extend(tags.map(|(tag, _)| (digest.clone(), Some(tag.clone()))));
                if all.len() == before && row.subject.is_none() && !here.names(digest) {
                    all.push((digest.clone(), None));
                }
            }
            Ok(all)
        })
    }

    fn damaged(&self, name: &Name) -> Result<Vec<Digest>, Error> {
        self.read(|tables| {
            let here = tables.known(name)?;
            let had = here.leases.keys().chain(here.manifests.keys());
            let lost = had.filter(|digest| !tables.blobs.contains_key(digest));
            let mut lost: BTreeSet<Digest> = lost.cloned().collect();
            loop {
                let count = lost.len();
                for (digest, (row, _)) in &here.manifests {
                    if !row.children.is_disjoint(&lost) {
                        lost.insert(digest.clone());
                    }
                }
                if lost.len() == count {
                    break;
                }
            }
            Ok(lost.into_iter().filter(|digest| here.manifests.contains_key(digest)).collect())
        })
    }
}

impl Garbage for Memory {
    fn untagged(&self, limit: i64) -> Result<Vec<Entry>, Error> {
        Ok(self.read(|tables| {
            let mut all = Vec::new();
            for (name, here) in &tables.repositories {
                let rows = here.manifests.values();
                let rows = rows.filter(|(row, pushed)| here.is_untagged(row, *pushed, limit));
                all.extend(rows.map(|(row, _)| entry(name, &row.digest)));
            }
            all
        }))
    }

    fn collect_manifest(&self, it: &Entry, limit: i64, lease: i64) -> Result<bool, Error> {
        self.write(|tables| {
            let here = tables.known_mut(&it.repository)?;
            let found = here.manifests.get(&it.digest);
            let still = found.is_some_and(|(row, pushed)| here.is_untagged(row, *pushed, limit));
            if still {
                here.delete(&it.digest, lease)?;
            }
            Ok(still)
        })
    }

    fn loose(&self, at: i64) -> Result<Vec<Entry>, Error> {
        Ok(self.read(|tables| {
            let mut all = Vec::new();
            for (name, here) in &tables.repositories {
                let loose = here.leases.keys().filter(|digest| here.is_loose(digest, at));
                all.extend(loose.map(|digest| entry(name, digest)));
            }
            all
        }))
    }

    fn unlink(&self, loose: Vec<Entry>, at: i64) -> Result<u64, Error> {
        self.write(|tables| {
            let mut count = 0_u64;
            for it in &loose {
                let here = tables.known_mut(&it.repository)?;
                if here.is_loose(&it.digest, at) {
                    here.leases.remove(&it.digest);
                    count = count.saturating_add(1);
                }
            }
            Ok(count)
        })
    }

    fn unused(&self) -> Result<Vec<(Digest, u64)>, Error> {
        Ok(self.read(|tables| {
            let unused = tables.blobs.iter().filter(|(digest, _)| tables.is_unused(digest));
            unused.map(|(digest, size)| (digest.clone(), *size)).collect()
        }))
    }

    fn collect_blob(&self, digest: &Digest) -> Result<bool, Error> {
        self.write(|tables| Ok(tables.is_unused(digest) && tables.blobs.remove(digest).is_some()))
    }

    fn is_orphan(&self, digest: &Digest) -> Result<bool, Error> {
        Ok(self.read(|tables| !tables.blobs.contains_key(digest)))
    }

    fn unknown(&self, digests: Vec<Digest>) -> Result<Vec<Digest>, Error> {
        Ok(self.read(|tables| {
            digests.into_iter().filter(|digest| !tables.blobs.contains_key(digest)).collect()
        }))
    }

    fn blobs(&self, last: &str, limit: usize) -> Result<Vec<(Digest, u64)>, Error> {
        Ok(self.read(|tables| {
            let all = tables.blobs.iter().filter(|(digest, _)| is_after(digest, last));
            all.map(|(digest, size)| (digest.clone(), *size)).take(limit).collect()
        }))
    }

    fn condemn(&self, digest: &Digest) -> Result<Option<Vec<Name>>, Error> {
        self.write(|tables| {
            let known = tables.blobs.remove(digest);
            Ok(known.map(|_| tables.touch_owners(digest)))
        })
    }
}

impl Pictures for Memory {
    fn behind(&self) -> Result<Vec<Behind>, Error> {
        Ok(self.read(|tables| {
            let behind = tables.repositories.iter().filter(|(_, it)| it.viewed < it.generation);
            let tell = |(name, it): (&Name, &Repository)| Behind {
                repository: name.clone(),
                generation: it.generation,
            };
            behind.map(tell).collect()
        }))
    }

    fn shown(&self, name: &Name) -> Result<Vec<Shown>, Error> {
        self.read(|tables| {
            let here = tables.known(name)?;
            let show = |digest: &Digest, tag: Option<String>| {
                let (row, _) = here.manifests.get(digest)?;
                let descriptor =
                    Descriptor::new(row.media_type.clone(), row.digest.clone(), row.size);
                Some(Shown { descriptor, tag })
            };
            let tagged = here.tags.iter().filter_map(|(tag, it)| show(it, Some(tag.clone())));
            let is_bare = |digest: &&Digest| !here.tags.values().any(|it| it == *digest);
            let bare = here.manifests.keys().filter(is_bare).filter_map(|it| show(it, None));
            Ok(tagged.chain(bare).collect())
        })
    }

    fn held(&self, name: &Name) -> Result<Vec<Digest>, Error> {
        self.read(|tables| {
            let here = tables.known(name)?;
            Ok(here.leases.keys().filter(|digest| here.names(digest)).cloned().collect())
        })
    }

    fn note_view(&self, view: &Behind) -> Result<(), Error> {
        self.write(|tables| {
            tables.known_mut(&view.repository)?.viewed = view.generation;
            Ok(())
        })
    }

    fn restore(&self, it: Restored) -> Result<(), Error> {
        self.write(|tables| {
            for (row, tag) in &it.manifests {
                tables.record(&row.digest, row.size);
                let here = tables.ensure(&it.repository);
                here.manifests.insert(row.digest.clone(), (row.clone(), it.at));
                if let Some(tag) = tag {
                    here.tags.insert(tag.to_string(), row.digest.clone());
                }
            }
            for (digest, size) in &it.blobs {
                if let Some(size) = size {
                    tables.record(digest, *size);
                }
                tables.ensure(&it.repository).link(digest, 0);
            }
            let here = tables.ensure(&it.repository);
            here.generation = here.generation.saturating_add(1);
            Ok(())
        })
    }

    fn counts(&self) -> Result<Counts, Error> {
        Ok(self.read(|tables| {
            let sum = |count: fn(&Repository) -> usize| {
                tables.repositories.values().map(count).sum::<usize>() as u64
            };
            Counts {
                repositories: tables.repositories.len() as u64,
                manifests: sum(|it| it.manifests.len()),
                tags: sum(|it| it.tags.len()),
                blobs: tables.blobs.len() as u64,
            }
        }))
    }
}

fn entry(repository: &Name, digest: &Digest) -> Entry {
    Entry { repository: repository.clone(), digest: digest.clone() }
}

fn is_after(digest: &Digest, last: &str) -> bool {
    digest.to_string().as_str() > last
}

fn described(row: &Row) -> Descriptor {
    let mut descriptor = Descriptor::new(row.media_type.clone(), row.digest.clone(), row.size);
    descriptor.artifact_type.clone_from(&row.artifact_type);
    descriptor.annotations.clone_from(&row.annotations);
    descriptor
}

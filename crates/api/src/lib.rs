//! Room `api`: the Kubernetes wire types that packages are made of and managed by.
//!
//! ```text
//!   crossplane.yaml ──► meta::Meta ──► lint, build, solve
//!   (any dialect)          │
//!                          └──► to_v1(): the one form the rest of the world reads
//! ```
//!
//! Crossplane's package metadata was written in several dialects over the years: the group was
//! renamed, versions came and went, fields moved. This room knows all of them and offers one
//! value, [`meta::Meta`], so that no other room needs to ask which dialect it is looking at.
//!
//! What this room promises:
//!
//! - **Nothing is lost.** A value keeps the document it was read from; unknown fields survive
//!   both a round trip and a conversion, at every level.
//! - **Wrong types are refused with a path** such as `spec.dependsOn[2].version`, as the
//!   Kubernetes decoders refuse them. Anything else is accepted: whether a value makes *sense*
//!   (a constraint parses, a reference is well-formed) is for `xpkg::lint` to say, with positions.
//! - **`null` is absence**, as everywhere in Kubernetes; an empty list is not.
//!
//! In a cluster, packages are objects of the group `pkg.crossplane.io`. [`pkg`] has their types,
//! and [`crd`] makes the definitions from them that an API server needs; [`wire`] is how a type
//! and its schema are one thing; [`stacks`] has the kinds of the first package system; [`manager`] lists the objects of an installed manager,
//! [`crossplane_core`] those of Crossplane's core beside it. [`object`] and [`condition`] are what all objects share.
//!
//! Packages and users name kinds in several forms; [`kind_reference`] reads each of them.
//!
//! What it refuses to know: YAML, files, images, versions and constraints as anything but text,
//! and what happens to a package once it is installed. It imports none of the other rooms.
//!
//! Start with [`meta`]; its tests show each dialect. For objects start with [`pkg`].

pub mod condition;
pub mod crd;
pub mod crossplane_core;
pub mod kind_reference;
pub mod manager;
pub mod meta;
pub mod object;
pub mod pkg;
pub mod stacks;
pub mod wire;

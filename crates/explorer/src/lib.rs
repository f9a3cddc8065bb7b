//! # Room `explorer`: packages and kinds as pages
//!
//! The catalog answers programs. People want to look around: which package brings this kind, what
//! does it ask for, what does the object look like, what to type. This room turns the catalog's
//! answers into HTML, on the server, so that a page is there at once, works without scripts, and
//! can be linked to.
//!
//! ```text
//!   request ─► Gate (the catalog's: the asker's rights) ─► Route ─► answers of the catalog
//!                                                             │
//!                                 page (pure: values ─► HTML) ◄┘
//! ```
//!
//! ## What it promises
//!
//! - **Pages show what the asker may pull**, because each is made of answers to the asker's rights.
//! - **Texts of strangers stay texts.** READMEs, descriptions, names and icons come from packages:
//!   maud escapes them, [`markdown`] drops HTML and what would be fetched from elsewhere, and a content
//!   security policy without exceptions holds should any of that fail.
//! - **No page is large because a package is**: lists are paged, schemas unfold within a budget of
//!   bytes, and the rest is one link away.
//! - **Nothing comes from anywhere else.** One style sheet, one script and one picture are part of the
//!   program, and have the digest of their content in their names.
//!
//! ## What it refuses to know
//!
//! Users, sockets, registries and clusters: rights are the catalog's gate, a shell binds the router and
//! gathers what [`plane`] shows of a control plane.
//!
//! Start with [`http::router`]; pages are in `page`, the schema tree in `tree`, graphs in `diagram`.

mod assets;
mod diagram;
pub mod http;
mod icon;
mod install;
mod link;
mod markdown;
mod page;
pub mod pass;
pub mod plane;
mod tree;
mod words;

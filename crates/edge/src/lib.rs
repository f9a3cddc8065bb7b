//! The edge of the house: connections of clients, from the socket to a request and back.
//!
//! Every server of apron listens with the same accept loop ([`accept::serve`]): a bounded number of
//! connections, TLS where the server's [`accept::Porter`] has a certificate, seats for each address
//! ([`seats`]), threads that own their connections where answers are short ([`hands`]), an end to
//! connections on which nothing is asked ([`connection`]), and a clean stop.
//!
//! The room refuses to know what is served and who may ask for it: requests go to a router, and what a
//! porter knows about the other end goes with them. It opens no socket, reads no file and prints nothing;
//! listeners and certificates are given to it. Start with [`accept`].

#[cfg_attr(not(test), warn(clippy::arithmetic_side_effects))]
pub mod accept;
#[cfg_attr(not(test), warn(clippy::arithmetic_side_effects))]
mod connection;
#[cfg_attr(not(test), warn(clippy::arithmetic_side_effects))]
mod hands;
#[cfg_attr(not(test), warn(clippy::arithmetic_side_effects))]
pub mod network;
#[cfg_attr(not(test), warn(clippy::arithmetic_side_effects))]
pub mod open_files;
#[cfg_attr(not(test), warn(clippy::arithmetic_side_effects))]
pub mod seats;
#[cfg_attr(not(test), warn(clippy::arithmetic_side_effects))]
pub mod trust;

//! # Room `sim`: the package manager in bad weather
//!
//! The production manager runs here on the production API server and registry, all in one process
//! and without sockets, on a clock that jumps whenever everybody waits: an hour of a cluster's
//! life costs milliseconds. So what may go wrong is not sampled but enumerated.
//!
//! ```text
//!   scenario (what a user does)
//!      │                                  ┌────────── fault at the nth call
//!      ▼                                  ▼
//!   user ──► API server ◄────────────── gate ◄── manager ──► registry
//!                │                        │
//!            picture of the cluster    calls, counted
//! ```
//!
//! [`explore`] plays a scenario once as it should be, and then again for every call the manager
//! made and everything that may happen to that call: the manager dies before or after it, the
//! server is busy, knows nothing, has moved on, answers from the past, or its answer is lost; and
//! for every watch: news comes late, or not at all, or the watch ends. Each time the cluster must
//! come to the same picture as the first time, and then to rest.
//!
//! [`walk`] is for what nobody thought of: dice say what users do, in which order and how fast,
//! what is meddled with, and when the manager dies. Nobody knows what that should come to, so it is
//! held against [`laws`]: whatever a cluster comes to, it is at rest, nothing is left over, every
//! kind has one controller, what is active has all it needs and nothing else has anything, what is
//! wrong is told, and what gets lost is made again as it was. At the end of a walk a plan is made of
//! what a user does next, too, and must be what happens.
//!
//! A simulation that finds nothing proves little, so [`mutants`] has bugs that the manager could
//! have, put in between manager and server; each must be found.
//!
//! Some scenarios have pods: the API server makes them of Deployments, and a [`node`] that is only played
//! runs them. Its kubelet meets faults, too, its programs end, its machine stops or is cut off; and what
//! the machine runs is held against laws of its own: never two revisions of a provider at once, never
//! none for longer than the fault explains, in the end exactly what Deployments ask for.
//!
//! This room is never shipped. Start with [`stage::Stage`], then [`scenarios`].

pub mod explore;
pub mod fault;
pub mod gate;
pub mod history;
pub mod laws;
mod life;
pub mod mutants;
pub mod node;
pub mod pack;
pub mod picture;
pub mod place;
pub mod scenarios;
pub mod stage;
mod stream;
pub mod turnstile;
pub mod walk;

//! Images that are pulled, honest and hostile ones.

mod cached;
mod craft;
mod hostile;
mod model;
mod peer;
mod users;

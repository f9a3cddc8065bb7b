//! Servers that a page starts.

use crate::support::until;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

/// A server that ends with the test.
pub(super) struct Server {
    child: Child,
    said: PathBuf,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Server {
    /// Starts one, and waits until it has said something.
    pub(super) fn start(mut command: Command, said: PathBuf, sign: &str) -> Self {
        let file = fs_err::File::create(&said).unwrap();
        let copy = file.try_clone().unwrap();
        command.stdout(Stdio::from(file.into_file())).stderr(Stdio::from(copy.into_file()));
        let mut server = Self { child: command.spawn().unwrap(), said };
        until(&format!("it says `{sign}`"), || {
            let text = server.text();
            let ended = server.child.try_wait().unwrap();
            assert!(ended.is_none(), "it ended with {ended:?} after it said:\n{text}");
            text.lines().any(|line| line.starts_with(sign)).then_some(())
        });
        server
    }

    pub(super) fn text(&self) -> String {
        fs_err::read_to_string(&self.said).unwrap()
    }

    /// What follows in the line that begins so.
    pub(super) fn rest(&self, start: &str) -> String {
        let text = self.text();
        let rest = text.lines().find_map(|line| line.strip_prefix(start));
        rest.unwrap_or_else(|| panic!("`{start}` is not in\n{text}")).to_owned()
    }
}

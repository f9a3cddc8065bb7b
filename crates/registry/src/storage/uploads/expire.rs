//! Uploads that are over: untouched for long, or without a byte for minutes.

use super::{Holder, Registry, Session, Shared, Stake};
use crate::error::Error;
use crate::limits::{UPLOAD_AGE_MAX, UPLOAD_EMPTY_AGE_MAX, UPLOADS_SWEEP_PAUSE};
use crate::name::Name;
use crate::storage::millis;
use std::collections::HashSet;
use std::sync::atomic::Ordering;

impl Registry {
    /// A place for one more upload of a holder. When there is none, those that are over give
    /// theirs up first.
    pub(super) async fn enter(&self, name: &Name, holder: &Holder) -> Result<Stake, Error> {
        let ledger = &self.inner.uploads.ledger;
        if let Some(stake) = ledger.enter(holder, name) {
            return Ok(stake);
        }
        if self.may_sweep() {
            self.expire_sessions().await?;
        }
        ledger.enter(holder, name).ok_or(Error::UploadsTooMany)
    }

    /// Looking through all uploads is work that nobody shall be able to ask for at will.
    fn may_sweep(&self) -> bool {
        let (swept, now) = (&self.inner.uploads.swept, self.now());
        let before = swept.load(Ordering::Relaxed);
        let due = now.saturating_sub(before) >= millis(UPLOADS_SWEEP_PAUSE) || now < before;
        due && swept.compare_exchange(before, now, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }

    /// Whether an upload is over. Asking about one that is empty does not make it younger.
    pub(super) fn is_over(&self, session: &Session) -> bool {
        let age = |since: i64| self.now().saturating_sub(since);
        age(session.touched) > millis(UPLOAD_AGE_MAX)
            || (session.offset == 0 && age(session.begun) > millis(UPLOAD_EMPTY_AGE_MAX))
    }

    /// Throws away uploads that are over; gives their number.
    pub(in crate::storage) async fn expire_uploads(&self) -> Result<u64, Error> {
        let expired = self.expire_sessions().await?;
        let limit = self.now().saturating_sub(millis(UPLOAD_AGE_MAX));
        let rows = self.ask(move |inner| inner.metadata.uploads_before(limit)).await?;
        let known = |id: &String| self.inner.uploads.lock().contains_key(id);
        let rows: HashSet<String> = rows.into_iter().filter(|id| !known(id)).collect();
        for id in &rows {
            self.forget_upload(id).await?;
        }
        Ok(expired.saturating_add(rows.len() as u64))
    }

    /// The same for those this process knows of.
    async fn expire_sessions(&self) -> Result<u64, Error> {
        let here: Vec<(String, Shared)> =
            self.inner.uploads.lock().iter().map(|(id, it)| (id.clone(), it.clone())).collect();
        let mut count = 0_u64;
        for (id, shared) in here {
            // An upload that somebody has right now is not over.
            let Ok(session) = shared.try_lock() else { continue };
            if !self.is_over(&session) {
                continue;
            }
            self.inner.uploads.lock().remove(&id);
            count = count.saturating_add(1);
            // One that never had a byte left nothing behind.
            let traces = session.kept || session.staged.is_some();
            drop(session);
            if traces {
                self.forget_upload(&id).await?;
            }
        }
        Ok(count)
    }
}

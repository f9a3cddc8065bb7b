//! A Deployment that wishes for another number of pods, in the middle of a rollout or without.

use super::Rollout;
use super::draft::SetDraft;
use crate::reading::text_at;

impl Rollout<'_> {
    /// Whether a set was sized for another number of pods than is wished now.
    pub(super) fn is_scaled(&self) -> bool {
        let wished = self.wished();
        let mut active = self.all().filter(|set| set.size() > 0);
        active.any(|set| set.desired().is_some_and(|desired| desired != wished))
    }

    /// Gives the sets sizes for the wished number of pods, as they share it now.
    pub(super) fn scale_sets(&mut self) {
        let (wished, (surge, _)) = (self.wished(), self.leeway());
        let most = wished.saturating_add(surge);
        if let Some(only) = self.only_set() {
            only.resize(wished, wished, most);
            return;
        }
        if self.is_saturated() {
            for old in self.old.iter_mut().filter(|old| old.size() > 0) {
                old.resize(0, wished, most);
            }
            return;
        }
        if text_at(self.view.deployment, "/spec/strategy/type") == "Recreate" {
            return;
        }
        self.scale_in_proportion(wished, most);
    }

    /// The one set that has pods, or the last one if none has any.
    fn only_set(&mut self) -> Option<&mut SetDraft> {
        let active = self.all().filter(|set| set.size() > 0).count();
        if active > 1 {
            return None;
        }
        if active == 1 {
            return self.old.iter_mut().chain(&mut self.new).find(|set| set.size() > 0);
        }
        match &mut self.new {
            Some(new) => Some(new),
            None => self.old.last_mut(),
        }
    }

    /// Whether the new set has all pods that are wished, and they work.
    fn is_saturated(&self) -> bool {
        let wished = self.wished();
        self.new.as_ref().is_some_and(|new| {
            new.size() == wished && new.desired() == Some(wished) && new.available() == wished
        })
    }

    /// Shares out the pods that are to come or go: larger sets get more of it, and what is left
    /// over the largest. Of sets of one size the newer is first to grow, the older to shrink.
    fn scale_in_proportion(&mut self, wished: i64, most: i64) {
        let allowed = if wished > 0 { most } else { 0 };
        let mut sets: Vec<&mut SetDraft> =
            self.old.iter_mut().chain(&mut self.new).filter(|set| set.size() > 0).collect();
        let total: i64 = sets.iter().map(|set| set.size()).sum();
        let change = allowed - total;
        sets.sort_by(|a, b| a.age_key().cmp(&b.age_key()));
        if change > 0 {
            sets.reverse();
        }
        sets.sort_by_key(|set| std::cmp::Reverse(set.size()));
        let mut given = 0;
        let mut sizes: Vec<i64> = Vec::with_capacity(sets.len());
        for set in &sets {
            let before = set.most().filter(|most| *most > 0).unwrap_or(most).max(1);
            let share = div_rounded(set.size().saturating_mul(allowed), before) - set.size();
            let rest = change - given;
            let share = if change > 0 { share.clamp(0, rest) } else { share.clamp(rest, 0) };
            given += share;
            sizes.push(set.size() + share);
        }
        if let Some(first) = sizes.first_mut() {
            *first = (*first + change - given).max(0);
        }
        for (set, size) in sets.into_iter().zip(sizes) {
            set.resize(size, wished, most);
        }
    }
}

/// A quotient, rounded to the nearest.
fn div_rounded(dividend: i64, divisor: i64) -> i64 {
    dividend.saturating_add(divisor / 2) / divisor
}

//! Chance that is the same everywhere: `SplitMix64`, which is ten lines and has no platform.

/// A source of numbers that depends on its seed alone.
#[derive(Clone, Debug)]
pub struct Dice(u64);

impl Dice {
    /// Dice for one thing of a seed: its neighbours' draws do not move it.
    pub fn new(seed: u64, index: u64) -> Self {
        let mut dice = Self(seed ^ index.wrapping_mul(0xA24B_AED4_963E_E407));
        dice.next_number();
        dice
    }

    /// The next 64 bits.
    pub fn next_number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// A number below `end`; 0 if that is 0.
    pub fn below(&mut self, end: usize) -> usize {
        let end = u64::try_from(end).unwrap_or(u64::MAX).max(1);
        usize::try_from(self.next_number() % end).unwrap_or(0)
    }

    /// Whether something happens that happens `part` times in `of`.
    pub fn happens(&mut self, part: usize, of: usize) -> bool {
        self.below(of) < part
    }

    /// One of several.
    pub fn pick<'a, T>(&mut self, choices: &'a [T]) -> &'a T {
        &choices[self.below(choices.len())]
    }

    /// A number that follows a measured distribution: `(permille, value)` points in rising order,
    /// between which values lie on a straight line.
    pub fn measured(&mut self, points: &[(usize, usize)]) -> usize {
        let at = self.below(1001);
        let next = points.iter().position(|(permille, _)| *permille >= at).unwrap_or(0);
        let (end, high) = points[next];
        let (start, low) = points[next.saturating_sub(1)];
        if end <= start {
            return high;
        }
        low + (high - low) * (at - start) / (end - start)
    }
}

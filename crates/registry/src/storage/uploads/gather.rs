//! A body's pieces, gathered into blocks worth a write.

use crate::limits::WRITE_SIZE;
use bytes::Bytes;

/// Pieces that wait to be written.
#[derive(Default)]
pub(super) struct Gathered {
    pieces: Vec<Bytes>,
    size: usize,
}

impl Gathered {
    pub(super) fn push(&mut self, piece: Bytes) {
        self.size = self.size.saturating_add(piece.len());
        self.pieces.push(piece);
    }

    /// A block of [`WRITE_SIZE`], if there is more than one: the last is written along with
    /// whatever comes after it.
    pub(super) fn block(&mut self) -> Option<Vec<Bytes>> {
        if self.size <= WRITE_SIZE {
            return None;
        }
        let (mut block, mut missing) = (Vec::new(), WRITE_SIZE);
        let mut pieces = std::mem::take(&mut self.pieces).into_iter();
        while missing > 0
            && let Some(mut piece) = pieces.next()
        {
            if piece.len() > missing {
                self.pieces.push(piece.split_off(missing));
            }
            missing = missing.saturating_sub(piece.len());
            block.push(piece);
        }
        self.pieces.extend(pieces);
        self.size = self.size.saturating_sub(WRITE_SIZE);
        Some(block)
    }

    /// Everything that is left, at most a block.
    pub(super) fn rest(self) -> Vec<Bytes> {
        self.pieces
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_full_and_nothing_is_lost() {
        for sizes in [vec![], vec![7], vec![WRITE_SIZE], vec![3 * WRITE_SIZE + 5], vec![99_999; 40]]
        {
            let all: Vec<u8> = (0..=u8::MAX).cycle().take(sizes.iter().sum()).collect();
            let (mut bytes, mut gathered) = (Bytes::from(all.clone()), Gathered::default());
            let mut back = Vec::new();
            for size in sizes {
                gathered.push(bytes.split_to(size));
                while let Some(block) = gathered.block() {
                    assert_eq!(block.iter().map(Bytes::len).sum::<usize>(), WRITE_SIZE);
                    back.extend(block.concat());
                }
            }
            let rest = gathered.rest().concat();
            assert!(rest.len() <= WRITE_SIZE);
            back.extend(rest);
            assert!(back == all);
        }
    }
}

//! Pseudorandom numbers, the same in every run.

/// The generator, with its state.
pub struct Rng(pub u64);

impl Rng {
    /// A number below `end`, which is not 0.
    pub fn below(&mut self, end: usize) -> usize {
        // SplitMix64.
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((z ^ (z >> 31)) % u64::try_from(end).expect("a count")).expect("below it")
    }
}

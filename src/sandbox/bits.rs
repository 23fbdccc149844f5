//! Writes bits, most significant first, as H.264 wants them (ITU-T H.264 §7.2, §9.1).

/// A bit string under construction.
#[derive(Default)]
pub(super) struct Bits {
    bytes: Vec<u8>,
    free: u32,
}

impl Bits {
    /// `u(n)`: the low `count` bits of a value.
    pub(super) fn put(&mut self, value: u32, count: u32) -> &mut Self {
        for shift in (0..count).rev() {
            if self.free == 0 {
                self.bytes.push(0);
                self.free = 8;
            }
            self.free -= 1;
            if let Some(last) = self.bytes.last_mut() {
                *last |= u8::from(value >> shift & 1 == 1) << self.free;
            }
        }
        self
    }

    /// `ue(v)`: an unsigned Exp-Golomb code. Codes of signed zero are the same bits.
    pub(super) fn put_ue(&mut self, value: u32) -> &mut Self {
        let length = 32 - (value + 1).leading_zeros();
        self.put(0, length - 1).put(value + 1, length)
    }

    /// Zero bits up to the next whole byte.
    pub(super) fn align(&mut self) -> &mut Self {
        self.free = 0;
        self
    }

    /// Whole bytes; the string must be aligned.
    pub(super) fn extend(&mut self, bytes: impl IntoIterator<Item = u8>) -> &mut Self {
        self.bytes.extend(bytes);
        self
    }

    /// The stop bit, then the bytes as a NAL unit with its header: no three bytes in it can be taken for a start code.
    pub(super) fn finish(&mut self, header: u8) -> Vec<u8> {
        self.put(1, 1);
        let mut unit = vec![header];
        let mut zeros = 0;
        for &byte in &self.bytes {
            if zeros >= 2 && byte <= 3 {
                unit.push(3);
                zeros = 0;
            }
            zeros = if byte == 0 { zeros + 1 } else { 0 };
            unit.push(byte);
        }
        unit
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_those_of_the_standard() {
        let mut bits = Bits::default();
        bits.put_ue(0).put_ue(1).put_ue(2).put_ue(3);
        // 1 010 011 00100, then the stop bit.
        assert_eq!(bits.finish(0x67), [0x67, 0b1010_0110, 0b0100_1000]);
    }

    #[test]
    fn start_codes_are_broken_up() {
        assert_eq!(Bits::default().extend([0, 0, 1, 0, 0, 0]).finish(0), [0, 0, 0, 3, 1, 0, 0, 3, 0, 0x80]);
    }
}

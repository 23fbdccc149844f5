//! Bytes as hexadecimal digits.

/// Two lower-case digits for each byte.
pub(crate) fn hex(bytes: &[u8]) -> String {
    let digit = |half: u8| char::from(b"0123456789abcdef"[usize::from(half)]);
    let mut digits = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        digits.push(digit(byte >> 4));
        digits.push(digit(byte & 0xf));
    }
    digits
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_every_digit() {
        assert_eq!(hex(&[0x00, 0x1f, 0xa5, 0xff]), "001fa5ff");
    }
}

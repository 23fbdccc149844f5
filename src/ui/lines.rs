//! Small phrases that several views share.

use std::time::Duration;

/// `1 job`, `2 jobs`.
pub fn count(number: usize, noun: &str) -> String {
    if number == 1 { format!("1 {noun}") } else { format!("{number} {noun}s") }
}

/// A duration as people say it: `45 s`, `4 min`, `2 h 5 min`.
pub fn span(duration: Duration) -> String {
    let seconds = duration.as_secs();
    match seconds {
        0..=99 => format!("{seconds} s"),
        100..=5999 => format!("{} min", seconds.div_ceil(60)),
        _ => format!("{} h {} min", seconds / 3600, seconds % 3600 / 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_read_well() {
        let said = |seconds| span(Duration::from_secs(seconds));
        assert_eq!(
            [said(0), said(45), said(100), said(240), said(7500)],
            ["0 s", "45 s", "2 min", "4 min", "2 h 5 min"]
        );
    }
}

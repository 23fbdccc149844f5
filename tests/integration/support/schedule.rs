//! The ideal run, to compare with.

/// The time for all tasks, in order, each on the slot that is free first.
pub fn scheduled(takes: &[f64], slots: usize) -> f64 {
    let mut slots = vec![0.0_f64; slots];
    for takes in takes {
        *slots.iter_mut().min_by(|a, b| a.total_cmp(b)).expect("slots") += takes;
    }
    slots.into_iter().fold(0.0, f64::max)
}

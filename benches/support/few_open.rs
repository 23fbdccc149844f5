//! The best that can be while few submissions may be open.

/// How long tasks take altogether, at least and in this order, if each begins, in order, on the slot that is free first, where a submission is answered after so many
/// seconds and few may be open at once: one until the first was answered, and so many from then on. In seconds, as what tasks take.
pub fn scheduled_with_few_open(takes: &[f64], slots: usize, open: usize, answered_after: f64) -> f64 {
    let (mut slots, mut permits) = (vec![0.0_f64; slots], vec![answered_after; open]);
    permits[0] = 0.0;
    for takes in takes {
        let (slot, permit) = (first_of(&mut slots), first_of(&mut permits));
        let begins = slot.max(*permit);
        (*slot, *permit) = (begins + takes, begins + answered_after);
    }
    slots.into_iter().fold(0.0, f64::max)
}

/// What is free first.
fn first_of(free: &mut [f64]) -> &mut f64 {
    free.iter_mut().min_by(|a, b| a.total_cmp(b)).expect("at least one")
}

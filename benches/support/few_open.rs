//! The optimal makespan with few open submissions.

/// The minimum makespan, in seconds, of tasks that start in order on the first free slot. At most `open` submissions are open at a time, and one before the
/// first response; each takes `answered_after` seconds.
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

/// The entry with the earliest time.
fn first_of(free: &mut [f64]) -> &mut f64 {
    free.iter_mut().min_by(|a, b| a.total_cmp(b)).expect("at least one")
}

//! The time line: each task as a bar of its phases, in as many lanes as were at the service at once, with the pauses cut out in
//! which nothing was.

use jiff::{SignedDuration, Timestamp};

use super::charts::rounded;
use super::text::span;
use crate::report::times::Times;

/// The width of the drawing.
const WIDTH: f64 = 1000.0;
/// The height of a lane, and of all that is drawn at the most.
const LANE: usize = 10;
/// A time of this many seconds in which nothing is going on is cut out, and how wide its place is.
const PAUSE_S: f64 = 180.0;
const CUT: f64 = 4.0;
/// For how long after the last that is known something open is drawn.
const UNSEEN: SignedDuration = SignedDuration::from_mins(3);
/// The most tasks that are drawn; a page with more would be slow, and no one could tell them apart.
const MOST: usize = 1000;

/// The tasks that are drawn.
#[derive(Default)]
pub(super) struct Tasks {
    drawn: Vec<(String, Times)>,
    left_out: usize,
}

impl Tasks {
    /// One more, or one that is only counted: the first ones are drawn.
    pub(super) fn add(&mut self, job: &str, times: Times) {
        if self.drawn.len() < MOST {
            self.drawn.push((job.to_owned(), times));
        } else {
            self.left_out += 1;
        }
    }
}

/// A time line as a drawing.
pub(super) struct Timeline {
    pub height: usize,
    pub bars: Vec<Bar>,
    /// The positions of omitted pauses.
    pub gaps: Vec<f64>,
    pub from: Timestamp,
    pub to: Timestamp,
    pub from_text: String,
    pub to_text: String,
    /// The median time of a task.
    pub typical: Option<String>,
    /// True if the start of any generation is estimated from progress.
    pub estimated: bool,
    pub left_out: usize,
}

/// One task.
pub(super) struct Bar {
    pub job: String,
    pub text: String,
    pub y: usize,
    pub parts: Vec<Part>,
}

/// One phase of it.
pub(super) struct Part {
    pub phase: &'static str,
    pub x: f64,
    pub width: f64,
}

impl Timeline {
    /// Draws tasks in any order, as they are now; `None` before one has ended, when there is nothing to see.
    pub(super) fn of(tasks: Tasks, now: Timestamp) -> Option<Self> {
        let Tasks { drawn: mut tasks, left_out } = tasks;
        tasks.iter().find_map(|(_, times)| times.ended)?;
        tasks.sort_by_key(|(_, times)| times.asked);
        // An active task is drawn up to the last known time, and not for hours without a poll.
        let known = tasks.iter().map(|(_, times)| times.end()).max()?;
        let now = now.min(known.checked_add(UNSEEN).unwrap_or(known));
        let end = |times: &Times| if times.is_open { now.max(times.end()) } else { times.end() };
        let (first, last) = (tasks.first()?.1.asked, tasks.iter().map(|(_, times)| end(times)).max()?);
        let axis = Axis::of(tasks.iter().map(|(_, times)| (times.asked, end(times))));
        let mut lanes: Vec<Timestamp> = Vec::new();
        let bars: Vec<Bar> = tasks
            .iter()
            .map(|(job, times)| {
                let free = lanes.iter().position(|&until| until <= times.asked);
                let lane = free.unwrap_or(lanes.len());
                if free.is_none() {
                    lanes.push(end(times));
                }
                // A slot is free when the task is over; its video comes beside the next one.
                lanes[lane] = times.ended.unwrap_or_else(|| end(times));
                bar(job, times, now, lane, &axis)
            })
            .collect();
        let format = if first.as_second() / 86400 == last.as_second() / 86400 { "%H:%M:%S" } else { "%-d %b, %H:%M" };
        Some(Self {
            height: lanes.len().max(1) * LANE,
            bars,
            gaps: axis.cuts(),
            from: first,
            to: last,
            from_text: first.strftime(format).to_string(),
            to_text: format!("{} UTC", last.strftime(format)),
            typical: typical(&tasks),
            estimated: tasks.iter().any(|(_, times)| times.generating.is_some()),
            left_out,
        })
    }
}

fn bar(job: &str, times: &Times, now: Timestamp, lane: usize, axis: &Axis) -> Bar {
    let phases = times.phases(Some(now));
    let parts = phases.iter().map(|&(phase, from, to)| {
        let (x, end) = (axis.at(from), axis.at(to));
        // A part without a visible duration is visible nevertheless.
        Part { phase, x: rounded(x), width: rounded((end - x).max(0.4)) }
    });
    let text: Vec<String> =
        phases.iter().map(|&(phase, from, to)| format!("{phase} {}", span(between(from, to)))).collect();
    Bar { job: job.to_owned(), text: text.join(", "), y: lane * LANE + 1, parts: parts.collect() }
}

fn between(from: Timestamp, to: Timestamp) -> f64 {
    to.duration_since(from).as_secs_f64().max(0.0)
}

/// The median of each phase over the tasks that have it, in words.
fn typical(tasks: &[(String, Times)]) -> Option<String> {
    let phases: Vec<_> = tasks.iter().map(|(_, times)| times.phases(None)).collect();
    let text = ["submission", "queue", "generation", "fetch"].into_iter().filter_map(|name| {
        let own = phases.iter().flatten().filter(|(phase, ..)| *phase == name);
        let mut took: Vec<f64> = own.map(|&(_, from, to)| between(from, to)).collect();
        took.sort_by(f64::total_cmp);
        let median = *took.get(took.len() / 2)?;
        Some(format!("{name} {}", span(median)))
    });
    let text: Vec<String> = text.collect();
    (!text.is_empty()).then(|| format!("{} (median)", text.join(" · ")))
}

/// Time as a place in the drawing. Pieces are spans in which something was going on.
struct Axis {
    /// Start, end, and where the start is in the drawing.
    pieces: Vec<(Timestamp, Timestamp, f64)>,
    /// Units for a second.
    scale: f64,
}

impl Axis {
    /// Over spans in the order of their begins.
    fn of(spans: impl Iterator<Item = (Timestamp, Timestamp)>) -> Self {
        let mut pieces: Vec<(Timestamp, Timestamp, f64)> = Vec::new();
        for (from, to) in spans {
            match pieces.last_mut() {
                Some((_, end, _)) if between(*end, from) < PAUSE_S => *end = (*end).max(to),
                _ => pieces.push((from, to, 0.0)),
            }
        }
        let whole: f64 = pieces.iter().map(|(from, to, _)| between(*from, *to)).sum();
        #[expect(clippy::cast_precision_loss, reason = "as many as runs")]
        let cuts = pieces.len().saturating_sub(1) as f64 * CUT;
        let scale = if whole > 0.0 { (WIDTH - cuts).max(WIDTH / 2.0) / whole } else { 1.0 };
        let mut x = 0.0;
        for (from, to, place) in &mut pieces {
            *place = x;
            x += between(*from, *to) * scale + CUT;
        }
        Self { pieces, scale }
    }

    fn at(&self, time: Timestamp) -> f64 {
        let piece = self.pieces.iter().rev().find(|(from, ..)| *from <= time);
        piece.map_or(0.0, |(from, to, x)| x + between(*from, time.min(*to)) * self.scale)
    }

    fn cuts(&self) -> Vec<f64> {
        self.pieces.iter().skip(1).map(|(_, _, x)| rounded(x - CUT)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_790_000_000 + second).expect("a time")
    }

    fn line(tasks: impl IntoIterator<Item = (String, Times)>) -> Option<Timeline> {
        let mut all = Tasks::default();
        tasks.into_iter().for_each(|(job, times)| all.add(&job, times));
        Timeline::of(all, at(86400))
    }

    fn task(asked: i64, ended: i64) -> (String, Times) {
        let times = Times {
            asked: at(asked),
            accepted: Some(at(asked)),
            generating: None,
            ended: Some(at(ended)),
            fetched: None,
            is_open: false,
        };
        (format!("j{asked}"), times)
    }

    #[test]
    fn a_lane_is_a_slot_and_a_pause_takes_no_room() {
        let drawn = line([task(0, 100), task(10, 90), task(100, 190), task(5000, 5100)]).expect("a line");
        assert_eq!(drawn.bars.iter().map(|bar| bar.y / LANE).collect::<Vec<_>>(), [0, 1, 0, 0]);
        assert_eq!(drawn.height, 2 * LANE);
        assert_eq!(drawn.gaps.len(), 1);
        let last = drawn.bars.last().and_then(|bar| bar.parts.last()).expect("a bar");
        assert!((last.x + last.width - WIDTH).abs() < 0.2, "the last ends at {}", last.x + last.width);
        // 190 and 100 seconds share what the cut leaves.
        assert!((drawn.bars[0].parts[1].width - 996.0 * 100.0 / 290.0).abs() < 0.1, "{}", drawn.bars[0].parts[1].width);
        assert!(line([]).is_none());
        // Before something has ended there is nothing to see, and what is open after that is drawn, but not for a day.
        let open = || {
            let (name, times) = task(120, 120);
            (name, Times { ended: None, is_open: true, ..times })
        };
        assert!(line([open()]).is_none());
        let drawn = line([task(0, 100), open()]).expect("a line");
        let last = drawn.bars[1].parts.last().expect("a part");
        assert_eq!((last.phase, drawn.to), ("still", at(120 + 180)));
        assert_eq!(line((0..4000).map(|n| task(n, n + 5))).expect("a line").left_out, 3000);
    }
}

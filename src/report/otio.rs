//! The cut: the videos as a timeline of `OpenTimelineIO`, which editing programs read.
//!
//! Each job with a video is a clip, in manifest order: the kept take, or else the newest one. The other takes are alternative references of the clip, and
//! each line of a note is a marker, at the time that the line names. A video that was archived or is not on this machine is missing media. A track has the jobs with one value of a label. All times are frames at one rate:
//! the videos must share it.

use std::io::{self, Write};
use std::path::Path;

use indexmap::IndexMap;
use serde_json::{Value, json};

use super::html::path_as_link;
use super::row::{Row, Version};
use super::rows::Report;

/// The beginning of a timeline of shotlist. An editing program that saves a change keeps our metadata, in another order or with other indents.
pub(super) const BEGINNING: &str = r#"{
  "OTIO_SCHEMA": "Timeline.1",
  "global_start_time": null,
  "metadata": {
    "shotlist": {"#;
/// The help for videos that fit into no timeline.
pub(super) const HELP: &str = "convert the videos to one frame rate, or import them without a timeline";
/// The track of jobs without the label.
const NO_VALUE: &str = "(none)";

/// Writes a timeline that is in a directory, with a track for each value of a label.
pub(super) fn write(report: &Report, directory: &Path, label: Option<&str>, to: &mut impl Write) -> io::Result<()> {
    let (mut tracks, mut common) = (IndexMap::<String, Vec<Value>>::new(), None);
    let has_video = |row: &Row| row.file.is_some() || row.delivered.seconds.is_some();
    for row in report.rows_seen_from(directory).filter(has_video) {
        let file = row.file.as_deref().unwrap_or(&row.id);
        let error = |why: String| io::Error::new(io::ErrorKind::InvalidData, why);
        let unknown = || error(format!("the frame rate or the duration of `{file}` is unknown"));
        let (fps, seconds) = row.delivered.fps.zip(row.delivered.seconds).ok_or_else(unknown)?;
        let first = *common.get_or_insert(fps);
        // Both are whole numbers of frames in a thousand seconds.
        if (first - fps).abs() > f64::EPSILON {
            return Err(error(format!("the videos must have one frame rate, found {first} and, in `{file}`, {fps}")));
        }
        let value =
            label.map_or(report.key.name.as_str(), |label| row.labels.get(label).map_or(NO_VALUE, String::as_str));
        tracks.entry(value.to_owned()).or_default().push(clip(&row, &Frames { rate: exact(fps), seconds }));
    }
    let track = |(name, clips): (String, _)| part("Track.1", &name, json!({ "kind": "Video", "children": clips }));
    let stack = part("Stack.1", "tracks", json!({ "children": tracks.into_iter().map(track).collect::<Value>() }));
    let about = json!({ "shotlist": { "batch": report.key.batch, "simulated": report.simulated } });
    let timeline = json!({
        "OTIO_SCHEMA": "Timeline.1",
        "name": report.key.name,
        "metadata": about,
        "global_start_time": null,
        "tracks": stack,
    });
    serde_json::to_writer_pretty(&mut *to, &timeline)?;
    to.write_all(b"\n")
}

/// The times of a video.
struct Frames {
    rate: f64,
    seconds: f64,
}

impl Frames {
    fn time(&self, seconds: f64) -> Value {
        json!({ "OTIO_SCHEMA": "RationalTime.1", "rate": self.rate, "value": (seconds * self.rate).round() })
    }

    fn range(&self, start: f64, seconds: f64) -> Value {
        json!({ "OTIO_SCHEMA": "TimeRange.1", "start_time": self.time(start), "duration": self.time(seconds) })
    }

    fn whole(&self) -> Value {
        self.range(0.0, self.seconds)
    }
}

/// The exact rate of a rounded one: 29.97 frames a second are 30,000 in 1,001 seconds.
fn exact(fps: f64) -> f64 {
    let whole = (fps * 1.001).round();
    if (fps * 1.001 - whole).abs() < 0.001 { whole / 1.001 } else { fps }
}

/// A part of a timeline, with the fields of every part and these.
fn part(schema: &str, name: &str, fields: Value) -> Value {
    let mut part = json!({
        "OTIO_SCHEMA": schema,
        "name": name,
        "enabled": true,
        "metadata": {},
        "source_range": null,
        "effects": [],
        "markers": [],
    });
    if let (Some(part), Value::Object(fields)) = (part.as_object_mut(), fields) {
        part.extend(fields);
    }
    part
}

fn clip(row: &Row, frames: &Frames) -> Value {
    let about =
        json!({ "job": row.id, "task": row.task_id, "model": row.model, "prompt": row.prompt, "choice": row.choice });
    let others = row
        .detail
        .versions
        .iter()
        .filter_map(|Version { file, task_id, .. }| Some((task_id.clone()?, reference(Some(file), &Value::Null))));
    let references: serde_json::Map<String, Value> =
        std::iter::once(("DEFAULT_MEDIA".to_owned(), reference(row.file.as_deref(), &frames.whole())))
            .chain(others)
            .collect();
    let markers: Vec<Value> = row.note.iter().flat_map(|note| note.lines()).map(|line| marker(line, frames)).collect();
    let fields = json!({
        "metadata": { "shotlist": about },
        "source_range": frames.whole(),
        "markers": markers,
        "active_media_reference_key": "DEFAULT_MEDIA",
        "media_references": references,
    });
    part("Clip.2", &row.id, fields)
}

/// A line of a note, at the time in it, such as "0:07", or else at the start.
fn marker(line: &str, frames: &Frames) -> Value {
    let time = |word: &str| {
        let (minutes, seconds) = word.trim_matches(|c: char| !c.is_ascii_digit()).split_once(':')?;
        let (minutes, seconds) =
            (minutes.parse::<u16>().ok()?, seconds.parse::<u16>().ok().filter(|_| seconds.len() == 2)?);
        Some(f64::from(minutes) * 60.0 + f64::from(seconds)).filter(|time| *time < frames.seconds)
    };
    let start = line.split_whitespace().find_map(time).unwrap_or(0.0);
    json!({
        "OTIO_SCHEMA": "Marker.2",
        "name": line,
        "color": "YELLOW",
        "comment": line,
        "metadata": {},
        "marked_range": frames.range(start, 0.0),
    })
}

/// A video, with its path relative to the timeline if it is here.
fn reference(file: Option<&str>, available: &Value) -> Value {
    let mut reference = json!({
        "OTIO_SCHEMA": if file.is_some() { "ExternalReference.1" } else { "MissingReference.1" },
        "name": "",
        "metadata": {},
        "available_range": available,
        "available_image_bounds": null,
    });
    if let Some(file) = file {
        reference["target_url"] = path_as_link(file).into();
    }
    reference
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_of_television_become_exact() {
        for (rounded, frames) in [(23.976, 24_000.0), (29.97, 30_000.0), (59.94, 60_000.0), (119.88, 120_000.0)] {
            assert!((exact(rounded) - frames / 1001.0).abs() < 1e-12, "{rounded}");
        }
        for fps in [12.0, 24.0, 25.0, 30.0, 48.0, 50.0, 60.0, 23.5, 29.5] {
            assert!((exact(fps) - fps).abs() < 1e-12, "{fps}");
        }
    }
}

"""The cut in the hands of editing programs: OpenTimelineIO reads it, its FCP 7 adapter converts it, and melt plays the videos in its order.

Usage: cut.py SHOTLIST
"""

import json
import os
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import opentimelineio as otio

RATE = 24
MANIFEST = """version: 1
name: cut
defaults: { model: alpha-2, labels: { language: en } }
jobs:
  - { id: one, prompt: a lake }
  - { id: two, prompt: a pier }
  - { id: three, prompt: a road, labels: { language: de } }
"""


class Service(BaseHTTPRequestHandler):
    """A service whose tasks are done at once, with a video of ffmpeg."""

    tasks = 0

    def answer(self, body, kind="application/json"):
        self.send_response(200)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self):
        self.rfile.read(int(self.headers["content-length"]))
        Service.tasks += 1
        self.answer(json.dumps({"id": f"t{Service.tasks}", "status": "queued"}).encode())

    def do_GET(self):
        if self.path == "/video.mp4":
            return self.answer(Path("video.mp4").read_bytes(), "video/mp4")
        task = self.path.rsplit("/", 1)[1]
        url = f"http://{self.headers['host']}/video.mp4"
        self.answer(json.dumps({"id": task, "status": "completed", "video_url": url}).encode())

    def log_message(self, *_):
        pass


def run(*args, **kwargs):
    return subprocess.run(args, check=True, stdout=subprocess.PIPE, text=True, **kwargs).stdout


shotlist = sys.argv[1]
source = f"testsrc=size=1280x720:rate={RATE}:duration=12"
run("ffmpeg", "-v", "error", "-y", "-f", "lavfi", "-i", source, "-pix_fmt", "yuv420p", "video.mp4")
server = ThreadingHTTPServer(("127.0.0.1", 0), Service)
threading.Thread(target=server.serve_forever, daemon=True).start()
Path("cut.yaml").write_text(MANIFEST)
service = {"SHOTLIST_BASE_URL": f"http://127.0.0.1:{server.server_port}", "SHOTLIST_API_KEY": "k"}
run(shotlist, "run", "cut.yaml", "--yes", "-q", "--first-poll", "0s", "--poll-interval", "50ms", env=os.environ | service)
run(shotlist, "report", "cut.yaml", "--report", "cut.otio", "--track", "label.language")

timeline = otio.adapters.read_from_file("cut.otio")
tracks = {track.name: [clip.name for clip in track.find_clips()] for track in timeline.video_tracks()}
assert tracks == {"en": ["one", "two"], "de": ["three"]}, tracks
clips = list(timeline.find_clips())
lengths = [clip.source_range.duration for clip in clips]
assert {length.rate for length in lengths} == {RATE}
frames = [length.to_frames() for length in lengths]
files = [Path(otio.url_utils.filepath_from_url(clip.media_reference.target_url)) for clip in clips]
assert all(file.is_file() for file in files), files
total = timeline.duration().to_frames()
assert total == frames[0] + frames[1], (total, frames)

timeline.name = "edited"
otio.adapters.write_to_file(timeline, "cut.otio")
refused = subprocess.run([shotlist, "report", "cut.yaml", "--report", "cut.otio"], stderr=subprocess.PIPE, text=True)
assert refused.returncode == 2 and "not-a-report" in refused.stderr, refused
assert otio.adapters.read_from_file("cut.otio").name == "edited"

otio.adapters.write_to_file(timeline, "cut.xml", adapter_name="fcp_xml")
again = otio.adapters.read_from_file("cut.xml", adapter_name="fcp_xml")
assert [clip.name for clip in again.find_clips()] == [clip.name for clip in clips]

first = list(timeline.video_tracks())[0]
played = []
for clip in first.find_clips():
    span = clip.trimmed_range()
    file = otio.url_utils.filepath_from_url(clip.media_reference.target_url)
    played += [file, f"in={span.start_time.to_frames()}", f"out={span.end_time_inclusive().to_frames()}"]
run("melt", "-silent", "-profile", "atsc_720p_24", *played, "-consumer", "avformat:played.mp4", "an=1", stderr=subprocess.DEVNULL)
entries = ["-show_entries", "stream=nb_read_frames", "-of", "csv=p=0"]
made = run("ffprobe", "-v", "error", "-count_frames", "-select_streams", "v", *entries, "played.mp4").strip().strip(",")
assert int(made) == total, (made, total)
print(f"the cut: {len(clips)} clips in {len(tracks)} tracks; melt plays all {total} frames of the first")

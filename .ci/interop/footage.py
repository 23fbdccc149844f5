"""Videos of ffmpeg, delivered by a service: what shotlist reads in each is what ffprobe and mediainfo read; what doesn't play is refused, and nothing else."""

import http.server
import json
import os
import pathlib
import subprocess
import sys
import threading

shotlist = sys.argv[1]
SOURCE = ["-f", "lavfi", "-i"]
H264, HEVC = ["-c:v", "libx264", "-preset", "ultrafast", "-pix_fmt", "yuv420p"], ["-c:v", "libx265", "-preset", "ultrafast", "-x265-params", "log-level=none"]
FRAGMENTED = ["-movflags", "+frag_keyframe+empty_moov+default_base_moof", "-g", "12"]
FILES = {
    "plain": H264,
    "faststart": [*H264, "-movflags", "+faststart"],
    "b-frames": ["-c:v", "libx264", "-preset", "medium", "-bf", "3", "-pix_fmt", "yuv420p"],
    "hevc": [*HEVC, "-tag:v", "hvc1"],
    "av1": ["-c:v", "libaom-av1", "-cpu-used", "8", "-row-mt", "1"],
    "vp9": ["-c:v", "libvpx-vp9", "-deadline", "realtime", "-cpu-used", "8"],
    "mpeg4": ["-c:v", "mpeg4"],
    "fragmented": [*H264, *FRAGMENTED],
    "every-frame-a-fragment": [*H264, "-movflags", "+frag_every_frame+empty_moov"],
    "dash": [*H264, "-movflags", "+dash+frag_keyframe"],
    "delayed": [*H264, "-movflags", "+frag_keyframe+delay_moov", "-g", "12"],
    "variable-rate": [*H264, "-vf", "select='not(mod(n,3))+lt(n,12)'", "-fps_mode", "vfr"],
    "edited": [*H264, "-ss", "0.6"],
    "upright": [*H264, "-vf", "scale=180:320"],
    "long-times": [*H264, "-video_track_timescale", "90000"],
    "silent": [*H264, "-an"],
    "mov": [*H264, "-f", "mov"],
    "cinema": [*H264, "-r", "24000/1001"],
    "square": [*H264, "-vf", "scale=240:240"],
}


def run(*words):
    return subprocess.run([str(word) for word in words], check=True, capture_output=True, text=True).stdout


def boxes(data):
    """The top boxes of a file: name, start, and end."""
    at = 0
    while at + 8 <= len(data):
        size = int.from_bytes(data[at:at + 4], "big")
        size = int.from_bytes(data[at + 8:at + 16], "big") if size == 1 else size or len(data) - at
        yield data[at + 4:at + 8], at, at + size
        at += size


def with_long_mdat(data):
    """The same with a 64-bit box for its frames, behind the index: in front of them, offsets would change."""
    out = b""
    for name, start, end in boxes(data):
        assert name != b"mdat" or data[start - 8:start - 4] == (8).to_bytes(4, "big"), "ffmpeg leaves room for a long length"
        if name == b"mdat":
            out = out[:-8] + (1).to_bytes(4, "big") + name + (end - start + 8).to_bytes(8, "big") + data[start + 8:end]
        else:
            out += data[start:end]
    return out


videos = {}
sources = [*SOURCE, "testsrc2=size=320x180:rate=24:duration=3", *SOURCE, "sine=duration=3"]
for name, options in FILES.items():
    path = pathlib.Path(f"{name}.mp4")
    run("ffmpeg", "-v", "error", "-y", *sources, *options, *([] if "-an" in options else ["-c:a", "aac"]), path)
    videos[name] = path.read_bytes()
run("ffmpeg", "-v", "error", "-y", "-i", "plain.mp4", "-c", "copy", "-metadata:s:v", "rotate=90", "turned.mp4")
run("ffmpeg", "-v", "error", "-y", "-ss", "1", "-i", "b-frames.mp4", "-c", "copy", "copied-from-the-middle.mp4")
for name in ["turned", "copied-from-the-middle"]:
    videos[name] = pathlib.Path(f"{name}.mp4").read_bytes()
for name, data in {"long-mdat": with_long_mdat(videos["plain"]), "text-behind": videos["faststart"] + b'{"error": "expired"}', "page-behind": videos["plain"] + b"<html>x</html>"}.items():
    videos[name] = data
    pathlib.Path(f"{name}.mp4").write_bytes(data)
good = list(videos)

run("ffmpeg", "-v", "error", "-y", *SOURCE, "sine=duration=3", "-c:a", "aac", "sound.mp4")
run("ffmpeg", "-v", "error", "-y", "-i", "plain.mp4", "-c", "copy", "other.mkv")
for name in ["sound.mp4", "other.mkv"]:
    videos[f"bad-{name}"] = pathlib.Path(name).read_bytes()
for name in ["plain", "faststart", "fragmented", "long-mdat"]:
    data = videos[name]
    has_pictures = False
    for box, start, end in list(boxes(data))[:8]:
        # Whole fragments are a whole video, only a shorter one, and so is one that is followed by the beginning of a length.
        cuts = [(start + end) // 2, end - 1] + ([] if name == "fragmented" and has_pictures else [start, start + 4, start + 8])
        has_pictures |= box == b"mdat"
        videos.update({f"bad-{name}-{cut}": data[:cut] for cut in cuts if cut < len(data)})
names = list(videos)


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def answer(self, body, kind="application/json", status=200):
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.answer(json.dumps({"id": "t" + asked["prompt"].split()[-1], "status": "queued"}).encode())

    def do_GET(self):
        last = self.path.rsplit("/", 1)[-1]
        if self.path.startswith("/files/"):
            self.answer(videos[names[int(last)]], "video/mp4")
        elif last.startswith("t"):
            url = f"http://127.0.0.1:{self.server.server_port}/files/{last[1:]}"
            self.answer(json.dumps({"id": last, "status": "completed", "progress": 100, "video_url": url}).encode())
        else:
            self.answer(b"{}", status=404)


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
threading.Thread(target=server.serve_forever, daemon=True).start()
jobs = "".join(f"  - {{ id: v{n}, prompt: number {n} }}\n" for n in range(len(names)))
pathlib.Path("m.yaml").write_text(f"version: 1\ndefaults: {{ model: alpha-2 }}\njobs:\n{jobs}")
environment = {**os.environ, "SHOTLIST_BASE_URL": f"http://127.0.0.1:{server.server_port}", "SHOTLIST_API_KEY": "k"}
words = ["run", "m.yaml", "--yes", "-q", "--accept-mismatch", "--first-poll", "0s", "--poll-interval", "100ms", "--poll-floor", "20ms"]
ended = subprocess.run([shotlist, *words], env=environment, capture_output=True, text=True, timeout=300)
rows = {names[int(row["id"][1:])]: row for row in json.load(open("shotlist-out/m/report.json"))["jobs"]}

wrong = [f"{name} was refused: {ended.stderr}" for name in good if not rows[name]["file"]]
wrong += [f"{name} was taken" for name in names if name.startswith("bad-") and rows[name]["file"]]
for name in good:
    row = rows[name]
    probed = json.loads(run("ffprobe", "-v", "error", "-show_streams", "-of", "json", f"{name}.mp4"))["streams"]
    video = next(stream for stream in probed if stream["codec_type"] == "video")
    turned = any(abs(side.get("rotation", 0)) == 90 for side in video.get("side_data_list", []))
    size = [video["width"], video["height"]][:: -1 if turned else 1]
    frames, per = map(int, video["avg_frame_rate"].split("/"))
    facts = (f"{name}: {row['delivered_s']} s, {row['width']}x{row['height']}, {row['fps']} fps, {row['audio']}")
    if [row["width"], row["height"]] != size or row["audio"] != any(stream["codec_type"] == "audio" for stream in probed):
        wrong.append(f"{facts}; ffprobe: {size}")
    if abs(row["delivered_s"] - float(video["duration"])) > 0.05 or abs(row["fps"] - frames / per) > 0.05 * frames / per:
        wrong.append(f"{facts}; ffprobe: {video['duration']} s, {frames / per} fps")
    tracks = json.loads(run("mediainfo", "--Output=JSON", f"{name}.mp4"))["media"]["track"]
    other = next(track for track in tracks if track["@type"] == "Video")
    sides = [int(other["Width"]), int(other["Height"])][:: -1 if turned else 1]
    if abs(row["delivered_s"] - float(other["Duration"])) > 0.05 or [row["width"], row["height"]] != sides:
        wrong.append(f"{facts}; mediainfo: {other['Duration']} s, {sides}")
    if abs(row["fps"] - float(other["FrameRate"])) > 0.05 * float(other["FrameRate"]):
        wrong.append(f"{facts}; mediainfo: {other['FrameRate']} fps")
assert not wrong, "\n".join(wrong)
print(f"{len(good)} videos of ffmpeg are read as ffprobe and mediainfo read them; {len(names) - len(good)} files that don't play are refused")

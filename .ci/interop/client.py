"""The official OpenAI client for Python as a client of the simulator: create, poll, download, and typed errors."""

import sys
import time

import openai

base_url = sys.argv[1]
as_json = {"Content-Type": "application/json"}


def client(key="k"):
    return openai.OpenAI(base_url=f"{base_url}/v1", api_key=key, max_retries=0)


def refused(error, status, code, call):
    try:
        call()
    except error as told:
        assert told.status_code == status, told
        assert told.code == code, (told.code, code)
        assert told.message, told
        return told
    raise AssertionError(f"{error.__name__} was expected")


videos = client().videos
# What it sends by default is a form, and the interface takes JSON only.
told = refused(openai.APIStatusError, 415, "not_json", lambda: videos.create(model="alpha-2", prompt="a crane"))
assert "application/json" in told.message, told.message

video = videos.create(model="alpha-2", prompt="a crane", extra_headers=as_json)
assert (video.status, video.progress, video.model, video.object) == ("queued", 0, "alpha-2", "video"), video
for _ in range(600):
    video = videos.retrieve(video.id)
    if video.status not in ("queued", "in_progress"):
        break
    time.sleep(0.1)
assert (video.status, video.progress) == ("completed", 100) and video.completed_at, video
assert videos.download_content(video.id).read()[4:8] == b"ftyp"

video = videos.create_and_poll(model="beta-2.0-lite", prompt="🦢" * 1500, extra_headers=as_json, poll_interval_ms=100)
assert (video.status, video.size) == ("completed", None), video

create = lambda **fields: lambda: videos.create(**{"model": "beta-2.0-lite", "prompt": "x", **fields}, extra_headers=as_json)
refused(openai.BadRequestError, 400, "unknown_model", create(model="sora-2"))
refused(openai.BadRequestError, 400, "prompt-too-long", create(prompt="🦢" * 1501))
refused(openai.BadRequestError, 400, "prompt-missing", create(prompt=None))
refused(openai.NotFoundError, 404, "not_found", lambda: videos.retrieve("nobody"))
refused(openai.AuthenticationError, 401, "unknown_key", lambda: client("unknown-key").videos.retrieve("nobody"))
refused(openai.PermissionDeniedError, 403, "key_without_group", lambda: client("key-without-group").videos.retrieve("x"))
print("openai for Python", openai.__version__)

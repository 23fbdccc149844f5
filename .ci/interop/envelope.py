"""A gateway that puts the simulator's tasks into the envelopes that gateways have: each task is completed, charged once, and never bought again."""

import json
import os
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

shotlist, simulator = sys.argv[1:]
JOBS = 12
polls = {}

WORDS = {"queued": "PENDING", "in_progress": "RUNNING", "completed": "SUCCESS", "failed": "FAILURE"}


def without_link(task):
    return {name: value for name, value in task.items() if name != "video_url"}


def errors_in_200(task, is_poll):
    """Every third poll is an error of the gateway under HTTP 200."""
    polls[task["id"]] = polls.get(task["id"], 0) + is_poll
    is_error = is_poll and polls[task["id"]] % 3 == 1
    return {"error": {"message": "upstream timed out", "code": 502}} if is_error else task


FORMS = {
    "blank-error": lambda task, _: {**task, "error": {"message": "", "code": ""}, "fail_reason": None},
    "success-error": lambda task, _: {**task, "status": WORDS[task["status"]], "error": {"code": 0, "message": "success"}},
    "data": lambda task, _: {"code": 0, "msg": "ok", "data": task},
    "reason-link": lambda task, _: {**without_link(task), "status": WORDS[task["status"]], "fail_reason": task.get("video_url") or ""},
    "outputs": lambda task, _: {"code": "success", "data": {**without_link(task), "outputs": [task["video_url"]] if task.get("video_url") else []}},
    "result": lambda task, _: {**without_link(task), "output": {"video": {"url": task.get("video_url")}}, "error": "none"},
    "errors-in-200": errors_in_200,
}


class Gateway(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def answer(self):
        _, form, path = self.path.split("/", 2)
        length = int(self.headers.get("Content-Length") or 0)
        headers = {"Authorization": self.headers.get("Authorization", ""), "Content-Type": "application/json"}
        body = self.rfile.read(length) if length else None
        asked = urllib.request.Request(f"{simulator}/{path}", body, headers, method=self.command)
        try:
            with urllib.request.urlopen(asked, timeout=30) as answered:
                status, text = answered.status, answered.read()
        except urllib.error.HTTPError as error:
            status, text = error.code, error.read()
        if status == 200:
            text = json.dumps(FORMS[form](json.loads(text), self.command == "GET")).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    do_GET = do_POST = answer

    def log_message(self, *_):
        pass


def charges():
    return len(json.load(urllib.request.urlopen(f"{simulator}/_sandbox/ledger", timeout=10))["charges"])


def run(form, url, *more):
    words = ["run", "m.yaml", "--yes", "--allow-private-hosts", "--first-poll", "0s", "--poll-interval", "200ms", "--poll-floor", "50ms", *more]
    environment = {**os.environ, "SHOTLIST_BASE_URL": f"{url}/{form}", "SHOTLIST_API_KEY": "k"}
    ended = subprocess.run([shotlist, *words], cwd=form, env=environment, capture_output=True, text=True, timeout=120)
    assert ended.returncode == 0, (form, ended.returncode, ended.stdout, ended.stderr)


gateway = ThreadingHTTPServer(("127.0.0.1", 0), Gateway)
threading.Thread(target=gateway.serve_forever, daemon=True).start()
url = f"http://127.0.0.1:{gateway.server_address[1]}"
for form in FORMS:
    os.makedirs(form)
    jobs = "".join(f"  - {{ id: j{n}, prompt: {form} {n} }}\n" for n in range(JOBS))
    open(f"{form}/m.yaml", "w").write(f"version: 1\nname: m\ndefaults: {{ model: alpha-2 }}\njobs:\n{jobs}")
    before = charges()
    run(form, url)
    run(form, url, "--retry-failed")
    rows = json.load(open(f"{form}/shotlist-out/m/report.json"))["jobs"]
    assert all(row["state"] == "completed" and os.path.exists(f"{form}/shotlist-out/m/{row['file']}") for row in rows), (form, rows)
    assert charges() - before == JOBS, (form, charges() - before)
    print(f"envelope {form}: {JOBS} completed, {JOBS} charged")
gateway.shutdown()

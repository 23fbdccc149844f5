"""The cost of a kept second: DuckDB finds the same sums in report.csv as `shotlist spend` finds in the ledger.

Usage: kept.py SHOTLIST
"""

import csv
import io
import json
import subprocess
import sys
from pathlib import Path

import duckdb

MODELS = {"alpha-2": 12, "beta-2.0-lite": 11}


def shotlist(*args):
    return subprocess.run([sys.argv[1], *args], check=True, stdout=subprocess.PIPE, text=True).stdout


jobs = "".join(f"  - {{ id: {model}-{n}, model: {model}, prompt: clip {n} }}\n" for model, most in MODELS.items() for n in range(most))
Path("kept.yaml").write_text(f"version: 1\nname: kept\njobs:\n{jobs}")
shotlist("run", "kept.yaml", "--sandbox", "-q")


def choose(keep, retake):
    report = json.loads(Path("shotlist-sandbox/kept/report.json").read_text())
    tasks = {job["id"]: job["task_id"] for job in report["jobs"] if job["id"] in keep + retake}
    choices = {"name": "kept", "batch": "", "reviewer": "anna", "keep": keep, "retake": retake, "tasks": tasks, "notes": {}}
    Path("choices.json").write_text(json.dumps(choices))
    shotlist("choose", "kept.yaml", "--sandbox", "choices.json")


choose([f"alpha-2-{n}" for n in range(6)] + ["beta-2.0-lite-0"], [f"alpha-2-{n}" for n in range(6, 9)] + ["beta-2.0-lite-1"])
shotlist("run", "kept.yaml", "--sandbox", "-q", "--retake", "@ledger")
choose([f"alpha-2-{n}" for n in range(6, 9)] + [f"beta-2.0-lite-{n}" for n in range(1, 10)], ["alpha-2-9"])
shotlist("report", "kept.yaml", "--sandbox")

query = """
SELECT model, count(*) FILTER (choice = 'keep'), coalesce(sum(delivered_s) FILTER (choice = 'keep'), 0),
       round(sum(cost_usd) FILTER (choice IN ('keep', 'retake')) / sum(delivered_s) FILTER (choice = 'keep'), 4)
FROM 'shotlist-sandbox/kept/report.csv' GROUP BY model ORDER BY model
"""
found = [(model, kept, float(seconds), float(usd)) for model, kept, seconds, usd in duckdb.sql(query).fetchall()]
lines = csv.DictReader(io.StringIO(shotlist("spend", "kept.yaml", "--sandbox", "--by", "model", "--format", "csv")))
told = [(line["model"], int(line["kept"]), float(line["kept_s"]), float(line["usd_per_kept_s"])) for line in lines]
assert found == told, (found, told)
print(f"the cost of a kept second: DuckDB finds the same for {len(found)} models")

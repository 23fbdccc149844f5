#!/usr/bin/env python3
"""Writes a manifest of N video jobs, the same bytes for the same arguments. Standard library only.

  python3 gen_manifest.py 10000 --seed 1 --out jobs.yaml
  python3 gen_manifest.py 10000 --seed 1 --format jsonl --out jobs.jsonl

Every prompt ends in its job's id, so that a submission seen by the server names its job.
Families alternate by the seed: alpha-2 jobs carry aspect_ratio, beta jobs carry size and duration.
"""
import argparse
import json
import random
import sys

WORDS = """paper boat drifts down rainy street camera low evening light slow pan over desert dunes at dawn old
lighthouse waves crash storm close shot hands knead bread flour dust window morning city tram neon puddles
reflections crowd umbrella forest fog deer turns head handheld macro dew spider web glass marble rolls track
kitchen steam kettle cat watches goldfish bowl drone rises vineyard hills train crosses viaduct snow village
smoke chimney child kite beach wind wide lens golden hour underwater coral turtle bubbles aerial harbour
fishing boats gulls market stalls spices copper pots dancer silhouette stage dust motes robot repairs clock
workshop sparks astronaut greenhouse tomatoes red planet horizon timelapse clouds mountain lake mirror""".split()
MODELS = ("alpha-2", "beta-2.0-lite", "beta-2.0-lite-fast")


def jobs(n, seed, lo, hi, models):
    r = random.Random(seed)
    width = max(6, len(str(n)))
    for i in range(1, n + 1):
        jid = f"job-{i:0{width}d}"
        text, size, want = [], 0, r.randint(lo, hi)
        while size < want:
            w = r.choice(WORDS)
            if text and r.random() < 0.12:
                text[-1] += ","
                size += 1
            text.append(w)
            size += len(w) + 1
        prompt = " ".join(text).capitalize() + " shot " + jid
        model = r.choice(models)
        j = {"id": jid, "model": model, "prompt": prompt}
        if model == "alpha-2":
            j["aspect_ratio"] = r.choice(("16:9", "9:16"))
        else:
            j["size"] = r.choice(("1280x720", "720x1280"))
            j["duration"] = r.randint(5, 10)
        yield j


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("n", type=int)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--format", choices=("yaml", "jsonl"), default="yaml")
    p.add_argument("--out", default="-")
    p.add_argument("--prompt-chars", default="60..180", help="shortest..longest prompt")
    p.add_argument("--models", default=",".join(MODELS))
    p.add_argument("--root", default="jobs", help="key that holds the list of jobs")
    p.add_argument("--header", default="", help="text put before the list, \\n for line ends")
    p.add_argument("--bare-ratio", action="store_true", help="write 16:9 unquoted (an integer, 969, in YAML 1.1)")
    a = p.parse_args()
    lo, hi = map(int, a.prompt_chars.split(".."))
    f = sys.stdout if a.out == "-" else open(a.out, "w", encoding="utf-8", newline="\n")
    it = jobs(a.n, a.seed, lo, hi, a.models.split(","))
    if a.format == "jsonl":
        for j in it:
            f.write(json.dumps(j) + "\n")
    else:
        if a.header:
            f.write(a.header.replace("\\n", "\n").rstrip("\n") + "\n")
        f.write(f"{a.root}:\n")
        for j in it:
            f.write(f"  - id: {j['id']}\n    model: {j['model']}\n    prompt: {j['prompt']}\n")
            if "aspect_ratio" in j:
                q = "" if a.bare_ratio else '"'
                f.write(f"    aspect_ratio: {q}{j['aspect_ratio']}{q}\n")
            else:
                f.write(f"    size: {j['size']}\n    duration: {j['duration']}\n")
    if f is not sys.stdout:
        f.close()


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Writes a container image as a tar of an OCI layout (image-spec 1.1), the same for the same commit.

  image.py FILE VERSION COMMIT SOURCE MACHINE=PROGRAM...
"""
import gzip
import hashlib
import io
import json
import os
import sys
import tarfile
from datetime import datetime, timezone

USER = 65532
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
CERTIFICATES = "etc/ssl/certs/ca-certificates.crt"
MEDIA = "application/vnd.oci.image."

file, version, commit, source, *programs = sys.argv[1:]
epoch = int(os.environ["SOURCE_DATE_EPOCH"])
created = datetime.fromtimestamp(epoch, timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
blobs = {}


def entry(tar, name, mode, content=None, user=0):
    """Adds a file, or a directory if there is no content."""
    info = tarfile.TarInfo(name)
    info.mode, info.mtime, info.uid, info.gid = mode, epoch, user, user
    if content is None:
        info.type = tarfile.DIRTYPE
    else:
        info.size = len(content)
    tar.addfile(info, io.BytesIO(content) if content is not None else None)


def blob(kind, content):
    """Keeps a blob, and describes it."""
    if not isinstance(content, bytes):
        content = json.dumps(content, sort_keys=True).encode()
    digest = hashlib.sha256(content).hexdigest()
    blobs[digest] = content
    return {"mediaType": MEDIA + kind, "digest": f"sha256:{digest}", "size": len(content)}


def read(path):
    with open(path, "rb") as file:
        return file.read()


def image(machine, program):
    """The manifest of one machine's image."""
    plain = io.BytesIO()
    with tarfile.open(fileobj=plain, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for name in ["bin", "etc", "etc/ssl", "etc/ssl/certs"]:
            entry(tar, name, 0o755)
        entry(tar, "bin/shotlist", 0o755, read(program))
        entry(tar, CERTIFICATES, 0o644, read(os.environ["CERTIFICATES"]))
        entry(tar, "etc/passwd", 0o644, f"shotlist:x:{USER}:{USER}::/videos:/none\n".encode())
        entry(tar, "tmp", 0o1777)
        # The user's, so that a new volume below it is as well.
        entry(tar, "videos", 0o755, user=USER)
        entry(tar, "videos/shotlist-out", 0o755, user=USER)
    layer = plain.getvalue()
    labels = {"title": "shotlist", "version": version, "revision": commit, "created": created, "licenses": "MIT OR Apache-2.0"}
    if source:
        labels["source"] = source
    config = {
        "architecture": ARCHITECTURES[machine],
        "os": "linux",
        "created": created,
        "config": {
            "User": f"{USER}:{USER}",
            "Entrypoint": ["/bin/shotlist"],
            "WorkingDir": "/videos",
            "Volumes": {"/videos": {}},
            "Env": ["PATH=/bin", "HOME=/videos", f"SSL_CERT_FILE=/{CERTIFICATES}"],
            "Labels": {f"org.opencontainers.image.{name}": value for name, value in labels.items()},
        },
        "rootfs": {"type": "layers", "diff_ids": ["sha256:" + hashlib.sha256(layer).hexdigest()]},
        "history": [{"created": created, "created_by": "packaging/image"}],
    }
    manifest = {
        "schemaVersion": 2,
        "mediaType": MEDIA + "manifest.v1+json",
        "config": blob("config.v1+json", config),
        "layers": [blob("layer.v1.tar+gzip", gzip.compress(layer, mtime=0))],
    }
    return {**blob("manifest.v1+json", manifest), "platform": {"architecture": ARCHITECTURES[machine], "os": "linux"}}


manifests = [image(*program.split("=", 1)) for program in programs]
index = {"schemaVersion": 2, "mediaType": MEDIA + "index.v1+json", "manifests": manifests}
named = {**blob("index.v1+json", index), "annotations": {"org.opencontainers.image.ref.name": version}}
with tarfile.open(file, "w", format=tarfile.USTAR_FORMAT) as tar:
    entry(tar, "oci-layout", 0o644, b'{"imageLayoutVersion":"1.0.0"}')
    entry(tar, "index.json", 0o644, json.dumps({"schemaVersion": 2, "manifests": [named]}).encode())
    for name in ["blobs", "blobs/sha256"]:
        entry(tar, name, 0o755)
    for digest, content in sorted(blobs.items()):
        entry(tar, f"blobs/sha256/{digest}", 0o644, content)

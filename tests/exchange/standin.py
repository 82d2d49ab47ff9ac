"""A stand-in for the hub: a server on this machine that answers the hub's own client.

It knows data sets, commits with their files inside, listings and downloads, and nothing else.
"""

import base64
import hashlib
import json
import re
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Hub:
    """Data sets by name: every commit a dictionary of files."""

    def __init__(self):
        self.commits = {}
        """commits[repo] is a list of (sha, files)."""
        self.downloads = []
        """Names of the files that were sent whole or in part."""
        self.committed = 0
        """Files that commits brought."""

    def files(self, repo, revision="main"):
        for sha, files in reversed(self.commits[repo]):
            if revision in ("main", sha):
                return sha, files
        raise KeyError(revision)

    def commit(self, repo, added, removed=()):
        _, files = self.files(repo)
        files = {name: data for name, data in files.items() if name not in removed} | added
        sha = hashlib.sha1(repr(sorted(files.items())).encode()).hexdigest()
        self.commits[repo].append((sha, files))
        self.committed += len(added)
        return sha


class Handler(BaseHTTPRequestHandler):
    hub: Hub
    protocol_version = "HTTP/1.1"

    @property
    def address(self):
        return f"http://{self.headers['Host']}"

    def log_message(self, *_):
        pass

    def body(self):
        if self.headers.get("Transfer-Encoding") == "chunked":
            content = b""
            while size := int(self.rfile.readline(), 16):
                content += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
            return content
        return self.rfile.read(int(self.headers.get("Content-Length", 0)))

    def answer(self, value, status=200):
        content = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def missing(self):
        self.send_response(404)
        self.send_header("X-Error-Code", "RepoNotFound")
        self.send_header("X-Error-Message", "Repository not found")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def do_POST(self):
        content = self.body()
        if self.path == "/api/repos/create":
            asked = json.loads(content)
            repo = "/".join(filter(None, [asked.get("organization"), asked["name"]]))
            self.hub.commits.setdefault(repo, [("0" * 40, {})])
            self.answer({"url": f"{self.address}/datasets/{repo}", "name": repo})
        elif self.path == "/api/validate-yaml":
            self.answer({"errors": [], "warnings": []})
        elif found := re.fullmatch(r"/api/datasets/(.+)/preupload/\w+", self.path):
            paths = [file["path"] for file in json.loads(content)["files"]]
            modes = {"uploadMode": "regular", "shouldIgnore": False}
            self.answer({"files": [{"path": path, **modes} for path in paths]})
        elif found := re.fullmatch(r"/api/datasets/(.+)/commit/\w+", self.path):
            lines = list(map(json.loads, content.splitlines()))
            removed = [line["value"]["path"] for line in lines if line["key"] == "deletedFile"]
            added = {
                line["value"]["path"]: base64.b64decode(line["value"]["content"])
                for line in lines
                if line["key"] == "file"
            }
            sha = self.hub.commit(found[1], added, removed)
            url = f"{self.address}/datasets/{found[1]}/commit/{sha}"
            self.answer({"success": True, "commitOid": sha, "commitUrl": url, "hookOutput": ""})
        else:
            self.missing()

    def do_HEAD(self):
        self.do_GET()

    def do_GET(self):
        path = self.path.partition("?")[0]
        try:
            if found := re.fullmatch(r"/api/datasets/(.+?)/tree/(\w+)(?:/.*)?", path):
                _, files = self.hub.files(found[1], found[2])
                self.answer([self.described(name, data) for name, data in files.items()])
            elif found := re.fullmatch(r"/api/datasets/(.+?)(?:/revision/(\w+))?", path):
                sha, files = self.hub.files(found[1], found[2] or "main")
                listed = [{"rfilename": name} for name in files]
                self.answer({"id": found[1], "sha": sha, "private": False, "siblings": listed})
            elif found := re.fullmatch(r"/datasets/(.+)/resolve/(\w+)/(.+)", path):
                self.send_file(found[1], found[2], found[3])
            else:
                self.missing()
        except KeyError:
            self.missing()

    def described(self, name, data):
        oid = hashlib.sha1(data).hexdigest()
        return {"type": "file", "path": name, "size": len(data), "oid": oid}

    def send_file(self, repo, revision, quoted):
        from urllib.parse import unquote

        name = unquote(quoted)
        sha, files = self.hub.files(repo, revision)
        data = files[name]
        start = 0
        if asked := re.fullmatch(r"bytes=(\d+)-", self.headers.get("Range", "")):
            start = int(asked[1])
        self.send_response(206 if start else 200)
        self.send_header("ETag", f'"{hashlib.sha1(data).hexdigest()}"')
        self.send_header("X-Repo-Commit", sha)
        self.send_header("Accept-Ranges", "bytes")
        self.send_header("Content-Length", str(len(data) - start))
        if start:
            self.send_header("Content-Range", f"bytes {start}-{len(data) - 1}/{len(data)}")
        self.end_headers()
        if self.command == "HEAD":
            return
        self.hub.downloads.append(name)
        self.wfile.write(data[start:])


@contextmanager
def served():
    """A hub and its address."""
    hub = Hub()
    handler = type("OwnHandler", (Handler,), {"hub": hub})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield hub, f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@contextmanager
def standing_in(monkeypatch, cache):
    """An empty hub that the hub's client takes for the real one, with a cache of its own."""
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(cache))
    monkeypatch.setenv("HF_TOKEN", "hf_nobody")
    with served() as (hub, address):
        template = f"{address}/{{repo_id}}/resolve/{{revision}}/{{filename}}"
        monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", address)
        monkeypatch.setattr("huggingface_hub.constants.HUGGINGFACE_CO_URL_TEMPLATE", template)
        yield hub

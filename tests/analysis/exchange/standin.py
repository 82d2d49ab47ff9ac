"""A stand-in for the hub: a server on this machine that answers the hub's own client.

It knows data sets, commits, large files that are sent ahead of a commit (at once or in parts),
listings and downloads, and nothing else. It can be told to refuse, and to break off.
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
        self.private = {}
        """Whether a data set was made private."""
        self.objects = {}
        """Large files by their SHA-256, as they were sent ahead of commits."""
        self.uploads = []
        """What was sent ahead: the SHA-256, and the part's number or None."""
        self.part_size = None
        """Bytes of a part where large files are sent in parts."""
        self.token = None
        """The only token that is let in."""
        self.refusals = []
        """Pairs of a pattern and a status: the next request whose line matches is refused."""
        self.cut_at = None
        """Bytes after which the next download breaks off."""

    def refusal(self, line):
        """The status that a request is refused with, if it is to be refused."""
        for pattern, status in self.refusals:
            if re.search(pattern, line):
                self.refusals.remove((pattern, status))
                return status
        return None

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

    def refuse(self, status, code="", message=""):
        self.send_response(status)
        self.send_header("X-Error-Code", code)
        self.send_header("X-Error-Message", message)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def missing(self):
        self.refuse(404, "RepoNotFound", "Repository not found")

    def is_refused(self):
        """Whether the request was answered with a refusal."""
        status = self.hub.refusal(f"{self.command} {self.path}")
        if self.hub.token and self.headers.get("Authorization") != f"Bearer {self.hub.token}":
            status = 401
        if status:
            self.refuse(status, message=f"the hub says {status}")
        return bool(status)

    def do_PUT(self):
        content = self.body()
        if self.is_refused():
            return
        oid, part = re.fullmatch(r"/objects/(\w+)(?:/(\d+))?", self.path).groups()
        self.hub.uploads.append((oid, part))
        self.hub.objects[oid] = self.hub.objects.get(oid, b"") + content if part else content
        self.send_response(200)
        self.send_header("ETag", f'"{len(self.hub.uploads)}"')
        self.send_header("Content-Length", "0")
        self.end_headers()

    def instructions(self, wanted):
        """How a large file is to be sent; nothing more is said of one that is there."""
        oid, size, part = wanted["oid"], wanted["size"], self.hub.part_size
        described = {"oid": oid, "size": size}
        if hashlib.sha256(self.hub.objects.get(oid, b"")).hexdigest() == oid:
            return described
        self.hub.objects.pop(oid, None)
        place, header = f"{self.address}/objects/{oid}", {}
        if part:
            numbers = range(1, -(-size // part) + 1)
            header = {"chunk_size": str(part)} | {f"{n:05}": f"{place}/{n}" for n in numbers}
        verify = {"href": f"{self.address}/verify"}
        return described | {
            "actions": {"upload": {"href": place, "header": header}, "verify": verify}
        }

    def committed_file(self, line):
        """The name of a file in a commit, and its content, which may have been sent ahead."""
        value = line["value"]
        sent_ahead = line["key"] == "lfsFile"
        ahead = self.hub.objects[value["oid"]] if sent_ahead else None
        return value["path"], ahead if sent_ahead else base64.b64decode(value["content"])

    def do_POST(self):
        content = self.body()
        if self.is_refused():
            return
        if self.path == "/api/repos/create":
            asked = json.loads(content)
            repo = "/".join(filter(None, [asked.get("organization"), asked["name"]]))
            if repo in self.hub.commits:
                self.answer({"url": f"{self.address}/datasets/{repo}"}, 409)
                return
            self.hub.commits[repo] = [("0" * 40, {})]
            self.hub.private[repo] = asked.get("private", asked.get("visibility") == "private")
            self.answer({"url": f"{self.address}/datasets/{repo}", "name": repo})
        elif self.path == "/verify" or self.path.startswith("/objects/"):
            oid = json.loads(content)["oid"]
            whole = hashlib.sha256(self.hub.objects[oid]).hexdigest() == oid
            self.answer({}, 200 if whole else 400)
        elif self.path.endswith(".git/info/lfs/objects/batch"):
            wanted = json.loads(content)["objects"]
            self.answer({"objects": [self.instructions(one) for one in wanted]})
        elif self.path == "/api/validate-yaml":
            self.answer({"errors": [], "warnings": []})
        elif found := re.fullmatch(r"/api/datasets/(.+)/preupload/\w+", self.path):
            paths = [file["path"] for file in json.loads(content)["files"]]
            modes = {path: "lfs" if path.endswith(".parquet") else "regular" for path in paths}
            self.answer(
                {
                    "files": [
                        {"path": path, "uploadMode": mode, "shouldIgnore": False}
                        for path, mode in modes.items()
                    ]
                }
            )
        elif found := re.fullmatch(r"/api/datasets/(.+)/commit/\w+", self.path):
            lines = list(map(json.loads, content.splitlines()))
            removed = [line["value"]["path"] for line in lines if line["key"] == "deletedFile"]
            added = dict(
                self.committed_file(line) for line in lines if line["key"] in ("file", "lfsFile")
            )
            sha = self.hub.commit(found[1], added, removed)
            url = f"{self.address}/datasets/{found[1]}/commit/{sha}"
            self.answer({"success": True, "commitOid": sha, "commitUrl": url, "hookOutput": ""})
        else:
            self.missing()

    def do_HEAD(self):
        self.do_GET()

    def do_GET(self):
        if self.is_refused():
            return
        path = self.path.partition("?")[0]
        try:
            if found := re.fullmatch(r"/api/datasets/(.+?)/tree/(\w+)(?:/.*)?", path):
                _, files = self.hub.files(found[1], found[2])
                self.answer([self.described(name, data) for name, data in files.items()])
            elif found := re.fullmatch(r"/api/datasets/(.+?)(?:/revision/(\w+))?", path):
                sha, files = self.hub.files(found[1], found[2] or "main")
                listed = [{"rfilename": name} for name in files]
                private = self.hub.private.get(found[1], False)
                told = {"id": found[1], "sha": sha, "private": private}
                self.answer(told | ({"siblings": listed} if listed else {}))  # as the hub does
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
        cut, self.hub.cut_at = self.hub.cut_at, None
        self.wfile.write(data[start:][:cut])
        self.close_connection = cut is not None


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
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_DISABLE_XET", True)
    monkeypatch.setattr("huggingface_hub.utils._http.time.sleep", lambda _: None)
    monkeypatch.setenv("HF_TOKEN", "hf_nobody")
    with served() as (hub, address):
        template = f"{address}/{{repo_id}}/resolve/{{revision}}/{{filename}}"
        monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", address)
        monkeypatch.setattr("huggingface_hub.constants.HUGGINGFACE_CO_URL_TEMPLATE", template)
        yield hub

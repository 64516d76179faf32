"""The part of the Hub's API that a model's upload and download use, on this machine: for the real
client, which is sent here by HF_ENDPOINT.
"""

import base64
import hashlib
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class HubServer(ThreadingHTTPServer):
    """Repositories by name, their files by commit, and what was asked for."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.commits: dict[tuple[str, str], dict[str, bytes]] = {}
        self.asked: list[tuple[str, str]] = []
        self.endpoint = f"http://127.0.0.1:{self.server_port}"


@contextmanager
def hub_server() -> Iterator[HubServer]:
    server = HubServer()
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


class _Handler(BaseHTTPRequestHandler):
    server: HubServer
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        path, repository = self._path()
        if path == "/api/repos/create":
            asked = json.loads(body)
            name = "/".join(filter(None, (asked.get("organization"), asked["name"])))
            self._json({"url": f"{self.server.endpoint}/{name}"})
        elif path == "/api/validate-yaml":
            self._json({"errors": [], "warnings": []})
        elif "/preupload/" in path:
            files = [{"path": f["path"]} for f in json.loads(body)["files"]]
            self._json(
                {"files": [f | {"uploadMode": "regular", "shouldIgnore": False} for f in files]}
            )
        elif "/commit/" in path:
            lines = [json.loads(line) for line in body.splitlines()]
            sent = [line["value"] for line in lines if line["key"] == "file"]
            commit = hashlib.sha1(body).hexdigest()
            self.server.commits[repository, commit] = {
                f["path"]: base64.b64decode(f["content"]) for f in sent
            }
            url = f"{self.server.endpoint}/{repository}/commit/{commit}"
            self._json({"commitUrl": url, "commitOid": commit, "success": True})
        else:
            self._json([])

    def do_GET(self) -> None:
        path, repository = self._path()
        if "/resolve/" in path:
            _, _, place = path.partition("/resolve/")
            commit, _, name = place.partition("/")
            data = self.server.commits[repository, commit][name]
            etag = hashlib.sha1(data).hexdigest()
            self._send(data, {"ETag": f'"{etag}"', "X-Repo-Commit": commit})
            return
        commit = path.rpartition("/")[2]
        files = self.server.commits.get((repository, commit), {})
        if "/tree/" in path:
            self._json([_entry(name, data) for name, data in files.items()])
        else:
            siblings = [{"rfilename": name} for name in files]
            self._json({"id": repository, "sha": commit, "siblings": siblings, "private": False})

    do_HEAD = do_GET

    def _path(self) -> tuple[str, str]:
        """Without what follows a question mark; and the repository that it speaks of."""
        path = self.path.partition("?")[0]
        self.server.asked.append((self.command, path))
        return path, "/".join(path.removeprefix("/api/models").split("/")[1:3])

    def _json(self, value: Any) -> None:
        self._send(json.dumps(value).encode(), {"Content-Type": "application/json"})

    def _send(self, data: bytes, headers: dict[str, str]) -> None:
        self.send_response(200)
        for name, value in {**headers, "Content-Length": str(len(data))}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)


def _entry(name: str, data: bytes) -> dict[str, Any]:
    oid = hashlib.sha1(data).hexdigest()
    return {"type": "file", "path": name, "size": len(data), "oid": oid}

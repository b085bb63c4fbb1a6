# SPDX-License-Identifier: GPL-3.0-or-later
"""A model hub on the loopback for tests/system/get.sh: hub.py FILE FOLDER [CERTIFICATE]. CERTIFICATE is a
PEM file that has the key too: then it speaks HTTPS. Writes its port to FOLDER/port and a line per request
to FOLDER/log. A repository t/NAME serves FILE as NAME.gguf, in the manner of its name; what a server at
fault does is decided here."""
import hashlib
import http.server
import json
import os
import ssl
import sys
import time

DATA = open(sys.argv[1], "rb").read()
FOLDER = sys.argv[2]
SHA = hashlib.sha256(DATA).hexdigest()
COMMIT = "c0" * 20
CONFIG = b'{"model_type": "llama"}\n'
asked = {}  # requests for the bytes of a file, by path


def git_name(data):
    return hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()


def files(name):
    """path -> (bytes, etag)"""
    big = (DATA, SHA)
    if name == "wrong":
        return {"wrong.gguf": (DATA, "0" * 64)}
    if name == "shards":
        third = len(DATA) // 3
        parts = [DATA[:third], DATA[third:2 * third], DATA[2 * third:]]
        return {f"q/s-Q4_K_M-0000{i + 1}-of-00003.gguf": (p, hashlib.sha256(p).hexdigest())
                for i, p in enumerate(parts)}
    if name == "types":
        models = {f"m-{t}.gguf": big for t in ("Q4_K_M", "Q8_0", "Q4_0", "Q4_0_4_4")}
        return {**models, "mmproj-m-F16.gguf": big, "README.md": (CONFIG, git_name(CONFIG))}
    if name == "folder":
        return {"config.json": (CONFIG, git_name(CONFIG)), "model.safetensors": big,
                "original/consolidated.safetensors": big,
                "tokenizer.json": (CONFIG, git_name(CONFIG)), "onnx/model.onnx": big}
    if name == "evil":
        return {"../../../x.gguf": big, "/tmp/x.gguf": big, "a/../../y.gguf": big, "c\x1b[2Jd.gguf": big,
                "evil.gguf": big}
    if name == "gitname":
        return {"gitname.gguf": (DATA, git_name(DATA))}
    if os.path.exists(os.path.join(FOLDER, f"{name}.gguf")):  # a file of its own
        with open(os.path.join(FOLDER, f"{name}.gguf"), "rb") as f:
            own = f.read()
        return {f"{name}.gguf": (own, hashlib.sha256(own).hexdigest())}
    if name == "none":
        return {"README.md": (CONFIG, git_name(CONFIG))}
    return {f"{name}.gguf": big}


class Hub(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        pass

    def head(self, code, length, **headers):
        self.send_response(code)
        for key, value in headers.items():
            self.send_header(key.replace("_", "-"), str(value))
        self.send_header("Content-Length", str(length))
        self.end_headers()

    def reply(self, code, body=b"", **headers):
        self.head(code, len(body), **headers)
        if self.command != "HEAD":
            self.wfile.write(body)

    def hang_up(self):
        self.wfile.flush()
        self.close_connection = True
        self.connection.close()

    def do_HEAD(self):
        self.do_GET()

    def do_GET(self):
        with open(os.path.join(FOLDER, "log"), "a", encoding="utf-8") as f:
            host, span = self.headers["Host"].split(":")[0], self.headers.get("Range", "-")
            f.write(f"{self.command} {host} {self.path} {span} {self.headers.get('Authorization', '-')}\n")
        path = self.path.split("?")[0]
        parts = path.split("/")
        if path.startswith("/api/models/t/"):
            self.list(parts[4])
        elif path.startswith("/t/") and len(parts) > 5 and parts[3] == "resolve":
            self.file(parts[2], "/".join(parts[5:]))
        elif path.startswith("/cdn/"):
            self.data(DATA, "cdn", {})
        elif path.startswith("/plain/"):
            self.plain(parts[2])
        else:
            self.reply(404)

    def plain(self, name):
        """A file with a version, which FOLDER/version may change."""
        version = "v1"
        if os.path.exists(os.path.join(FOLDER, "version")):
            with open(os.path.join(FOLDER, "version"), encoding="utf-8") as f:
                version = f.read().strip()
        tag, day = f'"{version}"', f"Mon, 0{version[1]} Jan 2024 00:00:00 GMT"
        if version == "v9":
            return self.reply(503)
        if tag in (self.headers.get("If-None-Match"),) or day == self.headers.get("If-Modified-Since"):
            return self.reply(304)
        data = DATA if version == "v1" else DATA + bytes(32)
        # "dated.gguf" has no ETag, "bare.gguf" neither
        self.data(data, "wait" if version == "v3" else name, {} if name == "bare.gguf" else
                  {"Last-Modified": day} if name == "dated.gguf" else {"ETag": tag})

    def list(self, name):
        items = [{"type": "directory", "path": "q", "size": 0}]
        for path, (data, etag) in files(name).items():
            item = {"type": "file", "path": path, "size": len(data)}
            if len(etag) == 64:
                item["lfs"] = {"oid": etag, "size": len(data)}
            items.append(item)
        if name == "types":
            sizes = {"m-Q8_0.gguf": 8, "m-Q4_K_M.gguf": 5, "m-Q4_0.gguf": 4}
            for item in items:
                item["lfs"] = {"size": sizes.get(item["path"], 3) * 10**9}
        if name == "missing":
            return self.reply(404, b'{"error": "Repository not found"}')
        if name == "notjson":
            return self.reply(200, b"<html>")
        if name == "gated" and self.headers.get("Authorization") != "Bearer secret":
            return self.reply(401, b"{}")
        if name == "shards" and "cursor=" not in self.path:
            self.reply(200, json.dumps(items[:2]).encode(),
                       Link=f'<http://{self.headers["Host"]}{self.path}&cursor=2>; rel="next"')
        else:
            self.reply(200, json.dumps(items[2:] if name == "shards" else items).encode())

    def file(self, name, path):
        table = files(name)
        if path not in table or name == "gone":
            return self.reply(404, b"Entry not found")
        data, etag = table[path]
        common = {"ETag": f'"{etag}"', "X-Linked-Etag": f'"{etag}"', "X-Linked-Size": str(len(data)),
                  "X-Repo-Commit": COMMIT}
        if len(etag) == 40:
            del common["X-Linked-Etag"], common["X-Linked-Size"]
        if name == "gated" and self.headers.get("Authorization") != "Bearer secret":
            return self.reply(401)
        if name == "moved" and "/t/moved/" in self.path and "new=1" not in self.path:
            return self.reply(307, Location=self.path + "?new=1")
        if name == "loop":
            return self.reply(302, Location=self.path, **{k.replace("-", "_"): v for k, v in common.items()})
        if name in ("cdn", "gated"):
            port = self.server.server_address[1]
            return self.reply(302, Location=f"http://localhost:{port}/cdn/{name}",
                              **{k.replace("-", "_"): v for k, v in common.items()})
        self.data(data, name, common)

    def data(self, data, name, common):
        headers = {k.replace("-", "_"): v for k, v in common.items()}
        if self.command == "HEAD":
            return self.head(200, len(data), Accept_Ranges="bytes", **headers)
        nth = asked[self.path] = asked.get(self.path, 0) + 1
        first = int(self.headers.get("Range", "bytes=0-")[6:].split("-")[0])
        half = len(data) // 2
        if name == "busy" and nth < 3:
            return self.reply(429, b"later", Retry_After="1")
        if name == "flaky" and nth < 3:
            return self.reply(503)
        if name == "broken":
            return self.reply(500)
        if name == "short":  # announces half of it here
            return self.reply(200, data[:half], **headers)
        if name == "long":
            return self.reply(200, data + b"x" * 100, **headers)
        if name == "noranges" and nth > 1:
            return self.reply(200, data, **headers)
        if name == "badrange" and nth == 2:
            return self.reply(206, data, Content_Range=f"bytes 0-{len(data) - 1}/{len(data)}", **headers)
        if name == "norest" and nth == 2:
            return self.reply(416, Content_Range=f"bytes */{len(data)}")
        code = 206 if "Range" in self.headers else 200
        if code == 206:
            headers["Content_Range"] = f"bytes {first}-{len(data) - 1}/{len(data)}"
        self.head(code, len(data) - first, **headers)
        if name in ("cut", "noranges", "badrange", "norest") and first + half // 2 < len(data):
            self.wfile.write(data[first:first + half // 2])
            return self.hang_up()
        if name in ("wait", "refused"):  # the second half comes when FOLDER/go exists
            self.wfile.write(data[first:half])
            self.wfile.flush()
            while not os.path.exists(os.path.join(FOLDER, "go")):
                time.sleep(0.02)
            first = max(first, half)
        try:
            self.wfile.write(data[first:])
        except OSError:
            self.close_connection = True


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request, client_address):
        pass  # a client that goes away


server = Server(("127.0.0.1", 0), Hub)
if len(sys.argv) > 3:
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(sys.argv[3])
    server.socket = tls.wrap_socket(server.socket, server_side=True)
with open(os.path.join(FOLDER, "port.new"), "w", encoding="utf-8") as f:
    f.write(str(server.server_address[1]))
os.rename(os.path.join(FOLDER, "port.new"), os.path.join(FOLDER, "port"))
server.serve_forever()

# SPDX-License-Identifier: GPL-3.0-or-later
"""A client of qsf-serve for the tests: starts servers, asks, reads streams. Only the loopback is used."""
import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time

failures = []


def check(ok, *what):
    if not ok:
        failures.append(what)
        print("FAIL:", *what, flush=True)
    return ok


def finish():
    sys.exit(1 if failures else 0)


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("localhost")
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(self.path)


class Server:
    """A running server; its port is known when it answers requests."""

    def __init__(self, *args, listen="127.0.0.1:0"):
        self.err = open(os.environ["work"] + "/serve.err", "w+")
        command = [os.environ["QSF_BUILDDIR"] + "/qsf-serve", "--no-config", "--listen", listen, *args]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=self.err, text=True)
        line = self.process.stdout.readline()
        found = re.fullmatch(r"listening on (http://[\d.]+:(\d+)|unix:(.*))\n", line)
        if not found:
            self.process.wait()
            self.err.seek(0)
            raise SystemExit(f"FAIL: no server: {line!r} {self.err.read()}")
        self.port = int(found.group(2) or 0)
        self.path = found.group(3)

    def connect(self):
        return UnixConnection(self.path) if self.path else http.client.HTTPConnection("127.0.0.1", self.port)

    def socket(self):
        return socket.create_connection(("127.0.0.1", self.port))

    def ask(self, path, body=None, method=None, headers=None):
        """status, parsed body or text, headers"""
        c = self.connect()
        data = body if isinstance(body, (bytes, type(None))) else json.dumps(body)
        c.request(method or ("POST" if data is not None else "GET"), path, data, headers or {})
        r = c.getresponse()
        text = r.read()
        c.close()
        is_json = r.headers.get("Content-Type") == "application/json"
        return r.status, json.loads(text) if is_json and text else text.decode(), r.headers

    def chat(self, text, **more):
        messages = text if isinstance(text, list) else [{"role": "user", "content": text}]
        return self.ask("/v1/chat/completions", {"messages": messages, **more})

    def stream(self, body, path="/v1/chat/completions"):
        """The events of a stream; the last one must be [DONE]."""
        c = self.connect()
        c.request("POST", path, json.dumps({**body, "stream": True}))
        r = c.getresponse()
        check(r.status == 200, "a stream has the status", r.status)
        check(r.headers["Content-Type"] == "text/event-stream", "type of a stream")
        events = r.read().decode().split("\n\n")
        c.close()
        check(events[-1] == "" and events[-2] == "data: [DONE]", "the end of a stream:", events[-2:])
        check(all(e.startswith("data: ") and "\n" not in e for e in events[:-1]), "events have one line")
        return [json.loads(e[6:]) for e in events[:-2]]

    def metric(self, name):
        _, text, _ = self.ask("/metrics")
        found = re.search(rf"^qsf_{name} (\S+)$", text, re.M)
        return float(found.group(1)) if found else None

    def wait(self, name, at_least):
        """Waits until a metric has this value."""
        while (self.metric(name) or 0) < at_least:
            if self.process.poll() is not None:
                raise SystemExit("FAIL: the server ended")
            time.sleep(0.01)

    def forgets(self):
        """Whether all memory of requests is given back: the server may still be at work when a client has its answer."""
        for _ in range(6000):
            if self.metric("text_bytes") == 0:
                return True
            time.sleep(0.01)
        return False

    def stop(self, sig=signal.SIGTERM):
        """Ends it; its exit status."""
        self.process.send_signal(sig)
        status = self.process.wait()
        self.err.seek(0)
        text = self.err.read()
        check("Sanitizer" not in text and "runtime error" not in text, "sanitizer report:", text)
        return status


def text_of(events):
    return "".join(e["choices"][0]["delta"].get("content") or "" for e in events if e["choices"])

# SPDX-License-Identifier: GPL-3.0-or-later
"""64 clients of a server that runs already (PORT, PID), for some seconds: ones that ask and wait, stream,
read slowly, go away in the middle, send slowly, and send nonsense. Prints what happened. Run by
serve_load.sh."""
import http.client
import json
import os
import random
import re
import socket
import struct
import sys
import threading
import time

PORT, PID, SECONDS = int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])
END = time.monotonic() + SECONDS
counts = {}
lock = threading.Lock()
bad = []
QUESTION = {"messages": [{"role": "user", "content": "How do I set the temperature?"}], "temperature": 0}


def count(what):
    with lock:
        counts[what] = counts.get(what, 0) + 1


def fail(*what):
    with lock:
        bad.append(what)


def post(body, path="/v1/chat/completions"):
    c = http.client.HTTPConnection("127.0.0.1", PORT, timeout=120)
    c.request("POST", path, body if isinstance(body, bytes) else json.dumps(body))
    return c, c.getresponse()


def ask(rnd):
    body = dict(QUESTION, max_tokens=rnd.choice([1, 20, 60]))
    if rnd.random() < 0.3:
        body["messages"] = [{"role": "user", "content": "word " * rnd.randrange(1, 400)}]
    if rnd.random() < 0.2:
        body["n"] = rnd.randrange(2, 5)
    c, r = post(body)
    data = r.read()
    c.close()
    count(f"whole {r.status}")
    if r.status == 200 and not json.loads(data)["usage"]["completion_tokens"]:
        fail("an answer without tokens", data)


def ask_ids(rnd):
    c, r = post({"prompt": [rnd.randrange(32, 127)] * rnd.choice([1, 300, 20000]), "echo": True, "logprobs": 1, "max_tokens": 1,
                 "n": rnd.choice([1, 2])}, "/v1/completions")
    r.read()
    c.close()
    count(f"ids {r.status}")


def stream(rnd):
    c, r = post(dict(QUESTION, stream=True, logprobs=rnd.random() < 0.3, max_tokens=40))
    data = r.read()
    c.close()
    count(f"stream {r.status}")
    if r.status == 200 and not data.endswith(b"data: [DONE]\n\n"):
        fail("a stream without an end", data[-200:])


def leave(rnd):
    c, r = post(dict(QUESTION, stream=True, ignore_eos=True, max_tokens=500))
    if r.status == 200:
        r.readline()
    if rnd.random() < 0.5:  # with a reset
        c.sock and c.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    c.close()
    count(f"left {r.status}")


def leave_queue(rnd):
    s = socket.create_connection(("127.0.0.1", PORT))
    body = json.dumps(dict(QUESTION, max_tokens=50)).encode()
    s.sendall(b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%s"
              % (len(body), body))
    s.close()
    count("left at once")


def read_slowly(rnd):
    s = socket.socket()
    s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
    s.connect(("127.0.0.1", PORT))
    body = json.dumps(dict(QUESTION, stream=True, ignore_eos=True, max_tokens=300, logprobs=True,
                           top_logprobs=8)).encode()
    s.sendall(b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%s"
              % (len(body), body))
    s.settimeout(60)
    for _ in range(rnd.randrange(1, 30)):
        if not s.recv(500):
            break
        time.sleep(0.02)
    s.close()
    count("slow reader")


def send_slowly(rnd):
    s = socket.create_connection(("127.0.0.1", PORT))
    try:
        for b in b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 30\r\n\r\n{":
            s.sendall(bytes([b]))
            if rnd.random() < 0.1:
                time.sleep(0.01)
    except OSError:
        pass
    s.close()
    count("slow sender")


def nonsense(rnd):
    s = socket.create_connection(("127.0.0.1", PORT))
    kind = rnd.randrange(4)
    try:
        if kind == 0:
            s.sendall(rnd.randbytes(rnd.randrange(1, 3000)))
        elif kind == 1:
            s.sendall(b"GET /" + b"x" * 30000)
        elif kind == 2:
            body = rnd.randbytes(rnd.randrange(1, 60000))
            s.sendall(b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%s"
                      % (len(body), body))
        else:
            s.sendall(b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
                      + b"8000\r\n" + b" " * 32768 + b"\r\n" + b"ffffffffffffffffff\r\n")
        s.settimeout(5)
        s.recv(100)
    except OSError:
        pass
    s.close()
    count("nonsense")


def large(rnd):
    try:
        c, r = post(b'{"messages": [{"role": "user", "content": "' + b"a b " * rnd.randrange(1000, 60000) + b'"}]}')
    except OSError:
        count("large, closed")
        return
    r.read()
    c.close()
    count(f"large {r.status}")
    if r.status not in (400, 413, 429, 503):
        fail("a prompt that is too long", r.status)


KINDS = [ask, ask_ids, stream, leave, leave_queue, read_slowly, send_slowly, nonsense, large]


def client(i):
    rnd = random.Random(i)
    while time.monotonic() < END:
        try:
            rnd.choice(KINDS)(rnd)
        except (OSError, http.client.HTTPException) as e:
            count(type(e).__name__)
            time.sleep(0.01)


def rss():
    with open(f"/proc/{PID}/status") as f:
        return int(re.search(r"VmHWM:\s*(\d+)", f.read()).group(1)) / 1024


threads = [threading.Thread(target=client, args=(i,)) for i in range(64)]
for t in threads:
    t.start()
for t in threads:
    t.join()
print(f"peak {rss():.1f} MB;", ", ".join(f"{k}: {v}" for k, v in sorted(counts.items())))
for what in bad[:20]:
    print("FAIL:", *what)
sys.exit(1 if bad else 0)

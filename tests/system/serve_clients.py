# SPDX-License-Identifier: GPL-3.0-or-later
"""How qsf-serve treats its clients: hosts, origins, keys, sockets, the queue, clients that go away or are
slow, conversations, and the end. Run by serve.sh: TINY is a model with random weights."""
import http.client
import json
import os
import re
import signal
import socket
import stat
import subprocess
import threading
import time

from serve_http import Server, check, finish, text_of

WORK, TINY = os.environ["work"], os.environ["tiny"]
ENDLESS = ["--ctx", "512", "--threads", "1", "--eviction-policy", "sliding", "guide"]
LONG = {"messages": [{"role": "user", "content": "a b"}], "ignore_eos": True, "stream": True}  # ends when it is cancelled


def serve_fails(*args):
    command = [os.environ["QSF_BUILDDIR"] + "/qsf-serve", "--no-config", *args]
    r = subprocess.run(command, capture_output=True, text=True)
    return r.returncode, r.stderr


def test_hosts():
    s = Server("--allow-origin", "http://ui.example:3000", "--allow-host", "gpu.example", "guide")
    for host in ("localhost", "127.0.0.1", "127.0.0.1:99", "LOCALHOST:1", "[::1]:5", "gpu.example"):
        check(s.ask("/v1/models", headers={"Host": host})[0] == 200, "host", host)
    for host in ("evil.example", "evil.example:80", "localhost.evil.example", "127.0.0.1.evil.example", "localhost:x",
                 "", "[::1", "10.0.0.1"):
        status, got, _ = s.ask("/v1/models", headers={"Host": host})
        check(status == 403 and got["error"]["code"] == "host_not_allowed", "host", host, status)
    ui = {"Origin": "http://ui.example:3000"}
    status, _, headers = s.ask("/v1/models", headers=ui)
    check(status == 200 and headers["Access-Control-Allow-Origin"] == ui["Origin"], "an allowed origin")
    check("Access-Control-Allow-Origin" not in s.ask("/v1/models")[2], "CORS without an origin")
    for origin in ("http://evil.example", "null", "http://ui.example", "https://ui.example:3000", "http://127.0.0.1"):
        status, _, headers = s.ask("/v1/models", headers={"Origin": origin})
        check(status == 403 and "Access-Control-Allow-Origin" not in headers, "origin", origin)
        check(s.ask("/v1/chat/completions", method="OPTIONS", headers={"Origin": origin})[0] == 403, "preflight", origin)
    status, _, headers = s.ask("/v1/chat/completions", method="OPTIONS", headers={
        **ui, "Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "authorization,x-a"})
    check(status == 204 and headers["Access-Control-Allow-Headers"] == "authorization,x-a", "preflight", status)
    status, got, headers = s.ask("/v1/chat/completions", b"{", headers=ui)
    check(status == 400 and headers["Access-Control-Allow-Origin"] == ui["Origin"], "errors have CORS headers")
    s.stop()


def test_keys():
    key = WORK + "/key"
    with open(key, "w") as f:
        f.write("  secret-Key_1\nsecond line\n")
    os.chmod(key, 0o600)
    s = Server("--api-key-file", key, "guide")
    check(s.ask("/health")[0] == 200, "health needs no key")
    for path in ("/v1/models", "/metrics", "/v1/nothing"):
        status, got, headers = s.ask(path)
        check(status == 401 and headers["WWW-Authenticate"] == "Bearer", "without a key", path, status)
    for wrong in ("Bearer secret-Key_2", "Bearer secret-Key_", "Bearer secret-Key_11", "Bearer ", "Basic secret-Key_1",
                  "secret-Key_1", "Bearer " + "x" * 3000):
        check(s.ask("/v1/models", headers={"Authorization": wrong})[0] == 401, "a wrong key", wrong[:40])
    check(s.ask("/v1/models", headers={"Authorization": "Bearer secret-Key_1"})[0] == 200, "the key")
    s.stop()
    os.chmod(key, 0o644)
    code, text = serve_fails("--api-key-file", key, "guide")
    check(code == 2 and "chmod 600" in text, "a key that all can read", code, text)
    for address in ("0.0.0.0:0", "[::]:0", "192.0.2.1:0"):
        code, text = serve_fails("--listen", address, "guide")
        check(code == 2 and "--api-key-file" in text, "another address without a key", address, code, text)
    for address in ("localhost", ":80", "127.0.0.1:99999", "example.org:80", "unix:", "127.0.0.1:8x", "[::1:8"):
        code, text = serve_fails("--listen", address, "guide")
        check(code == 2 and "--listen" in text, "not an address", address, code, text)


def test_sockets():
    path = WORK + "/qsf.sock"
    s = Server("guide", listen="unix:" + path)
    check(stat.S_IMODE(os.stat(path).st_mode) == 0o600, "permissions of the socket")
    check(s.ask("/v1/models", headers={"Host": "anything"})[0] == 200, "a socket has no host")
    check(s.chat("Hello", temperature=0)[0] == 200, "an answer by the socket")
    code, text = serve_fails("--listen", "unix:" + path, "guide")
    check(code == 1 and "another program" in text, "a socket in use", code, text)
    s.process.kill()
    s.process.wait()
    check(os.path.exists(path), "a killed server leaves its socket")
    s = Server("guide", listen="unix:" + path)
    check(s.stop() == 143 and not os.path.exists(path), "the socket is removed")
    with open(path, "w"):
        pass
    code, text = serve_fails("--listen", "unix:" + path, "guide")
    check(code == 1 and "not a socket" in text and os.path.exists(path), "a file is not replaced", code, text)
    os.remove(path)
    s = Server("guide")
    code, text = serve_fails("--listen", f"127.0.0.1:{s.port}", "guide")
    check(code == 1 and f"127.0.0.1:{s.port}" in text, "a port in use", code, text)
    s.stop(signal.SIGINT)


def begin_stream(s, body=LONG):
    """A connection on which the first event has arrived."""
    c = s.connect()
    c.request("POST", "/v1/chat/completions", json.dumps(body))
    r = c.getresponse()
    check(r.status == 200 and r.readline().startswith(b"data: "), "a stream begins", r.status)
    return c, r


def test_queue():
    s = Server("--queue", "1", *ENDLESS)
    c, _ = begin_stream(s)
    waiting = s.connect()
    waiting.request("POST", "/v1/chat/completions", json.dumps({**LONG, "max_tokens": 2, "stream": False}))
    s.wait("requests_waiting", 1)
    status, got, headers = s.ask("/v1/chat/completions", LONG)
    check(status == 429 and got["error"]["code"] == "queue_full" and headers["Retry-After"] == "1", "429", status, got)
    check(s.ask("/health")[1]["waiting"] == 1, "health while it answers")
    c.close()  # its answer is cancelled, and the next one begins
    r = waiting.getresponse()
    check(r.status == 200 and json.loads(r.read())["usage"]["completion_tokens"] == 2, "the one that waited")
    s.wait("cancelled_total", 1)
    a, _ = begin_stream(s)  # clients that leave the queue
    for _ in range(3):
        b = s.connect()
        b.request("POST", "/v1/chat/completions", json.dumps(LONG))
        s.wait("requests_waiting", 1)
        n = s.metric("cancelled_total")
        b.close()
        s.wait("cancelled_total", n + 1)
    check(s.metric("requests_waiting") == 0, "the queue is empty")
    a.close()
    s.wait("cancelled_total", n + 2)
    check(s.stop() == 143, "status")


def test_slow():
    s = Server("--timeout", "1", "--connections", "8", "guide")
    half = b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 50\r\n\r\n{"
    slow = [s.socket() for _ in range(4)]
    for i, k in enumerate(slow):
        k.sendall((b"", b"GET / HT", half, b"POST /v1/models HTTP/1.1\r\nHost: local")[i])
    drip = s.socket()
    drip.sendall(half)
    drip.settimeout(0.3)
    closed = False
    while not closed:  # a byte now and then is no request either
        try:
            closed = drip.recv(1000) == b""
        except TimeoutError:
            try:
                drip.sendall(b" ")
            except OSError:
                closed = True
        except OSError:
            closed = True
    for i, k in enumerate(slow):
        k.settimeout(60)
        try:
            while k.recv(1000) != b"":
                pass
        except ConnectionError:
            pass
        except TimeoutError:
            check(False, "a slow client is not closed", i)
    status = None
    while status is None:  # this program may be too slow for the server, too
        try:
            status = s.ask("/health")[0]
        except (OSError, http.client.HTTPException):
            check(s.process.poll() is None, "the server ended")
    check(status == 200, "afterwards")
    check(s.stop() == 143, "status")


def test_malformed():
    s = Server("guide")
    for data in (b"\0" * 100, b"GET\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n", b"\r\n" * 1000, b"A" * 100000,
                 b"GET / HTTP/1.1\r\n" + b"X: y\r\n" * 5000 + b"\r\n", b"GET / HTTP/1.1\r\nHost: " + b"h" * 40000,
                 b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n",
                 b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999999999999999\r\n\r\n",
                 b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
                 b"GET /v1/models HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n\r\n"):
        k = s.socket()
        try:
            k.sendall(data)
            k.shutdown(socket.SHUT_WR)
            while k.recv(10000):
                pass
        except OSError:
            pass
        k.close()
    check(s.ask("/health")[0] == 200, "after malformed requests")
    body = b'{"prompt": "x", "max_tokens": 1}'
    length = b"Content-Length: %d\r\n" % len(body)
    for more in (b"Content-Length: 5\r\n", b"Transfer-Encoding: chunked\r\n", b"Host: 127.0.0.1\r\n", b"X-A : b\r\n",
                 b"X-A: b\x01\r\n", b"Content-Encoding: gzip\r\n"):
        k = s.socket()
        k.sendall(b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\n" + length + more + b"\r\n" + body)
        status = k.makefile("rb").readline()
        check(b" 400 " in status, "a request that can be read in two ways", more, status)
        k.close()
    k = s.socket()  # chunks without a length, more than the limit
    k.sendall(b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n")
    status = b""
    try:
        for _ in range(40):
            k.sendall(b"10000\r\n" + b" " * 65536 + b"\r\n")
        k.sendall(b"0\r\n\r\n")
        status = k.recv(1000)
    except OSError:
        pass
    check(status in (b"",) or b" 413 " in status.split(b"\r\n")[0], "chunks", status)
    check(s.forgets(), "memory that nobody needs", s.metric("text_bytes"))
    check(s.stop() == 143, "status")


def exchange(s, data, n=1):
    """Sends bytes, and reads n responses: (status line, headers, body) of each."""
    k = s.socket()
    k.sendall(data)
    f = k.makefile("rb")
    got = []
    while len(got) < n:
        line, headers, body = f.readline(), {}, b""
        while (row := f.readline()) not in (b"\r\n", b""):
            name, value = row.decode().rstrip().split(": ", 1)
            headers[name] = value
        if headers.get("Transfer-Encoding") == "chunked":
            while (size := int(f.readline(), 16)) > 0:
                body += f.read(size + 2)[:-2]
            f.readline()
        elif b" 100 " not in line and not data.startswith(b"HEAD"):
            body = f.read(int(headers["Content-Length"])) if "Content-Length" in headers else f.read()
        got.append((line.decode().rstrip(), headers, body))
    k.close()
    return got if n > 1 else got[0]


def test_http():
    """HTTP as other clients speak it."""
    s = Server("guide")
    body = json.dumps({"prompt": "x", "max_tokens": 2}).encode()
    stream = json.dumps({"prompt": "x", "max_tokens": 2, "stream": True}).encode()

    def post(data, version=b"1.1", more=b""):
        return (b"POST /v1/completions HTTP/" + version + b"\r\nHost: localhost\r\n" + more +
                b"Content-Length: %d\r\n\r\n" % len(data) + data)

    line, headers, text = exchange(s, post(body, b"1.0"))
    check(" 200 " in line and headers["Connection"] == "close" and json.loads(text)["usage"], "HTTP/1.0", line, headers)
    line, headers, text = exchange(s, post(stream, b"1.0"))
    check(" 200 " in line and "Transfer-Encoding" not in headers and text.endswith(b"data: [DONE]\n\n"), "a stream of HTTP/1.0",
          line, headers, text)
    got = exchange(s, post(stream) + post(body) + post(b"[") + b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n", 4)
    check([line.split()[1] for line, _, _ in got] == ["200", "200", "400", "200"], "pipelined requests", got)
    chunks = b"".join(b"%x\r\n%s\r\n" % (len(body[i:i + 7]), body[i:i + 7]) for i in range(0, len(body), 7)) + b"0\r\n\r\n"
    line, _, text = exchange(s, b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n" + chunks)
    check(" 200 " in line and json.loads(text)["usage"]["completion_tokens"] == 2, "a body in chunks", line, text)
    got = exchange(s, post(body, more=b"Expect: 100-continue\r\n"), 2)
    check(" 100 " in got[0][0] and " 200 " in got[1][0], "100-continue", got)
    for path, status in ((b"/health", "200"), (b"/v1/models", "200"), (b"/v1/completions", "405"), (b"/", "404")):
        line, headers, _ = exchange(s, b"HEAD " + path + b" HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        check(line.split()[1] == status and int(headers["Content-Length"]) > 0, "HEAD", path, line, headers)
    line, headers, _ = exchange(s, b"OPTIONS /v1/completions HTTP/1.1\r\nHost: localhost\r\n\r\n")
    check(" 405 " in line and headers["Allow"] == "POST", "OPTIONS without an origin", line)
    check(s.stop() == 143, "status")


def test_conversations():
    s = Server("--ctx", "512", TINY)
    state = os.environ["XDG_STATE_HOME"] + "/qsf/serve"
    check(len(os.listdir(state)) == 1 and stat.S_IMODE(os.stat(state).st_mode) == 0o700, "the folder of snapshots")
    talks = [[{"role": "system", "content": " ".join(s * 50)}, {"role": "user", "content": " ".join(x * 60)}]
             for s, x in ("sp", "tq", "sr")]
    for turn in range(3):
        for talk in talks:
            _, got, _ = s.chat(talk, temperature=0, max_tokens=8)
            usage = got["usage"]
            cached = usage["prompt_tokens_details"]["cached_tokens"]
            new = usage["prompt_tokens"] - cached
            check(turn == 0 or new < 60, "evaluated again:", turn, usage)
            if turn == 0 and talk is talks[2]:
                check(cached >= 50, "the system prompt of another conversation:", usage)
            talk += [{"role": "assistant", "content": got["choices"][0]["message"]["content"]},
                     {"role": "user", "content": "x y z"}]
    check(s.stop() == 143 and os.listdir(state) == [], "snapshots are removed", os.listdir(state))
    s = Server("guide")
    s.process.kill()
    s.process.wait()
    check(len(os.listdir(state)) == 1, "a killed server leaves its folder")
    s = Server("guide")
    check(len(os.listdir(state)) == 1, "the next one removes it")
    s.stop()


def check_states(*args):
    s = Server("--ctx", "512", *args)
    talk = [{"role": "user", "content": " ".join("p" * 99)}]
    for i in range(4):
        if i == 3:
            talk += [{"role": "assistant", "content": text}, {"role": "user", "content": "x y z"}]
        _, got, _ = s.chat(talk, temperature=0, max_tokens=8)
        usage, text = got["usage"], got["choices"][0]["message"]["content"]
        cached = usage["prompt_tokens_details"]["cached_tokens"]
        if i in (1, 2):
            check(cached == usage["prompt_tokens"] - 1, "a repeated prompt:", i, usage)
        check(i < 3 or cached > 99, "the next turn:", usage)
    check(s.stop() == 143, "status")


def check_shared(*args):
    """Conversations that begin with the same system prompt share it, and answer as they do alone."""
    system = {"role": "system", "content": " ".join("q" * 80)}
    asks = [[system, {"role": "user", "content": text}] for text in ("x y z", "1 2 3", "y z x " * 20)]
    want = []
    for ask in asks[1:]:
        s = Server("--ctx", "512", "--snapshots", "0", *args)
        want.append(s.chat(ask, temperature=0, max_tokens=8)[1]["choices"])
        s.stop()
    s = Server("--ctx", "512", *args)
    s.chat(asks[0], temperature=0, max_tokens=8)
    for _ in range(2):  # from memory, and from files
        for ask, choices in zip(asks[1:], want):
            _, got, _ = s.chat(ask, temperature=0, max_tokens=8)
            check(got["usage"]["prompt_tokens_details"]["cached_tokens"] >= 80, "the system prompt of another:", got["usage"])
            check(got["choices"] == choices, "another answer after a system prompt that is shared:", got, choices)
    check(s.stop() == 143, "status")


def check_edits(*args):
    """An old message that is changed costs the evaluation of its exchange, also after other conversations."""
    s = Server("--ctx", "2048", *args)
    talk, prompts = [{"role": "system", "content": " ".join("q" * 40)}], []
    for i in range(7):
        talk.append({"role": "user", "content": f"{i} " + "x y z " * 20})
        _, got, _ = s.chat(talk, temperature=0, max_tokens=8)
        prompts.append(got["usage"]["prompt_tokens"])
        talk.append({"role": "assistant", "content": got["choices"][0]["message"]["content"]})
        s.chat("another conversation", max_tokens=1)  # begins when everything is saved
    for i in (6, 4, 2, 1):
        _, got, _ = s.chat(talk[:1 + 2 * i] + [{"role": "user", "content": "changed"}], temperature=0, max_tokens=8)
        cached = got["usage"]["prompt_tokens_details"]["cached_tokens"]
        check(cached >= prompts[i - 1] - 1, "a message that was changed:", i, prompts, got["usage"])
    check(s.stop() == 143, "status")


def test_states():
    """Recurrent models, and caches with 2 bits, continue only where their state is held."""
    check_states("--kv-type", "q2", TINY)
    recurrent = os.environ.get("QSF_TEST_DATA", "") + "/mtp/qwen35_mtp/model.gguf"
    if os.path.exists(recurrent):
        check_states("--template", "chatml", recurrent)
        check_shared("--template", "chatml", recurrent)
        check_edits("--template", "chatml", recurrent)


def test_stop():
    for sig, status in ((signal.SIGTERM, 143), (signal.SIGINT, 130)):
        s = Server("--queue", "4", *ENDLESS)
        c, r = begin_stream(s)
        waiting = s.connect()
        waiting.request("POST", "/v1/chat/completions", json.dumps(LONG))
        s.wait("requests_waiting", 1)
        check(s.stop(sig) == status, "status of", sig)
        events = r.read().decode().split("\n\n")
        check(events[-2:] == ["data: [DONE]", ""], "a stream ends when the server stops", events[-3:])
        check('"code": "stopping"' in events[-3] and '"finish_reason": "' not in "".join(events),
              "a stream that was stopped is not complete", events[-4:])
        check(waiting.getresponse().status == 503, "one that waits")
        c.close()
        s = Server(*ENDLESS)
        c = s.connect()
        c.request("POST", "/v1/chat/completions", json.dumps({**LONG, "stream": False}))
        s.wait("requests_running", 1)
        check(s.stop(sig) == status, "status of", sig)
        check(c.getresponse().status == 503, "an answer that was stopped is not complete")
        c.close()


def test_too_large():
    """A request that does not fit in the budget: clients get no advice about the options of the server."""
    if os.environ.get("QSF_SAN"):
        return
    options = ["--body-limit", "1M", "--ctx", "256", "--ram-budget"]
    refused = subprocess.run([os.environ["QSF_BUILDDIR"] + "/qsf-serve", "--no-config", *options, "1", "guide"],
                             capture_output=True, text=True)
    s = Server(*options, re.search(r"smallest budget that works: (\d+)", refused.stderr).group(1), "guide")
    ask = [{"role": "user", "content": "w " * 450000}, {"role": "user", "content": "x"}]
    status, got, _ = s.chat(ask)
    check(status == 413 and got["error"]["code"] == "ram_budget_exceeded", "a request that does not fit", status, got)
    found = re.search(r"needs about (\d+) MB, and (\d+) MB are left", got["error"]["message"])
    check(found and int(found[1]) > int(found[2]) and "--" not in got["error"]["message"], "its message", got)
    check(s.chat("x", max_tokens=1)[0] == 200, "another request")
    check(s.stop() == 143, "status")


def test_budget():
    """Large requests from many clients: the peak stays below the budget."""
    budget = 120 if os.environ.get("QSF_SAN") else 60  # the program itself is larger with the sanitizers
    s = Server("--body-limit", "256K", "--ram-budget", str(budget), "guide")
    body = json.dumps({"messages": [{"role": "user", "content": "word " * 40000}]}).encode()
    many = json.dumps({"messages": [{"role": "user", "content": "a"}] * 4000}).encode()
    statuses = set()

    def flood(i):
        for _ in range(5):
            try:
                statuses.add(s.ask("/v1/chat/completions", body if i % 2 else many)[0])
            except OSError:
                pass

    threads = [threading.Thread(target=flood, args=(i,)) for i in range(32)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    check(statuses <= {200, 400, 413, 429, 503}, "statuses", statuses)
    if not os.environ.get("QSF_SAN"):
        peak, budget = s.metric("resident_peak_bytes"), s.metric("ram_budget_bytes")
        check(peak <= budget, f"a peak of {peak / 1e6:.1f} MB, a budget of {budget / 1e6:.1f} MB")
    check(s.forgets(), "memory that nobody needs", s.metric("text_bytes"))
    check(s.stop() == 143, "status")


for test in (test_hosts, test_keys, test_sockets, test_queue, test_slow, test_malformed, test_http,
             test_conversations, test_states, test_stop, test_too_large, test_budget):
    begin = time.monotonic()
    test()
    print(f"{test.__name__}: {time.monotonic() - begin:.1f} s")
finish()

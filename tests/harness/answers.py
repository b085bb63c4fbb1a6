# SPDX-License-Identifier: GPL-3.0-or-later
"""A server with the interface of OpenAI on the loopback, for tests/ui/connect*.sh: answers.py FOLDER
[CERTIFICATE]. Writes its port to FOLDER/port, listens on FOLDER/socket too, and writes each request to
FOLDER/log as a line of JSON. The first part of the path is how it behaves: a program that people use, or
a fault."""
import http.server
import json
import os
import socketserver
import ssl
import sys
import threading
import time

FOLDER = sys.argv[1]
LOG = open(os.path.join(FOLDER, "log"), "a", encoding="utf-8")
LOCK = threading.Lock()
OWNER = {"llama": "llamacpp", "vllm": "vllm", "ollama": "library", "lmstudio": "organization_owner",
         "qsf": "qsf"}
WORDS = ["Hello", " there", ",", " this", " is", " an", " answer", "."]


def chunk(delta, end=None, **more):
    return {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "m",
            "choices": [{"index": 0, "delta": delta, "finish_reason": end}], **more}


def usage(n, prompt=20):
    return {"prompt_tokens": prompt, "completion_tokens": n, "total_tokens": prompt + n,
            "prompt_tokens_details": {"cached_tokens": 5}}


class Server(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        pass

    def address_string(self):
        return "local"

    # ---- replies

    def send(self, code, body, kind="application/json", **headers):
        body = body.encode() if isinstance(body, str) else body
        self.send_response(code)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(body)

    def error(self, code, message, kind="invalid_request_error", **headers):
        self.send(code, json.dumps({"error": {"message": message, "type": kind, "code": code}}), **headers)

    def begin(self):
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream; charset=utf-8")
        if self.how.startswith("llama"):
            self.send_header("Server", "llama.cpp")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()

    def piece(self, data):
        self.wfile.write(b"%x\r\n" % len(data) + data + b"\r\n")
        self.wfile.flush()

    def event(self, value):
        text = value if isinstance(value, str) else json.dumps(value)
        self.piece(f"data: {text}\n\n".encode())

    def end(self):
        self.wfile.write(b"0\r\n\r\n")

    # ---- requests

    def is_file(self, name):
        return os.path.exists(os.path.join(FOLDER, name))

    def context(self):
        """What servers say of the size of a context besides OpenAI's interface, of a model that is loaded."""
        loaded = self.is_file("loaded")
        if self.how == "ollama" and self.rest == "/api/ps":
            return {"models": [{"name": "small", "model": "small", "context_length": 27}] if loaded else []}
        if self.how == "ollama" and self.rest == "/api/show":
            return {"model_info": {"general.architecture": "qwen3", "qwen3.context_length": 40960},
                    "parameters": "num_ctx 4096" if self.body["model"] == "tuned" else "temperature 1"}
        if self.how == "lmstudio" and self.rest == "/api/v0/models":
            return {"data": [{"id": "small", "max_context_length": 32768}]}
        if self.how == "lmstudio" and self.rest == "/api/v1/models":
            return {"models": [{"key": "small", "max_context_length": 32768, "loaded_instances":
                                [{"id": "small", "config": {"context_length": 6144}}] if loaded else []}]}
        return None

    def do_GET(self):
        self.request_came(None)
        if self.context() is not None:
            return self.send(200, json.dumps(self.context()))
        if self.how == "llama-loading" and not self.is_file("calm"):
            return self.error(503, "Loading model", "unavailable_error")
        if self.how == "busy" and not self.is_file("calm"):
            return self.error(503, "upstream is starting", Retry_After="1")
        if self.how == "away":
            return self.error(503, "no healthy upstream")
        if self.rest.startswith("/props?autoload=false&model=") and self.how.startswith("llama"):
            n_ctx = 2048 if self.rest.endswith("=large%3A70b") else 4096
            return self.send(200, json.dumps({"default_generation_settings": {"n_ctx": n_ctx}}))
        if self.rest != "/v1/models":
            return self.send(404, "<html><head><title>404 Not Found</title></head></html>", "text/html")
        if self.how == "unlisted":
            return self.error(404, "not here")
        if self.how == "401" and self.headers.get("Authorization") != "Bearer secret-key":
            return self.error(401, "Incorrect API key provided: no")
        if self.how == "redirect":
            return self.send(301, "", "text/html", Location=f"http://127.0.0.1:{PORT}/redirect/v1/models")
        if self.how == "nojson":
            return self.send(200, "<!doctype html><title>A router\x1b[2J</title>", "text/html")
        owner = OWNER.get(self.how.split("-")[0], "someone")
        models = [{"id": "small", "object": "model", "owned_by": owner},
                  {"id": "large:70b", "object": "model", "owned_by": owner, "max_model_len": 8192}]
        if self.how in ("ollama", "lmstudio"):  # whose lists do not say it
            models = [{"id": name, "owned_by": owner} for name in ("small", "tuned", "large:70b")]
        if self.how == "names":
            models += [{"id": "esc\x1b[2J"}, {"id": 400 * "x"}]
        if self.how == "guide":
            models += [{"id": "misguided", "object": "model"}, {"id": "guide", "object": "model"}]
        if self.how == "modelless":  # Ollama
            models = None
        if self.how == "mixed":  # Ollama, with a model of its own and one of another owner
            models[1]["owned_by"] = "library"
        headers = {"Server": "llama.cpp"} if self.how.startswith("llama") else {}
        return self.send(200, json.dumps({"object": "list", "data": models}), **headers)

    def do_POST(self):
        length = int(self.headers.get("Content-Length", "0"))
        self.request_came(json.loads(self.rfile.read(length)))
        if self.context() is not None:
            return self.send(200, json.dumps(self.context()))
        if self.rest == "/v1/chat/completions/control":
            if self.how not in ("llama-control", "llama-deaf", "qsf-control"):  # as it was before
                return self.error(404, "File Not Found", "not_found_error")
            open(os.path.join(FOLDER, "ended"), "w", encoding="utf-8").close()
            return self.send(200, json.dumps({"success": self.body["id"] == "c1"}))
        if self.rest == "/tokenize" and self.how in ("llama", "vllm"):
            return self.tokenize()
        handler = getattr(self, "at_" + self.how.replace("-", "_"), None)
        try:
            return handler() if handler else self.answer()
        except OSError:
            self.close_connection = True
            return None

    def request_came(self, body):
        parts = self.path.split("/", 2)
        self.how, self.rest = parts[1], "/" + (parts[2] if len(parts) > 2 else "")
        self.body = body
        with LOCK:
            LOG.write(json.dumps({"path": self.path, "key": self.headers.get("Authorization"),
                                  "body": body}) + "\n")
            LOG.flush()

    def tokenize(self):
        """A word is a token, with the blank before it; longer ones are several."""
        text = self.body["content" if self.how == "llama" else "prompt"]
        pieces = [text[i:i + 6] for i in range(0, len(text), 6)]
        return self.send(200, json.dumps({"tokens": [sum(piece.encode()) for piece in pieces]}))

    def last(self):
        return self.body["messages"][-1]["content"]

    # ---- answers

    def answer(self, words=None):
        words = words or self.words()
        open(os.path.join(FOLDER, "loaded"), "w", encoding="utf-8").close()
        self.begin()
        self.event(chunk({"role": "assistant", "content": ""}))
        self.repeat()
        for i, word in enumerate(words):
            self.event(chunk({"content": word}, **self.timings(i + 1)))
        counted = "stream_options" in self.body
        self.event(chunk({}, "stop", **self.timings(len(words))))
        if counted and self.how != "uncounted":
            self.event({"id": "c1", "object": "chat.completion.chunk", "choices": [],
                        "usage": usage(len(words))})
        self.event("[DONE]")
        self.end()

    def timings(self, done):
        if not self.how.startswith("llama") or not self.body.get("timings_per_token"):
            return {}
        return {"timings": {"prompt_n": 13, "cache_n": 7, "prompt_per_second": 321.5, "predicted_n": done,
                            "predicted_per_second": 12.5}}

    def repeat(self):
        """llama.cpp sends again what it continues, unless it is told that it continues; some do anyway."""
        last = self.body["messages"][-1]
        told = self.body.get("continue_final_message") and not self.body.get("add_generation_prompt", True)
        if last["role"] == "assistant" and (self.how == "llama-repeats" or (self.how == "llama" and not told)):
            self.event(chunk({"content": last["content"]}, **self.timings(0)))

    def words(self):
        last = self.body["messages"][-1]
        if last["role"] == "assistant":
            return [" and", " more", "."]
        return ["You", " said:", " "] + last["content"].split("\n")[0].split(" ")

    def at_model(self):
        self.answer([self.body["model"]])

    at_guide = at_model

    def at_think(self):
        self.begin()
        for word in ["Let", " me", " think"]:
            self.event(chunk({"reasoning_content": word}))
        for word in ["\n\nForty", "-two"]:
            self.event(chunk({"content": word}))
        self.event(chunk({}, "stop", usage={**usage(5), "completion_tokens_details": {"reasoning_tokens": 3}}))
        self.event("[DONE]")
        self.end()

    def at_thinking(self):
        """Nothing but reasoning, and then the limit."""
        self.begin()
        self.event(chunk({"reasoning_content": "Let me think"}))
        self.event(chunk({}, "length", usage=usage(3)))
        self.event("[DONE]")
        self.end()

    def at_llama_think(self):
        """Thinks until FOLDER/go exists. A thought that was cut goes on, or is followed by an answer."""
        last = self.body["messages"][-1]
        goes_on = self.body.get("continue_final_message")
        self.begin()
        if last["role"] == "assistant" and (goes_on == "content" or self.how.startswith("vllm")):
            for i, word in enumerate(["\n\nForty", "-two"]):
                self.event(chunk({"content": word}, **self.timings(i + 1)))
            self.event(chunk({}, "stop", usage=usage(2)))
        elif last["role"] == "assistant":
            for word in [" and", " more"]:
                self.event(chunk({"reasoning_content": word}))
            self.event(chunk({"content": "done"}, "stop", usage=usage(3)))
        else:
            for i, word in enumerate(["Let", " me", " think"]):
                self.event(chunk({"reasoning_content": word}, **self.timings(i + 1)))
            while not self.is_file("go"):
                self.piece(b": waiting\n\n")
                time.sleep(0.02)
            self.event(chunk({}, "length", usage=usage(3)))
        self.event("[DONE]")
        self.end()

    at_vllm_think = at_qsf_think = at_other_think = at_llama_think

    def at_llama_control(self):
        """Thinks until it is told to end that."""
        self.begin()
        self.event(chunk({"reasoning_content": "Let me think"}))
        while not self.is_file("ended"):
            self.piece(b": waiting\n\n")
            time.sleep(0.02)
        self.event(chunk({"reasoning_content": " no more"}))
        self.event(chunk({"content": "Forty-two"}, "stop", usage=usage(6)))
        self.event("[DONE]")
        self.end()

    def at_qsf_control(self):
        """What it wrote before it was told, and the client has not read yet, is more than a sentence."""
        self.begin()
        self.event(chunk({"reasoning_content": "Let me think"}))
        while not self.is_file("ended"):
            self.piece(b": waiting\n\n")
            time.sleep(0.02)
        for _ in range(200):
            self.event(chunk({"reasoning_content": " on"}))
            time.sleep(0.005)
        self.event(chunk({"content": "Forty-two"}, "stop", usage=usage(6)))
        self.event("[DONE]")
        self.end()

    def at_llama_deaf(self):
        """Says that it ends the reasoning, but does not."""
        self.begin()
        while self.body["messages"][-1]["role"] != "assistant":
            self.event(chunk({"reasoning_content": "hm "}))
            time.sleep(0.02)
        self.event(chunk({"content": "Forty-two"}, "stop", usage=usage(6)))
        self.event("[DONE]")
        self.end()

    def at_ollama_tags(self):
        """Reasoning in the text of the answer, until FOLDER/go exists."""
        last = self.body["messages"][-1]
        self.begin()
        if last["role"] == "assistant":
            self.event(chunk({"content": "Forty-two"}, "stop", usage=usage(2)))
        else:
            self.event(chunk({"content": "<think>Let me think"}))
            while not self.is_file("go"):
                self.piece(b": waiting\n\n")
                time.sleep(0.02)
        self.event("[DONE]")
        self.end()

    def at_inline(self):
        self.answer(["<thi", "nk>", "hidden thought</th", "ink>", "\n\nshown", " text"])

    def at_tools(self):
        self.begin()
        self.event(chunk({"tool_calls": [{"index": 0, "id": "a", "type": "function",
                                          "function": {"name": "get_weather", "arguments": ""}}]}))
        for part in ['{"city": ', '"Paris"}']:
            self.event(chunk({"tool_calls": [{"index": 0, "function": {"arguments": part}}]}))
        self.event(chunk({}, "tool_calls"))
        self.event("[DONE]")
        self.end()

    def at_whole(self):
        self.send(200, json.dumps({"choices": [{"index": 0, "finish_reason": "stop",
                                                "message": {"content": "All at once."}}], "usage": usage(3)}))

    def at_plaintype(self):
        text = "".join(f"data: {json.dumps(chunk({'content': w}))}\n\n" for w in ("a ", "stream"))
        self.send(200, text + f"data: {json.dumps(chunk({}, 'stop'))}\n\n", "text/plain")

    def at_length(self):
        self.begin()
        self.event(chunk({"content": "too short"}))
        self.event(chunk({}, "length", usage=usage(2)))
        self.event("[DONE]")
        self.end()

    def at_wait(self):
        """The rest comes when FOLDER/go exists; says in FOLDER/gone that the client went away."""
        self.begin()
        self.event(chunk({"content": "begun now"}, **self.timings(2)))
        try:
            while not self.is_file("go"):
                self.piece(b": waiting\n\n")
                time.sleep(0.02)
        except OSError:
            open(os.path.join(FOLDER, "gone"), "w", encoding="utf-8").close()
            raise
        self.event(chunk({"content": " and ended"}))
        self.event(chunk({}, "stop"))
        self.event("[DONE]")
        self.end()

    at_llama_wait = at_wait

    # ---- faults

    def at_silent(self):
        while not self.is_file("go"):
            time.sleep(0.05)
        self.close_connection = True

    def at_refuses(self):
        for field in ("top_k", "min_p", "stream_options"):
            if field in self.body:
                return self.error(400, f"Unrecognized request argument supplied: {field}")
        if "max_tokens" in self.body:
            return self.error(400, "Unsupported parameter: 'max_tokens' is not supported with this model. "
                                   "Use 'max_completion_tokens' instead.")
        return self.answer()

    def at_range(self):
        """llama.cpp about a value that it does not take; a limit of the answer, too."""
        if self.body.get("top_k", 1) < 1:
            return self.error(400, "Field 'top_k': Value must be between 1 and 100, but got 0")
        if self.body.get("max_tokens", 1) > 100:
            return self.error(400, "Field 'max_tokens': Value must be between 1 and 100")
        return self.answer()

    def at_fastapi(self):
        if "top_k" in self.body:
            return self.send(422, json.dumps({"detail": [{"type": "extra_forbidden", "loc": ["body", "top_k"],
                                                          "msg": "Extra inputs are not permitted"}]}))
        return self.answer()

    def at_401(self):
        if self.headers.get("Authorization") != "Bearer secret-key":
            return self.error(401, "Incorrect API key provided")
        return self.answer()

    def at_403(self):
        self.error(403, "not for you")

    def at_404(self):
        self.error(404, "The model `small` does not exist.")

    def at_429(self):
        if self.is_file("calm"):
            return self.answer()
        return self.error(429, "Rate limit reached", Retry_After="1")

    def at_quota(self):
        if self.is_file("calm"):
            return self.answer()
        return self.error(429, "Quota is used up", Retry_After="3600")

    at_busy = at_llama_loading = at_429

    def at_429_late(self):
        return self.error(429, "Rate limit reached", Retry_After="50")

    def at_500(self):
        self.send(500, "<html><head><title>Bad\x1b[31m Gateway</title></head><body>no</body></html>",
                  "text/html")

    def at_503(self):
        self.error(503, "maximum pending requests exceeded")

    def at_longerror(self):
        self.error(400, "the message is long: " + 100000 * "x")

    def at_full(self):
        self.error(400, "the request exceeds the available context size", "exceed_context_size_error")

    def at_html(self):
        self.send(200, "<html><title>Sign in</title></html>", "text/html")

    def at_badjson(self):
        self.begin()
        self.event(chunk({"content": "a beginning"}))
        self.event('{"choices": [{"delta": {"content": "x"')
        self.end()

    def at_cut(self):
        self.begin()
        self.event(chunk({"content": "half an"}))
        self.wfile.flush()
        self.connection.shutdown(2)
        self.close_connection = True

    def at_closed(self):
        """Ends without an end of the answer."""
        self.begin()
        self.event(chunk({"content": "half an"}))
        self.end()

    def at_empty(self):
        self.begin()
        self.event("[DONE]")
        self.end()

    def at_midway(self):
        self.begin()
        self.event(chunk({"content": "so far"}))
        self.event({"error": {"message": "out of\x1b[2J memory", "type": "server_error"}})
        self.end()

    def at_controls(self):
        self.answer(["red \x1b[31m", "bell \x07 ", "del \x7f ", "title \x1b]0;x\x07", " \u202eend"])

    def at_badchunks(self):
        self.begin()
        self.event(chunk({"content": "half an"}))
        self.wfile.write(b"zz\r\nnot a chunk\r\n")
        self.wfile.flush()
        self.close_connection = True

    def at_line(self):
        """A line that never ends."""
        self.begin()
        self.piece(b"data: ")
        for _ in range(80):
            self.piece(b"x" * 65536)
        self.end()

    def at_flood(self):
        """More text than an answer may have."""
        self.begin()
        data = f"data: {json.dumps(chunk({'content': 'y' * 60000}))}\n\n".encode()
        for _ in range(400):
            self.piece(data)
        self.end()

    def at_split(self):
        """Events in pieces of one byte, with all ends of lines."""
        self.begin()
        text = "".join(f"event: x\r\n: comment\rdata: {json.dumps(chunk({'content': w}), ensure_ascii=False)}"
                       f"\r\n\r\n" for w in ["gr\u00fc\u00df", "e \u4e16\u754c", " \U0001f600"])
        for byte in ("\ufeff" + text + "data: [DONE]\n\n").encode():
            self.piece(bytes([byte]))
        self.end()

    def at_forever(self):
        """Says that the answer is complete, but does not end the stream."""
        self.begin()
        self.event(chunk({"content": "complete"}))
        self.event(chunk({}, "stop"))
        while not self.is_file("go"):
            self.piece(b": still here\n\n")
            time.sleep(0.05)
        self.end()

    def at_moved(self):
        self.send(307, "", "text/html", Location="http://127.0.0.1:9/elsewhere/v1/chat/completions")


class Tcp(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request, client_address):
        pass  # a client that goes away


class Unix(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True

    def handle_error(self, request, client_address):
        pass


class OnSocket(Server):
    """The path of a unix socket is its whole address: it behaves like qsf-serve."""

    def parse_request(self):
        ok = super().parse_request()
        self.path = "/qsf" + self.path if ok else ""
        return ok


tcp = Tcp(("127.0.0.1", 0), Server)
PORT = tcp.server_address[1]
if len(sys.argv) > 2:
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(sys.argv[2])
    tcp.socket = tls.wrap_socket(tcp.socket, server_side=True)
else:
    local = Unix(os.path.join(FOLDER, "socket"), OnSocket)
    threading.Thread(target=local.serve_forever, daemon=True).start()
with open(os.path.join(FOLDER, "port.new"), "w", encoding="utf-8") as f:
    f.write(str(PORT))
os.rename(os.path.join(FOLDER, "port.new"), os.path.join(FOLDER, "port"))
tcp.serve_forever()

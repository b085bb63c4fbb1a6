# SPDX-License-Identifier: GPL-3.0-or-later
"""Prompts of token ids, as clients that measure likelihoods send them. Run by serve.sh."""
import json
import os
import subprocess

from serve_http import Server, check, finish

PATH = "/v1/completions"
TEXT = "The temperature sets how much a model dares."


def ids_of(text):
    """As a text is tokenized that a request has, in which nothing is a control token."""
    command = [os.environ["QSF_BUILDDIR"] + "/qsf-run", "--no-config", "--tokenize", "--jsonl", "--no-special", "guide"]
    done = subprocess.run(command, input=json.dumps(text) + "\n", capture_output=True, check=True, text=True)
    return json.loads(done.stdout)


def test_same_as_text(s):
    ids = ids_of(TEXT)
    check(len(ids) > 4, "the ids of a text", ids)
    body = {"temperature": 0, "max_tokens": 12, "logprobs": 2}
    for more in ({}, {"echo": True}, {"echo": True, "max_tokens": 0}):
        _, want, _ = s.ask(PATH, {**body, **more, "prompt": TEXT})
        for prompt in (ids, [ids]):
            _, got, _ = s.ask(PATH, {**body, **more, "prompt": prompt})
            check(got["choices"][0]["text"] == want["choices"][0]["text"], "another text", more, got, want)
            check(got["usage"]["prompt_tokens"] == want["usage"]["prompt_tokens"] == len(ids), "usage", more, got)
            parts, rows = got["choices"][0]["logprobs"], want["choices"][0]["logprobs"]
            check(parts["tokens"] == rows["tokens"] and parts["text_offset"] == rows["text_offset"],
                  "other tokens", more, parts, rows)
            check(all(a == b or abs(a - b) < 1e-3 for a, b in zip(parts["token_logprobs"], rows["token_logprobs"])),
                  "other logprobs", more, parts, rows)
    events = s.stream({**body, "prompt": ids, "echo": True}, PATH)
    check("".join(e["choices"][0]["text"] for e in events).startswith(TEXT), "a stream", events)


def test_reuse(s):
    """A longer prompt of ids continues the shorter one, as texts do."""
    ids = ids_of(TEXT) * 8
    s.ask(PATH, {"prompt": ids, "max_tokens": 1})
    _, got, _ = s.ask(PATH, {"prompt": [ids + ids[:3]], "max_tokens": 1})
    check(got["usage"]["prompt_tokens_details"]["cached_tokens"] >= len(ids) - 1, "nothing is reused", got)


def test_errors(s):
    context = int(s.metric("context_tokens"))
    for more in ({}, {"echo": True}, {"echo": True, "logprobs": 1}):
        for prompt, word in (([10 ** 9], "outside the vocabulary"), ([[1, "a"]], "token ids are numbers")):
            status, got, _ = s.ask(PATH, {**more, "prompt": prompt})
            check(status == 400 and word in got["error"]["message"] and got["error"]["param"] == "prompt", "error", more, got)
        status, got, _ = s.ask(PATH, {**more, "prompt": [5] * (context + 1)})
        check(status == 400 and got["error"]["code"] == "context_length_exceeded", "too many ids", more, got)
        check(f"{context + 1} tokens" in got["error"]["message"], "too many ids", more, got)
    check(s.forgets(), "memory of requests is left")


s = Server("guide")
for test in (test_same_as_text, test_reuse, test_errors):
    test(s)
check(s.stop() == 143, "SIGTERM: exit status")
finish()

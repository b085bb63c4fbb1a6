# SPDX-License-Identifier: GPL-3.0-or-later
"""Prompts of token ids, as clients that measure likelihoods send them; several answers. Run by serve.sh."""
import json
import os
import subprocess

from serve_http import Server, check, finish, text_of

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


def test_several(s):
    """Several answers are those of one request each, with the next seed."""
    chat = {"messages": [{"role": "user", "content": "How do I set the temperature?"}], "temperature": 1.5, "top_p": 1,
            "top_k": 0, "max_tokens": 12, "logprobs": True}
    text = {"prompt": TEXT, "temperature": 1.5, "top_p": 1, "top_k": 0, "max_tokens": 12, "logprobs": 1, "echo": True}
    for path, body in (("/v1/chat/completions", chat), (PATH, text), (PATH, {**text, "prompt": ids_of(TEXT)})):
        alone = [s.ask(path, {**body, "seed": 7 + i})[1] for i in range(3)]
        _, got, _ = s.ask(path, {**body, "seed": 7, "n": 3})
        check([c["index"] for c in got["choices"]] == [0, 1, 2] and got["seed"] == 7, "their numbers", got)
        kinds = [a["choices"][0].get("message") or a["choices"][0]["text"] for a in alone]
        check(len(set(map(str, kinds))) > 1, "the same answer for each seed", kinds)
        for i, choice in enumerate(got["choices"]):
            want = alone[i]["choices"][0]
            check((choice.get("message") or choice["text"]) == kinds[i], "another answer", i, choice, want)
            check(choice["finish_reason"] == want["finish_reason"], "another end", i, choice, want)
            lists = [c["logprobs"].get("content") or c["logprobs"]["tokens"] for c in (choice, want)]
            names = [[t["token"] if isinstance(t, dict) else t for t in rows] for rows in lists]
            check(names[0] == names[1], "other tokens", i, names)
        check(got["usage"]["prompt_tokens"] == alone[0]["usage"]["prompt_tokens"] and
              got["usage"]["completion_tokens"] == sum(a["usage"]["completion_tokens"] for a in alone), "usage", got)
        events = s.stream({**body, "seed": 7, "n": 3, "stream_options": {"include_usage": True}}, path)
        check(events[-1]["usage"]["completion_tokens"] == got["usage"]["completion_tokens"], "usage of a stream", events[-1])
        for i, choice in enumerate(got["choices"]):
            own = [e for e in events if e["choices"] and e["choices"][0]["index"] == i]
            streamed = text_of(own) if path != PATH else "".join(e["choices"][0]["text"] for e in own)
            check(streamed == (choice["message"]["content"] if path != PATH else choice["text"]), "a stream", i, own)
            check(own[-1]["choices"][0]["finish_reason"] == choice["finish_reason"], "the end of one", i, own[-1])
            if path != PATH:
                check([e["choices"][0]["delta"].get("role") for e in own].count("assistant") == 1, "a role", i, own)


TEMPLATE = ("{% for t in tools or [] %}{{ t | tojson }}{% endfor %}{% for m in messages %}{{ m.role }}: {{ m.content }}"
            "{% for c in m.tool_calls or [] %}{% set t = c.function %}<tool_call>\n{\"name\": \"{{ t.name }}\", "
            "\"arguments\": {{ t.arguments | tojson }}}\n</tool_call>\n{% endfor %}\n{% endfor %}"
            "{% if add_generation_prompt %}assistant: {% endif %}")


def test_several_calls():
    """Each of several answers has its calls."""
    path = os.environ["work"] + "/calls.jinja"
    with open(path, "w") as f:
        f.write(TEMPLATE)
    s = Server("--template", path, "guide")
    arguments = {"type": "object", "properties": {"at": {"enum": ["sea", "sky", "land"]}}, "required": ["at"],
                 "additionalProperties": False}
    body = {"messages": [{"role": "user", "content": "x"}], "temperature": 2, "top_p": 1, "top_k": 0, "max_tokens": 200,
            "tools": [{"type": "function", "function": {"name": "look", "parameters": arguments}}],
            "tool_choice": {"type": "function", "function": {"name": "look"}}}

    def called(calls):
        return [c["function"] for c in calls]

    alone = [s.ask("/v1/chat/completions", {**body, "seed": 3 + i})[1]["choices"][0] for i in range(3)]
    want = [called(c["message"]["tool_calls"]) for c in alone]
    _, got, _ = s.ask("/v1/chat/completions", {**body, "seed": 3, "n": 3})
    check([called(c["message"]["tool_calls"]) for c in got["choices"]] == want, "calls of several answers", got, want)
    events = s.stream({**body, "seed": 3, "n": 3})
    for i in range(3):
        deltas = [e["choices"][0]["delta"] for e in events if e["choices"][0]["index"] == i]
        check(called([c for d in deltas for c in d.get("tool_calls", [])]) == want[i], "a stream of calls", i, deltas)
    check(s.forgets(), "memory of calls is left")
    check(s.stop() == 143, "SIGTERM: exit status")


def test_leaving(s):
    """A client that goes away in one of several answers cancels them all."""
    begun = s.metric("answers_total")
    c = s.connect()
    c.request("POST", PATH, json.dumps({"prompt": [84, 104], "n": 16, "max_tokens": 900, "ignore_eos": True, "stream": True}))
    c.getresponse().readline()
    c.close()
    check(s.forgets(), "an answer without a client goes on")
    check(s.metric("answers_total") < begun + 16, "all answers were written", begun)


def test_too_large():
    """The probabilities of a long prompt are charged as answers are."""
    s = Server("--ctx", "4096", "--body-limit", "64K", "guide")
    for more in ({"max_tokens": 0}, {"max_tokens": 9}, {"max_tokens": 9, "stream": True}, {"max_tokens": 9, "n": 3}):
        body = {"prompt": [84] * 4000, "echo": True, "logprobs": 20, **more}
        status, got, _ = s.ask(PATH, body)
        if more.get("stream"):
            check('"code": "answer_too_large"' in got and got.endswith("data: [DONE]\n\n"), "a stream", got[-300:])
        else:
            check(status == 503 and got["error"]["code"] == "answer_too_large", "logprobs", more, status, str(got)[:300])
    check(s.forgets(), "memory of logprobs is left")
    body = {"input": "x", "top_logprobs": 20, "ignore_eos": True, "max_output_tokens": 900, "stream": True}
    _, got, _ = s.ask("/v1/responses", body)
    last = got.split("\n\n")[-2]
    check(last.startswith("event: response.failed\n") and '"code": "answer_too_large"' in last, "a response", last[:300])
    check(s.forgets(), "memory of a response is left")
    check(s.stop() == 143, "SIGTERM: exit status")


test_several_calls()
test_too_large()
s = Server("guide")
for test in (test_same_as_text, test_reuse, test_several, test_leaving, test_errors):
    test(s)
check(s.stop() == 143, "SIGTERM: exit status")
finish()

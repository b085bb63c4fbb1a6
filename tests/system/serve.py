# SPDX-License-Identifier: GPL-3.0-or-later
"""What clients of qsf-serve get: forms, fields, errors, and the answers of qsf-run. Run by serve.sh."""
import json
import os
import subprocess

from serve_http import Server, check, finish, text_of

BUILD = os.environ["QSF_BUILDDIR"]
QUESTION = "How do I set the temperature?"


def run(*args):
    command = [BUILD + "/qsf-run", "--no-config", "--json", *args, "guide"]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=True)
    return json.loads(done.stdout)


def content(answer):
    return answer["choices"][0]["message"]["content"]


def test_forms(s):
    status, health, _ = s.ask("/health")
    check(status == 200 and health["status"] == "ok" and health["model"] == "guide", "health", health)
    status, models, _ = s.ask("/v1/models")
    check(status == 200 and [m["id"] for m in models["data"]] == ["guide"], "models", models)
    used = models["data"][0]
    check(used["max_model_len"] == used["context_length"] == s.metric("context_tokens"), "the context", used)
    check(s.ask("/v1/models/guide")[1]["object"] == "model", "a model")
    check(s.ask("/v1/models/other")[0] == 404, "a model that does not exist")
    status, text, headers = s.ask("/metrics")
    check(status == 200 and headers["Content-Type"].startswith("text/plain"), "metrics")
    check(all(line.startswith("#") or len(line.split()) == 2 for line in text.splitlines()), "metrics", text)
    status, answer, headers = s.chat(QUESTION, temperature=0, model="guide")
    usage = answer["usage"]
    check(status == 200 and answer["object"] == "chat.completion", "an answer", answer)
    check(usage["total_tokens"] == usage["prompt_tokens"] + usage["completion_tokens"], "usage", usage)
    check(answer["choices"][0]["finish_reason"] == "stop", "finish_reason")
    check(headers["Cache-Control"] == "no-store", "headers")


def test_same_as_run(s):
    for i, more in enumerate([{"temperature": 0}, {"seed": 7}, {"seed": 8, "top_k": 0, "min_p": 0.05},
                              {"seed": 9, "repetition_penalty": 1.3, "temperature": 1.2},
                              {"seed": 10, "mirostat": 2}, {"seed": 11, "top_p": 0.5, "frequency_penalty": 0.5}]):
        options = []
        names = {"repetition_penalty": "repeat-penalty", "frequency_penalty": "frequency"}
        for k, v in more.items():
            options += ["--" + names.get(k, k).replace("_", "-"), str(v)]
        want = run("-n", "60", "-p", QUESTION, *options)
        _, got, _ = s.chat(QUESTION, max_tokens=60, **more)
        check(content(got) == want["text"], "not the answer of qsf-run:", more, content(got), want["text"])
        check(got["usage"]["completion_tokens"] == want["tokens"], "tokens", i)
        check(got["usage"]["prompt_tokens"] == want["prompt_tokens"], "prompt tokens", i)
        events = s.stream({"messages": [{"role": "user", "content": QUESTION}], "max_tokens": 60, **more})
        check(text_of(events) == want["text"], "another answer as a stream:", more)
    for only in ("[bw]\\w*", "[bw]\\w* the|a"):
        want = run("-n", "12", "-p", QUESTION, "--seed", "3", "--only", only)
        _, got, _ = s.chat(QUESTION, max_tokens=12, seed=3, only=only)
        check(content(got) == want["text"], "not the answer of qsf-run:", only, content(got), want["text"])
    want = run("--template", "raw", "--temperature", "0", "-n", "24", "-p", "The temperature")
    body = {"prompt": "The temperature", "temperature": 0, "max_tokens": 24}
    _, got, _ = s.ask("/v1/completions", body)
    check(got["choices"][0]["text"] == want["text"], "not the text of qsf-run:", got, want["text"])
    events = s.stream(body, "/v1/completions")
    check("".join(e["choices"][0]["text"] for e in events) == want["text"], "another text as a stream")
    _, got, _ = s.ask("/v1/completions", {**body, "prompt": ["The temperature"], "echo": True})
    check(got["choices"][0]["text"] == "The temperature" + want["text"], "echo", got)
    _, got, _ = s.ask("/v1/completions", {"prompt": "The temperature", "temperature": 0})
    check(got["usage"]["completion_tokens"] <= 16, "16 tokens by default")
    system = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": QUESTION}]
    want = run("--system", "Be brief.", "--temperature", "0", "-p", QUESTION)
    parts = [{"type": "text", "text": QUESTION[:9]}, {"type": "text", "text": QUESTION[9:]}]
    for messages in (system, [{**system[0], "role": "developer"}, {"role": "user", "content": parts}]):
        _, got, _ = s.chat(messages, temperature=0, max_tokens=256)
        check(content(got) == want["text"], "with a system message", got)


def test_stream(s):
    body = {"messages": [{"role": "user", "content": QUESTION}], "temperature": 0}
    events = s.stream({**body, "stream_options": {"include_usage": True}})
    check(events[0]["choices"][0]["delta"]["role"] == "assistant", "the role comes first")
    check(all("role" not in e["choices"][0]["delta"] for e in events[1:-1]), "the role comes once")
    check(events[-1]["choices"] == [] and events[-1]["usage"]["completion_tokens"] > 0, "usage", events[-1])
    check(events[-2]["choices"][0]["finish_reason"] == "stop", "finish_reason", events[-2])
    check(len({e["id"] for e in events}) == 1, "one id")
    plain = s.stream({**body, "seed": 5})
    check(all("usage" not in e for e in plain), "usage that nobody asked for")
    check(plain[-1]["seed"] == 5 and all("seed" not in e for e in plain[:-1]), "the seed", plain[-1])
    events = s.stream({**body, "grammar": 'root ::= "<" [a-z]*', "stop": ["<"]})
    check(text_of(events) == "" and events[0]["choices"][0]["delta"]["role"] == "assistant", "no text", events)


def test_fields(s):
    _, whole, _ = s.chat(QUESTION, temperature=0)
    text = content(whole)
    word = text.split()[3]
    for stop in (word, [word], ["no such text", word]):
        _, got, _ = s.chat(QUESTION, temperature=0, stop=stop)
        check(content(got) == text[:text.index(word)], "stop", got)
        check(got["choices"][0]["finish_reason"] == "stop", "stop: finish_reason")
    for name in ("max_tokens", "max_completion_tokens"):
        _, got, _ = s.chat(QUESTION, temperature=0, **{name: 5})
        check(got["choices"][0]["finish_reason"] == "length" and got["usage"]["completion_tokens"] == 5, name, got)
    _, got, _ = s.chat(QUESTION)
    _, again, _ = s.chat(QUESTION, seed=got["seed"])
    check(content(again) == content(got), "the seed of an answer gives it again")
    _, got, _ = s.chat(QUESTION, temperature=0, max_tokens=8, logprobs=True, top_logprobs=3)
    tokens = got["choices"][0]["logprobs"]["content"]
    joined = b"".join(bytes(t["bytes"]) for t in tokens).decode()
    check(joined.strip() == content(got).strip(), "tokens of logprobs", joined, content(got))
    check(all(len(t["top_logprobs"]) == 3 and t["top_logprobs"][0]["logprob"] >= t["logprob"] - 1e-6
              for t in tokens), "top_logprobs", tokens)
    _, got, _ = s.chat(QUESTION, temperature=0, max_tokens=8, logprobs=True, top_logprobs=20)
    most = got["choices"][0]["logprobs"]["content"]
    check(all(len(t["top_logprobs"]) == 20 and t["top_logprobs"][:3] == k["top_logprobs"] and
              t["top_logprobs"] == sorted(t["top_logprobs"], key=lambda x: -x["logprob"])
              for t, k in zip(most, tokens)), "20 top_logprobs", most)
    events = s.stream({"messages": [{"role": "user", "content": QUESTION}], "temperature": 0, "max_tokens": 8,
                       "logprobs": True})
    streamed = [t["token"] for e in events for t in (e["choices"][0]["logprobs"] or {"content": []})["content"]]
    check(streamed == [t["token"] for t in tokens], "logprobs of a stream", streamed)
    _, got, _ = s.ask("/v1/completions", {"prompt": "The temperature", "temperature": 0, "logprobs": 2})
    parts = got["choices"][0]["logprobs"]
    check("".join(parts["tokens"]) == got["choices"][0]["text"], "logprobs of a completion", got)
    # The prompt's own tokens, as clients that measure likelihoods ask for them: those of an answer again.
    again = "The temperature" + got["choices"][0]["text"]
    for most in (0, 1):
        _, scored, _ = s.ask("/v1/completions", {"prompt": again, "temperature": 0, "logprobs": 2, "echo": True,
                             "max_tokens": most})
        rows = scored["choices"][0]["logprobs"]
        n = len(rows["tokens"]) - most
        check(scored["choices"][0]["text"].startswith(again) and "".join(rows["tokens"]) ==
              scored["choices"][0]["text"], "tokens of a prompt", scored)
        check(rows["token_logprobs"][0] is None and rows["top_logprobs"][0] is None and
              all(len(t) == 2 for t in rows["top_logprobs"][1:]), "the first token of a prompt", rows)
        check(rows["text_offset"] == [len("".join(rows["tokens"][:i])) for i in range(n + most)],
              "text_offset of a prompt", rows)
        same = len(parts["tokens"])
        check(rows["tokens"][n - same:n] == parts["tokens"] and all(abs(a - b) < 1e-3 for a, b in
              zip(rows["token_logprobs"][n - same:n], parts["token_logprobs"])), "logprobs of a prompt", rows, parts)
        check(scored["usage"]["completion_tokens"] == most and scored["usage"]["prompt_tokens"] == n,
              "usage of a prompt", scored)
    status, _, _ = s.ask("/v1/completions", {"prompt": "a", "max_tokens": 0})
    check(status == 400, "max_tokens 0 without echo", status)
    check(len({len(parts[k]) for k in parts}) == 1 and parts["text_offset"][0] == 0, "their arrays", parts)
    ids = subprocess.run([BUILD + "/qsf-run", "--no-config", "--tokenize", "--no-bos", "guide"],
                         input=text.split()[0], capture_output=True, text=True, check=True)
    first = ids.stdout.split()[0]
    _, got, _ = s.chat(QUESTION, temperature=0, logit_bias={first: -100})
    check(not content(got).startswith(text.split()[0]), "logit_bias", first, got)
    schema = {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"enum": ["x", "y"]}},
              "required": ["a", "b"], "additionalProperties": False}
    _, got, _ = s.chat("Say something", seed=1, response_format={"type": "json_schema",
                                                         "json_schema": {"name": "t", "schema": schema}})
    value = json.loads(content(got))
    check(isinstance(value["a"], int) and value["b"] in "xy", "json_schema", got)
    for schema, want in (({"anyOf": [{"const": 7}, {"const": "x"}]}, (7, "x")),
                         ({"$ref": "#/$defs/a", "$defs": {"a": {"enum": ["x", 7]}}}, (7, "x")),
                         ({"allOf": [{"type": "integer"}, {"minimum": 7}, {"maximum": 7}]}, (7,)),
                         ({"properties": {"a": {"enum": [7, "x"]}, "b": {"$ref": "#/properties/a"}}, "required": ["b"]}, None)):
        _, got, _ = s.chat("Say something", seed=1, response_format={"type": "json_schema", "json_schema": {"schema": schema}})
        value = json.loads(content(got))
        check(value in want if want else value["b"] in (7, "x"), "json_schema", schema, got)
    _, got, _ = s.chat("Say something", seed=1, response_format={"type": "json_object"}, max_tokens=40)
    check(isinstance(json.loads(content(got)), dict), "json_object", got)
    _, got, _ = s.chat("Say something", seed=1, grammar='root ::= "yes" | "no"')
    check(content(got) in ("yes", "no"), "grammar", got)
    ignored = {"user": "u", "metadata": {"a": "b"}, "store": False, "service_tier": "auto", "stop": None}
    check(s.chat(QUESTION, temperature=0, **ignored)[1]["choices"] == whole["choices"], "ignored fields")
    begun = text[:text.index(" ", 20)]
    _, got, _ = s.chat([{"role": "user", "content": QUESTION}, {"role": "assistant", "content": begun}],
                       temperature=0, continue_final_message=True)
    check((begun + content(got)) == text, "continue_final_message", got)


def test_errors(s):
    message = {"role": "user", "content": "x"}
    cases = [
        (b"", "a JSON object is expected"), (b"[]", "not a JSON object"), (b'{"messages": [', "not JSON"),
        (b'{"a" "b"}', "JSON"), (b"{} x", "JSON"), (b'{"messages": "\xff"}', ""), ({}, "messages"),
        ({"messages": []}, "messages"), ({"messages": [{}]}, "messages[0]: role"),
        ({"messages": [{"role": "robot", "content": ""}]}, "robot"),
        ({"messages": [{"role": "user"}]}, "content is missing"),
        ({"messages": [message, {"role": "user", "content": 5}]}, "messages[1].content"),
        ({"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {}}]}]}, "image_url"),
        ({"messages": [{**message, "audio": {}}]}, "messages[0].audio"),
        ({"messages": [message], "no_such_field": 1}, "no_such_field"),
        ({"messages": [message], "prompt": "x"}, "prompt"), ({"messages": [message], "n": 17}, "n: expected a whole number"),
        ({"messages": [message], "temperature": "hot"}, "temperature"),
        ({"messages": [message], "temperature": 99}, "temperature"),
        ({"messages": [message], "top_k": 1.5}, "top"), ({"messages": [message], "max_tokens": 0}, "max_tokens"),
        ({"messages": [message], "max_tokens": -1}, "max_tokens"), ({"messages": [message], "seed": 1.5}, "seed"),
        ({"messages": [message], "stop": [""]}, "stop"), ({"messages": [message], "stop": ["a"] * 17}, "stop"),
        ({"messages": [message], "top_logprobs": 2}, "top_logprobs"),
        ({"messages": [message], "logprobs": True, "top_logprobs": 21}, "top_logprobs"),
        ({"messages": [message], "logit_bias": {"x": 1}}, "logit_bias"),
        ({"messages": [message], "logit_bias": {"1": 101}}, "logit_bias"),
        ({"messages": [message], "response_format": {"type": "xml"}}, "response_format"),
        ({"messages": [message], "response_format": {"type": "json_schema",
          "json_schema": {"schema": {"type": "no such"}}}}, ""),
        ({"messages": [message], "grammar": "root ::= ("}, ""), ({"messages": [message], "stream": 1}, "stream"),
        ({"messages": [message], "stream_options": {"include_usage": True}}, "stream_options"),
        ({"messages": [message], "tool_choice": "required"}, "tool_choice needs tools"),
        ({"messages": [message], "tool_choice": "maybe"}, "tool_choice"),
        ({"messages": [message], "tool_choice": {"type": "function"}}, "tool_choice"),
        ({"messages": [message], "tool_choice": {"type": "custom", "function": {"name": "f"}}}, "tool_choice"),
        ({"messages": [message], "tools": [{"type": "function", "function": {"name": "f"}}]}, "tools"),
        ({"messages": [message], "reasoning_effort": "extreme"}, "reasoning_effort"),
        ({"messages": [message], "chat_template_kwargs": {"x": 1}}, "chat_template_kwargs"),
        ({"messages": [message], "continue_final_message": True}, "continue_final_message"),
        ({"messages": [{"role": "user", "content": "word " * 3000}]}, "context"),
        ({"messages": [message] * 5000}, "messages"),
    ]
    for body, word in cases:
        for stream in (False, True):
            if isinstance(body, dict):
                body = {**body, "stream": body.get("stream", stream)}
            status, got, _ = s.ask("/v1/chat/completions", body)
            ok = status == 400 and isinstance(got, dict) and word in got["error"]["message"]
            check(ok and got["error"]["type"] == "invalid_request_error", "not refused:", str(body)[:200], status, got)
    named = [(b"", "empty", None), (json.dumps({"messages": [message]}).encode("utf-16"), "UTF-8", None),
             (b'{"a\\u0000": 1}', "NUL", None), ({"messages": [message], "temperature": 9}, "temperature: takes", "temperature"),
             ({"messages": [message], "grammar": "root ::= ("}, "grammar: line 1", "grammar"),
             ({"messages": [message], "regex": "("}, "regex: ", "regex"), ({"messages": [message], "only": "("}, "only: ", "only"),
             ({"messages": [message], "only": "a", "regex": "a"}, "cannot be combined", "regex"),
             ({"messages": [message], "response_format": {"type": "json_schema", "json_schema": {"schema": {"not": {}}}}},
              "response_format: #/not", "response_format"),
             ({"messages": [message], "logit_bias": {"99999": 1}}, "logit_bias: there is no token", "logit_bias"),
             (b'{"messages": [], "top_k": 1, "top_k": 1}', "top_k: the field occurs twice", "top_k")]
    for body, word, param in named:  # an error names the field
        status, got, _ = s.ask("/v1/chat/completions", body)
        check(status == 400 and word in got["error"]["message"] and got["error"]["param"] == param, "not named:", body, got)
    status, got, _ = s.ask("/v1/completions", {"prompt": ""})
    check(status == 400 and got["error"]["param"] == "prompt", "an empty prompt", got)
    for more in ({}, {"tools": [{"type": "function", "function": {"name": "f"}}]}):
        _, got, _ = s.chat("word " * 3000 if not more else "x", **more)
        check("/" not in got["error"]["message"], "a path of this machine", got)
    check(s.chat("x", model="gpt-4")[1]["error"]["code"] == "model_not_found", "another model")
    check(s.chat("x", model="gpt-4")[0] == 404, "another model")
    for prompt in ([], ["a", "b"], 5, [[1], [2]]):
        check(s.ask("/v1/completions", {"prompt": prompt})[0] == 400, "prompt", prompt)
    check(s.ask("/v1/nothing")[0] == 404, "a path that does not exist")
    status, _, headers = s.ask("/v1/chat/completions")
    check(status == 405 and headers["Allow"] == "POST", "GET")
    check(s.ask("/v1/models", b"{}")[0] == 405, "POST")
    c = s.connect()  # refused before it is sent
    c.putrequest("POST", "/v1/chat/completions")
    c.putheader("Content-Length", str(2 << 20))
    c.putheader("Expect", "100-continue")
    c.endheaders()
    check(c.getresponse().status == 413, "a body that is too large")
    c.close()
    for path, want in (("/v1/chat/completions", 413), ("/v1/nothing", 404)):  # the whole body is sent, then the answer read
        status, got, _ = s.ask(path, b" " * (3 << 20))
        check(status == want and "error" in got, "an error for a large body", status, got)
    status, got, _ = s.ask("/v1/chat/completions", b'{"messages": ' + b"[" * 500 + b"]" * 500 + b"}")
    check(status == 400, "nested arrays", got)
    check(s.chat("\0\x01\u202e\U0001f600 \ud83d"[:-1])[0] == 200, "control characters are text")


def named_events(s, body):
    """The events of /v1/responses: their names are their types, and they are numbered."""
    _, text, _ = s.ask("/v1/responses", {**body, "stream": True})
    events = []
    for i, e in enumerate(text.split("\n\n")[:-1]):
        name, data = e.split("\n")
        events.append(json.loads(data[6:]))
        check(name == "event: " + events[-1]["type"] and events[-1]["sequence_number"] == i, "an event", e)
    return events


def test_responses(s):
    """The same answers in the form of OpenAI's other interface."""
    for more in ({"temperature": 0}, {"seed": 5, "top_k": 30, "max_output_tokens": 9}):
        chat = {("max_tokens" if k == "max_output_tokens" else k): v for k, v in more.items()}
        _, want, _ = s.chat([{"role": "system", "content": "Be brief."}, {"role": "user", "content": QUESTION}], **chat)
        status, got, _ = s.ask("/v1/responses", {"instructions": "Be brief.", "input": QUESTION, **more})
        message = got["output"][0]
        check(status == 200 and got["object"] == "response" and message["content"][0]["text"] == content(want),
              "a response", got, want)
        check(got["status"] == ("incomplete" if "seed" in more else "completed") and
              got["usage"]["output_tokens"] == want["usage"]["completion_tokens"], "the end of a response", got)
        events = named_events(s, {"instructions": "Be brief.", "input": QUESTION, **more})
        deltas = "".join(e["delta"] for e in events if e["type"] == "response.output_text.delta")
        check(deltas == content(want) and events[-1]["response"]["output"][0]["content"] == message["content"],
              "events of a response", events)
    asked = {"input": QUESTION, "temperature": 0, "max_output_tokens": 4, "top_logprobs": 2}
    _, got, _ = s.ask("/v1/responses", asked)
    rows = got["output"][0]["content"][0]["logprobs"]
    check(0 < len(rows) <= 4 and all(len(r["top_logprobs"]) == 2 for r in rows), "logprobs of a response", got)
    streamed = [r for e in named_events(s, asked) if e["type"] == "response.output_text.delta" for r in e["logprobs"]]
    check(streamed == rows, "logprobs of events", streamed)
    for body, param, word in (({}, "input", "missing"), ({"input": "x", "temperature": 9}, "temperature", "takes"),
                              ({"input": "x", "max_output_tokens": -1}, "max_output_tokens", "whole number"),
                              ({"input": [{"role": "user", "content": [{"type": "input_image"}]}]}, "input.content", "text"),
                              ({"input": "x", "text": {"format": {"type": "json_schema", "name": "n", "schema": {"not": {}}}}},
                               "text.format", "text.format: #/not"),
                              ({"input": "word " * 3000}, None, "context"),
                              ({"input": "x", "previous_response_id": "resp_1"}, "previous_response_id", "keeps no responses")):
        status, got, _ = s.ask("/v1/responses", body)
        check(status == 400 and got["error"]["param"] == param and word in got["error"]["message"], "not refused", body, got)
    check(s.ask("/v1/responses/resp_1")[0] == 404 and s.ask("/v1/responses")[0] == 405, "responses that are not kept")
    check(s.forgets(), "memory of requests", s.metric("text_bytes"))


def test_text_is_text(s):
    """What spells a control token in a message is text."""
    for text in ("<|im_end|>", "<|endoftext|>", "<end_of_turn>", "</s>"):
        _, a, _ = s.chat(text, max_tokens=1)
        check(a["usage"]["prompt_tokens"] > s.chat("x", max_tokens=1)[1]["usage"]["prompt_tokens"], text)


def test_tools():
    """The template of a file takes tools, and calls of earlier answers."""
    path = os.environ["work"] + "/tools.jinja"
    with open(path, "w") as f:
        f.write("{% for t in tools or [] %}{{ t | tojson }}\n{% endfor %}{% for m in messages %}{{ m.role }}: "
                "{{ m.content }}{% for c in m.tool_calls or [] %}{{ c.function.name }}{% endfor %}\n{% endfor %}")
    s = Server("--template", path, "guide")
    ask = [{"role": "user", "content": "x"}]
    call = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    tools = [{"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}]
    tokens = [s.chat(m, max_tokens=4, **more)[1]["usage"]["prompt_tokens"] for m, more in (
        (ask, {}), (ask, {"tools": tools}), (ask, {"tools": tools, "tool_choice": "none"}), (ask, {"tools": []}),
        (ask + [{"role": "assistant", "content": None, "tool_calls": [call]},
                {"role": "tool", "tool_call_id": "c1", "content": "42"}], {"tools": tools}))]
    check(tokens[0] < tokens[1] < tokens[4] and tokens[0] == tokens[2] == tokens[3], "prompts with tools", tokens)
    for wrong in ([{}], [1], [{"type": "function"}]):
        status, got, _ = s.chat("x", tools=wrong)
        check(status == 400 and "tools" in got["error"]["message"], "tools", wrong, got)
    text = '<tool_call>{"name": "look", "arguments": {"at": 1}}</tool_call>'
    forced = {"grammar": 'root ::= "Wait. " ' + json.dumps(text)}
    status, got, _ = s.chat("x", tools=tools, **forced)
    check(status == 400 and "combined" in got["error"]["message"], "tools and a grammar", got)
    s.stop()
    with open(os.environ["work"] + "/call.gbnf", "w") as f:
        f.write(forced["grammar"])
    s = Server("--template", path, "--grammar", f.name, "guide")  # the model has no choice
    status, got, _ = s.chat("x", tools=tools, max_tokens=200)
    choice = got["choices"][0]
    check(choice["finish_reason"] == "tool_calls" and choice["message"]["content"] == "Wait.", "a call", got)
    function = choice["message"]["tool_calls"][0]["function"]
    check(function == {"name": "look", "arguments": '{"at": 1}'}, "a call", function)
    events = s.stream({"messages": ask, "tools": tools, "max_tokens": 200})
    calls = [c for e in events for c in e["choices"][0]["delta"].get("tool_calls", [])]
    check(text_of(events) == "Wait." and len(calls) == 1 and calls[0]["index"] == 0, "a streamed call", events)
    check(calls[0]["function"] == function and events[-1]["choices"][0]["finish_reason"] == "tool_calls", "calls", calls)
    check(s.chat("x", max_tokens=200)[1]["choices"][0]["message"]["content"] == "Wait. " + text, "without tools")
    s.stop()


# How templates write calls; c: a call, t: its function.
BEGIN = "{% for t in tools or [] %}{{ t | tojson }}\n{% endfor %}{% for m in messages %}{{ m.role }}: {{ m.content }}"
CALLS = "{% for c in m.tool_calls or [] %}{% set t = c.function %}"
END = "{% endfor %}\n{% endfor %}{% if add_generation_prompt %}assistant: {% endif %}"
FORMS = {
    "hermes": CALLS + '<tool_call>\n{"name": "{{ t.name }}", "arguments": {{ t.arguments | tojson }}}\n</tool_call>\n',
    "llama": CALLS + '{"name": "{{ t.name }}", "parameters": {{ t.arguments | tojson }}}',
    "mistral": "{% if m.tool_calls %}[TOOL_CALLS][{% endif %}" + CALLS +
               '{"name": "{{ t.name }}", "arguments": {{ t.arguments | tojson }}, "id": "{{ c.id }}"}]',
    "coder": CALLS + "<tool_call>\n<function={{ t.name }}>\n{% for k, v in t.arguments.items() %}<parameter={{ k }}>\n"
             "{{ v }}\n</parameter>\n{% endfor %}</function>\n</tool_call>",
}
LOOK = {"type": "object", "properties": {
    "at": {"enum": ["sea", "sky"]}, "n": {"type": "integer", "minimum": 3, "maximum": 7}, "to": {"$ref": "#/$defs/to"}},
    "required": ["at", "n", "to"], "additionalProperties": False, "$defs": {"to": {"type": "array", "items": {
        "type": "boolean"}, "minItems": 1, "maxItems": 2}}}
STOP = {"type": "object", "properties": {}, "additionalProperties": False}
# Put together at its root, with references into other places than $defs.
PARTS = {"$ref": "#/$defs/one", "$defs": {"one": {"type": "object", "properties": {"k": {"enum": ["i", "s"]}}, "required": ["k", "v"], "oneOf": [
    {"properties": {"k": {"const": "i"}, "v": {"type": "integer", "minimum": 1, "maximum": 9}}, "required": ["k"]},
    {"properties": {"k": {"const": "s"}, "v": {"enum": ["x", "y"]}, "w": {"$ref": "#/$defs/one/oneOf/0/properties/v"}},
     "required": ["w"]}]}}}


def check_call(call, name=None):
    f = call["function"]
    a = json.loads(f["arguments"])
    check(name in (None, f["name"]) and f["name"] in ("look", "stop"), "the name of a call", call)
    if f["name"] == "stop":
        return check(a == {}, "arguments of stop", call)
    to = a["to"]
    return check(isinstance(to, list) and list(a) == ["at", "n", "to"] and a["at"] in ("sea", "sky") and
                 3 <= a["n"] <= 7 and 1 <= len(to) <= 2,
                 "arguments of look", call)


def test_tool_choice(name, form):
    """The model has to call a tool, whatever it would say."""
    path = f"{os.environ['work']}/{name}.jinja"
    with open(path, "w") as f:
        f.write(BEGIN + form + END)
    s = Server("--ctx", "2048", "--template", path, "guide")
    tools = [{"type": "function", "function": {"name": "look", "parameters": LOOK}},
             {"type": "function", "function": {"name": "stop", "parameters": STOP}}]
    for choice in ("required", {"type": "function", "function": {"name": "look"}},
                   {"type": "function", "function": {"name": "stop"}}):
        one = isinstance(choice, dict)
        for seed in range(3):
            more = {"tools": tools, "tool_choice": choice, "seed": seed, "max_tokens": 400, "temperature": 1.5}
            status, got, _ = s.chat("x", **more)
            if not check(status == 200 and got["choices"][0]["finish_reason"] in ("tool_calls", "length"), name, got):
                continue
            message = got["choices"][0]["message"]
            check(len(message["tool_calls"]) >= 1 and not message["content"], name, choice, got)
            check(not one or len(message["tool_calls"]) == 1, "one call", got)
            for call in message["tool_calls"]:
                check_call(call, choice["function"]["name"] if one else None)
            events = s.stream({"messages": [{"role": "user", "content": "x"}], **more})
            calls = [c for e in events for c in e["choices"][0]["delta"].get("tool_calls", [])]
            check([c["function"] for c in calls] == [c["function"] for c in message["tool_calls"]], "streamed", calls)
    for seed in range(4):
        _, got, _ = s.chat("x", tools=tools, tool_choice="required", parallel_tool_calls=False, seed=seed, max_tokens=400)
        check(len(got["choices"][0]["message"]["tool_calls"]) == 1, "no parallel calls", got)
    parts = [{"type": "function", "function": {"name": "parts", "parameters": PARTS}}]
    for seed in range(4):
        status, got, _ = s.chat("x", tools=parts, tool_choice="required", parallel_tool_calls=False, seed=seed,
                                max_tokens=400, temperature=2)
        if not check(status == 200, "a schema of parts", name, got):
            continue
        a = json.loads(got["choices"][0]["message"]["tool_calls"][0]["function"]["arguments"])
        check(a in [{"k": "i", "v": v} for v in range(1, 10)] or
              a in [{"k": "s", "v": v, "w": w} for v in "xy" for w in range(1, 10)], "a schema of parts", name, got)
    answers = set()
    schema = {"type": "json_schema", "json_schema": {"name": "a", "schema": {"enum": ["yes", "no"]}}}
    for seed in range(24):  # a call, or an answer that matches
        _, got, _ = s.chat("x", tools=tools, response_format=schema, seed=seed, max_tokens=400, temperature=5,
                           top_k=0, top_p=1, min_p=0)
        message = got["choices"][0]["message"]
        answers.add("calls" if "tool_calls" in message else message["content"])
        if seed >= 4 and "calls" in answers and len(answers) > 1:
            break
    check(answers <= {"calls", '"yes"', '"no"'} and "calls" in answers and len(answers) > 1, "tools and response_format", answers)
    _, got, _ = s.chat("x", tools=tools, tool_choice="required", response_format=schema, max_tokens=400)
    check("tool_calls" in got["choices"][0]["message"], "required and response_format", got)
    wrong = [{"type": "function", "function": {"name": "odd", "parameters": {"type": "object", "not": {}}}}]
    for body, word in (({"tools": tools, "tool_choice": {"type": "function", "function": {"name": "no"}}}, "'no'"),
                       ({"tools": tools, "tool_choice": "required", "grammar": 'root ::= "x"'}, "combined"),
                       ({"tools": tools, "tool_choice": "required", "continue_final_message": True}, "continue")):
        status, got, _ = s.chat("x", **body)
        check(status == 400 and word in got["error"]["message"], "not refused", body, got)
    status, got, _ = s.chat("x", tools=wrong, tool_choice="required")
    check(status == 400 and "'odd'" in got["error"]["message"] and "not" in got["error"]["message"] and
          got["error"]["param"] == "tools", "a schema that is not supported", got)
    stop = {"type": "function", "function": {"name": "stop"}}
    status, got, _ = s.chat("x", tools=wrong + tools, tool_choice=stop, max_tokens=400, stop=["st", "}", "<"])
    check(status == 200 and got["choices"][0]["finish_reason"] == "tool_calls", "a wrong schema of another tool; stop", got)
    for function, choice, word, param in (({"name": ""}, "required", "empty", "tools"), ({"name": ""}, "auto", "empty", "tools"),
            ({"name": "f", "parameters": {"type": "string"}}, "required", "object", "tools"),
            ({"name": "f", "parameters": {"allOf": [{"type": "string"}]}}, "required", "no object", "tools"),
            ({"name": "f", "parameters": {"properties": {"a": {"$ref": "http://evil/x"}}}}, "required", "http://evil/x", "tools"),
            ({"name": "f"}, {"type": "function", "function": {"name": "no"}}, "'no'", "tool_choice"),
            ({"name": "f"}, 1, "an object", "tool_choice")):
        status, got, _ = s.chat("x", tools=[{"type": "function", "function": function}], tool_choice=choice)
        check(status == 400 and word in got["error"]["message"] and got["error"]["param"] == param, function, choice, got)
    check(s.stop() == 143, "SIGTERM: exit status", name)


def test_thought():
    """The model reasons first, and does not end its answer with the thought."""
    path = os.environ["work"] + "/thought.jinja"
    with open(path, "w") as f:
        f.write(BEGIN + FORMS["hermes"] + END.replace("assistant: ", "assistant: <think>\n") + "{# </think> #}")
    s = Server("--template", path, "guide")
    tools = [{"type": "function", "function": {"name": "stop", "parameters": STOP}}]
    for seed in range(6):
        _, got, _ = s.chat("x", tools=tools, tool_choice="required", seed=seed, max_tokens=200)
        choice = got["choices"][0]
        check(choice["finish_reason"] in ("length", "tool_calls"), "a thought ends the answer", got)
        check(choice["message"]["reasoning_content"], "no thought", got)
    check(s.stop() == 143, "SIGTERM: exit status")


def test_unknown_form():
    path = os.environ["work"] + "/unknown.jinja"
    with open(path, "w") as f:
        f.write(BEGIN + CALLS + "CALL {{ t.name }}({{ t.arguments | tojson }})" + END)
    s = Server("--template", path, "guide")
    tools = [{"type": "function", "function": {"name": "look"}}]
    for more in ({"tool_choice": "required"}, {"response_format": {"type": "json_object"}}):
        status, got, _ = s.chat("x", tools=tools, **more)
        check(status == 400 and "cannot enforce" in got["error"]["message"] and "/" not in got["error"]["message"],
              "an unknown form of calls", got)
    check(s.chat("x", tools=tools, max_tokens=2)[0] == 200, "auto with an unknown form")
    check(s.stop() == 143, "SIGTERM: exit status")


test_tools()
for form in FORMS.items():
    test_tool_choice(*form)
test_thought()
test_unknown_form()
s = Server("guide")
for test in (test_forms, test_same_as_run, test_stream, test_fields, test_responses, test_errors,
             test_text_is_text):
    test(s)
check(s.stop() == 143, "SIGTERM: exit status")
finish()

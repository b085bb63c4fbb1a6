// SPDX-License-Identifier: GPL-3.0-or-later
// OpenAI's own client for JavaScript against qsf-serve: node serve_openai.mjs URL. Run by serve_openai.sh, in a
// folder where the package is installed.
import assert from "node:assert";
import OpenAI from "openai";

const client = new OpenAI({ baseURL: process.argv[2] + "/v1", apiKey: "none", maxRetries: 0 });
const messages = [{ role: "user", content: "How do I set the temperature?" }];

const models = [];
for await (const m of client.models.list()) models.push(m.id);
assert.deepEqual(models, ["guide"]);

const whole = await client.chat.completions.create({ model: "guide", messages, temperature: 0, logprobs: true });
const text = whole.choices[0].message.content;
assert.ok(text.length > 20);
assert.equal(whole.choices[0].finish_reason, "stop");
assert.ok(whole.choices[0].logprobs.content.length > 5);

let streamed = "";
let usage;
const stream = await client.chat.completions.create({
    model: "guide", messages, temperature: 0, stream: true, stream_options: { include_usage: true } });
for await (const chunk of stream) {
    streamed += chunk.choices[0]?.delta?.content ?? "";
    usage = chunk.usage ?? usage;
}
assert.equal(streamed, text);
assert.equal(usage.completion_tokens, whole.usage.completion_tokens);
assert.ok(usage.prompt_tokens_details.cached_tokens > 0);

const runner = client.chat.completions.stream({ model: "guide", messages, temperature: 0 });
assert.equal(await runner.finalContent(), text);

const schema = { type: "object", properties: { yes: { type: "boolean" } }, required: ["yes"], additionalProperties: false };
const json = await client.chat.completions.create({
    model: "guide", messages, response_format: { type: "json_schema", json_schema: { name: "n", schema, strict: true } } });
assert.equal(typeof JSON.parse(json.choices[0].message.content).yes, "boolean");

const raw = await client.completions.create({ model: "guide", prompt: "The temperature", max_tokens: 5, temperature: 0 });
assert.ok(raw.choices[0].text.length > 0);

await assert.rejects(client.chat.completions.create({ model: "other", messages }), OpenAI.NotFoundError);
const ids = await client.completions.create({ model: "guide", prompt: [[84, 104, 101]], max_tokens: 1, echo: true, n: 2 });
assert.deepEqual(ids.choices.map((c) => [c.index, c.text.startsWith("The")]), [[0, true], [1, true]]);
const two = await client.chat.completions.stream({ model: "guide", messages, temperature: 0, n: 2 }).finalChatCompletion();
assert.deepEqual(two.choices.map((c) => [c.index, c.message.content]), [[0, text], [1, text]]);
await assert.rejects(client.chat.completions.create({ model: "guide", messages, n: 17 }),
    (e) => e instanceof OpenAI.BadRequestError && e.param === "n");

// ---- responses: the same answers
const input = messages[0].content;
const response = await client.responses.create({ model: "guide", input, temperature: 0 });
assert.equal(response.output_text, text);
assert.equal(response.status, "completed");
let events = "";
for await (const e of await client.responses.create({ model: "guide", input, temperature: 0, stream: true }))
    if (e.type === "response.output_text.delta") events += e.delta;
assert.equal(events, text);
assert.equal((await client.responses.stream({ model: "guide", input, temperature: 0 }).finalResponse()).output_text, text);
const formed = await client.responses.create({ model: "guide", input, text: { format: {
    type: "json_schema", name: "n", schema, strict: true } } });
assert.equal(typeof JSON.parse(formed.output_text).yes, "boolean");
await assert.rejects(client.responses.create({ model: "guide", input, previous_response_id: "resp_1" }),
    (e) => e instanceof OpenAI.BadRequestError && e.param === "previous_response_id");
await assert.rejects(client.embeddings.create({ model: "guide", input }), OpenAI.NotFoundError);

const controller = new AbortController();
const aborted = await client.chat.completions.create(
    { model: "guide", messages, stream: true, ignore_eos: true, max_tokens: 900 }, { signal: controller.signal });
for await (const chunk of aborted) {
    if (chunk.choices[0].delta.content) controller.abort();
}
assert.ok((await client.chat.completions.create({ model: "guide", messages, temperature: 0 })).choices[0].message.content
    === text);

// ---- tools, with a server whose chat template has a place for them
const second = new OpenAI({ baseURL: process.argv[3] + "/v1", apiKey: "none", maxRetries: 0 });
const parameters = { type: "object", properties: { at: { enum: ["sea", "sky"] }, n: { type: "integer", minimum: 3, maximum: 7 } },
    required: ["at", "n"], additionalProperties: false };
const asked = { model: "guide", messages, tools: [{ type: "function", function: { name: "look", parameters } }],
    tool_choice: "required", parallel_tool_calls: false, seed: 1 };
const isCall = (call) => {
    const values = JSON.parse(call.function.arguments);
    assert.ok(call.function.name === "look" && ["sea", "sky"].includes(values.at) && values.n >= 3 && values.n <= 7);
};

let name = "", args = "", id, finish;
for await (const chunk of await second.chat.completions.create({ ...asked, stream: true })) {
    for (const call of chunk.choices[0].delta.tool_calls ?? []) {
        assert.equal(call.index, 0);
        id ??= call.id;
        name += call.function.name ?? "";
        args += call.function.arguments ?? "";
    }
    finish = chunk.choices[0].finish_reason ?? finish;
}
assert.ok(id && finish === "tool_calls");
isCall({ function: { name, arguments: args } });

const helper = second.chat.completions.stream(asked);
const message = (await helper.finalChatCompletion()).choices[0].message;
isCall(message.tool_calls[0]);
const named = await second.chat.completions.create({ ...asked, tool_choice: { type: "function", function: { name: "look" } } });
isCall(named.choices[0].message.tool_calls[0]);
const after = await second.chat.completions.create({ ...asked, tool_choice: "none", max_tokens: 4, messages: [
    ...messages, message, { role: "tool", tool_call_id: message.tool_calls[0].id, content: "blue" }] });
assert.ok(after.usage.completion_tokens > 0);

const called = { model: "guide", input, tools: [{ type: "function", name: "look", parameters, strict: true }],
    tool_choice: "required", parallel_tool_calls: false, seed: 1 };
const itemIsCall = (item) => isCall({ function: { name: item.name, arguments: item.arguments } });
const items = (await second.responses.create(called)).output;
itemIsCall(items[0]);
itemIsCall((await second.responses.stream(called).finalResponse()).output[0]);
const next = await second.responses.create({ ...called, tool_choice: "none", max_output_tokens: 4, input: [
    { role: "user", content: input }, ...items, { type: "function_call_output", call_id: items[0].call_id, output: "blue" }] });
assert.ok(next.usage.output_tokens > 0 && next.output[0].type === "message");

const stop = new AbortController();
const leaving = await second.chat.completions.create(
    { ...asked, tool_choice: "auto", stream: true, ignore_eos: true, max_tokens: 400 }, { signal: stop.signal });
for await (const chunk of leaving) {
    assert.ok(chunk.id);
    stop.abort();
}
isCall((await second.chat.completions.create(asked)).choices[0].message.tool_calls[0]);
console.log("ok");

// SPDX-License-Identifier: GPL-3.0-or-later
// The engine's side of the page: starts the module (src/web/chat.h), reads files for its threads, and passes on
// messages and events. The engine's threads need this one for all that they read, so nothing here waits for them.
//
// Messages of the page:  start {budget, threads}   open {files} or {address}   set {name, value}
//                        send {messages}           stop
// Messages to the page:  ready {version, settings} loaded, notice, text, reasoning, done, error (of the engine)
//                        settings {settings}       stats       failed {text}
'use strict';

importScripts('source.js', 'engine.js');

const WASM_PAGE = 65536;
const FIRST_BYTES = 4 << 20;    // the memory that the module has when it starts (mk/wasm.mk)
const STATS_MS = 200;
const EIO = 29;                 // of Emscripten's errno.h
const LIVE = ['temperature', 'top-k', 'top-p', 'quality', 'seed', 'max-tokens'];

let engine = null, memory = null;
let ticking = null;
let whyNotRead = '';            // the last read that failed
const sources = [];             // by the numbers of qsf_web_add_file

const say = (kind, what = {}) => postMessage({ kind, ...what });

// ---- texts in the memory of the module, which other threads share

function withText(texts, call) {
    const at = texts.map(text => {
        const n = engine.lengthBytesUTF8(text) + 1, p = engine._malloc(n) >>> 0;
        if (p === 0) throw new Error('out of memory');
        engine.stringToUTF8(text, p, n);
        return p;
    });
    try {
        return call(...at);
    } finally {
        at.forEach(p => engine._free(p));
    }
}

const text = p => engine.UTF8ToString(p >>> 0);

// Calls a function that returns a sentence if it fails.
function demand(name, ...texts) {
    const why = text(withText(texts, (...at) => engine[name](...at)));
    if (why !== '') throw new Error(why);
}

// ---- reading, for the threads of the engine

async function readFile(file, off, len, dst, got, done) {
    let result = len;
    try {
        await sources[file].read(off, len, (bytes, at) => new Uint8Array(memory.buffer).set(bytes, dst + at));
    } catch (e) {
        whyNotRead = e.message;
        result = -EIO;
    }
    const words = new Int32Array(memory.buffer);
    words[got >>> 2] = result;
    Atomics.store(words, done >>> 2, 1);
    Atomics.notify(words, done >>> 2);
}

// ---- events

function drain() {
    for (let line; (line = text(engine._qsf_web_next())) !== '';) {
        const { type, ...event } = JSON.parse(line);
        if (type === 'error' && whyNotRead !== '') event.text = whyNotRead;
        if (type === 'done') event.ids = JSON.parse(text(engine._qsf_web_tokens())).ids;
        if (type === 'loaded') say('settings', { settings: settings() });
        say(type, event);
        if (['loaded', 'done', 'error'].includes(type)) quiet();
    }
}

const stats = () => say('stats', { ...JSON.parse(text(engine._qsf_web_stats())), memorySize: memory.buffer.byteLength });

function busy() {
    whyNotRead = '';
    ticking ??= setInterval(stats, STATS_MS);
}

function quiet() {
    clearInterval(ticking);
    ticking = null;
    stats();
}

const settings = () => LIVE.map(name => JSON.parse(text(withText([name], engine._qsf_web_setting))));

// ---- messages of the page

async function start({ budget, threads }) {
    const pages = Math.floor(budget / WASM_PAGE);
    memory = new WebAssembly.Memory({ initial: FIRST_BYTES / WASM_PAGE, maximum: pages, shared: true });
    engine = await QsfEngine({
        wasmMemory: memory,
        mainScriptUrlOrBlob: new URL('engine.js', location.href).href, // for its threads
        readFile,
        onEvents: drain,
        onAbort: crashed,
    });
    const why = text(engine._qsf_web_start(pages * WASM_PAGE));
    if (why !== '') throw new Error(why);
    if (threads) demand('_qsf_web_set', 'threads', String(threads));
    say('ready', { version: text(engine._qsf_web_version()), settings: settings() });
}

function crashed(what) {
    say('failed', { text: `The engine stopped: ${what}. Open the model again.` });
}

async function open({ files, address }) {
    const all = files ? files.map(file => new PickedFile(file)) : [await RemoteFile.open(address)];
    for (const source of all) {
        const id = withText([source.name], at => engine._qsf_web_add_file(at, source.size));
        if (id < 0) throw new Error('too many files');
        sources[id] = source;
    }
    busy();
    demand('_qsf_web_load', all.map(source => source.name).sort()[0]);
}

function send({ messages }) {
    engine._qsf_web_begin();
    for (const m of messages) demand('_qsf_web_message', m.role, m.content, m.reasoning ?? '');
    busy();
    demand('_qsf_web_submit');
}

const calls = {
    start,
    open,
    send,
    set: ({ name, value }) => demand('_qsf_web_set', name, value),
    stop: () => engine._qsf_web_cancel(),
};

onmessage = async ({ data }) => {
    try {
        await calls[data.kind](data);
    } catch (e) {
        if (ticking !== null) quiet();
        say('failed', { text: e.message });
    }
};

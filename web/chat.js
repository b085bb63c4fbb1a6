// SPDX-License-Identifier: GPL-3.0-or-later
// The page: shows what the worker says, and tells it what the user does. See worker.js for the messages.

const MB = 1 << 20;
const TOP_K_MAX = 200;  // of the slider; the setting goes further
const $ = id => document.getElementById(id);

let worker = null;
let conversation = [];  // {role, content, reasoning}
let answer = null;      // the one that is written: {article, text, reasoning, content}
let changed = new Map(); // settings that the user has changed, kept for the next model

// ---- elements

function element(name, options = {}, ...children) {
    const e = Object.assign(document.createElement(name), options);
    e.append(...children);
    return e;
}

function problem(text) {
    $('problem').textContent = text;
    $('problem').hidden = text === '';
}

const status = text => { $('status').textContent = text; };

function enable(ready, busy) {
    $('message').disabled = !ready;
    $('send').disabled = !ready || busy;
    $('stop').disabled = !busy;
    $('clear').disabled = !ready || busy || conversation.length === 0;
    if (ready) $('message').placeholder = 'Write a message; Enter sends it';
}

// ---- messages

function show(role, title) {
    const text = element('div', { className: 'text' });
    const article = element('article', {}, element('h3', { textContent: title }), text);
    article.dataset.role = role;
    $('log').append(article);
    return { article, text };
}

// Only while the reader is at the end.
function follow(change) {
    const log = $('log'), atEnd = log.scrollHeight - log.scrollTop - log.clientHeight < 40;
    change();
    if (atEnd) log.scrollTop = log.scrollHeight;
}

function send(content) {
    problem('');
    conversation.push({ role: 'user', content });
    follow(() => { show('user', 'You').text.textContent = content; });
    answer = { ...show('assistant', 'Answer'), content: '', thoughts: '' };
    worker.postMessage({ kind: 'send', messages: conversation });
    enable(true, true);
}

const STOPS = { eos: '', stop: '', length: 'the limit of tokens was reached', context: 'the context is full', interrupted: 'stopped' };

function finish({ tokens, stop, seed, ids }) {
    const notes = [`${tokens} ${tokens === 1 ? 'token' : 'tokens'}`, STOPS[stop], `seed ${seed}`].filter(Boolean);
    answer.article.append(element('footer', { textContent: notes.join(', ') }));
    Object.assign(answer.article.dataset, { stop, seed, ids: ids.join(' ') });
    conversation.push({ role: 'assistant', content: answer.content, reasoning: answer.thoughts });
    answer = null;
    enable(true, false);
    $('message').focus();
}

// The message stays on the page; it was not answered, so the next request is without it.
function broken(text) {
    problem(text);
    if (answer === null) return;
    conversation.pop();
    answer = null;
    enable(true, false);
}

// ---- settings

const range = s => ({ min: s.min, max: s.name === 'top-k' ? TOP_K_MAX : s.name === 'temperature' ? 2 : s.max,
                      step: s.step || 0.01 });

function change(name, value) {
    changed.set(name, value);
    worker?.postMessage({ kind: 'set', name, value });
}

function slider(s) {
    const id = `set-${s.name}`, shown = element('output', { textContent: s.value, htmlFor: id });
    const input = element('input', { id, type: 'range', title: s.help, ...range(s), value: s.value });
    input.addEventListener('input', () => {
        const value = s.name === 'quality' || s.name === 'top-p' ? String(Math.max(0.01, input.value)) : input.value;
        shown.textContent = value;
        change(s.name, value);
    });
    return element('div', { className: 'setting' }, element('label', { htmlFor: id, textContent: s.name }), shown, input);
}

function field(s) {
    const id = `set-${s.name}`, input = element('input', { id, type: 'text', title: s.help, value: s.value, inputMode: 'numeric' });
    input.addEventListener('change', () => change(s.name, input.value.trim()));
    return element('div', { className: 'setting' }, element('label', { htmlFor: id, textContent: `${s.name} ` }), input);
}

function showSettings(list) {
    $('settings').replaceChildren(...list.map(s => s.name === 'seed' || s.name === 'max-tokens' ? field(s) : slider(s)));
}

// ---- figures

const mb = bytes => `${(bytes / MB).toFixed(1)} MB`;

function figures(s) {
    const rows = {
        Model: s.model || '–',
        Kind: s.description || '–',
        Memory: `${mb(s.memorySize)} of ${mb(s.budget)}`,
        Weights: s.streamed > 0 ? `${mb(s.pinned)} in memory, ${mb(s.streamed)} read per token` : `${mb(s.pinned)} in memory`,
        Read: mb(s.read),
        Context: `${s.contextUsed} of ${s.context} tokens`,
        Prompt: s.prefillSpeed > 0 ? `${s.prefillSpeed.toFixed(1)} tokens/s` : '–',
        Answer: s.speed > 0 ? `${s.speed.toFixed(1)} tokens/s` : '–',
        Layers: s.layers > 0 ? `${s.layersUsed || s.layers} of ${s.layers}` : '–',
        Threads: `${s.threads}`,
        Kernels: s.level,
    };
    $('figures').replaceChildren(...Object.entries(rows).flatMap(([name, value]) =>
        [element('dt', { textContent: name }), element('dd', { textContent: value })]));
    $('figures').dataset.memory = s.memorySize;
    $('plan').textContent = s.plan;
    const states = { loading: 'Loading the model', prefill: `Reading the prompt: ${s.prefillDone} of ${s.prefillTotal} tokens`,
                     decode: `Answering: ${s.tokens} tokens`, idle: `${s.model} is ready.`, empty: 'No model is open.' };
    status(states[s.state]);
}

// ---- what the worker says

let open = null; // what is opened when the worker is ready

const told = {
    ready({ version, settings }) {
        $('version').textContent = version;
        showSettings(settings);
        worker.postMessage(open);
    },
    settings({ settings }) {
        showSettings(settings.map(s => ({ ...s, value: changed.get(s.name) ?? s.value })));
        changed.forEach((value, name) => worker.postMessage({ kind: 'set', name, value }));
    },
    loaded() {
        enable(true, false);
        $('message').focus();
    },
    notice({ text }) {
        $('log').append(element('p', { className: 'note', textContent: text }));
    },
    text({ text }) {
        answer.content += text;
        follow(() => { answer.text.textContent = answer.content; });
    },
    reasoning({ text }) {
        if (answer.reasoning === undefined) {
            answer.reasoning = element('div', { className: 'reasoning' });
            answer.text.before(element('details', {}, element('summary', { textContent: 'Reasoning' }), answer.reasoning));
        }
        answer.thoughts += text;
        follow(() => { answer.reasoning.textContent = answer.thoughts; });
    },
    done: finish,
    error: ({ text }) => broken(text),
    failed: ({ text }) => broken(text),
    stats: figures,
    plan() {},
    ahead() {},
    evicted({ text }) { told.notice({ text }); },
};

// ---- opening

// Memory that was taken is only given back with its worker.
function begin(what) {
    if (!crossOriginIsolated) return;
    problem('');
    worker?.terminate();
    conversation = [];
    answer = null;
    open = { kind: 'open', ...what };
    $('log').replaceChildren();
    enable(false, false);
    status('Starting the engine');
    worker = new Worker('worker.js');
    worker.onmessage = ({ data: { kind, ...what } }) => told[kind](what);
    worker.onerror = e => broken(`The engine cannot be started: ${e.message ?? 'its files are missing'}`);
    worker.postMessage({ kind: 'start', budget: $('budget').valueAsNumber * MB, threads: $('threads').value });
}

function checkNumbers() {
    const budget = $('budget').checkValidity() && $('budget').value !== '', threads = $('threads').checkValidity();
    if (!budget) problem('The RAM budget is a number of MB, 16 to 4096.');
    else if (!threads) problem('The number of threads is 1 to 64, or empty.');
    return budget && threads;
}

$('guide').addEventListener('click', () => {
    if (checkNumbers()) begin({ address: new URL('guide.qsf', location.href).href });
});
$('pick').addEventListener('change', () => {
    if ($('pick').files.length > 0 && checkNumbers()) begin({ files: [...$('pick').files] });
    $('pick').value = '';
});
$('fetch').addEventListener('submit', e => {
    e.preventDefault();
    if (checkNumbers()) begin({ address: new URL($('address').value, location.href).href });
});

// ---- talking

$('composer').addEventListener('submit', e => {
    e.preventDefault();
    const content = $('message').value.trim();
    if (content === '' || $('send').disabled) return;
    $('message').value = '';
    send(content);
});
$('message').addEventListener('keydown', e => {
    if (e.key !== 'Enter' || e.shiftKey || e.isComposing) return;
    e.preventDefault();
    $('composer').requestSubmit();
});
$('stop').addEventListener('click', () => worker.postMessage({ kind: 'stop' }));
$('clear').addEventListener('click', () => {
    conversation = [];
    $('log').replaceChildren();
    enable(true, false);
});

if (!crossOriginIsolated)
    problem('This page cannot have threads here: the server has to send the headers Cross-Origin-Opener-Policy: same-origin '
        + 'and Cross-Origin-Embedder-Policy: require-corp. The server that comes with it, serve.py, does.');

# SPDX-License-Identifier: GPL-3.0-or-later
"""The page in a headless Chromium (tests/system/web.sh).

usage: page.py CHROMIUM PAGE QSF_RUN GUIDE LEVEL [SCREENSHOT]

PAGE: what make wasm built; LEVEL: the kernels of QSF_RUN that compute the same bits as the page's, "" = none."""
import base64
import http.server
import json
import os
import re
import subprocess
import sys
import tempfile
import threading

from browser import Browser

QUESTION = 'How do I stop an answer?'
MB = 1 << 20
chromium, page, qsf_run, guide, level = sys.argv[1:6]
screenshot = sys.argv[6] if len(sys.argv) > 6 else None
failures = 0


def check(ok, what):
    global failures
    if not ok:
        failures += 1
        print('FAIL: ' + what)


def native(*options):
    """The ids of the tokens of the answer of qsf-run."""
    out = subprocess.run([qsf_run, guide, '-p', QUESTION, '--json', '--top-logprobs', '0', '--no-config', '-q',
                          *(['--cpu-mask', level] if level else []), *options], capture_output=True, check=True)
    return [t['id'] for t in json.loads(out.stdout)['logprobs']]


# ---- servers that answer wrongly

class Wrong(http.server.BaseHTTPRequestHandler):
    """GET /KIND/guide.qsf: the model, in a way that is wrong once its first byte was asked for."""
    protocol_version = 'HTTP/1.1'
    with open(guide, 'rb') as f:
        data = f.read()

    def do_GET(self):
        kind = self.path.split('/')[1]
        first, last = map(int, re.fullmatch(r'bytes=(\d+)-(\d+)', self.headers['Range']).groups())
        late = first > 0 or last > 0
        body, tag, status = self.data[first:last + 1], '"1"', 206
        if kind == 'whole':
            body, status = self.data, 200
        if kind == 'gone':
            body, status = b'', 404
        if kind == 'broken' and late:
            body, status = b'', 503
        if kind == 'changed' and late:
            tag = '"2"'
        where = 'bytes %d-%d/%d' % (first + (kind == 'elsewhere' and late), last, len(self.data))
        self.send_response(status)
        self.send_header('Access-Control-Allow-Origin', '*')
        self.send_header('Access-Control-Allow-Headers', 'Range')
        self.send_header('Access-Control-Expose-Headers', 'Content-Range, ETag')
        self.send_header('ETag', tag)
        if kind != 'silent':
            self.send_header('Content-Range', where)
        if kind == 'short' and late:
            body = body[:len(body) // 2]
        if kind == 'long' and late:
            body += b'more'
        self.send_header('Content-Length', str(len(body)))
        self.end_headers()
        try:
            self.wfile.write(body)
        except ConnectionError:
            self.close_connection = True

    def do_OPTIONS(self):
        self.send_response(204)
        self.send_header('Access-Control-Allow-Origin', '*')
        self.send_header('Access-Control-Allow-Headers', 'Range')
        self.end_headers()

    def log_message(self, *args):
        pass


class Quiet(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request, client_address):
        pass  # the page breaks connections off


WRONG = {'whole': 'does not send parts of files', 'gone': 'answered 404', 'broken': 'answered 503',
         'changed': 'has changed', 'elsewhere': 'instead of', 'silent': 'which part it sent',
         'short': 'instead of', 'long': 'more bytes than it said'}


# ---- the page

class Page:
    def __init__(self, browser):
        self.b = browser

    def js(self, expression):
        return self.b.evaluate(expression)

    def problem(self):
        return self.js("document.getElementById('problem').hidden ? '' : document.getElementById('problem').textContent")

    def opened(self):
        """After something was opened: the problem, or ''."""
        self.b.wait("!document.getElementById('problem').hidden || !document.getElementById('send').disabled")
        return self.problem()

    def budget(self, mb):
        self.js("document.getElementById('budget').value = %d" % mb)

    def open_guide(self):
        self.js("document.getElementById('guide').click()")
        return self.opened()

    def open_address(self, address):
        self.js("document.getElementById('address').value = %s; document.getElementById('fetch').requestSubmit()"
                % json.dumps(address))
        return self.opened()

    def pick(self, *files):
        self.b.pick('#pick', *files)
        return self.opened()

    def set(self, name, value):
        self.js("""{const e = document.getElementById('set-%s'); e.value = '%s';
            e.dispatchEvent(new Event('input')); e.dispatchEvent(new Event('change'));}""" % (name, value))

    def send(self, text):
        self.js("document.getElementById('message').value = %s; document.getElementById('composer').requestSubmit()"
                % json.dumps(text))

    def answered(self):
        self.b.wait("!document.getElementById('problem').hidden || !document.getElementById('send').disabled")
        check(self.problem() == '', 'an answer failed: ' + self.problem())
        return [int(i) for i in self.js("[...document.querySelectorAll('article[data-ids]')].at(-1).dataset.ids").split()]

    def ask(self, text):
        self.send(text)
        return self.answered()

    def clear(self):
        self.js("document.getElementById('clear').click()")

    def memory(self):
        return int(self.js("document.getElementById('figures').dataset.memory"))

    def figure(self, name):
        return self.js("[...document.querySelectorAll('#figures dt')].find(e => e.textContent === '%s').nextSibling.textContent" % name)


def same_tokens(p, how):
    p.set('temperature', 0)
    check(p.ask(QUESTION) == native('--temperature', '0'), how + ': other tokens than qsf-run, greedy')
    p.clear()
    p.set('temperature', 1.5)
    p.set('top-p', 0.97)
    p.set('seed', 4242)
    check(p.ask(QUESTION) == native('--temperature', '1.5', '--top-p', '0.97', '--seed', '4242'),
          how + ': other tokens than qsf-run with the same seed')
    p.clear()


def opens(p):
    p.budget(64)
    p.js("document.getElementById('threads').value = 2") # each takes a part of the budget
    check(p.open_guide() == '', 'the guide: ' + p.problem())
    same_tokens(p, 'by ranges')
    check(p.memory() <= 64 * MB, 'the memory has %d bytes' % p.memory())
    check(p.pick(guide) == '', 'a picked file: ' + p.problem())
    same_tokens(p, 'picked')


def streams(p, small):
    """With a budget in which not all weights fit."""
    p.budget(small)
    check(p.pick(guide) == '', 'a budget of %d MB: %s' % (small, p.problem()))
    check('read per token' in p.figure('Weights'), 'nothing streams in %d MB: %s' % (small, p.figure('Weights')))
    same_tokens(p, 'streamed')
    check(p.memory() <= small * MB, '%d bytes with a budget of %d MB' % (p.memory(), small))
    lives(p)
    print('streamed in %d MB: memory %.1f MB, %s, answer %s' % (small, p.memory() / MB, p.figure('Weights'), p.figure('Answer')))


def lives(p):
    """Settings take effect while an answer is written, and Stop ends it: an answer takes a second where weights
    are read for every token."""
    begun = "document.querySelector('article[data-role=assistant]:last-child .text')?.textContent"
    p.set('temperature', 0)
    whole = p.ask(QUESTION)
    check(p.figure('Layers') == '5 of 5', 'layers: ' + p.figure('Layers'))
    p.clear()
    p.send(QUESTION)
    p.b.wait(begun)
    p.set('quality', 0.4)
    p.answered()
    check(p.figure('Layers') != '5 of 5', 'quality 0.4 during an answer leaves out no layer')
    p.set('quality', 1)
    p.clear()
    p.send(QUESTION)
    p.b.wait(begun)
    p.set('max-tokens', 4)
    check(len(p.answered()) < len(whole), 'max-tokens 4 during an answer has no effect')
    p.set('max-tokens', 0)
    p.clear()
    p.send(QUESTION)
    p.b.wait(begun)
    p.js("document.getElementById('stop').click()")
    check(len(p.answered()) < len(whole), 'Stop has no effect')
    stopped = p.js("[...document.querySelectorAll('article[data-ids]')].at(-1).dataset.stop")
    check(stopped == 'interrupted', 'stopped by ' + stopped)
    p.clear()


def refuses(p, folder):
    p.budget(16)
    text = os.path.join(folder, 'notes.gguf')
    with open(text, 'w') as f:
        f.write('These are notes, not a model.\n')
    check('is a text file, not a model' in p.pick(text), 'a text: ' + p.problem())
    server = Quiet(('127.0.0.1', 0), Wrong)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    for kind, words in WRONG.items():
        why = p.open_address('http://127.0.0.1:%d/%s/guide.qsf' % (server.server_address[1], kind))
        check(words in why, 'a server that is %s: %s' % (kind, why or 'accepted'))
    server.shutdown()


def narrow(p):
    p.b.call('Emulation.setDeviceMetricsOverride', width=360, height=740, deviceScaleFactor=1, mobile=True)
    check(p.js('document.documentElement.scrollWidth') <= 360, 'wider than a phone')
    p.b.call('Emulation.clearDeviceMetricsOverride')


def picture(p):
    p.b.call('Emulation.setDeviceMetricsOverride', width=1100, height=800, deviceScaleFactor=1, mobile=False)
    p.budget(64)
    p.open_guide()
    p.set('temperature', 0)
    p.ask(QUESTION)
    p.ask('What is the KV cache?')
    data = p.b.call('Page.captureScreenshot', format='png')['data']
    with open(screenshot, 'wb') as f:
        f.write(base64.b64decode(data))


def main():
    server = subprocess.Popen([sys.executable, os.path.join(page, 'serve.py'), '--port', '0'],
                              stdout=subprocess.PIPE, text=True)
    browser = Browser(chromium)
    try:
        browser.open(server.stdout.readline().strip())
        p = Page(browser)
        check(p.js('crossOriginIsolated'), 'the page is not isolated')
        if screenshot:
            picture(p)
            return
        opens(p)
        print('guide: memory %.1f MB, answer %s, prompt %s' % (p.memory() / MB, p.figure('Answer'), p.figure('Prompt')))
        streams(p, 17)
        narrow(p)
        check(browser.log == [], 'the console has: %s' % browser.log[:5])
        with tempfile.TemporaryDirectory() as folder:
            refuses(p, folder)
    finally:
        browser.close()
        server.terminate()
        server.wait()


main()
sys.exit(failures > 0)

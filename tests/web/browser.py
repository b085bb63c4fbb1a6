# SPDX-License-Identifier: GPL-3.0-or-later
"""A headless Chromium over the DevTools protocol, on two pipes (chromium --remote-debugging-pipe): nothing but
Python's own library. A wait is for an event of the page or for a condition that the page evaluates."""
import json
import os
import subprocess
import tempfile


class Browser:
    def __init__(self, program, *options):
        self.profile = tempfile.TemporaryDirectory(prefix='qsfbrowser')
        to_read, self.to = os.pipe()
        self.back, back_write = os.pipe()
        # Chromium reads commands from descriptor 3 and writes to 4.
        script = 'exec 3<&%d 4>&%d; exec "$@"' % (to_read, back_write)
        self.process = subprocess.Popen(
            ['sh', '-c', script, 'sh', program, '--headless=new', '--no-sandbox', '--disable-gpu',
             '--disable-dev-shm-usage', '--no-first-run', '--disable-background-networking',
             '--remote-debugging-pipe', '--user-data-dir=' + self.profile.name, *options],
            pass_fds=(to_read, back_write), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        os.close(to_read)
        os.close(back_write)
        self.buffer, self.last, self.session = b'', 0, None
        self.log = []  # what the console and errors said

    def close(self):
        try:
            self.call('Browser.close', session=None)
        except EOFError:
            pass
        self.process.wait()
        self.profile.cleanup()

    def receive(self):
        while b'\0' not in self.buffer:
            piece = os.read(self.back, 1 << 16)
            if not piece:
                raise EOFError('the browser has ended: %s' % self.process.stderr.read().decode()[-2000:])
            self.buffer += piece
        line, self.buffer = self.buffer.split(b'\0', 1)
        m = json.loads(line)
        if m.get('method') == 'Runtime.exceptionThrown':
            self.log.append(m['params']['exceptionDetails'].get('exception', {}).get('description', '?'))
        if m.get('method') == 'Log.entryAdded':
            self.log.append(m['params']['entry']['text'])
        if m.get('method') == 'Runtime.consoleAPICalled':
            self.log.append(' '.join(str(a.get('value', a.get('description'))) for a in m['params']['args']))
        return m

    def call(self, method, session='', **params):
        self.last += 1
        m = {'id': self.last, 'method': method, 'params': params}
        if session == '' and self.session:
            m['sessionId'] = self.session
        os.write(self.to, json.dumps(m).encode() + b'\0')
        while True:
            got = self.receive()
            if got.get('id') == self.last:
                if 'error' in got:
                    raise RuntimeError('%s: %s' % (method, got['error']['message']))
                return got['result']

    def open(self, address):
        target = self.call('Target.createTarget', session=None, url='about:blank')['targetId']
        self.session = self.call('Target.attachToTarget', session=None, targetId=target, flatten=True)['sessionId']
        for domain in ('Page', 'Runtime', 'Log', 'DOM'):
            self.call(domain + '.enable')
        self.call('Page.navigate', url=address)
        while self.receive().get('method') != 'Page.loadEventFired':
            pass

    def evaluate(self, expression):
        r = self.call('Runtime.evaluate', expression=expression, awaitPromise=True, returnByValue=True)
        if 'exceptionDetails' in r:
            raise RuntimeError(r['exceptionDetails'].get('exception', {}).get('description', str(r)))
        return r['result'].get('value')

    def wait(self, condition):
        """Until the expression is true; the page looks again whenever its document changes."""
        return self.evaluate('''new Promise(done => {
            const look = () => { const v = (%s); if (v) { watch.disconnect(); done(v); } return v; };
            const watch = new MutationObserver(look);
            watch.observe(document, {subtree: true, childList: true, attributes: true, characterData: true});
            look();
        })''' % condition)

    def pick(self, selector, *files):
        root = self.call('DOM.getDocument')['root']['nodeId']
        node = self.call('DOM.querySelector', nodeId=root, selector=selector)['nodeId']
        self.call('DOM.setFileInputFiles', nodeId=node, files=list(files))

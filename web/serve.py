#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Serves this folder on the loopback, with the headers that the page needs, and models by ranges.

usage: serve.py [--port N] [--models DIR]

Files of DIR are at /models/NAME. Prints the address as its first line; port 0 picks a free one."""
import argparse
import http.server
import os
import re
import sys
import urllib.parse

HERE = os.path.dirname(os.path.abspath(__file__))
PIECE = 1 << 20
TYPES = {'.html': 'text/html; charset=utf-8', '.js': 'text/javascript; charset=utf-8',
         '.css': 'text/css; charset=utf-8', '.svg': 'image/svg+xml', '.wasm': 'application/wasm'}
HEADERS = {
    # Without these two, browsers give pages no memory that threads share.
    'Cross-Origin-Opener-Policy': 'same-origin',
    'Cross-Origin-Embedder-Policy': 'require-corp',
    # The same as in index.html, for the workers too.
    'Content-Security-Policy': "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; worker-src 'self'; "
                               "style-src 'self'; img-src 'self'; connect-src 'self' https: http://127.0.0.1:* "
                               "http://localhost:*; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    'Referrer-Policy': 'no-referrer',
    'X-Content-Type-Options': 'nosniff',
}


def range_of(header, size):
    """(first, last + 1) of a Range header; None: the whole file. Raises ValueError if it lies outside."""
    m = re.fullmatch(r'bytes=(\d+)-(\d*)', header or '')
    if m is None:
        return None
    first, end = int(m.group(1)), min(int(m.group(2)) + 1 if m.group(2) else size, size)
    if first >= end:
        raise ValueError('outside the file')
    return first, end


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'
    models = None

    def path_of(self):
        path = urllib.parse.unquote(urllib.parse.urlsplit(self.path).path)
        folder, name = HERE, path[1:] or 'index.html'
        if name.startswith('models/') and self.models is not None:
            folder, name = self.models, name[len('models/'):]
        # Names only: nothing above the folder, nothing hidden.
        return os.path.join(folder, name) if re.fullmatch(r'[\w-][\w .+-]*', name) else None

    def answer(self, status, length, more):
        self.send_response(status)
        for name, value in {**HEADERS, **more, 'Content-Length': str(length)}.items():
            self.send_header(name, value)
        self.end_headers()

    def do_GET(self):
        path = self.path_of()
        try:
            f = open(path, 'rb') if path is not None and os.path.isfile(path) else None
        except OSError:
            f = None
        if f is None:
            self.answer(404, 0, {})
            return
        with f:
            self.send_file(f, os.path.splitext(path)[1])

    do_HEAD = do_GET

    def send_file(self, f, ext):
        st = os.fstat(f.fileno())
        more = {'Content-Type': TYPES.get(ext, 'application/octet-stream'), 'Accept-Ranges': 'bytes',
                'ETag': '"%x-%x"' % (st.st_size, st.st_mtime_ns), 'Cache-Control': 'no-cache'}
        try:
            part = range_of(self.headers.get('Range'), st.st_size)
        except ValueError:
            self.answer(416, 0, {'Content-Range': 'bytes */%d' % st.st_size})
            return
        first, end = part or (0, st.st_size)
        if part is not None:
            more['Content-Range'] = 'bytes %d-%d/%d' % (first, end - 1, st.st_size)
        self.answer(200 if part is None else 206, end - first, more)
        if self.command == 'GET':
            self.copy(f, first, end)

    def copy(self, f, first, end):
        f.seek(first)
        try:
            while first < end:
                piece = f.read(min(PIECE, end - first))
                if not piece:
                    break
                self.wfile.write(piece)
                first += len(piece)
        except ConnectionError:
            self.close_connection = True  # the page does not want the rest

    def log_message(self, *args):
        pass


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request, client_address):
        if not isinstance(sys.exc_info()[1], ConnectionError):  # a page that was closed
            super().handle_error(request, client_address)


def main():
    p = argparse.ArgumentParser(description='Serve the chat page and models.')
    p.add_argument('--port', type=int, default=8000)
    p.add_argument('--models', metavar='DIR')
    o = p.parse_args()
    Handler.models = o.models
    server = Server(('127.0.0.1', o.port), Handler)
    print('http://127.0.0.1:%d/' % server.server_address[1], flush=True)
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == '__main__':
    main()

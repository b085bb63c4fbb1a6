// SPDX-License-Identifier: GPL-3.0-or-later
// Where the bytes of a model are: a file that was picked, or a file on a server. read(off, len, take) calls
// take(bytes, at) with pieces of the range, `at` bytes from its beginning, and takes no more memory than a piece.
// Errors are sentences.
'use strict';

class PickedFile {
    constructor(file) {
        this.file = file;
        this.name = file.name;
        this.size = file.size;
    }

    async read(off, len, take) {
        let bytes;
        try {
            bytes = await this.file.slice(off, off + len).arrayBuffer();
        } catch {
            throw new Error(`${this.name} has changed since it was picked, or can no longer be read`);
        }
        if (bytes.byteLength !== len) throw new Error(`${this.name} is shorter than when it was picked`);
        take(new Uint8Array(bytes), 0);
    }
}

class RemoteFile {
    static TRIES = 3;      // of a read that a network broke off
    static PAUSE_MS = 500; // before the second one; then twice as long

    // Asks for the first byte, which says whether the server can send parts, and how large the file is.
    static async open(address) {
        const self = new RemoteFile();
        self.address = address;
        self.name = decodeURIComponent(new URL(address).pathname.split('/').pop()) || 'model';
        self.size = null;
        self.tag = null;
        await self.read(0, 1, () => {});
        return self;
    }

    async read(off, len, take) {
        for (let n = 1; ; n++) {
            try {
                return await this.attempt(off, len, take);
            } catch (e) {
                if (!e.again || n === RemoteFile.TRIES) throw e;
                await new Promise(done => setTimeout(done, RemoteFile.PAUSE_MS * n));
            }
        }
    }

    fail(why, again = false) {
        const e = new Error(`${this.name}: ${why}`);
        e.again = again;
        return e;
    }

    async attempt(off, len, take) {
        const stop = new AbortController();
        let answer;
        try {
            answer = await fetch(this.address, {
                headers: { Range: `bytes=${off}-${off + len - 1}` },
                credentials: 'omit',
                signal: stop.signal,
            });
        } catch {
            throw this.fail('the server cannot be reached, or does not allow this page to read from it (CORS)', true);
        }
        try {
            this.check(answer, off, len);
            await this.copy(answer.body, len, take);
        } catch (e) {
            stop.abort(); // what is still on its way is not wanted
            throw e.again === undefined ? this.fail('the connection broke off', true) : e;
        }
    }

    // Headers: RFC 9110, 14.4 and 15.3.7.
    check(answer, off, len) {
        if (answer.status === 200)
            throw this.fail('the server does not send parts of files (it answered 200 to a range request), so the model cannot be streamed');
        if (answer.status !== 206)
            throw this.fail(`the server answered ${answer.status} ${answer.statusText}`.trim(), answer.status >= 500);
        const range = /^bytes (\d+)-(\d+)\/(\d+)$/.exec(answer.headers.get('Content-Range') ?? '');
        if (range === null)
            throw this.fail('the server did not say which part it sent (Content-Range), or does not let this page see it');
        const [from, to, size] = range.slice(1).map(Number);
        if (from !== off || to !== off + len - 1)
            throw this.fail(`the server sent bytes ${from} to ${to} instead of ${off} to ${off + len - 1}`);
        const tag = answer.headers.get('ETag') ?? answer.headers.get('Last-Modified');
        if (this.size === null) [this.size, this.tag] = [size, tag];
        if (size !== this.size || tag !== this.tag) throw this.fail('the file on the server has changed');
    }

    async copy(body, len, take) {
        const reader = body.getReader();
        let at = 0;
        for (;;) {
            const { done, value } = await reader.read();
            if (done) break;
            if (at + value.length > len) throw this.fail('the server sent more bytes than it said');
            take(value, at);
            at += value.length;
        }
        if (at !== len) throw this.fail(`the server sent ${at} bytes instead of ${len}`, true);
    }
}

#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Damages a Hugging Face directory in place.

usage: edit.py DIR set KEY JSON       a setting of config.json; a missing JSON removes it
       edit.py DIR drop TENSOR        from model.safetensors
       edit.py DIR rename TENSOR NAME
       edit.py DIR shape TENSOR JSON"""

import json
import struct
import sys


def main():
    where, what, *rest = sys.argv[1:]
    if what == "set":
        path = where + "/config.json"
        with open(path) as f:
            config = json.load(f)
        at = config
        *outer, key = rest[0].split(".")
        for name in outer:
            at = at[name]
        at.pop(key, None)
        if len(rest) > 1:
            at[key] = json.loads(rest[1])
        with open(path, "w") as f:
            json.dump(config, f)
        return
    path = where + "/model.safetensors"
    with open(path, "rb") as f:
        data = f.read()
    n = struct.unpack("<Q", data[:8])[0]
    head, body, parts, out = json.loads(data[8 : 8 + n]), data[8 + n :], [], {}
    for name, t in head.items():
        a, b = t["data_offsets"]
        if name == rest[0] and what == "drop":
            continue
        if name == rest[0] and what == "rename":
            name = rest[1]
        elif name == rest[0] and what == "shape":
            t["shape"] = json.loads(rest[1])
        at = sum(map(len, parts))
        parts.append(body[a:b])
        out[name] = dict(t, data_offsets=[at, at + b - a])
    text = json.dumps(out).encode()
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + b"".join(parts))


main()

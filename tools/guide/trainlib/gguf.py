# SPDX-License-Identifier: GPL-3.0-or-later
"""Writes GGUF files, version 3 (layout: ggml-org/ggml docs/gguf.md), with tensors in f32, f16 or Q8_0."""
import os
import struct

F32, F16, Q8_0 = 0, 1, 8
NAMES = {'f32': F32, 'f16': F16, 'q8_0': Q8_0}
ALIGN, BLOCK = 32, 32


def text(s):
    b = s.encode() if isinstance(s, str) else s
    return struct.pack('<Q', len(b)) + b


def _scalar(v):
    if isinstance(v, bool):
        return 7, struct.pack('<?', v)
    if isinstance(v, int):
        return 4, struct.pack('<I', v)
    if isinstance(v, float):
        return 6, struct.pack('<f', v)
    return 8, text(v)


def pair(key, value):
    """One metadata entry. Lists are arrays of one type; those called token_type are int32."""
    if not isinstance(value, list):
        kind, body = _scalar(value)
        return text(key) + struct.pack('<I', kind) + body
    if key.endswith('token_type'):
        kind, body = 5, struct.pack(f'<{len(value)}i', *value)
    else:
        kind, body = _scalar(value[0])[0], b''.join(_scalar(v)[1] for v in value)
    return text(key) + struct.pack('<IIQ', 9, kind, len(value)) + body


def _half(x):
    return struct.unpack('<e', struct.pack('<e', x))[0]


def q8_0(values):
    """Blocks of 32: an fp16 scale, then 32 signed bytes, the nearest to value / scale."""
    out = bytearray()
    for i in range(0, len(values), BLOCK):
        block = values[i:i + BLOCK]
        scale = _half(max(map(abs, block)) / 127)
        inverse = 1 / scale if scale else 0.0
        # A scale that was rounded down maps the largest value to 127.06: still 127.
        out += struct.pack('<e32b', scale, *[max(-127, min(127, round(v * inverse))) for v in block])
    return bytes(out)


def pack(values, kind):
    """A flat list of floats as the bytes of a tensor."""
    if kind == Q8_0:
        return q8_0(values)
    return struct.pack(f'<{len(values)}{"e" if kind == F16 else "f"}', *values)


def write(path, meta, tensors):
    """meta: key -> value; tensors: (name, shape, kind, bytes), shape with rows first. The file appears whole or not
    at all."""
    head = bytearray(b'GGUF' + struct.pack('<IQQ', 3, len(tensors), len(meta)))
    for key, value in meta.items():
        head += pair(key, value)
    offset = 0
    for name, shape, kind, data in tensors:
        head += text(name) + struct.pack('<I', len(shape))
        head += b''.join(struct.pack('<Q', n) for n in reversed(shape)) + struct.pack('<IQ', kind, offset)
        offset += -(-len(data) // ALIGN) * ALIGN
    part = f'{path}.part'
    with open(part, 'wb') as f:
        f.write(head + bytes(-len(head) % ALIGN))
        for _, _, _, data in tensors:
            f.write(data + bytes(-len(data) % ALIGN))
    os.replace(part, path)

#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Writes the vocabulary of a GGUF file as the files of HuggingFace and SentencePiece, so that they can be
held against each other, and computes unigram answers by itself.

usage: vocab_files.py VOCAB.gguf PRE_TOKENIZERS.json IDS.jsonl OUT
Makes below OUT: texts.jsonl; json/ (tokenizer.json, tokenizer_config.json); for a SentencePiece vocabulary
also model/ (tokenizer.model), and unigram.gguf, unigram-json/, unigram-model/, unigram.want of the same
tokens as a unigram model."""

import base64
import json
import os
import struct
import sys

MARK = "\u2581"
SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}


def read_gguf(path):
    """Metadata of a GGUF file (ggml-org/ggml docs/gguf.md)."""
    data = memoryview(open(path, "rb").read())
    at = 24

    def value(kind):
        nonlocal at
        if kind in SCALARS:
            form = "<" + SCALARS[kind]
            v = struct.unpack_from(form, data, at)[0]
            at += struct.calcsize(form)
            return v
        if kind == 8:
            n = value(10)
            at += n
            return bytes(data[at - n : at])
        elem, n = value(4), value(10)
        if elem in SCALARS:
            v = list(struct.unpack_from("<%d%s" % (n, SCALARS[elem]), data, at))
            at += n * struct.calcsize(SCALARS[elem])
            return v
        return [value(elem) for _ in range(n)]

    meta = {}
    for _ in range(struct.unpack_from("<Q", data, 16)[0]):
        key = value(8).decode()
        meta[key] = value(value(4))
    return meta


def gguf_string(b):
    return struct.pack("<Q", len(b)) + b


def gguf_pair(key, kind, payload):
    return gguf_string(key.encode()) + struct.pack("<I", kind) + payload


def gguf_array(key, elem, n, payload):
    return gguf_pair(key, 9, struct.pack("<IQ", elem, n) + payload)


def write(path, content):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as f:
        f.write(content if isinstance(content, bytes) else json.dumps(content, ensure_ascii=False).encode())


class Vocab:
    def __init__(self, meta):
        self.meta = meta
        self.tokens = [t.decode("utf-8", "surrogateescape") for t in meta["tokenizer.ggml.tokens"]]
        self.types = meta.get("tokenizer.ggml.token_type", [1] * len(self.tokens))
        self.scores = meta.get("tokenizer.ggml.scores", [0.0] * len(self.tokens))
        self.spm = meta["tokenizer.ggml.model"] == b"llama"
        self.phi = b"phi-3" in meta.get("general.name", b"").lower() or b"phi3" in meta.get("general.name",
            b"").lower()

    def text(self, key):
        i = self.meta.get("tokenizer.ggml.%s_token_id" % key)
        return self.tokens[i] if i is not None else None

    def added(self):
        plain = ("<unk>", "<s>", "<|endoftext|>")
        return [
            {
                "id": i, "content": t, "special": kind != 4, "normalized": False, "single_word": False,
                "lstrip": False,
                "rstrip": self.phi and t not in plain,
            }
            for i, (t, kind) in enumerate(zip(self.tokens, self.types))
            if kind in (2, 3, 4)
        ]

    def config(self):
        c = {"%s_token" % k: self.text(k) for k in ("bos", "eos")}
        for k in ("add_bos_token", "add_eos_token"):
            if "tokenizer.ggml." + k in self.meta:
                c[k] = self.meta["tokenizer.ggml." + k]
        if "add_bos_token" not in c:
            c["add_bos_token"] = self.spm or self.meta.get("tokenizer.ggml.pre") == b"llama-bpe"
        return c


def merges_from_scores(v):
    """What the converters of huggingface/transformers make of SentencePiece scores."""
    ids = {t: i for i, t in enumerate(v.tokens) if v.types[i] in (1, 4, 5)}
    merges = []
    for t, i in ids.items():
        ways = [(t[:k], t[k:]) for k in range(1, len(t)) if t[:k] in ids and t[k:] in ids]
        ways.sort(key=lambda w: (ids[w[0]], ids[w[1]]))
        merges += [(v.scores[i], w) for w in ways]
    merges.sort(key=lambda m: -m[0])
    return [list(w) for _, w in merges]


def byte_level(v, regexes):
    names = [t for t in v.meta.get("tokenizer.ggml.merges", [])]
    split = [
        {"type": "Split", "pattern": {"Regex": r}, "behavior": "Isolated", "invert": False} for r in regexes
    ]
    return {
        "model": {
            "type": "BPE", "vocab": {t: i for i, t in enumerate(v.tokens) if v.types[i] != 3},
            "merges": [m.decode() for m in names],
            "ignore_merges": v.meta.get("tokenizer.ggml.pre") == b"llama-bpe",
        },
        "pre_tokenizer": {
            "type": "Sequence",
            "pretokenizers": split + [{"type": "ByteLevel", "add_prefix_space": False, "use_regex": False}],
        },
    }


def char_level(v):
    steps = [{"type": "Replace", "pattern": {"String": " "}, "content": MARK}]
    if v.meta.get("tokenizer.ggml.add_space_prefix", True):
        steps.insert(0, {"type": "Prepend", "prepend": MARK})
    return {
        "model": {
            "type": "BPE", "unk_token": "<unk>", "byte_fallback": True, "fuse_unk": True,
            "vocab": {t: i for i, t in enumerate(v.tokens) if v.types[i] not in (3, 4)},
            "merges": merges_from_scores(v),
        },
        "normalizer": {"type": "Sequence", "normalizers": steps},
        "pre_tokenizer": None,
    }


def tokenizer_json(v, body):
    """Odd white space and escapes are part of the test."""
    full = {"version": "1.0", "truncation": None, "added_tokens": v.added(), "post_processor": None,
        "decoder": {}}
    full.update(body)
    return json.dumps(full, ensure_ascii=bool(len(v.tokens) % 2), indent=1).encode()


# --- protobuf


def varint(n):
    out = b""
    while n > 127:
        out += bytes([n & 127 | 128])
        n >>= 7
    return out + bytes([n])


def field(number, kind, payload):
    return varint(number << 3 | kind) + (varint(len(payload)) + payload if kind == 2 else payload)


def sentencepiece(v, kind, charsmap=b"", extra=False):
    pieces = b""
    for t, score, type_ in zip(v.tokens, v.scores, v.types):
        piece = field(1, 2, t.encode()) + field(2, 5, struct.pack("<f", score))
        pieces += field(1, 2, piece + (field(3, 0, varint(type_)) if type_ != 1 else b""))
    trainer = field(3, 0, varint(kind)) + field(35, 0, varint(1)) + field(44, 2, b"unknown")
    trainer += b"".join(
        field(40 + n, 0, varint(v.meta["tokenizer.ggml.%s_token_id" % k]))
        for n, k in enumerate(("unknown", "bos", "eos"))
        if "tokenizer.ggml.%s_token_id" % k in v.meta
    )
    prefix = v.meta.get("tokenizer.ggml.add_space_prefix", True)
    normalizer = field(1, 2, b"test") + field(2, 2, charsmap) + field(3, 0, varint(int(prefix)))
    normalizer += field(4, 0, varint(int(extra)))
    return pieces + field(2, 2, trainer) + field(3, 2, normalizer)


# --- unigram, computed independently

REPLACE = {
    "\t": " ", "\n": " ", "\r": " ", "\u00a0": " ", "\u3000": " ", "\ufb01": "fi", "\uff21": "A",
    "\uff76\uff9e": "\u30ac",
    "\uff76": "\u30ab", "e\u0301": "\u00e9", "\u200b": "", "\u00bd": "1/2",
}


def charsmap():
    """A double array as darts-clone lays it out, found by trying offsets."""
    texts, offsets = b"", {}
    for value in REPLACE.values():
        offsets[value] = len(texts)
        texts += value.encode() + b"\0"
    root = {}
    for key, value in REPLACE.items():
        node = root
        for byte in key.encode():
            node = node.setdefault(byte, {})
        node["value"] = offsets[value]
    units, used, todo = {0: [0, 0, 0, None]}, {0}, [(0, root)]
    while todo:
        at, node = todo.pop(0)
        labels = [k for k in node if k != "value"] + ([0] if "value" in node else [])
        base = next(b for b in range(1, 1 << 16) if all((at ^ b ^ k) not in used for k in labels))
        units[at][0] = base
        units[at][1] = int("value" in node)
        for k in labels:
            place = at ^ base ^ k
            used.add(place)
            if k == 0:
                units[place] = [0, 0, 0, node["value"]]
            else:
                units[place] = [0, 0, k, None]
                todo.append((place, node[k]))
    size = (max(used) | 255) + 1
    words = [0] * size
    for at, (base, leaf, label, value) in units.items():
        words[at] = 1 << 31 | value if value is not None else base << 10 | leaf << 8 | label
    return struct.pack("<I", 4 * size) + struct.pack("<%dI" % size, *words) + texts


def normalize(text):
    out, i, longest = "", 0, max(map(len, REPLACE))
    while i < len(text):
        for n in range(longest, 0, -1):
            if text[i : i + n] in REPLACE and len(text[i : i + n]) == n:
                out += REPLACE[text[i : i + n]]
                i += n
                break
        else:
            out += text[i]
            i += 1
    words = [w for w in out.split(" ") if w]
    return MARK + MARK.join(words) if words else ""


def unigram(v, scores, longest, text):
    text = normalize(text)
    best = [(0.0, 0, 0)] + [None] * len(text)
    unknown = min(scores.values()) - 10
    for i in range(len(text)):
        for n in range(1, min(longest, len(text) - i) + 1):
            piece = text[i : i + n]
            known = piece in scores
            if known or n == 1:
                score = best[i][0] + (scores[piece] if known else unknown)
                if best[i + n] is None or score > best[i + n][0]:
                    best[i + n] = (score, i, piece)
    ids, at = [], len(text)
    while at > 0:
        _, begin, piece = best[at]
        if piece in scores:
            ids.append(v.index[piece])
        else:
            ids += [v.index["<0x%02X>" % b] for b in reversed(piece.encode())]
        at = begin
    return ids[::-1]


def unigram_files(v, out, texts):
    table = charsmap()
    v.index = {t: i for i, t in reversed(list(enumerate(v.tokens)))}
    v.scores = [-0.25 * (i % 41) - 1.0 if kind in (1, 4, 5) else 0.0 for i, kind in enumerate(v.types)]
    scores = {t: v.scores[i] for i, t in enumerate(v.tokens) if v.types[i] == 1}
    longest = max(map(len, scores))
    meta = v.meta
    unk, bos, eos = (meta.get("tokenizer.ggml.%s_token_id" % k, d) for k,
        d in (("unknown", 0), ("bos", 1), ("eos", 2)))
    pairs = [
        gguf_pair("general.architecture", 8, gguf_string(b"t5")),
        gguf_pair("tokenizer.ggml.model", 8, gguf_string(b"t5")),
        gguf_array("tokenizer.ggml.tokens", 8, len(v.tokens),
            b"".join(gguf_string(t.encode()) for t in v.tokens)),
        gguf_array("tokenizer.ggml.scores", 6, len(v.scores), struct.pack("<%df" % len(v.scores), *v.scores)),
        gguf_array("tokenizer.ggml.token_type", 5, len(v.types),
            struct.pack("<%di" % len(v.types), *v.types)),
        gguf_array("tokenizer.ggml.precompiled_charsmap", 0, len(table), table),
        gguf_pair("tokenizer.ggml.remove_extra_whitespaces", 7, b"\1"),
        gguf_pair("tokenizer.ggml.add_space_prefix", 7, b"\1"),
    ]
    for key, i in (("unknown", unk), ("bos", bos), ("eos", eos)):
        pairs.append(gguf_pair("tokenizer.ggml.%s_token_id" % key, 4, struct.pack("<I", i)))
    write(out + "/unigram.gguf", b"GGUF" + struct.pack("<IQQ", 3, 0, len(pairs)) + b"".join(pairs))
    config = {"bos_token": v.tokens[bos], "eos_token": {"content": v.tokens[eos]}, "add_eos_token": True}
    body = {
        "model": {
            "type": "Unigram", "unk_id": unk, "byte_fallback": True,
            "vocab": [list(p) for p in zip(v.tokens, v.scores)],
        },
        "normalizer": {"type": "Precompiled", "precompiled_charsmap": base64.b64encode(table).decode()},
        "pre_tokenizer": {
            "type": "Sequence",
            "pretokenizers": [
                {"type": "CharDelimiterSplit", "delimiter": " "},
                {"type": "Metaspace", "replacement": MARK, "add_prefix_space": True},
            ],
        },
    }
    write(out + "/unigram-json/tokenizer.json", tokenizer_json(v, body))
    write(out + "/unigram-json/tokenizer_config.json", config)
    write(out + "/unigram-model/tokenizer.model", sentencepiece(v, 1, table, True))
    write(out + "/unigram-model/tokenizer_config.json", config)
    user = [v.tokens[i] for i, kind in enumerate(v.types) if kind == 4]
    with open(out + "/unigram.want", "w") as f:
        for text in texts:
            known = not any(u in text for u in user)
            f.write(json.dumps(unigram(v, scores, longest, text), separators=(",", ":")) + "\n" if known
                else "skip\n")


def main():
    gguf, pre, ids, out = sys.argv[1:]
    v = Vocab(read_gguf(gguf))
    texts = [json.loads(line)["text"] for line in open(ids, encoding="utf-8").read().split("\n") if line]
    write(out + "/texts.jsonl", "".join(json.dumps(t) + "\n" for t in texts).encode())
    # Where the rules are the same: SentencePiece puts its dummy prefix before user-defined tokens, and
    # huggingface/tokenizers maps grapheme clusters, puts nothing before U+2581, and finds byte tokens in
    # text.
    user = [v.tokens[i] for i, kind in enumerate(v.types) if kind == 4]
    plain = [t for t in texts if not any(u in t for u in user + [MARK, "\uff9e", "\u200d", "<0x", "<unk>"])]
    write(out + "/plain.jsonl", "".join(json.dumps(t) + "\n" for t in plain).encode())
    if v.spm:
        write(out + "/json/tokenizer.json", tokenizer_json(v, char_level(v)))
        write(out + "/model/tokenizer.model", sentencepiece(v, 2))
        decoder = {str(a["id"]): a for a in v.added()}
        write(out + "/model/tokenizer_config.json", dict(v.config(), added_tokens_decoder=decoder))
    else:
        table = json.load(open(pre, encoding="utf-8"))["reference"]["pre"]
        name = v.meta.get("tokenizer.ggml.pre", b"(key absent)").decode()
        write(out + "/json/tokenizer.json", tokenizer_json(v, byte_level(v, table[name]["regexes"])))
    write(out + "/json/tokenizer_config.json", v.config())
    if v.spm:
        unigram_files(v, out, texts)


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Writes a GGUF file as a Hugging Face directory: config.json, safetensors, tokenizer.json,
chat_template.jinja.

usage: gguf_to_hf.py MODEL.gguf OUT_DIR [--twin OUT.gguf] [--shards N] [--pre PRE_TOKENIZERS.json] [--dtype
BF16]

It states what the converters of ggml-org/llama.cpp do to a directory (conversion/*.py) the other way around,
by names of huggingface/transformers (models/*/modeling_*.py, configuration_*.py), and shares nothing with the
reader of directories.
Values that a directory cannot express to the last bit (1 + weight, -exp(A_log), computed rope factors) are
rounded to ones that it can. --twin writes the GGUF file with these values: the directory must give the same
bytes as the twin.
Exit status 3: the architecture, or something the file uses, has no public name."""

import argparse
import json
import os
import struct
import sys

from hf import families
from hf.gguf import Gguf
from hf.model import Model
from hf.noname import NoName
from hf.vocab import write_vocab


def write_safetensors(path, tensors):
    header, at = {}, 0
    for name, t in tensors:
        header[name] = {"dtype": t.dtype, "shape": t.shape, "data_offsets": [at, at + len(t.data)]}
        at += len(t.data)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text)
        for _, t in tensors:
            f.write(t.data)


def write_weights(out, tensors, shards):
    rows = sorted(tensors.items())
    if shards == 1:
        write_safetensors(out + "/model.safetensors", rows)
        return
    where = {}
    for i in range(shards):
        name = "model-%05d-of-%05d.safetensors" % (i + 1, shards)
        part = rows[len(rows) * i // shards : len(rows) * (i + 1) // shards]
        write_safetensors(out + "/" + name, part)
        where.update({tensor: name for tensor, _ in part})
    with open(out + "/model.safetensors.index.json", "w") as f:
        json.dump({"metadata": {"total_size": sum(len(t.data) for _, t in rows)}, "weight_map": where}, f)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("gguf")
    p.add_argument("out")
    p.add_argument("--twin")
    p.add_argument("--shards", type=int, default=1)
    p.add_argument("--pre")
    p.add_argument("--old", action="store_true", help="keys and names of older releases")
    args = p.parse_args()
    try:
        gguf = Gguf(args.gguf)
        m = Model(gguf, args.old)
        config = families.write(m)
        os.makedirs(args.out, exist_ok=True)
        write_weights(args.out, m.out, args.shards)
        with open(args.out + "/config.json", "w") as f:
            json.dump(config, f, indent=2)
        write_vocab(gguf.meta, args.out, args.pre)
        if args.twin:
            with open(args.twin, "wb") as f:
                f.write(gguf.data)
    except NoName as e:
        print("%s: %s" % (args.gguf, e), file=sys.stderr)
        sys.exit(3)


main()

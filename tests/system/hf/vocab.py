# SPDX-License-Identifier: GPL-3.0-or-later
"""The vocabulary as tokenizer.json, tokenizer_config.json and chat_template.jinja."""

import json

import vocab_files

from .model import NoName

# Pre-tokenizers whose models begin with BOS unless the file says otherwise (ggml-org/llama.cpp
# src/llama-vocab.cpp).
BOS = ("llama-bpe", "falcon-h1", "falcon3", "pixtral", "midm-2.0", "lfm2")
GPT2 = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}


def body(v, pre):
    model = v.meta["tokenizer.ggml.model"]
    if model == b"gpt2":
        name = v.meta.get("tokenizer.ggml.pre", b"").decode()
        if pre is not None and name in pre:
            return vocab_files.byte_level(v, pre[name]["regexes"])
        return dict(vocab_files.byte_level(v, []), pre_tokenizer=GPT2)
    if model == b"llama":
        return vocab_files.char_level(v)
    if model == b"gemma4":
        merges = [m.decode() for m in v.meta["tokenizer.ggml.merges"]]
        b = vocab_files.char_level(v)
        b["model"]["merges"] = merges
        b["normalizer"] = {"type": "Replace", "pattern": {"String": " "}, "content": vocab_files.MARK}
        b["pre_tokenizer"] = {"type": "Split", "pattern": {"String": " "}, "behavior": "MergedWithPrevious",
            "invert": False}
        return b
    raise NoName("vocabularies of kind %s are not written" % model.decode())


def write_vocab(meta, out, pre_path):
    pre = None
    if pre_path:
        with open(pre_path, encoding="utf-8") as f:
            pre = json.load(f)["reference"]["pre"]
    v = vocab_files.Vocab(meta)
    vocab_files.write(out + "/tokenizer.json", vocab_files.tokenizer_json(v, body(v, pre)))
    config = v.config()
    if "tokenizer.ggml.add_bos_token" not in meta and meta.get("tokenizer.ggml.pre", b"").decode() in BOS:
        config["add_bos_token"] = True
    vocab_files.write(out + "/tokenizer_config.json", config)
    if "tokenizer.chat_template" in meta:
        vocab_files.write(out + "/chat_template.jinja", meta["tokenizer.chat_template"])

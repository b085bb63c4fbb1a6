# SPDX-License-Identifier: GPL-3.0-or-later
"""The guide as a GGUF file: metadata, vocabulary, names of tensors."""
from pathlib import Path

from . import gguf
from .bpe import END, PRE, SPECIALS, STOP, byte_letters, topic_token

NORMAL, CONTROL, UNUSED = 1, 3, 5
TEMPLATE = Path(__file__).resolve().parents[3] / 'templates' / 'chatml.jinja'
ABOUT = ('A very small language model that answers questions about QSF, the program it comes with, and about nothing '
         'else. Trained on text written for it (tools/guide).')
# Recommended sampling: almost always the most likely words, because an answer is either right or wrong;
# another answer to /retry if the model is unsure.
TEMPERATURE = 0.3


def vocabulary(tok):
    """The metadata that describes the tokenizer."""
    letters = byte_letters()
    tokens = [''.join(letters[b] for b in t) for t in tok.bytes]
    types = [NORMAL] * len(tokens)
    merges = [f'{tokens[a]} {tokens[b]}' for a, b in tok.merges]
    while len(tokens) < tok.first_topic:  # a text too small to fill the vocabulary
        types.append(UNUSED)
        tokens.append(f'<|unused{len(tokens)}|>')
    control = [*map(topic_token, tok.topics), *SPECIALS]
    return {
        'tokenizer.ggml.model': 'gpt2',
        'tokenizer.ggml.pre': PRE,
        'tokenizer.ggml.tokens': tokens + control,
        'tokenizer.ggml.token_type': types + [CONTROL] * len(control),
        'tokenizer.ggml.merges': merges or ['h e'],
        'tokenizer.ggml.bos_token_id': tok.special[END],
        'tokenizer.ggml.eos_token_id': tok.special[STOP],
        'tokenizer.ggml.eot_token_id': tok.special[STOP],
        'tokenizer.ggml.padding_token_id': tok.special[END],
        'tokenizer.ggml.add_bos_token': False,
        'tokenizer.ggml.add_eos_token': False,
        'tokenizer.chat_template': TEMPLATE.read_text(),
    }


def describe(shape):
    """The metadata of the model itself; shape as in recipe.json."""
    head = shape['dim'] // shape['heads']
    return {
        'general.architecture': 'llama',
        'general.name': 'QSF guide',
        'general.author': 'the QSF contributors',
        'general.license': 'GPL-3.0-or-later',
        'general.description': ABOUT,
        'general.sampling.temp': TEMPERATURE,
        'llama.context_length': shape['context'],
        'llama.embedding_length': shape['dim'],
        'llama.block_count': shape['layers'] + shape.get('nextn', 0),
        'llama.feed_forward_length': shape['ffn'],
        'llama.attention.head_count': shape['heads'],
        'llama.attention.head_count_kv': shape['kv_heads'],
        'llama.attention.layer_norm_rms_epsilon': 1e-5,
        'llama.rope.dimension_count': head,
        'llama.rope.freq_base': 10000.0,
        'llama.vocab_size': shape['vocab'],
        **({'llama.nextn_predict_layers': 1} if shape.get('nextn') else {}),
    }


def shapes(shape):
    """(name, shape) of every tensor, as the engine wants them: rows first, Q and K in adjacent RoPE pairs. There is
    no output matrix: the embedding is used for both."""
    dim, ffn = shape['dim'], shape['ffn']
    kv = dim // shape['heads'] * shape['kv_heads']
    yield 'token_embd.weight', (shape['vocab'], dim)
    for i in range(shape['layers'] + shape.get('nextn', 0)):
        for name, s in (('attn_norm', (dim,)), ('attn_q', (dim, dim)), ('attn_k', (kv, dim)), ('attn_v', (kv, dim)),
                        ('attn_output', (dim, dim)), ('ffn_norm', (dim,)), ('ffn_gate', (ffn, dim)),
                        ('ffn_up', (ffn, dim)), ('ffn_down', (dim, ffn))):
            yield f'blk.{i}.{name}.weight', s
    if shape.get('nextn'):
        for name, s in (('eh_proj', (dim, 2 * dim)), ('enorm', (dim,)), ('hnorm', (dim,)), ('shared_head_norm', (dim,))):
            yield f'blk.{shape["layers"]}.nextn.{name}.weight', s
    yield 'output_norm.weight', (dim,)


def write(path, kind, shape, tok, values, **more):
    """values(name): the flat list of a tensor's numbers. Vectors stay f32. more: further metadata."""
    meta = describe(shape)
    meta['general.file_type'] = {gguf.F32: 0, gguf.F16: 1, gguf.Q8_0: 7}[kind]
    meta.update((k.replace('__', '.'), v) for k, v in more.items())
    meta.update(vocabulary(tok))
    tensors = []
    for name, s in shapes(shape):
        k = kind if len(s) > 1 else gguf.F32
        tensors.append((name, s, k, gguf.pack(values(name), k)))
    gguf.write(path, meta, tensors)


def write_both(folder, shape, tok, values):
    """guide-f16.gguf and guide-q8_0.gguf in a folder; their paths, each when it is there."""
    for name, kind in (('f16', gguf.F16), ('q8_0', gguf.Q8_0)):
        path = folder / f'guide-{name}.gguf'
        write(path, kind, shape, tok, values)
        yield path

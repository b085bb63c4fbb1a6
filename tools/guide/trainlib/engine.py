# SPDX-License-Identifier: GPL-3.0-or-later
"""Asking the engine: one greedy answer of qsf-run to a question, after other turns where there are any."""
import json
import os
import shutil
import subprocess
import tempfile
from pathlib import Path


class EngineError(Exception):
    """A message for the user."""


def find(build):
    """qsf-run of a build directory, of the current one, of ./build, or of the PATH."""
    for place in [build] if build else ['.', 'build']:
        program = Path(place) / 'qsf-run'
        if os.access(program, os.X_OK):
            return str(program.resolve())
    found = None if build else shutil.which('qsf-run')
    if not found:
        raise EngineError(f'no qsf-run in {build or "., build or the PATH"}: name the build directory with -b')
    return found


def call(command, **more):
    done = subprocess.run(command, capture_output=True, encoding='utf-8', errors='replace', **more)
    if done.returncode:
        raise EngineError(f'{" ".join(command[:2])} ...: exit {done.returncode}: {done.stderr.strip()[-400:]}')
    return done.stdout


def template_after(messages):
    """A chat template that puts the turns before the last one, word for word, in front of it."""
    said = ''.join(f'<|im_start|>{m["role"]}\n{m["content"]}<|im_end|>\n' for m in messages[:-1])
    return ('{{- ' + json.dumps(said + '<|im_start|>user\n') + " + messages[0]['content'] + "
            + json.dumps('<|im_end|>\n<|im_start|>assistant\n') + ' }}')


GREEDY = ('--temperature', '0')


def answer(program, model, messages, most=200, options=GREEDY):
    """The answer to the last of messages, which the user said."""
    command = [program, '-n', str(most), '-t', '1', *options, '-m', str(model), '-p', messages[-1]['content']]
    if len(messages) == 1:
        return call(command, stdin=subprocess.DEVNULL).rstrip('\n')
    with tempfile.NamedTemporaryFile('w', suffix='.jinja') as f:
        f.write(template_after(messages))
        f.flush()
        return call([*command, '--template', f.name], stdin=subprocess.DEVNULL).rstrip('\n')


def tokenize(program, model, texts):
    """ids of every text, special tokens in it being text."""
    lines = ''.join(json.dumps(t) + '\n' for t in texts)
    out = call([program, '--tokenize', '--jsonl', '--no-bos', '--no-special', str(model)], input=lines)
    return [json.loads(line) for line in out.splitlines()]

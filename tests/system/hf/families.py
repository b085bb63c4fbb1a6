# SPDX-License-Identifier: GPL-3.0-or-later
"""Which function writes an architecture."""

from . import dense, experts, fused, gemma, hybrid
from .model import NoName

TABLE = {**dense.TABLE, **fused.TABLE, **experts.TABLE, **hybrid.TABLE, **gemma.TABLE}


def write(m):
    if m.arch not in TABLE:
        raise NoName("the architecture %s has no directory of a public name here" % m.arch)
    config = TABLE[m.arch](m)
    m.finish()
    return config

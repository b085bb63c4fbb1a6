# SPDX-License-Identifier: GPL-3.0-or-later
"""A guide there is, whichever of its two kinds of file it stands in."""
from . import ggufread, qsfread


def read(path):
    """A guidefile.GuideFile; OSError or ValueError where there is none."""
    with open(path, 'rb') as f:
        qsf = f.read(4) == b'QSF1'
    return (qsfread if qsf else ggufread).Reader(path)

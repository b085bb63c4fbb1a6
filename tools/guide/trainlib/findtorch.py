# SPDX-License-Identifier: GPL-3.0-or-later
"""Which Python has PyTorch: this one, or the system's, where Debian's python3-torch lives."""
import importlib.util
import os
import sys

SYSTEM = '/usr/bin/python3'
HELP = 'PyTorch is missing: install python3-torch and, for speed, libopenblas0-openmp (Debian), or pip install torch'


def need_torch():
    """Returns when torch can be imported; else starts the program again under the system's Python, or ends it."""
    if importlib.util.find_spec('torch'):
        return
    if os.path.exists(SYSTEM) and not os.environ.get('QSF_GUIDE_AGAIN'):
        os.environ['QSF_GUIDE_AGAIN'] = '1'
        os.execv(SYSTEM, [SYSTEM, *sys.argv])
    sys.exit(f'{os.path.basename(sys.argv[0])}: {HELP}')

# SPDX-License-Identifier: GPL-3.0-or-later
"""Why a file is not written as a directory."""


class NoName(Exception):
    """The architecture, or something that the file uses, has no public name here."""

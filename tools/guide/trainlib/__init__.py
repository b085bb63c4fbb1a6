# SPDX-License-Identifier: GPL-3.0-or-later
"""What tools/guide/train and tools/guide/evaluate are made of. Only model, data and loop need PyTorch."""

/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The layers of a model in one row of cells: how much of each is pinned, or how many of its
 * experts are in memory, and which ones waited for the disk.
 * Draws only the given values. */
#ifndef QSF_UI_HEAT_H
#define QSF_UI_HEAT_H

#include "qsf_engine.h"
#include "ui/canvas.h"

#define UI_HEAT_ROWS 2

typedef struct UiHeat {
    const QSFLayerStats *layers; /* (n), the last one is the head */
    uint32_t n;
    uint32_t layer; /* being computed */
    bool running;   /* one is */
    bool experts;   /* of a layer with experts, show how many of these are in memory instead */
} UiHeat;

/* One cell per layer, or per group of them if there are more layers than cells in [col, end): the more of it
 * is pinned, the fuller. The row below marks the layer being computed and those whose reads were waited
 * for. */
void ui_heat_draw(UiCanvas *c, int row, int col, int end, const UiHeat *h);
/* A block, or an ASCII character, for a share from none to all; one between them is never shown as one of the
 * two. Static. */
const char *ui_heat_cell(double share, bool unicode);
/* Fills worst with up to max layers that waited longest for reads, longest first; returns their number. */
uint32_t ui_heat_worst(const QSFLayerStats *layers, uint32_t n, uint32_t *out, uint32_t max);

#endif

/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The state of the engine, as a pane, a strip of two lines or one line. Draws only the given values. */
#ifndef QSF_UI_STATUSPANE_H
#define QSF_UI_STATUSPANE_H

#include "qsf_engine.h"
#include "ui/canvas.h"
#include "ui/engine.h"

#define UI_PANE_WIDTH 34
#define UI_PANE_FROM  96 /* minimum columns of a screen for the pane */
#define UI_STRIP_FROM 60 /* for the strip; below: one line */

typedef struct UiStatus {
    const QSFStats *stats;
    const QSFSettings *settings;
    const QSFLayerStats *layers; /* (n_layers), the last one is the head */
    uint32_t n_layers;
    const double *spark; /* (n_spark) tokens per second, oldest first */
    unsigned n_spark;
    unsigned knob; /* index of the setting changed by the keys */
    bool stopping;
    const QSFBudgetStep *more; /* what the key for a larger budget would bring */
    bool downloading;
    uint64_t get_done, get_total; /* bytes of the model that is downloaded; total 0 = unknown */
    double get_left;              /* seconds, -1 = unknown */
    const UiEngine *engine;       /* what it cannot know is not drawn; NULL: it knows everything */
    double pin_left;              /* seconds until all weights to be pinned are in RAM, -1 = unknown */
} UiStatus;

/* Rows [row, end_row) of columns [col, col + width). Rows that do not fit are omitted from the bottom. */
void ui_status_pane(UiCanvas *c, const UiStatus *s, int row, int end_row, int col, int width);
/* Two lines. */
void ui_status_strip(UiCanvas *c, const UiStatus *s, int row, int width);
void ui_status_line(UiCanvas *c, const UiStatus *s, int row, int width);

/* "generating", "reading", ... */
const char *ui_status_word(const UiStatus *s);
/* Weights are still being read into RAM. */
/* Is a quality below 1 set, or used by the answer? */
bool ui_status_reduced(const UiStatus *s);
/* Is there a limit for experts, set or used by the answer? */
bool ui_status_limits(const UiStatus *s, int *top, float *drop);
/* What the answer has to match: "schema tool.json"; false if there is nothing. */
bool ui_status_grammar(const UiStatus *s, char *out, size_t cap);
bool ui_status_pinning(const QSFStats *s);
/* Seconds until the running phase (prefill, an answer with a limit) ends, -1 if unknown. */
double ui_status_eta(const QSFStats *s);
/* Number of the layer being computed, from 1; the last one while the head is. */
uint32_t ui_status_layer(const QSFStats *s);
/* Is it known, and are its numbers exact? */
bool ui_status_has(const UiStatus *s, UiNeed need);
bool ui_status_counted(const UiStatus *s);
/* The value of a setting, "-" if it is not set and the engine has its own, or "n/a" if it does nothing. */
void ui_status_value(const UiStatus *s, const QSFSetting *row, char *dst, size_t cap);
/* A larger budget is possible, with which less streams. */
bool ui_status_offers(const UiStatus *s);
/* Bytes of all categories together. */
uint64_t ui_status_used(const QSFStats *s);
/* More RAM is in use than the budget allows. */
bool ui_status_over(const QSFStats *s);

#endif

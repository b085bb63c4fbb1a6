/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The chat without a screen: how long a line or a paste may be. Its text is kept several times until it is
 * sent, and all of it counts for the RAM budget. */
#include <stdio.h>

#include "qsf_cli.h"
#include "ui/app_internal.h"
#include "ui/canvas.h"

/* Copies of a message besides that of the transcript, while its prompt is made: what was read; and on the
 * full screen the input line, what undoes it, the history, and the lines on the screen. */
#define COPIES_OF_LINES  1u
#define COPIES_ON_SCREEN 4u

static double mb(uint64_t bytes) { return (double)bytes / (1 << 20); }

static unsigned copies(const UiApp *a) { return a->full_screen ? COPIES_ON_SCREEN : COPIES_OF_LINES; }

/* ---- the screen ---- */

/* Memory of a cell: the canvas, and three screens of the terminal library. */
#define CELL_BYTES 128u

/* Returns the bytes of the cells that the plan does not include. */
static uint64_t cells_bytes(size_t cells, size_t planned) {
    if (planned < UI_CELLS_ALWAYS) planned = UI_CELLS_ALWAYS;
    return cells > planned ? (uint64_t)(cells - planned) * CELL_BYTES : 0;
}

void ui_app_screen_has(UiApp *a, size_t cells, bool drawn) {
    a->cells = cells;
    if (drawn) a->cells_drawn = cells;
}

void ui_app_screen_load(UiApp *a) {
    a->settings.owner_bytes = cells_bytes(a->cells, a->cells_drawn);
    a->cells_at_load = a->cells;
}

/* ---- texts ---- */

/* With what is queued or folded in the input, and a larger screen: no plan counts that. */
static uint64_t held_since_load(const UiApp *a) {
    const uint64_t now = ui_transcript_held(&a->chat) + ui_session_held(&a->session) + a->queue.bytes +
                         a->folds.bytes;
    return (now > a->held_at_load ? now - a->held_at_load : 0) + cells_bytes(a->cells, a->cells_at_load);
}

uint64_t ui_app_held(const UiApp *a) {
    const UiItem *last = ui_transcript_last(&a->chat);
    const uint64_t newest = last && last->kind == UI_USER ? last->raw.len : 0;
    return held_since_load(a) + newest * copies(a);
}

/* What a prompt of the conversation so far charges. */
static uint64_t charged(const UiApp *a) {
    return held_since_load(a) + ui_transcript_bytes(&a->chat) * QSF_REQUEST_BYTES;
}

/* Without a model nothing is sent, but the line itself takes memory. */
static uint64_t bytes_free(UiApp *a) {
    UiRoom room;
    uint64_t used = 0;
    ui_app_refresh_stats(a);
    if (!a->model_ready) {
        ui_room_measure(a, &a->settings, &room);
        return room.bytes;
    }
    if (a->stats.budget == 0) return UINT64_MAX;
    for (uint32_t i = 0; i < a->stats.n_mem; i++) used += a->stats.mem[i].used;
    used += charged(a);
    return a->stats.budget > used ? a->stats.budget - used : 0;
}

/* Bytes of memory for a byte of it. */
static unsigned per_byte(const UiApp *a) { return QSF_REQUEST_BYTES + 1 + copies(a); }

size_t ui_app_screen_room(UiApp *a) {
    size_t cells = UI_CELLS_ALWAYS;
    if (cells < a->cells_at_load) cells = a->cells_at_load;
    if (!a->model_ready) return UI_CELLS_MAX;
    if (cells < a->cells) cells = a->cells; /* bytes_free subtracts what is more */
    const uint64_t more = bytes_free(a) / CELL_BYTES;
    return more < UI_CELLS_MAX - cells ? cells + (size_t)more : UI_CELLS_MAX;
}

size_t ui_app_text_room(UiApp *a) {
    const uint64_t room = bytes_free(a) / per_byte(a);
    if (room < UI_ROOM_ALWAYS) return UI_ROOM_ALWAYS;
    return room < UI_MESSAGE_MAX ? (size_t)room : UI_MESSAGE_MAX;
}

uint64_t ui_app_budget_for(UiApp *a, const QSFTextSize *size) {
    const uint64_t held = charged(a) + size->bytes * (1 + copies(a));
    return size->bytes > UI_MESSAGE_MAX ? 0 : a->engine.text_budget(a->engine.self, size, held);
}

void ui_app_say_too_long(UiApp *a, const QSFTextSize *size, size_t room) {
    char text[400];
    int n;
    if (size->bytes > UI_MESSAGE_MAX) {
        ui_app_say(a, UI_ERROR, "not sent: a message can have at most %zu MB, and this one has %.1f MB",
                   UI_MESSAGE_MAX >> 20, mb(size->bytes));
        return;
    }
    const uint64_t budget = ui_app_budget_for(a, size);
    n = snprintf(
        text, sizeof text,
        "RAM budget exceeded: the message has %.2f MB, and at most %.2f MB fit in the budget of %.0f MB",
        mb(size->bytes), mb(room), mb(a->stats.budget));
    if (budget > 0)
        (void)snprintf(text + n, sizeof text - (size_t)n, "\nsmallest budget that works: %llu MB",
                       (unsigned long long)(budget >> 20));
    if (a->exit_code == 0) a->exit_code = QSF_EXIT_BUDGET;
    ui_app_print(a, UI_ERROR, text);
}

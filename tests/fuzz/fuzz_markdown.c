/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Fuzz target: any bytes as an answer, cleaned as the chat does it, that arrives in any pieces: the same rows
 * as at once, at any width, and all of them within it. The first bytes are the width and the lengths of the
 * pieces. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "qsf_text.h"
#include "ui/md/answer.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define SIZES 8 /* bytes that say how long the pieces are */

static void add_rows(UiMdAnswer *a, UiMdCache *cache, const char *text, UiBuf *out) {
    UiCanvas c = { .unicode = a->look.unicode };
    ui_md_cache_frame(cache);
    for (size_t k = 0; k < a->rows; k++) {
        if (!ui_canvas_resize(&c, 1, a->look.width + 8)) abort();
        (void)ui_md_answer_draw(a, cache, text, k, &c, 0, 0, a->look.width + 8, false);
        ui_canvas_text(&c, 0, out);
        ui_buf_puts(out, "\n");
        if (ui_md_answer_source(a, cache, text, k) > a->len) abort();
    }
    ui_canvas_free(&c);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    UiMdAnswer whole = { 0 }, parts = { 0 };
    UiMdCache cache = { 0 };
    UiBuf a = { 0 }, b = { 0 };
    QSFClean clean = { 0 };
    if (size <= SIZES || size > 65536) return 0;
    const UiMdLook look = { .width = 1 + data[0] % 120,
                            .unicode = (data[1] & 1) != 0,
                            .links = (data[1] & 2) != 0 };
    char *text = malloc(QSF_CLEAN_MAX(size));
    if (!text) return 0;
    clean.ascii = !look.unicode;
    const size_t len = qsf_clean(&clean, (const char *)data + SIZES, size - SIZES, true, text);
    ui_md_answer_sync(&whole, &cache, text, len, false, &look);
    add_rows(&whole, &cache, text, &a);
    for (size_t n = 0, i = 2; n < len; i++) {
        n += 1 + (len > 2048 ? len / 16 : 0) + data[2 + i % (SIZES - 2)] % 64;
        ui_md_answer_sync(&parts, &cache, text, n < len ? n : len, true, &look);
        if (data[i % SIZES] & 64) {
            UiBuf open = { 0 };
            add_rows(&parts, &cache, text, &open);
            ui_buf_free(&open);
        }
    }
    ui_md_answer_sync(&parts, &cache, text, len, false, &look);
    add_rows(&parts, &cache, text, &b);
    if (a.len != b.len || (a.len > 0 && memcmp(a.data, b.data, a.len) != 0)) abort();
    ui_buf_free(&a);
    ui_buf_free(&b);
    ui_md_answer_free(&whole);
    ui_md_answer_free(&parts);
    ui_md_cache_free(&cache);
    free(text);
    return 0;
}

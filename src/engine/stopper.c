/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Stop strings, which may span any number of tokens. */
#include "src/engine/stopper.h"

#include <stdlib.h>
#include <string.h>

#include "src/base/utf8.h"

int qsf_stopper_open(QsfStopper *s, const char *const *stop, size_t n_stop, size_t piece_max, QsfErr *err) {
    size_t longest = 0;
    memset(s, 0, sizeof *s);
    for (size_t i = 0; i < n_stop; i++) {
        size_t len = strlen(stop[i]);
        if (len == 0) return qsf_err_set(err, QSF_E_USAGE, "stop string %zu is empty", i + 1);
        if (len > QSF_STOP_MAX)
            return qsf_err_set(err, QSF_E_USAGE, "stop string %zu has %zu bytes, the maximum is %d", i + 1,
                               len, QSF_STOP_MAX);
        if (!qsf_utf8_valid(stop[i], len))
            return qsf_err_set(err, QSF_E_USAGE, "stop string %zu is not UTF-8", i + 1);
        if (len > longest) longest = len;
    }
    s->cap = longest + piece_max;
    s->buf = malloc(s->cap + 1);
    if (s->buf == NULL) return qsf_err_memory(err, "stop strings");
    s->stop = stop;
    s->n_stop = n_stop;
    return QSF_OK;
}

void qsf_stopper_close(QsfStopper *s) {
    free(s->buf);
    memset(s, 0, sizeof *s);
}

/* Returns where the first complete stop string begins, or len. The one that ends first counts, not the one
 * that begins first, so that the answer does not depend on how the text is split into tokens. */
static size_t find_stop(const QsfStopper *s) {
    size_t begin = s->len, end = s->len + 1;
    for (size_t i = 0; i < s->n_stop; i++) {
        size_t len = strlen(s->stop[i]);
        const char *at = memmem(s->buf, s->len, s->stop[i], len);
        if (at == NULL) continue;
        size_t b = (size_t)(at - s->buf);
        if (b + len > end || (b + len == end && b > begin)) continue;
        begin = b;
        end = b + len;
    }
    return begin;
}

/* Returns where the earliest partial stop string at the end of the text begins, or len. */
static size_t find_partial(const QsfStopper *s) {
    size_t best = s->len;
    for (size_t i = 0; i < s->n_stop; i++) {
        size_t most = strlen(s->stop[i]) - 1;
        if (most > s->len) most = s->len;
        for (size_t k = most; k > s->len - best; k--) {
            if (memcmp(s->buf + s->len - k, s->stop[i], k) != 0) continue;
            best = s->len - k;
            break;
        }
    }
    return best;
}

static void drop_out(QsfStopper *s) {
    memmove(s->buf, s->buf + s->out, s->len - s->out);
    s->len -= s->out;
    s->out = 0;
}

const char *qsf_stopper_feed(QsfStopper *s, const char *text, size_t len, size_t *n) {
    drop_out(s);
    if (len > s->cap - s->len)
        len = s->cap - s->len; /* cannot happen: less than a whole stop string is held back */
    memcpy(s->buf + s->len, text, len);
    s->len += len;
    s->buf[s->len] = '\0';
    size_t at = find_stop(s);
    s->hit = at < s->len;
    s->out = s->hit ? at : find_partial(s);
    *n = s->out;
    if (s->hit) s->len = at;
    return s->buf;
}

const char *qsf_stopper_flush(QsfStopper *s, size_t *n) {
    drop_out(s);
    s->buf[s->len] = '\0';
    *n = s->len;
    s->out = s->len;
    return s->buf;
}

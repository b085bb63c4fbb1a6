/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Viterbi's algorithm from the end of a text. Sums of rounded scores are whole numbers, so ties are exact;
 * the longest token wins them. */
#include "src/token/plamo.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/interrupt.h"
#include "src/base/utf8.h"

#define MAX_TEXT     (256u << 20)
#define UNIT         1e4 /* scores are rounded to multiples of 1 / UNIT */
#define BYTES_SCORE  (-1e7)
#define LOWEST_SCORE (-2e7) /* tokens at or below it are not used */

int qsf_plamo_init(QsfPlamo *u, const QsfVocab *v, QsfArena *arena, QsfErr *err) {
    *u = (QsfPlamo){ .vocab = v };
    for (unsigned b = 0; b < 256; b++) {
        char text[8];
        int len = snprintf(text, sizeof text, "<0x%02X>", b);
        u->byte_id[b] = qsf_vocab_find(v, text, (size_t)len);
        if (qsf_vocab_type(v, u->byte_id[b]) != QSF_TOKEN_BYTE)
            return qsf_err_set(err, QSF_E_MODEL,
                               "the vocabulary has no token %s, which tokenizer \"plamo2\" needs", text);
    }
    int rc = qsf_trie_init(&u->trie, v, qsf_vocab_mergeable, QSF_TOKEN_LONG, arena, err);
    return rc == QSF_OK ? qsf_matcher_init_long(&u->rest, v, qsf_vocab_mergeable, arena, err) : rc;
}

/* The rounded score of a token; LOWEST_SCORE for one that is not used. */
static double score_of(const QsfPlamo *u, int32_t id) {
    if (u->vocab->score == NULL) return 0;
    const double s = round((double)u->vocab->score[id] * UNIT);
    if (!isfinite(s) || s <= LOWEST_SCORE) return LOWEST_SCORE;
    return s < 1e9 ? s : 1e9; /* a file may contain any bits; sums of these stay exact */
}

/* The best of the long tokens at a place, the longest of equals; its score is -INFINITY if there is none. */
static QsfBest best_long(const QsfPlamo *u, const QsfLattice *l, size_t at) {
    QsfBest b = { .score = -INFINITY };
    for (int32_t i = l->found[at]; i >= 0; i = u->rest.word[i].shorter) {
        const QsfMatcherWord *w = &u->rest.word[i];
        const double score = score_of(u, w->id), sum = l->best[at + w->len].score + score;
        if (score > LOWEST_SCORE && sum > b.score)
            b = (QsfBest){ .score = sum, .from = (uint32_t)(at + w->len), .id = w->id };
    }
    return b;
}

/* Finds the best token at a character, from the best paths of all places after it. */
static void best_at(const QsfPlamo *u, const QsfLattice *l, const char *s, size_t len, size_t at) {
    QsfBest *best = l->best;
    const uint32_t next = best[at].from;
    QsfBest b = { .score = best[next].score + BYTES_SCORE, .from = next, .id = -1 };
    uint32_t node = 0;
    for (size_t i = at; i < len; i++) {
        node = qsf_trie_step(&u->trie, node, (unsigned char)s[i]);
        if (node == 0) break;
        const int32_t id = qsf_trie_token(&u->trie, node);
        const double score = id < 0 ? LOWEST_SCORE : score_of(u, id);
        if (score <= LOWEST_SCORE || isinf(best[i + 1].score)) continue;
        const double sum = best[i + 1].score + score;
        if (sum >= b.score) b = (QsfBest){ .score = sum, .from = (uint32_t)(i + 1), .id = id };
    }
    const QsfBest other = u->rest.n > 0 ? best_long(u, l, at) : (QsfBest){ .score = -INFINITY };
    best[at] = other.score >= b.score ? other : b;
}

static int reserve(QsfLattice *l, size_t len, QsfErr *err) {
    if (len > MAX_TEXT)
        return qsf_err_set(err, QSF_E_RUNTIME, "a text of %zu bytes is too long to tokenize", len);
    return qsf_lattice_reserve(l, len + 1, err);
}

static int push_path(const QsfPlamo *u, const QsfBest *best, const char *s, size_t len, QsfIds *out,
                     QsfErr *err) {
    int rc = QSF_OK;
    for (size_t at = 0; at < len && rc == QSF_OK; at = best[at].from) {
        if (best[at].id >= 0) rc = qsf_ids_push(out, best[at].id, err);
        for (size_t i = at; best[at].id < 0 && i < best[at].from && rc == QSF_OK; i++)
            rc = qsf_ids_push(out, u->byte_id[(unsigned char)s[i]], err);
    }
    return rc;
}

int qsf_plamo_encode(const QsfPlamo *u, QsfLattice *l, const char *text, size_t len, QsfIds *out,
                     QsfErr *err) {
    uint32_t cp;
    const size_t first = qsf_utf8_next(text, len, &cp);
    if (len > 0 && cp == 0xFEFF) { /* a byte order mark */
        text += first;
        len -= first;
    }
    int rc = reserve(l, len, err);
    if (rc == QSF_OK) rc = qsf_lattice_find(l, &u->rest, text, len, err);
    if (rc != QSF_OK) return rc;
    for (size_t i = 0; i <= len; i++) l->best[i] = (QsfBest){ .score = -INFINITY, .id = -1 };
    for (size_t at = 0, n; at < len; at += n) {
        n = qsf_utf8_next(text + at, len - at, &cp);
        l->best[at].from = (uint32_t)(at + n); /* the next character; 0 inside one */
    }
    l->best[len].score = 0;
    for (size_t at = len; at-- > 0 && rc == QSF_OK;) {
        if (l->best[at].from > 0) best_at(u, l, text, len, at);
        if (at % 4096 == 0) rc = qsf_interrupt_check(err);
    }
    return rc != QSF_OK ? rc : push_path(u, l->best, text, len, out, err);
}

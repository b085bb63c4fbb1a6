/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Viterbi's algorithm over the positions of a word. */
#include "src/token/unigram.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/heap.h"
#include "src/base/interrupt.h"
#include "src/base/utf8.h"
#include "src/token/spm.h"

#define UNKNOWN_PENALTY 10.0f  /* google/sentencepiece src/unigram_model.cc, kUnkPenalty */
#define CHECK_EVERY     16384u /* bytes or tokens between two looks at the interrupt flag */
#define MAX_WORD        (256u << 20)

/* A file may contain any bits; sums of these stay finite. */
static double score_of(const QsfUnigram *u, int32_t id) {
    const QsfVocab *v = u->vocab;
    if (v->score == NULL || (!u->trained && qsf_vocab_type(v, id) == QSF_TOKEN_USER)) return 0;
    float s = v->score[id];
    if (isnan(s) || s < -1e30f) return -1e30;
    return s > 1e30f ? 1e30 : (double)s;
}

static double lowest_score(const QsfUnigram *u) {
    const QsfVocab *v = u->vocab;
    double lowest = 0;
    bool any = false;
    for (uint32_t i = 0; i < v->n; i++) {
        if (qsf_vocab_type(v, (int32_t)i) != QSF_TOKEN_NORMAL && !u->trained) continue;
        if (qsf_vocab_type(v, (int32_t)i) == QSF_TOKEN_UNUSED) continue;
        double s = score_of(u, (int32_t)i);
        if (!any || s < lowest) lowest = s;
        any = true;
    }
    return lowest;
}

static void find_bytes(QsfUnigram *u) {
    bool all = true;
    for (unsigned b = 0; b < 256; b++) {
        char text[8];
        int len = snprintf(text, sizeof text, "<0x%02X>", b);
        u->byte_id[b] = qsf_vocab_find_model(u->vocab, text, (size_t)len);
        all = all && qsf_vocab_type(u->vocab, u->byte_id[b]) == QSF_TOKEN_BYTE;
    }
    if (!u->trained) u->fallback = all;
}

int qsf_unigram_init(QsfUnigram *u, const QsfVocab *v, int32_t unknown, QsfArena *arena, QsfErr *err) {
    *u = (QsfUnigram){ .vocab = v, .unknown = unknown, .trained = u->trained, .fallback = u->fallback };
    u->by_word = !u->trained && qsf_spm_spaces_lead(v);
    u->unknown_score = lowest_score(u) - (double)UNKNOWN_PENALTY;
    if (!u->trained)
        u->unknown_score = (double)((float)lowest_score(u) - UNKNOWN_PENALTY); /* of the reference */
    find_bytes(u);
    QsfTrieFilter keep = u->trained ? qsf_vocab_plain : qsf_vocab_mergeable;
    int rc = qsf_trie_init(&u->trie, v, keep, QSF_TOKEN_LONG, arena, err);
    return rc == QSF_OK ? qsf_matcher_init_long(&u->rest, v, keep, arena, err) : rc;
}

/* Changes the capacity of one of its arrays. */
static int resize(const QsfLattice *l, void **p, size_t *cap, size_t want, size_t elem, QsfErr *err) {
    int rc = qsf_heap_resize(l->ledger, QSF_MEM_TRANSCRIPT, *cap * elem, want * elem, "tokenizing the text",
                             p, err);
    if (rc == QSF_OK) *cap = want;
    return rc;
}

void qsf_lattice_free(QsfLattice *l) {
    void *best = l->best, *found = l->found;
    (void)resize(l, &best, &l->cap, 0, sizeof *l->best, NULL);
    (void)resize(l, &found, &l->cap_found, 0, sizeof *l->found, NULL);
    *l = (QsfLattice){ .ledger = l->ledger };
}

int qsf_lattice_reserve(QsfLattice *l, size_t n, QsfErr *err) {
    if (n <= l->cap) return QSF_OK;
    void *p = l->best;
    int rc = resize(l, &p, &l->cap, n < 256 ? 256 : n + n / 2, sizeof *l->best, err);
    l->best = p;
    return rc;
}

int qsf_lattice_find(QsfLattice *l, const QsfMatcher *rest, const char *text, size_t len, QsfErr *err) {
    if (rest->n == 0) return QSF_OK;
    if (len > l->cap_found) {
        void *found = l->found;
        int rc = resize(l, &found, &l->cap_found, len, sizeof *l->found, err);
        l->found = found;
        if (rc != QSF_OK) return rc;
    }
    return qsf_matcher_find(rest, text, len, 0, len, l->found, err);
}

static void offer(QsfBest *to, double score, size_t from, int32_t id) {
    if (score > to->score) *to = (QsfBest){ .score = score, .from = (uint32_t)from, .id = id };
}

/* Offers all tokens that begin at position `at`, and the unknown one if no token covers the character
 * there. */
static size_t offer_tokens(const QsfUnigram *u, const QsfLattice *l, const char *s, size_t len, size_t at) {
    QsfBest *best = l->best;
    uint32_t cp;
    size_t step = qsf_utf8_next(s + at, len - at, &cp);
    double so_far = best[at].score;
    bool single = false;
    uint32_t node = 0;
    for (size_t i = at; i < len; i++) {
        node = qsf_trie_step(&u->trie, node, (unsigned char)s[i]);
        if (node == 0) break;
        int32_t id = qsf_trie_token(&u->trie, node);
        if (id < 0) continue;
        single = single || i + 1 - at == step;
        offer(&best[i + 1], so_far + score_of(u, id), at, id == u->unknown ? -1 : id);
    }
    int32_t word = u->rest.n > 0 && len > QSF_TOKEN_LONG ? l->found[at] : -1;
    for (; word >= 0; word = u->rest.word[word].shorter) {
        const QsfMatcherWord *w = &u->rest.word[word];
        offer(&best[at + w->len], so_far + score_of(u, w->id), at, w->id);
    }
    if (!single) offer(&best[at + step], so_far + u->unknown_score, at, -1);
    return step;
}

/* The tokens of a character without one, last first. */
static int push_unknown(const QsfUnigram *u, const char *s, size_t len, QsfIds *out, QsfErr *err) {
    int rc = QSF_OK;
    if (u->fallback) {
        while (len > 0 && rc == QSF_OK) rc = qsf_ids_push(out, u->byte_id[(unsigned char)s[--len]], err);
        return rc;
    }
    return u->unknown >= 0 ? qsf_ids_push(out, u->unknown, err) : QSF_OK;
}

/* The tokens of a run of characters without one, last first, by the rules of huggingface/tokenizers. The run
 * may be the unknown token's own text. */
static int push_run(const QsfUnigram *u, const char *s, size_t len, QsfIds *out, QsfErr *err) {
    const int32_t id = qsf_vocab_find_model(u->vocab, s, len);
    bool bytes = u->fallback;
    int rc = QSF_OK;
    if (qsf_vocab_plain(u->vocab, id)) return qsf_ids_push(out, id, err);
    for (size_t i = 0; i < len && bytes; i++) bytes = u->byte_id[(unsigned char)s[i]] >= 0;
    if (!bytes) return u->unknown >= 0 ? qsf_ids_push(out, u->unknown, err) : QSF_OK;
    while (len > 0 && rc == QSF_OK) rc = qsf_ids_push(out, u->byte_id[(unsigned char)s[--len]], err);
    return rc;
}

static void reverse(QsfIds *ids, size_t first) {
    for (size_t i = first, k = ids->n; i + 1 < k; i++) {
        int32_t swap = ids->data[i];
        ids->data[i] = ids->data[--k];
        ids->data[k] = swap;
    }
}

static int push_trained(const QsfUnigram *u, const QsfBest *best, const char *s, size_t len, QsfIds *out,
                        QsfErr *err) {
    const size_t first = out->n;
    int rc = QSF_OK;
    unsigned steps = 0;
    for (size_t at = len, from; at > 0 && rc == QSF_OK; at = from) {
        if (++steps % 65536 == 0 && qsf_interrupted()) return qsf_interrupt_check(err);
        from = best[at].from;
        while (best[at].id < 0 && from > 0 && best[from].id < 0) from = best[from].from;
        rc = best[at].id >= 0 ? qsf_ids_push(out, best[at].id, err)
                              : push_run(u, s + from, at - from, out, err);
    }
    reverse(out, first);
    return rc;
}

/* Follows the best path back from the end. Runs of unknown characters are one token, also if one ended the
 * previous word (*unknown). */
static int push_path(const QsfUnigram *u, const QsfBest *best, const char *s, size_t len, bool *unknown,
                     QsfIds *out, QsfErr *err) {
    size_t first = out->n;
    bool ends_unknown = best[len].id < 0;
    int rc = QSF_OK;
    unsigned steps = 0;
    for (size_t at = len; at > 0 && rc == QSF_OK; at = best[at].from) {
        if (++steps % CHECK_EVERY == 0 && qsf_interrupted()) return qsf_interrupt_check(err);
        const QsfBest *b = &best[at];
        bool run = b->id < 0 && !u->fallback && (b->from > 0 ? best[b->from].id < 0 : *unknown);
        if (b->id >= 0) {
            rc = qsf_ids_push(out, b->id, err);
        } else if (!run) {
            rc = push_unknown(u, s + b->from, at - b->from, out, err);
        }
    }
    *unknown = ends_unknown;
    reverse(out, first);
    return rc;
}

static int encode_word(const QsfUnigram *u, QsfLattice *l, const char *s, size_t len, bool *unknown,
                       QsfIds *out, QsfErr *err) {
    if (len > MAX_WORD)
        return qsf_err_set(err, QSF_E_RUNTIME, "a word of %zu bytes is too long to tokenize", len);
    int rc = qsf_lattice_reserve(l, len + 1, err);
    if (rc != QSF_OK) return rc;
    for (size_t i = 0; i <= len; i++) {
        l->best[i] = (QsfBest){ .score = -INFINITY, .id = -1 };
        if (i % 65536 == 0 && qsf_interrupted()) return qsf_interrupt_check(err);
    }
    l->best[0].score = 0;
    rc = len > QSF_TOKEN_LONG ? qsf_lattice_find(l, &u->rest, s, len, err) : QSF_OK;
    for (size_t at = 0, n = 1; at < len && rc == QSF_OK; n++) {
        at += offer_tokens(u, l, s, len, at);
        if (n % 4096 == 0) rc = qsf_interrupt_check(err);
    }
    if (rc != QSF_OK) return rc;
    if (u->trained) return push_trained(u, l->best, s, len, out, err);
    return push_path(u, l->best, s, len, unknown, out, err);
}

static bool mark_at(const char *s, size_t len) {
    return len >= QSF_SPM_SPACE_LEN && memcmp(s, QSF_SPM_SPACE, QSF_SPM_SPACE_LEN) == 0;
}

static bool stops_at(size_t i) { return i % CHECK_EVERY == 0 && qsf_interrupted(); }

/* Length of the first word: leading spaces, then everything up to the next one; 0 or a part of
 * it if the thread is to stop. */
static size_t word_length(const char *s, size_t len) {
    size_t i = 0;
    while (mark_at(s + i, len - i) && !stops_at(i)) i += QSF_SPM_SPACE_LEN;
    while (i < len && !mark_at(s + i, len - i) && !stops_at(i)) i++;
    return i;
}

int qsf_unigram_encode(const QsfUnigram *u, QsfLattice *lattice, const char *text, size_t len, QsfIds *out,
                       QsfErr *err) {
    bool unknown = false;
    unsigned words = 0;
    int rc = QSF_OK;
    while (len > 0 && rc == QSF_OK) {
        size_t n = u->by_word ? word_length(text, len) : len;
        if (qsf_interrupted()) return qsf_interrupt_check(err);
        rc = encode_word(u, lattice, text, n, &unknown, out, err);
        if (rc == QSF_OK && ++words % 1024 == 0) rc = qsf_interrupt_check(err);
        text += n;
        len -= n;
    }
    return rc;
}

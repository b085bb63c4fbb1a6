/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Encoding with a SentencePiece vocabulary, word by word. */
#include "src/token/spm.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "src/base/ascii.h"
#include "src/base/interrupt.h"
#include "src/base/utf8.h"

#define CHECK_EVERY 16384u /* bytes or symbols between two looks at the interrupt flag */

bool qsf_spm_spaces_lead(const QsfVocab *v) {
    for (uint32_t i = 0; i < v->n; i++) {
        size_t len, lead = 0;
        const char *s = qsf_vocab_text(v, (int32_t)i, &len);
        if (!qsf_vocab_mergeable(v, (int32_t)i)) continue;
        while (len - lead >= QSF_SPM_SPACE_LEN && memcmp(s + lead, QSF_SPM_SPACE, QSF_SPM_SPACE_LEN) == 0) {
            lead += QSF_SPM_SPACE_LEN;
        }
        if (memmem(s + lead, len - lead, QSF_SPM_SPACE, QSF_SPM_SPACE_LEN) != NULL) return false;
    }
    return true;
}

void qsf_spm_init(QsfSpm *m, const QsfVocab *v, int32_t unknown) {
    *m = (QsfSpm){ .vocab = v, .by_word = qsf_spm_spaces_lead(v) };
    for (unsigned b = 0; b < 256; b++) {
        char text[8];
        int len = snprintf(text, sizeof text, "<0x%02X>", b);
        int32_t id = qsf_vocab_find(v, text, (size_t)len);
        char byte = (char)b;
        if (id < 0) id = qsf_vocab_find(v, &byte, 1);
        m->byte_id[b] = id >= 0 ? id : unknown;
    }
}

int qsf_spm_byte_value(const char *text, size_t len) {
    if (len != 6 || memcmp(text, "<0x", 3) != 0 || text[5] != '>') return -1;
    int hi = qsf_hex_digit(text[3]), lo = qsf_hex_digit(text[4]);
    return hi < 0 || lo < 0 ? -1 : hi * 16 + lo;
}

/* Maps scores to unsigned numbers, the highest score first. NaN is last. */
static uint32_t rank_of_score(float score) {
    if (isnan(score)) return UINT32_MAX;
    float positive_zero = score + 0.0f;
    uint32_t bits;
    memcpy(&bits, &positive_zero, sizeof bits);
    return bits >> 31 ? bits : 0x7FFFFFFFu - bits;
}

typedef struct PairCtx {
    const QsfVocab *vocab;
    const char *text;
} PairCtx;

static bool join(const void *ctx, const QsfSymbol *left, const QsfSymbol *right, uint32_t *rank,
                 int32_t *id) {
    const PairCtx *c = ctx;
    *id = qsf_vocab_find(c->vocab, c->text + left->off, (size_t)left->len + right->len);
    if (!qsf_vocab_mergeable(c->vocab, *id)) return false;
    *rank = c->vocab->score != NULL ? rank_of_score(c->vocab->score[*id]) : 0;
    return true;
}

static int push_bytes(const QsfSpm *m, const char *s, size_t len, QsfIds *out, QsfErr *err) {
    for (size_t i = 0; i < len; i++) {
        int32_t id = m->byte_id[(unsigned char)s[i]];
        int rc = id < 0 ? QSF_OK : qsf_ids_push(out, id, err);
        if (rc != QSF_OK) return rc;
    }
    return QSF_OK;
}

/* Merges one word, its spaces already written as U+2581. */
static int encode_word(const QsfSpm *m, QsfMerger *merger, const char *s, size_t len, QsfIds *out,
                       QsfErr *err) {
    PairCtx ctx = { .vocab = m->vocab, .text = s };
    qsf_merger_clear(merger);
    for (size_t i = 0; i < len;) {
        uint32_t cp;
        size_t n = qsf_utf8_next(s + i, len - i, &cp);
        int32_t id = qsf_vocab_find(m->vocab, s + i, n);
        int rc = qsf_merger_add(merger, n, qsf_vocab_mergeable(m->vocab, id) ? id : -1, err);
        if (rc == QSF_OK && merger->n_syms % CHECK_EVERY == 0) rc = qsf_interrupt_check(err);
        if (rc != QSF_OK) return rc;
        i += n;
    }
    int rc = qsf_merger_run(merger, join, &ctx, err);
    for (int32_t i = merger->n_syms > 0 ? 0 : -1; i >= 0 && rc == QSF_OK; i = merger->syms[i].next) {
        const QsfSymbol *sym = &merger->syms[i];
        rc = sym->id >= 0 ? qsf_ids_push(out, sym->id, err) : push_bytes(m, s + sym->off, sym->len, out, err);
    }
    return rc;
}

/* Length of the space (or U+2581 itself) at s, 0 if there is none. */
static size_t space_at(const char *s, size_t len) {
    if (len > 0 && s[0] == ' ') return 1;
    bool marked = len >= QSF_SPM_SPACE_LEN && memcmp(s, QSF_SPM_SPACE, QSF_SPM_SPACE_LEN) == 0;
    return marked ? QSF_SPM_SPACE_LEN : 0;
}

/* Appends the next word of s to the buffer: its leading spaces, then everything up to the next space (or to
 * the end of the text). Returns the bytes of s used. */
static size_t take_word(const char *s, size_t len, bool whole, QsfStrbuf *word) {
    size_t i = 0;
    bool in_word = false;
    while (i < len && (i % CHECK_EVERY != 0 || !qsf_interrupted())) {
        size_t space = space_at(s + i, len - i);
        if (space > 0 && in_word && !whole) break;
        in_word = in_word || space == 0;
        qsf_strbuf_add(word, space > 0 ? QSF_SPM_SPACE : s + i, space > 0 ? QSF_SPM_SPACE_LEN : 1);
        i += space > 0 ? space : 1;
    }
    return i;
}

size_t qsf_spm_word_bytes(const QsfSpm *m, const char *text, size_t len) {
    size_t longest = 0, begin = 0;
    if (!m->by_word) return QSF_SPM_SPACE_LEN * (len + 1);
    for (size_t i = 1; i <= len; i++) {
        const bool ends = i == len || (space_at(text + i, len - i) > 0 && text[i - 1] != ' ');
        if (!ends) continue;
        if (i - begin > longest) longest = i - begin;
        begin = i;
    }
    return QSF_SPM_SPACE_LEN * (longest + 1);
}

int qsf_spm_encode(const QsfSpm *m, QsfMerger *merger, QsfStrbuf *word, const char *text, size_t len,
                   bool prefix, QsfIds *out, QsfErr *err) {
    for (unsigned words = 1; len > 0; words++) {
        if (words % 256 == 0 && qsf_interrupted()) return qsf_interrupt_check(err);
        qsf_strbuf_clear(word);
        if (prefix) qsf_strbuf_adds(word, QSF_SPM_SPACE);
        prefix = false;
        size_t n = take_word(text, len, !m->by_word, word);
        if (!qsf_strbuf_ok(word)) return qsf_err_memory(err, "tokenizing");
        if (n % CHECK_EVERY == 0 && qsf_interrupted()) return qsf_interrupt_check(err); /* a part of a word */
        int rc = encode_word(m, merger, qsf_strbuf_str(word), word->len, out, err);
        if (rc != QSF_OK) return rc;
        text += n;
        len -= n;
    }
    return QSF_OK;
}

/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Text to ids as huggingface/tokenizers does: added tokens that are not normalized are split off, the rest is
 * normalized, added tokens are split off again, and what is left is cut into pieces for the model. */
#include <stdlib.h>
#include <string.h>

#include "src/base/interrupt.h"
#include "src/base/utf8.h"
#include "src/token/chars.h"
#include "src/token/tokenizer_impl.h"

#define SMALL 16384u /* bytes of a text whose buffers are part of the slack of every plan */

/* One call. */
typedef struct Call {
    const QsfTokenizer *t;
    bool special;        /* control tokens are parsed */
    bool without_prefix; /* QsfWhere */
    QsfMerger merger;
    QsfLattice lattice;
    QsfRegexScratch *scratch;
    QsfMasked normal, other;
    QsfStrbuf mapped;
    QsfIds *out;
} Call;

static int encode_piece(void *ctx, const char *piece, size_t len, QsfErr *err) {
    Call *c = ctx;
    if (c->t->kind->algorithm == QSF_ALG_BPE)
        return qsf_bpe_piece(&c->t->bpe, &c->merger, piece, len, c->out, err);
    return qsf_unigram_encode(&c->t->unigram, &c->lattice, piece, len, c->out, err);
}

/* Bytes that are not UTF-8 are a separate piece. */
static int encode_bytes(Call *c, const char *s, size_t len, QsfErr *err) {
    if (!c->t->steps.mapped) return encode_piece(c, s, len, err);
    qsf_strbuf_clear(&c->mapped);
    for (size_t i = 0; i < len; i++) qsf_strbuf_add_utf8(&c->mapped, qsf_bytemap_cp((unsigned char)s[i]));
    if (!qsf_strbuf_ok(&c->mapped)) return qsf_err_memory(err, "tokenizing");
    return encode_piece(c, qsf_strbuf_str(&c->mapped), c->mapped.len, err);
}

static int split(Call *c, const char *s, size_t len, QsfWhere where, QsfErr *err) {
    return qsf_steps_split(&c->t->steps, c->scratch, s, len, where, encode_piece, c, err);
}

/* Encodes normalized text. */
static int encode_normal(Call *c, QsfWhere where, QsfErr *err) {
    const QsfStrbuf *b = &c->normal.text;
    const char *s = qsf_strbuf_str(b);
    const uint8_t *mask = c->normal.mask.len > 0 ? (const uint8_t *)c->normal.mask.data : NULL;
    QsfFragment *frag;
    size_t n;
    if (c->t->normalized.vocab == NULL) return split(c, s, b->len, where, err);
    int rc = qsf_specials_split(&c->t->normalized, s, b->len, c->special, mask, c->out->ledger, &frag, &n,
                                err);
    for (size_t i = 0; i < n && rc == QSF_OK; i++) {
        const QsfFragment *f = &frag[i];
        QsfWhere at = where;
        at.at_start = where.at_start && f->off <= where.lead;
        at.lead = at.at_start ? where.lead - f->off : 0;
        rc = f->id >= 0 ? qsf_ids_push(c->out, f->id, err) : split(c, s + f->off, f->len, at, err);
    }
    qsf_fragments_free(frag, n, c->out->ledger);
    return rc;
}

/* Encodes text without special tokens. mask: NULL, or (len) bytes. */
static int encode_plain(Call *c, const char *text, size_t len, const uint8_t *mask, QsfWhere where,
                        QsfErr *err) {
    const QsfTextSteps *s = &c->t->steps;
    int rc = QSF_OK;
    for (size_t at = 0, n; at < len && rc == QSF_OK; at += n) {
        bool ok;
        n = qsf_utf8_run(text + at, len - at, &ok);
        QsfWhere here = where;
        here.at_start = where.at_start && at == 0;
        if (qsf_interrupted()) return qsf_interrupt_check(err); /* maybe a part of the run */
        const bool direct = s->n_normal == 0 && c->t->normalized.vocab == NULL;
        if (!ok) {
            rc = encode_bytes(c, text + at, n, err);
        } else if (direct) {
            rc = split(c, text + at, n, here, err);
        } else {
            rc = qsf_steps_normalize(s, c->scratch, text + at, n, mask != NULL ? mask + at : NULL, &here,
                                     &c->normal, &c->other, err);
            if (rc == QSF_OK) rc = encode_normal(c, here, err);
        }
    }
    return rc;
}

static int encode_fragments(Call *c, const char *text, const uint8_t *trusted, const QsfFragment *frag,
                            size_t n, QsfErr *err) {
    int rc = QSF_OK;
    for (size_t i = 0; i < n && rc == QSF_OK; i++) {
        const QsfFragment *f = &frag[i];
        const QsfWhere where = { .at_start = f->off == 0, .without_prefix = c->without_prefix };
        if (i % 256 == 0 && (rc = qsf_interrupt_check(err)) != QSF_OK) break;
        rc = f->id >= 0 ? qsf_ids_push(c->out, f->id, err)
                        : encode_plain(c, text + f->off, f->len, trusted != NULL ? trusted + f->off : NULL,
                                       where, err);
    }
    return rc;
}

/* Bytes that the buffers for a text take: two of what is normalized, each with its mask, and one of pieces
 * that are written in another way. */
static uint64_t buffer_bytes(const QsfTextSteps *s, size_t len, bool masked) {
    const uint64_t normal = s->n_normal > 0 ? (masked ? 8u : 4u) : 0u;
    return (normal + (s->mapped || s->n > s->n_normal + s->bytes ? 3u : 0u)) * len;
}

int qsf_tokenizer_encode_steps(const QsfTokenizer *t, const char *text, size_t len, const uint8_t *trusted,
                               unsigned flags, QsfIds *out, QsfErr *err) {
    Call c = { .t = t,
               .special = flags & QSF_TOK_SPECIAL,
               .without_prefix = flags & QSF_TOK_NO_PREFIX,
               .merger.ledger = out->ledger,
               .lattice.ledger = out->ledger,
               .scratch = qsf_regex_scratch_new(),
               .out = out };
    QsfFragment *frag = NULL;
    size_t n = 0;
    uint64_t buffers = 0;
    int rc = c.scratch != NULL ? QSF_OK : qsf_err_memory(err, "tokenizing");
    if (rc == QSF_OK && out->ledger != NULL && len >= SMALL) {
        const uint64_t want = buffer_bytes(&t->steps, len, trusted != NULL);
        rc = qsf_ledger_reserve(out->ledger, QSF_MEM_TRANSCRIPT, want, "tokenizing the text", err);
        if (rc == QSF_OK) buffers = want;
    }
    if (rc == QSF_OK)
        rc = qsf_specials_split(&t->specials, text, len, c.special, trusted, out->ledger, &frag, &n, err);
    if (rc == QSF_OK) rc = encode_fragments(&c, text, trusted, frag, n, err);
    qsf_fragments_free(frag, n, out->ledger);
    if (buffers > 0) qsf_ledger_release(out->ledger, QSF_MEM_TRANSCRIPT, buffers);
    qsf_merger_free(&c.merger);
    qsf_lattice_free(&c.lattice);
    qsf_regex_scratch_free(c.scratch);
    qsf_strbuf_free(&c.normal.text);
    qsf_strbuf_free(&c.normal.mask);
    qsf_strbuf_free(&c.other.text);
    qsf_strbuf_free(&c.other.mask);
    qsf_strbuf_free(&c.mapped);
    return rc;
}

/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Encoding with a byte-level BPE vocabulary, piece by piece. */
#include "src/text/bpe.h"

#include <stdlib.h>

#include "src/text/bytemap.h"

void qsf_bpe_init_bytes(QsfBpe *b, const QsfVocab *v) {
    b->vocab = v;
    for (unsigned i = 0; i < 256; i++) {
        char byte = (char)i, text[2];
        b->byte_id[i] = qsf_vocab_find(v, text, qsf_bytemap_encode(&byte, 1, text));
    }
}

static bool join(const void *ctx, const QsfSymbol *left, const QsfSymbol *right, uint32_t *rank,
                 int32_t *id) {
    return qsf_ranks_find(ctx, left->id, right->id, rank, id);
}

typedef struct Piece {
    const QsfBpe *b;
    QsfMerger *merger;
    QsfIds *out;
} Piece;

/* The token that is exactly this piece, or -1. */
static int32_t whole_token(const QsfBpe *b, const char *piece, size_t len) {
    char small[256], *text = small;
    if (len > b->vocab->max_len) return -1;
    if (len > sizeof small / 2) text = malloc(2 * len);
    if (text == NULL) return -1; /* merging needs memory too and reports the lack of it */
    int32_t id = qsf_vocab_find(b->vocab, text, qsf_bytemap_encode(piece, len, text));
    if (text != small) free(text);
    return qsf_vocab_mergeable(b->vocab, id) ? id : -1;
}

static int encode_piece(void *ctx, const char *piece, size_t len, QsfErr *err) {
    const Piece *p = ctx;
    const QsfBpe *b = p->b;
    if (b->ignore_merges) {
        int32_t id = whole_token(b, piece, len);
        if (id >= 0) return qsf_ids_push(p->out, id, err);
    }
    qsf_merger_clear(p->merger);
    for (size_t i = 0; i < len; i++) {
        int rc = qsf_merger_add(p->merger, 1, b->byte_id[(unsigned char)piece[i]], err);
        if (rc != QSF_OK) return rc;
    }
    int rc = qsf_merger_run(p->merger, join, &b->ranks, err);
    for (int32_t i = 0; i >= 0 && rc == QSF_OK; i = p->merger->syms[i].next) {
        int32_t id = p->merger->syms[i].id;
        if (id >= 0) rc = qsf_ids_push(p->out, id, err);
    }
    return rc;
}

int qsf_bpe_encode(const QsfBpe *b, QsfMerger *merger, QsfRegexScratch *scratch, const char *text, size_t len,
                   QsfIds *out, QsfErr *err) {
    Piece p = {.b = b, .merger = merger, .out = out};
    return qsf_pretok_split(&b->pretok, scratch, text, len, encode_piece, &p, err);
}

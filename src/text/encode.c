/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Text to ids: special tokens are cut out first, the vocabulary's own algorithm does the rest. */
#include <stdlib.h>

#include "src/text/tokenizer_impl.h"

/* Working memory of one call. */
typedef struct Work {
    QsfMerger merger;
    QsfStrbuf word;            /* SentencePiece */
    QsfRegexScratch *scratch;  /* BPE */
    QsfFragment *frag;         /* (n_frag) */
    size_t n_frag;
} Work;

static void work_free(Work *w) {
    qsf_merger_free(&w->merger);
    qsf_strbuf_free(&w->word);
    qsf_regex_scratch_free(w->scratch);
    free(w->frag);
}

/* SentencePiece puts a space in front of a text and, as ggml-org/llama.cpp does, in front of what follows a
 * special token. */
static int encode_fragments(const QsfTokenizer *t, Work *w, const char *text, bool prefix, QsfIds *out,
                            QsfErr *err) {
    int rc = QSF_OK;
    for (size_t i = 0; i < w->n_frag && rc == QSF_OK; i++) {
        const QsfFragment *f = &w->frag[i];
        if (f->id >= 0) {
            rc = qsf_ids_push(out, f->id, err);
            prefix = t->add_space_prefix;
        } else if (t->is_bpe) {
            rc = qsf_bpe_encode(&t->bpe, &w->merger, w->scratch, text + f->off, f->len, out, err);
        } else {
            rc = qsf_spm_encode(&t->spm, &w->merger, &w->word, text + f->off, f->len, prefix, out, err);
            prefix = false;
        }
    }
    return rc;
}

static int encode_text(const QsfTokenizer *t, const char *text, size_t len, const uint8_t *trusted,
                       unsigned flags, QsfIds *out, QsfErr *err) {
    Work w = {0};
    bool prefix = t->add_space_prefix && !(flags & QSF_TOK_NO_PREFIX);
    int rc = qsf_specials_split_marked(&t->specials, text, len, flags & QSF_TOK_SPECIAL, trusted, &w.frag,
                                       &w.n_frag, err);
    if (rc == QSF_OK && t->is_bpe) {
        w.scratch = qsf_regex_scratch_new();
        if (w.scratch == NULL) rc = qsf_err_set(err, QSF_E_RUNTIME, "out of memory for tokenizing");
    }
    if (rc == QSF_OK) rc = encode_fragments(t, &w, text, prefix, out, err);
    work_free(&w);
    return rc;
}

int qsf_tokenizer_encode_marked(const QsfTokenizer *t, const char *text, size_t len, const uint8_t *trusted,
                                unsigned flags, QsfIds *out, QsfErr *err) {
    size_t before = out->n;
    int rc = QSF_OK;
    if ((flags & QSF_TOK_BOS) && t->add_bos) rc = qsf_ids_push(out, t->roles.id[QSF_ROLE_BOS], err);
    if (rc == QSF_OK && len > 0) rc = encode_text(t, text, len, trusted, flags, out, err);
    bool eos = (flags & QSF_TOK_EOS) && t->add_eos;
    if (rc == QSF_OK && eos) rc = qsf_ids_push(out, t->roles.id[QSF_ROLE_EOS], err);
    if (rc != QSF_OK) out->n = before; /* all or nothing */
    return rc;
}

int qsf_tokenizer_encode(const QsfTokenizer *t, const char *text, size_t len, unsigned flags, QsfIds *out,
                         QsfErr *err) {
    return qsf_tokenizer_encode_marked(t, text, len, NULL, flags, out, err);
}

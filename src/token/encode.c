/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Text to ids: special tokens are split off first, then the vocabulary's own algorithm is applied. */
#include <stdlib.h>
#include <string.h>

#include "src/base/interrupt.h"
#include "src/base/unicode.h"
#include "src/token/tokenizer_impl.h"

#define FORM_SHRINKS 4u     /* a normal form has at least a quarter of the bytes: 4 become 1, or 8 become 3 */
#define FORM_BYTES   4u     /* per byte of a text, for its normal form */
#define SMALL        16384u /* bytes of a text */

/* At most, per byte of a word or of a text. */
#define WORD_BYTES 70u /* symbols and pairs */
#define STEP_BYTES 11u /* copies that the steps make */
#define ID_BYTES \
    10u /* ids, of which every byte may have one, in a list that grows by half; marks of special tokens */

/* Scratch memory of one call. */
typedef struct Work {
    QsfMerger merger;
    QsfStrbuf word;           /* text in the form required by the algorithm */
    QsfRegexScratch *scratch; /* BPE */
    QsfLattice lattice;       /* unigram */
    QsfFragment *frag;        /* (n_frag) */
    unsigned edges;           /* of the fragment being encoded */
    size_t n_frag;
    QsfLedger *ledger; /* NULL, or charged with all of this */
    uint64_t charged;  /* of it, for buffers of text */
} Work;

static void work_free(Work *w) {
    qsf_merger_free(&w->merger);
    qsf_strbuf_free(&w->word);
    qsf_regex_scratch_free(w->scratch);
    qsf_lattice_free(&w->lattice);
    qsf_fragments_free(w->frag, w->n_frag, w->ledger);
    if (w->charged > 0) qsf_ledger_release(w->ledger, QSF_MEM_TRANSCRIPT, w->charged);
}

static int word_ready(const Work *w, QsfErr *err) {
    return qsf_strbuf_ok(&w->word) ? QSF_OK : qsf_err_memory(err, "tokenizing");
}

/* Spaces as U+2581, or unchanged; a part of the text if the thread is to stop. */
static void escape_spaces(const char *text, size_t len, bool escape, bool prefix, QsfStrbuf *out) {
    if (prefix) qsf_strbuf_adds(out, escape ? QSF_SPM_SPACE : " ");
    for (unsigned i = 1; len > 0 && (i % 4096 != 0 || !qsf_interrupted()); i++) {
        const char *space = escape ? memchr(text, ' ', len) : NULL;
        size_t n = space != NULL ? (size_t)(space - text) : len;
        qsf_strbuf_add(out, text, n);
        if (space != NULL) qsf_strbuf_adds(out, QSF_SPM_SPACE);
        text += n + (space != NULL);
        len -= n + (space != NULL);
    }
}

static bool all_have_tokens(const int32_t id[256]) {
    for (unsigned b = 0; b < 256; b++)
        if (id[b] < 0) return false;
    return true;
}

/* --- the algorithms --- */

typedef struct Algorithm {
    /* Encodes plain text; prefix: a space is added before it. */
    int (*encode)(const QsfTokenizer *t, Work *w, const char *text, size_t len, bool prefix, QsfIds *out,
                  QsfErr *err);
    /* Bytes of the buffers that it takes for this text, besides those of a normal form. */
    uint64_t (*buffer_bytes)(const QsfTokenizer *t, const char *text, size_t len);
    /* Whether a whole text is written in another form first, */
    bool (*copies)(const QsfTokenizer *t);
    /* whether it is encoded word by word, */
    bool (*by_word)(const QsfTokenizer *t);
    /* and whether every byte of it becomes a token or a part of one. */
    bool (*keeps_all)(const QsfTokenizer *t);
} Algorithm;

static bool never(const QsfTokenizer *t) {
    (void)t;
    return false;
}

static bool always(const QsfTokenizer *t) {
    (void)t;
    return true;
}

/* SentencePiece */

static int normalize(const QsfTokenizer *t, Work *w, const char *text, size_t len, bool prefix, QsfErr *err) {
    qsf_strbuf_clear(&w->word);
    qsf_charsmap_apply(&t->charsmap, text, len, prefix, w->edges, &w->word);
    if (qsf_interrupted()) return qsf_interrupt_check(err); /* a part of the text */
    return word_ready(w, err);
}

static int encode_spm(const QsfTokenizer *t, Work *w, const char *text, size_t len, bool prefix, QsfIds *out,
                      QsfErr *err) {
    if (!qsf_charsmap_active(&t->charsmap))
        return qsf_spm_encode(&t->spm, &w->merger, &w->word, text, len, prefix, out, err);
    QsfStrbuf word = QSF_STRBUF_INIT;
    int rc = normalize(t, w, text, len, prefix, err);
    if (rc == QSF_OK)
        rc = qsf_spm_encode(&t->spm, &w->merger, &word, qsf_strbuf_str(&w->word), w->word.len, false, out,
                            err);
    qsf_strbuf_free(&word);
    return rc;
}

static uint64_t spm_buffers(const QsfTokenizer *t, const char *text, size_t len) {
    if (qsf_charsmap_active(&t->charsmap)) return 2 * QSF_SPM_SPACE_LEN * (uint64_t)len;
    return qsf_spm_word_bytes(&t->spm, text, len);
}

static bool spm_copies(const QsfTokenizer *t) { return qsf_charsmap_active(&t->charsmap); }

static bool spm_by_word(const QsfTokenizer *t) { return t->spm.by_word; }

static bool spm_keeps_all(const QsfTokenizer *t) {
    return !qsf_charsmap_active(&t->charsmap) && all_have_tokens(t->spm.byte_id);
}

/* byte pair encoding */

static int encode_bpe(const QsfTokenizer *t, Work *w, const char *text, size_t len, bool prefix, QsfIds *out,
                      QsfErr *err) {
    prefix = prefix && t->bpe_prefix;
    if (t->escape || prefix) {
        qsf_strbuf_clear(&w->word);
        escape_spaces(text, len, t->escape, prefix, &w->word);
        int rc = word_ready(w, err);
        if (rc == QSF_OK) rc = qsf_interrupt_check(err);
        if (rc != QSF_OK) return rc;
        text = qsf_strbuf_str(&w->word);
        len = w->word.len;
    }
    return qsf_bpe_encode(&t->bpe, &w->merger, w->scratch, text, len, out, err);
}

static bool bpe_copies(const QsfTokenizer *t) { return t->escape || t->bpe_prefix; }

static uint64_t bpe_buffers(const QsfTokenizer *t, const char *text, size_t len) {
    (void)text;
    return bpe_copies(t) ? QSF_SPM_SPACE_LEN * (uint64_t)len : 0;
}

static bool bpe_by_word(const QsfTokenizer *t) { return !t->escape; }

static bool bpe_keeps_all(const QsfTokenizer *t) {
    if (t->bpe.trained && t->bpe.fallback) return all_have_tokens(t->bpe.fallback_id);
    if (t->bpe.trained && (t->bpe.chars || t->bpe.mapped)) return false;
    return all_have_tokens(t->bpe.byte_id);
}

/* unigram */

static int encode_unigram(const QsfTokenizer *t, Work *w, const char *text, size_t len, bool prefix,
                          QsfIds *out, QsfErr *err) {
    int rc = normalize(t, w, text, len, prefix, err);
    if (rc != QSF_OK) return rc;
    return qsf_unigram_encode(&t->unigram, &w->lattice, qsf_strbuf_str(&w->word), w->word.len, out, err);
}

static uint64_t unigram_buffers(const QsfTokenizer *t, const char *text, size_t len) {
    (void)t;
    (void)text;
    return QSF_SPM_SPACE_LEN * (uint64_t)len;
}

static bool unigram_by_word(const QsfTokenizer *t) { return t->unigram.by_word; }

static bool unigram_keeps_all(const QsfTokenizer *t) {
    return !qsf_charsmap_active(&t->charsmap) && t->unigram.fallback && !t->unigram.trained;
}

/* greedy, and that of PLaMo */

static int encode_greedy(const QsfTokenizer *t, Work *w, const char *text, size_t len, bool prefix,
                         QsfIds *out, QsfErr *err) {
    (void)w;
    (void)prefix;
    return qsf_greedy_encode(&t->greedy, text, len, out, err);
}

static int encode_plamo(const QsfTokenizer *t, Work *w, const char *text, size_t len, bool prefix,
                        QsfIds *out, QsfErr *err) {
    (void)prefix;
    return qsf_plamo_encode(&t->plamo, &w->lattice, text, len, out, err);
}

static uint64_t no_buffers(const QsfTokenizer *t, const char *text, size_t len) {
    (void)t;
    (void)text;
    (void)len;
    return 0;
}

static const Algorithm algorithms[] = {
    [QSF_ALG_SPM] = { encode_spm, spm_buffers, spm_copies, spm_by_word, spm_keeps_all },
    [QSF_ALG_BPE] = { encode_bpe, bpe_buffers, bpe_copies, bpe_by_word, bpe_keeps_all },
    [QSF_ALG_UNIGRAM] = { encode_unigram, unigram_buffers, always, unigram_by_word, unigram_keeps_all },
    [QSF_ALG_GREEDY] = { encode_greedy, no_buffers, never, never, never },
    [QSF_ALG_PLAMO] = { encode_plamo, no_buffers, never, never, never },
};

static const Algorithm *algorithm_of(const QsfTokenizer *t) { return &algorithms[t->kind->algorithm]; }

/* --- memory --- */

void qsf_words_feed(QsfWords *w, const char *text, size_t len) {
    for (size_t i = 0; i < len; i++) {
        const bool blank = (unsigned char)text[i] <= ' ';
        w->run = blank == w->blank ? w->run + 1 : 1;
        w->blank = blank;
        if (w->run > w->longest) w->longest = w->run;
    }
}

uint64_t qsf_tokenizer_need(const QsfTokenizer *t, size_t len, size_t longest_word) {
    const Algorithm *a = algorithm_of(t);
    const uint64_t word = a->by_word(t) ? longest_word : len;
    return FORM_BYTES * (uint64_t)len * (t->normal_form >= 0) +
           2 * QSF_SPM_SPACE_LEN * (uint64_t)len * a->copies(t) + word * WORD_BYTES +
           (uint64_t)len * (STEP_BYTES * t->steps.present + ID_BYTES);
}

/* Buffers are reused, so the largest text counts. Small ones are part of the slack of every plan. */
static int charge_buffers(const QsfTokenizer *t, Work *w, const char *text, size_t len, QsfErr *err) {
    if (w->ledger == NULL || len < SMALL) return QSF_OK;
    const uint64_t form = t->normal_form >= 0 ? (uint64_t)len * FORM_BYTES : 0;
    const uint64_t bytes = form + algorithm_of(t)->buffer_bytes(t, text, len);
    if (bytes <= w->charged) return QSF_OK;
    int rc = qsf_ledger_reserve(w->ledger, QSF_MEM_TRANSCRIPT, bytes - w->charged, "tokenizing the text",
                                err);
    if (rc == QSF_OK) w->charged = bytes;
    return rc;
}

/* --- text with special tokens --- */

/* Converts to the normal form of the vocabulary. Text that is not UTF-8 has none and is not changed. */
static int encode_plain(const QsfTokenizer *t, Work *w, const char *text, size_t len, bool prefix,
                        QsfIds *out, QsfErr *err) {
    size_t n;
    int rc = charge_buffers(t, w, text, len, err);
    if (rc != QSF_OK) return rc;
    if (prefix && t->prefix_missing && (*text == ' ' || memcmp(text, QSF_SPM_SPACE, len < 3 ? len : 3) == 0))
        prefix = false;
    char *form = t->normal_form >= 0 ? qsf_normal_form(text, len, (QsfNormalForm)t->normal_form, &n) : NULL;
    if (t->normal_form >= 0 && qsf_interrupted()) {
        free(form);
        return qsf_interrupt_check(err);
    }
    const Algorithm *a = algorithm_of(t);
    if (form == NULL) return a->encode(t, w, text, len, prefix, out, err);
    rc = a->encode(t, w, form, n, prefix, out, err);
    free(form);
    return rc;
}

/* Whether fragment i is a user-defined token, which is text to SentencePiece itself. */
static bool is_user(const QsfTokenizer *t, const Work *w, size_t i) {
    return t->prefix_user && i < w->n_frag && qsf_vocab_type(&t->vocab, w->frag[i].id) == QSF_TOKEN_USER;
}

/* SentencePiece adds a space before a text and, as in ggml-org/llama.cpp, before the text after a special
 * token. */
static int encode_fragments(const QsfTokenizer *t, Work *w, const char *text, bool prefix, QsfIds *out,
                            QsfErr *err) {
    int rc = QSF_OK;
    for (size_t i = 0; i < w->n_frag && rc == QSF_OK; i++) {
        const QsfFragment *f = &w->frag[i];
        if (i % 256 == 0 && (rc = qsf_interrupt_check(err)) != QSF_OK) break;
        if (f->id >= 0) {
            const bool user = is_user(t, w, i);
            if (user && prefix) rc = encode_plain(t, w, QSF_SPM_SPACE, QSF_SPM_SPACE_LEN, false, out, err);
            if (rc == QSF_OK) rc = qsf_ids_push(out, f->id, err);
            prefix = t->add_space_prefix && !t->prefix_first && !user;
        } else {
            const size_t before = out->n;
            w->edges = (is_user(t, w, i - 1) ? 0u : QSF_EDGE_LEFT) |
                       (is_user(t, w, i + 1) ? 0u : QSF_EDGE_RIGHT);
            rc = encode_plain(t, w, text + f->off, f->len, prefix, out, err);
            prefix = prefix && t->prefix_user && out->n == before; /* white space that was removed */
        }
    }
    return rc;
}

static int encode_text(const QsfTokenizer *t, const char *text, size_t len, const uint8_t *trusted,
                       unsigned flags, QsfIds *out, QsfErr *err) {
    Work w = { .merger.ledger = out->ledger, .lattice.ledger = out->ledger, .ledger = out->ledger };
    bool prefix = t->add_space_prefix && !(flags & QSF_TOK_NO_PREFIX);
    int rc = qsf_specials_split(&t->specials, text, len, flags & QSF_TOK_SPECIAL, trusted, w.ledger, &w.frag,
                                &w.n_frag, err);
    if (rc == QSF_OK && t->kind->algorithm == QSF_ALG_BPE) {
        w.scratch = qsf_regex_scratch_new();
        if (w.scratch == NULL) rc = qsf_err_memory(err, "tokenizing");
    }
    if (rc == QSF_OK) rc = encode_fragments(t, &w, text, prefix, out, err);
    work_free(&w);
    return rc;
}

int qsf_tokenizer_encode_marked(const QsfTokenizer *t, const char *text, size_t len, const uint8_t *trusted,
                                unsigned flags, QsfIds *out, QsfErr *err) {
    size_t before = out->n;
    int rc = QSF_OK;
    if ((flags & QSF_TOK_BOS) && t->add_bos) rc = qsf_ids_push(out, t->roles.id[QSF_TOKEN_ROLE_BOS], err);
    if (rc == QSF_OK && len > 0)
        rc = (t->steps.present ? qsf_tokenizer_encode_steps : encode_text)(t, text, len, trusted, flags, out,
                                                                           err);
    bool eos = (flags & QSF_TOK_EOS) && t->add_eos;
    if (rc == QSF_OK && eos) rc = qsf_ids_push(out, t->roles.id[QSF_TOKEN_ROLE_EOS], err);
    if (rc != QSF_OK) out->n = before; /* all or nothing */
    return rc;
}

int qsf_tokenizer_encode(const QsfTokenizer *t, const char *text, size_t len, unsigned flags, QsfIds *out,
                         QsfErr *err) {
    return qsf_tokenizer_encode_marked(t, text, len, NULL, flags, out, err);
}

/* --- how many tokens a text has at least: a token stands for no more bytes than its stored text has,
 * unless the vocabulary drops or shortens text first --- */

/* By how much the steps may shorten a text; 0 = to nothing. */
static unsigned steps_shrink(const QsfTextSteps *s) {
    unsigned shrink = 1;
    for (unsigned i = 0; i < s->n; i++) {
        const QsfTextStep *step = &s->step[i];
        switch (step->kind) {
        case QSF_TEXT_STEP_FORM: shrink *= FORM_SHRINKS; break;
        case QSF_TEXT_STEP_SPLIT:
            if (step->cut == QSF_CUT_REMOVED) return 0;
            break;
        case QSF_TEXT_STEP_REPLACE_TEXT:
            if (step->by_len < step->len) return 0;
            break;
        case QSF_TEXT_STEP_SPACES:
            if (step->len == 0) return 0;
            break;
        case QSF_TEXT_STEP_PREPEND:
        case QSF_TEXT_STEP_PREFIX:
        case QSF_TEXT_STEP_BYTES: break;
        default: return 0;
        }
        if (shrink > FORM_SHRINKS) return 0;
    }
    return shrink;
}

static bool strips(const QsfVocab *v) {
    for (uint32_t i = 0; i < v->n; i++)
        if (v->attr[i] & (QSF_ATTR_LSTRIP | QSF_ATTR_RSTRIP)) return true;
    return false;
}

/* Counts bytes that are not in any white space. */
static size_t count_graphic(const char *text, size_t len) {
    size_t n = 0;
    for (size_t i = 0; i < len; i++) n += text[i] > ' ' && text[i] < 0x7F;
    return n;
}

size_t qsf_tokenizer_least(const QsfTokenizer *t, const char *text, size_t len) {
    unsigned shrink = t->steps.present ? steps_shrink(&t->steps) : t->normal_form >= 0 ? FORM_SHRINKS : 1;
    if (shrink == 0 || t->vocab.max_len == 0 || !algorithm_of(t)->keeps_all(t)) return 0;
    if (len / t->vocab.max_len / shrink == 0) return 0;
    if (strips(&t->vocab)) len = text != NULL ? count_graphic(text, len) : 0;
    return len / t->vocab.max_len / shrink;
}

/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Collects a vocabulary and writes it as metadata. */
#include "src/file/vocab/draft.h"

#include <stdlib.h>
#include <string.h>

#include "src/base/interrupt.h"
#include "src/file/vocab/keys.h"

void qsf_draft_init(QsfVocabDraft *d, QsfSource *s) {
    *d = (QsfVocabDraft){
        .s = s,
        .bos = -1,
        .eos = -1,
        .unk = -1,
        .pad = -1,
        .model_unk = -1,
        .add_bos = -1,
        .add_eos = -1,
        .clean_spaces = -1,
    };
}

void qsf_draft_free(QsfVocabDraft *d) {
    qsf_ledger_release(d->s->ledger, QSF_MEM_META, d->charged);
    free(d->tok);
    qsf_strbuf_free(&d->text);
    qsf_strbuf_free(&d->merges);
    qsf_strbuf_free(&d->steps);
    qsf_strbuf_free(&d->charsmap);
}

static int out_of_memory(const QsfVocabDraft *d, QsfErr *err) {
    return qsf_err_memory(err, "%s: its vocabulary", d->s->files[0].path);
}

static int charge(QsfVocabDraft *d, uint64_t bytes, QsfErr *err) {
    if (bytes <= d->charged) return QSF_OK;
    const int rc = qsf_ledger_reserve(d->s->ledger, QSF_MEM_META, bytes - d->charged, "a vocabulary", err);
    if (rc == QSF_OK) d->charged = bytes;
    return rc;
}

/* With a list of `cap` tokens. */
static uint64_t bytes_with(const QsfVocabDraft *d, uint32_t cap) {
    return cap * sizeof *d->tok + d->text.cap + d->merges.cap + d->steps.cap + d->charsmap.cap;
}

int qsf_draft_charge(QsfVocabDraft *d, QsfErr *err) { return charge(d, bytes_with(d, d->cap), err); }

/* Extends the list up to token id. */
static int reach(QsfVocabDraft *d, uint32_t id, QsfErr *err) {
    if (id >= d->cap) {
        uint32_t cap = d->cap < 1024 ? 1024 : d->cap + d->cap / 2;
        if (cap <= id) cap = id + 1;
        const int rc = charge(d, bytes_with(d, cap), err);
        if (rc != QSF_OK) return rc;
        QsfDraftToken *tok = realloc(d->tok, cap * sizeof *tok);
        if (tok == NULL) return out_of_memory(d, err);
        memset(tok + d->cap, 0, (cap - d->cap) * sizeof *tok);
        d->tok = tok;
        d->cap = cap;
    }
    if (id >= d->n) d->n = id + 1;
    return QSF_OK;
}

int qsf_draft_set(QsfVocabDraft *d, uint64_t id, const char *text, size_t len, float score, int type,
                  QsfErr *err) {
    const char *path = d->s->files[0].path;
    if (id >= QSF_DRAFT_MAX)
        return qsf_err_set(err, QSF_E_MODEL, "%s: token id %llu, the limit is %u", path,
                           (unsigned long long)id, QSF_DRAFT_MAX - 1);
    int rc = reach(d, (uint32_t)id, err);
    if (rc != QSF_OK) return rc;
    QsfDraftToken *t = &d->tok[id];
    if (t->type != 0 && (t->len != len || memcmp(qsf_strbuf_str(&d->text) + t->off, text, len) != 0))
        return qsf_err_set(err, QSF_E_MODEL, "%s: two tokens have the id %llu: \"%.*s\" and \"%.*s\"", path,
                           (unsigned long long)id, (int)(t->len < 60 ? t->len : 60),
                           qsf_strbuf_str(&d->text) + t->off, (int)(len < 60 ? len : 60), text);
    if (t->type == 0) {
        if (len > UINT32_MAX - d->text.len)
            return qsf_err_set(err, QSF_E_MODEL, "%s: the token texts need more than 4 GiB", path);
        t->off = (uint32_t)d->text.len;
        t->len = (uint32_t)len;
        t->score = score;
        qsf_strbuf_add(&d->text, text, len);
    }
    t->type = (uint8_t)type;
    return qsf_strbuf_ok(&d->text) ? qsf_draft_charge(d, err) : out_of_memory(d, err);
}

int32_t qsf_draft_find(const QsfVocabDraft *d, const char *text, size_t len) {
    const char *all = qsf_strbuf_str(&d->text);
    for (uint32_t i = 0; i < d->n; i++) {
        const QsfDraftToken *t = &d->tok[i];
        if (t->type != 0 && t->len == len && memcmp(all + t->off, text, len) == 0) return (int32_t)i;
    }
    return -1;
}

/* Drops added tokens for which the model has no rows (such as the image token of a Gemma 3 without vision):
 * no text can contain them. */
static void drop_added(QsfVocabDraft *d, uint32_t n) {
    int32_t *const special[] = { &d->bos, &d->eos, &d->unk, &d->pad };
    while (d->n > n) {
        const uint8_t type = d->tok[d->n - 1].type;
        if (type != 0 && type != QSF_DRAFT_CONTROL && type != QSF_DRAFT_USER) return;
        d->n--;
    }
    for (size_t i = 0; i < sizeof special / sizeof *special; i++)
        if (*special[i] >= (int64_t)d->n) *special[i] = -1;
}

int qsf_draft_extend(QsfVocabDraft *d, uint32_t n, QsfErr *err) {
    drop_added(d, n);
    if (d->n > n)
        return qsf_err_set(err, QSF_E_MODEL, "%s: has %u tokens, but the model's vocab_size is %u",
                           d->s->files[0].path, d->n, n);
    if (n > QSF_DRAFT_MAX)
        return qsf_err_set(err, QSF_E_MODEL, "%s: the model's vocab_size is %u, the limit is %u",
                           d->s->files[0].path, n, QSF_DRAFT_MAX);
    return n > d->n ? reach(d, n - 1, err) : QSF_OK;
}

/* --- writing --- */

static int put_tokens(QsfVocabDraft *d, QsfErr *err) {
    QsfStrbuf b = QSF_STRBUF_INIT, scores = QSF_STRBUF_INIT, types = QSF_STRBUF_INIT;
    int rc = QSF_OK;
    for (uint32_t i = 0; i < d->n && rc == QSF_OK; i++) {
        const QsfDraftToken *t = &d->tok[i];
        uint32_t bits;
        memcpy(&bits, &t->score, sizeof bits);
        qsf_meta_put_str(&b, qsf_strbuf_str(&d->text) + t->off, t->len);
        if (d->scores) qsf_meta_put_le(&scores, bits, 4);
        qsf_meta_put_le(&types, t->type == 0 ? QSF_DRAFT_UNUSED : t->type, 4); /* an unused id */
        if (i % 4096 == 0 || t->len > 4096) rc = qsf_interrupt_check(err);
    }
    if (rc == QSF_OK) rc = qsf_meta_make_array(d->s, "tokenizer.ggml.tokens", QSF_META_STRING, d->n, &b, err);
    if (rc == QSF_OK && d->scores)
        rc = qsf_meta_make_array(d->s, "tokenizer.ggml.scores", QSF_META_F32, d->n, &scores, err);
    if (rc == QSF_OK)
        rc = qsf_meta_make_array(d->s, "tokenizer.ggml.token_type", QSF_META_I32, d->n, &types, err);
    qsf_strbuf_free(&b);
    qsf_strbuf_free(&scores);
    qsf_strbuf_free(&types);
    return rc;
}

static bool is_added(const QsfDraftToken *t) { return t->added; }
static bool is_added_only(const QsfDraftToken *t) { return t->added_only; }
static bool is_lstrip(const QsfDraftToken *t) { return t->lstrip; }
static bool is_rstrip(const QsfDraftToken *t) { return t->rstrip; }
static bool is_single(const QsfDraftToken *t) { return t->single_word; }
static bool is_normalized(const QsfDraftToken *t) { return t->normalized; }

/* Writes the ids of the tokens with a property, if there are any. */
static int put_list(QsfVocabDraft *d, const char *key, bool (*has)(const QsfDraftToken *), QsfErr *err) {
    QsfStrbuf b = QSF_STRBUF_INIT;
    uint64_t n = 0;
    for (uint32_t i = 0; i < d->n; i++) {
        if (!has(&d->tok[i])) continue;
        qsf_meta_put_le(&b, i, 4);
        n++;
    }
    int rc = n == 0 ? QSF_OK : qsf_meta_make_array(d->s, key, QSF_META_I32, n, &b, err);
    qsf_strbuf_free(&b);
    return rc;
}

static int put_lists(QsfVocabDraft *d, QsfErr *err) {
    static const struct {
        const char *key;
        bool (*has)(const QsfDraftToken *);
        bool steps; /* only for a vocabulary with steps */
    } lists[] = {
        { QSF_KEY_LSTRIP, is_lstrip, false },        { QSF_KEY_RSTRIP, is_rstrip, false },
        { QSF_KEY_ADDED, is_added, true },           { QSF_KEY_SINGLE_WORD, is_single, true },
        { QSF_KEY_NORMALIZED, is_normalized, true }, { QSF_KEY_ADDED_ONLY, is_added_only, true },
    };
    int rc = QSF_OK;
    for (size_t i = 0; i < sizeof lists / sizeof *lists && rc == QSF_OK; i++)
        if (d->has_steps || !lists[i].steps) rc = put_list(d, lists[i].key, lists[i].has, err);
    return rc;
}

static int put_ids(QsfVocabDraft *d, QsfErr *err) {
    const struct {
        const char *key;
        int32_t id;
    } ids[] = {
        { "tokenizer.ggml.bos_token_id", d->bos },
        { "tokenizer.ggml.eos_token_id", d->eos },
        { "tokenizer.ggml.unknown_token_id", d->unk },
        { "tokenizer.ggml.padding_token_id", d->pad },
    };
    int rc = QSF_OK;
    for (size_t i = 0; i < sizeof ids / sizeof *ids && rc == QSF_OK; i++)
        if (ids[i].id >= 0) rc = qsf_meta_make_u32(d->s, ids[i].key, (uint32_t)ids[i].id, err);
    return rc;
}

static int put_flags(QsfVocabDraft *d, QsfErr *err) {
    const struct {
        const char *key;
        bool said, value;
    } flags[] = {
        /* clang-format off */
        { "tokenizer.ggml.add_bos_token", d->add_bos >= 0, d->add_bos > 0 },
        { "tokenizer.ggml.add_eos_token", d->add_eos >= 0, d->add_eos > 0 },
        { "tokenizer.ggml.add_space_prefix", true, d->space_prefix },
        { "tokenizer.ggml.remove_extra_whitespaces", !d->bpe, d->remove_extra },
        { QSF_KEY_PRE_CHARACTERS, d->bpe, !d->bytes },
        { QSF_KEY_PRE_ESCAPE, d->bpe, d->escape },
        { QSF_KEY_IGNORE_MERGES, d->bpe, d->ignore_merges },
        { QSF_KEY_CLEAN_SPACES, d->clean_spaces >= 0, d->clean_spaces > 0 },
        { QSF_KEY_BYTE_FALLBACK, d->has_steps, d->byte_fallback },
        { QSF_KEY_FUSE_UNKNOWN, d->has_steps, d->fuse_unk },
        { QSF_KEY_PREFIX_USER, d->prefix_user, true },
        /* clang-format on */
    };
    int rc = QSF_OK;
    for (size_t i = 0; i < sizeof flags / sizeof *flags && rc == QSF_OK; i++)
        if (flags[i].said) rc = qsf_meta_make_bool(d->s, flags[i].key, flags[i].value, err);
    return rc;
}

int qsf_draft_finish(QsfVocabDraft *d, QsfErr *err) {
    QsfSource *s = d->s;
    if (d->n == 0) return qsf_err_set(err, QSF_E_MODEL, "%s: its vocabulary is empty", s->files[0].path);
    int rc = qsf_meta_make_str(s, "tokenizer.ggml.model", d->model, strlen(d->model), err);
    if (rc == QSF_OK) rc = put_tokens(d, err);
    if (rc == QSF_OK && d->bpe)
        rc = qsf_meta_make_array(s, "tokenizer.ggml.merges", QSF_META_STRING, d->n_merges, &d->merges, err);
    if (rc == QSF_OK && d->has_steps)
        rc = qsf_meta_make_array(s, QSF_KEY_STEPS, QSF_META_STRING, d->n_steps, &d->steps, err);
    if (rc == QSF_OK && d->has_steps && d->model_unk >= 0)
        rc = qsf_meta_make_u32(s, QSF_KEY_UNKNOWN, (uint32_t)d->model_unk, err);
    if (rc == QSF_OK && (d->charsmap.len > 0 || !qsf_strbuf_ok(&d->charsmap)))
        rc = qsf_meta_make_array(s, "tokenizer.ggml.precompiled_charsmap", QSF_META_U8, d->charsmap.len,
                                 &d->charsmap, err);
    if (rc == QSF_OK) rc = put_lists(d, err);
    if (rc == QSF_OK) rc = put_ids(d, err);
    return rc == QSF_OK ? put_flags(d, err) : rc;
}

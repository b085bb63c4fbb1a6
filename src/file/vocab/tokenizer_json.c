/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Reads a Hugging Face tokenizer.json (huggingface/tokenizers): BPE and Unigram. The two big lists,
 * vocabulary and merges, are scanned without a tree; everything else is small and parsed into a tree. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "src/base/interrupt.h"
#include "src/base/jsonscan.h"
#include "src/base/utf8.h"
#include "src/file/vocab/draft.h"

/* The position of a member of an object in the text. */
typedef struct Member {
    const char *key;
    size_t begin, end; /* equal: absent */
} Member;

typedef struct Reader {
    QsfVocabDraft *d;
    const char *text;
    size_t len;
    QsfStrbuf a, b; /* scratch strings */
    struct {
        char key[80];
        size_t at;
    } unknown; /* the first member that this program does not know, which may change what the others mean */
} Reader;

/* Prepends the file name; any error except out of memory means a bad file. */
static int fail(const Reader *r, int rc, QsfErr *err) {
    if (rc != QSF_OK && err != NULL && strncmp(err->msg, "JSON", 4) == 0)
        qsf_err_prefix(err, "%s", r->d->s->files[0].path);
    return rc;
}

/* Finds the members in the object text[begin..end). */
static int find_members(Reader *r, size_t begin, size_t end, Member *m, size_t n, QsfErr *err) {
    QsfJsonScan s;
    bool first = true, more = true;
    qsf_jscan_init(&s, r->text, end);
    s.at = begin;
    int rc = qsf_jscan_enter(&s, '{', err);
    while (rc == QSF_OK) {
        size_t from = 0, to = 0;
        rc = qsf_jscan_next(&s, '}', &first, &more, err);
        if (rc != QSF_OK || !more) break;
        rc = qsf_jscan_key(&s, &r->a, err);
        if (rc == QSF_OK) rc = qsf_jscan_skip(&s, &from, &to, err);
        bool known = false;
        for (size_t i = 0; rc == QSF_OK && i < n; i++) {
            if (!qsf_strbuf_is(&r->a, m[i].key)) continue;
            known = true;
            if (m[i].end > 0)
                rc = qsf_err_set(err, QSF_E_MODEL, "JSON: byte %zu: \"%s\" occurs twice", from, m[i].key);
            m[i].begin = from;
            m[i].end = to;
        }
        if (rc == QSF_OK && !known && r->unknown.key[0] == '\0') {
            snprintf(r->unknown.key, sizeof r->unknown.key, "%s", qsf_strbuf_str(&r->a));
            r->unknown.at = from;
        }
    }
    return rc == QSF_OK ? qsf_jscan_end(&s, err) : rc;
}

/* Parses a small member as a tree; succeeds with NULL if it is absent. */
static int tree(const Reader *r, const Member *m, QsfJson **out, QsfErr *err) {
    QsfErr e = { 0 };
    *out = NULL;
    if (m->end == 0) return QSF_OK;
    *out = qsf_json_parse(r->text + m->begin, m->end - m->begin, &e);
    if (e.memory) return qsf_err_pass(err, &e);
    return *out != NULL
               ? QSF_OK
               : qsf_err_set(err, QSF_E_MODEL, "JSON: \"%s\" at byte %zu: %s", m->key, m->begin, e.msg);
}

/* Reads a flag or string of the model object. */
static bool flag(const Reader *r, const Member *m) {
    return m->end - m->begin == 4 && memcmp(r->text + m->begin, "true", 4) == 0;
}

static int string(Reader *r, const Member *m, QsfStrbuf *out, QsfErr *err) {
    QsfJsonScan s;
    qsf_strbuf_clear(out);
    if (m->end == 0 || r->text[m->begin] != '"') return QSF_OK;
    qsf_jscan_init(&s, r->text, m->end);
    s.at = m->begin;
    return qsf_jscan_string(&s, out, err);
}

/* --- vocabulary --- */

static bool is_byte_token(const QsfStrbuf *b) {
    unsigned v;
    int end = 0;
    return b->len == 6 && sscanf(qsf_strbuf_str(b), "<0x%2x>%n", &v, &end) == 1 && end == 6;
}

static int type_of(const Reader *r, const QsfStrbuf *text) {
    return r->d->byte_fallback && is_byte_token(text) ? QSF_DRAFT_BYTE : QSF_DRAFT_NORMAL;
}

/* "text": id */
static int vocab_member(Reader *r, QsfJsonScan *s, uint64_t i, QsfErr *err) {
    double id;
    (void)i;
    int rc = qsf_jscan_key(s, &r->a, err);
    if (rc == QSF_OK) rc = qsf_jscan_number(s, &id, err);
    if (rc != QSF_OK) return rc;
    if (!(id >= 0 && id <= QSF_DRAFT_MAX && floor(id) == id))
        return qsf_err_set(err, QSF_E_MODEL, "JSON: byte %zu: %g is not a token id (0 to %u)", s->at, id,
                           QSF_DRAFT_MAX - 1);
    return qsf_draft_set(r->d, (uint64_t)id, qsf_strbuf_str(&r->a), r->a.len, 0, type_of(r, &r->a), err);
}

/* ["text", score] */
static int scored_piece(Reader *r, QsfJsonScan *s, uint64_t i, QsfErr *err) {
    double score = 0;
    bool first = true, more;
    int rc = qsf_jscan_enter(s, '[', err);
    if (rc == QSF_OK) rc = qsf_jscan_next(s, ']', &first, &more, err);
    if (rc == QSF_OK) rc = qsf_jscan_string(s, &r->a, err);
    if (rc == QSF_OK) rc = qsf_jscan_next(s, ']', &first, &more, err);
    if (rc == QSF_OK) rc = qsf_jscan_number(s, &score, err);
    if (rc == QSF_OK) rc = qsf_jscan_next(s, ']', &first, &more, err);
    if (rc == QSF_OK && more) return qsf_err_set(err, QSF_E_MODEL, "JSON: byte %zu: expected ']'", s->at);
    if (rc != QSF_OK) return rc;
    return qsf_draft_set(r->d, i, qsf_strbuf_str(&r->a), r->a.len, (float)score, type_of(r, &r->a), err);
}

static int merge(Reader *r, QsfErr *err, const QsfStrbuf *left, const QsfStrbuf *right) {
    QsfVocabDraft *d = r->d;
    if (!qsf_strbuf_ok(left) || !qsf_strbuf_ok(right)) return qsf_err_memory(err, "JSON: a merge");
    if (left->len == 0 || right->len == 0 || memchr(left->data, ' ', left->len) != NULL ||
        memchr(right->data, ' ', right->len) != NULL)
        return qsf_err_set(err, QSF_E_MODEL, "JSON: merge %llu is not two tokens without spaces",
                           (unsigned long long)d->n_merges);
    qsf_meta_put_le(&d->merges, left->len + 1 + right->len, 8);
    qsf_strbuf_add(&d->merges, left->data, left->len);
    qsf_strbuf_addc(&d->merges, ' ');
    qsf_strbuf_add(&d->merges, right->data, right->len);
    d->n_merges++;
    return QSF_OK;
}

/* "left right" or ["left", "right"] */
static int merge_element(Reader *r, QsfJsonScan *s, uint64_t i, QsfErr *err) {
    bool first = true, more;
    int rc;
    (void)i;
    if (qsf_jscan_peek(s) == '"') {
        rc = qsf_jscan_string(s, &r->a, err);
        const char *space = rc == QSF_OK && r->a.len > 2 ? memchr(r->a.data + 1, ' ', r->a.len - 1) : NULL;
        qsf_strbuf_clear(&r->b);
        if (space != NULL) {
            qsf_strbuf_adds(&r->b, space + 1);
            r->a.len = (size_t)(space - r->a.data);
        }
        return rc == QSF_OK ? merge(r, err, &r->a, &r->b) : rc;
    }
    rc = qsf_jscan_enter(s, '[', err);
    if (rc == QSF_OK) rc = qsf_jscan_next(s, ']', &first, &more, err);
    if (rc == QSF_OK) rc = qsf_jscan_string(s, &r->a, err);
    if (rc == QSF_OK) rc = qsf_jscan_next(s, ']', &first, &more, err);
    if (rc == QSF_OK) rc = qsf_jscan_string(s, &r->b, err);
    if (rc == QSF_OK) rc = qsf_jscan_next(s, ']', &first, &more, err);
    if (rc == QSF_OK && more) return qsf_err_set(err, QSF_E_MODEL, "JSON: byte %zu: expected ']'", s->at);
    return rc == QSF_OK ? merge(r, err, &r->a, &r->b) : rc;
}

typedef int (*ElementFn)(Reader *r, QsfJsonScan *s, uint64_t i, QsfErr *err);

/* Calls a function for every element of the array or member of the object m. */
static int each(Reader *r, const Member *m, char open, ElementFn fn, QsfErr *err) {
    QsfJsonScan s;
    bool first = true, more = true;
    if (m->end == 0) return qsf_err_set(err, QSF_E_MODEL, "JSON: the model has no \"%s\"", m->key);
    qsf_jscan_init(&s, r->text, m->end);
    s.at = m->begin;
    int rc = qsf_jscan_enter(&s, open, err);
    for (uint64_t i = 0; rc == QSF_OK; i++) {
        rc = qsf_jscan_next(&s, open == '[' ? ']' : '}', &first, &more, err);
        if (rc != QSF_OK || !more) break;
        rc = fn(r, &s, i, err);
        if (rc == QSF_OK && (i % 1024 == 0 || r->a.len > 4096)) rc = qsf_interrupt_check(err);
        if (rc == QSF_OK && !(qsf_strbuf_ok(&r->d->merges))) rc = qsf_err_memory(err, "merges");
        if (rc == QSF_OK) rc = qsf_draft_charge(r->d, err);
    }
    return rc;
}

/* --- the model object --- */

enum {
    M_TYPE,
    M_VOCAB,
    M_MERGES,
    M_UNK,
    M_UNK_ID,
    M_BYTES,
    M_FUSE,
    M_IGNORE,
    M_DROPOUT,
    M_PREFIX,
    M_SUFFIX,
    M_N
};

/* Marks the unknown token. */
static int set_unknown(Reader *r, const Member *m, QsfErr *err) {
    QsfVocabDraft *d = r->d;
    int rc = string(r, &m[M_UNK], &r->a, err);
    if (rc != QSF_OK) return rc;
    if (r->a.len > 0) d->unk = qsf_draft_find(d, r->a.data, r->a.len);
    if (m[M_UNK_ID].end > 0 && r->text[m[M_UNK_ID].begin] != 'n') {
        QsfJsonScan s;
        double id;
        qsf_jscan_init(&s, r->text, m[M_UNK_ID].end);
        s.at = m[M_UNK_ID].begin;
        rc = qsf_jscan_number(&s, &id, err);
        if (rc != QSF_OK) return rc;
        if (!(id >= 0 && id < d->n))
            return qsf_err_set(err, QSF_E_MODEL, "JSON: \"unk_id\" %g is not a token id", id);
        d->unk = (int32_t)id;
    }
    d->model_unk = d->unk;
    if (d->unk >= 0 && d->tok[d->unk].type == QSF_DRAFT_NORMAL) d->tok[d->unk].type = QSF_DRAFT_UNKNOWN;
    return QSF_OK;
}

/* Determines the model type; old files without one are recognized by their members. */
static int read_type(Reader *r, const Member *m, QsfErr *err) {
    int rc = string(r, &m[M_TYPE], &r->a, err);
    if (rc != QSF_OK) return rc;
    if (r->a.len == 0 && m[M_MERGES].end > 0) qsf_strbuf_adds(&r->a, "BPE");
    r->d->bpe = qsf_strbuf_is(&r->a, "BPE");
    r->d->scores = !r->d->bpe;
    if (r->d->bpe || qsf_strbuf_is(&r->a, "Unigram")) return QSF_OK;
    return qsf_err_set(err, QSF_E_MODEL,
                       "%s: tokenizers of type \"%.40s\" are not supported, only BPE and Unigram",
                       r->d->s->files[0].path, qsf_strbuf_str(&r->a));
}

static int read_affixes(Reader *r, const Member *m, QsfErr *err) {
    int rc = string(r, &m[M_PREFIX], &r->a, err);
    if (rc == QSF_OK) rc = string(r, &m[M_SUFFIX], &r->b, err);
    if (rc != QSF_OK || (r->a.len == 0 && r->b.len == 0)) return rc;
    return qsf_err_set(err, QSF_E_MODEL, "%s: BPE with \"%s\" is not supported", r->d->s->files[0].path,
                       r->a.len > 0 ? m[M_PREFIX].key : m[M_SUFFIX].key);
}

/* Random merges make no sense outside training. */
static int read_dropout(Reader *r, const Member *m, QsfErr *err) {
    QsfJsonScan s;
    double v = 0;
    if (m->end == 0 || r->text[m->begin] == 'n') return QSF_OK;
    qsf_jscan_init(&s, r->text, m->end);
    s.at = m->begin;
    int rc = qsf_jscan_number(&s, &v, err);
    return rc != QSF_OK || v == 0
               ? rc
               : qsf_err_set(err, QSF_E_MODEL, "%s: BPE with \"dropout\" %g is not supported",
                             r->d->s->files[0].path, v);
}

static int read_model(Reader *r, const Member *model, QsfErr *err) {
    Member m[M_N] = {
        [M_TYPE] = { .key = "type" },
        [M_VOCAB] = { .key = "vocab" },
        [M_MERGES] = { .key = "merges" },
        [M_UNK] = { .key = "unk_token" },
        [M_UNK_ID] = { .key = "unk_id" },
        [M_BYTES] = { .key = "byte_fallback" },
        [M_FUSE] = { .key = "fuse_unk" },
        [M_IGNORE] = { .key = "ignore_merges" },
        [M_DROPOUT] = { .key = "dropout" },
        [M_PREFIX] = { .key = "continuing_subword_prefix" },
        [M_SUFFIX] = { .key = "end_of_word_suffix" },
    };
    QsfVocabDraft *d = r->d;
    int rc = find_members(r, model->begin, model->end, m, M_N, err);
    if (rc == QSF_OK) rc = read_type(r, m, err);
    if (rc == QSF_OK) rc = read_affixes(r, m, err);
    if (rc == QSF_OK) rc = read_dropout(r, &m[M_DROPOUT], err);
    d->byte_fallback = flag(r, &m[M_BYTES]);
    d->ignore_merges = flag(r, &m[M_IGNORE]);
    d->fuse_unk = !d->bpe || flag(r, &m[M_FUSE]); /* a Unigram model always does */
    if (rc == QSF_OK)
        rc = each(r, &m[M_VOCAB], d->bpe ? '{' : '[', d->bpe ? vocab_member : scored_piece, err);
    if (rc == QSF_OK && d->bpe) rc = each(r, &m[M_MERGES], '[', merge_element, err);
    return rc == QSF_OK ? set_unknown(r, m, err) : rc;
}

/* --- the file --- */

static int read_added(QsfVocabDraft *d, const QsfJson *list, QsfErr *err) {
    int rc = QSF_OK;
    for (size_t i = 0; i < qsf_json_size(list) && rc == QSF_OK; i++) {
        const QsfJson *v = qsf_json_at(list, i);
        int64_t id = qsf_json_int(qsf_json_get(v, "id"), -1);
        rc = id < 0 ? qsf_err_set(err, QSF_E_MODEL, "JSON: added token %zu has no id", i)
                    : qsf_hf_added_token(d, (uint64_t)id, v, err);
    }
    return rc;
}

/* Files of a model or adapter directory without "model", by a member that they have. */
static const struct {
    const char *key, *is;
} other_kinds[] = {
    { "weight_map",
      "the index of the weights of a model directory, without the weights: open the directory that contains "
      "it, config.json and the files that it lists" },
    { "peft_type", "the configuration of an adapter, not a model: use its directory with --lora, beside a "
                   "model" },
    { "architectures", "the configuration of a model directory, without weights and vocabulary: open the "
                       "directory that contains it" },
    { "model_type", "the configuration of a model directory, without weights and vocabulary: open the "
                    "directory that contains it" },
};
#define OTHER_KINDS (sizeof other_kinds / sizeof *other_kinds)

static int refuse_kind(Reader *r, size_t begin, QsfErr *err) {
    Member m[OTHER_KINDS] = { 0 };
    for (size_t i = 0; i < OTHER_KINDS; i++) m[i].key = other_kinds[i].key;
    int rc = find_members(r, begin, r->len, m, OTHER_KINDS, err);
    for (size_t i = 0; rc == QSF_OK && i < OTHER_KINDS; i++)
        if (m[i].end > 0)
            return qsf_err_set(err, QSF_E_MODEL, "%s: is %s", r->d->s->files[0].path, other_kinds[i].is);
    if (rc != QSF_OK) return rc;
    return qsf_err_set(err, QSF_E_MODEL,
                       "%s: is JSON, but neither a model nor a tokenizer.json (no \"model\")",
                       r->d->s->files[0].path);
}

enum {
    T_MODEL,
    T_ADDED,
    T_NORM,
    T_PRE,
    T_POST,
    T_DECODER,
    T_TREES,
    T_VERSION = T_TREES,
    T_TRUNCATION,
    T_PADDING,
    T_N
};

static int read_steps(Reader *r, const Member *m, QsfErr *err) {
    QsfJson *v[T_TREES] = { NULL };
    int rc = QSF_OK;
    for (size_t i = T_ADDED; i < T_TREES && rc == QSF_OK; i++) rc = tree(r, &m[i], &v[i], err);
    if (rc == QSF_OK) rc = read_added(r->d, v[T_ADDED], err);
    if (rc == QSF_OK) rc = qsf_hf_normalizer(r->d, v[T_NORM], err);
    if (rc == QSF_OK) rc = qsf_hf_pre_tokenizer(r->d, v[T_PRE], err);
    if (rc == QSF_OK) rc = qsf_hf_decoder(r->d, v[T_DECODER], err);
    if (rc == QSF_OK) qsf_hf_post_processor(r->d, v[T_POST]);
    for (size_t i = 0; i < T_TREES; i++) qsf_json_free(v[i]);
    return rc;
}

int qsf_hf_tokenizer_read(QsfVocabDraft *d, const char *text, size_t len, QsfErr *err) {
    Member m[T_N] = {
        [T_MODEL] = { .key = "model" },
        [T_ADDED] = { .key = "added_tokens" },
        [T_NORM] = { .key = "normalizer" },
        [T_PRE] = { .key = "pre_tokenizer" },
        [T_POST] = { .key = "post_processor" },
        [T_DECODER] = { .key = "decoder" },
        /* huggingface/transformers sets truncation and padding in each call; the version says nothing */
        [T_VERSION] = { .key = "version" },
        [T_TRUNCATION] = { .key = "truncation" },
        [T_PADDING] = { .key = "padding" },
    };
    d->has_steps = true;
    Reader r = { .d = d, .text = text, .len = len };
    const size_t begin = qsf_utf8_bom(text, len);
    int rc = find_members(&r, begin, len, m, T_N, err);
    if (rc == QSF_OK && m[T_MODEL].end == 0) rc = refuse_kind(&r, begin, err);
    if (rc == QSF_OK) rc = read_model(&r, &m[T_MODEL], err);
    if (rc == QSF_OK && d->n == 0) /* before special tokens and the rows of the model are added */
        rc = qsf_err_set(err, QSF_E_MODEL,
                         "JSON: no usable vocabulary: \"vocab\" of \"model\" is missing or empty");
    if (rc == QSF_OK) rc = read_steps(&r, m, err);
    if (rc == QSF_OK) d->model = d->bpe ? (d->bytes ? "gpt2" : "gemma4") : "t5";
    if (rc == QSF_OK && r.unknown.key[0] != '\0')
        rc = qsf_err_set(err, QSF_E_MODEL, "JSON: byte %zu: \"%s\" is not supported", r.unknown.at,
                         r.unknown.key);
    rc = fail(&r, rc, err);
    qsf_strbuf_free(&r.a);
    qsf_strbuf_free(&r.b);
    return rc;
}

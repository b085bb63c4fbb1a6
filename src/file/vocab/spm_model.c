/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Reads tokenizer.model, a protobuf message written by SentencePiece. Field numbers: google/sentencepiece
 * src/sentencepiece_model.proto, the encoding from protobuf.dev/programming-guides/encoding. */
#include <string.h>

#include "src/base/utf8.h"
#include "src/file/vocab/draft.h"

/* A message or nested message. */
typedef struct Wire {
    const unsigned char *p;
    size_t at, end;
    const char *path;
} Wire;

/* One field: its value is v, or the bytes [at, at + v) of a length-delimited one. */
typedef struct Field {
    uint64_t number, v;
    unsigned type; /* 0 varint, 1 64 bits, 2 bytes, 5 32 bits */
    size_t at;
} Field;

static int varint(Wire *w, uint64_t *out, QsfErr *err) {
    size_t begin = w->at;
    *out = 0;
    for (unsigned shift = 0; shift < 70; shift += 7) {
        if (w->at == w->end)
            return qsf_err_set(err, QSF_E_MODEL, "%s: truncated: the number at byte %zu is incomplete",
                               w->path, begin);
        unsigned char b = w->p[w->at++];
        if (shift < 64) *out |= (uint64_t)(b & 0x7F) << shift;
        if (b < 0x80) return QSF_OK;
    }
    return qsf_err_set(err, QSF_E_MODEL, "%s: byte %zu: a number is longer than 10 bytes", w->path, begin);
}

static int fixed(Wire *w, unsigned bytes, uint64_t *out, QsfErr *err) {
    if (w->end - w->at < bytes)
        return qsf_err_set(err, QSF_E_MODEL, "%s: truncated: needs %u bytes at offset %zu", w->path, bytes,
                           w->at);
    *out = 0;
    for (unsigned i = 0; i < bytes; i++) *out |= (uint64_t)w->p[w->at + i] << (8 * i);
    w->at += bytes;
    return QSF_OK;
}

static int next_field(Wire *w, Field *f, QsfErr *err) {
    uint64_t tag;
    size_t begin = w->at;
    int rc = varint(w, &tag, err);
    if (rc != QSF_OK) return rc;
    f->number = tag >> 3;
    f->type = (unsigned)(tag & 7);
    if (f->number > 0 && f->type == 0) return varint(w, &f->v, err);
    if (f->number > 0 && (f->type == 1 || f->type == 5)) return fixed(w, f->type == 1 ? 8 : 4, &f->v, err);
    if (f->number == 0 || f->type != 2)
        return qsf_err_set(err, QSF_E_MODEL, "%s: byte %zu: not a SentencePiece model (not a protobuf field)",
                           w->path, begin);
    rc = varint(w, &f->v, err);
    if (rc != QSF_OK) return rc;
    f->at = w->at;
    if (f->v > w->end - w->at)
        return qsf_err_set(err, QSF_E_MODEL, "%s: truncated: needs %llu bytes at offset %zu, %zu are left",
                           w->path, (unsigned long long)f->v, w->at, w->end - w->at);
    w->at += (size_t)f->v;
    return QSF_OK;
}

static Wire inside(const Wire *w, const Field *f) {
    return (Wire){ .p = w->p, .at = f->at, .end = f->at + (size_t)f->v, .path = w->path };
}

/* Properties of the model other than its pieces. */
typedef struct Spec {
    uint64_t model_type;
    bool dummy_prefix, remove_extra, escape, suffix;
    bool whole;      /* trainer_spec, which follows the pieces, was present */
    uint64_t ids[4]; /* unk, bos, eos, pad: int32, so -1 is 2^64 - 1 */
} Spec;

/* --- pieces --- */

static int read_piece(QsfVocabDraft *d, Wire w, QsfErr *err) {
    const char *text = "";
    size_t len = 0;
    uint64_t type = QSF_DRAFT_NORMAL;
    uint32_t bits = 0;
    float score;
    while (w.at < w.end) {
        Field f = { 0 };
        int rc = next_field(&w, &f, err);
        if (rc != QSF_OK) return rc;
        if (f.number == 1 && f.type == 2) {
            text = (const char *)w.p + f.at;
            len = (size_t)f.v;
        }
        if (f.number == 2 && f.type == 5) bits = (uint32_t)f.v;
        if (f.number == 3 && f.type == 0) type = f.v;
    }
    memcpy(&score, &bits, sizeof score);
    if (!qsf_utf8_valid(text, len))
        return qsf_err_set(err, QSF_E_MODEL, "%s: piece %u is not valid UTF-8", w.path, d->n);
    if (len == 0 || type < QSF_DRAFT_NORMAL || type > QSF_DRAFT_BYTE)
        return qsf_err_set(err, QSF_E_MODEL, "%s: piece %u has %s", w.path, d->n,
                           len == 0 ? "no text" : "no known type");
    return qsf_draft_set(d, d->n, text, len, score, (int)type, err);
}

/* --- specs --- */

static int read_trainer(Spec *s, Wire w, QsfErr *err) {
    while (w.at < w.end) {
        Field f = { 0 };
        int rc = next_field(&w, &f, err);
        if (rc != QSF_OK) return rc;
        if (f.type != 0) continue;
        if (f.number == 3) s->model_type = f.v;
        if (f.number == 24) s->suffix = f.v != 0;
        if (f.number >= 40 && f.number <= 43) s->ids[f.number - 40] = f.v;
    }
    return QSF_OK;
}

static int read_normalizer(QsfVocabDraft *d, Spec *s, Wire w, QsfErr *err) {
    while (w.at < w.end) {
        Field f = { 0 };
        int rc = next_field(&w, &f, err);
        if (rc != QSF_OK) return rc;
        if (f.number == 2 && f.type == 2) {
            qsf_strbuf_clear(&d->charsmap);
            qsf_strbuf_add(&d->charsmap, w.p + f.at, (size_t)f.v);
        }
        if (f.type != 0) continue;
        if (f.number == 3) s->dummy_prefix = f.v != 0;
        if (f.number == 4) s->remove_extra = f.v != 0;
        if (f.number == 5) s->escape = f.v != 0;
    }
    return QSF_OK;
}

static int apply(QsfVocabDraft *d, const Spec *s, const char *path, QsfErr *err) {
    static const char *const kinds[] = { "", "UNIGRAM", "BPE", "WORD", "CHAR" };
    int32_t *const to[] = { &d->unk, &d->bos, &d->eos, &d->pad };
    if (!s->whole) /* every model has it; otherwise a file truncated after a piece would look complete */
        return qsf_err_set(err, QSF_E_MODEL, "%s: truncated: no trainer_spec after its %u pieces", path,
                           d->n);
    if (s->model_type != 1 && s->model_type != 2)
        return qsf_err_set(err, QSF_E_MODEL, "%s: SentencePiece models of type %s are not supported", path,
                           s->model_type < 5 ? kinds[s->model_type] : "?");
    if (s->suffix || !s->escape)
        return qsf_err_set(err, QSF_E_MODEL, "%s: SentencePiece with %s is not supported", path,
                           s->suffix ? "treat_whitespace_as_suffix" : "escape_whitespaces = false");
    d->model = s->model_type == 2 ? "llama" : "t5";
    d->scores = true;
    d->space_prefix = s->dummy_prefix;
    d->prefix_user = true;
    d->remove_extra = s->remove_extra;
    for (size_t i = 0; i < sizeof to / sizeof *to; i++)
        if (s->ids[i] < d->n) *to[i] = (int32_t)s->ids[i];
    return QSF_OK;
}

int qsf_spm_model_read(QsfVocabDraft *d, const char *bytes, size_t len, QsfErr *err) {
    Wire w = { .p = (const unsigned char *)bytes, .end = len, .path = d->s->files[0].path };
    /* the defaults of the message */
    Spec s = { .model_type = 1,
               .dummy_prefix = true,
               .remove_extra = true,
               .escape = true,
               .ids = { 0, 1, 2, UINT64_MAX } };
    int rc = QSF_OK;
    while (w.at < w.end && rc == QSF_OK) {
        Field f = { 0 };
        rc = next_field(&w, &f, err);
        if (rc != QSF_OK || f.type != 2) continue;
        if (f.number == 1) rc = read_piece(d, inside(&w, &f), err);
        if (f.number == 2) rc = read_trainer(&s, inside(&w, &f), err);
        s.whole = s.whole || f.number == 2;
        if (f.number == 3) rc = read_normalizer(d, &s, inside(&w, &f), err);
    }
    return rc == QSF_OK ? apply(d, &s, w.path, err) : rc;
}

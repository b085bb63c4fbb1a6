/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Makes the tensors of a GGUF file from those of a Hugging Face directory. Each tensor of the directory is a
 * piece of one or more GGUF tensors; pieces of the same tensor are joined. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/blocks.h"
#include "src/file/hf/pieces.h"
#include "src/file/rows.h"

/* --- which pieces --- */

#define QSF_HF_NAME 512 /* bytes of a name that is changed; longer ones are unknown */

const char *qsf_hf_bare_name(const QsfHfModel *m, const char *name) {
    static const char *const usual[] = { "model.", NULL };
    const char *const *p = m->arch->prefixes != NULL ? m->arch->prefixes : usual;
    for (; *p != NULL; p++)
        if (strncmp(name, *p, strlen(*p)) == 0) return name + strlen(*p);
    return name;
}

/* Is it of a block for predicting several tokens, which follow the others? */
static bool is_nextn(const QsfHfModel *m, const char *name) {
    static const char prefix[] = "layers.";
    name = qsf_hf_bare_name(m, name);
    if (m->n_nextn == 0 || strncmp(name, prefix, sizeof prefix - 1) != 0) return false;
    char *end;
    const unsigned long n = strtoul(name + sizeof prefix - 1, &end, 10);
    return *end == '.' && n >= m->n_layers && n < (unsigned long)m->n_layers + m->n_nextn;
}

static bool is_left_out(const QsfHfModel *m, const char *name) {
    char buf[QSF_HF_NAME];
    if (m->arch->nextn == QSF_HF_NEXTN_NONE && is_nextn(m, name)) return true;
    if (qsf_hf_nextn_name(m, name, buf, sizeof buf) != name) return false;
    for (const char *const *p = m->arch->left_out; p != NULL && *p != NULL; p++)
        if (strncmp(name, *p, strlen(*p)) == 0) return true;
    return false;
}

static bool is_head(const QsfHfName *row) {
    return row->gguf != NULL && strcmp(row->gguf, "output.weight") == 0;
}

/* Is it read together with another tensor, whose scales it holds? */
static bool is_scale(const QsfHfModel *m, const char *name) {
    static const char *const suffixes[] = { "_scale_inv", "_scale", "_scales" };
    const size_t n = strlen(name);
    for (size_t i = 0; m->quantized != NULL && i < sizeof suffixes / sizeof *suffixes; i++) {
        const size_t k = strlen(suffixes[i]);
        if (n > k && strcmp(name + n - k, suffixes[i]) == 0) return true;
    }
    return false;
}

static int unknown(const QsfHfModel *m, uint32_t file, const QsfStTensor *t) {
    return qsf_err_set(
        m->err, QSF_E_MODEL,
        "%s: tensor '%.*s' is not supported in a model of architecture %s; ignoring it would give "
        "wrong answers",
        m->s->files[file].path, QSF_HF_SHOWN, t->name, m->arch->name);
}

/* Adds the pieces that tensor t is to the list. */
static int add_pieces(QsfHfPieces *l, uint32_t file, const QsfStTensor *t) {
    const QsfHfModel *m = l->m;
    char buf[QSF_HF_NAME];
    const char *name = qsf_hf_nextn_name(m, qsf_hf_bare_name(m, t->name), buf, sizeof buf);
    const uint32_t n_layers = m->n_layers + (m->arch->nextn != QSF_HF_NEXTN_NONE ? m->n_nextn : 0);
    bool known = false;
    for (const QsfHfName *const *table = m->arch->tensors; *table != NULL; table++) {
        for (const QsfHfName *row = *table; row->hf != NULL; row++) {
            int32_t layer, expert;
            if (!qsf_hf_name_fits(row->hf, name, &layer, &expert)) continue;
            known = true;
            if (layer >= 0 && (uint32_t)layer >= n_layers)
                return qsf_err_set(m->err, QSF_E_MODEL,
                                   "%s: tensor '%.*s' belongs to layer %d, but num_hidden_layers is %u",
                                   m->s->files[file].path, QSF_HF_SHOWN, t->name, layer, m->n_layers);
            /* Some files contain a copy of the embedding as the head although the two are tied. */
            if (row->gguf == NULL || (m->tied && is_head(row))) continue;
            if (l->piece != NULL) l->piece[l->n] = (QsfHfPiece){ row, t, file, layer, expert, l->n };
            l->n++;
        }
    }
    return known || is_scale(m, t->name) ? QSF_OK : unknown(m, file, t);
}

/* Lists all pieces; only counts them while the list has no memory. */
static int walk(QsfHfPieces *l, uint64_t *n_left_out) {
    const QsfHfModel *m = l->m;
    int rc = QSF_OK;
    l->n = 0;
    *n_left_out = 0;
    for (uint32_t f = 0; f < m->s->n_files; f++) {
        for (uint64_t i = 0; rc == QSF_OK && i < m->h[f].n; i++) {
            const QsfStTensor *t = &m->h[f].t[i];
            if (is_left_out(m, t->name))
                ++*n_left_out;
            else
                rc = add_pieces(l, f, t);
        }
    }
    return rc;
}

/* --- grouping --- */

static int by_target(const void *a, const void *b) {
    const QsfHfPiece *x = a, *y = b;
    if (x->layer != y->layer) return x->layer < y->layer ? -1 : 1;
    int c = strcmp(x->row->gguf, y->row->gguf);
    if (c != 0) return c;
    if (x->row->part != y->row->part) return x->row->part < y->row->part ? -1 : 1;
    if (x->expert != y->expert) return x->expert < y->expert ? -1 : 1;
    return (x->order > y->order) - (x->order < y->order);
}

static bool same_target(const QsfHfPiece *x, const QsfHfPiece *y) {
    return x->layer == y->layer && strcmp(x->row->gguf, y->row->gguf) == 0;
}

/* A tensor to be made: the first of its pieces, and their number. */
typedef struct Group {
    QsfHfPiece *first;
    uint32_t n;
    uint64_t order; /* of the first piece in the files */
} Group;

static int by_order(const void *a, const void *b) {
    const Group *x = a, *y = b;
    return (x->order > y->order) - (x->order < y->order);
}

static uint64_t make_groups(QsfHfPieces *l, Group *g) {
    uint64_t n = 0;
    qsort(l->piece, (size_t)l->n, sizeof *l->piece, by_target);
    for (uint64_t i = 0; i < l->n; i++) {
        QsfHfPiece *p = &l->piece[i];
        if (n == 0 || !same_target(g[n - 1].first, p)) g[n++] = (Group){ p, 0, p->order };
        g[n - 1].n++;
        if (p->order < g[n - 1].order) g[n - 1].order = p->order;
    }
    qsort(g, (size_t)n, sizeof *g, by_order);
    return n;
}

/* --- */

static void add_made(QsfHfModel *m) {
    QsfSource *s = m->s;
    for (uint32_t i = 0; i < m->n_made; i++) {
        s->notes[s->n_tensors].made = m->made[i].v;
        s->tensors[s->n_tensors++] = (QsfTensor){
            .name = m->made[i].name,
            .dtype = QK_GGML_F32,
            .n_dims = 1,
            .ne = { m->made[i].n, 1, 1, 1 },
            .file = QSF_FILE_NONE,
            .bytes = m->made[i].n * sizeof *m->made[i].v,
        };
    }
}

static int make_all(QsfHfPieces *l, Group *g) {
    QsfHfModel *m = l->m;
    QsfSource *s = m->s;
    const uint64_t n = make_groups(l, g);
    m->n_targets = n;
    s->tensors = qsf_source_alloc(s, n + m->n_made, sizeof *s->tensors, m->err);
    s->notes = s->tensors != NULL ? qsf_source_alloc(s, n + m->n_made, sizeof *s->notes, m->err) : NULL;
    if (s->notes == NULL) return m->err->code;
    int rc = QSF_OK;
    for (uint64_t i = 0; rc == QSF_OK && i < n; i++) {
        rc = qsf_hf_tensor_make(m, g[i].first, g[i].n, &s->tensors[s->n_tensors]);
        if (rc == QSF_OK) s->n_tensors++;
    }
    if (rc == QSF_OK) add_made(m);
    return rc == QSF_OK ? qsf_source_index_tensors(s, m->err) : rc;
}

int qsf_hf_tensors_add(QsfHfModel *m) {
    QsfHfPieces l = { .m = m };
    int rc = walk(&l, &m->s->n_left_out);
    if (rc != QSF_OK) return rc;
    Group *g = malloc((size_t)(l.n + 1) * sizeof *g);
    l.piece = malloc((size_t)(l.n + 1) * sizeof *l.piece);
    rc = g == NULL || l.piece == NULL ? qsf_err_memory(m->err, "%s", m->s->dir) : walk(&l, &m->s->n_left_out);
    if (rc == QSF_OK) rc = make_all(&l, g);
    free(l.piece);
    free(g);
    return rc;
}

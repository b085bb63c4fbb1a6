/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Reads what gguf_build.c writes and trusts it; it is independent of the reader on purpose. */
#include "tests/harness/gguf_edit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/harness/gguf_build.h"
#include "tests/harness/qsf_image.h"

enum { NAME_MAX_LEN = 128, EDITS_MAX = 32, TENSORS_MAX = 512, ALIGN = 32 };

/* WHAT=NAME[=VALUE] */
typedef struct Edit {
    char what[16], name[NAME_MAX_LEN];
    const char *value; /* "" without one */
    bool used;
} Edit;

typedef struct Tensor {
    char name[NAME_MAX_LEN];
    uint32_t n_dims, dtype;
    uint64_t ne[4], offset;
} Tensor;

typedef struct Editor {
    const unsigned char *p, *end;
    Edit edit[EDITS_MAX];
    size_t n_edits;
    QsfGgufBuild b;
} Editor;

static bool parse(Edit *e, const char *text) {
    const char *eq = strchr(text, '='), *second = eq != NULL ? strchr(eq + 1, '=') : NULL;
    if (eq == NULL || (size_t)(eq - text) >= sizeof e->what) return false;
    size_t n = second != NULL ? (size_t)(second - eq - 1) : strlen(eq + 1);
    if (n == 0 || n >= sizeof e->name) return false;
    *e = (Edit){ .value = second != NULL ? second + 1 : "" };
    memcpy(e->what, text, (size_t)(eq - text));
    memcpy(e->name, eq + 1, n);
    return true;
}

/* The edit of that name, for tensors (of_tensor) or metadata; NULL: none. */
static Edit *find(Editor *d, const char *name, bool of_tensor) {
    for (size_t i = 0; i < d->n_edits; i++) {
        Edit *e = &d->edit[i];
        bool tensor = strstr("drop-tensor rename shape type nan", e->what) != NULL &&
                      strcmp(e->what, "drop") != 0;
        if (tensor == of_tensor && strcmp(e->name, name) == 0) return e;
    }
    return NULL;
}

static uint64_t take(Editor *d, unsigned bytes) {
    uint64_t v = 0;
    for (unsigned i = bytes; i > 0; i--) v = v << 8 | d->p[i - 1];
    d->p += bytes;
    return v;
}

static void take_name(Editor *d, char out[NAME_MAX_LEN]) {
    uint64_t n = take(d, 8);
    snprintf(out, NAME_MAX_LEN, "%.*s", (int)n, (const char *)d->p);
    d->p += n;
}

static unsigned size_of(uint32_t type) {
    static const unsigned bytes[] = { 1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8 };
    return bytes[type];
}

static void skip_value(Editor *d, uint32_t type) {
    if (type == QSF_META_STRING) {
        uint64_t n = take(d, 8);
        d->p += n;
    } else if (type == QSF_META_ARRAY) {
        uint32_t elem = (uint32_t)take(d, 4);
        for (uint64_t n = take(d, 8); n > 0; n--) skip_value(d, elem);
    } else {
        d->p += size_of(type);
    }
}

/* --- metadata --- */

static void put_str(QsfGgufBuild *b, const Edit *e) {
    QsfStrbuf s = QSF_STRBUF_INIT;
    qsf_strbuf_add(&s, "\0\0\0\0\0\0\0", 8);
    for (const char *p = e->value; *p != '\0'; p++) {
        bool nul = p[0] == '\\' && p[1] == '0';
        qsf_strbuf_addc(&s, nul ? '\0' : *p);
        p += nul;
    }
    s.data[0] = (char)(s.len - 8); /* short */
    qsf_gb_raw(b, e->name, QSF_META_STRING, s.data, s.len);
    qsf_strbuf_free(&s);
}

/* At the type of the array's elements. */
static void put_count(Editor *d, const Edit *e) {
    const uint32_t elem = (uint32_t)take(d, 4);
    const uint64_t have = take(d, 8), want = strtoull(e->value, NULL, 10);
    const unsigned size = elem == QSF_META_STRING ? 8 : size_of(elem);
    const unsigned char *begin = d->p;
    QsfStrbuf s = QSF_STRBUF_INIT;
    for (uint64_t i = 0; i < have; i++) {
        skip_value(d, elem);
        if (i < want) qsf_strbuf_add(&s, begin, (size_t)(d->p - begin));
        begin = d->p;
    }
    for (uint64_t i = have; i < want; i++) qsf_strbuf_add(&s, "\0\0\0\0\0\0\0", size);
    qsf_gb_array(&d->b, e->name, (QsfMetaType)elem, want, s.len > 0 ? s.data : "", s.len);
    qsf_strbuf_free(&s);
}

static bool put_value(Editor *d, Edit *e) {
    e->used = true;
    if (strcmp(e->what, "u32") == 0)
        qsf_gb_u32(&d->b, e->name, (uint32_t)strtoul(e->value, NULL, 10));
    else if (strcmp(e->what, "f32") == 0)
        qsf_gb_f32(&d->b, e->name, strtof(e->value, NULL));
    else if (strcmp(e->what, "bool") == 0)
        qsf_gb_bool(&d->b, e->name, *e->value == '1');
    else if (strcmp(e->what, "str") == 0)
        put_str(&d->b, e);
    else
        return strcmp(e->what, "drop") == 0;
    return true;
}

static bool copy_pair(Editor *d) {
    char key[NAME_MAX_LEN];
    take_name(d, key);
    uint32_t type = (uint32_t)take(d, 4);
    const unsigned char *begin = d->p;
    Edit *e = find(d, key, false);
    if (e != NULL && strcmp(e->what, "count") == 0) {
        e->used = true;
        put_count(d, e);
        return type == QSF_META_ARRAY;
    }
    skip_value(d, type);
    if (e != NULL) return put_value(d, e);
    qsf_gb_raw(&d->b, key, (QsfMetaType)type, begin, (size_t)(d->p - begin));
    return true;
}

/* --- tensors --- */

static bool put_shape(Editor *d, const Edit *e, Tensor *t, const unsigned char *data, size_t len) {
    const unsigned size = t->dtype == 0 ? 4 : 2;
    char *end;
    t->ne[0] = strtoull(e->value, &end, 10);
    t->ne[1] = *end == ',' ? strtoull(end + 1, NULL, 10) : 1;
    t->n_dims = *end == ',' ? 2 : 1;
    size_t want = (size_t)(t->ne[0] * t->ne[1] * size);
    unsigned char *bytes = calloc(want + 1, 1);
    if (bytes == NULL || t->dtype > 1) return free(bytes), false;
    for (size_t i = 0; i < want; i++) bytes[i] = data[i % (len - len % size)];
    qsf_gb_tensor(&d->b, t->name, t->dtype, t->n_dims, t->ne, bytes, want);
    free(bytes);
    return true;
}

static bool copy_tensor(Editor *d, Tensor *t, unsigned char *data, size_t len) {
    Edit *e = find(d, t->name, true);
    const char *what = e != NULL ? e->what : "";
    if (e != NULL) e->used = true;
    if (strcmp(what, "drop-tensor") == 0) return true;
    if (strcmp(what, "shape") == 0) return put_shape(d, e, t, data, len);
    if (strcmp(what, "rename") == 0) snprintf(t->name, sizeof t->name, "%s", e->value);
    if (strcmp(what, "type") == 0) t->dtype = (uint32_t)strtoul(e->value, NULL, 10);
    if (strcmp(what, "nan") == 0) memcpy(data, "\0\0\300\177", 4);
    qsf_gb_tensor(&d->b, t->name, t->dtype, t->n_dims, t->ne, data, len);
    return true;
}

static bool copy_tensors(Editor *d, const unsigned char *file, uint64_t n) {
    static Tensor t[TENSORS_MAX];
    bool ok = n <= TENSORS_MAX;
    for (uint64_t i = 0; ok && i < n; i++) {
        take_name(d, t[i].name);
        t[i].n_dims = (uint32_t)take(d, 4);
        for (uint32_t k = 0; k < t[i].n_dims; k++) t[i].ne[k] = take(d, 8);
        t[i].dtype = (uint32_t)take(d, 4);
        t[i].offset = take(d, 8);
    }
    size_t data = ((size_t)(d->p - file) + ALIGN - 1) / ALIGN * ALIGN, all = (size_t)(d->end - file) - data;
    for (uint64_t i = 0; ok && i < n; i++) {
        size_t end = i + 1 < n ? (size_t)t[i + 1].offset : all, len = end - (size_t)t[i].offset;
        unsigned char *copy = malloc(len + 1);
        if (copy != NULL) memcpy(copy, file + data + t[i].offset, len);
        ok = copy != NULL && copy_tensor(d, &t[i], copy, len);
        free(copy);
    }
    return ok;
}

static bool copy_all(Editor *d, const unsigned char *file) {
    d->p += 8; /* magic, version */
    uint64_t n_tensors = take(d, 8), n_pairs = take(d, 8);
    bool ok = true;
    while (ok && n_pairs-- > 0) ok = copy_pair(d);
    for (size_t i = 0; ok && i < d->n_edits; i++) {
        Edit *e = &d->edit[i];
        if (!e->used && find(d, e->name, false) == e) ok = strcmp(e->what, "drop") != 0 && put_value(d, e);
    }
    ok = ok && copy_tensors(d, file, n_tensors);
    for (size_t i = 0; ok && i < d->n_edits; i++) ok = d->edit[i].used;
    return ok;
}

int qsf_test_edit_gguf(const char *in, const char *out, const char *const *edits) {
    QsfImage m = qsf_image_load(in);
    Editor d = { .p = m.b, .end = m.b != NULL ? m.b + m.len : NULL };
    bool ok = m.b != NULL;
    for (; ok && *edits != NULL; edits++) ok = d.n_edits < EDITS_MAX && parse(&d.edit[d.n_edits++], *edits);
    ok = ok && copy_all(&d, m.b) && qsf_gb_write(&d.b, out) == 0;
    qsf_gb_free(&d.b);
    free(m.b);
    return ok ? 0 : -1;
}

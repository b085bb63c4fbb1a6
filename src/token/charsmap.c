/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The table's layout: u32 bytes of the double array, the array, the replacements. A unit of the array packs a
 * base (bits 10-31, shifted by 8 where bit 9 is set), a leaf flag (bit 8) and the byte that leads to it; the
 * unit that a leaf flag announces holds the value. Every index comes from a file: each step is checked. */
#include "src/token/charsmap.h"

#include <string.h>

#include "src/base/bytes.h"
#include "src/base/interrupt.h"
#include "src/base/utf8.h"
#include "src/token/spm.h"

#define KEY_MAP   "tokenizer.ggml.precompiled_charsmap"
#define KEY_EXTRA "tokenizer.ggml.remove_extra_whitespaces"
#define MAX_BYTES (16u << 20)

int qsf_charsmap_bytes(const QsfSource *src, uint64_t *bytes, QsfErr *err) {
    QsfMetaArray a;
    bool present;
    *bytes = 0;
    int rc = qsf_meta_array_open(src, KEY_MAP, QSF_META_I64, &a, &present, err);
    if (rc != QSF_OK || !present) return rc;
    if (a.count > MAX_BYTES)
        rc = qsf_err_set(err, QSF_E_MODEL, "%s: %s has %llu bytes, more than the limit of %u",
                         qsf_source_path(src), KEY_MAP, (unsigned long long)a.count, MAX_BYTES);
    *bytes = a.count + 16;
    qsf_meta_array_close(&a);
    return rc;
}

static int read_blob(QsfMetaArray *a, unsigned char *blob, QsfErr *err) {
    int rc = QSF_OK;
    for (uint64_t i = 0; i < a->count && rc == QSF_OK; i++) {
        int64_t v = 0;
        rc = qsf_meta_array_i64(a, &v, err);
        blob[i] = (unsigned char)v; /* an array of i8 has the same bytes */
    }
    return rc;
}

static int load_map(QsfCharsmap *c, const QsfSource *src, QsfMetaArray *a, QsfArena *arena, QsfErr *err) {
    uint64_t n = a->count;
    if (n == 0) return QSF_OK;
    unsigned char *blob = n <= MAX_BYTES ? qsf_arena_alloc(arena, (size_t)n, 1, err) : NULL;
    if (blob == NULL)
        return n <= MAX_BYTES
                   ? err->code
                   : qsf_err_set(err, QSF_E_MODEL, "%s: %s is too long", qsf_source_path(src), KEY_MAP);
    int rc = read_blob(a, blob, err);
    if (rc != QSF_OK) return rc;
    uint32_t size = n >= 4 ? qsf_get_le32(blob) : UINT32_MAX;
    if (size > n - 4 || size % 4 != 0 || n < 4)
        return qsf_err_set(err, QSF_E_MODEL, "%s: %s: its table needs %u bytes, but the value has %llu",
                           qsf_source_path(src), KEY_MAP, size, (unsigned long long)n);
    c->units = blob + 4;
    c->n_units = size / 4;
    c->text = (const char *)blob + 4 + size;
    c->text_len = (uint32_t)n - 4 - size;
    return QSF_OK;
}

int qsf_charsmap_load(QsfCharsmap *c, const QsfSource *src, QsfArena *arena, QsfErr *err) {
    QsfMetaArray a;
    bool present;
    *c = (QsfCharsmap){ 0 };
    int rc = qsf_meta_bool(src, KEY_EXTRA, false, &c->remove_extra, err);
    if (rc == QSF_OK) rc = qsf_meta_array_open(src, KEY_MAP, QSF_META_I64, &a, &present, err);
    if (rc != QSF_OK || !present) return rc;
    rc = load_map(c, src, &a, arena, err);
    qsf_meta_array_close(&a);
    return rc;
}

bool qsf_charsmap_active(const QsfCharsmap *c) { return c->n_units > 0 || c->remove_extra; }

static uint32_t unit(const QsfCharsmap *c, uint32_t i) { return qsf_get_le32(c->units + 4 * (size_t)i); }

static uint32_t base_of(uint32_t unit) { return (unit >> 10) << ((unit & 0x200) >> 6); }

/* Length of the longest (or shortest) prefix of s that the table replaces, 0 for none; *value is
 * the offset of its replacement. */
static size_t find(const QsfCharsmap *c, const char *s, size_t len, bool shortest, uint32_t *value) {
    size_t best = 0;
    if (c->n_units == 0) return 0;
    uint32_t i = base_of(unit(c, 0));
    for (size_t k = 0; k < len && s[k] != '\0'; k++) {
        unsigned char byte = (unsigned char)s[k];
        i ^= byte;
        if (i >= c->n_units) break;
        uint32_t u = unit(c, i);
        if ((u & 0x800000FFu) != byte) break;
        i ^= base_of(u);
        if (i >= c->n_units) break;
        if ((u & 0x100) == 0) continue;
        best = k + 1;
        *value = unit(c, i) & 0x7FFFFFFFu;
        if (shortest) break;
    }
    return best;
}

static const char *replacement(const QsfCharsmap *c, uint32_t value, size_t *out_len) {
    const char *end = memchr(c->text + value, '\0', c->text_len - value);
    *out_len = end != NULL ? (size_t)(end - c->text) - value : c->text_len - value;
    return c->text + value;
}

const char *qsf_charsmap_first(const QsfCharsmap *c, const char *s, size_t len, size_t *out_len) {
    uint32_t value = 0;
    if (find(c, s, len, true, &value) == 0 || value >= c->text_len) return NULL;
    return replacement(c, value, out_len);
}

/* The normalized form of the text at s, of which *taken bytes are used. */
static const char *next_part(const QsfCharsmap *c, const char *s, size_t len, size_t *taken,
                             size_t *out_len) {
    uint32_t value = 0, cp;
    *taken = find(c, s, len, false, &value);
    if (*taken > 0 && value < c->text_len) return replacement(c, value, out_len);
    *taken = *out_len = qsf_utf8_next(s, len, &cp);
    return s;
}

typedef struct Spaces {
    bool remove_extra;
    bool after_space; /* the text so far is empty or ends with a space */
    bool prefix;      /* not yet written */
} Spaces;

static void put(Spaces *sp, const char *s, size_t len, QsfStrbuf *out) {
    for (size_t i = 0; i < len; i++) {
        bool space = s[i] == ' ';
        if (space && sp->remove_extra && sp->after_space) continue;
        if (sp->prefix) qsf_strbuf_adds(out, QSF_SPM_SPACE);
        sp->prefix = false;
        sp->after_space = space;
        qsf_strbuf_add(out, space ? QSF_SPM_SPACE : s + i, space ? QSF_SPM_SPACE_LEN : 1);
    }
}

void qsf_charsmap_apply(const QsfCharsmap *c, const char *text, size_t len, bool prefix, unsigned edges,
                        QsfStrbuf *out) {
    Spaces sp = { .remove_extra = c->remove_extra, .after_space = edges & QSF_EDGE_LEFT, .prefix = prefix };
    for (size_t at = 0, parts = 1; at < len && (parts % 4096 != 0 || !qsf_interrupted()); parts++) {
        size_t taken, n;
        const char *part = next_part(c, text + at, len - at, &taken, &n);
        put(&sp, part, n, out);
        at += taken;
    }
    bool trailing = (edges & QSF_EDGE_RIGHT) && out->len >= QSF_SPM_SPACE_LEN && sp.after_space &&
                    sp.remove_extra && qsf_strbuf_ok(out);
    if (trailing && memcmp(out->data + out->len - QSF_SPM_SPACE_LEN, QSF_SPM_SPACE, QSF_SPM_SPACE_LEN) == 0) {
        out->len -= QSF_SPM_SPACE_LEN;
        out->data[out->len] = '\0';
    }
}

/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What opening a model read, as text and JSON. */
#include <stdio.h>
#include <string.h>

#include "src/base/json.h"
#include "src/model/reads_impl.h"

static bool has_block(const QsfAbsentTensor *t, uint32_t i) {
    return i < QSF_MAX_LAYERS && (t->block[i / 64] >> (i % 64) & 1) != 0;
}

static uint32_t count_blocks(const QsfAbsentTensor *t) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < QSF_MAX_LAYERS; i++) n += has_block(t, i);
    return n;
}

static void put_value(QsfStrbuf *out, const QsfReadValue *v, bool json) {
    switch (v->type) {
    case QSF_META_U32: qsf_strbuf_addf(out, "%u", v->v.u); break;
    case QSF_META_F32: qsf_json_put_real(out, (double)v->v.f); break;
    case QSF_META_BOOL: qsf_strbuf_adds(out, v->v.b ? "true" : "false"); break;
    case QSF_META_STRING: qsf_strbuf_addf(out, json ? "\"%s\"" : "%s", v->v.s); break;
    default: qsf_strbuf_adds(out, json ? "null" : "not set"); break;
    }
}

/* Appends "all blocks", or "blocks 0 to 2, 5". */
static void put_blocks(QsfStrbuf *out, const QsfAbsentTensor *t, uint32_t n_blocks) {
    const uint32_t n = count_blocks(t);
    const char *sep = n == 1 ? "block " : "blocks ";
    if (n > 0 && n == n_blocks) {
        qsf_strbuf_adds(out, "all blocks");
        return;
    }
    for (uint32_t i = 0; i < QSF_MAX_LAYERS; i++) {
        uint32_t end = i;
        if (!has_block(t, i)) continue;
        while (has_block(t, end + 1)) end++;
        qsf_strbuf_addf(out, end > i ? "%s%u to %u" : "%s%u", sep, i, end);
        sep = ", ";
        i = end;
    }
}

void qsf_reads_put_text(QsfStrbuf *out, const QsfReads *r, uint32_t n_blocks) {
    const char *title = "\nkeys that the file does not have, and what was used\n";
    char full[512];
    for (const QsfReadKey *k = r->keys; k != NULL; k = k->next) {
        if (!k->absent) continue;
        qsf_strbuf_addf(out, "%s", title);
        (void)snprintf(full, sizeof full, "%s.%s", k->arch, k->name);
        qsf_strbuf_addf(out, "  %-52s ", full);
        put_value(out, &k->value, false);
        qsf_strbuf_addc(out, '\n');
        title = "";
    }
    title = "\noptional tensors that the file does not have\n";
    for (const QsfAbsentTensor *t = r->tensors; t != NULL; t = t->next) {
        qsf_strbuf_addf(out, count_blocks(t) > 0 ? "%s  %-52s " : "%s  %s", title, t->name);
        put_blocks(out, t, n_blocks);
        qsf_strbuf_addc(out, '\n');
        title = "";
    }
}

static void put_block_numbers(QsfStrbuf *out, const QsfAbsentTensor *t) {
    const char *sep = "";
    if (count_blocks(t) == 0) {
        qsf_strbuf_adds(out, "null");
        return;
    }
    qsf_strbuf_addc(out, '[');
    for (uint32_t i = 0; i < QSF_MAX_LAYERS; i++) {
        if (!has_block(t, i)) continue;
        qsf_strbuf_addf(out, "%s%u", sep, i);
        sep = ", ";
    }
    qsf_strbuf_addc(out, ']');
}

void qsf_reads_put_json(QsfStrbuf *out, const QsfReads *r) {
    const char *sep = "";
    qsf_strbuf_adds(out, ", \"defaults\": {");
    for (const QsfReadKey *k = r->keys; k != NULL; k = k->next) {
        if (!k->absent) continue;
        qsf_strbuf_addf(out, "%s\"%s.%s\": ", sep, k->arch, k->name);
        put_value(out, &k->value, true);
        sep = ", ";
    }
    qsf_strbuf_adds(out, "}, \"absent_tensors\": [");
    sep = "";
    for (const QsfAbsentTensor *t = r->tensors; t != NULL; t = t->next) {
        qsf_strbuf_addf(out, "%s{\"name\": \"%s\", \"blocks\": ", sep, t->name);
        put_block_numbers(out, t);
        qsf_strbuf_addc(out, '}');
        sep = ", ";
    }
    qsf_strbuf_addc(out, ']');
}

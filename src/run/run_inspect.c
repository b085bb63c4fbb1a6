/* SPDX-License-Identifier: GPL-3.0-or-later */
/* --inspect: prints the contents of a model file as tables or as one JSON object, for any readable file,
 * whether or not the engine can run it. */
#include <stdlib.h>
#include <string.h>

#include "qsf_text.h"
#include "src/base/json.h"
#include "src/file/dtype.h"
#include "src/file/rows.h"
#include "src/model/nextn.h"
#include "src/plan/layout.h"
#include "src/run/run.h"

#define SHOWN_TEXT 72 /* bytes of a metadata string in the table */

static const char *const type_names[] = { "u8",   "i8",  "u16",   "i16", "u32", "i32", "f32",
                                          "bool", "str", "array", "u64", "i64", "f64" };

static const char *dtype_name(uint32_t id, char *buf, size_t cap) {
    const QsfDtype *t = qsf_dtype(id);
    if (!t) snprintf(buf, cap, "type %u", id);
    return t ? t->name : buf;
}

static void put_string_value(QsfStrbuf *b, const char *s, size_t len, bool json) {
    if (json) {
        qsf_json_put_string(b, s, len);
        return;
    }
    size_t n = len < SHOWN_TEXT ? len : SHOWN_TEXT;
    char *clean = qsf_clean_dup(s, n, true);
    qsf_strbuf_adds(b, clean ? clean : "");
    if (n < len) qsf_strbuf_addf(b, "... (%zu bytes)", len);
    free(clean);
}

/* Appends one scalar value as text; for an unreadable one, the error message. */
static void put_value(QsfStrbuf *b, const QsfSource *s, const char *key, QsfMetaType type, bool json) {
    QsfErr err = { 0 };
    const char *text = NULL;
    size_t len = 0;
    int64_t i = 0;
    float f = 0;
    bool flag = false;
    switch (type) {
    case QSF_META_STRING:
        if (!qsf_meta_str(s, key, &text, &len, &err) && text) put_string_value(b, text, len, json);
        break;
    case QSF_META_BOOL:
        if (!qsf_meta_bool(s, key, false, &flag, &err)) qsf_strbuf_adds(b, flag ? "true" : "false");
        break;
    case QSF_META_F32:
    case QSF_META_F64:
        if (!qsf_meta_f32(s, key, 0, &f, &err)) qsf_json_put_real(b, (double)f);
        break;
    default:
        if (!qsf_meta_i64(s, key, 0, &i, &err)) qsf_strbuf_addf(b, "%lld", (long long)i);
        break;
    }
    if (err.code || (type == QSF_META_STRING && !text))
        put_string_value(b, err.code ? err.msg : "", err.code ? strlen(err.msg) : 0, json);
}

static void put_metadata(QsfStrbuf *b, const QsfSource *s, bool json) {
    for (size_t i = 0; i < qsf_meta_count(s); i++) {
        QsfMetaType type, elem;
        uint64_t count;
        const char *key = qsf_meta_at(s, i, &type, &elem, &count);
        if (json) {
            qsf_strbuf_adds(b, i ? ", " : "");
            qsf_json_put_string(b, key, strlen(key));
            qsf_strbuf_adds(b, ": ");
        } else {
            char *clean = qsf_clean_dup(key, strlen(key), true);
            qsf_strbuf_addf(b, "  %-44s %-6s ", clean ? clean : "", type_names[type]);
            free(clean);
        }
        if (type == QSF_META_ARRAY)
            qsf_strbuf_addf(b, json ? "{\"type\": \"%s\", \"count\": %llu}" : "%s x %llu", type_names[elem],
                            (unsigned long long)count);
        else
            put_value(b, s, key, type, json);
        if (!json) qsf_strbuf_addc(b, '\n');
    }
}

static void put_shape(QsfStrbuf *b, const QsfTensor *t, const char *sep) {
    for (uint32_t d = 0; d < t->n_dims; d++)
        qsf_strbuf_addf(b, "%s%llu", d ? sep : "", (unsigned long long)t->ne[d]);
}

static void put_tensors(QsfStrbuf *b, const QsfSource *s, bool json) {
    char buf[24];
    for (uint64_t i = 0; i < qsf_source_n_tensors(s); i++) {
        const QsfTensor *t = qsf_source_tensor(s, i);
        const char *type = dtype_name(t->dtype, buf, sizeof buf);
        if (json) {
            qsf_strbuf_adds(b, i ? ", {\"name\": " : "{\"name\": ");
            qsf_json_put_string(b, t->name, strlen(t->name));
            qsf_strbuf_addf(b, ", \"type\": \"%s\", \"shape\": [", type);
            put_shape(b, t, ", ");
            if (t->file >= qsf_source_n_files(s)) /* computed, compressed or in memory */
                qsf_strbuf_adds(b, "], \"file\": null, \"offset\": null");
            else
                qsf_strbuf_addf(b, "], \"file\": %u, \"offset\": %llu", t->file,
                                (unsigned long long)t->offset);
            qsf_strbuf_addf(b, ", \"bytes\": %llu}", (unsigned long long)t->bytes);
        } else {
            char *clean = qsf_clean_dup(t->name, strlen(t->name), true);
            QsfStrbuf shape = QSF_STRBUF_INIT;
            put_shape(&shape, t, " x ");
            qsf_strbuf_addf(b, "  %-36s %-8s %-18s %12llu bytes", clean ? clean : "", type,
                            qsf_strbuf_str(&shape), (unsigned long long)t->bytes);
            if (t->file < qsf_source_n_files(s))
                qsf_strbuf_addf(b, " at %llu", (unsigned long long)t->offset);
            qsf_strbuf_addc(b, '\n');
            qsf_strbuf_free(&shape);
            free(clean);
        }
    }
}

static uint64_t count_params(const QsfSource *s) {
    uint64_t n = 0;
    for (uint64_t i = 0; i < qsf_source_n_tensors(s); i++) {
        const QsfTensor *t = qsf_source_tensor(s, i);
        n += t->ne[0] * t->ne[1] * t->ne[2] * t->ne[3];
    }
    return n;
}

void run_put_types(QsfStrbuf *b, const QsfSource *s, bool json) {
    char buf[24];
    int shown = 0;
    for (uint32_t k = 0; qsf_dtype_at(k); k++) {
        const uint32_t id = qsf_dtype_at(k)->id;
        uint64_t n = 0, bytes = 0;
        for (uint64_t i = 0; i < qsf_source_n_tensors(s); i++)
            if (qsf_source_tensor(s, i)->dtype == id) n++, bytes += qsf_source_tensor(s, i)->bytes;
        if (!n) continue;
        if (json)
            qsf_strbuf_addf(b, "%s\"%s\": {\"tensors\": %llu, \"bytes\": %llu}", shown++ ? ", " : "",
                            dtype_name(id, buf, sizeof buf), (unsigned long long)n,
                            (unsigned long long)bytes);
        else
            qsf_strbuf_addf(b, "  %-8s %5llu tensors %10.1f MB\n", dtype_name(id, buf, sizeof buf),
                            (unsigned long long)n, (double)bytes / 1048576);
    }
}

/* Appends the bytes that one more token takes in the KV cache, for each type. */
static void put_kv(QsfStrbuf *b, const QsfProgram *p, bool json) {
    if (p->n_kv == 0) return;
    qsf_strbuf_adds(b, json ? ", \"kv_bytes_per_token\": {" : "KV cache per token:");
    for (int t = 0; t < QK_KV_N; t++) {
        uint64_t bytes = 0;
        for (uint32_t i = 0; i < p->n_kv; i++)
            bytes += qsf_kv_spec_bytes(&p->kv[i], (QsfKvTypes){ (qk_kv)t, (qk_kv)t }, QK_KV_TILE) /
                     QK_KV_TILE;
        qsf_strbuf_addf(b, json ? "%s\"%s\": %llu" : "%s %s %llu bytes", t > 0 ? "," : "",
                        qk_kv_name((qk_kv)t), (unsigned long long)bytes);
    }
    qsf_strbuf_adds(b, json ? "}" : "\n");
}

typedef struct JsonList {
    QsfStrbuf *b;
    const char *sep;
} JsonList;

static void put_unknown_json(void *arg, const char *key) {
    JsonList *list = arg;
    qsf_strbuf_adds(list->b, list->sep);
    qsf_json_put_string(list->b, key, strlen(key));
    list->sep = ", ";
}

/* Appends what the file does not say and what was used instead, and what it says that nothing reads. */
static void put_reads(QsfStrbuf *b, const QsfModel *m, bool json) {
    const char *arch = m->hp.arch->name;
    if (json) {
        JsonList list = { b, "" };
        qsf_reads_put_json(b, &m->reads);
        qsf_strbuf_adds(b, ", \"unknown_keys\": [");
        (void)qsf_reads_unknown(&m->reads, m->src, arch, put_unknown_json, &list);
        qsf_strbuf_addc(b, ']');
        return;
    }
    qsf_reads_put_text(b, &m->reads, m->hp.n_named);
    if (qsf_reads_unknown(&m->reads, m->src, arch, NULL, NULL) == 0) return;
    qsf_strbuf_adds(b, "\nmetadata keys that are not used\n  ");
    (void)qsf_reads_put_unknown(b, &m->reads, m->src, arch);
    qsf_strbuf_addc(b, '\n');
}

/* Next-token blocks, which are programs of their own. */
static void put_nextn(QsfStrbuf *b, const QsfModel *m) {
    char notice[256];
    const uint32_t n = qsf_nextn_count(m);
    qsf_nextn_notice(m, notice, sizeof notice);
    for (uint32_t k = 0; k < n; k++) {
        QsfModel block;
        QsfErr err = { 0 };
        qsf_strbuf_addf(b, "\nprogram of next-token block %u\n", k);
        if (qsf_nextn_open(&block, m, k, false, &err) == QSF_OK) {
            qsf_program_put_text(b, &block);
            qsf_model_close(&block);
        } else {
            qsf_strbuf_addf(b, "%s\n", err.msg);
        }
    }
    if (notice[0] != '\0') qsf_strbuf_addf(b, "\n%s\n", notice);
}

/* Appends the program of a model, or why there is none: the engine cannot run the file. */
static void put_program(QsfStrbuf *b, QsfSource *s, QsfLedger *ledger, bool json) {
    QsfModel m;
    QsfErr err = { 0 };
    qsf_strbuf_adds(b, json ? ", \"program\": " : "\nprogram\n");
    if (qsf_model_of_source(&m, s, false, ledger, &err) == QSF_OK) {
        if (json)
            qsf_program_put_json(b, &m);
        else
            qsf_program_put_text(b, &m);
        put_kv(b, &m.prog, json);
        if (!json && m.prog.n_ignored > 0) {
            qsf_strbuf_addf(b, "not used: %u tensors for images or sound ('", m.prog.n_ignored);
            put_string_value(b, m.prog.ignored, strlen(m.prog.ignored), false);
            qsf_strbuf_adds(b, "', ...)\n");
        }
        if (!json) put_nextn(b, &m);
        put_reads(b, &m, json);
        qsf_model_close(&m);
        return;
    }
    if (!json) {
        qsf_strbuf_addf(b, "  none: %s\n", err.msg);
        return;
    }
    qsf_strbuf_adds(b, "null, \"error\": ");
    qsf_json_put_string(b, err.msg, strlen(err.msg));
}

static void put_text(QsfStrbuf *b, QsfSource *s, QsfLedger *ledger, const char *path) {
    char *clean = qsf_clean_dup(path, strlen(path), true);
    qsf_strbuf_addf(b, "%s: %s, %.1f MB in %u file%s, %llu tensors, %llu parameters\n", clean ? clean : "",
                    qsf_source_format(s), (double)qsf_source_bytes(s) / 1048576, qsf_source_n_files(s),
                    qsf_source_n_files(s) == 1 ? "" : "s", (unsigned long long)qsf_source_n_tensors(s),
                    (unsigned long long)count_params(s));
    free(clean);
    if (qsf_source_n_left_out(s) > 0)
        qsf_strbuf_addf(b, "left out: %llu tensors that are not of the language model\n",
                        (unsigned long long)qsf_source_n_left_out(s));
    qsf_strbuf_adds(b, "\nmetadata\n");
    put_metadata(b, s, false);
    if (!qsf_source_n_tensors(s)) return;
    qsf_strbuf_adds(b, "\nweight types\n");
    run_put_types(b, s, false);
    qsf_strbuf_adds(b, "\ntensors\n");
    put_tensors(b, s, false);
    put_program(b, s, ledger, false);
}

static void put_json(QsfStrbuf *b, QsfSource *s, QsfLedger *ledger, const char *path) {
    qsf_strbuf_adds(b, "{\"path\": ");
    qsf_json_put_string(b, path, strlen(path));
    qsf_strbuf_addf(
        b,
        ", \"format\": \"%s\", \"bytes\": %llu, \"files\": %u, \"parameters\": %llu, \"left_out\": %llu, "
        "\"types\": {",
        qsf_source_format(s), (unsigned long long)qsf_source_bytes(s), qsf_source_n_files(s),
        (unsigned long long)count_params(s), (unsigned long long)qsf_source_n_left_out(s));
    run_put_types(b, s, true);
    qsf_strbuf_adds(b, "}, \"metadata\": {");
    put_metadata(b, s, true);
    qsf_strbuf_adds(b, "}, \"tensors\": [");
    put_tensors(b, s, true);
    qsf_strbuf_addc(b, ']');
    if (qsf_source_n_tensors(s) > 0) put_program(b, s, ledger, true);
    qsf_strbuf_adds(b, "}\n");
}

static int write_buf(QsfStrbuf *b) {
    int rc = QSF_EXIT_RUNTIME;
    if (qsf_strbuf_ok(b))
        rc = run_write_raw(qsf_strbuf_str(b), b->len);
    else
        qsf_cli_error(&run_cli, "out of memory");
    qsf_strbuf_free(b);
    return rc;
}

int run_inspect(const RunOptions *o) {
    QsfLedger ledger;
    QsfSource *s;
    QsfErr err = { 0 };
    QsfStrbuf b = QSF_STRBUF_INIT;
    qsf_ledger_init(&ledger, 0);
    int rc = qsf_source_open(&s, o->model, &ledger, &err);
    for (size_t i = 0; !rc && i < o->n_overrides; i++)
        if ((rc = qsf_source_override(s, o->overrides[i], &err))) qsf_source_close(s);
    if (rc) {
        rc = run_fail(&err);
    } else {
        if (o->json)
            put_json(&b, s, &ledger, o->model);
        else
            put_text(&b, s, &ledger, o->model);
        qsf_source_close(s);
        rc = write_buf(&b);
    }
    qsf_ledger_destroy(&ledger);
    return rc;
}

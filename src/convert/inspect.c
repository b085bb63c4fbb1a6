/* SPDX-License-Identifier: GPL-3.0-or-later */
/* --inspect: prints a QSF file section by section, as tables or as one JSON object (qsf-run --inspect prints
 * the metadata, for every format). --verify: checks that the file is intact. Rejects models
 * that the other programs cannot open, before a conversion and in --verify. */
#include "src/convert/convert.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "qsf_text.h"

#include "src/base/json.h"
#include "src/engine/model_info.h"
#include "src/file/qsf/codec.h"
#include "src/file/qsf/layout.h"
#include "src/file/qsf/verify.h"

/* ---- models that cannot be opened ---- */

enum { ARCH_NAME_MAX = 64 };

static void warn(const char *message) { fprintf(stderr, "qsf-convert: warning: %s\n", message); }

/* A model of an unsupported architecture is converted all the same: a later version may be able to run it. */
static void warn_unsupported(const char *path, const char *arch) {
    QsfErr text = { 0 }; /* replaces control characters in the name */
    if (*arch == '\0') return;
    qsf_err_set(&text, QSF_E_MODEL,
                "%s: this version cannot run architecture '%s'; its tensors were not checked", path, arch);
    warn(text.msg);
}

int convert_check_input(const ConvertOptions *o, QsfSource *s) {
    QsfLedger ledger;
    QsfErr err = { 0 };
    char unsupported[ARCH_NAME_MAX];
    qsf_ledger_init(&ledger, 0);
    int rc = qsf_check_source(s, true, unsupported, sizeof unsupported, &ledger, &err);
    qsf_ledger_destroy(&ledger);
    warn_unsupported(o->input, unsupported);
    if (rc != QSF_E_MODEL) return rc ? convert_fail(&err) : QSF_EXIT_OK;
    if (!o->force) {
        qsf_cli_error(&convert_cli, "%s; use --force to convert it anyway", err.msg);
        return rc;
    }
    warn(err.msg);
    return QSF_EXIT_OK;
}

/* Checks the QSF file at path. Errors are those of qsf_source_open and qsf_check_source. */
static int check_file(const char *path, QsfLedger *ledger, QsfErr *err) {
    QsfSource *s;
    char unsupported[ARCH_NAME_MAX];
    int rc = qsf_source_open(&s, path, ledger, err);
    if (rc) return rc;
    rc = qsf_check_source(s, false, unsupported, sizeof unsupported, ledger, err);
    qsf_source_close(s);
    warn_unsupported(path, unsupported);
    return rc;
}

/* Callback for qsf_verify_fd_meta; arg is the ledger. */
static int check_meta(void *arg, const QsfSource *meta, QsfErr *err) {
    char unsupported[ARCH_NAME_MAX];
    int rc = qsf_check_meta(meta, unsupported, sizeof unsupported, arg, err);
    warn_unsupported(qsf_source_path(meta), unsupported);
    return rc;
}

/* ---- --inspect and --verify ---- */

typedef struct Inspected {
    const QsfSource *s;
    const char *path;
    QsfFileHeader head;
    QsfIndexEntry *index; /* (head.n_layers) */
} Inspected;

typedef unsigned long long Big;

static const char *const archs[] = { "gpt2", "llama", "mistral", "phi", "other" };
static const struct {
    uint32_t flag;
    const char *name;
} flag_names[] = {
    { QSFF_PAGES, "pages" },
    { QSFF_X16, "x16" },
    { QSFF_CLUSTERS, "clusters" },
    { QSFF_LINES, "lines" },
};

/* The source has checked the header and index but does not keep them: reads them again. */
static int read_header_and_index(Inspected *f, QsfErr *err) {
    const QsfFile *file = qsf_source_file(f->s, 0);
    unsigned char b[QSFF_HEAD_BYTES];
    int rc = qsf_file_pread(file, b, sizeof b, 0, err);
    if (rc == QSF_OK) rc = qsf_file_header_decode(&f->head, b, file->path, err);
    if (rc != QSF_OK) return rc;
    f->index = calloc(f->head.n_layers, sizeof *f->index);
    if (f->index == NULL) return qsf_err_memory(err, "%s", file->path);
    for (uint32_t i = 0; rc == QSF_OK && i < f->head.n_layers; i++) {
        uint64_t at = f->head.index_off + (uint64_t)i * QSFF_INDEX_BYTES;
        rc = qsf_file_pread(file, b, QSFF_INDEX_BYTES, at, err);
        if (rc == QSF_OK) rc = qsf_index_entry_decode(&f->index[i], b, file->path, at, err);
    }
    return rc;
}

static uint8_t code_of(const QsfTensor *t) {
    uint8_t code;
    return qsf_code_of_dtype(t->dtype, &code) ? code : QSFF_LAYER_CODE;
}

static Big tensor_rows(const QsfTensor *t) { return (Big)(t->ne[1] * t->ne[2] * t->ne[3]); }

static const char *layout_of(const QsfTensor *t) { return t->x16 ? "x16" : "rows"; }

/* ---- tables */

static void put_flags(QsfStrbuf *b, uint32_t flags, const char *before, const char *quote) {
    for (size_t i = 0; i < sizeof flag_names / sizeof *flag_names; i++) {
        if (!(flags & flag_names[i].flag)) continue;
        qsf_strbuf_addf(b, "%s%s%s%s", before, quote, flag_names[i].name, quote);
        before = ", ";
    }
}

static void put_text(QsfStrbuf *b, const Inspected *f) {
    const QsfFileHeader *h = &f->head;
    char name[16], *path = qsf_clean_dup(f->path, strlen(f->path), true);
    qsf_strbuf_addf(b, "%s: %s, %.1f MB\n", path ? path : "", qsf_source_format(f->s),
                    (double)qsf_source_bytes(f->s) / 1048576);
    free(path);
    qsf_strbuf_addf(
        b, "  architecture %s, %u layers, hidden %u, %u heads (%u KV) of %u, FFN %u, %u tokens, context %u\n",
        archs[h->arch], h->n_layers, h->hidden, h->n_heads, h->n_kv_heads ? h->n_kv_heads : h->n_heads,
        h->head_dim, h->ffn, h->n_vocab, h->n_ctx);
    qsf_strbuf_addf(b, "  layers are %s; blocks of %u; flags", convert_code_name(h->code, name, sizeof name),
                    h->block ? h->block : 64);
    put_flags(b, h->flags, " ", "");
    qsf_strbuf_addf(b, "%s\n\nsections\n", h->flags ? "" : " none");
    qsf_strbuf_addf(b,
                    "  index      at %12llu %14llu bytes\n  metadata   at %12llu %14llu bytes, CRC32 %08x\n",
                    (Big)h->index_off, (Big)h->n_layers * QSFF_INDEX_BYTES, (Big)h->meta_off,
                    (Big)h->meta_bytes, h->meta_crc);
    qsf_strbuf_addf(b, "  embedding  at %12llu\n", (Big)h->embed_off);
    for (uint32_t i = 0; i < h->n_layers; i++) {
        const QsfIndexEntry *e = &f->index[i];
        qsf_strbuf_addf(b, "  layer %-4u at %12llu %14u bytes, CRC32 %08x, %u tensors, %s", i, (Big)e->off,
                        e->bytes, e->crc, e->n_tensors, convert_code_name(e->code, name, sizeof name));
        if (e->compression)
            qsf_strbuf_addf(b, ", %s of %u bytes, %.1f %% saved", qsf_codec_name(e->compression),
                            e->whole_bytes, 100 - 100.0 * e->bytes / e->whole_bytes);
        if (e->importance > 0) qsf_strbuf_addf(b, ", importance %.4g", (double)e->importance);
        qsf_strbuf_addc(b, '\n');
    }
    qsf_strbuf_addf(b, "  final      at %12llu %14llu bytes\n\ntensors\n", (Big)h->final_off,
                    (Big)(qsf_source_bytes(f->s) - h->final_off));
    for (uint64_t i = 0; i < qsf_source_n_tensors(f->s); i++) {
        const QsfTensor *t = qsf_source_tensor(f->s, i);
        char *shown = qsf_clean_dup(t->name, strlen(t->name), true);
        qsf_strbuf_addf(b, "  %-34s %-9s %-4s %8llu x %-8llu %12llu bytes at %llu%s\n", shown ? shown : "",
                        convert_code_name(code_of(t), name, sizeof name), layout_of(t), tensor_rows(t),
                        (Big)t->ne[0], (Big)t->bytes, (Big)t->offset,
                        t->compressed ? " of its decompressed layer" : "");
        free(shown);
    }
}

/* ---- JSON */

static void put_json_layer(QsfStrbuf *b, const QsfIndexEntry *e) {
    char name[16];
    qsf_strbuf_addf(
        b,
        "{\"offset\": %llu, \"bytes\": %u, \"whole_bytes\": %u, \"type\": \"%s\", \"compression\": \"%s\", "
        "\"tensors\": %u, \"crc32\": %u, \"importance\": ",
        (Big)e->off, e->bytes, e->whole_bytes, convert_code_name(e->code, name, sizeof name),
        qsf_codec_name(e->compression), e->n_tensors, e->crc);
    qsf_json_put_real(b, (double)e->importance);
    qsf_strbuf_addc(b, '}');
}

static void put_json_tensor(QsfStrbuf *b, const QsfTensor *t) {
    char name[16];
    qsf_strbuf_adds(b, "{\"name\": ");
    qsf_json_put_string(b, t->name, strlen(t->name));
    qsf_strbuf_addf(
        b,
        ", \"type\": \"%s\", \"layout\": \"%s\", \"rows\": %llu, \"columns\": %llu, \"bytes\": %llu, "
        "\"offset\": %llu, \"compressed\": %s}",
        convert_code_name(code_of(t), name, sizeof name), layout_of(t), tensor_rows(t), (Big)t->ne[0],
        (Big)t->bytes, (Big)t->offset, t->compressed ? "true" : "false");
}

static void put_json(QsfStrbuf *b, const Inspected *f) {
    const QsfFileHeader *h = &f->head;
    char name[16];
    qsf_strbuf_adds(b, "{\"path\": ");
    qsf_json_put_string(b, f->path, strlen(f->path));
    qsf_strbuf_addf(
        b,
        ", \"version\": %u, \"bytes\": %llu, \"architecture\": \"%s\", \"layers\": %u, \"hidden\": %u, "
        "\"heads\": %u, \"kv_heads\": %u, \"head_dim\": %u",
        h->version, (Big)qsf_source_bytes(f->s), archs[h->arch], h->n_layers, h->hidden, h->n_heads,
        h->n_kv_heads ? h->n_kv_heads : h->n_heads, h->head_dim);
    qsf_strbuf_addf(
        b,
        ", \"ffn\": %u, \"vocabulary\": %u, \"context\": %u, \"type\": \"%s\", \"block\": %u, \"flags\": [",
        h->ffn, h->n_vocab, h->n_ctx, convert_code_name(h->code, name, sizeof name),
        h->block ? h->block : 64);
    put_flags(b, h->flags, "", "\"");
    qsf_strbuf_addf(
        b,
        "], \"index\": {\"offset\": %llu}, \"metadata\": {\"offset\": %llu, \"bytes\": %llu, \"crc32\": "
        "%u}, \"embedding\": {\"offset\": %llu}, \"final\": {\"offset\": %llu}, \"sections\": [",
        (Big)h->index_off, (Big)h->meta_off, (Big)h->meta_bytes, h->meta_crc, (Big)h->embed_off,
        (Big)h->final_off);
    for (uint32_t i = 0; i < h->n_layers; i++) {
        qsf_strbuf_adds(b, i ? ", " : "");
        put_json_layer(b, &f->index[i]);
    }
    qsf_strbuf_adds(b, "], \"tensors\": [");
    for (uint64_t i = 0; i < qsf_source_n_tensors(f->s); i++) {
        qsf_strbuf_adds(b, i ? ", " : "");
        put_json_tensor(b, qsf_source_tensor(f->s, i));
    }
    qsf_strbuf_adds(b, "]}\n");
}

static int inspect(const ConvertOptions *o, QsfSource *s) {
    Inspected f = { .s = s, .path = o->input };
    QsfStrbuf b = QSF_STRBUF_INIT;
    QsfErr err = { 0 };
    if (strcmp(qsf_source_format(s), "QSF v1")) {
        qsf_cli_error(&convert_cli, "%s: is %s, not a QSF file; use qsf-run --inspect", o->input,
                      qsf_source_format(s));
        return QSF_EXIT_MODEL;
    }
    int rc = read_header_and_index(&f, &err);
    if (rc)
        rc = convert_fail(&err);
    else {
        if (o->json)
            put_json(&b, &f);
        else
            put_text(&b, &f);
        rc = convert_print(&b);
    }
    free(f.index);
    return rc;
}

int convert_inspect(const ConvertOptions *o) { return convert_with_source(o, inspect); }

/* ---- verify */

static void put_verified(QsfStrbuf *b, const ConvertOptions *o, const QsfVerifyReport *r) {
    if (o->json) {
        qsf_strbuf_adds(b, "{\"path\": ");
        qsf_json_put_string(b, o->input, strlen(o->input));
        qsf_strbuf_addf(
            b,
            ", \"whole\": true, \"bytes\": %llu, \"layers\": %u, \"compressed\": %u, \"tensors\": %llu, "
            "\"metadata\": %llu}\n",
            (Big)r->bytes, r->n_layers, r->n_compressed, (Big)r->n_tensors, (Big)r->meta_pairs);
        return;
    }
    char *path = qsf_clean_dup(o->input, strlen(o->input), true);
    qsf_strbuf_addf(
        b, "%s: intact: %llu bytes, %u layers, %u of them compressed, %llu tensors, %llu metadata pairs\n",
        path ? path : "", (Big)r->bytes, r->n_layers, r->n_compressed, (Big)r->n_tensors, (Big)r->meta_pairs);
    free(path);
}

int convert_verify(const ConvertOptions *o) {
    QsfLedger ledger;
    QsfVerifyReport r;
    QsfErr err = { 0 };
    QsfStrbuf b = QSF_STRBUF_INIT;
    qsf_ledger_init(&ledger, 0);
    /* can be read only once: its metadata is checked on the way */
    const bool in = strcmp(o->input, "-") == 0;
    int rc = in ? qsf_verify_fd_meta(STDIN_FILENO, "stdin", &ledger, &r, check_meta, &ledger, &err)
                : qsf_verify_file(o->input, &ledger, &r, &err);
    if (!rc && !in) rc = check_file(o->input, &ledger, &err);
    if (rc)
        rc = convert_fail(&err);
    else if (!o->quiet) {
        put_verified(&b, o, &r);
        rc = convert_print(&b);
    }
    qsf_ledger_destroy(&ledger);
    return rc;
}

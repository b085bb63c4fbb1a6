/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The texts of --file. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

#include "qsf_decode.h"
#include "src/run/run.h"

#include "src/base/paths.h"

void run_add_gap(QsfStrbuf *b) {
    if (b->len) qsf_strbuf_adds(b, b->data[b->len - 1] == '\n' ? "\n" : "\n\n");
}

static int refuse(const char *path, const char *why) {
    qsf_cli_error(&run_cli, "--file %s: %s", path, why);
    return QSF_EXIT_MODEL;
}

static int read_one(const char *path, const RunRoom *room, QsfStrbuf *text) {
    if (qsf_path_is_dir(path))
        return refuse(path, "it is a directory; name its files, as in -f DIR/a.txt -f DIR/b.txt");
    const int rc = run_read_text("--file", path, room, text);
    if (rc) return rc;
    const char *kind = qsf_decode_kind(qsf_strbuf_str(text), text->len);
    if (qsf_decode_is_binary(text->data, text->len)) return refuse(path, kind);
    if (qsf_decode_is_utf8(text->data, text->len)) return QSF_EXIT_OK;
    return refuse(path, strchr(kind, ':') ? kind : "it is not UTF-8");
}

int run_files_read(const RunOptions *o, const RunRoom *room, QsfStrbuf *b, RunFiles *files) {
    int rc = QSF_EXIT_OK;
    for (size_t i = 0; i < o->n_files && !rc; i++) {
        QsfStrbuf text = QSF_STRBUF_INIT;
        RunRoom left = *room;
        left.bytes -= b->len < left.bytes ? b->len : left.bytes;
        left.held = b->len;
        rc = read_one(o->files[i], &left, &text);
        run_add_gap(b);
        files->from[i] = b->len;
        if (!rc) qsf_strbuf_add(b, qsf_strbuf_str(&text), text.len);
        files->to[i] = b->len;
        files->n = i + 1;
        qsf_strbuf_free(&text);
    }
    return rc;
}

/* "812 B", "12 KB", "1.2 MB" */
static void format_size(size_t bytes, char *dst, size_t cap) {
    if (bytes < 1024)
        (void)snprintf(dst, cap, "%zu B", bytes);
    else if (bytes < 1000 * 1024)
        (void)snprintf(dst, cap, "%zu KB", (bytes + 512) / 1024);
    else
        (void)snprintf(dst, cap, "%.1f MB", (double)bytes / 1048576);
}

void run_files_note(QsfRuntime *rt, const RunOptions *o, const QsfStrbuf *prompt, const RunFiles *files) {
    size_t bytes = 0, tokens = 0;
    char size[32];
    for (size_t i = 0; i < files->n; i++) {
        QsfIds ids = { .ledger = &rt->ledger };
        QsfErr err = { 0 };
        const size_t len = files->to[i] - files->from[i];
        if (qsf_tokenizer_encode(rt->tok, prompt->data + files->from[i], len, 0, &ids, &err) != QSF_OK) {
            qsf_ids_free(&ids);
            return; /* the prompt fails for the same reason, which is reported */
        }
        format_size(len, size, sizeof size);
        run_note("attached: %s %s, %zu tokens", o->files[i], size, ids.n);
        bytes += len;
        tokens += ids.n;
        qsf_ids_free(&ids);
    }
    format_size(bytes, size, sizeof size);
    if (files->n > 1) run_note("%zu files: %s, %zu tokens", files->n, size, tokens);
}

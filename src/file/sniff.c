/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What a file is by its first bytes, when no format knows it. */
#include "src/file/sniff.h"

#include <string.h>

#include "src/base/paths.h"
#include "src/file/lfs.h"
#include "src/file/whole.h"

typedef struct Magic {
    size_t off, len;
    const char *bytes;
    const char *what;
    bool no_more; /* that says it all, without what was expected */
} Magic;

static const Magic magics[] = {
    { 0, 4, "FUGG", "a big-endian GGUF file, which is not supported", true },
    { 0, 4, "lmgg", "a GGML file older than GGUF, which is not supported", true },
    { 0, 4, "fmgg", "a GGML file older than GGUF, which is not supported", true },
    { 0, 4, "tjgg", "a GGML file older than GGUF, which is not supported", true },
    { 0, 4, "PK\x03\x04", "a ZIP archive (a PyTorch checkpoint?)", false },
    { 0, 2, "\x1f\x8b", "a gzip file: decompress it first", true },
    { 0, 4, "\x28\xb5\x2f\xfd", "a zstd file: decompress it first", true },
    { 0, 14, "<!DOCTYPE html", "a web page (an unfinished download?)", false },
    { 0, 14, "<!doctype html", "a web page (an unfinished download?)", false },
    { 0, 4, "QSF1", "a QSF file", false }, /* which is a format of models */
};

const QsfWanted qsf_wanted_model = { "a model", "GGUF or QSF",
                                     "open the directory that contains it and its config.json" };
const QsfWanted qsf_wanted_adapter = { "an adapter", "GGUF, or a directory with adapter_config.json",
                                       "give the directory that contains it and its adapter_config.json" };
const QsfWanted qsf_wanted_control = { "a control vector", "GGUF", "control vectors are GGUF files" };

/* huggingface/peft, src/peft/utils/constants.py */
static bool is_adapter(const char *path) {
    return strcmp(qsf_path_name(path), "adapter_model.safetensors") == 0;
}

static bool is_safetensors(const unsigned char *p, size_t n) { return n >= 10 && p[8] == '{' && p[9] == '"'; }

bool qsf_sniff_is_text(const unsigned char *p, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (p[i] == 0x7F || (p[i] < 0x20 && strchr("\t\n\r\f\x1b", p[i]) == NULL) || p[i] == 0) return false;
    return true;
}

int qsf_sniff_reject(const QsfFile *f, const unsigned char *p, size_t n, const QsfWanted *w, QsfErr *err) {
    int rc = qsf_lfs_check_bytes(f->path, p, n, err);
    if (rc == QSF_OK) rc = qsf_whole_check_utf8(f->path, (const char *)p, n, err);
    if (rc != QSF_OK) return rc;
    for (size_t i = 0; i < sizeof magics / sizeof *magics; i++) {
        const Magic *m = &magics[i];
        if (n < m->off + m->len || memcmp(p + m->off, m->bytes, m->len) != 0) continue;
        if (m->no_more) return qsf_err_set(err, QSF_E_MODEL, "%s: is %s", f->path, m->what);
        return qsf_err_set(err, QSF_E_MODEL, "%s: is %s, not %s: expected %s", f->path, m->what, w->what,
                           w->expected);
    }
    if (is_safetensors(p, n) && w == &qsf_wanted_model && is_adapter(f->path))
        return qsf_err_set(
            err, QSF_E_MODEL,
            "%s: has the weights of an adapter, not of a model: use its directory with --lora, "
            "beside a model",
            f->path);
    if (is_safetensors(p, n))
        return qsf_err_set(err, QSF_E_MODEL, "%s: is a safetensors file: %s", f->path, w->in_its_dir);
    if (qsf_sniff_is_text(p, n))
        return qsf_err_set(err, QSF_E_MODEL, "%s: is a text file, not %s: expected %s", f->path, w->what,
                           w->expected);
    if (n < 4) return qsf_err_set(err, QSF_E_MODEL, "%s: truncated: has only %zu bytes", f->path, n);
    return qsf_err_set(err, QSF_E_MODEL,
                       "%s: is not %s: expected %s, its first bytes are %02x %02x %02x %02x", f->path,
                       w->what, w->expected, p[0], p[1], p[2], p[3]);
}

int qsf_sniff_head(const QsfSource *s, unsigned char head[QSF_SNIFF_BYTES], size_t *n, QsfErr *err) {
    const QsfFile *f = &s->files[0];
    memset(head, 0, QSF_SNIFF_BYTES);
    *n = f->size < QSF_SNIFF_BYTES ? (size_t)f->size : QSF_SNIFF_BYTES;
    if (*n == 0) return qsf_err_set(err, QSF_E_MODEL, "%s: is empty", f->path);
    return qsf_file_pread(f, head, *n, 0, err);
}

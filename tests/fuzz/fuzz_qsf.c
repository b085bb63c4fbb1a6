/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Fuzz target: a small complete QSF file, which the input's first byte chooses: a llama, the same
 * with compressed layers, or a model of named tensors; with some bytes changed and, if that byte
 * is even, its checksums corrected. Opened as a model and verified; must neither crash, leak,
 * hang nor leave anything charged. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "src/file/qsf/verify.h"
#include "src/file/rows.h"
#include "src/model/model.h"
#include "tests/harness/gguf_build.h"
#include "tests/harness/qsf_image.h"
#include "tests/harness/qsf_made.h"

#define PATCH 4u /* bytes: three of an offset, one of a value */
#define BASES 3u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static QsfImage make_base(uint8_t press, bool named) {
    const QsfPackOptions how = { .flags = QSFF_PAGES | QSFF_LINES, .codec = press };
    const QsfTinySpec spec = { .layers = 2,
                               .hidden = 32,
                               .heads = 2,
                               .kv_heads = 1,
                               .ffn = 32,
                               .vocab = 260,
                               .ctx = 64,
                               .biases = true,
                               .rope_freqs = true,
                               .twins = true,
                               .wtype = 2 };
    char gguf[64], qsf[64];
    QsfLedger ledger;
    QsfSource *s;
    QsfImage m = { NULL, 0 };
    snprintf(gguf, sizeof gguf, "/tmp/fuzz-%d.gguf", (int)getpid());
    snprintf(qsf, sizeof qsf, "/tmp/fuzz-%d.qsf", (int)getpid());
    qsf_ledger_init(&ledger, 0);
    const int rc = named ? qsf_test_write_tiny_mamba(gguf, 1) : qsf_test_write_tiny_llama(gguf, &spec);
    if (rc == 0 && qsf_source_open(&s, gguf, &ledger, NULL) == QSF_OK) {
        if (qsf_pack(s, qsf, &how, NULL, NULL) == QSF_OK) m = qsf_image_load(qsf);
        qsf_source_close(s);
    }
    qsf_ledger_destroy(&ledger);
    unlink(gguf);
    unlink(qsf);
    if (m.b == NULL) abort();
    return m;
}

/* Half of the offsets are in header, index and metadata. */
static void patch(QsfImage *m, const QsfImageMap *at, const uint8_t *p) {
    size_t off = (size_t)p[0] | (size_t)(p[1] & 0x7F) << 8 | (size_t)p[2] << 15;
    size_t most = p[1] & 0x80 ? m->len : (size_t)(at->meta + at->meta_len);
    m->b[off % most] = p[3];
}

static void read_tensors(QsfSource *s) {
    unsigned char byte;
    for (uint64_t i = 0; i < qsf_source_n_tensors(s); i++)
        (void)qsf_source_read_bytes(s, qsf_source_tensor(s, i), 0, &byte, 1, NULL);
}

/* A model has its source open already: this slow step is repeated only if there is no model. */
static void open_file(const char *path, QsfLedger *ledger) {
    QsfModel model;
    QsfSource *s;
    if (qsf_model_open(&model, path, NULL, ledger, NULL) == QSF_OK) {
        read_tensors(model.src);
        qsf_model_close(&model);
    } else if (qsf_source_open(&s, path, ledger, NULL) == QSF_OK) {
        read_tensors(s);
        qsf_source_close(s);
    }
}

static void try_file(const QsfImage *m) {
    char path[64];
    QsfLedger ledger;
    QsfVerifyReport r;
    int fd = memfd_create("fuzz", 0);
    if (fd < 0) return;
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    qsf_ledger_init(&ledger, (uint64_t)128 << 20);
    if (write(fd, m->b, m->len) == (ssize_t)m->len) {
        (void)qsf_verify_file(path, &ledger, &r, NULL);
        open_file(path, &ledger);
    }
    if (ledger.total != 0) abort();
    qsf_ledger_destroy(&ledger);
    close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static QsfImage base[BASES], copy;
    static QsfImageMap at[BASES];
    for (unsigned k = 0; k < BASES && base[k].b == NULL; k++) {
        base[k] = make_base(k == 1 ? QSFF_LZ4 : QSFF_STORED, k == 2);
        at[k] = qsf_image_map(&base[k]);
        unsigned char *more = realloc(copy.b, base[k].len > copy.len ? base[k].len : copy.len);
        if (more == NULL) abort();
        copy.b = more;
        if (base[k].len > copy.len) copy.len = base[k].len;
    }
    if (size == 0) return 0;
    const unsigned k = (data[0] >> 1) % BASES;
    copy.len = base[k].len;
    memcpy(copy.b, base[k].b, copy.len);
    for (size_t i = 1; i + PATCH <= size; i += PATCH) patch(&copy, &at[k], data + i);
    if (data[0] % 2 == 0) qsf_image_fix(&copy, &at[k]);
    try_file(&copy);
    return 0;
}

/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Fuzz target: any bytes as a vocabulary: a tokenizer.json, a SentencePiece model or a GGUF file, selected by
 * their first bytes, opened and used on a short text. Must neither crash, leak nor hang, ids must be in the
 * vocabulary, and nothing may stay charged. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "src/token/tokenizer.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char buf[QSF_PIECE_MAX + 8];

static void use(const QsfTokenizer *t) {
    static const char text[] =
        " Hello  w\xC3\xB6rld, \xE4\xB8\xAD\n\n ab12 <s>[x]</s>\xFF <|x|>\tab e\xCC\x81 ";
    QsfIds ids = { 0 };
    QsfDetok d;
    for (unsigned flags = 0; flags < 16; flags += 7) {
        if (qsf_tokenizer_encode(t, text, sizeof text - 1, flags, &ids, NULL) != QSF_OK) abort();
    }
    qsf_detok_init(&d, t, true, false);
    for (size_t i = 0; i < ids.n; i++) {
        if (ids.data[i] < 0 || (uint32_t)ids.data[i] >= qsf_tokenizer_n_vocab(t)) abort();
        if (qsf_detok_feed(&d, ids.data[i], buf, sizeof buf) > sizeof buf) abort();
    }
    (void)qsf_detok_flush(&d, buf, sizeof buf);
    qsf_ids_free(&ids);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char path[64];
    QsfLedger ledger;
    QsfSource *src = NULL;
    QsfTokenizer *t = NULL;
    QsfErr e = { 0 };
    int fd = memfd_create("fuzz", 0);
    if (fd < 0) return 0;
    if (size > 0 && write(fd, data, size) != (ssize_t)size) {
        close(fd);
        return 0;
    }
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    qsf_ledger_init(&ledger, (uint64_t)256 << 20);
    if (qsf_source_open(&src, path, &ledger, &e) == QSF_OK) {
        (void)qsf_tokenizer_open(&t, src, &ledger, &e);
        qsf_source_close(src);
    }
    if (t != NULL) {
        use(t);
    } else if (e.code == QSF_OK || e.msg[0] == '\0') {
        abort();
    }
    qsf_tokenizer_close(t);
    if (ledger.total != 0) abort();
    qsf_ledger_destroy(&ledger);
    close(fd);
    return 0;
}

/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Fuzz target: a Hugging Face model directory made of any bytes: config.json, the index of shards and the
 * weights. The first bytes of the input split it; an empty part is replaced by a valid one, so that the
 * others get far. Opened and read through: must neither crash, leak nor hang, tensors must be inside their
 * files, and nothing may stay charged. */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "src/file/dtype.h"
#include "src/file/rows.h"

#define PLACE_BYTES 2 /* of the length that precedes it */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { CONFIG, INDEX, WEIGHTS, TOKENS, PARTS };

static const char good_config[] =
    "{\"architectures\":[\"LlamaForCausalLM\"],\"hidden_size\":4,\"intermediate_size\":2,"
    "\"num_hidden_layers\":2,"
    "\"num_attention_heads\":2,\"num_key_value_heads\":1,\"vocab_size\":3,\"max_position_embeddings\":8,"
    "\"tie_word_embeddings\":true,\"rope_scaling\":{\"type\":\"llama3\",\"factor\":8,\"low_freq_factor\":1,"
    "\"high_freq_factor\":4,\"original_max_position_embeddings\":4}}";
static const char good_index[] = "{\"weight_map\":{\"model.embed_tokens.weight\":\"a.safetensors\"}}";
static const char good_tokens[] = "{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":1},\"merges\":[]},"
                                  "\"pre_tokenizer\":{\"type\":\"ByteLevel\"}}";
static const char good_weights[] =
    "\x99\0\0\0\0\0\0\0{\"model.embed_tokens.weight\":{\"dtype\":\"F32\",\"shape\":[3,4],"
    "\"data_offsets\":[0,48]},"
    "\"model.norm.weight\":{\"dtype\":\"BF16\",\"shape\":[4],\"data_offsets\":[48,56]}}"
    "01234567012345670123456701234567012345670123456701234567";

static int fds[PARTS];
static char dirs[2][64]; /* one file of weights; an index and a shard */
static float row[4096];

static void name_it(const char *dir, const char *name, int fd) {
    char path[128], target[64];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    snprintf(target, sizeof target, "/proc/self/fd/%d", fd);
    if (symlink(target, path) != 0) abort();
}

static void remove_all(void) {
    static const char *const names[] = { "config.json", "tokenizer.json", "model.safetensors",
                                         "a.safetensors", "model.safetensors.index.json" };
    for (int i = 0; i < 2; i++) {
        for (size_t j = 0; j < sizeof names / sizeof *names; j++) {
            char path[192];
            snprintf(path, sizeof path, "%s/%s", dirs[i], names[j]);
            unlink(path);
        }
        rmdir(dirs[i]);
    }
}

/* Directories whose files are in the memory of this process. */
static void begin(void) {
    for (int i = 0; i < PARTS; i++)
        if ((fds[i] = memfd_create("fuzz", 0)) < 0) abort();
    for (int i = 0; i < 2; i++) {
        snprintf(dirs[i], sizeof dirs[i], "/tmp/qsf-fuzz.XXXXXX");
        if (mkdtemp(dirs[i]) == NULL) abort();
        name_it(dirs[i], "config.json", fds[CONFIG]);
        name_it(dirs[i], "tokenizer.json", fds[TOKENS]);
    }
    name_it(dirs[0], "model.safetensors", fds[WEIGHTS]);
    name_it(dirs[1], "a.safetensors", fds[WEIGHTS]);
    name_it(dirs[1], "model.safetensors.index.json", fds[INDEX]);
    atexit(remove_all);
}

static void put(int part, const void *bytes, size_t n) {
    if (ftruncate(fds[part], 0) != 0 || (n > 0 && pwrite(fds[part], bytes, n, 0) != (ssize_t)n)) abort();
}

/* The next n bytes of the input, with n from the two bytes before them. */
static size_t take(const uint8_t **data, size_t *size, const uint8_t **part) {
    if (*size < PLACE_BYTES) return 0;
    size_t n = (size_t)(*data)[0] | (size_t)((*data)[1] & 0x7F) << 8;
    *data += PLACE_BYTES;
    *size -= PLACE_BYTES;
    if (n > *size) n = *size;
    *part = *data;
    *data += n;
    *size -= n;
    return n;
}

static void write_parts(const uint8_t *data, size_t size) {
    const uint8_t *part = NULL;
    size_t n = take(&data, &size, &part);
    put(CONFIG, n > 0 ? (const void *)part : good_config, n > 0 ? n : sizeof good_config - 1);
    n = take(&data, &size, &part);
    put(INDEX, n > 0 ? (const void *)part : good_index, n > 0 ? n : sizeof good_index - 1);
    put(WEIGHTS, size > 0 ? (const void *)data : good_weights, size > 0 ? size : sizeof good_weights - 1);
    put(TOKENS, good_tokens, sizeof good_tokens - 1);
}

static void read_all(const QsfSource *s) {
    for (uint64_t i = 0; i < qsf_source_n_tensors(s); i++) {
        const QsfTensor *t = qsf_source_tensor(s, i);
        if (t->file != QSF_FILE_NONE) {
            const bool computed = t->file == qsf_source_n_files(s);
            uint64_t size = (computed ? qsf_source_virtual_file(s) : qsf_source_file(s, t->file))->size;
            if (t->offset > size || t->bytes > size - t->offset) abort();
        }
        if (t->ne[0] > sizeof row / sizeof *row) continue;
        if (strchr("FB", qsf_dtype(t->dtype)->name[0]) == NULL) continue; /* packed: no floats to read */
        uint64_t n = qsf_tensor_n_rows(t);
        if (qsf_source_read_rows(s, t, 0, 1, row, NULL) != QSF_OK) abort();
        if (qsf_source_read_rows(s, t, n - 1, 1, row, NULL) != QSF_OK) abort();
    }
    for (size_t i = 0; i < qsf_meta_count(s); i++)
        if (qsf_meta_at(s, i, NULL, NULL, NULL) == NULL) abort();
}

static void open_directory(const char *dir, bool must_open) {
    QsfLedger ledger;
    QsfSource *s;
    QsfErr e = { 0 };
    qsf_ledger_init(&ledger, (uint64_t)256 << 20);
    int rc = qsf_source_open(&s, dir, &ledger, &e);
    if (rc == QSF_OK) {
        read_all(s);
        qsf_source_close(s);
    } else if (rc != e.code || e.msg[0] == '\0' || must_open) {
        abort();
    }
    if (ledger.total != 0) abort();
    qsf_ledger_destroy(&ledger);
}

/* One directory per execution, which is twice as fast: the highest bit of the first length, which no length
 * needs, selects it. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (dirs[0][0] == '\0') begin();
    write_parts(data, size);
    if (size == 0) { /* all parts are valid */
        open_directory(dirs[0], true);
        open_directory(dirs[1], true);
    } else {
        open_directory(dirs[size > 1 && (data[1] & 0x80)], false);
    }
    return 0;
}

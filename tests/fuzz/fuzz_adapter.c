/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Fuzz target: any bytes as an adapter of a tiny model. Opens them as a LoRA adapter and as a control vector;
 * what is accepted must name matrices of the model in their shapes; must neither crash, leak, hang nor leave
 * anything charged. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "src/model/adapter.h"
#include "tests/harness/gguf_build.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
/* The leak checker does not look into mapped memory, where the open model holds the name of its file. */
void __lsan_disable(void) __attribute__((weak));
void __lsan_enable(void) __attribute__((weak));

static void check(const QsfAdapterSet *s, const QsfModel *m) {
    for (uint32_t i = 0; i < s->n_uses; i++) {
        const QsfAdapterUse *u = &s->use[i];
        const QsfAdapterPair *p = &s->adapter[u->adapter].pair[u->pair];
        const QsfUnitSpec *unit = &m->prog.unit[u->unit];
        const QsfTensor *t = unit->tensor[u->tensor];
        if (u->part >= p->n || p->cols != t->ne[0] || u->row0 >= p->rows || p->at + p->a_bytes > s->bytes)
            abort();
    }
}

static void open_as(const QsfModel *m, const char *path, bool control) {
    const QsfAdapterSpec spec = { .path = path, .scale = 0.5f };
    QsfAdapterSet *s;
    QsfLedger ledger;
    qsf_ledger_init(&ledger, (uint64_t)64 << 20);
    if (qsf_adapters_open(&s, m, &spec, !control, &spec, control, false, &ledger, NULL) == QSF_OK) {
        if (!control) check(s, m);
        qsf_adapters_close(s);
    }
    if (ledger.total != 0) abort();
    qsf_ledger_destroy(&ledger);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static QsfModel model;
    static QsfLedger models;
    static bool is_open;
    char path[64];
    if (!is_open) {
        const QsfTinySpec spec = { 0 };
        snprintf(path, sizeof path, "/tmp/fuzz_adapter.%d.gguf", (int)getpid());
        qsf_ledger_init(&models, 0);
        if (__lsan_disable != NULL) __lsan_disable();
        if (qsf_test_write_tiny_llama(path, &spec) != 0 ||
            qsf_model_open(&model, path, NULL, &models, NULL) != 0)
            abort();
        if (__lsan_enable != NULL) __lsan_enable();
        unlink(path);
        is_open = true;
    }
    int fd = memfd_create("fuzz", 0);
    if (fd < 0) return 0;
    if (size > 0 && write(fd, data, size) != (ssize_t)size) {
        close(fd);
        return 0;
    }
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    open_as(&model, path, false);
    open_as(&model, path, true);
    close(fd);
    return 0;
}

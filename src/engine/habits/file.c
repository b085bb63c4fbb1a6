/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The files of habits. */
#include "src/engine/habits/file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/base/crc32.h"
#include "src/base/heap.h"
#include "src/base/paths.h"
#include "src/base/savefile.h"
#include "src/file/habits.h"

#define FOLDER "/experts"
#define SUM    65536.0 /* of depths */

_Static_assert(QSF_EXPERT_DEPTHS == QSF_HABITS_DEPTHS, "the file has room for them");

/* ---- in memory ---- */

int qsf_habits_init(QsfHabits *h, uint32_t n, QsfLedger *ledger, QsfErr *err) {
    void *mem = NULL;
    *h = (QsfHabits){ 0 };
    int rc = qsf_heap_resize(ledger, QSF_MEM_META, 0, n * sizeof *h->uses, "habits", &mem, err);
    if (rc != QSF_OK) return rc;
    h->ledger = ledger;
    h->n = n;
    h->uses = mem;
    if (n > 0) memset(h->uses, 0, n * sizeof *h->uses);
    return QSF_OK;
}

void qsf_habits_free(QsfHabits *h) {
    void *mem = h->uses;
    if (mem != NULL)
        (void)qsf_heap_resize(h->ledger, QSF_MEM_META, h->n * sizeof *h->uses, 0, "habits", &mem, NULL);
    h->uses = NULL;
    h->n = 0;
}

static double sum_of(const uint32_t *depth) {
    double sum = 0;
    for (unsigned i = 0; i < QSF_EXPERT_DEPTHS; i++) sum += depth[i];
    return sum;
}

/* part: how much of what is known then is new. */
static void add_depth(QsfHabits *h, const uint32_t *depth, double part) {
    const double old = sum_of(h->depth), new = sum_of(depth);
    if (new <= 0) return;
    if (old <= 0) part = 1;
    for (unsigned i = 0; i < QSF_EXPERT_DEPTHS; i++) {
        const double was = old > 0 ? h->depth[i] / old : 0;
        h->depth[i] = (uint32_t)((was * (1 - part) + depth[i] / new *part) * SUM + 0.5);
    }
}

void qsf_habits_add(QsfHabits *h, const uint32_t *uses, uint32_t tokens, const uint32_t *depth) {
    const uint64_t all = (uint64_t)h->tokens + tokens;
    unsigned halved = 0;
    if (tokens == 0) return;
    while (all >> halved > QSF_HABITS_TOKENS) halved++;
    for (uint32_t e = 0; e < h->n; e++) {
        const uint64_t v = ((uint64_t)h->uses[e] + uses[e]) >> halved;
        h->uses[e] = (uint16_t)(v < UINT16_MAX ? v : UINT16_MAX);
    }
    h->tokens = (uint32_t)(all >> halved);
    if (depth != NULL) add_depth(h, depth, (double)tokens / (double)all);
}

/* ---- the file ---- */

bool qsf_habits_path(char out[QSF_PATH_MAX], uint64_t model) {
    char state[QSF_PATH_MAX], name[32];
    (void)snprintf(name, sizeof name, "/%016" PRIx64, model);
    out[0] = '\0';
    return qsf_path_state_home(state) && qsf_path_join(out, state, FOLDER, name);
}

bool qsf_habits_any(void) {
    char state[QSF_PATH_MAX], folder[QSF_PATH_MAX];
    struct stat st;
    return qsf_path_state_home(state) && qsf_path_join(folder, state, FOLDER, "") && stat(folder, &st) == 0;
}

static void put(unsigned char *p, uint64_t v, unsigned bytes) {
    for (unsigned i = 0; i < bytes; i++) p[i] = (unsigned char)(v >> 8 * i);
}

static void encode(const QsfHabits *h, uint64_t model, unsigned char *p) {
    memcpy(p, QSF_HABITS_MAGIC, QSF_HABITS_AT_VERSION);
    put(p + QSF_HABITS_AT_VERSION, QSF_HABITS_VERSION, 4);
    put(p + QSF_HABITS_AT_N, h->n, 4);
    put(p + QSF_HABITS_AT_MODEL, model, 8);
    put(p + QSF_HABITS_AT_TOKENS, h->tokens, 4);
    for (unsigned i = 0; i < QSF_EXPERT_DEPTHS; i++) put(p + QSF_HABITS_AT_DEPTH + 4 * i, h->depth[i], 4);
    for (uint32_t e = 0; e < h->n; e++) put(p + QSF_HABITS_AT_USES + 2 * (size_t)e, h->uses[e], 2);
    put(p + qsf_habits_file_bytes(h->n) - 4, qsf_crc32(0, p, qsf_habits_file_bytes(h->n) - 4), 4);
}

static void decode(QsfHabits *h, const unsigned char *p) {
    h->tokens = (uint32_t)qsf_habits_get(p + QSF_HABITS_AT_TOKENS, 4);
    for (unsigned i = 0; i < QSF_EXPERT_DEPTHS; i++) {
        const uint32_t v = (uint32_t)qsf_habits_get(p + QSF_HABITS_AT_DEPTH + 4 * i, 4);
        h->depth[i] = v < 2 * SUM ? v : 0;
    }
    for (uint32_t e = 0; e < h->n; e++) { /* at most once for a token */
        const uint16_t v = (uint16_t)qsf_habits_get(p + QSF_HABITS_AT_USES + 2 * (size_t)e, 2);
        h->uses[e] = v < h->tokens ? v : (uint16_t)h->tokens;
    }
}

/* Memory for a file; bytes back to 0 frees it. */
static int buffer(const QsfHabits *h, size_t old, size_t bytes, unsigned char **p, QsfErr *err) {
    void *mem = *p;
    int rc = qsf_heap_resize(h->ledger, QSF_MEM_META, old, bytes, "habits", &mem, err);
    *p = mem;
    return rc;
}

static int cannot(const char *path, int reason, QsfErr *err) {
    return qsf_err_set(err, QSF_E_RUNTIME, "%s: %s", path, strerror(reason));
}

int qsf_habits_read(QsfHabits *h, const char *path, uint64_t model, QsfErr *err) {
    const size_t most = qsf_habits_file_bytes(h->n) + 1;
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    unsigned char *p = NULL;
    if (fd < 0) return errno == ENOENT || errno == ENOTDIR ? QSF_OK : cannot(path, errno, err);
    int rc = buffer(h, 0, most, &p, err);
    const ssize_t n = rc == QSF_OK ? pread(fd, p, most, 0) : 0;
    if (n < 0) rc = cannot(path, errno, err);
    close(fd);
    if (p == NULL) return rc;
    const char *why = rc == QSF_OK ? qsf_habits_fault(p, (size_t)n, h->n, &model) : NULL;
    if (why != NULL) rc = qsf_err_set(err, QSF_E_MODEL, "%s: %s", path, why);
    if (rc == QSF_OK) decode(h, p);
    (void)buffer(h, most, 0, &p, NULL);
    return rc;
}

static int make_folder(const char *path, QsfErr *err) {
    char folder[QSF_PATH_MAX];
    if (!qsf_path_join(folder, path, "", "")) return cannot(path, ENAMETOOLONG, err);
    char *slash = strrchr(folder, '/');
    if (slash != NULL) *slash = '\0';
    return qsf_path_make_dirs(folder, err);
}

int qsf_habits_write(const QsfHabits *h, const char *path, uint64_t model, QsfErr *err) {
    const size_t bytes = qsf_habits_file_bytes(h->n);
    QSFSaveFile f;
    unsigned char *p = NULL;
    int rc = make_folder(path, err);
    if (rc == QSF_OK) rc = buffer(h, 0, bytes, &p, err);
    if (rc != QSF_OK) return rc;
    encode(h, model, p);
    int why = qsf_savefile_create(&f, path, 0600, NULL);
    if (why == 0) {
        why = qsf_savefile_write(&f, p, bytes);
        if (why == 0) why = qsf_savefile_replace(&f, qsf_path_name(path));
        qsf_savefile_close(&f, false);
    }
    (void)buffer(h, bytes, 0, &p, NULL);
    return why == 0 ? QSF_OK : cannot(path, why, err);
}

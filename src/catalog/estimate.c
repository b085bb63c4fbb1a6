/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What a model would do that is not on this machine yet: from its size, its name, and how fast the disk and
 * the processor were when they were measured last. */
#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "qsf_models.h"
#include "src/base/clock.h"
#include "src/base/cpus.h"
#include "src/base/paths.h"
#include "src/base/platform.h"
#include "src/catalog/rates.h"

#define READ_BYTES ((size_t)4 << 20)
#define READ_LEAST ((uint64_t)32 << 20) /* smaller files are read too quickly to tell */
#define READ_NS    250000000u
#define ALIGN      4096u

/* ---- the processor ---- */

/* Is word in name, in any case, and not the middle of another word? "Q4_K" is in "m-Q4_K_M.gguf". */
static bool has_type(const char *name, const char *word, size_t n) {
    for (const char *p = name; *p != '\0'; p++)
        if (strncasecmp(p, word, n) == 0 && (p == name || !isalnum((unsigned char)p[-1])) &&
            !isalnum((unsigned char)p[n]))
            return true;
    return false;
}

/* The speed of the type in the name; without one that of the slowest type, so that nothing is promised. */
static double compute_rate(const QsfRates *r, const char *name) {
    static const char head[] = "compute-";
    char tail[16];
    size_t best = 0;
    double found = 0, slowest = 0;
    const size_t n_tail = (size_t)snprintf(tail, sizeof tail, "-%d", qsf_cpu_count());
    for (unsigned i = 0; i < r->n; i++) {
        const char *type = r->items[i].name + sizeof head - 1;
        const size_t len = strlen(r->items[i].name);
        if (strncmp(r->items[i].name, head, sizeof head - 1) != 0 || len < sizeof head + n_tail ||
            strcmp(r->items[i].name + len - n_tail, tail) != 0)
            continue;
        const size_t n = len - (sizeof head - 1) - n_tail;
        const double bps = r->items[i].bps;
        if (slowest == 0 || bps < slowest) slowest = bps;
        if (n > best && has_type(name, type, n)) {
            best = n;
            found = bps;
        }
    }
    return found > 0 ? found : slowest;
}

/* ---- the disk ---- */

/* The device of a folder that may not exist yet. */
static bool device_of(const char *folder, dev_t *out) {
    char path[QSF_PATH_MAX];
    struct stat st;
    if (!qsf_path_join(path, folder, "", "")) return false;
    while (stat(path, &st) != 0) {
        char *slash = strrchr(path, '/');
        if (slash == NULL || slash == path) return false;
        *slash = '\0';
    }
    *out = st.st_dev;
    return true;
}

/* The largest file on that device among the blobs of one repository. */
static void largest_blob(const char *hub, const char *repo, dev_t dev, char best[QSF_PATH_MAX],
                         uint64_t *most) {
    char folder[QSF_PATH_MAX], path[QSF_PATH_MAX];
    struct stat st;
    if (!qsf_path_join(folder, hub, "/", repo) || !qsf_path_join(path, folder, "/blobs", "")) return;
    snprintf(folder, sizeof folder, "%s", path);
    DIR *d = opendir(folder);
    for (struct dirent *e; d != NULL && (e = readdir(d)) != NULL;) {
        if (e->d_name[0] == '.' || !qsf_path_join(path, folder, "/", e->d_name) || stat(path, &st) != 0 ||
            !S_ISREG(st.st_mode) || st.st_dev != dev || (uint64_t)st.st_blocks * 512 <= *most)
            continue;
        *most = (uint64_t)st.st_blocks * 512;
        memcpy(best, path, sizeof path);
    }
    if (d != NULL) closedir(d);
}

/* Bytes per second of reading it past the page cache; 0 = not measured. */
static double read_rate(const char *path) {
    uint64_t bytes = 0;
    const int plain = open(path, O_RDONLY | O_CLOEXEC), fd = plain < 0 ? -1 : qsf_os_open_direct(plain, path);
    if (plain >= 0) close(plain);
    void *buf = NULL;
    if (fd < 0 || posix_memalign(&buf, ALIGN, READ_BYTES) != 0) {
        if (fd >= 0) close(fd);
        return 0;
    }
    const uint64_t begin = qsf_now_ns();
    ssize_t got;
    while (qsf_now_ns() - begin < READ_NS && (got = read(fd, buf, READ_BYTES)) > 0) bytes += (uint64_t)got;
    const uint64_t ns = qsf_now_ns() - begin;
    free(buf);
    close(fd);
    return bytes >= READ_LEAST / 4 && ns > 0 ? (double)bytes * 1e9 / (double)ns : 0;
}

/* As remembered, or measured with a download that is there. */
static double disk_rate(const QsfRates *r, const char *hub) {
    char name[QSF_RATE_NAME], best[QSF_PATH_MAX];
    uint64_t most = READ_LEAST - 1;
    dev_t dev;
    if (!device_of(hub, &dev)) return 0;
    snprintf(name, sizeof name, "disk-%llu", (unsigned long long)dev);
    const double known = qsf_rates_get(r, name);
    if (known > 0) return known;
    DIR *d = opendir(hub);
    for (struct dirent *e; d != NULL && (e = readdir(d)) != NULL;)
        if (strncmp(e->d_name, "models--", 8) == 0) largest_blob(hub, e->d_name, dev, best, &most);
    if (d != NULL) closedir(d);
    return most >= READ_LEAST ? read_rate(best) : 0;
}

/* ---- both ---- */

void qsf_model_speeds(const char *folder, QSFModelSpeeds *out) {
    *out = (QSFModelSpeeds){ 0 };
    QsfRates *r = calloc(1, sizeof *r);
    if (r == NULL) return;
    qsf_rates_read(r);
    out->disk_bps = disk_rate(r, folder);
    out->rates = r;
}

void qsf_model_speeds_free(QSFModelSpeeds *s) {
    free(s->rates);
    *s = (QSFModelSpeeds){ 0 };
}

double qsf_model_guess(const QSFModelSpeeds *s, const char *name, uint64_t bytes, uint64_t room,
                       char *verdict, size_t cap) {
    const uint64_t streamed = bytes > room ? bytes - room : 0;
    const double compute = s->rates != NULL ? compute_rate(s->rates, name) : 0;
    double tps = compute > 0 && bytes > 0 ? compute / (double)bytes : 0;
    int n = snprintf(verdict, cap, "fits");
    if (streamed > 0) {
        const double by_disk = s->disk_bps / (double)streamed;
        n = snprintf(verdict, cap, "streams %.0f %%", 100.0 * (double)streamed / (double)bytes);
        tps = by_disk > 0 && (tps == 0 || by_disk < tps) ? by_disk : s->disk_bps > 0 ? tps : 0;
    }
    if (n < 0 || (size_t)n >= cap) return tps;
    if (tps > 0)
        snprintf(verdict + n, cap - (size_t)n, ", about %.*f tok/s", tps < 9.95 ? 1 : 0, tps);
    else if (streamed > 0)
        snprintf(verdict + n, cap - (size_t)n, ", disk not measured");
    return tps;
}

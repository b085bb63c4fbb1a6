/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Files of the state directory: rates, and the model that was loaded last. */
#include "src/catalog/rates.h"

#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "qsf_models.h"
#include "qsf_savefile.h"
#include "src/base/paths.h"
#include "src/base/strbuf.h"

#define FILE_MAX 16384

static bool state_path(const char *name, char out[QSF_PATH_MAX]) {
    char home[QSF_PATH_MAX];
    return qsf_path_state_home(home) && qsf_path_join(out, home, "/", name);
}

static size_t read_state(const char *name, char dst[FILE_MAX]) {
    char path[QSF_PATH_MAX];
    struct stat st;
    dst[0] = '\0';
    if (!state_path(name, path)) return 0;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) return 0;
    ssize_t n = fstat(fd, &st) == 0 && S_ISREG(st.st_mode) ? read(fd, dst, FILE_MAX - 1) : 0;
    close(fd);
    if (n < 0) n = 0;
    dst[n] = '\0';
    return (size_t)n;
}

static void write_state(const char *name, const char *text, size_t len) {
    QsfErr none = { 0 };
    char home[QSF_PATH_MAX], path[QSF_PATH_MAX];
    if (qsf_path_state_home(home) && qsf_path_make_dirs(home, &none) == QSF_OK && state_path(name, path))
        (void)qsf_savefile_save(path, text, len, true);
}

/* ---- rates ---- */

double qsf_rates_get(const QsfRates *r, const char *name) {
    for (unsigned i = 0; i < r->n; i++)
        if (strcmp(r->items[i].name, name) == 0) return r->items[i].bps;
    return 0;
}

void qsf_rates_put(QsfRates *r, const char *name, double bps) {
    if (!isfinite(bps) || bps <= 0 || strlen(name) >= QSF_RATE_NAME) return;
    for (unsigned i = 0; i < r->n; i++) {
        if (strcmp(r->items[i].name, name) != 0) continue;
        r->items[i].bps = bps;
        return;
    }
    if (r->n == QSF_RATES_MOST) memmove(r->items, r->items + 1, --r->n * sizeof *r->items);
    snprintf(r->items[r->n].name, QSF_RATE_NAME, "%s", name);
    r->items[r->n++].bps = bps;
}

void qsf_rates_read(QsfRates *r) {
    char text[FILE_MAX], *save = NULL;
    r->n = 0;
    (void)read_state("rates", text);
    for (char *line = strtok_r(text, "\n", &save); line != NULL; line = strtok_r(NULL, "\n", &save)) {
        char name[QSF_RATE_NAME], *end;
        const size_t len = strcspn(line, " ");
        if (len == 0 || len >= sizeof name || line[len] != ' ') continue;
        memcpy(name, line, len);
        name[len] = '\0';
        const double bps = strtod(line + len + 1, &end);
        if (*end == '\0' && end != line + len + 1) qsf_rates_put(r, name, bps);
    }
}

void qsf_rates_write(const QsfRates *r) {
    QsfStrbuf b = QSF_STRBUF_INIT;
    for (unsigned i = 0; i < r->n; i++) qsf_strbuf_addf(&b, "%s %.0f\n", r->items[i].name, r->items[i].bps);
    if (qsf_strbuf_ok(&b)) write_state("rates", qsf_strbuf_str(&b), b.len);
    qsf_strbuf_free(&b);
}

/* ---- the last model ---- */

char *qsf_model_last(void) {
    char text[FILE_MAX];
    (void)read_state("last-model", text);
    text[strcspn(text, "\n")] = '\0';
    return *text == '/' && access(text, F_OK) == 0 ? strdup(text) : NULL;
}

void qsf_model_remember(const char *path) {
    char here[QSF_PATH_MAX], whole[QSF_PATH_MAX];
    for (const unsigned char *c = (const unsigned char *)path; *c != '\0'; c++)
        if (*c < 0x20 || *c == 0x7F) return;
    while (path[0] == '.' && path[1] == '/') path += 2;
    bool ok = *path == '/' ? qsf_path_join(whole, path, "", "")
                           : getcwd(here, sizeof here) != NULL && qsf_path_join(whole, here, "/", path);
    if (!ok || !qsf_path_join(here, whole, "\n", "")) return;
    char *last = qsf_model_last();
    if (last == NULL || strcmp(last, whole) != 0) write_state("last-model", here, strlen(here));
    free(last);
}

/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Reads choices of experts: traces, which are text, and files of habits, which are counts. */
#include "src/convert/pack/expert_uses.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/file/habits.h"

#define LINE_MAX_BYTES 16384u
#define NUMBER_MAX     1000000000u

typedef struct Reader {
    QsfExpertUses *u;
    const bool *has;
    const char *path;
    uint64_t line;
    QsfErr *err;
} Reader;

static int wrong(const Reader *r, const char *what) {
    return qsf_err_set(r->err, QSF_E_MODEL, "%s: line %" PRIu64 ": %s", r->path, r->line, what);
}

/* A decimal number, and the blank after it. */
static bool number(const char **p, uint32_t *out) {
    const char *c = *p;
    uint64_t v = 0;
    for (; *c >= '0' && *c <= '9' && v <= NUMBER_MAX; c++) v = v * 10 + (uint64_t)(*c - '0');
    if (c == *p || v > NUMBER_MAX || (*c != ' ' && *c != '\0')) return false;
    *out = (uint32_t)v;
    *p = *c == ' ' ? c + 1 : c;
    return true;
}

/* "# layers 16 experts 64 used 8 bytes 3538944" and others. */
static int read_facts(const Reader *r, const char *p) {
    uint32_t v;
    if (r->line == 1) return strcmp(p, "# experts 1") == 0 ? QSF_OK : wrong(r, "expected \"# experts 1\"");
    const char *experts = strncmp(p, "# layers ", 9) == 0 ? strstr(p, " experts ") : NULL;
    if (experts == NULL) return QSF_OK;
    experts += strlen(" experts ");
    if (!number(&experts, &v)) return wrong(r, "expected the number of experts");
    return v == r->u->n_experts ? QSF_OK : wrong(r, "another model: it has a different number of experts");
}

static int read_token(const Reader *r, const char *p) {
    uint32_t position, layer, expert;
    if (!number(&p, &position) || !number(&p, &layer)) return wrong(r, "expected a position and a layer");
    if (layer >= r->u->n_layers) return wrong(r, "another model: it has fewer layers");
    while (*p != '\0') {
        if (!number(&p, &expert)) return wrong(r, "expected the number of an expert");
        if (expert >= r->u->n_experts) return wrong(r, "another model: it has fewer experts");
        r->u->n[(size_t)layer * r->u->n_experts + expert]++;
    }
    return QSF_OK;
}

static int read_lines(Reader *r, FILE *f) {
    char text[LINE_MAX_BYTES];
    int rc = QSF_OK;
    while (rc == QSF_OK && fgets(text, sizeof text, f) != NULL) {
        const size_t n = strcspn(text, "\n");
        r->line++;
        if (text[n] == '\0' && n + 1 == sizeof text) return wrong(r, "it is too long");
        text[n] = '\0';
        rc = text[0] == '#' || r->line == 1 ? read_facts(r, text) : read_token(r, text);
    }
    if (rc == QSF_OK && ferror(f))
        rc = qsf_err_set(r->err, QSF_E_RUNTIME, "%s: %s", r->path, strerror(errno));
    return rc == QSF_OK && r->line == 0 ? wrong(r, "the file is empty") : rc;
}

/* ---- habits ---- */

static bool is_habits(FILE *f) {
    char magic[QSF_HABITS_AT_VERSION];
    const bool is = fread(magic, 1, sizeof magic, f) == sizeof magic &&
                    memcmp(magic, QSF_HABITS_MAGIC, sizeof magic) == 0;
    rewind(f);
    return is;
}

/* The experts of the layers that have any follow one another. */
static void take_counts(const QsfExpertUses *u, const bool *has, const unsigned char *p) {
    for (uint32_t layer = 0; layer < u->n_layers; layer++) {
        if (!has[layer]) continue;
        for (uint32_t e = 0; e < u->n_experts; e++, p += 2)
            u->n[(size_t)layer * u->n_experts + e] = qsf_habits_get(p, 2);
    }
}

static int read_habits(const Reader *r, FILE *f) {
    uint32_t n = 0;
    for (uint32_t layer = 0; layer < r->u->n_layers; layer++) n += r->has[layer] ? r->u->n_experts : 0;
    const size_t most = qsf_habits_file_bytes(n) + 1;
    unsigned char *p = malloc(most);
    if (p == NULL) return qsf_err_memory(r->err, "uses of experts");
    const size_t bytes = fread(p, 1, most, f);
    int rc = ferror(f) ? qsf_err_set(r->err, QSF_E_RUNTIME, "%s: %s", r->path, strerror(errno)) : QSF_OK;
    const char *why = rc == QSF_OK ? qsf_habits_fault(p, bytes, n, NULL) : NULL;
    if (why != NULL) rc = qsf_err_set(r->err, QSF_E_MODEL, "%s %s", r->path, why);
    if (rc == QSF_OK) take_counts(r->u, r->has, p + QSF_HABITS_AT_USES);
    free(p);
    return rc;
}

int qsf_expert_uses_read(QsfExpertUses *out, const char *path, uint32_t n_layers, uint32_t n_experts,
                         const bool *has, QsfErr *err) {
    Reader r = { .u = out, .has = has, .path = path, .err = err };
    *out = (QsfExpertUses){ n_layers, n_experts, calloc((size_t)n_layers * n_experts + 1, sizeof *out->n) };
    if (out->n == NULL) return qsf_err_memory(err, "uses of experts");
    FILE *f = fopen(path, "re");
    int rc = f == NULL      ? qsf_err_set(err, QSF_E_USAGE, "%s: cannot open: %s", path, strerror(errno))
             : is_habits(f) ? read_habits(&r, f)
                            : read_lines(&r, f);
    if (f != NULL) fclose(f);
    if (rc != QSF_OK) qsf_expert_uses_free(out);
    return rc;
}

void qsf_expert_uses_free(QsfExpertUses *u) {
    free(u->n);
    *u = (QsfExpertUses){ 0 };
}

uint32_t qsf_expert_uses_seldom(const QsfExpertUses *u, uint32_t layer, bool *which) {
    const uint64_t *n = u->n + (size_t)layer * u->n_experts;
    uint64_t all = 0, sum = 0;
    uint32_t found = 0;
    for (uint32_t e = 0; e < u->n_experts; e++) {
        all += n[e];
        which[e] = false;
    }
    while (all > 0 && found < u->n_experts) {
        uint32_t least = u->n_experts;
        for (uint32_t e = 0; e < u->n_experts; e++)
            if (!which[e] && (least == u->n_experts || n[e] <= n[least])) least = e;
        sum += n[least];
        if ((double)sum > QSF_SELDOM_SHARE * (double)all) break;
        which[least] = true;
        found++;
    }
    return found;
}

/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Finds an architecture among the tables of all vendors, and how names of tensors fit their patterns. */
#include <stdlib.h>
#include <string.h>

#include "src/file/hf/arch/vendors.h"

#define DIGITS_MAX 5

#define TABLE(vendor) qsf_hf_arch_##vendor,
static const QsfHfArch *const vendors[] = { QSF_HF_VENDORS(TABLE) };

/* Returns architecture i, NULL past the end. */
static const QsfHfArch *arch_at(unsigned i) {
    for (size_t v = 0; v < sizeof vendors / sizeof *vendors; v++)
        for (const QsfHfArch *a = vendors[v]; a->name != NULL; a++)
            if (i-- == 0) return a;
    return NULL;
}

static bool applies(const QsfHfModel *m, const QsfHfMust *row) {
    for (; row != NULL && row->hf != NULL; row++)
        if (!qsf_hf_is(m, row)) return false;
    return true;
}

const QsfHfArch *qsf_hf_arch_find(const QsfHfModel *m, const char *name) {
    const QsfHfArch *a;
    for (unsigned i = 0; (a = arch_at(i)) != NULL; i++)
        if (strcmp(a->name, name) == 0 && applies(m, a->when)) return a;
    return NULL;
}

const QsfHfArch *qsf_hf_arch_of_gguf(const char *gguf, unsigned i) {
    const QsfHfArch *a;
    for (unsigned k = 0; (a = arch_at(k)) != NULL; k++)
        if (strcmp(a->gguf, gguf) == 0 && i-- == 0) return a;
    return NULL;
}

/* Parses a number without leading zeros and moves *p past it. */
static bool read_number(const char **p, int32_t *v) {
    const size_t n = strspn(*p, "0123456789");
    if (n == 0 || n > DIGITS_MAX || (**p == '0' && n > 1)) return false;
    *v = (int32_t)strtol(*p, NULL, 10);
    *p += n;
    return true;
}

bool qsf_hf_name_fits(const char *pattern, const char *name, int32_t *layer, int32_t *expert) {
    *layer = *expert = -1;
    for (; *pattern != '\0'; pattern++) {
        if (*pattern == '#' || *pattern == '*') {
            if (!read_number(&name, *pattern == '#' ? layer : expert)) return false;
        } else if (*pattern != *name++) {
            return false;
        }
    }
    return *name == '\0';
}

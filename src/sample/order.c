/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The order of the stages as text. */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "src/sample/chain.h"

/* Is name[0..n) the C string b? '_' equals '-'. */
static bool same(const char *name, size_t n, const char *b, size_t b_len) {
    if (n != b_len) return false;
    for (size_t i = 0; i < n; i++)
        if ((name[i] == '_' ? '-' : name[i]) != b[i]) return false;
    return true;
}

static bool has_name(const QsfStage *s, const char *name, size_t n) {
    if (same(name, n, s->name, strlen(s->name))) return true;
    for (const char *a = s->aliases; *a != '\0';) {
        const size_t len = strcspn(a, ",");
        if (same(name, n, a, len)) return true;
        a += len + (a[len] == ',');
    }
    return false;
}

/* Constraints are never a matter of order. */
static bool may_be_named(size_t i) {
    const QsfStage *s = qsf_sampler_stages[i];
    return !(s->flags & QSF_STAGE_FIXED) || !(s->flags & QSF_STAGE_LOGITS);
}

static size_t find(const char *name, size_t n) {
    for (size_t i = 0; i < qsf_n_sampler_stages; i++)
        if (may_be_named(i) && has_name(qsf_sampler_stages[i], name, n)) return i;
    return qsf_n_sampler_stages;
}

static void say_unknown(const char *name, size_t n, char *why, size_t cap) {
    int at = snprintf(why, cap, "samplers: '%.*s' is unknown; known are", n > 40 ? 40 : (int)n, name);
    for (size_t i = 0; i < qsf_n_sampler_stages && at >= 0 && (size_t)at < cap; i++)
        if (may_be_named(i)) at += snprintf(why + at, cap - (size_t)at, " %s", qsf_sampler_stages[i]->name);
}

bool qsf_samplers_parse(const char *text, uint8_t *out, char *why, size_t cap) {
    size_t count = 0;
    memset(out, 0, QSF_SAMPLERS_MAX);
    if (strcasecmp(text, "default") == 0) return true;
    for (const char *at = text;; at++) {
        const size_t n = strcspn(at, ",;"), stage = find(at, n);
        if (stage == qsf_n_sampler_stages) {
            say_unknown(at, n, why, cap);
            return false;
        }
        if (memchr(out, (int)stage + 1, count) != NULL) {
            snprintf(why, cap, "samplers: '%s' comes twice", qsf_sampler_stages[stage]->name);
            return false;
        }
        out[count++] = (uint8_t)(stage + 1);
        at += n;
        if (*at == '\0') return true;
    }
}

void qsf_samplers_print(const uint8_t *samplers, char *dst, size_t cap) {
    int at = snprintf(dst, cap, "%s", samplers[0] == 0 ? "default" : "");
    for (size_t i = 0; i < QSF_SAMPLERS_MAX && samplers[i] > 0 && samplers[i] <= qsf_n_sampler_stages; i++) {
        if (at < 0 || (size_t)at >= cap) return;
        at += snprintf(dst + at, cap - (size_t)at, "%s%s", i > 0 ? "," : "",
                       qsf_sampler_stages[samplers[i] - 1]->name);
    }
}

/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The normalizer: each step writes a new text, with a mask of what is trusted. */
#include <stdlib.h>
#include <string.h>

#include "src/base/interrupt.h"
#include "src/base/utf8.h"
#include "src/token/chars.h"
#include "src/token/steps.h"

#define CHECK_EVERY 256u       /* calls of check() between two looks at the interrupt flag */
#define LIMIT_FEW   (1u << 20) /* bytes that a step may always write */
#define LIMIT_SOME  4u         /* ... and that for each byte of the text */
#define LIMIT_TIMES 64u        /* ... or that, if there is memory for it */
#define BYTES_PER_BYTE \
    8u                   /* of memory for a byte of normalized text: two copies, a mask, what is made of it */
#define FORM_PART 65536u /* bytes of a text that are put into a normal form at once */

/* The text that a step reads, and where it writes. */
typedef struct Pass {
    const QsfTextSteps *s;
    const QsfTextStep *step;
    QsfRegexScratch *scratch;
    const char *text; /* (len) */
    size_t len;
    const uint8_t *mask; /* (len), or NULL */
    QsfMasked *out;
    QsfWhere *where;
    size_t first;       /* QsfWhere.lead in text; where->lead is that in out */
    size_t given, most; /* bytes of the text before the first step, and how many a step may write */
} Pass;

/* A few replacements in a row can make gigabytes of a short text: no tokenizer of a model multiplies a text
 * by so much. If memory is short, the limit is lower. */
static size_t most_written(const QsfTextSteps *s, size_t given) {
    const size_t few = LIMIT_FEW + LIMIT_SOME * given, many = LIMIT_FEW + LIMIT_TIMES * given;
    QsfLedger now;
    if (s->ledger == NULL) return many;
    qsf_ledger_snapshot(s->ledger, &now);
    if (now.limit == UINT64_MAX) return many;
    const uint64_t free_bytes = now.limit > now.total ? now.limit - now.total : 0;
    if (free_bytes / BYTES_PER_BYTE >= many) return many;
    return free_bytes / BYTES_PER_BYTE > few ? (size_t)(free_bytes / BYTES_PER_BYTE) : few;
}

/* Called in all loops: returns whether to continue. *n counts the calls. */
static int check(const Pass *p, unsigned *n, QsfErr *err) {
    if (p->out->text.len > p->most)
        return qsf_err_set(err, QSF_E_RUNTIME,
                           "%s: its normalizer makes more than %zu bytes of a text of %zu bytes",
                           p->s->path != NULL ? p->s->path : "the model", p->most, p->given);
    return ++*n % CHECK_EVERY == 0 ? qsf_interrupt_check(err) : QSF_OK;
}

/* Copies text[begin..end). */
static void keep(const Pass *p, size_t begin, size_t end) {
    if (begin <= p->first && p->first < end) p->where->lead = p->out->text.len + p->first - begin;
    qsf_strbuf_add(&p->out->text, p->text + begin, end - begin);
    if (p->mask != NULL) qsf_strbuf_add(&p->out->mask, p->mask + begin, end - begin);
}

/* Writes s instead of text[begin..end); where that is empty, s is trusted if its neighbours are. */
static void put(const Pass *p, const char *s, size_t n, size_t begin, size_t end) {
    qsf_strbuf_add(&p->out->text, s, n);
    if (begin <= p->first && p->first < end) p->where->lead = p->out->text.len - (p->out->text.len > 0);
    if (p->mask == NULL) return;
    if (begin == end) {
        begin -= begin > 0;
        end += end < p->len;
    }
    const bool trusted = memchr(p->mask + begin, 0, end - begin) == NULL;
    for (size_t i = 0; i < n; i++) qsf_strbuf_addc(&p->out->mask, trusted);
}

/* Drops text[begin..end). */
static void drop(const Pass *p, size_t begin, size_t end) {
    if (begin == 0 && end > 0) p->where->at_start = false;
    if (begin <= p->first && p->first < end) p->where->lead = p->out->text.len - (p->out->text.len > 0);
}

/* Writes s instead of text[begin..end): what is the same at both ends keeps its trust. */
static void put_changes(const Pass *p, const char *s, size_t n, size_t begin, size_t end) {
    const size_t most = n < end - begin ? n : end - begin;
    size_t head = 0, tail = 0;
    while (head < most && s[head] == p->text[begin + head]) head++;
    while (tail < most - head && s[n - 1 - tail] == p->text[end - 1 - tail]) tail++;
    keep(p, begin, begin + head);
    if (n > head + tail) put(p, s + head, n - head - tail, begin + head, end - tail);
    keep(p, end - tail, end);
}

/* Normal forms change nothing between two ASCII characters: the length of the text at `at` that none of them
 * changes, 0 if the character there may be changed. */
static size_t plain_part(const Pass *p, size_t at) {
    size_t end = at;
    while (end < p->len && (unsigned char)p->text[end] < 0x80) end++;
    return end == p->len || end == at ? end - at : end - at - 1;
}

/* The end of the part that begins at `at` and ends between two ASCII characters. Without a mask, parts only
 * need to be short enough to be written at once. */
static size_t form_part(const Pass *p, size_t at) {
    size_t end = at + 1;
    if (p->mask == NULL && p->len - at > FORM_PART) end += FORM_PART;
    if (p->mask == NULL && p->len - at <= FORM_PART) return p->len;
    while (end < p->len && !((unsigned char)p->text[end] < 0x80 && (unsigned char)p->text[end - 1] < 0x80))
        end++;
    return end;
}

static int form(const Pass *p, QsfErr *err) {
    unsigned parts = 0;
    for (size_t at = 0, end, n; at < p->len; at = end) {
        if (p->mask == NULL || parts++ % 256 == 0)
            if (qsf_interrupted()) return qsf_interrupt_check(err);
        end = at + plain_part(p, at);
        keep(p, at, end);
        if (end > at) continue;
        end = form_part(p, at);
        char *s = qsf_normal_form(p->text + at, end - at, p->step->form, &n);
        if (s == NULL)
            return qsf_interrupted() ? qsf_interrupt_check(err) : qsf_err_memory(err, "tokenizing");
        const size_t lead = p->first - at + p->out->text.len;
        if (p->mask != NULL)
            put_changes(p, s, n, at, end);
        else
            qsf_strbuf_add(&p->out->text, s, n);
        if (at <= p->first && p->first < end)
            p->where->lead = lead < p->out->text.len ? lead : p->out->text.len - (p->out->text.len > 0);
        free(s);
    }
    return QSF_OK;
}

static int replace(const Pass *p, QsfErr *err) {
    QsfMatches m = { 0 };
    size_t done = 0, begin, end;
    unsigned n = 0;
    while (qsf_matches_next(&m, p->step->re, p->scratch, p->text, p->len, &begin, &end)) {
        keep(p, done, begin);
        put(p, p->step->text, p->step->len, begin, end);
        if (p->step->len == 0) drop(p, begin, end);
        done = end;
        int rc = check(p, &n, err);
        if (rc != QSF_OK) return rc;
    }
    keep(p, done, p->len);
    return qsf_interrupt_check(err);
}

static int replace_text(const Pass *p, QsfErr *err) {
    const QsfTextStep *step = p->step;
    size_t done = 0;
    unsigned n = 0;
    for (const char *at; (at = memmem(p->text + done, p->len - done, step->text, step->len)) != NULL;) {
        size_t begin = (size_t)(at - p->text);
        keep(p, done, begin);
        done = begin + step->len;
        put(p, step->by, step->by_len, begin, done);
        if (step->by_len == 0) drop(p, begin, done);
        int rc = check(p, &n, err);
        if (rc != QSF_OK) return rc;
    }
    keep(p, done, p->len);
    return QSF_OK;
}

static int prepend(const Pass *p, QsfErr *err) {
    (void)err;
    if (!p->where->at_start || !p->where->without_prefix) put(p, p->step->text, p->step->len, 0, 0);
    keep(p, 0, p->len);
    return QSF_OK;
}

static int strip(const Pass *p, QsfErr *err) {
    size_t begin = 0, end = p->len;
    uint32_t cp;
    unsigned chars = 0;
    for (size_t n; p->step->left && begin < end; begin += n) {
        if (++chars % 4096 == 0 && qsf_interrupted()) return qsf_interrupt_check(err);
        n = qsf_char_at(p->text + begin, end - begin, &cp);
        if (!qsf_char_is_space(cp)) break;
    }
    for (size_t n; p->step->right && end > begin; end -= n) {
        if (++chars % 4096 == 0 && qsf_interrupted()) return qsf_interrupt_check(err);
        n = qsf_char_before(p->text, end, &cp);
        if (!qsf_char_is_space(cp)) break;
    }
    drop(p, 0, begin);
    keep(p, begin, end);
    return QSF_OK;
}

/* Replaces text[begin..end), if the table has it. */
static bool map_part(const Pass *p, size_t begin, size_t end) {
    size_t n;
    const char *s = qsf_charsmap_first(p->s->charsmap, p->text + begin, end - begin, &n);
    if (s == NULL) return false;
    put(p, s, n, begin, end);
    if (n == 0) drop(p, begin, end);
    return true;
}

/* The reference looks for whole grapheme clusters of up to 5 bytes, then for each character. */
static int charsmap(const Pass *p, QsfErr *err) {
    unsigned clusters = 0;
    for (size_t at = 0, end; at < p->len; at = end) {
        end = at + qsf_grapheme_next(p->text + at, p->len - at, NULL);
        int rc = check(p, &clusters, err);
        if (rc != QSF_OK) return rc;
        if (end - at < 6 && map_part(p, at, end)) continue;
        for (size_t i = at, next; i < end; i = next) {
            uint32_t cp;
            if (i - at > 4096 && i % 64 == 0 && qsf_interrupted()) return qsf_interrupt_check(err);
            next = i + qsf_char_at(p->text + i, end - i, &cp);
            if (!map_part(p, i, next)) keep(p, i, next);
        }
    }
    return QSF_OK;
}

static bool nmt_drops(uint32_t c) {
    return (c >= 1 && c <= 8) || c == 0x0B || (c >= 0x0E && c <= 0x1F) || c == 0x7F || c == 0x8F || c == 0x9F;
}

static bool nmt_blanks(uint32_t c) {
    return c == 9 || c == 0x0A || c == 0x0C || c == 0x0D || c == 0x1680 || (c >= 0x200B && c <= 0x200F) ||
           c == 0x2028 || c == 0x2029 || c == 0x2581 || c == 0xFEFF || c == 0xFFFD;
}

static int nmt(const Pass *p, QsfErr *err) {
    unsigned chars = 0;
    for (size_t at = 0, n; at < p->len; at += n) {
        uint32_t cp;
        if (++chars % 4096 == 0 && qsf_interrupted()) return qsf_interrupt_check(err);
        n = qsf_char_at(p->text + at, p->len - at, &cp);
        if (nmt_drops(cp)) {
            drop(p, at, at + n);
        } else if (nmt_blanks(cp)) {
            put(p, " ", 1, at, at + n);
        } else {
            keep(p, at, at + n);
        }
    }
    return QSF_OK;
}

static int (*const APPLY[QSF_TEXT_STEP_SPLIT])(const Pass *p, QsfErr *err) = {
    [QSF_TEXT_STEP_FORM] = form,
    [QSF_TEXT_STEP_REPLACE] = replace,
    [QSF_TEXT_STEP_REPLACE_TEXT] = replace_text,
    [QSF_TEXT_STEP_PREPEND] = prepend,
    [QSF_TEXT_STEP_STRIP] = strip,
    [QSF_TEXT_STEP_CHARSMAP] = charsmap,
    [QSF_TEXT_STEP_NMT] = nmt,
};

static void clear(QsfMasked *m) {
    qsf_strbuf_clear(&m->text);
    qsf_strbuf_clear(&m->mask);
}

int qsf_steps_normalize(const QsfTextSteps *s, QsfRegexScratch *scratch, const char *text, size_t len,
                        const uint8_t *mask, QsfWhere *where, QsfMasked *out, QsfMasked *other, QsfErr *err) {
    Pass p = {
        .s = s,
        .scratch = scratch,
        .text = text,
        .len = len,
        .mask = mask,
        .out = out,
        .where = where,
        .given = len,
        .most = most_written(s, len),
    };
    int rc = qsf_interrupt_check(err);
    clear(out);
    if (s->n_normal == 0) keep(&p, 0, len);
    for (unsigned i = 0; i < s->n_normal && p.len > 0 && rc == QSF_OK; i++) {
        clear(out);
        p.step = &s->step[i];
        p.first = where->lead;
        rc = APPLY[p.step->kind](&p, err);
        if (rc == QSF_OK && (!qsf_strbuf_ok(&out->text) || !qsf_strbuf_ok(&out->mask)))
            rc = qsf_err_memory(err, "tokenizing");
        p.len = out->text.len;
        if (i + 1 == s->n_normal || rc != QSF_OK) break;
        const QsfMasked written = *out; /* becomes the next step's input */
        *out = *other;
        *other = written;
        p.text = qsf_strbuf_str(&other->text);
        p.mask = mask != NULL ? (const uint8_t *)qsf_strbuf_str(&other->mask) : NULL;
        if (p.len == 0) clear(out);
    }
    return rc;
}

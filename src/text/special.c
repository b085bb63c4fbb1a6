/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Special tokens in a text. One pass finds the longest token at every place; a heap then accepts them by
 * length. A place whose token overlaps an accepted one tries its next shorter token. */
#include "src/text/special.h"

#include <stdlib.h>
#include <string.h>

#include "src/text/think.h"

uint64_t qsf_specials_bytes(uint32_t n) {
    return (uint64_t)n * (sizeof(uint32_t) + sizeof(int32_t)) + 2 * 16;
}

static bool is_special(const QsfVocab *v, int32_t id) {
    size_t len;
    (void)qsf_vocab_text(v, id, &len);
    QsfTokenType t = qsf_vocab_type(v, id);
    return len > 0 && (t == QSF_TOKEN_UNKNOWN || t == QSF_TOKEN_CONTROL || t == QSF_TOKEN_USER);
}

static int compare_texts(const QsfVocab *v, uint32_t a, uint32_t b) {
    size_t len_a, len_b;
    const char *ta = qsf_vocab_text(v, (int32_t)a, &len_a), *tb = qsf_vocab_text(v, (int32_t)b, &len_b);
    int c = memcmp(ta, tb, len_a < len_b ? len_a : len_b);
    if (c != 0) return c;
    if (len_a != len_b) return len_a < len_b ? -1 : 1;
    return a < b ? -1 : a > b;
}

static void sift(const QsfVocab *v, uint32_t *a, size_t n, size_t i) {
    uint32_t x = a[i];
    for (size_t child; (child = 2 * i + 1) < n; i = child) {
        if (child + 1 < n && compare_texts(v, a[child], a[child + 1]) < 0) child++;
        if (compare_texts(v, a[child], x) <= 0) break;
        a[i] = a[child];
    }
    a[i] = x;
}

/* Heap sort: qsort has no context argument, and glibc's takes memory. */
static void sort_by_text(const QsfVocab *v, uint32_t *a, size_t n) {
    for (size_t i = n / 2; i-- > 0;) sift(v, a, n, i);
    for (size_t end = n; end-- > 1;) {
        uint32_t top = a[0];
        a[0] = a[end];
        a[end] = top;
        sift(v, a, end, 0);
    }
}

static bool begins_with(const QsfVocab *v, uint32_t id, uint32_t prefix) {
    size_t len, n;
    const char *s = qsf_vocab_text(v, (int32_t)id, &len), *p = qsf_vocab_text(v, (int32_t)prefix, &n);
    return n <= len && memcmp(s, p, n) == 0;
}

/* In sorted order, a token's prefixes come before it, each a prefix of the next. */
static void link_prefixes(QsfSpecials *s) {
    for (uint32_t i = 0; i < s->n; i++) {
        int32_t p = (int32_t)i - 1;
        while (p >= 0 && !begins_with(s->vocab, s->id[i], s->id[p])) p = s->shorter[p];
        s->shorter[i] = p;
    }
}

static void index_first_bytes(QsfSpecials *s) {
    uint32_t i = 0;
    for (unsigned b = 0; b < 256; b++) {
        s->first[b] = i;
        size_t len;
        while (i < s->n && (unsigned char)*qsf_vocab_text(s->vocab, (int32_t)s->id[i], &len) == b) i++;
    }
    s->first[256] = i;
}

int qsf_specials_init(QsfSpecials *s, const QsfVocab *v, QsfArena *arena, QsfErr *err) {
    *s = (QsfSpecials){ .vocab = v };
    uint32_t n = 0;
    for (uint32_t i = 0; i < v->n; i++) n += is_special(v, (int32_t)i);
    s->id = qsf_arena_alloc(arena, n * sizeof *s->id, sizeof *s->id, err);
    s->shorter = qsf_arena_alloc(arena, n * sizeof *s->shorter, sizeof *s->shorter, err);
    if (s->id == NULL || s->shorter == NULL) return err->code;
    for (uint32_t i = 0; i < v->n; i++) {
        if (!is_special(v, (int32_t)i)) continue;
        s->id[s->n++] = i;
        s->n_user += qsf_vocab_type(v, (int32_t)i) == QSF_TOKEN_USER;
    }
    sort_by_text(v, s->id, s->n);
    link_prefixes(s);
    index_first_bytes(s);
    return QSF_OK;
}

/* --- matching --- */

typedef struct Match {
    size_t pos;
    uint32_t len;
    uint32_t token; /* index in QsfSpecials.id */
} Match;

typedef struct Search {
    const QsfSpecials *s;
    const char *text;
    size_t len;
    bool control;
    const uint8_t *trusted; /* (len), NULL = all of it */
    Match *heap;            /* (n) */
    size_t n, cap;
    unsigned char *taken; /* (len) inside a token, or stripped by one; NULL while nothing matched */
    QsfFragment *frag;    /* (n_frag) tokens found, in the order found */
    size_t n_frag, cap_frag;
} Search;

static bool has_affixes(const char *t, size_t len, const char *head, const char *tail) {
    size_t h = strlen(head), e = strlen(tail);
    return len > h + e && memcmp(t, head, h) == 0 && memcmp(t + len - e, tail, e) == 0;
}

/* Whether a user-defined token is chat markup. Many files give <|user|> or [INST] this type, which is also
 * used for runs of spaces and HTML tags, and those must remain tokens in user text. */
static bool is_structural(const char *t, size_t len) {
    static const char *const affixes[][2] = {
        { "<|", "|>" }, { "<\xEF\xBD\x9C", "\xEF\xBD\x9C>" }, { "<start_of_", ">" }, { "<end_of_", ">" },
        { "<|", ">" },
    };
    for (size_t i = 0; i < sizeof affixes / sizeof affixes[0]; i++) {
        if (has_affixes(t, len, affixes[i][0], affixes[i][1])) return true;
    }
    if (qsf_think_is_tag(t, len)) return true;
    if (!has_affixes(t, len, "[", "]")) return false;
    for (size_t i = 1; i + 1 < len; i++) {
        if (!(t[i] >= 'A' && t[i] <= 'Z') && t[i] != '_' && t[i] != '/') return false;
    }
    return true;
}

static bool all_trusted(const Search *q, size_t pos, size_t len) {
    return q->trusted == NULL || memchr(q->trusted + pos, 0, len) == NULL;
}

/* Whether the token with index i may be used at pos. */
static bool may_take(const Search *q, int32_t i, size_t pos) {
    size_t len;
    int32_t id = (int32_t)q->s->id[i];
    const char *t = qsf_vocab_text(q->s->vocab, id, &len);
    if (qsf_vocab_type(q->s->vocab, id) != QSF_TOKEN_USER) return q->control && all_trusted(q, pos, len);
    return q->trusted == NULL || !is_structural(t, len) || all_trusted(q, pos, len);
}

/* Follows the prefixes of token index i to the first that may be used at pos; -1 = none. */
static int32_t usable(const Search *q, int32_t i, size_t pos) {
    while (i >= 0 && !may_take(q, i, pos)) i = q->s->shorter[i];
    return i;
}

/* Byte `depth` of the text of the token with index i, -1 after its end. */
static int byte_of(const QsfSpecials *s, uint32_t i, size_t depth) {
    size_t len;
    const char *t = qsf_vocab_text(s->vocab, (int32_t)s->id[i], &len);
    return depth < len ? (unsigned char)t[depth] : -1;
}

/* First index in [lo, hi) whose byte at depth is at least b. */
static uint32_t lower_bound(const QsfSpecials *s, uint32_t lo, uint32_t hi, size_t depth, int b) {
    while (lo < hi) {
        uint32_t mid = lo + (hi - lo) / 2;
        if (byte_of(s, mid, depth) < b) {
            lo = mid + 1;
        } else {
            hi = mid;
        }
    }
    return lo;
}

/* Index of the longest token at text[0..len), -1 = none: narrows the range of texts byte by byte. */
static int32_t longest_at(const QsfSpecials *s, const char *text, size_t len) {
    uint32_t lo = s->first[(unsigned char)text[0]], hi = s->first[(unsigned char)text[0] + 1];
    int32_t best = -1;
    for (size_t depth = 1; lo < hi; depth++) {
        if (byte_of(s, lo, depth) < 0) best = (int32_t)lo; /* ends here; the shortest text sorts first */
        if (depth == len) break;
        int b = (unsigned char)text[depth];
        lo = lower_bound(s, lo, hi, depth, b);
        hi = lower_bound(s, lo, hi, depth, b + 1);
    }
    return best;
}

static bool before(const QsfSpecials *s, const Match *a, const Match *b) {
    if (a->len != b->len) return a->len > b->len;
    if (a->token != b->token) return s->id[a->token] < s->id[b->token];
    return a->pos < b->pos;
}

static void sift_match(Search *q, size_t i) {
    Match x = q->heap[i];
    for (size_t child; (child = 2 * i + 1) < q->n; i = child) {
        if (child + 1 < q->n && before(q->s, &q->heap[child + 1], &q->heap[child])) child++;
        if (!before(q->s, &q->heap[child], &x)) break;
        q->heap[i] = q->heap[child];
    }
    q->heap[i] = x;
}

static uint32_t token_len(const QsfSpecials *s, int32_t i) {
    size_t len;
    (void)qsf_vocab_text(s->vocab, (int32_t)s->id[i], &len);
    return (uint32_t)len;
}

/* Grows an array on the heap by one element; NULL without memory. */
static void *room(void *p, size_t n, size_t *cap, size_t elem, QsfErr *err) {
    if (n < *cap) return p;
    size_t want = *cap < 16 ? 16 : 2 * *cap;
    void *grown = want > SIZE_MAX / elem ? NULL : realloc(p, want * elem);
    if (grown == NULL) {
        qsf_err_memory(err, "%zu special tokens in one text", n);
        return NULL;
    }
    *cap = want;
    return grown;
}

static int find_matches(Search *q, QsfErr *err) {
    for (size_t pos = 0; pos < q->len; pos++) {
        unsigned char b = (unsigned char)q->text[pos];
        if (q->s->first[b] == q->s->first[b + 1]) continue;
        int32_t i = usable(q, longest_at(q->s, q->text + pos, q->len - pos), pos);
        if (i < 0) continue;
        Match *heap = room(q->heap, q->n, &q->cap, sizeof *heap, err);
        if (heap == NULL) return QSF_E_RUNTIME;
        q->heap = heap;
        heap[q->n++] = (Match){ .pos = pos, .len = token_len(q->s, i), .token = (uint32_t)i };
    }
    for (size_t i = q->n / 2; i-- > 0;) sift_match(q, i);
    return QSF_OK;
}

static bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

/* Marks the bytes of an accepted token and the white space that it strips. */
static int take(Search *q, const Match *m, QsfErr *err) {
    QsfFragment *frag = room(q->frag, q->n_frag, &q->cap_frag, sizeof *frag, err);
    if (frag == NULL) return QSF_E_RUNTIME;
    q->frag = frag;
    int32_t id = (int32_t)q->s->id[m->token];
    frag[q->n_frag++] = (QsfFragment){ .off = m->pos, .len = m->len, .id = id };
    memset(q->taken + m->pos, 1, m->len);
    uint8_t attr = q->s->vocab->attr[id];
    size_t end = m->pos + m->len;
    if (attr & QSF_ATTR_RSTRIP) {
        while (end < q->len && !q->taken[end] && is_space(q->text[end])) q->taken[end++] = 1;
    }
    if (attr & QSF_ATTR_LSTRIP) {
        for (size_t i = m->pos; i > 0 && !q->taken[i - 1] && is_space(q->text[i - 1]); i--)
            q->taken[i - 1] = 1;
    }
    return QSF_OK;
}

/* Longer tokens were accepted first, so one that overlaps this match covers one of its ends. */
static int take_by_length(Search *q, QsfErr *err) {
    while (q->n > 0) {
        Match m = q->heap[0];
        if (!q->taken[m.pos] && !q->taken[m.pos + m.len - 1]) {
            int rc = take(q, &m, err);
            if (rc != QSF_OK) return rc;
        }
        int32_t i = q->taken[m.pos] ? -1 : usable(q, q->s->shorter[m.token], m.pos);
        if (i >= 0) {
            q->heap[0] = (Match){ .pos = m.pos, .len = token_len(q->s, i), .token = (uint32_t)i };
        } else {
            q->heap[0] = q->heap[--q->n];
        }
        if (q->n > 0) sift_match(q, 0);
    }
    return QSF_OK;
}

static int by_offset(const void *a, const void *b) {
    size_t x = ((const QsfFragment *)a)->off, y = ((const QsfFragment *)b)->off;
    return x < y ? -1 : x > y;
}

static bool is_taken(const Search *q, size_t i) { return q->taken != NULL && q->taken[i]; }

/* The tokens found and the text between them, in order. */
static int assemble(Search *q, QsfFragment **out, size_t *n, QsfErr *err) {
    if (q->n_frag > 1) qsort(q->frag, q->n_frag, sizeof *q->frag, by_offset);
    QsfFragment *all = malloc((2 * q->n_frag + 1) * sizeof *all);
    if (all == NULL) return qsf_err_memory(err, "tokenizing");
    size_t count = 0, from = 0;
    for (size_t i = 0; i <= q->n_frag; i++) {
        size_t to = i < q->n_frag ? q->frag[i].off : q->len;
        while (from < to && is_taken(q, from)) from++; /* stripped on the left */
        size_t end = to;
        while (end > from && is_taken(q, end - 1)) end--; /* stripped on the right */
        if (end > from) all[count++] = (QsfFragment){ .off = from, .len = end - from, .id = -1 };
        if (i == q->n_frag) break;
        all[count++] = q->frag[i];
        from = to + q->frag[i].len;
    }
    *out = all;
    *n = count;
    return QSF_OK;
}

int qsf_specials_split_marked(const QsfSpecials *s, const char *text, size_t len, bool control,
                              const uint8_t *trusted, QsfFragment **out, size_t *n, QsfErr *err) {
    Search q = { .s = s, .text = text, .len = len, .control = control, .trusted = trusted };
    *out = NULL;
    *n = 0;
    int rc = s->n > 0 && (control || s->n_user > 0) ? find_matches(&q, err) : QSF_OK;
    if (rc == QSF_OK && q.n > 0) {
        q.taken = calloc(len, 1);
        rc = q.taken != NULL ? take_by_length(&q, err) : qsf_err_memory(err, "tokenizing");
    }
    if (rc == QSF_OK) rc = assemble(&q, out, n, err);
    free(q.heap);
    free(q.taken);
    free(q.frag);
    return rc;
}

int qsf_specials_split(const QsfSpecials *s, const char *text, size_t len, bool control, QsfFragment **out,
                       size_t *n, QsfErr *err) {
    return qsf_specials_split_marked(s, text, len, control, NULL, out, n, err);
}

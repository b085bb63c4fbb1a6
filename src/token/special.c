/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Special tokens in a text. One pass per kind finds the longest token at every place; a heap then accepts
 * them in the order of the rule. */
#include "src/token/special.h"

#include <stdlib.h>
#include <string.h>

#include "src/base/heap.h"
#include "src/base/interrupt.h"
#include "src/token/chars.h"
#include "src/token/tags.h"

#define CHECK_EVERY 16384u /* steps between two looks at the interrupt flag */

uint64_t qsf_specials_bytes(uint32_t n, uint64_t text_bytes) {
    return qsf_matcher_bytes(n, text_bytes) + (QSF_SPECIAL_KINDS - 1) * qsf_matcher_bytes(0, 0);
}

bool qsf_specials_has(const QsfVocab *v, int32_t id) {
    size_t len;
    (void)qsf_vocab_text(v, id, &len);
    QsfTokenType t = qsf_vocab_type(v, id);
    return len > 0 && (t == QSF_TOKEN_UNKNOWN || t == QSF_TOKEN_CONTROL || t == QSF_TOKEN_USER);
}

/* --- kinds --- */

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
    if (qsf_is_tag(t, len)) return true;
    if (!has_affixes(t, len, "[", "]")) return false;
    for (size_t i = 1; i + 1 < len; i++) {
        if (!(t[i] >= 'A' && t[i] <= 'Z') && t[i] != '_' && t[i] != '/') return false;
    }
    return true;
}

static QsfSpecialKind kind_of(const QsfVocab *v, int32_t id) {
    size_t len;
    const char *t = qsf_vocab_text(v, id, &len);
    if (qsf_vocab_type(v, id) != QSF_TOKEN_USER) return QSF_SPECIAL_CONTROL;
    return is_structural(t, len) ? QSF_SPECIAL_MARKUP : QSF_SPECIAL_PLAIN;
}

/* Moves the tokens of a kind to the front, in their order, and returns their number. */
static uint32_t select_kind(const QsfVocab *v, QsfTrieText *text, uint32_t n, QsfSpecialKind kind,
                            QsfTrieText *rest) {
    uint32_t taken = 0, left = 0;
    for (uint32_t i = 0; i < n; i++) {
        if (kind_of(v, (int32_t)text[i].value) == kind) {
            text[taken++] = text[i];
        } else {
            rest[left++] = text[i];
        }
    }
    if (left > 0) memcpy(text + taken, rest, left * sizeof *text); /* text may be NULL if there are none */
    return taken;
}

int qsf_specials_init(QsfSpecials *s, const QsfVocab *v, QsfTrieText *text, uint32_t n, bool leftmost,
                      QsfArena *arena, QsfErr *err) {
    *s = (QsfSpecials){ .vocab = v, .leftmost = leftmost };
    QsfTrieText *rest = malloc(((size_t)n + 1) * sizeof *rest);
    if (rest == NULL) return qsf_err_memory(err, "the special tokens of a vocabulary");
    int rc = QSF_OK;
    for (int kind = 0; kind < QSF_SPECIAL_KINDS && rc == QSF_OK; kind++) {
        uint32_t count = select_kind(v, text, n, (QsfSpecialKind)kind, rest);
        rc = qsf_matcher_init(&s->set[kind], text, count, arena, err);
        if (count > 0) text += count; /* there may be none: NULL */
        n -= count;
    }
    free(rest);
    return rc;
}

int qsf_specials_init_all(QsfSpecials *s, const QsfVocab *v, QsfArena *arena, QsfErr *err) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < v->n; i++) n += qsf_specials_has(v, (int32_t)i);
    QsfTrieText *text = malloc(((size_t)n + 1) * sizeof *text);
    if (text == NULL) return qsf_err_memory(err, "the special tokens of a vocabulary");
    n = 0;
    for (uint32_t i = 0; i < v->n; i++) {
        size_t len;
        const char *t = qsf_vocab_text(v, (int32_t)i, &len);
        if (qsf_specials_has(v, (int32_t)i))
            text[n++] = (QsfTrieText){ .s = t, .len = (uint32_t)len, .value = i };
    }
    int rc = qsf_specials_init(s, v, text, n, false, arena, err);
    free(text);
    return rc;
}

/* --- matching --- */

typedef struct Match {
    size_t pos;
    int32_t word; /* index in the set */
    uint32_t kind;
} Match;

typedef struct Search {
    const QsfSpecials *s;
    QsfLedger *ledger;
    const char *text;
    size_t len;
    Match *heap; /* (n) */
    size_t n, cap;
    uint32_t *taken;   /* (len) inside a token, or stripped by one: 1 + where that part begins; NULL
                          with the second rule */
    QsfFragment *frag; /* (n_frag) tokens found, in the order found */
    size_t n_frag, cap_frag;
    unsigned steps;
} Search;

static const QsfMatcherWord *word_of(const Search *q, const Match *m) {
    return &q->s->set[m->kind].word[m->word];
}

static bool before(const Search *q, const Match *a, const Match *b) {
    const QsfMatcherWord *x = word_of(q, a), *y = word_of(q, b);
    if (q->s->leftmost && a->pos != b->pos) return a->pos < b->pos;
    if (x->len != y->len) return x->len > y->len;
    if (x->id != y->id) return x->id < y->id;
    return a->pos < b->pos;
}

static void sift_match(Search *q, size_t i) {
    Match x = q->heap[i];
    for (size_t child; (child = 2 * i + 1) < q->n; i = child) {
        if (child + 1 < q->n && before(q, &q->heap[child + 1], &q->heap[child])) child++;
        if (!before(q, &q->heap[child], &x)) break;
        q->heap[i] = q->heap[child];
    }
    q->heap[i] = x;
}

static int resize(QsfLedger *l, size_t old, size_t bytes, void **p, QsfErr *err) {
    return qsf_heap_resize(l, QSF_MEM_TRANSCRIPT, old, bytes, "special tokens of the text", p, err);
}

static void drop(QsfLedger *l, void *p, size_t bytes) {
    if (bytes > 0) (void)resize(l, bytes, 0, &p, NULL);
}

/* Makes room for one more than n. */
static int room(const Search *q, void **p, size_t n, size_t *cap, size_t elem, QsfErr *err) {
    if (n < *cap) return QSF_OK;
    const size_t want = *cap < 16 ? 16 : *cap + *cap / 2;
    if (want > SIZE_MAX / elem) return qsf_err_memory(err, "%zu special tokens in one text", n);
    int rc = resize(q->ledger, *cap * elem, want * elem, p, err);
    if (rc == QSF_OK) *cap = want;
    return rc;
}

static int check(Search *q, QsfErr *err) {
    return ++q->steps % CHECK_EVERY == 0 ? qsf_interrupt_check(err) : QSF_OK;
}

static int add_match(Search *q, size_t pos, int32_t word, uint32_t kind, QsfErr *err) {
    void *heap = q->heap;
    int rc = room(q, &heap, q->n, &q->cap, sizeof *q->heap, err);
    if (rc != QSF_OK) return rc;
    q->heap = heap;
    q->heap[q->n++] = (Match){ .pos = pos, .word = word, .kind = kind };
    return QSF_OK;
}

/* Adds the longest token of a kind at every place of text[begin..end). */
static int match_run(Search *q, uint32_t kind, size_t begin, size_t end, QsfErr *err) {
    const QsfMatcher *m = &q->s->set[kind];
    uint32_t state = 0;
    int rc = QSF_OK;
    for (size_t pos = end; pos-- > begin && rc == QSF_OK;) {
        const unsigned char byte = (unsigned char)q->text[pos];
        state = state == 0 ? m->trie.first[byte] : qsf_matcher_step(m, state, byte);
        if (state == 0) continue; /* nearly everywhere */
        int32_t word = qsf_matcher_longest(m, state);
        rc = word >= 0 ? add_match(q, pos, word, kind, err) : QSF_OK;
        if (rc == QSF_OK) rc = check(q, err);
    }
    return rc;
}

/* Tokens of the first two kinds are made of trusted bytes only. */
static int match_kind(Search *q, uint32_t kind, const uint8_t *trusted, QsfErr *err) {
    int rc = QSF_OK;
    if (q->s->set[kind].n == 0) return QSF_OK;
    if (trusted == NULL || kind == QSF_SPECIAL_PLAIN) return match_run(q, kind, 0, q->len, err);
    for (size_t begin = 0, end; begin < q->len && rc == QSF_OK; begin = end) {
        const uint8_t *other = memchr(trusted + begin, !trusted[begin], q->len - begin);
        end = other != NULL ? (size_t)(other - trusted) : q->len;
        if (trusted[begin]) rc = match_run(q, kind, begin, end, err);
    }
    return rc;
}

static int add_token(Search *q, size_t off, size_t end, int32_t id, QsfErr *err) {
    void *frag = q->frag;
    int rc = room(q, &frag, q->n_frag, &q->cap_frag, sizeof *q->frag, err);
    if (rc != QSF_OK) return rc;
    q->frag = frag;
    q->frag[q->n_frag++] = (QsfFragment){ .off = off, .len = end - off, .id = id };
    return QSF_OK;
}

static void pop(Search *q) {
    q->heap[0] = q->heap[--q->n];
    if (q->n > 0) sift_match(q, 0);
}

/* --- the first rule: by length --- */

static bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

/* Marks the bytes of an accepted token and the white space that it strips. */
static int take(Search *q, const Match *m, QsfErr *err) {
    const QsfMatcherWord *w = word_of(q, m);
    uint8_t attr = q->s->vocab->attr[w->id];
    size_t begin = m->pos, end = m->pos + w->len;
    int rc = add_token(q, begin, end, w->id, err);
    while ((attr & QSF_ATTR_RSTRIP) && end < q->len && !q->taken[end] && is_space(q->text[end])) end++;
    while ((attr & QSF_ATTR_LSTRIP) && begin > 0 && !q->taken[begin - 1] && is_space(q->text[begin - 1]))
        begin--;
    for (size_t i = begin; i < end; i++) q->taken[i] = (uint32_t)begin + 1;
    return rc;
}

/* Longer tokens were accepted first, so one that overlaps this match covers one of its ends. If it is the
 * right end, a shorter token may fit before it. */
static int take_by_length(Search *q, QsfErr *err) {
    int rc = QSF_OK;
    while (q->n > 0 && rc == QSF_OK) {
        Match m = q->heap[0];
        const size_t last = m.pos + word_of(q, &m)->len - 1;
        size_t free_bytes = 0;
        if (!q->taken[m.pos] && !q->taken[last]) {
            rc = take(q, &m, err);
        } else if (!q->taken[m.pos]) {
            free_bytes = q->taken[last] - 1 - m.pos;
        }
        m.word = free_bytes > 0 ? qsf_matcher_within(&q->s->set[m.kind], m.word, free_bytes) : -1;
        if (m.word >= 0) {
            q->heap[0] = m;
            sift_match(q, 0);
        } else {
            pop(q);
        }
        if (rc == QSF_OK) rc = check(q, err);
    }
    return rc;
}

/* --- the second rule: leftmost --- */

/* Whether the character before or after a token belongs to a word. */
static bool in_word(const Search *q, size_t begin, size_t end) {
    uint32_t cp = 0;
    if (begin > 0 && qsf_char_before(q->text, begin, &cp) > 0 && qsf_char_is_word(cp)) return true;
    return end < q->len && qsf_char_at(q->text + end, q->len - end, &cp) > 0 && qsf_char_is_word(cp);
}

/* The end of the white space that begins at `at`; *known is that of the last call, so that no
 * text is read twice. */
static size_t spaces_end(const Search *q, size_t at, size_t *known) {
    uint32_t cp = 0;
    if (at >= *known)
        for (*known = at; *known < q->len;) {
            size_t n = qsf_char_at(q->text + *known, q->len - *known, &cp);
            if (!qsf_char_is_space(cp)) break;
            *known += n;
        }
    return *known;
}

static size_t spaces_begin(const Search *q, size_t at, size_t limit) {
    uint32_t cp = 0;
    while (at > limit) {
        size_t n = qsf_char_before(q->text, at, &cp);
        if (!qsf_char_is_space(cp)) break;
        at -= n;
    }
    return at > limit ? at : limit;
}

/* A token that is inside a word is text, and so are shorter ones there, as in the reference. White space that
 * a token took may still contain one. */
static int take_leftmost(Search *q, QsfErr *err) {
    size_t done = 0, text_from = 0, known = 0;
    int rc = QSF_OK;
    for (; q->n > 0 && rc == QSF_OK; pop(q)) {
        const Match m = q->heap[0];
        const QsfMatcherWord *w = word_of(q, &m);
        const uint8_t attr = q->s->vocab->attr[w->id];
        size_t begin = m.pos, end = m.pos + w->len;
        rc = check(q, err);
        if (begin < done) continue;
        done = end;
        if ((attr & QSF_ATTR_SINGLE) && in_word(q, begin, end)) continue;
        if (attr & QSF_ATTR_LSTRIP) begin = spaces_begin(q, begin, text_from);
        if (attr & QSF_ATTR_RSTRIP) end = spaces_end(q, end, &known);
        if (rc == QSF_OK && begin < end)
            rc = add_token(q, begin, end, w->id, err); /* else nothing is left of it */
        text_from = end;
    }
    return rc;
}

/* --- the result --- */

static int by_offset(const void *a, const void *b) {
    size_t x = ((const QsfFragment *)a)->off, y = ((const QsfFragment *)b)->off;
    return x < y ? -1 : x > y;
}

static bool is_taken(const Search *q, size_t i) { return q->taken != NULL && q->taken[i]; }

/* The tokens found and the text between them, in order. */
static int assemble(Search *q, QsfFragment **out, size_t *n, QsfErr *err) {
    if (!q->s->leftmost && q->n_frag > 1) qsort(q->frag, q->n_frag, sizeof *q->frag, by_offset);
    const size_t most = 2 * q->n_frag + 1;
    void *mem = NULL;
    int rc = resize(q->ledger, 0, most * sizeof **out, &mem, err);
    if (rc != QSF_OK) return rc;
    QsfFragment *all = mem;
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
    rc = resize(q->ledger, most * sizeof *all, count * sizeof *all, &mem, err);
    *out = mem;
    *n = rc == QSF_OK ? count : most;
    return rc;
}

static int select_matches(Search *q, QsfErr *err) {
    for (size_t i = q->n / 2; i-- > 0;) sift_match(q, i);
    if (q->s->leftmost) return take_leftmost(q, err);
    void *mem = NULL;
    int rc = resize(q->ledger, 0, q->len * sizeof *q->taken, &mem, err);
    if (rc != QSF_OK) return rc;
    q->taken = mem;
    memset(q->taken, 0, q->len * sizeof *q->taken);
    return take_by_length(q, err);
}

int qsf_specials_split(const QsfSpecials *s, const char *text, size_t len, bool control,
                       const uint8_t *trusted, QsfLedger *ledger, QsfFragment **out, size_t *n, QsfErr *err) {
    Search q = { .s = s, .ledger = ledger, .text = text, .len = len };
    *out = NULL;
    *n = 0;
    int rc = len < UINT32_MAX ? QSF_OK
                              : qsf_err_set(err, QSF_E_RUNTIME, "text too long to tokenize: 4 GiB or more");
    for (uint32_t kind = control ? 0 : QSF_SPECIAL_CONTROL + 1; kind < QSF_SPECIAL_KINDS && rc == QSF_OK;
         kind++)
        rc = match_kind(&q, kind, trusted, err);
    if (rc == QSF_OK && q.n > 0) rc = select_matches(&q, err);
    if (rc == QSF_OK) rc = assemble(&q, out, n, err);
    drop(ledger, q.heap, q.cap * sizeof *q.heap);
    drop(ledger, q.taken, q.taken != NULL ? len * sizeof *q.taken : 0);
    drop(ledger, q.frag, q.cap_frag * sizeof *q.frag);
    return rc;
}

void qsf_fragments_free(QsfFragment *f, size_t n, QsfLedger *ledger) { drop(ledger, f, n * sizeof *f); }

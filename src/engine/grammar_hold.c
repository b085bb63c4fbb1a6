/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Implements grammar_hold.h, with the sets of tokens of src/grammar/mask.h. */
#include "src/engine/grammar_hold.h"
#include "src/base/interrupt.h"

#include <stdlib.h>
#include <string.h>

#include "src/engine/grammar_text.h"
#include "src/engine/prompt.h"
#include "src/grammar/mask.h"
#include "src/token/tags.h"

#define NAME         "the grammar"
#define AUTOMATON    (4u << 20) /* bytes of its states */
#define COMPILED     (1u << 19) /* bytes of a compiled grammar that a plan expects */
#define FORCED_MOST  256u       /* bytes of a stretch without a choice */
#define FORCED_LEAST 4u
#define BLANKS       3u /* line feeds of a token between reasoning and answer */

struct QsfConstraint {
    QsfGrammarKind kind;
    QsfStrbuf text; /* what was compiled */
    QsfGrammar *grammar;
    QsfAutomaton *automaton;
    QsfTokenTrie trie;
    QsfMasks *masks;
    uint64_t *extra;           /* (words) a set with more than the grammar allows */
    uint64_t charged;          /* besides the trie and the masks */
    int32_t open, answer_open; /* tokens before an answer, -1 = there is none */
    int32_t blank[BLANKS * 2]; /* (n_blank) tokens of line feeds only */
    uint32_t n_blank, n_vocab;
};

/* English and code have 2 to 4 new nodes for a token; 32 bytes: what building the trie takes. */
uint64_t qsf_grammar_hold_bytes(uint32_t n_vocab) {
    return (uint64_t)n_vocab * (4 * sizeof(QsfTokenNode) + 32) + qsf_masks_bytes(n_vocab) + AUTOMATON +
           COMPILED;
}

/* --- what is kept by the runtime --- */

static void drop_grammar(QsfRuntime *rt, QsfConstraint *c) {
    qsf_masks_free(c->masks);
    qsf_automaton_free(c->automaton);
    qsf_grammar_free(c->grammar);
    qsf_strbuf_free(&c->text);
    free(c->extra);
    qsf_ledger_release(&rt->ledger, QSF_MEM_LOGITS, c->charged);
    c->masks = NULL;
    c->automaton = NULL;
    c->grammar = NULL;
    c->extra = NULL;
    c->charged = 0;
}

void qsf_grammar_hold_close(QsfRuntime *rt) {
    QsfConstraint *c = rt->constraint;
    if (c == NULL) return;
    drop_grammar(rt, c);
    qsf_token_trie_close(&c->trie);
    free(c);
    rt->constraint = NULL;
}

/* Tokens that are text of an answer: no control tokens, and no tags of reasoning. */
static bool is_usable(const void *arg, int32_t id) {
    const QsfRuntime *rt = arg;
    size_t len;
    const QsfTokenType type = qsf_tokenizer_type(rt->tok, id);
    if (type != QSF_TOKEN_NORMAL && type != QSF_TOKEN_BYTE && type != QSF_TOKEN_USER) return false;
    if (qsf_runtime_ends(rt, id) || qsf_tokenizer_is_eom(rt->tok, id)) return false;
    const char *text = qsf_tokenizer_raw(rt->tok, id, &len);
    return type != QSF_TOKEN_USER ||
           !(qsf_is_tag(text, len) || (len > 3 && text[0] == '<' && text[1] == '|'));
}

/* Tokens of line feeds, in the order of their lengths: the trie has them one below the other. */
static void find_blanks(QsfConstraint *c) {
    const QsfTokenTrie *t = &c->trie;
    uint32_t at = 0;
    for (unsigned depth = 0; depth < BLANKS; depth++) {
        uint32_t child = at + 1;
        const uint32_t end = t->node[at].skip;
        while (child < end && t->node[child].byte != '\n') child = t->node[child].skip;
        if (child >= end) return;
        at = child;
        for (uint32_t i = t->node[at].token; i < t->node[at + 1].token && c->n_blank < BLANKS * 2; i++)
            c->blank[c->n_blank++] = t->id[i];
    }
}

static int32_t tag_token(const QsfRuntime *rt, const QsfThinkTag *tag) {
    return tag->len > 0 ? qsf_tokenizer_find(rt->tok, tag->text, tag->len) : -1;
}

static int open_vocabulary(QsfRuntime *rt, QsfErr *err) {
    if (rt->constraint != NULL) return QSF_OK;
    QsfConstraint *c = calloc(1, sizeof *c);
    if (c == NULL) return qsf_err_memory(err, NAME);
    const uint32_t n = qsf_tokenizer_n_vocab(rt->tok);
    c->n_vocab = n < rt->model.hp.n_vocab ? n : rt->model.hp.n_vocab;
    int rc = qsf_token_trie_open(&c->trie, rt->tok, c->n_vocab, is_usable, rt, &rt->ledger, err);
    if (rc != QSF_OK) {
        free(c);
        return rc;
    }
    find_blanks(c);
    rt->constraint = c;
    return QSF_OK;
}

static int open_sets(QsfRuntime *rt, QsfConstraint *c, QsfErr *err) {
    const QsfMaskTokens t = { &c->trie, c->n_vocab, rt->eog, rt->n_eog };
    const size_t words = QSF_TOKEN_SET_WORDS(c->n_vocab);
    rt->hold_compiled = qsf_grammar_bytes(c->grammar);
    const uint64_t need = AUTOMATON + rt->hold_compiled + words * sizeof *c->extra;
    int rc = qsf_ledger_reserve(&rt->ledger, QSF_MEM_LOGITS, need, NAME, err);
    if (rc != QSF_OK) return rc;
    c->charged = need;
    c->extra = malloc(words * sizeof *c->extra);
    if (c->extra == NULL) return qsf_err_memory(err, NAME);
    rc = qsf_automaton_new(&c->automaton, c->grammar, AUTOMATON, err);
    return rc == QSF_OK ? qsf_masks_new(&c->masks, &t, c->automaton, &rt->ledger, err) : rc;
}

/* Compiles the text, unless it is what is compiled already. Takes the text. */
static int compile(QsfRuntime *rt, QsfGrammarKind kind, QsfStrbuf *text, QsfErr *err) {
    QsfConstraint *c = rt->constraint;
    rt->hold_passed = false;
    if (c->masks != NULL && c->kind == kind && c->text.len == text->len &&
        memcmp(qsf_strbuf_str(&c->text), qsf_strbuf_str(text), text->len) == 0) {
        qsf_strbuf_free(text);
        return QSF_OK;
    }
    drop_grammar(rt, c);
    c->kind = kind;
    c->text = *text;
    *text = (QsfStrbuf)QSF_STRBUF_INIT;
    const QsfMemoryLimit before = qsf_memory_limit_begin(rt->budget);
    int rc = qsf_grammar_new(&c->grammar, kind, qsf_strbuf_str(&c->text), c->text.len, err);
    rc = qsf_memory_limit_end(&before, rc, NAME, qsf_option_name(QSF_OPTION_BUDGET, rt->settings.commands),
                              err);
    rt->hold_passed = rc == QSF_E_BUDGET;
    if (rc == QSF_OK) rc = open_sets(rt, c, err);
    if (rc != QSF_OK) drop_grammar(rt, c);
    return rc;
}

/* With a grammar that is larger than expected. */
static uint64_t bytes_needed(const QsfRuntime *rt) {
    const uint64_t more = rt->hold_compiled > COMPILED ? rt->hold_compiled - COMPILED : 0;
    return qsf_grammar_hold_bytes(qsf_tokenizer_n_vocab(rt->tok)) + more;
}

bool qsf_grammar_hold_make_room(QsfRuntime *rt) {
    char note[512];
    QsfErr none = { 0 };
    const uint64_t need = bytes_needed(rt), had = rt->hold_reserved;
    if (need <= had || rt->hold_passed) return false;
    qsf_grammar_hold_close(rt);
    rt->plan_options.transcript_bytes += need - had;
    if (qsf_runtime_replan(rt, &rt->settings, note, sizeof note, &none) == QSF_OK)
        rt->hold_reserved = need;
    else
        rt->plan_options.transcript_bytes -= need - had;
    return rt->hold_reserved == need;
}

/* A grammar that fits beside the plan in force stays in memory, so the next plan has to count it. */
static void count_in_next_plan(QsfRuntime *rt) {
    const uint64_t need = bytes_needed(rt), had = rt->hold_reserved;
    if (need <= had) return;
    rt->plan_options.transcript_bytes += need - had;
    rt->hold_reserved = need;
}

/* What is reserved counts already, unless it was not enough. How much a grammar takes while it is compiled is
 * not known before the end. */
static int advise(QsfRuntime *rt, QsfErr *err) {
    if (rt->hold_passed) return err->code;
    const uint64_t need = bytes_needed(rt), had = rt->hold_reserved;
    return qsf_prompt_advise(rt, need > had ? need - had : need, err);
}

int qsf_grammar_hold_begin(QsfGrammarHold *h, QsfRuntime *rt, const QSFParams *p, const QsfGrammarText *given,
                           const char *written, size_t len, QsfErr *err) {
    QsfStrbuf text = QSF_STRBUF_INIT;
    QsfGrammarKind kind = QSF_KIND_N;
    char name[256] = NAME;
    memset(h, 0, sizeof *h);
    int rc = QSF_OK;
    if (given != NULL && given->kind > QSF_GRAMMAR_NONE && given->kind < QSF_GRAMMAR_N) {
        kind = (QsfGrammarKind)(given->kind - 1);
        qsf_strbuf_add(&text, given->text, given->len);
    } else {
        rc = qsf_grammar_text(p, &text, &kind, err);
        qsf_grammar_name(p, name, sizeof name);
    }
    if (rc == QSF_OK && kind != QSF_KIND_N) rc = open_vocabulary(rt, err);
    if (rc == QSF_OK && kind != QSF_KIND_N && (rc = compile(rt, kind, &text, err)) == QSF_E_USAGE)
        qsf_err_prefix(err, "%s", name);
    qsf_strbuf_free(&text);
    if (rc != QSF_OK || kind == QSF_KIND_N) return rc == QSF_OK ? QSF_OK : advise(rt, err);
    count_in_next_plan(rt);
    h->c = rt->constraint;
    h->c->open = tag_token(rt, &rt->think.open);
    h->c->answer_open = tag_token(rt, &rt->think.answer_open);
    rc = qsf_automaton_feed(h->c->automaton, qsf_automaton_start(h->c->automaton), written, len, &h->state,
                            err);
    if (rc == QSF_OK && h->state == 0)
        return qsf_err_set(err, QSF_E_USAGE, "%s: the answer that is to be continued does not match it",
                           name);
    return rc;
}

/* --- an answer --- */

/* White space between reasoning and answer belongs to neither. */
static bool after_reasoning(const QsfThinkSplit *split) {
    return split != NULL && split->t->format == QSF_THINK_TAGS &&
           (split->state == QSF_THINK_AFTER || split->state == QSF_THINK_OPENED);
}

/* May the next character be a space? */
static bool takes_space(const QsfGrammarHold *h) {
    QsfErr none = { 0 };
    uint32_t next = 0;
    const int rc = qsf_automaton_step(h->c->automaton, h->state, ' ', &next, &none);
    qsf_err_clear(&none);
    return rc == QSF_OK && next != 0;
}

bool qsf_grammar_hold_counts(QsfGrammarHold *h, const QsfThinkSplit *split, const QsfDetok *detok) {
    if (h->c == NULL) return false;
    const bool dropped = qsf_detok_drops_space(detok);
    h->spaced = !dropped && after_reasoning(split) && !takes_space(h);
    h->drops = dropped || h->spaced;
    if (split == NULL) return true;
    if (split->t->format == QSF_THINK_TAGS) return !qsf_think_inside(split);
    return split->part == QSF_PART_ANSWER && !split->heading;
}

/* Forgets states when their memory is nearly used. */
static int keep_small(QsfGrammarHold *h, QsfErr *err) {
    return qsf_automaton_is_full(h->c->automaton) ? qsf_automaton_trim(h->c->automaton, &h->state, err)
                                                  : QSF_OK;
}

static bool is_blank(const QsfConstraint *c, int32_t id) {
    for (uint32_t i = 0; i < c->n_blank; i++)
        if (c->blank[i] == id) return true;
    return false;
}

static bool takes_blanks(const QsfGrammarHold *h, const QsfThinkSplit *split) {
    return h->blanks < 2 && after_reasoning(split);
}

/* A token before the answer that opens reasoning or the answer; -1 = none. */
static int32_t opens(const QsfGrammarHold *h, const QsfThinkSplit *split) {
    if (split == NULL || split->t->format != QSF_THINK_TAGS) return -1;
    if (split->state == QSF_THINK_START) return h->c->open;
    return split->state == QSF_THINK_AFTER ? h->c->answer_open : -1;
}

static void add_bit(uint64_t *set, uint32_t n, int32_t id) {
    if (id >= 0 && (uint32_t)id < n) set[id / 64] |= 1ull << (id % 64);
}

int qsf_grammar_hold_allowed(QsfGrammarHold *h, const QsfThinkSplit *split, const uint64_t **set,
                             QsfErr *err) {
    QsfConstraint *c = h->c;
    const int32_t open = opens(h, split);
    const bool blanks = takes_blanks(h, split), drops = h->drops;
    int rc = keep_small(h, err);
    if (rc == QSF_OK && qsf_masks_get(c->masks, h->state, drops, set, err) != QSF_OK) {
        if (err->code == QSF_E_INTERRUPTED) return err->code;
        qsf_err_clear(err); /* once more, with nothing but this state */
        rc = qsf_automaton_trim(c->automaton, &h->state, err);
        if (rc == QSF_OK) rc = qsf_masks_get(c->masks, h->state, drops, set, err);
    }
    if (rc != QSF_OK || (open < 0 && !blanks)) return rc;
    memcpy(c->extra, *set, QSF_TOKEN_SET_WORDS(c->n_vocab) * sizeof *c->extra);
    add_bit(c->extra, c->n_vocab, open);
    for (uint32_t i = 0; blanks && i < c->n_blank; i++) add_bit(c->extra, c->n_vocab, c->blank[i]);
    *set = c->extra;
    return QSF_OK;
}

bool qsf_grammar_hold_may_end(const QsfGrammarHold *h) {
    return qsf_automaton_ends(h->c->automaton, h->state);
}

bool qsf_grammar_hold_is_over(const QsfGrammarHold *h) {
    return qsf_grammar_hold_may_end(h) && !qsf_automaton_goes_on(h->c->automaton, h->state);
}

/* The state after a token; 0: it does not match. *text: its bytes of the answer. A space that is dropped may
 * come before one that counts. */
static int after(const QsfGrammarHold *h, const QsfRuntime *rt, int32_t id, char *piece, size_t cap,
                 uint32_t *next, size_t *text, QsfErr *err) {
    size_t len = qsf_tokenizer_piece(rt->tok, id, false, piece, cap);
    if (len > cap) len = cap;
    const size_t drop = h->drops && len > 0 && piece[0] == ' ';
    *text = len - drop;
    const int rc = qsf_automaton_token(h->c->automaton, h->state, id, piece + drop, len - drop, next, err);
    if (rc == QSF_OK && *next == 0 && drop == 1 && len == 1 && takes_space(h)) *next = h->state;
    return rc;
}

int qsf_grammar_hold_take(QsfGrammarHold *h, const QsfRuntime *rt, const QsfThinkSplit *split,
                          const QsfDetok *detok, int32_t id, char *piece, size_t cap, QsfErr *err) {
    uint32_t next;
    size_t text;
    h->took = false;
    if (!qsf_grammar_hold_counts(h, split, detok) || qsf_runtime_ends(rt, id)) return QSF_OK;
    if (id == opens(h, split)) return QSF_OK;
    if (takes_blanks(h, split) && is_blank(h->c, id)) {
        h->blanks++;
        return QSF_OK;
    }
    int rc = after(h, rt, id, piece, cap, &next, &text, err);
    if (rc == QSF_OK && next == 0)
        return qsf_err_set(err, QSF_E_USAGE, "token %d does not match the grammar of the answer", (int)id);
    if (rc != QSF_OK) return rc;
    h->took = text > 0 || next != h->state;
    h->state = next;
    return rc;
}

/* --- texts as tokens --- */

/* The longest tokens that spell the text; false if there are none, or too many. */
static bool spell_longest(const QsfConstraint *c, const char *text, size_t len, QsfIds *ids, QsfErr *err) {
    const QsfTokenNode *node = c->trie.node;
    for (size_t i = 0; i < len;) {
        uint32_t at = 0, end = node[0].skip, best = UINT32_MAX;
        size_t used = 0;
        for (size_t k = i; k < len; k++) {
            uint32_t child = at + 1;
            while (child < end && node[child].byte != (uint8_t)text[k]) child = node[child].skip;
            if (child >= end) break;
            at = child;
            end = node[at].skip;
            if (node[at + 1].token > node[at].token) best = node[at].token, used = k + 1 - i;
        }
        if (best == UINT32_MAX || qsf_ids_push(ids, c->trie.id[best], err) != QSF_OK) return false;
        i += used;
    }
    return true;
}

/* Do the tokens have exactly this text, and nothing special? */
static bool spells(const QsfRuntime *rt, const QsfIds *ids, const char *text, size_t len) {
    char piece[QSF_TRIE_DEPTH];
    size_t at = 0;
    for (size_t i = 0; i < ids->n; i++) {
        const size_t n = qsf_tokenizer_piece(rt->tok, ids->data[i], false, piece, sizeof piece);
        if (!is_usable(rt, ids->data[i]) || n == 0 || n > sizeof piece || n > len - at) return false;
        if (memcmp(piece, text + at, n) != 0) return false;
        at += n;
    }
    return at == len;
}

/* The tokens of a text as the tokenizer makes them, or else the longest ones. No tokens: it cannot be
 * spelled. */
static int spell(const QsfConstraint *c, const QsfRuntime *rt, const QsfStrbuf *text, QsfIds *ids,
                 QsfErr *err) {
    const char *s = qsf_strbuf_str(text);
    int rc = qsf_tokenizer_encode(rt->tok, s, text->len, QSF_TOK_NO_PREFIX, ids, err);
    if (rc != QSF_OK || spells(rt, ids, s, text->len)) return rc;
    ids->n = 0;
    if (!spell_longest(c, s, text->len, ids, err)) ids->n = 0;
    return err->code;
}

/* Do the rules of tokens allow the ids after the token `first`, -1 = none? */
static bool rules_allow(const QsfGrammarHold *h, int32_t first, const QsfIds *ids) {
    int32_t all[QSF_GRAMMAR_HOLD_IDS + 1];
    const size_t before = first >= 0;
    if (h->rules == NULL || ids->n > QSF_GRAMMAR_HOLD_IDS) return true;
    all[0] = first;
    if (ids->n > 0) memcpy(all + before, ids->data, ids->n * sizeof *all);
    return qsf_token_rules_allow(h->rules, all, before + ids->n) == before + ids->n;
}

/* The first space of a text is dropped: one more. */
static void add_dropped(QsfStrbuf *text) {
    qsf_strbuf_addc(text, ' ');
    if (!qsf_strbuf_ok(text)) return;
    memmove(text->data + 1, text->data, text->len - 1);
    text->data[0] = ' ';
}

/* The tokens that complete a state after the token `first`, -1 = none; *fits: there are at most `most`, and
 * they are allowed. */
static int ending(const QsfGrammarHold *h, const QsfRuntime *rt, uint32_t state, int32_t first, uint32_t most,
                  QsfIds *ids, bool *fits, QsfErr *err) {
    QsfStrbuf text = QSF_STRBUF_INIT;
    QsfErr none = { 0 };
    ids->n = 0;
    *fits = false;
    const bool known = qsf_automaton_close(h->c->automaton, state, QSF_GRAMMAR_HOLD_IDS * 4, &text, &none) ==
                       QSF_OK;
    if (known && first < 0 && h->drops && qsf_strbuf_str(&text)[0] == ' ') add_dropped(&text);
    int rc = known && text.len > 0 ? spell(h->c, rt, &text, ids, err) : QSF_OK;
    if (rc == QSF_OK && known)
        *fits = (text.len == 0 || ids->n > 0) && ids->n <= most && ids->n <= QSF_GRAMMAR_HOLD_IDS &&
                rules_allow(h, first, ids);
    qsf_strbuf_free(&text);
    return rc;
}

int qsf_grammar_hold_limit(QsfGrammarHold *h, const QsfRuntime *rt, uint32_t left, int32_t *id, QsfErr *err) {
    char piece[QSF_TRIE_DEPTH];
    uint32_t next = 0;
    size_t text;
    bool fits = true;
    QsfIds ids = { 0 };
    if (h->closing || qsf_runtime_ends(rt, *id)) return QSF_OK;
    int rc = after(h, rt, *id, piece, sizeof piece, &next, &text, err);
    if (rc != QSF_OK || next == 0 || qsf_automaton_cost(h->c->automaton, next) + 1 < left) return rc;
    rc = ending(h, rt, next, *id, left - 1, &ids, &fits, err);
    if (rc == QSF_OK && !fits)
        rc = ending(h, rt, h->state, -1, left, &ids, &fits, err);
    else
        fits = false; /* nothing to do */
    if (rc == QSF_OK && fits) {
        memcpy(h->ids, ids.data, ids.n * sizeof *h->ids);
        h->n = (uint32_t)ids.n;
        h->at = 0;
        h->closing = true;
        h->finished = h->n == 0;
        if (h->n > 0) *id = h->ids[h->at++];
    }
    qsf_ids_free(&ids);
    return rc;
}

int qsf_grammar_hold_forced(QsfGrammarHold *h, const QsfRuntime *rt, int32_t *ids, uint32_t max, uint32_t *n,
                            QsfErr *err) {
    QsfStrbuf text = QSF_STRBUF_INIT;
    QsfIds all = { 0 };
    uint32_t state = h->state;
    *n = 0;
    if (h->closing || h->drops) return QSF_OK;
    int rc = keep_small(h, err);
    state = h->state;
    if (rc == QSF_OK) rc = qsf_automaton_forced(h->c->automaton, &state, FORCED_MOST, &text, err);
    if (rc == QSF_OK && text.len >= FORCED_LEAST) rc = spell(h->c, rt, &text, &all, err);
    /* The last token may be longer with what follows: the model chooses it. */
    uint32_t count = (uint32_t)all.n;
    if (count > 0 && qsf_automaton_goes_on(h->c->automaton, state)) count--;
    if (count > max) count = max;
    if (h->rules != NULL) count = (uint32_t)qsf_token_rules_allow(h->rules, all.data, count);
    if (rc == QSF_OK && count >= 2) {
        *n = count;
        memcpy(ids, all.data, *n * sizeof *ids);
    }
    qsf_ids_free(&all);
    qsf_strbuf_free(&text);
    return rc;
}

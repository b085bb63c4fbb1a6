/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Requests, copied; and their prompts, within the RAM budget. */
#include "src/engine/prompt.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/forward/snapshot.h"

/* ---- requests ---- */

static bool message_ok(const QSFMessage *m) {
    return m->role != NULL && (m->content != NULL || m->len == 0) &&
           (m->reasoning != NULL || m->reasoning_len == 0) && (m->exact != NULL || m->exact_len == 0) &&
           (m->calls != NULL || m->calls_len == 0);
}

bool qsf_request_ok(const QSFRequest *r) {
    if (r == NULL || (r->messages == NULL && r->n_messages > 0) || (r->stop == NULL && r->n_stop > 0) ||
        (r->tokens == NULL && r->n_tokens > 0) || (r->tools == NULL && r->tools_len > 0))
        return false;
    if (r->raw && r->n_tokens > 0 && r->n_messages > 0) return false;
    if (r->call != NULL && (r->raw || r->continue_last || r->grammar != NULL)) return false;
    for (size_t i = 0; i < r->n_messages; i++)
        if (!message_ok(&r->messages[i])) return false;
    for (size_t i = 0; i < r->n_stop; i++)
        if (r->stop[i] == NULL) return false;
    return true;
}

/* The tokens of an answer that is evaluated, or of the prompt. */
static size_t n_tokens(const QSFRequest *r) { return r->score || r->raw ? r->n_tokens : 0; }

static size_t name_len(const char *name) { return name != NULL ? strlen(name) : 0; }

static size_t block_bytes(const QSFRequest *r) {
    size_t n = sizeof(QsfRequestCopy) + r->n_messages * sizeof(QsfMsg) + r->n_stop * sizeof(char *);
    n += n_tokens(r) * sizeof *r->tokens;
    for (size_t i = 0; i < r->n_messages; i++) {
        const QSFMessage *m = &r->messages[i];
        n += strlen(m->role) + 1 + m->len + 1 + m->reasoning_len + 1 + m->exact_len + 1;
        n += m->calls_len + 1 + name_len(m->call_id) + 1 + name_len(m->name) + 1;
    }
    for (size_t i = 0; i < r->n_stop; i++) n += strlen(r->stop[i]) + 1;
    if (r->grammar != NULL) n += r->grammar_len + 1;
    if (r->tools != NULL) n += r->tools_len + 1;
    if (r->call != NULL) n += strlen(r->call) + 1;
    if (r->snapshot_from != NULL) n += strlen(r->snapshot_from) + 1;
    return n + (r->snapshot != NULL ? strlen(r->snapshot) + 1 : 0);
}

/* Copies len bytes and a NUL to *at and advances it. */
static const char *put(char **at, const char *s, size_t len) {
    char *dst = *at;
    if (len > 0) memcpy(dst, s, len);
    dst[len] = '\0';
    *at = dst + len + 1;
    return dst;
}

size_t qsf_request_text_bytes(const QSFRequest *r) {
    size_t n = n_tokens(r);
    for (size_t i = 0; i < r->n_messages; i++)
        n += r->messages[i].len + r->messages[i].reasoning_len + r->messages[i].exact_len +
             r->messages[i].calls_len;
    return n + r->tools_len;
}

static QsfRequestCopy *copy(const QSFRequest *r) {
    QsfRequestCopy *c = malloc(block_bytes(r));
    if (c == NULL) return NULL;
    *c = (QsfRequestCopy){ .n_messages = r->n_messages,
                           .n_stop = r->n_stop,
                           .raw = r->raw,
                           .continue_last = r->continue_last || (r->score && !r->raw),
                           .score = r->score,
                           .scored = r->score ? r->scored : NULL,
                           .scored_arg = r->scored_arg,
                           .branch = r->score ? 0 : r->branch,
                           .branch_id = r->branch_id,
                           .max_tokens = r->max_tokens,
                           .snapshot_limit = r->snapshot_limit,
                           .held = r->held };
    c->text_bytes = qsf_request_text_bytes(r);
    c->messages = (QsfMsg *)(c + 1);
    c->stop = (const char **)(c->messages + r->n_messages);
    int32_t *tokens = (int32_t *)(void *)(c->stop + r->n_stop);
    c->tokens = tokens;
    c->n_tokens = n_tokens(r);
    if (c->n_tokens > 0) memcpy(tokens, r->tokens, c->n_tokens * sizeof *tokens);
    char *at = (char *)(tokens + c->n_tokens);
    for (size_t i = 0; i < r->n_messages; i++) {
        const QSFMessage *m = &r->messages[i];
        const char *role = put(&at, m->role, strlen(m->role));
        c->messages[i] = (QsfMsg){
            .role = role, .len = m->len, .reasoning_len = m->reasoning_len, .exact_len = m->exact_len
        };
        c->messages[i].thought = m->thought;
        c->messages[i].content = put(&at, m->content, m->len);
        c->messages[i].reasoning = put(&at, m->reasoning, m->reasoning_len);
        c->messages[i].exact = put(&at, m->exact, m->exact_len);
        c->messages[i].calls_len = m->calls_len;
        c->messages[i].calls = put(&at, m->calls, m->calls_len);
        c->messages[i].call_id = m->call_id != NULL ? put(&at, m->call_id, strlen(m->call_id)) : NULL;
        c->messages[i].name = m->name != NULL ? put(&at, m->name, strlen(m->name)) : NULL;
    }
    for (size_t i = 0; i < r->n_stop; i++) c->stop[i] = put(&at, r->stop[i], strlen(r->stop[i]));
    if (r->grammar != NULL) c->grammar = put(&at, r->grammar, r->grammar_len);
    c->grammar_len = c->grammar != NULL ? r->grammar_len : 0;
    c->grammar_kind = c->grammar != NULL ? r->grammar_kind : (uint8_t)QSF_GRAMMAR_NONE;
    if (r->tools != NULL) c->tools = put(&at, r->tools, r->tools_len);
    c->tools_len = c->tools != NULL ? r->tools_len : 0;
    if (r->call != NULL) c->call = put(&at, r->call, strlen(r->call));
    c->one_call = r->one_call;
    if (r->n_messages > 0) c->messages[0].tools = c->tools;
    if (r->n_messages > 0) c->messages[0].tools_len = c->tools_len;
    if (r->snapshot != NULL) c->snapshot = put(&at, r->snapshot, strlen(r->snapshot));
    if (r->snapshot_from != NULL) c->snapshot_from = put(&at, r->snapshot_from, strlen(r->snapshot_from));
    return c;
}

QsfRequestCopy *qsf_request_copy(const QSFRequest *r, uint64_t refused) {
    QSFRequest small = *r;
    if (refused > 0) small.n_messages = small.n_tokens = 0;
    QsfRequestCopy *c = copy(&small);
    if (c != NULL) c->refused = refused;
    if (c != NULL && refused > 0) c->text_bytes = qsf_request_text_bytes(r);
    return c;
}

unsigned qsf_request_chat_flags(const QsfRequestCopy *r, const QSFParams *p) {
    return (r->continue_last ? QSF_CHAT_CONTINUE : QSF_CHAT_GENERATE) |
           (p->allow_special ? QSF_CHAT_ALLOW_SPECIAL : 0) | (r->raw ? QSF_CHAT_RAW : 0) |
           QSF_CHAT_REASON * p->reasoning;
}

/* ---- prompts ---- */

#define COUNTED \
    (64u << 10) /* bytes of a text that is tokenized all the same, so that its tokens can be told */

int qsf_prompt_too_long(const QsfRuntime *r, size_t n, bool more, QsfErr *err) {
    return qsf_err_set(
        err, QSF_E_CONTEXT,
        "%s: the prompt has %s%zu tokens, more than the context of %u: shorten it or set a larger %s",
        qsf_source_path(r->model.src), more ? "more than " : "", n, (unsigned)qsf_forward_ctx(r->fwd),
        qsf_option_name(QSF_OPTION_CTX, r->settings.commands));
}

int qsf_prompt_check(const QsfRuntime *r, const char *text, size_t len, QsfErr *err) {
    if (r->fwd == NULL || qsf_forward_evicts(r->fwd)) return QSF_OK;
    const uint32_t ctx = qsf_forward_ctx(r->fwd);
    const size_t least = len > COUNTED ? qsf_tokenizer_least(r->tok, text, len) : 0;
    return least > ctx ? qsf_prompt_too_long(r, least - 1, true, err) : QSF_OK;
}

/* Templates may drop white space around a message, and what a message with another role says. */
static int check_newest(const QsfRuntime *r, const QsfMsg *m, QsfErr *err) {
    const char *s = m->content, *end = s + m->len;
    if (strcmp(m->role, "user") != 0) return QSF_OK;
    while (r->tmpl != NULL && s < end && (unsigned char)*s <= ' ') s++;
    while (r->tmpl != NULL && s < end && (unsigned char)end[-1] <= ' ') end--;
    return qsf_prompt_check(r, s, (size_t)(end - s), err);
}

uint64_t qsf_prompt_need(const QsfRuntime *r, const char *text, size_t len) {
    QsfErr none = { 0 };
    QsfWords words = { 0 };
    const uint64_t copies = (uint64_t)len * QSF_REQUEST_BYTES;
    if (qsf_prompt_check(r, text, len, &none) != QSF_OK) return copies;
    qsf_words_feed(&words, text, len);
    return copies + qsf_tokenizer_need(r->tok, len, words.longest);
}

/* A plan that streams uses what there is, so the budget named may be the one that holds all weights. */
uint64_t qsf_prompt_budget(const QsfModel *m, const QsfPlanOptions *o, uint64_t need) {
    QsfPlanOptions next = *o;
    next.keep_k = next.keep_v = false;
    return qsf_plan_smallest_beside(m, &next, need);
}

/* What is needed is an estimate, but never less than what was not there. */
static void set_shortage(QsfRuntime *r, uint64_t need) {
    r->left = qsf_ledger_left(&r->ledger);
    r->needed = need > r->left ? need : r->left + (1u << 20);
}

int qsf_prompt_advise(QsfRuntime *r, uint64_t need, QsfErr *err) {
    char text[QSF_ERR_MSG_MAX];
    if (err == NULL || err->code != QSF_E_BUDGET) return err != NULL ? err->code : QSF_OK;
    set_shortage(r, need + r->text_held);
    const uint64_t least = qsf_prompt_budget(&r->model, &r->plan_options, need + r->text_held);
    snprintf(text, sizeof text, "%.*s\nsmallest budget that works: %" PRIu64 " MB", QSF_ERR_MSG_MAX - 64,
             err->msg, least >> 20);
    qsf_err_clear(err);
    return qsf_err_lines(err, QSF_E_BUDGET, text);
}

static uint64_t messages_need(const QsfRuntime *r, const QsfMsg *msgs, size_t n) {
    uint64_t sum = 0;
    for (size_t i = 0; i < n; i++) {
        sum += qsf_prompt_need(r, msgs[i].content, msgs[i].len);
        sum += (msgs[i].reasoning_len + msgs[i].exact_len + msgs[i].calls_len + msgs[i].tools_len) *
               (uint64_t)QSF_REQUEST_BYTES;
    }
    return sum;
}

static uint64_t text_bytes(const QsfMsg *msgs, size_t n) {
    uint64_t sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += msgs[i].len + msgs[i].reasoning_len + msgs[i].exact_len + msgs[i].calls_len +
               msgs[i].tools_len;
    return sum;
}

int qsf_prompt_encode(QsfRuntime *r, const QsfMsg *msgs, size_t n, unsigned flags, QsfIds *ids,
                      QsfThinkPrompt *where, QsfErr *err) {
    const uint64_t bytes = text_bytes(msgs, n) * QSF_REQUEST_BYTES;
    const bool raw = flags & QSF_CHAT_RAW;
    int rc = n > 0 ? check_newest(r, &msgs[n - 1], err) : QSF_OK;
    if (rc == QSF_OK)
        rc = qsf_ledger_reserve(&r->ledger, QSF_MEM_TRANSCRIPT, bytes, "the text of the conversation", err);
    if (rc == QSF_OK) {
        ids->ledger = &r->ledger;
        rc = raw ? qsf_think_encode(&r->think_raw, NULL, r->tok, msgs, n, flags, ids, where, err)
                 : qsf_think_encode(&r->think, r->tmpl, r->tok, msgs, n, flags, ids, where, err);
        qsf_ledger_release(&r->ledger, QSF_MEM_TRANSCRIPT, bytes);
    }
    if (rc == QSF_E_BUDGET) qsf_ids_free(ids);
    if (rc == QSF_E_BUDGET && r->fwd != NULL) qsf_prompt_advise(r, messages_need(r, msgs, n), err);
    return rc;
}

int qsf_prompt_check_ids(const QsfRuntime *r, const int32_t *ids, size_t n, QsfErr *err) {
    const uint32_t vocab = qsf_tokenizer_n_vocab(r->tok);
    for (size_t i = 0; i < n; i++)
        if (ids[i] < 0 || (uint32_t)ids[i] >= vocab)
            return qsf_err_set(err, QSF_E_USAGE, "token %d is outside the vocabulary", (int)ids[i]);
    return QSF_OK;
}

int qsf_prompt_take_ids(const QsfRuntime *r, const QsfRequestCopy *q, QsfIds *ids, QsfThinkPrompt *where,
                        QsfErr *err) {
    *where = (QsfThinkPrompt){ 0 };
    qsf_think_start(&where->split, &r->think_raw);
    if (r->fwd != NULL && !qsf_forward_evicts(r->fwd) && q->n_tokens > qsf_forward_ctx(r->fwd))
        return qsf_prompt_too_long(r, q->n_tokens, false, err);
    int rc = qsf_prompt_check_ids(r, q->tokens, q->n_tokens, err);
    return rc == QSF_OK ? qsf_ids_append(ids, q->tokens, q->n_tokens, err) : rc;
}

bool qsf_prompt_has_ids(const QsfRequestCopy *q) { return q->raw && q->n_tokens > 0; }

int qsf_request_encode(const QsfRuntime *r, const QsfRequestCopy *q, unsigned flags, QsfIds *ids,
                       QsfThinkPrompt *where, QsfErr *err) {
    if (qsf_prompt_has_ids(q)) return qsf_prompt_take_ids(r, q, ids, where, err);
    return qsf_think_encode(q->raw ? &r->think_raw : &r->think, q->raw ? NULL : r->tmpl, r->tok, q->messages,
                            q->n_messages, flags, ids, where, err);
}

/* ---- the system prompt ---- */

#define LEADING 8u /* messages of the system at the beginning; more are a conversation */

static size_t leading(const QsfMsg *msgs, size_t n) {
    size_t k = 0;
    while (k < n && strcmp(msgs[k].role, "system") == 0) k++;
    return k;
}

/* The leading messages and another text after them. A line feed may become one token with the end of the
 * template's own text before it, as the first letters of a text may not. */
static uint32_t common_tokens(const QsfRuntime *r, const QsfMsg *msgs, size_t k, unsigned flags,
                              const QsfIds *ids) {
    QsfMsg other[LEADING + 1];
    const bool feed = msgs[k].len > 0 && msgs[k].content[0] == '\n';
    const char *text = feed ? "0" : "\n0";
    QsfIds two = { .ledger = ids->ledger };
    QsfErr err = { 0 };
    size_t same = 0;
    memcpy(other, msgs, k * sizeof *msgs);
    other[k] = (QsfMsg){ .role = msgs[k].role, .content = text, .len = strlen(text) };
    if (k == 0) other[0].tools = msgs[0].tools, other[0].tools_len = msgs[0].tools_len;
    if (qsf_chat_encode(r->tmpl, r->tok, other, k + 1, flags, &two, &err) == QSF_OK)
        while (same < two.n && same < ids->n && two.data[same] == ids->data[same]) same++;
    qsf_ids_free(&two);
    return (uint32_t)same;
}

uint32_t qsf_system_tokens(const QsfRuntime *r, const QsfMsg *msgs, size_t n, unsigned flags,
                           const QsfIds *ids) {
    const size_t k = leading(msgs, n);
    const uint64_t bytes = text_bytes(msgs, k > 0 ? k : n > 0) * QSF_REQUEST_BYTES;
    QsfErr err = { 0 };
    if (r->tmpl == NULL || (flags & QSF_CHAT_RAW) != 0 || k == n || k > LEADING) return 0;
    if (k == 0 && msgs[0].tools_len == 0) return 0;
    if (!qsf_forward_evicts(r->fwd) && qsf_forward_state_bytes(r->fwd) == 0) return 0;
    if (qsf_ledger_reserve(ids->ledger, QSF_MEM_TRANSCRIPT, bytes, "the system prompt", &err) != QSF_OK)
        return 0;
    const uint32_t same = common_tokens(r, msgs, k, flags, ids);
    qsf_ledger_release(ids->ledger, QSF_MEM_TRANSCRIPT, bytes);
    return same;
}

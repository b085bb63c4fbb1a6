/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Closing reasoning: implements reasoning_limit.h. */
#include "src/engine/reasoning_limit.h"

#include <stdio.h>
#include <string.h>

/* Appends the tokens of text; those that do not fit are left out. */
static int add(QsfReasoningLimit *l, const QsfRuntime *rt, const char *text, size_t len, unsigned flags,
               QsfErr *err) {
    QsfIds ids = { 0 };
    int rc = len > 0 ? qsf_tokenizer_encode(rt->tok, text, len, flags | QSF_TOK_NO_PREFIX, &ids, err)
                     : QSF_OK;
    const size_t room = QSF_REASONING_IDS - l->n, n = ids.n < room ? ids.n : room;
    if (rc == QSF_OK && n > 0) memcpy(l->ids + l->n, ids.data, n * sizeof *l->ids);
    if (rc == QSF_OK) l->n += (uint32_t)n;
    qsf_ids_free(&ids);
    return rc;
}

/* The sentence has paragraphs of its own. */
static int add_message(QsfReasoningLimit *l, const QsfRuntime *rt, const char *message, QsfErr *err) {
    char text[QSF_SETTING_LINE + 4];
    if (message[0] == '\0') return QSF_OK;
    const int n = snprintf(text, sizeof text, "\n\n%s\n", message);
    return add(l, rt, text, (size_t)n, 0, err);
}

int qsf_reasoning_limit_init(QsfReasoningLimit *l, const QsfRuntime *rt, const QsfThink *think,
                             const char *message, QsfErr *err) {
    QsfThinkClose c;
    memset(l, 0, sizeof *l);
    if (!qsf_think_close(think, &c)) return QSF_OK;
    int rc = add_message(l, rt, message, err);
    l->close = l->n;
    if (rc == QSF_OK) rc = add(l, rt, c.close, strlen(c.close), QSF_TOK_SPECIAL, err);
    l->after = l->n;
    if (rc == QSF_OK) rc = add(l, rt, c.after, strlen(c.after), QSF_TOK_SPECIAL, err);
    return rc;
}

static bool is_likely(const float *logits, uint32_t n_vocab, int32_t id) {
    uint32_t above = 0;
    for (uint32_t i = 0; i < n_vocab && above < QSF_REASONING_LIKELY; i++) above += logits[i] > logits[id];
    return above < QSF_REASONING_LIKELY;
}

/* ids[from..end) come next. */
static void take(QsfReasoningLimit *l, uint32_t from, uint32_t end) {
    l->at = from;
    l->end = end;
    l->cut = true;
}

/* A limit of 0 tokens leaves nothing to finish. */
static uint32_t hard_limit(uint32_t most) { return most == 0 ? 0 : most + QSF_REASONING_GRACE; }

int32_t qsf_reasoning_limit_next(QsfReasoningLimit *l, const QSFParams *p, const float *logits,
                                 uint32_t n_vocab, int32_t sampled, uint32_t tokens, bool inside, bool now) {
    if (l->at < l->end) return l->ids[l->at++];
    if (!inside || l->close == l->after || sampled == l->ids[l->close] || (p->reasoning_limit <= 0 && !now))
        return -1;
    const uint32_t most = p->reasoning_limit > 0 ? (uint32_t)p->reasoning_limit - 1 : UINT32_MAX;
    const bool again = l->cut; /* the model was told already; with a limit of 0 there is no thought to end */
    if (now || (most != UINT32_MAX && tokens >= hard_limit(most)))
        take(l, again || most == 0 || tokens == 0 ? l->close : 0, l->n);
    else if (tokens >= most && is_likely(logits, n_vocab, l->ids[l->close]))
        take(l, l->close, l->after);
    return l->at < l->end ? l->ids[l->at++] : -1;
}

/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The form in which a template reads messages, found by rendering short ones: contents are strings, or for
 * some templates lists of typed parts ({"type": "text", "text": ...}), as huggingface/transformers passes
 * them to processors; earlier reasoning is a part of its own for some (mistralai: Magistral, Ministral). */
#include <string.h>

#include "src/chat/impl.h"
#include "src/chat/think.h"

/* Texts that no template contains. */
#define USER      "Zquserk"
#define ASSISTANT "Zqanswerk"
#define SYSTEM    "Zqsystemk"
#define THOUGHT   "Zqthoughtk"

#define MSG(r, text) \
    { .role = (r), .content = (text), .len = sizeof(text) - 1 }

static const QsfMsg user_first[] = { MSG("user", USER) };
static const QsfMsg answered[] = { MSG("user", USER), MSG("assistant", ASSISTANT), MSG("user", USER) };
static const QsfMsg system_first[] = { MSG("system", SYSTEM), MSG("user", USER) };
static const QsfMsg reasoned[] = { MSG("user", USER),
                                   { .role = "assistant",
                                     .content = ASSISTANT,
                                     .len = sizeof ASSISTANT - 1,
                                     .reasoning = THOUGHT,
                                     .reasoning_len = sizeof THOUGHT - 1 },
                                   MSG("user", USER) };

/* Whether the text of a part, not a whole part as Python prints it, is in the rendering. */
static bool has_text(const QsfRendered *r, const char *text) {
    static const char *const printed[] = { "'text': '", "\"text\": \"", "\"text\":\"" };
    const char *all = qsf_strbuf_str(&r->text), *at = strcasestr(all, text);
    if (at == NULL) return false;
    for (size_t i = 0; i < sizeof printed / sizeof *printed; i++) {
        size_t n = strlen(printed[i]);
        if ((size_t)(at - all) >= n && memcmp(at - n, printed[i], n) == 0) return false;
    }
    return true;
}

typedef struct Probe {
    const QsfMsg *msgs; /* (n) */
    size_t n;
    const char *text; /* must be in the rendering */
} Probe;

/* *ok: the template rendered them; *shown: with the text. */
static int probe(QsfChatTemplate *t, const Probe *p, bool *ok, bool *shown, QsfErr *err) {
    QsfChatRequest q = { .msgs = p->msgs, .n = p->n, .generation = true };
    QsfRendered r = { 0 };
    int rc = qsf_chat_sample(t, &q, &r, ok, err);
    *shown = rc == QSF_OK && *ok && has_text(&r, p->text);
    qsf_rendered_free(&r);
    return rc;
}

/* Passes a list for the role if its text is missing without one and appears with it. *shown:
 * the text appears. */
static int choose_form(QsfChatTemplate *t, const Probe *p, unsigned role, bool *ok, bool *shown,
                       QsfErr *err) {
    bool listed_ok;
    int rc = probe(t, p, ok, shown, err);
    if (rc != QSF_OK || *shown) return rc;
    t->listed |= role;
    rc = probe(t, p, &listed_ok, shown, err);
    if (rc != QSF_OK || !*shown)
        t->listed &= ~role;
    else
        *ok = true;
    return rc;
}

static int choose_thinking(QsfChatTemplate *t, QsfErr *err) {
    static const Probe thought = { reasoned, 3, THOUGHT }, answer = { reasoned, 3, ASSISTANT };
    bool ok, shown = false;
    int rc = QSF_OK;
    if (qsf_think_field(t->source, t->source_len) != NULL || !qsf_jinja_has_word(t->jinja, "thinking"))
        return QSF_OK;
    for (int form = QSF_CHAT_THINKING_TEXT; form <= QSF_CHAT_THINKING_PARTS && rc == QSF_OK && !shown;
         form++) {
        t->thinking = form;
        rc = probe(t, &thought, &ok, &shown, err);
        if (rc == QSF_OK && shown) rc = probe(t, &answer, &ok, &shown, err);
    }
    if (!shown) t->thinking = QSF_CHAT_THINKING_NONE;
    return rc;
}

int qsf_chat_choose_forms(QsfChatTemplate *t, QsfErr *err) {
    static const Probe user = { user_first, 1, USER }, assistant = { answered, 3, ASSISTANT },
                       system = { system_first, 2, SYSTEM };
    bool ok, shown, ignored;
    int rc = choose_form(t, &user, QSF_CHAT_USER, &ok, &shown, err);
    t->hides_user = ok && !shown;
    if (rc == QSF_OK) rc = choose_form(t, &assistant, QSF_CHAT_ASSISTANT, &ignored, &shown, err);
    if (rc == QSF_OK) rc = choose_form(t, &system, QSF_CHAT_SYSTEM, &ignored, &shown, err);
    return rc == QSF_OK ? choose_thinking(t, err) : rc;
}

/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Choosing the chat template: the model's own, a file named by the user, or a file that replaces a template
 * we cannot run. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/chat/chat_impl.h"
#include "src/chat/think.h"

/* --- the form in which a template reads messages, found by rendering short ones: contents are strings, or
 * for some templates lists of typed parts ({"type": "text", "text": ...}), as huggingface/transformers passes
 * them to processors; earlier reasoning is a separate part for some (mistralai: Magistral, Ministral) --- */

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

/* Finds the form of messages: t->listed, t->thinking, t->hides_user. QSF_E_RUNTIME without memory. */
static int chat_choose_forms(QsfChatTemplate *t, QsfErr *err) {
    static const Probe user = { user_first, 1, USER }, assistant = { answered, 3, ASSISTANT },
                       system = { system_first, 2, SYSTEM };
    bool ok, shown, ignored;
    int rc = choose_form(t, &user, QSF_CHAT_USER, &ok, &shown, err);
    t->hides_user = ok && !shown;
    if (rc == QSF_OK) rc = choose_form(t, &assistant, QSF_CHAT_ASSISTANT, &ignored, &shown, err);
    if (rc == QSF_OK) rc = choose_form(t, &system, QSF_CHAT_SYSTEM, &ignored, &shown, err);
    return rc == QSF_OK ? choose_thinking(t, err) : rc;
}

#define KEY_TEMPLATE "tokenizer.chat_template"
#define MODEL        "model:" /* prefix of the names of a model's own templates */

/* Compiles the template and takes over the contents of file, also on failure. where names the template in
 * messages. */
static int make(QsfChatTemplate **out, const QsfSource *src, const QsfTokenizer *tok, QsfChatFile *file,
                const char *where, QsfErr *err) {
    QsfChatTemplate *t = calloc(1, sizeof *t);
    int rc = QSF_OK;
    *out = NULL;
    if (t != NULL) {
        *t = (QsfChatTemplate){ .name = file->name, .source = file->text, .source_len = file->len };
        t->sample_steps = QSF_CHAT_SAMPLE_STEPS;
        file->name = file->text = NULL;
    }
    if (t == NULL || t->source == NULL || t->name == NULL)
        rc = qsf_err_memory(err, "chat template");
    else
        rc = qsf_chat_vars_init(t, src, tok, file->config, err);
    if (rc == QSF_OK && (rc = qsf_jinja_compile(&t->jinja, t->source, t->source_len, NULL, err)) != QSF_OK)
        qsf_err_prefix(err, "chat template %s", where);
    qsf_chat_file_free(file);
    if (rc == QSF_OK) rc = chat_choose_forms(t, err);
    if (rc == QSF_OK) rc = qsf_chat_find_switches(t, err);
    if (rc == QSF_OK)
        *out = t;
    else
        qsf_chat_template_close(t);
    return rc;
}

void qsf_chat_template_close(QsfChatTemplate *t) {
    if (t == NULL) return;
    qsf_jinja_free(t->jinja);
    qsf_chat_vars_free(t);
    free(t->name);
    free(t->given);
    free(t->model);
    free(t->source);
    free(t);
}

const char *qsf_chat_template_name(const QsfChatTemplate *t) { return t->name; }
const char *qsf_chat_template_source(const QsfChatTemplate *t) { return t->source; }

/* notice: as qsf_chat_template_open. Installed files need none. */
static int open_file(QsfChatTemplate **out, const QsfSource *src, const QsfTokenizer *tok, const char *name,
                     char *notice, size_t cap, QsfErr *err) {
    QsfChatFile file;
    int rc = qsf_chat_file_read(name, &file, err);
    if (rc == QSF_OK && file.damage != NULL && notice != NULL)
        snprintf(notice, cap, "chat template %.160s: %s", name, file.damage);
    if (rc == QSF_OK) rc = make(out, src, tok, &file, name, err);
    if (rc == QSF_OK && ((*out)->given = strdup(name)) == NULL) {
        qsf_chat_template_close(*out);
        *out = NULL;
        rc = qsf_err_memory(err, "chat template");
    }
    return rc;
}

/* --- a file that replaces the model's template --- */

/* Whether it renders at all. A template may refuse (raise) the test messages, but must not fail. */
static int try_out(const QsfChatTemplate *t, QsfErr *err) {
    QsfErr e = { 0 };
    bool raised;
    int rc = qsf_chat_try(t, &raised, &e);
    if (rc == QSF_OK || raised) return QSF_OK;
    return e.memory ? qsf_err_pass(err, &e) : qsf_err_set(err, QSF_E_MODEL, "%s", e.msg);
}

static void say(char *notice, size_t cap, const char *why, const char *file) {
    if (notice != NULL && cap > 0)
        snprintf(notice, cap, "The model's chat template cannot be used (%.160s): using %s instead.", why,
                 file);
}

/* Only named templates, none of them "default". */
static void say_first(const char *used, char *notice, size_t cap) {
    if (used == NULL || notice == NULL || cap == 0 || notice[0] != '\0') return;
    snprintf(notice, cap,
             "The model has no default chat template: using its first named one, model:%.60s; choose with "
             "--template.",
             used);
}

/* A base model, or a chat model whose file lacks the template. */
static void say_none(const QsfSource *src, const QsfTokenizer *tok, char *notice, size_t cap) {
    const char *file = qsf_chat_family(src, tok, NULL, 0);
    if (notice == NULL || cap == 0) return;
    snprintf(notice, cap, "The model has no chat template: text is continued as it is%s%s%s.",
             file != NULL ? " (its tokens are those of the template " : "", file != NULL ? file : "",
             file != NULL ? ")" : "");
}

static int open_replacement(QsfChatTemplate **out, const QsfSource *src, const QsfTokenizer *tok,
                            const char *text, size_t len, const QsfErr *why, char *notice, size_t notice_cap,
                            QsfErr *err) {
    const char *file = qsf_chat_family(src, tok, text, len);
    QsfErr e = { 0 };
    if (file == NULL) file = qsf_chat_family(src, tok, NULL, 0);
    if (file == NULL || open_file(out, src, tok, file, NULL, 0, &e) != QSF_OK)
        return e.memory ? qsf_err_pass(err, &e)
                        : qsf_err_set(err, QSF_E_MODEL, "%s: %s; choose a different one with --template",
                                      qsf_source_path(src), why->msg);
    say(notice, notice_cap, why->msg, file);
    return QSF_OK;
}

/* --- the model's own --- */

/* The NAME in a key "tokenizer.chat_template.NAME" with a string value, otherwise NULL. */
static const char *variant_at(const QsfSource *src, size_t i) {
    QsfMetaType type, elem;
    uint64_t count;
    const char *key = qsf_meta_at(src, i, &type, &elem, &count);
    size_t n = strlen(KEY_TEMPLATE ".");
    return type == QSF_META_STRING && strncmp(key, KEY_TEMPLATE ".", n) == 0 && key[n] != '\0' ? key + n
                                                                                               : NULL;
}

char *qsf_chat_template_variants(const QsfSource *src) {
    QsfStrbuf b = QSF_STRBUF_INIT;
    for (size_t i = 0; i < qsf_meta_count(src); i++) {
        const char *name = variant_at(src, i);
        if (name == NULL) continue;
        qsf_strbuf_adds(&b, MODEL);
        qsf_strbuf_add(&b, name, strlen(name) + 1);
    }
    qsf_strbuf_addc(&b, '\0');
    return qsf_strbuf_take(&b, NULL);
}

/* Text of the template named variant; NULL: the unnamed one, or the named one used as the default. *text is
 * NULL if there is none. *first (may be NULL): the name of the one that is used for want of a
 * default, or NULL. */
static int model_text(const QsfSource *src, const char *variant, const char **text, size_t *len,
                      const char **first, QsfErr *err) {
    QsfStrbuf key = QSF_STRBUF_INIT;
    qsf_strbuf_addf(&key, KEY_TEMPLATE "%s%s", variant != NULL ? "." : "", variant != NULL ? variant : "");
    int rc = qsf_strbuf_ok(&key) ? qsf_meta_str(src, qsf_strbuf_str(&key), text, len, err)
                                 : qsf_err_memory(err, "chat template");
    qsf_strbuf_free(&key);
    if (rc != QSF_OK || (*text != NULL && *len > 0)) return rc;
    *text = NULL;
    if (variant != NULL && strcmp(variant, "default") == 0)
        return qsf_meta_str(src, KEY_TEMPLATE, text, len, err);
    const char *named = NULL;
    for (size_t i = 0; variant == NULL && i < qsf_meta_count(src); i++) {
        const char *name = variant_at(src, i);
        if (name != NULL && (named == NULL || strcmp(name, "default") == 0)) named = name;
    }
    if (named == NULL) return QSF_OK;
    if (first != NULL && strcmp(named, "default") != 0) *first = named;
    return model_text(src, named, text, len, NULL, err);
}

static int no_variant(const QsfSource *src, const char *variant, QsfErr *err) {
    QsfStrbuf b = QSF_STRBUF_INIT;
    char *list = qsf_chat_template_variants(src);
    for (const char *p = list; p != NULL && *p != '\0'; p += strlen(p) + 1)
        qsf_strbuf_addf(&b, "%s%s", p == list ? "" : ", ", p);
    free(list);
    qsf_err_set(err, QSF_E_USAGE, "%s: has no chat template \"%s\"; named ones: %s", qsf_source_path(src),
                variant, b.len > 0 ? qsf_strbuf_str(&b) : "none");
    qsf_strbuf_free(&b);
    return QSF_E_USAGE;
}

static int open_own(QsfChatTemplate **out, const QsfSource *src, const QsfTokenizer *tok, const char *text,
                    size_t len, const char *variant, QsfErr *err) {
    QsfChatFile file = { .text = malloc(len + 1), .len = len };
    QsfStrbuf name = QSF_STRBUF_INIT;
    if (file.text != NULL) {
        memcpy(file.text, text, len);
        file.text[len] = '\0';
    }
    qsf_strbuf_adds(&name, variant != NULL ? MODEL : "model");
    qsf_strbuf_adds(&name, variant != NULL ? variant : "");
    file.name = qsf_strbuf_take(&name, NULL);
    int rc = make(out, src, tok, &file, "of the model", err);
    if (rc == QSF_OK) rc = try_out(*out, err);
    if (rc == QSF_OK && ((*out)->model = strdup(qsf_source_path(src))) == NULL)
        rc = qsf_err_memory(err, "chat template");
    if (rc != QSF_OK) {
        qsf_chat_template_close(*out);
        *out = NULL;
    }
    return rc;
}

/* variant NULL: the one used by default. */
static int open_model(QsfChatTemplate **out, const QsfSource *src, const QsfTokenizer *tok,
                      const char *variant, char *notice, size_t notice_cap, QsfErr *err) {
    const char *text, *file = NULL, *first = NULL;
    size_t len;
    QsfErr why = { 0 };
    int rc = model_text(src, variant, &text, &len, &first, err);
    if (rc == QSF_OK && text == NULL && variant != NULL) return no_variant(src, variant, err);
    if (rc == QSF_OK && (text == NULL || len == 0)) say_none(src, tok, notice, notice_cap);
    if (rc != QSF_OK || text == NULL || len == 0) return rc; /* a base model: *out stays NULL */
    const char *stand_in = variant == NULL ? qsf_chat_placeholder(text, len, &file) : NULL;
    if (stand_in != NULL && open_file(out, src, tok, file, NULL, 0, &why) == QSF_OK) {
        say(notice, notice_cap, stand_in, file);
        return QSF_OK;
    }
    if (why.memory) return qsf_err_pass(err, &why);
    qsf_err_clear(&why);
    if (open_own(out, src, tok, text, len, variant, &why) == QSF_OK) {
        say_first(first, notice, notice_cap);
        return QSF_OK;
    }
    if (why.code == QSF_E_RUNTIME) {
        if (!why.memory) qsf_err_prefix(&why, "%s", qsf_source_path(src));
        return qsf_err_pass(err, &why);
    }
    return open_replacement(out, src, tok, text, len, &why, notice, notice_cap, err);
}

/* A file of that name, otherwise a named template of the model. */
static int open_named(QsfChatTemplate **out, const QsfSource *src, const QsfTokenizer *tok, const char *name,
                      char *notice, size_t notice_cap, QsfErr *err) {
    QsfErr e = { 0 };
    int rc = open_file(out, src, tok, name, notice, notice_cap, &e);
    for (size_t i = 0; rc == QSF_E_USAGE && i < qsf_meta_count(src); i++) {
        const char *variant = variant_at(src, i);
        if (variant != NULL && strcmp(variant, name) == 0)
            return open_model(out, src, tok, variant, notice, notice_cap, err);
    }
    return qsf_err_pass(err, &e);
}

int qsf_chat_template_open(QsfChatTemplate **out, const QsfSource *src, const QsfTokenizer *tok,
                           const char *name, char *notice, size_t notice_cap, QsfErr *err) {
    size_t n = strlen(MODEL);
    *out = NULL;
    if (notice != NULL && notice_cap > 0) notice[0] = '\0';
    if (name == NULL) return open_model(out, src, tok, NULL, notice, notice_cap, err);
    if (strcmp(name, "raw") == 0 || strcmp(name, "raw.jinja") == 0) return QSF_OK;
    if (strncmp(name, MODEL, n) == 0) return open_model(out, src, tok, name + n, notice, notice_cap, err);
    return open_named(out, src, tok, name, notice, notice_cap, err);
}

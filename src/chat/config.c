/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Chat templates in Hugging Face directories: a string or a list of named ones in tokenizer_config.json, or,
 * in newer directories, a separate file with the named ones next to it (huggingface/transformers
 * docs/source/en/chat_templating.md). */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/chat/impl.h"

#define MAX_JSON ((size_t)64 << 20) /* Gemma's lists its added tokens: more than a megabyte */
#define MAX_TEXT ((size_t)1 << 20)

static int read_json(const char *path, QsfJson **out, const char **damage, QsfErr *err) {
    char *text;
    size_t len;
    int rc = qsf_chat_read_path(path, MAX_JSON, &text, &len, damage, err);
    if (rc != QSF_OK) return rc;
    QsfErr e = { 0 };
    *out = qsf_json_parse(text, len, &e);
    free(text);
    if (e.memory) return qsf_err_pass(err, &e);
    return *out != NULL ? QSF_OK : qsf_err_set(err, QSF_E_MODEL, "%s: %s", path, e.msg);
}

/* The names in a list of templates, for a message. */
static void list_names(const QsfJson *list, QsfStrbuf *b) {
    for (size_t i = 0; i < qsf_json_size(list); i++) {
        const char *name = qsf_json_string(qsf_json_get(qsf_json_at(list, i), "name"), NULL);
        if (name != NULL) qsf_strbuf_addf(b, "%s%s", b->len > 0 ? ", " : "", name);
    }
    const char *key;
    const QsfJson *member;
    for (const void *it = NULL; (it = qsf_json_next(list, it, &key, &member)) != NULL;)
        qsf_strbuf_addf(b, "%s%s", b->len > 0 ? ", " : "", key);
}

/* The template named variant (NULL: "default", otherwise the first), or NULL. */
static const QsfJson *find_variant(const QsfJson *chat, const char *variant) {
    const char *wanted = variant != NULL ? variant : "default";
    if (qsf_json_type(chat) == QSF_JSON_STRING) return strcmp(wanted, "default") == 0 ? chat : NULL;
    if (qsf_json_type(chat) == QSF_JSON_OBJECT) return qsf_json_get(chat, wanted);
    for (size_t i = 0; i < qsf_json_size(chat); i++) {
        const QsfJson *one = qsf_json_at(chat, i);
        const char *name = qsf_json_string(qsf_json_get(one, "name"), NULL);
        if (name != NULL && strcmp(name, wanted) == 0) return qsf_json_get(one, "template");
    }
    return variant == NULL ? qsf_json_get(qsf_json_at(chat, 0), "template") : NULL;
}

static int from_json(const QsfJson *config, const char *path, const char *variant, QsfChatFile *out,
                     QsfErr *err) {
    const QsfJson *chat = qsf_json_get(config, "chat_template");
    if (chat == NULL) return qsf_err_set(err, QSF_E_MODEL, "%s: has no chat_template", path);
    const char *text = qsf_json_string(find_variant(chat, variant), &out->len);
    if (text == NULL) {
        QsfStrbuf b = QSF_STRBUF_INIT;
        list_names(chat, &b);
        qsf_err_set(err, variant != NULL ? QSF_E_USAGE : QSF_E_MODEL,
                    "%s: no chat template \"%s\"; it has: %s", path, variant != NULL ? variant : "default",
                    b.len > 0 ? qsf_strbuf_str(&b) : "one without a name");
        qsf_strbuf_free(&b);
        return variant != NULL ? QSF_E_USAGE : QSF_E_MODEL;
    }
    if (out->len > MAX_TEXT)
        return qsf_err_set(err, QSF_E_MODEL, "%s: too large for a chat template: more than %zu bytes", path,
                           MAX_TEXT);
    out->text = malloc(out->len + 1);
    if (out->text == NULL) return qsf_err_memory(err, "%s", path);
    memcpy(out->text, text, out->len);
    out->text[out->len] = '\0';
    return QSF_OK;
}

/* folder/a/b, or NULL if there is no such file. */
static char *file_in(const char *folder, const char *name, const char *ending) {
    QsfStrbuf b = QSF_STRBUF_INIT;
    qsf_strbuf_addf(&b, "%s/%s%s", folder, name, ending);
    char *path = qsf_strbuf_take(&b, NULL);
    if (path != NULL && access(path, F_OK) == 0) return path;
    free(path);
    return NULL;
}

/* The separate template file in the directory, or NULL. */
static char *own_file(const char *folder, const char *variant) {
    if (variant == NULL || strcmp(variant, "default") == 0) return file_in(folder, "chat_template", ".jinja");
    if (strchr(variant, '/') != NULL) return NULL;
    QsfStrbuf b = QSF_STRBUF_INIT;
    qsf_strbuf_addf(&b, "additional_chat_templates/%s", variant);
    char *path = qsf_strbuf_ok(&b) ? file_in(folder, qsf_strbuf_str(&b), ".jinja") : NULL;
    qsf_strbuf_free(&b);
    return path;
}

/* The locations of the parts of a model; each may be missing. */
typedef struct Parts {
    char *own, *config, *chat;
} Parts;

static int from_parts(const Parts *p, const char *folder, const char *variant, QsfChatFile *out,
                      QsfErr *err) {
    int rc = p->config != NULL ? read_json(p->config, &out->config, &out->damage, err) : QSF_OK;
    if (rc != QSF_OK) return rc;
    if (p->own != NULL) return qsf_chat_read_path(p->own, MAX_TEXT, &out->text, &out->len, &out->damage, err);
    if (out->config != NULL && (p->chat == NULL || qsf_json_get(out->config, "chat_template") != NULL))
        return from_json(out->config, p->config, variant, out, err);
    if (p->chat == NULL)
        return qsf_err_set(
            err, QSF_E_MODEL,
            "%s: no chat template (chat_template.jinja, chat_template.json, tokenizer_config.json)", folder);
    QsfJson *chat;
    if ((rc = read_json(p->chat, &chat, &out->damage, err)) != QSF_OK) return rc;
    rc = from_json(chat, p->chat, variant, out, err);
    qsf_json_free(chat);
    return rc;
}

int qsf_chat_config_read(const char *path, const char *variant, QsfChatFile *out, QsfErr *err) {
    struct stat st;
    if (stat(path, &st) != 0 || !S_ISDIR(st.st_mode)) {
        int rc = read_json(path, &out->config, &out->damage, err);
        return rc == QSF_OK ? from_json(out->config, path, variant, out, err) : rc;
    }
    Parts p = { own_file(path, variant), file_in(path, "tokenizer_config", ".json"),
                file_in(path, "chat_template", ".json") };
    if (p.chat == NULL) p.chat = file_in(path, "processor_config", ".json");
    int rc = from_parts(&p, path, variant, out, err);
    free(p.own);
    free(p.config);
    free(p.chat);
    return rc;
}

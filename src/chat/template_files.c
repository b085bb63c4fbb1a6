/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Template files: the user's directory (templates in the configuration directory) is searched before the
 * installed one. */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "qsf_decode.h"
#include "src/base/ascii.h"
#include "src/base/decode.h"
#include "src/base/file.h"
#include "src/base/paths.h"
#include "src/base/utf8.h"
#include "src/chat/chat_impl.h"
#include "src/file/lfs.h"

#define ENDING    ".jinja"
#define MAX_BYTES ((size_t)1 << 20)
#define MAX_NAMES 1000

/* Aliases of files. */
static const char *const aliases[][2] = { { "mistral", "mistral-v1" } };

/* The directories, in search order; empty if there is none. */
static void folders(char out[2][QSF_PATH_MAX]) {
    char config[QSF_PATH_MAX];
    out[0][0] = '\0';
    if (qsf_path_config_home(config)) (void)qsf_path_join(out[0], config, "/templates", "");
    (void)qsf_path_data("templates", out[1]);
}

/* Length of a file name without the extension, 0 if it does not have it. */
static size_t stem(const char *name) {
    size_t len = strlen(name), end = strlen(ENDING);
    return len > end && name[0] != '.' && strcmp(name + len - end, ENDING) == 0 ? len - end : 0;
}

static int by_text(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

/* Adds the names of a directory's templates; false without memory. */
static bool collect(const char *folder, char **names, size_t *n) {
    DIR *dir = *folder == '\0' ? NULL : opendir(folder);
    struct dirent *entry;
    bool ok = *folder == '\0' || dir != NULL || errno != ENOMEM;
    while (ok && dir != NULL && *n < MAX_NAMES && (entry = readdir(dir)) != NULL) {
        size_t len = stem(entry->d_name);
        if (len == 0) continue;
        ok = (names[*n] = strndup(entry->d_name, len)) != NULL;
        if (ok) ++*n;
    }
    if (dir != NULL) closedir(dir);
    return ok;
}

char *qsf_chat_template_list(void) {
    char dirs[2][QSF_PATH_MAX], **names = calloc(MAX_NAMES, sizeof *names);
    size_t n = 0;
    QsfStrbuf b = QSF_STRBUF_INIT;
    if (names == NULL) return NULL;
    folders(dirs);
    bool ok = collect(dirs[0], names, &n) && collect(dirs[1], names, &n);
    qsort(names, n, sizeof *names, by_text);
    for (size_t i = 0; i < n; i++)
        if (i == 0 || strcmp(names[i], names[i - 1]) != 0) qsf_strbuf_add(&b, names[i], strlen(names[i]) + 1);
    qsf_strbuf_addc(&b, '\0');
    for (size_t i = 0; i < n; i++) free(names[i]);
    free(names);
    if (ok) return qsf_strbuf_take(&b, NULL);
    qsf_strbuf_free(&b);
    return NULL;
}

static int unknown_name(const char *name, QsfErr *err) {
    QsfStrbuf b = QSF_STRBUF_INIT;
    char *list = qsf_chat_template_list();
    for (const char *p = list; p != NULL && *p != '\0'; p += strlen(p) + 1) {
        qsf_strbuf_adds(&b, p == list ? "" : ", ");
        qsf_strbuf_adds(&b, p);
    }
    int rc = QSF_E_USAGE;
    if (list == NULL || !qsf_strbuf_ok(&b))
        rc = qsf_err_memory(err, "names of chat templates");
    else
        qsf_err_set(err, rc, "unknown chat template \"%s\"; expected the path of a file or one of: %s", name,
                    b.len > 0 ? qsf_strbuf_str(&b) : "none were found");
    qsf_strbuf_free(&b);
    free(list);
    return rc;
}

/* folder/name, with the extension added if missing, if there is such a file. */
static bool in_folder(const char *folder, const char *name, char out[QSF_PATH_MAX]) {
    char file[QSF_PATH_MAX];
    return *folder != '\0' && *name != '\0' && qsf_path_join(file, "/", name, stem(name) > 0 ? "" : ENDING) &&
           qsf_path_join(out, folder, file, "") && access(out, F_OK) == 0;
}

/* Finds the template; false if it does not exist. */
static bool find(const char *name, char out[QSF_PATH_MAX]) {
    char dirs[2][QSF_PATH_MAX];
    folders(dirs);
    if (strchr(name, '/') == NULL && (in_folder(dirs[0], name, out) || in_folder(dirs[1], name, out)))
        return true;
    if (qsf_path_join(out, name, "", "") && access(out, F_OK) == 0) return true;
    for (size_t i = 0; i < sizeof aliases / sizeof *aliases; i++)
        if (strcmp(aliases[i][0], name) == 0) return find(aliases[i][1], out);
    return false;
}

/* The same, also for FILE:NAME; *variant is then NAME, otherwise NULL. */
static bool locate(const char *name, const char **variant, char out[QSF_PATH_MAX]) {
    const char *colon = strrchr(name, ':');
    char before[QSF_PATH_MAX];
    *variant = NULL;
    if (find(name, out)) return true;
    if (colon == NULL || colon == name || colon[1] == '\0' || !qsf_path_join(before, name, "", ""))
        return false;
    before[colon - name] = '\0';
    *variant = colon + 1;
    return find(before, out);
}

/* The last part of path without its extension, followed by the variant. */
static char *base_name(const char *path, const char *variant) {
    size_t end = strlen(path);
    while (end > 1 && path[end - 1] == '/') end--;
    size_t from = end;
    while (from > 0 && path[from - 1] != '/') from--;
    char *last = strndup(path + from, end - from);
    if (last == NULL) return NULL;
    size_t len = stem(last);
    QsfStrbuf b = QSF_STRBUF_INIT;
    qsf_strbuf_addf(&b, "%.*s%s%s", (int)(len > 0 ? len : strlen(last)), last, variant != NULL ? ":" : "",
                    variant != NULL ? variant : "");
    free(last);
    return qsf_strbuf_take(&b, NULL);
}

static const char *damage_of(const QsfStrbuf *b, bool decoded) {
    if (!decoded) return QSF_DECODE_DAMAGED;
    return qsf_utf8_valid(qsf_strbuf_str(b), b->len) ? NULL : QSF_DECODE_NOT_UTF8;
}

/* The whole file at path as UTF-8 and a NUL, malloc'ed. *damage: as QsfChatFile. QSF_E_MODEL, also if it has
 * more than max bytes. */
static int chat_read_path(const char *path, size_t max, char **text, size_t *len, const char **damage,
                          QsfErr *err) {
    QsfFile f;
    *text = NULL;
    *damage = NULL;
    int rc = qsf_file_open(&f, path, err);
    if (rc != QSF_OK) return rc;
    rc = qsf_lfs_check(&f, err);
    if (rc != QSF_OK) {
        qsf_file_close(&f);
        return rc;
    }
    if (f.size > max)
        rc = qsf_err_set(err, QSF_E_MODEL, "%s: too large for a chat template: more than %zu bytes", path,
                         max);
    else if ((*text = malloc(f.size + 1)) == NULL)
        rc = qsf_err_memory(err, "%s", path);
    else
        rc = qsf_file_pread(&f, *text, f.size, 0, err);
    if (rc == QSF_OK) {
        QsfStrbuf b = { .data = *text, .len = f.size, .cap = f.size + 1 };
        (*text)[f.size] = '\0';
        const bool decoded = qsf_strbuf_decode(&b);
        *damage = damage_of(&b, decoded);
        if ((*text = qsf_strbuf_take(&b, len)) == NULL) rc = qsf_err_memory(err, "%s", path);
    } else {
        free(*text);
        *text = NULL;
    }
    qsf_file_close(&f);
    return rc;
}

/* --- chat templates in Hugging Face directories: a string or a list of named ones in
 * tokenizer_config.json, or, in newer directories, a separate file with the named ones next to it
 * (huggingface/transformers docs/source/en/chat_templating.md) --- */

#define MAX_JSON ((size_t)64 << 20) /* Gemma's lists its added tokens: more than a megabyte */
#define MAX_TEXT ((size_t)1 << 20)

static int read_json(const char *path, QsfJson **out, const char **damage, QsfErr *err) {
    char *text;
    size_t len;
    int rc = chat_read_path(path, MAX_JSON, &text, &len, damage, err);
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
    if (p->own != NULL) return chat_read_path(p->own, MAX_TEXT, &out->text, &out->len, &out->damage, err);
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

/* Reads tokenizer_config.json, chat_template.json, or the directory that contains them (or
 * chat_template.jinja). variant NULL: the default one. out->name is not changed. QSF_E_MODEL, QSF_E_USAGE (no
 * such variant). */
static int chat_config_read(const char *path, const char *variant, QsfChatFile *out, QsfErr *err) {
    if (!qsf_path_is_dir(path)) {
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

/* --- files and names --- */

/* A directory or a .json file is a model's configuration. */
static bool is_config(const char *path) { return qsf_ends_with(path, ".json") || qsf_path_is_dir(path); }

void qsf_chat_file_free(QsfChatFile *f) {
    free(f->text);
    free(f->name);
    qsf_json_free(f->config);
    *f = (QsfChatFile){ 0 };
}

int qsf_chat_file_read(const char *name, QsfChatFile *out, QsfErr *err) {
    const char *variant;
    char path[QSF_PATH_MAX];
    int rc;
    *out = (QsfChatFile){ 0 };
    if (!locate(name, &variant, path)) return unknown_name(name, err);
    if (is_config(path))
        rc = chat_config_read(path, variant, out, err);
    else if (variant != NULL)
        rc = qsf_err_set(err, QSF_E_USAGE, "%s: contains a single template, not one called \"%s\"", path,
                         variant);
    else
        rc = chat_read_path(path, MAX_BYTES, &out->text, &out->len, &out->damage, err);
    if (rc == QSF_OK && (out->name = base_name(path, variant)) == NULL) rc = qsf_err_memory(err, "%s", name);
    if (rc != QSF_OK) qsf_chat_file_free(out);
    return rc;
}

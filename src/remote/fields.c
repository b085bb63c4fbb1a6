/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "src/remote/fields.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/file.h"
#include "src/base/json.h"

#define GRAMMAR_MAX ((uint64_t)4 << 20) /* bytes of its file */

typedef struct Put {
    const QsfFieldInput *in;
    QsfStrbuf *b;
    const char *field, *value; /* value: as qsf_setting_get prints it */
    QsfErr *err;
} Put;

/* Appends the field; false: nothing of this value can be sent, or *err is set. */
typedef bool (*PutValue)(const Put *p);

typedef struct Field {
    const char *setting; /* NULL: not a setting */
    const char *field;
    unsigned servers; /* QSF_ON_* that know it */
    PutValue put;
} Field;

static void put_name(const Put *p) { qsf_strbuf_addf(p->b, ", \"%s\": ", p->field); }

static bool put_number(const Put *p) {
    if (!isdigit((unsigned char)p->value[*p->value == '-'])) return false; /* "random" */
    put_name(p);
    qsf_strbuf_adds(p->b, p->value);
    return true;
}

static bool put_switch(const Put *p) {
    if (strcmp(p->value, "on") != 0) return false;
    put_name(p);
    qsf_strbuf_adds(p->b, "true");
    return true;
}

/* How much, for servers that take words. */
static bool put_effort(const Put *p) {
    static const char *const words[] = { "low", "medium", "high" };
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (strcmp(p->value, words[i]) != 0) continue;
        put_name(p);
        qsf_strbuf_addf(p->b, "\"%s\"", words[i]);
        return true;
    }
    if (strcmp(p->value, "off") != 0 || p->in->server != QSF_SERVER_OLLAMA) return false;
    put_name(p);
    qsf_strbuf_adds(p->b, "\"none\"");
    return true;
}

/* Whether, for servers that pass arguments to the template of the model. */
static bool put_thinking(const Put *p) {
    const bool off = strcmp(p->value, "off") == 0;
    if (!off && strcmp(p->value, "on") != 0) return false;
    put_name(p);
    qsf_strbuf_addf(p->b, "{\"enable_thinking\": %s}", off ? "false" : "true");
    return true;
}

static bool put_stop(const Put *p) {
    const QsfFieldInput *in = p->in;
    if (in->n_stop == 0) return false;
    put_name(p);
    for (size_t i = 0; i < in->n_stop; i++) {
        qsf_strbuf_adds(p->b, i > 0 ? ", " : "[");
        qsf_json_put_string(p->b, in->stop[i], strlen(in->stop[i]));
    }
    qsf_strbuf_addc(p->b, ']');
    return true;
}

static bool put_usage(const Put *p) {
    put_name(p);
    qsf_strbuf_adds(p->b, "{\"include_usage\": true}");
    return true;
}

static bool put_true(const Put *p) {
    put_name(p);
    qsf_strbuf_adds(p->b, "true");
    return true;
}

/* The smaller one of the limit of this answer and the setting. */
static bool put_limit(const Put *p) {
    const unsigned long set = strtoul(p->value, NULL, 10), own = p->in->max_tokens;
    const unsigned long least = set == 0 || (own > 0 && own < set) ? own : set;
    if (least == 0) return false;
    put_name(p);
    qsf_strbuf_addf(p->b, "%lu", least);
    return true;
}

#define OTHER    (QSF_ON(OTHER))
#define LLAMA    (QSF_ON(LLAMA))
#define VLLM     (QSF_ON(VLLM))
#define LMSTUDIO (QSF_ON(LMSTUDIO))
#define QSF      (QSF_ON(QSF))
/* From ggml-org/llama.cpp tools/server/server-schema.cpp and server-common.cpp, vllm-project/vllm
 * vllm/entrypoints/openai/chat_completion/protocol.py, ollama/ollama openai/openai.go, lmstudio-ai/docs
 * 1_developer/3_openai-compat/chat-completions.md. Of two names for the same, that of vLLM and OpenRouter is
 * tried where nothing is known. */
static const Field fields[] = {
    { "temperature", "temperature", QSF_ON_EVERY, put_number },
    { "top-p", "top_p", QSF_ON_EVERY, put_number },
    { "seed", "seed", QSF_ON_EVERY, put_number },
    { "max-tokens", "max_tokens", QSF_ON_EVERY, put_limit },
    { "max-tokens", "max_completion_tokens", 0,
      put_limit }, /* instead of the one above, if that is refused */
    { "presence", "presence_penalty", QSF_ON_EVERY, put_number },
    { "frequency", "frequency_penalty", QSF_ON_EVERY, put_number },
    { "top-k", "top_k", QSF_ON_SAMPLING, put_number },
    { "min-p", "min_p", QSF_ON_SAMPLING & ~LMSTUDIO, put_number },
    { "repeat-penalty", "repeat_penalty", LLAMA | LMSTUDIO | QSF, put_number },
    { "repeat-penalty", "repetition_penalty", VLLM | OTHER, put_number },
    { "repeat-last-n", "repeat_last_n", LLAMA | QSF, put_number },
    { "typical", "typical_p", LLAMA | QSF, put_number },
    { "top-n-sigma", "top_n_sigma", LLAMA | QSF, put_number },
    { "dry", "dry_multiplier", LLAMA | QSF, put_number },
    { "dry-base", "dry_base", LLAMA | QSF, put_number },
    { "dry-length", "dry_allowed_length", LLAMA | QSF, put_number },
    { "xtc", "xtc_probability", LLAMA | QSF, put_number },
    { "xtc-threshold", "xtc_threshold", LLAMA | QSF, put_number },
    { "dynatemp", "dynatemp_range", LLAMA | QSF, put_number },
    { "dynatemp-exp", "dynatemp_exponent", LLAMA | QSF, put_number },
    { "mirostat", "mirostat", LLAMA | QSF, put_number },
    { "mirostat-tau", "mirostat_tau", LLAMA | QSF, put_number },
    { "mirostat-eta", "mirostat_eta", LLAMA | QSF, put_number },
    { "adaptive-target", "adaptive_target", LLAMA | QSF, put_number },
    { "adaptive-decay", "adaptive_decay", LLAMA | QSF, put_number },
    { "quality", "quality", QSF, put_number },
    { "reasoning-budget", "reasoning_budget", QSF, put_number },
    { "reasoning-budget", "reasoning_budget_tokens", LLAMA, put_number },
    { "reasoning-budget", "thinking_token_budget", VLLM, put_number },
    { "ignore-eos", "ignore_eos", LLAMA | VLLM | QSF, put_switch },
    { "reasoning", "chat_template_kwargs", LLAMA | VLLM | QSF, put_thinking },
    { "reasoning", "reasoning_effort", QSF_ON_EVERY, put_effort },
    { NULL, "stop", QSF_ON_EVERY, put_stop },
    { NULL, "stream_options", QSF_ON_EVERY, put_usage },
    { NULL, "return_progress", LLAMA, put_true },
    { NULL, "timings_per_token", LLAMA, put_true }, /* counts also of an answer that is stopped */
};
#define N_FIELDS (sizeof fields / sizeof *fields)
_Static_assert(N_FIELDS <= 64, "QsfFieldSet has a bit for each row");

static QsfFieldSet bit(size_t i) { return (QsfFieldSet)1 << i; }

/* The field that replaces one that was refused: the next row of the same setting. */
static bool is_known(size_t i, QsfRemoteServer server, QsfFieldSet refused) {
    const Field *f = &fields[i];
    if (f->servers == 0) return (refused & bit(i - 1)) != 0;
    return (f->servers & (1u << server)) != 0;
}

/* ---- what an answer has to match */

static const char *grammar_name(unsigned kind) {
    static const char *const names[QSF_GRAMMAR_N] = { "", "grammar", "json-schema", "regex", "only" };
    return kind < QSF_GRAMMAR_N ? names[kind] : "grammar";
}

static bool can_hold(unsigned kind, QsfRemoteServer server) {
    static const unsigned servers[QSF_GRAMMAR_N] = { [QSF_GRAMMAR_GBNF] = LLAMA | VLLM | QSF,
                                                     [QSF_GRAMMAR_SCHEMA] = QSF_ON_EVERY,
                                                     [QSF_GRAMMAR_REGEX] = VLLM };
    return kind < QSF_GRAMMAR_N && (servers[kind] & (1u << server)) != 0;
}

static int read_file(const char *path, QsfStrbuf *b, QsfErr *err) {
    QsfFile f;
    int rc = qsf_file_open(&f, path, err);
    if (rc != QSF_OK) return rc;
    char *bytes = f.size <= GRAMMAR_MAX ? malloc((size_t)f.size + 1) : NULL;
    if (!bytes)
        rc = qsf_err_set(err, QSF_E_USAGE, "%s: the file has more than 4 MB", path);
    else
        rc = qsf_file_pread(&f, bytes, (size_t)f.size, 0, err);
    if (rc == QSF_OK) qsf_strbuf_add(b, bytes, (size_t)f.size);
    free(bytes);
    qsf_file_close(&f);
    return rc;
}

/* llama.cpp ignores a schema that allows everything, and then writes what is not JSON, and LM Studio does not
 * know json_object (lmstudio-ai/docs 1_developer/3_openai-compat/structured-output.md). */
static const char any_json[] =
    "{\"type\": [\"object\", \"array\", \"string\", \"number\", \"boolean\", \"null\"]}";

static void put_schema_text(const char *text, size_t len, QsfStrbuf *b) {
    qsf_strbuf_adds(b, ", \"response_format\": {\"type\": \"json_schema\", \"json_schema\": "
                       "{\"name\": \"answer\", \"schema\": ");
    qsf_strbuf_add(b, text, len);
    qsf_strbuf_adds(b, "}}");
}

static void put_any_json(QsfRemoteServer server, QsfStrbuf *b) {
    if ((LLAMA | LMSTUDIO) & (1u << server))
        put_schema_text(any_json, sizeof any_json - 1, b);
    else
        qsf_strbuf_adds(b, ", \"response_format\": {\"type\": \"json_object\"}");
}

/* A schema becomes a part of the request: it must be JSON. */
static int put_schema(QsfRemoteServer server, const char *text, size_t len, QsfStrbuf *b, QsfErr *err) {
    QsfJson *root = qsf_json_parse(text, len, err);
    if (!root) return qsf_err_prefix(err, "json-schema");
    const bool any = qsf_json_type(root) == QSF_JSON_OBJECT ? qsf_json_size(root) == 0
                                                            : qsf_json_bool(root, false);
    const size_t mark = len >= 3 && memcmp(text, "\xEF\xBB\xBF", 3) == 0 ? 3 : 0;
    qsf_json_free(root);
    if (any)
        put_any_json(server, b);
    else
        put_schema_text(text + mark, len - mark, b);
    return QSF_OK;
}

/* vLLM reads grammars in the notation of llama.cpp, too, but in the field of all that an answer has to match
 * (vllm-project/vllm docs/features/structured_outputs.md). */
static int put_text(const QsfFieldInput *in, unsigned kind, const char *text, size_t len, QsfStrbuf *b,
                    QsfErr *err) {
    const bool nested = in->server == QSF_SERVER_VLLM;
    if (kind == QSF_GRAMMAR_SCHEMA) return put_schema(in->server, text, len, b, err);
    qsf_strbuf_addf(b, ", %s\"%s\": ", nested ? "\"structured_outputs\": {" : "", grammar_name(kind));
    qsf_json_put_string(b, text, len);
    if (nested) qsf_strbuf_addc(b, '}');
    return QSF_OK;
}

static int put_grammar(const QsfFieldInput *in, QsfStrbuf *b, QsfErr *err) {
    const QSFParams *p = &in->settings->params;
    const unsigned kind = in->grammar_kind ? in->grammar_kind : p->grammar_kind;
    if (kind == QSF_GRAMMAR_NONE) return QSF_OK;
    if (!can_hold(kind, in->server))
        return qsf_err_set(err, QSF_E_USAGE,
                           "%s: %s cannot be told what an answer has to match this way; "
                           "/set %s off asks without it",
                           grammar_name(kind), qsf_kind(in->server)->name, grammar_name(kind));
    if (in->grammar_kind) return put_text(in, kind, in->grammar, in->grammar_len, b, err);
    if (kind == QSF_GRAMMAR_SCHEMA && strcmp(p->grammar, "any") == 0) {
        put_any_json(in->server, b);
        return QSF_OK;
    }
    if (kind == QSF_GRAMMAR_REGEX) return put_text(in, kind, p->grammar, strlen(p->grammar), b, err);
    QsfStrbuf text = QSF_STRBUF_INIT;
    int rc = read_file(p->grammar, &text, err);
    if (rc == QSF_OK) rc = put_text(in, kind, qsf_strbuf_str(&text), text.len, b, err);
    qsf_strbuf_free(&text);
    return rc;
}

/* ---- */

static bool put_field(const QsfFieldInput *in, size_t i, QsfStrbuf *b, QsfErr *err) {
    char value[QSF_SETTING_TEXT] = "";
    const Field *f = &fields[i];
    if (!is_known(i, in->server, in->refused) || (in->refused & bit(i))) return false;
    if (f->setting) {
        const QSFSetting *row = qsf_setting_find(f->setting);
        if (!row) return false;
        if (!qsf_setting_user_set(in->settings, row) && !(f->put == put_limit && in->max_tokens > 0))
            return false;
        qsf_setting_get(in->settings, row, value, sizeof value);
    }
    return f->put(&(Put){ in, b, f->field, value, err });
}

int qsf_fields_put(const QsfFieldInput *in, QsfStrbuf *b, QsfFieldSet *sent, QsfErr *err) {
    *sent = 0;
    for (size_t i = 0; i < N_FIELDS; i++)
        if (put_field(in, i, b, err)) *sent |= bit(i);
    return put_grammar(in, b, err);
}

static bool is_grammar(const QSFSetting *row, unsigned *kind) {
    for (*kind = 1; *kind < QSF_GRAMMAR_N; ++*kind)
        if (strcmp(row->name, grammar_name(*kind)) == 0) return true;
    return false;
}

/* Can the value be sent as this field? */
static bool says_value(const QSFSettings *s, const char *value, QsfRemoteServer server, const Field *f) {
    QsfStrbuf b = QSF_STRBUF_INIT;
    const QsfFieldInput in = { .settings = s, .server = server };
    const bool says = f->put(&(Put){ .in = &in, .b = &b, .field = f->field, .value = value });
    qsf_strbuf_free(&b);
    return says;
}

/* Of a setting for which the server has a field. A value that is not sent makes no difference if it is the
 * default, which leaves the choice to the server. */
static QsfFieldEffect known_effect(const QSFSettings *s, const QSFSetting *row, QsfRemoteServer server,
                                   QsfFieldSet refused) {
    char value[QSF_SETTING_TEXT], usual[QSF_SETTING_TEXT];
    QSFSettings defaults;
    if (!qsf_setting_user_set(s, row)) return QSF_FIELD_UNSET;
    qsf_setting_get(s, row, value, sizeof value);
    for (size_t i = 0; i < N_FIELDS; i++)
        if (fields[i].setting && strcmp(fields[i].setting, row->name) == 0 && is_known(i, server, refused) &&
            !(refused & bit(i)) && says_value(s, value, server, &fields[i]))
            return QSF_FIELD_SENT;
    qsf_settings_default(&defaults);
    qsf_setting_get(&defaults, row, usual, sizeof usual);
    return strcmp(value, usual) == 0 ? QSF_FIELD_UNSET : QSF_FIELD_NONE;
}

QsfFieldEffect qsf_field_effect(const QSFSettings *s, const QSFSetting *row, QsfRemoteServer server,
                                QsfFieldSet refused) {
    unsigned kind;
    bool any = false;
    if (strcmp(row->name, "show-thinking") == 0) return QSF_FIELD_LOCAL;
    if (is_grammar(row, &kind)) return can_hold(kind, server) ? QSF_FIELD_SENT : QSF_FIELD_NONE;
    for (size_t i = 0; i < N_FIELDS; i++) {
        if (!fields[i].setting || strcmp(fields[i].setting, row->name) != 0) continue;
        if (!is_known(i, server, refused)) continue;
        if (!(refused & bit(i))) return known_effect(s, row, server, refused);
        any = true;
    }
    return any ? QSF_FIELD_REFUSED : QSF_FIELD_NONE;
}

static bool is_word(char c) { return isalnum((unsigned char)c) || c == '_'; }

static bool names(const char *message, const char *field) {
    const size_t n = strlen(field);
    for (const char *at = message; (at = strstr(at, field)) != NULL; at++)
        if ((at == message || !is_word(at[-1])) && !is_word(at[n])) return true;
    return false;
}

/* The field is known, but not this value: another one may be sent. */
static bool is_about_value(const char *message) {
    static const char *const words[] = { "too large",    "too long", "too small", "must be",      "should be",
                                         "out of range", "between",  "less than", "greater than", "maximum" };
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcasestr(message, words[i])) return true;
    return false;
}

/* A message that names another field to use instead names both: only what was sent can be dropped. "stop" and
 * "seed" are words of English, too: they count between quotes or backquotes, or before a colon. */
QsfFieldSet qsf_fields_named(QsfFieldSet sent, const char *message, bool *by_value) {
    QsfFieldSet found = 0;
    *by_value = is_about_value(message);
    for (size_t i = 0; i < N_FIELDS; i++) {
        const char *name = fields[i].field;
        if (!(sent & bit(i)) || !names(message, name) || (*by_value && fields[i].put == put_limit)) continue;
        char quoted[3][40];
        snprintf(quoted[0], sizeof quoted[0], "'%s'", name);
        snprintf(quoted[1], sizeof quoted[1], "\"%s\"", name);
        snprintf(quoted[2], sizeof quoted[2], "%s:", name);
        const bool sure = strchr(name, '_') || strstr(message, quoted[0]) || strstr(message, quoted[1]) ||
                          strstr(message, quoted[2]);
        if (sure) found |= bit(i);
    }
    return found;
}

QsfFieldSet qsf_fields_changed(QsfFieldSet set, const QSFSettings *x, const QSFSettings *y) {
    QsfFieldSet found = 0;
    for (size_t i = 0; i < N_FIELDS; i++) {
        const QSFSetting *row = set & bit(i) && fields[i].setting ? qsf_setting_find(fields[i].setting)
                                                                  : NULL;
        if (row && qsf_setting_differs(x, y, row)) found |= bit(i);
    }
    return found;
}

void qsf_fields_list(QsfFieldSet set, QsfStrbuf *b) {
    bool any = false;
    for (size_t i = 0; i < N_FIELDS; i++) {
        if (!(set & bit(i))) continue;
        qsf_strbuf_addf(b, "%s%s", any ? ", " : "", fields[i].field);
        any = true;
    }
}

const char *qsf_fields_instead(QsfFieldSet refused, QsfFieldSet sent) {
    for (size_t i = 1; i < N_FIELDS; i++)
        if (fields[i].servers == 0 && (refused & bit(i - 1)) && (sent & bit(i))) return fields[i].field;
    return NULL;
}

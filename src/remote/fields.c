/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "src/remote/fields.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/json.h"
#include "src/remote/biases.h"
#include "src/remote/form.h"

typedef struct Put {
    const QsfFieldInput *in;
    QsfStrbuf *b;
    const char *field, *value; /* value: as qsf_setting_get prints it */
    QsfErr *err;
} Put;

#define EFFORT_NONE (QSF_ON(OLLAMA) | QSF_ON(OTHER))

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

/* How much, for servers that take words; "none" is one of OpenAI, OpenRouter and Ollama. */
static bool put_effort(const Put *p) {
    static const char *const words[] = { "low", "medium", "high" };
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (strcmp(p->value, words[i]) != 0) continue;
        put_name(p);
        qsf_strbuf_addf(p->b, "\"%s\"", words[i]);
        return true;
    }
    if (strcmp(p->value, "off") != 0 || !(EFFORT_NONE & (1u << p->in->server))) return false;
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

/* The smaller one of the limit of this answer and the setting, without the tokens that it has already. */
static bool put_limit(const Put *p) {
    const unsigned long set = strtoul(p->value, NULL, 10), own = p->in->max_tokens, spent = p->in->spent;
    const unsigned long least = set == 0 || (own > 0 && own < set) ? own : set;
    if (least == 0) return false;
    put_name(p);
    qsf_strbuf_addf(p->b, "%lu", least > spent ? least - spent : 1);
    return true;
}

static bool put_text(const Put *p) {
    put_name(p);
    qsf_json_put_string(p->b, p->value, strlen(p->value));
    return true;
}

/* ---- lists */

static bool put_biases(const Put *p) {
    const QsfFieldInput *in = p->in;
    put_name(p);
    return qsf_biases_put(in->settings, in->server, in->tokens, false, p->b);
}

/* Biases and bans share a field, which put_biases writes. This writes it when there are only bans. */
static bool put_banned(const Put *p) {
    const QsfFieldInput *in = p->in;
    QsfStrbuf biases = QSF_STRBUF_INIT;
    const bool both = in->settings->params.logit_bias[0] != '\0';
    const bool any = qsf_biases_put(in->settings, in->server, in->tokens, true, &biases);
    if (any && !both) put_name(p);
    if (any && !both) qsf_strbuf_add(p->b, qsf_strbuf_str(&biases), biases.len);
    qsf_strbuf_free(&biases);
    return any;
}

static bool put_ban_words(const Put *p) {
    put_name(p);
    return qsf_bans_put(p->in->settings, p->b);
}

static bool put_breakers(const Put *p) {
    const char *at = p->in->settings->params.dry_breakers;
    QSFSettingItem item;
    bool any = false;
    put_name(p);
    while (qsf_setting_item(&at, false, &item)) {
        qsf_strbuf_adds(p->b, any ? ", " : "[");
        qsf_json_put_string(p->b, item.text, item.len);
        any = true;
    }
    if (any) qsf_strbuf_addc(p->b, ']');
    return any;
}

/* llama.cpp has other names for some stages, and leaves out what it does not know. */
static bool put_samplers(const Put *p) {
    static const char *const names[][2] = { { "typical", "typ_p" } };
    if (strcmp(p->value, "default") == 0) return false;
    put_name(p);
    for (const char *at = p->value; *at;) {
        const size_t n = strcspn(at, ",");
        const char *name = at;
        size_t len = n;
        for (size_t i = 0; i < sizeof names / sizeof *names; i++)
            if (p->in->server == QSF_SERVER_LLAMA && strlen(names[i][0]) == n &&
                !memcmp(at, names[i][0], n)) {
                name = names[i][1];
                len = strlen(name);
            }
        qsf_strbuf_adds(p->b, at == p->value ? "[" : ", ");
        qsf_json_put_string(p->b, name, len);
        at += n + (at[n] == ',');
    }
    qsf_strbuf_addc(p->b, ']');
    return true;
}

#define OTHER    (QSF_ON(OTHER))
#define LLAMA    (QSF_ON(LLAMA))
#define VLLM     (QSF_ON(VLLM))
#define LMSTUDIO (QSF_ON(LMSTUDIO))
#define OLLAMA   (QSF_ON(OLLAMA))
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
    { "dry-breakers", "dry_sequence_breakers", LLAMA | QSF, put_breakers },
    { "samplers", "samplers", LLAMA | QSF, put_samplers },
    { "logit-bias", "logit_bias", QSF_ON_EVERY & ~OLLAMA, put_biases },
    { "ban", "logit_bias", QSF_ON_EVERY & ~OLLAMA, put_banned },
    { "ban", "bad_words", VLLM | QSF, put_ban_words },
    { "least", "least", QSF, put_number },
    { "expert-top", "expert_top", QSF, put_number },
    { "expert-drop", "expert_drop", QSF, put_number },
    { "quality", "quality", QSF, put_number },
    { "reasoning-budget", "reasoning_budget", QSF, put_number },
    { "reasoning-budget", "reasoning_budget_tokens", LLAMA, put_number },
    { "reasoning-budget", "thinking_token_budget", VLLM, put_number },
    { "reasoning-budget-message", "reasoning_budget_message", LLAMA | QSF, put_text },
    { "ignore-eos", "ignore_eos", LLAMA | VLLM | QSF, put_switch },
    { "reasoning", "chat_template_kwargs", LLAMA | VLLM | QSF, put_thinking },
    { "reasoning", "reasoning_effort", QSF_ON_EVERY, put_effort },
    { NULL, "stop", QSF_ON_EVERY, put_stop },
    { NULL, "stream_options", QSF_ON_EVERY, put_usage },
    { NULL, "reasoning_control", LLAMA, put_true }, /* for ^X */
    { NULL, "return_progress", LLAMA | QSF, put_true },
    { NULL, "timings_per_token", LLAMA | QSF, put_true }, /* counts also of an answer that is stopped */
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
    const size_t before = b->len;
    const bool put = f->put(&(Put){ in, b, f->field, value, err });
    if (!put && b->data) b->data[b->len = before] = '\0'; /* its name, without a value */
    return put;
}

int qsf_fields_put(const QsfFieldInput *in, QsfStrbuf *b, QsfFieldSet *sent, QsfErr *err) {
    *sent = 0;
    for (size_t i = 0; i < N_FIELDS; i++)
        if (put_field(in, i, b, err)) *sent |= bit(i);
    return qsf_form_put(in, b, err);
}

static bool is_grammar(const QSFSetting *row, unsigned *kind) {
    for (*kind = 1; *kind < QSF_GRAMMAR_N; ++*kind)
        if (strcmp(row->name, qsf_form_name(*kind)) == 0) return true;
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

/* For a setting for which the server has a field. Not sending the default leaves the choice to the server. */
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
    if (is_grammar(row, &kind)) return qsf_form_known(kind, server) ? QSF_FIELD_SENT : QSF_FIELD_NONE;
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
        bool twice = false; /* of two settings */
        for (size_t k = 0; k < i; k++)
            twice = twice || ((set & bit(k)) && strcmp(fields[k].field, fields[i].field) == 0);
        if (twice) continue;
        qsf_strbuf_addf(b, "%s%s", any ? ", " : "", fields[i].field);
        any = true;
    }
}

const char *qsf_fields_instead(QsfFieldSet refused, QsfFieldSet sent) {
    for (size_t i = 1; i < N_FIELDS; i++)
        if (fields[i].servers == 0 && (refused & bit(i - 1)) && (sent & bit(i))) return fields[i].field;
    return NULL;
}

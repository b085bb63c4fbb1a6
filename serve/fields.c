/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The fields of a request, a row each. Names are those of OpenAI's interface, and for what it lacks those
 * that ggml-org/llama.cpp (tools/server/README.md) and vllm-project/vllm use. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "serve/reader.h"

typedef struct Field Field;
struct Field {
    const char *name;
    bool (*read)(ServeReader *rd, const Field *f); /* NULL: the value is ignored */
    const char *setting;                           /* that it sets, or NULL */
    bool only_chat, only_text;
};

/* ---- settings ---- */

static bool set(ServeReader *rd, const char *setting, const char *value) {
    char err[300];
    const size_t n = strlen(setting);
    const QSFSetting *row = qsf_setting_find(setting);
    if (row != NULL && qsf_setting_set(&rd->r->settings, row, value, err, sizeof err) == 0) return true;
    const bool named = row != NULL && strncmp(err, setting, n) == 0 && err[n] == ' ';
    return serve_reader_fail(rd, "%s", row == NULL ? "no such setting" : named ? err + n + 1 : err);
}

static bool read_setting(ServeReader *rd, const Field *f) {
    char text[40];
    double v;
    if (!serve_reader_number(rd, &v)) return false;
    (void)snprintf(text, sizeof text, fabs(v) < 1e9 && !(v > floor(v)) ? "%.0f" : "%.9g", v);
    return set(rd, f->setting, text);
}

static bool read_switch(ServeReader *rd, const Field *f) {
    bool on;
    return serve_reader_bool(rd, &on) && set(rd, f->setting, on ? "on" : "off");
}

/* Larger than what a double holds; -1 is a random one, as in llama.cpp. */
static bool read_seed(ServeReader *rd, const Field *f) {
    ServeSlice s;
    char text[32];
    static const char expected[] = "expected a whole number from 0 to 2^64 - 1, or -1 for a random seed";
    if (!serve_reader_is(rd, '0')) return serve_reader_fail(rd, "%s", expected);
    if (!serve_reader_raw(rd, &s)) return false;
    (void)snprintf(text, sizeof text, "%.*s", (int)(s.len < 31 ? s.len : 31), s.text);
    errno = 0;
    (void)strtoull(text, NULL, 10);
    const bool zeros = text[0] == '0' && s.len > 1;
    if (strcmp(text, "-1") != 0 && (zeros || errno != 0 || strspn(text, "0123456789") != s.len))
        return serve_reader_fail(rd, "%s", expected);
    return set(rd, f->setting, strcmp(text, "-1") == 0 ? "random" : text);
}

static bool read_bias(ServeReader *rd, const Field *f) {
    char list[QSF_SETTING_TEXT];
    return serve_lists_biases(rd, list, sizeof list) && (!*list || set(rd, f->setting, list));
}

static bool read_texts(ServeReader *rd, const Field *f) {
    char list[QSF_SETTING_TEXT];
    return serve_lists_texts(rd, list, sizeof list) && (!*list || set(rd, f->setting, list));
}

static bool read_text(ServeReader *rd, const Field *f) {
    ServeSlice s;
    if (!serve_reader_string(rd, &s)) return false;
    if (memchr(s.text, 0, s.len) != NULL) return serve_reader_fail(rd, "a text has no NUL");
    return set(rd, f->setting, s.text);
}

/* An array of names of stages. */
static bool read_samplers(ServeReader *rd, const Field *f) {
    char list[QSF_SETTING_LINE];
    size_t n = 0;
    bool first = true, more = true;
    if (!serve_reader_enter(rd, '[')) return false;
    while (serve_reader_next(rd, '[', &first, &more) && more) {
        ServeSlice s;
        if (!serve_reader_string(rd, &s)) return false;
        n += (size_t)snprintf(list + n, sizeof list - n, "%s%s", n > 0 ? "," : "", s.text);
        if (n >= sizeof list) return serve_reader_fail(rd, "too many stages");
    }
    return rd->error->status == 0 && (n == 0 || set(rd, f->setting, list));
}

/* ---- reasoning ---- */

static bool read_effort(ServeReader *rd, const Field *f) {
    static const char *const words[][2] = {
        { "none", "off" }, { "minimal", "low" }, { "low", "low" }, { "medium", "medium" }, { "high", "high" }
    };
    ServeSlice s;
    (void)f;
    if (!serve_reader_string(rd, &s)) return false;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (serve_slice_is(&s, words[i][0])) return set(rd, "reasoning", words[i][1]);
    return serve_reader_fail(rd, "expected none, minimal, low, medium or high");
}

/* Of the variables of a template only those that switch reasoning have a meaning for every model. */
static bool read_template_values(ServeReader *rd, const Field *f) {
    bool first = true, more = true, on;
    if (!serve_reader_enter(rd, '{')) return false;
    while (serve_reader_next(rd, '{', &first, &more) && more) {
        const char *key = qsf_strbuf_str(&rd->key);
        if (strcmp(key, "enable_thinking") == 0 || strcmp(key, "thinking") == 0) {
            if (!serve_reader_bool(rd, &on) || !set(rd, "reasoning", on ? "on" : "off")) return false;
        } else if (strcmp(key, "reasoning_effort") == 0) {
            if (!read_effort(rd, f)) return false;
        } else {
            return serve_reader_fail(rd, "the variable \"%.40s\" is not supported", key);
        }
    }
    return rd->error->status == 0;
}

/* ---- the answer ---- */

/* The limit has two names; the smaller number counts. */
static bool read_max_tokens(ServeReader *rd, const Field *f) {
    ServeRequest *r = rd->r;
    uint32_t n;
    (void)f;
    if (!serve_reader_count(rd, r->chat ? 1 : 0, 1000000000, &n)) return false;
    r->no_answer = n == 0;
    if (!r->max_tokens_set || (int32_t)n < r->settings.params.max_tokens)
        r->settings.params.max_tokens = (int32_t)n;
    return r->max_tokens_set = true;
}

static bool add_stop(ServeReader *rd) {
    ServeSlice s;
    if (rd->r->n_stop == SERVE_STOPS) return serve_reader_fail(rd, "more than %u strings", SERVE_STOPS);
    if (!serve_reader_string(rd, &s)) return false;
    if (s.len == 0 || memchr(s.text, 0, s.len) != NULL)
        return serve_reader_fail(rd, "a string must not be empty, and have no NUL");
    rd->r->stop[rd->r->n_stop++] = s.text;
    return true;
}

static bool read_stop(ServeReader *rd, const Field *f) {
    bool first = true, more = true;
    (void)f;
    rd->r->n_stop = 0;
    if (serve_reader_is(rd, '"')) return add_stop(rd);
    if (!serve_reader_enter(rd, '[')) return false;
    while (serve_reader_next(rd, '[', &first, &more) && more)
        if (!add_stop(rd)) return false;
    return rd->error->status == 0;
}

/* Answers to the same prompt. */
static bool read_n(ServeReader *rd, const Field *f) {
    (void)f;
    return serve_reader_count(rd, 1, SERVE_ANSWERS, &rd->r->n);
}

static bool read_one(ServeReader *rd, const Field *f) {
    double v;
    (void)f;
    if (!serve_reader_number(rd, &v)) return false;
    return v >= 1 && v <= 1 ? true : serve_reader_fail(rd, "expected 1");
}

static bool read_stream(ServeReader *rd, const Field *f) {
    (void)f;
    return serve_reader_bool(rd, &rd->r->stream);
}

static bool read_timings(ServeReader *rd, const Field *f) {
    (void)f;
    return serve_reader_bool(rd, &rd->r->timings);
}

static bool read_progress(ServeReader *rd, const Field *f) {
    (void)f;
    return serve_reader_bool(rd, &rd->r->progress);
}

static bool read_stream_options(ServeReader *rd, const Field *f) {
    bool first = true, more = true, ignored;
    (void)f;
    if (!serve_reader_enter(rd, '{')) return false;
    while (serve_reader_next(rd, '{', &first, &more) && more) {
        const char *key = qsf_strbuf_str(&rd->key);
        const bool usage = strcmp(key, "include_usage") == 0;
        if (!usage && strcmp(key, "include_obfuscation") != 0)
            return serve_reader_fail(rd, "the option \"%.40s\" is not supported", key);
        if (!serve_reader_bool(rd, usage ? &rd->r->usage : &ignored)) return false;
    }
    return rd->error->status == 0;
}

/* A boolean of chats; of completions the number of alternatives. */
static bool read_logprobs(ServeReader *rd, const Field *f) {
    (void)f;
    if (rd->r->chat) return serve_reader_bool(rd, &rd->r->logprobs);
    rd->r->logprobs = true;
    return serve_reader_count(rd, 0, SERVE_TOP, &rd->r->top_logprobs);
}

static bool read_top_logprobs(ServeReader *rd, const Field *f) {
    (void)f;
    return serve_reader_count(rd, 0, SERVE_TOP, &rd->r->top_logprobs);
}

static bool read_echo(ServeReader *rd, const Field *f) {
    (void)f;
    return serve_reader_bool(rd, &rd->r->echo);
}

/* Also which part of it, as in llama.cpp: with "content" its reasoning is complete. */
static bool read_continue(ServeReader *rd, const Field *f) {
    ServeSlice s;
    (void)f;
    rd->r->thought = QSF_THOUGHT_MARKED;
    if (!serve_reader_is(rd, '"')) return serve_reader_bool(rd, &rd->r->continue_last);
    if (!serve_reader_string(rd, &s)) return false;
    if (serve_slice_is(&s, "content"))
        rd->r->thought = QSF_THOUGHT_CLOSED;
    else if (serve_slice_is(&s, "reasoning_content"))
        rd->r->thought = QSF_THOUGHT_OPEN;
    else
        return serve_reader_fail(rd, "expected true, false, content or reasoning_content");
    return rd->r->continue_last = true;
}

static bool read_model(ServeReader *rd, const Field *f) {
    ServeSlice s;
    (void)f;
    if (!serve_reader_string(rd, &s)) return false;
    if (memchr(s.text, 0, s.len) != NULL) return serve_reader_fail(rd, "a name has no NUL");
    rd->r->model = s.text;
    return true;
}

/* ---- the prompt ---- */

static bool read_messages(ServeReader *rd, const Field *f) {
    (void)f;
    return serve_messages_read(rd);
}

static bool read_prompt(ServeReader *rd, const Field *f) {
    (void)f;
    return serve_prompt_read(rd);
}

/* ---- the form of the answer ---- */

/* Only one field may give the form of the answer. */
static bool take_grammar(ServeReader *rd, uint8_t kind, const char *text, size_t len) {
    if (rd->r->grammar_kind != QSF_GRAMMAR_NONE)
        return serve_reader_fail(rd, "grammar, regex, only and response_format cannot be combined");
    rd->r->grammar_kind = kind;
    rd->r->grammar = text;
    rd->r->grammar_len = len;
    return true;
}

static bool read_grammar(ServeReader *rd, const Field *f) {
    ServeSlice s;
    (void)f;
    return serve_reader_string(rd, &s) && take_grammar(rd, QSF_GRAMMAR_GBNF, s.text, s.len);
}

static bool read_regex(ServeReader *rd, const Field *f) {
    ServeSlice s;
    (void)f;
    return serve_reader_string(rd, &s) && take_grammar(rd, QSF_GRAMMAR_REGEX, s.text, s.len);
}

/* As the option: after a blank there may be a second expression. The engine expects a newline there. */
static bool read_only(ServeReader *rd, const Field *f) {
    ServeSlice s;
    (void)f;
    if (!serve_reader_string(rd, &s)) return false;
    char *blank = memchr(s.text, ' ', s.len);
    if (blank != NULL) *blank = '\n';
    return take_grammar(rd, QSF_GRAMMAR_WORDS, s.text, s.len);
}

/* {"name": ..., "schema": {...}, "strict": ...}; answers always match. */
static bool read_schema(ServeReader *rd, ServeSlice *out) {
    bool first = true, more = true;
    ServeSlice other;
    if (!serve_reader_enter(rd, '{')) return false;
    while (serve_reader_next(rd, '{', &first, &more) && more) {
        const char *key = qsf_strbuf_str(&rd->key);
        const bool schema = strcmp(key, "schema") == 0;
        if (!schema && strcmp(key, "name") != 0 && strcmp(key, "strict") != 0 &&
            strcmp(key, "description") != 0)
            return serve_reader_fail(rd, "json_schema.%.40s is not supported", key);
        if (!serve_reader_raw(rd, schema ? out : &other)) return false;
    }
    if (rd->error->status != 0) return false;
    return out->text != NULL || serve_reader_fail(rd, "json_schema.schema is missing");
}

static bool read_format(ServeReader *rd, const Field *f) {
    static const char object[] = "{\"type\": \"object\"}";
    bool first = true, more = true;
    ServeSlice type = { 0 }, schema = { 0 };
    (void)f;
    if (!serve_reader_enter(rd, '{')) return false;
    while (serve_reader_next(rd, '{', &first, &more) && more) {
        const char *key = qsf_strbuf_str(&rd->key);
        if (strcmp(key, "type") == 0) {
            if (!serve_reader_string(rd, &type)) return false;
        } else if (strcmp(key, "json_schema") == 0) {
            if (!read_schema(rd, &schema)) return false;
        } else {
            return serve_reader_fail(rd, "the member \"%.40s\" is not supported", key);
        }
    }
    if (rd->error->status != 0) return false;
    if (type.text != NULL && serve_slice_is(&type, "json_schema"))
        return schema.text != NULL ? take_grammar(rd, QSF_GRAMMAR_SCHEMA, schema.text, schema.len)
                                   : serve_reader_fail(rd, "json_schema is missing");
    if (type.text != NULL && serve_slice_is(&type, "json_object"))
        return take_grammar(rd, QSF_GRAMMAR_SCHEMA, object, sizeof object - 1);
    if (type.text != NULL && serve_slice_is(&type, "text"))
        return true; /* a grammar may be given beside it */
    return serve_reader_fail(rd, "expected the type text, json_object or json_schema");
}

/* ---- tools ---- */

static bool read_tools(ServeReader *rd, const Field *f) {
    (void)f;
    return serve_tools_read(rd);
}

static bool read_tool_choice(ServeReader *rd, const Field *f) {
    (void)f;
    return serve_tool_choice_read(rd);
}

static bool read_parallel(ServeReader *rd, const Field *f) {
    bool several;
    (void)f;
    if (!serve_reader_bool(rd, &several)) return false;
    rd->r->one_call = rd->r->one_call || !several; /* a function that is named is called once */
    return true;
}

static bool read_text_only(ServeReader *rd, const Field *f) {
    bool first = true, more = true;
    ServeSlice s;
    (void)f;
    if (!serve_reader_enter(rd, '[')) return false;
    while (serve_reader_next(rd, '[', &first, &more) && more) {
        if (!serve_reader_string(rd, &s)) return false;
        if (!serve_slice_is(&s, "text")) return serve_reader_fail(rd, "only text is supported");
    }
    return rd->error->status == 0;
}

static const Field fields[] = {
    /* clang-format off */
    { .name = "model", .read = read_model },
    { .name = "messages", .read = read_messages, .only_chat = true },
    { .name = "prompt", .read = read_prompt, .only_text = true },
    { .name = "stream", .read = read_stream },
    { .name = "stream_options", .read = read_stream_options },
    { .name = "timings_per_token", .read = read_timings },
    { .name = "return_progress", .read = read_progress },
    { .name = "max_tokens", .read = read_max_tokens },
    { .name = "max_completion_tokens", .read = read_max_tokens, .only_chat = true },
    { .name = "stop", .read = read_stop },
    { .name = "n", .read = read_n },
    { .name = "best_of", .read = read_one, .only_text = true },
    { .name = "echo", .read = read_echo, .only_text = true },
    { .name = "continue_final_message", .read = read_continue, .only_chat = true },
    { .name = "logprobs", .read = read_logprobs },
    { .name = "top_logprobs", .read = read_top_logprobs, .only_chat = true },
    { .name = "response_format", .read = read_format },
    { .name = "grammar", .read = read_grammar },
    { .name = "regex", .read = read_regex },
    { .name = "only", .read = read_only },
    { .name = "tools", .read = read_tools, .only_chat = true },
    { .name = "tool_choice", .read = read_tool_choice, .only_chat = true },
    { .name = "parallel_tool_calls", .read = read_parallel, .only_chat = true },
    { .name = "modalities", .read = read_text_only, .only_chat = true },
    { .name = "reasoning_effort", .read = read_effort, .only_chat = true },
    { .name = "chat_template_kwargs", .read = read_template_values, .only_chat = true },
    /* sampling */
    { .name = "seed", .read = read_seed, .setting = "seed" },
    { .name = "temperature", .read = read_setting, .setting = "temperature" },
    { .name = "top_p", .read = read_setting, .setting = "top-p" },
    { .name = "top_k", .read = read_setting, .setting = "top-k" },
    { .name = "min_p", .read = read_setting, .setting = "min-p" },
    { .name = "presence_penalty", .read = read_setting, .setting = "presence" },
    { .name = "frequency_penalty", .read = read_setting, .setting = "frequency" },
    { .name = "repetition_penalty", .read = read_setting, .setting = "repeat-penalty" },
    { .name = "repeat_penalty", .read = read_setting, .setting = "repeat-penalty" },
    { .name = "repeat_last_n", .read = read_setting, .setting = "repeat-last-n" },
    { .name = "typical_p", .read = read_setting, .setting = "typical" },
    { .name = "top_n_sigma", .read = read_setting, .setting = "top-n-sigma" },
    { .name = "xtc_probability", .read = read_setting, .setting = "xtc" },
    { .name = "xtc_threshold", .read = read_setting, .setting = "xtc-threshold" },
    { .name = "dynatemp_range", .read = read_setting, .setting = "dynatemp" },
    { .name = "dynatemp_exponent", .read = read_setting, .setting = "dynatemp-exp" },
    { .name = "mirostat", .read = read_setting, .setting = "mirostat" },
    { .name = "mirostat_tau", .read = read_setting, .setting = "mirostat-tau" },
    { .name = "mirostat_eta", .read = read_setting, .setting = "mirostat-eta" },
    { .name = "adaptive_target", .read = read_setting, .setting = "adaptive-target" },
    { .name = "adaptive_decay", .read = read_setting, .setting = "adaptive-decay" },
    { .name = "dry_multiplier", .read = read_setting, .setting = "dry" },
    { .name = "dry_base", .read = read_setting, .setting = "dry-base" },
    { .name = "dry_allowed_length", .read = read_setting, .setting = "dry-length" },
    { .name = "dry_sequence_breakers", .read = read_texts, .setting = "dry-breakers" },
    { .name = "least", .read = read_setting, .setting = "least" },
    { .name = "quality", .read = read_setting, .setting = "quality" },
    { .name = "expert_top", .read = read_setting, .setting = "expert-top" },
    { .name = "expert_drop", .read = read_setting, .setting = "expert-drop" },
    { .name = "reasoning_budget", .read = read_setting, .setting = "reasoning-budget" },
    { .name = "reasoning_budget_message", .read = read_text, .setting = "reasoning-budget-message" },
    { .name = "ignore_eos", .read = read_switch, .setting = "ignore-eos" },
    { .name = "logit_bias", .read = read_bias, .setting = "logit-bias" },
    { .name = "bad_words", .read = read_texts, .setting = "ban" },
    { .name = "samplers", .read = read_samplers, .setting = "samplers" },
    /* Ignored on purpose: what they say is about accounts and machines of a service, or true anyway. */
    { .name = "user" }, { .name = "metadata" }, { .name = "store" }, { .name = "service_tier" },
    { .name = "safety_identifier" }, { .name = "prompt_cache_key" }, { .name = "prompt_cache_retention" },
    { .name = "cache_prompt" },
    /* clang-format on */
};

_Static_assert(sizeof fields / sizeof *fields <= 128, "bits of ServeReader.seen");

/* Programs do not agree on which of two members counts. */
static bool first_time(ServeReader *rd, size_t i) {
    const uint64_t bit = 1ull << i % 64;
    if ((rd->seen[i / 64] & bit) != 0) return serve_reader_fail(rd, "the field occurs twice");
    rd->seen[i / 64] |= bit;
    return true;
}

const char *serve_field_of_setting(const char *name, size_t len) {
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        if (fields[i].setting != NULL && strlen(fields[i].setting) == len &&
            memcmp(fields[i].setting, name, len) == 0)
            return fields[i].name;
    return NULL;
}

bool serve_fields_read(ServeReader *rd) {
    ServeSlice ignored;
    const char *key = qsf_strbuf_str(&rd->key);
    (void)snprintf(rd->where, sizeof rd->where, "%.40s", key);
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        const Field *f = &fields[i];
        if (strcmp(f->name, key) != 0 || strlen(key) != rd->key.len) continue;
        if ((f->only_chat && !rd->r->chat) || (f->only_text && rd->r->chat)) break;
        if (!first_time(rd, i)) return false;
        return f->read == NULL ? serve_reader_raw(rd, &ignored) : f->read(rd, f);
    }
    if (strlen(key) != rd->key.len)
        return serve_error_set(rd->error, 400, "unsupported_parameter", NULL,
                               "the name of a field has a NUL");
    return serve_error_set(rd->error, 400, "unsupported_parameter", rd->where,
                           "the field \"%s\" is not supported by this server", rd->where);
}

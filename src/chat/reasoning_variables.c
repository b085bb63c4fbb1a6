/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The variables by which templates of models with optional reasoning are switched. Their names are known,
 * their values are not: they are found by rendering short conversations when the template is opened. */
#include <string.h>

#include "src/chat/chat_impl.h"

static const char *const words[QSF_REASON_N] = { "auto", "on", "off", "low", "medium", "high" };

typedef enum Kind { SWITCH, INVERSE, BUDGET, EFFORT } Kind;

/* Names in templates: Qwen, Hugging Face (SmolLM3), GLM and most others; IBM (Granite), DeepSeek, Moonshot
 * (Kimi); Cohere; MiniMax; ByteDance (Seed-OSS); OpenAI (gpt-oss), Mistral and others; Moonshot; Muse. */
static const struct {
    const char *name;
    Kind kind;
} NAMES[] = {
    { "enable_thinking", SWITCH },
    { "thinking", SWITCH },
    { "reasoning", SWITCH },
    { "enable_reasoning", SWITCH },
    { "thinking_enabled", SWITCH },
    { "use_thinking", SWITCH },
    { "think", SWITCH },
    { "thinking_mode", SWITCH },
    { "reasoning_mode", SWITCH },
    { "think_mode", SWITCH },
    { "no_think", INVERSE },
    { "no_thinking", INVERSE },
    { "skip_think", INVERSE },
    { "skip_thinking", INVERSE },
    { "disable_thinking", INVERSE },
    { "disable_reasoning", INVERSE },
    { "thinking_budget", BUDGET },
    { "reasoning_budget", BUDGET },
    { "reasoning_effort", EFFORT },
    { "thinking_effort", EFFORT },
    { "reasoning_strength", EFFORT },
    { "thinking_strength", EFFORT },
    { "reasoning_level", EFFORT },
    { "thinking_level", EFFORT },
};
#define COUNT(table) (sizeof(table) / sizeof *(table))
_Static_assert(COUNT(NAMES) <= QSF_CHAT_SWITCHES, "each name needs a place");

/* Pairs of words, off and on, of switches that are not truth values. */
static const char *const PAIRS[][2] = {
    { "disabled", "enabled" },
    { "disable", "enable" },
    { "off", "on" },
    { "no_think", "think" },
    { "nothink", "think" },
    { "no-think", "think" },
    { "/no_think", "/think" },
    { "no_thinking", "thinking" },
    { "non-thinking", "thinking" },
    { "non_thinking", "thinking" },
    { "chat", "thinking" },
    { "chat", "reasoner" },
    { "fast", "deep" },
    { "false", "true" },
    { "no", "yes" },
};

/* The words of PAIRS and others for off and on; two that the template names are a pair. */
static const char *const OFF_WORDS[] = { "disabled",    "disable",      "off",          "no_think",
                                         "nothink",     "no-think",     "/no_think",    "no_thinking",
                                         "no-thinking", "non-thinking", "non_thinking", "no_reasoning",
                                         "none",        "no",           "false",        "never",
                                         "chat",        "fast",         "instant",      "direct",
                                         "quick",       "minimal" };
static const char *const ON_WORDS[] = { "enabled",   "enable",   "on",     "think", "/think",   "thinking",
                                        "reasoning", "reasoner", "reason", "deep",  "true",     "yes",
                                        "always",    "full",     "slow",   "high",  "extended", "max" };

/* Words for efforts, from none to the greatest; LOW, MEDIUM and HIGH are the words of the settings. */
static const char *const EFFORTS[] = { "none",    "no_think", "nothink", "off",  "disabled", "disable", "no",
                                       "minimal", "low",      "medium",  "high", "xhigh",    "max" };
enum { MINIMAL = 7, N_OFF = MINIMAL, LOW, MEDIUM, HIGH };

/* Tokens of thinking for BUDGET. */
enum { BUDGET_LOW = 512, BUDGET_MEDIUM = 2048, BUDGET_HIGH = 8192 };

QsfReason qsf_reason_parse(const char *word) {
    int r = 0;
    while (r < QSF_REASON_N && strcmp(word, words[r]) != 0) r++;
    return (QsfReason)r;
}

const char *qsf_reason_word(QsfReason r) { return r < QSF_REASON_N ? words[r] : ""; }

/* --- values --- */

static QsfChatValue truth(bool b) { return (QsfChatValue){ .kind = QSF_CHAT_BOOL, .number = b }; }
static QsfChatValue number(int n) { return (QsfChatValue){ .kind = QSF_CHAT_INT, .number = n }; }
static QsfChatValue word(const char *w) { return (QsfChatValue){ .kind = QSF_CHAT_WORD, .word = w }; }

void qsf_chat_reason_bind(const QsfChatSwitch *s, size_t n, QsfReason r, QsfJinjaVars *v) {
    for (size_t i = 0; i < n; i++) {
        const QsfChatValue *x = &s[i].value[r];
        if (x->kind == QSF_CHAT_BOOL) qsf_jinja_set(v, s[i].name, qsf_j_bool(x->number != 0));
        if (x->kind == QSF_CHAT_INT) qsf_jinja_set(v, s[i].name, qsf_j_int(x->number));
        if (x->kind == QSF_CHAT_WORD)
            qsf_jinja_set(v, s[i].name,
                          qsf_j_str(qsf_jinja_vars_mem(v), x->word, strlen(x->word), QSF_J_TEXT));
    }
}

/* --- trials --- */

#define MSG(r, text) \
    { .role = (r), .content = (text), .len = sizeof(text) - 1 }

static const QsfMsg question[] = { MSG("user", "Hello") };
static const QsfMsg talk[] = { MSG("system", "Be brief."), MSG("user", "Hello"), MSG("assistant", "Hi"),
                               MSG("user", "Bye") };

static int render(QsfChatTemplate *t, const QsfChatSwitch *s, size_t n, QsfReason r, bool is_talk,
                  QsfRendered *out, bool *ok, QsfErr *err) {
    QsfChatRequest q = { .t = t,
                         .msgs = is_talk ? talk : question,
                         .n = is_talk ? COUNT(talk) : COUNT(question) };
    q.generation = true;
    q.switches = s;
    q.n_switches = n;
    q.reason = r;
    return qsf_chat_sample(t, &q, out, ok, err);
}

/* Whether the settings a and b make different prompts of a conversation that both can render. */
static int compare(QsfChatTemplate *t, const QsfChatSwitch *s, size_t n, QsfReason a, QsfReason b,
                   bool *differ, QsfErr *err) {
    int rc = QSF_OK;
    *differ = false;
    for (int is_talk = 0; is_talk < 2 && rc == QSF_OK && !*differ; is_talk++) {
        QsfRendered one = { 0 }, two = { 0 };
        bool ok = false, ok2 = false;
        rc = render(t, s, n, a, is_talk, &one, &ok, err);
        if (rc == QSF_OK && ok) rc = render(t, s, n, b, is_talk, &two, &ok2, err);
        *differ = ok && ok2 &&
                  (one.text.len != two.text.len ||
                   memcmp(qsf_strbuf_str(&one.text), qsf_strbuf_str(&two.text), one.text.len) != 0);
        qsf_rendered_free(&one);
        qsf_rendered_free(&two);
    }
    return rc;
}

/* Whether a question can be rendered with the setting. */
static int accepts(QsfChatTemplate *t, const QsfChatSwitch *s, size_t n, QsfReason r, bool *ok, QsfErr *err) {
    QsfRendered out = { 0 };
    int rc = render(t, s, n, r, false, &out, ok, err);
    qsf_rendered_free(&out);
    return rc;
}

/* The switches that were found so far, and one more. */
typedef struct Set {
    QsfChatSwitch s[QSF_CHAT_SWITCHES + 1];
    size_t n;
} Set;

static void join(const QsfChatTemplate *t, const QsfChatSwitch *s, Set *out) {
    out->n = t->n_switches + 1;
    memcpy(out->s, t->switches, t->n_switches * sizeof *out->s);
    out->s[t->n_switches] = *s;
}

/* Does the one variable s make a difference with these values? Then it has them. */
static int try_values(QsfChatTemplate *t, QsfChatSwitch *s, QsfChatValue off, QsfChatValue on, bool *works,
                      QsfErr *err) {
    QsfChatSwitch trial = { .name = s->name };
    trial.value[QSF_REASON_OFF] = off;
    trial.value[QSF_REASON_ON] = on;
    int rc = compare(t, &trial, 1, QSF_REASON_OFF, QSF_REASON_ON, works, err);
    if (rc != QSF_OK || !*works) return rc;
    for (int r = QSF_REASON_ON; r < QSF_REASON_N; r++) s->value[r] = r == QSF_REASON_OFF ? off : on;
    return rc;
}

/* --- kinds --- */

/* Two words that the template names. moves: off is also something else than what the template
 * does by itself. */
static int find_words(QsfChatTemplate *t, QsfChatSwitch *s, bool moves, bool *works, QsfErr *err) {
    int rc = QSF_OK;
    for (size_t i = 0; i < COUNT(OFF_WORDS) && rc == QSF_OK && !*works; i++) {
        if (!qsf_jinja_has_word(t->jinja, OFF_WORDS[i])) continue;
        for (size_t j = 0; j < COUNT(ON_WORDS) && rc == QSF_OK && !*works; j++) {
            if (!qsf_jinja_has_word(t->jinja, ON_WORDS[j])) continue;
            rc = try_values(t, s, word(OFF_WORDS[i]), word(ON_WORDS[j]), works, err);
            if (rc == QSF_OK && *works && moves)
                rc = compare(t, s, 1, QSF_REASON_AUTO, QSF_REASON_OFF, works, err);
        }
    }
    return rc;
}

/* Words that no template knows. */
#define NONSENSE  "qsf"
#define NONSENSE2 "fsq"

/* A word for off that the template names and tells from others; on is what it does by itself. */
static int find_off_word(QsfChatTemplate *t, QsfChatSwitch *s, bool *works, QsfErr *err) {
    QsfChatSwitch other = { .name = s->name };
    bool is_accepted = false;
    other.value[QSF_REASON_ON] = word(NONSENSE);
    int rc = accepts(t, &other, 1, QSF_REASON_ON, &is_accepted, err);
    for (size_t i = 0; i < COUNT(OFF_WORDS) && rc == QSF_OK && !*works; i++) {
        if (!qsf_jinja_has_word(t->jinja, OFF_WORDS[i])) continue;
        rc = try_values(t, s, word(OFF_WORDS[i]), (QsfChatValue){ 0 }, works, err);
        other.value[QSF_REASON_OFF] = word(OFF_WORDS[i]);
        if (rc == QSF_OK && *works && is_accepted)
            rc = compare(t, &other, 1, QSF_REASON_OFF, QSF_REASON_ON, works, err);
    }
    return rc;
}

/* Does the template only test the variable? Otherwise it also prints words that it does not know. */
static int is_tested(QsfChatTemplate *t, const char *name, bool *tested, QsfErr *err) {
    QsfChatSwitch trial = { .name = name };
    trial.value[QSF_REASON_OFF] = word(NONSENSE);
    trial.value[QSF_REASON_ON] = word(NONSENSE2);
    int rc = compare(t, &trial, 1, QSF_REASON_OFF, QSF_REASON_ON, tested, err);
    *tested = !*tested;
    return rc;
}

/* Is off an invented word that changes nothing? Then the template may have another one. */
static int note_guess(QsfChatTemplate *t, const QsfChatSwitch *s, bool works, QsfErr *err) {
    const QsfChatValue *off = &s->value[QSF_REASON_OFF];
    bool differ = true;
    int rc = QSF_OK;
    if (works && off->kind == QSF_CHAT_WORD && !qsf_jinja_has_word(t->jinja, off->word))
        rc = compare(t, s, 1, QSF_REASON_AUTO, QSF_REASON_OFF, &differ, err);
    if (!differ) t->guesses_off = true;
    return rc;
}

static int find_switch(QsfChatTemplate *t, QsfChatSwitch *s, bool *works, QsfErr *err) {
    const size_t len = strlen(s->name);
    const bool mode = len > 5 && strcmp(s->name + len - 5, "_mode") == 0;
    bool tested = false;
    int rc = is_tested(t, s->name, &tested, err);
    const bool words_first = mode || tested;
    if (rc == QSF_OK && words_first) rc = find_words(t, s, true, works, err);
    if (rc == QSF_OK && words_first && !*works) rc = find_words(t, s, false, works, err);
    for (size_t i = 0; i < COUNT(PAIRS) && rc == QSF_OK && !*works; i++)
        if (qsf_jinja_has_word(t->jinja, PAIRS[i][0]) || qsf_jinja_has_word(t->jinja, PAIRS[i][1]))
            rc = try_values(t, s, word(PAIRS[i][0]), word(PAIRS[i][1]), works, err);
    if (rc == QSF_OK && !*works && words_first) rc = find_off_word(t, s, works, err);
    if (rc == QSF_OK && !*works && mode)
        rc = try_values(t, s, word(PAIRS[0][0]), word(PAIRS[0][1]), works, err);
    if (rc == QSF_OK && !*works) rc = try_values(t, s, truth(false), truth(true), works, err);
    return rc == QSF_OK ? note_guess(t, s, *works, err) : rc;
}

static int find_inverse(QsfChatTemplate *t, QsfChatSwitch *s, bool *works, QsfErr *err) {
    return try_values(t, s, truth(true), truth(false), works, err);
}

/* 0 is off. On is what the template does by itself, unless that is off. Beside another switch
 * it only limits. */
static int find_budget(QsfChatTemplate *t, QsfChatSwitch *s, bool *works, QsfErr *err) {
    bool on = false;
    int rc = try_values(t, s, number(0), (QsfChatValue){ 0 }, &on, err);
    *works = on;
    if (rc == QSF_OK && !on) rc = try_values(t, s, number(0), number(BUDGET_MEDIUM), works, err);
    if (rc != QSF_OK || !*works) return rc;
    if (t->n_switches > 0) s->value[QSF_REASON_OFF] = s->value[QSF_REASON_ON] = (QsfChatValue){ 0 };
    s->value[QSF_REASON_LOW] = number(BUDGET_LOW);
    s->value[QSF_REASON_MEDIUM] = number(BUDGET_MEDIUM);
    s->value[QSF_REASON_HIGH] = number(BUDGET_HIGH);
    return rc;
}

/* The word for the effort: its own, or else the nearest one that the template names and accepts. */
static int choose_effort(QsfChatTemplate *t, QsfChatSwitch *s, QsfReason r, int effort, QsfErr *err) {
    Set set;
    bool ok = false;
    int rc = QSF_OK;
    for (int step = 0; step < 2 * (int)COUNT(EFFORTS) && rc == QSF_OK && !ok; step++) {
        const int i = effort + (step % 2 == 1 ? (step + 1) / 2 : -(step / 2));
        if (i < N_OFF || i >= (int)COUNT(EFFORTS)) continue;
        if (step > 0 && !qsf_jinja_has_word(t->jinja, EFFORTS[i])) continue;
        s->value[r] = word(EFFORTS[i]);
        join(t, s, &set);
        rc = accepts(t, set.s, set.n, r, &ok, err);
    }
    if (!ok) s->value[r] = (QsfChatValue){ 0 };
    return rc;
}

/* An effort counts where reasoning is on, so the other switches are on. */
static int find_effort(QsfChatTemplate *t, QsfChatSwitch *s, bool *works, QsfErr *err) {
    Set set;
    int rc = choose_effort(t, s, QSF_REASON_LOW, LOW, err);
    if (rc == QSF_OK) rc = choose_effort(t, s, QSF_REASON_MEDIUM, MEDIUM, err);
    if (rc == QSF_OK) rc = choose_effort(t, s, QSF_REASON_HIGH, HIGH, err);
    join(t, s, &set);
    for (int r = QSF_REASON_LOW; r <= QSF_REASON_HIGH && rc == QSF_OK && !*works; r++)
        rc = compare(t, set.s, set.n, QSF_REASON_ON, (QsfReason)r, works, err);
    /* a template may know no effort but none */
    for (int i = 0; i <= MINIMAL && t->n_switches == 0 && rc == QSF_OK && !*works; i++) {
        if (!qsf_jinja_has_word(t->jinja, EFFORTS[i])) continue;
        set.s[0].value[QSF_REASON_OFF] = word(EFFORTS[i]);
        rc = compare(t, set.s, 1, QSF_REASON_ON, QSF_REASON_OFF, works, err);
    }
    return rc;
}

/* Without another switch the effort is one: off is a word for it that the template names, or else the lowest;
 * on is what the template does by itself, unless that is off. */
static int switch_by_effort(QsfChatTemplate *t, QsfChatSwitch *s, QsfErr *err) {
    bool off = false, on = true;
    int rc = QSF_OK;
    for (int i = 0; i < N_OFF && rc == QSF_OK && !off; i++) {
        if (!qsf_jinja_has_word(t->jinja, EFFORTS[i])) continue;
        s->value[QSF_REASON_OFF] = word(EFFORTS[i]);
        rc = compare(t, s, 1, QSF_REASON_OFF, QSF_REASON_HIGH, &off, err);
    }
    if (rc == QSF_OK && off) rc = compare(t, s, 1, QSF_REASON_AUTO, QSF_REASON_OFF, &on, err);
    if (!on) s->value[QSF_REASON_ON] = s->value[QSF_REASON_MEDIUM];
    t->lowers = !off;
    if (rc != QSF_OK || off) return rc;
    s->value[QSF_REASON_OFF] = s->value[QSF_REASON_LOW];
    return qsf_jinja_has_word(t->jinja, "minimal") ? choose_effort(t, s, QSF_REASON_OFF, MINIMAL, err) : rc;
}

int qsf_chat_find_switches(QsfChatTemplate *t, QsfErr *err) {
    static int (*const find[])(QsfChatTemplate *, QsfChatSwitch *, bool *, QsfErr *) = {
        [SWITCH] = find_switch, [INVERSE] = find_inverse, [BUDGET] = find_budget, [EFFORT] = find_effort
    };
    size_t effort = QSF_CHAT_SWITCHES;
    bool switched = false;
    int rc = QSF_OK;
    for (size_t i = 0; i < COUNT(NAMES) && rc == QSF_OK; i++) {
        QsfChatSwitch s = { .name = NAMES[i].name };
        bool works = false;
        if (!qsf_jinja_reads(t->jinja, s.name)) continue;
        rc = find[NAMES[i].kind](t, &s, &works, err);
        if (rc != QSF_OK || !works) continue;
        if (NAMES[i].kind == EFFORT)
            effort = t->n_switches;
        else
            switched = true;
        t->switches[t->n_switches++] = s;
    }
    t->takes_switch = switched || effort < QSF_CHAT_SWITCHES;
    if (rc == QSF_OK && !switched && effort < QSF_CHAT_SWITCHES)
        rc = switch_by_effort(t, &t->switches[effort], err);
    return rc;
}

const char *qsf_chat_reasoning_note(const QsfChatTemplate *t, QsfReason r) {
    if (r == QSF_REASON_AUTO) return NULL;
    if (t == NULL || !t->takes_switch) return QSF_REASON_NO_SWITCH;
    if (r != QSF_REASON_OFF) return NULL;
    return t->lowers ? QSF_REASON_LOWERS : t->guesses_off ? QSF_REASON_SAME : NULL;
}

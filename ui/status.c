/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Shared by the pane, the strip and the line, from the engine's numbers. */
#include <stdio.h>
#include <string.h>

#include "ui/abilities.h"
#include "ui/app.h"
#include "ui/format.h"
#include "ui/statuspane.h"

bool ui_status_has(const UiStatus *s, UiNeed need) {
    return !s->engine || s->engine->has(s->engine->self, need);
}

bool ui_status_counted(const UiStatus *s) { return !s->engine || s->engine->counted(s->engine->self); }

void ui_status_value(const UiStatus *s, const QSFSetting *row, char *dst, size_t cap) {
    char value[QSF_SETTING_TEXT], shown[QSF_SETTING_TEXT];
    const char *mark = s->engine ? ui_effect_mark(s->engine->effect(s->engine->self, row)) : NULL;
    qsf_setting_get(s->settings, row, value, sizeof value);
    ui_setting_shown(row, value, shown, sizeof shown);
    ui_format_knob(mark ? mark : shown, dst, cap);
}

const char *ui_status_word(const UiStatus *s) {
    static const char *const words[] = { "no model", "loading", "ready", "reading", "writing" };
    unsigned state = (unsigned)s->stats->state;
    if (s->stopping) return "stopping";
    if (state == QSF_STATE_PREFILL && !ui_status_has(s, UI_NEEDS_PROMPT) && s->stats->prefill_total == 0)
        return "waiting";
    return state < sizeof words / sizeof *words ? words[state] : "?";
}

double ui_status_eta(const QSFStats *s) {
    if (s->state == QSF_STATE_PREFILL && s->prefill_left > 0) return s->prefill_left;
    if (s->state == QSF_STATE_PREFILL && s->prefill_tps > 0 && s->prefill_total >= s->prefill_done)
        return (double)(s->prefill_total - s->prefill_done) / s->prefill_tps;
    if (s->state == QSF_STATE_DECODE && s->decode_tps > 0 && s->max_tokens >= s->out_tokens &&
        s->max_tokens > 0)
        return (double)(s->max_tokens - s->out_tokens) / s->decode_tps;
    return -1;
}

bool ui_status_pinning(const QSFStats *s) { return s->pin_done < s->pin_total; }

/* Not those that are set, but that a server does not know. */
static bool has_effect(const UiStatus *s, const char *setting) {
    const QSFSetting *row = qsf_setting_find(setting);
    const UiEffect effect = s->engine && row ? s->engine->effect(s->engine->self, row) : UI_EFFECT_USUAL;
    return effect != UI_EFFECT_NONE && effect != UI_EFFECT_REFUSED;
}

bool ui_status_reduced(const UiStatus *s) {
    const float set = s->settings->params.quality, used = s->stats->quality;
    if (!has_effect(s, "quality")) return false;
    return (set > 0 && set < 1) || (used > 0 && used < 1);
}

bool ui_status_limits(const UiStatus *s, int *top, float *drop) {
    const QSFParams *p = &s->settings->params;
    const QSFStats *st = s->stats;
    *top = st->expert_top > 0 ? (int)st->expert_top : p->expert_top;
    *drop = st->expert_drop > 0 ? st->expert_drop : p->expert_drop;
    if (!has_effect(s, "expert-top")) *top = 0;
    if (!has_effect(s, "expert-drop")) *drop = 0;
    return *top > 0 || *drop > 0;
}

bool ui_status_grammar(const UiStatus *s, char *out, size_t cap) {
    static const char *const names[] = { "", "grammar", "schema", "regex", "only" };
    const QSFParams *p = &s->settings->params;
    if (p->grammar_kind == QSF_GRAMMAR_NONE || p->grammar_kind >= QSF_GRAMMAR_N) return false;
    const bool file = p->grammar_kind == QSF_GRAMMAR_GBNF || p->grammar_kind == QSF_GRAMMAR_SCHEMA;
    const char *slash = file ? strrchr(p->grammar, '/') : NULL;
    (void)snprintf(out, cap, "%s %.40s", names[p->grammar_kind], slash ? slash + 1 : p->grammar);
    return true;
}

uint32_t ui_status_layer(const QSFStats *s) { return s->layer < s->n_layers ? s->layer + 1 : s->n_layers; }

uint64_t ui_status_used(const QSFStats *s) {
    uint64_t sum = 0;
    for (uint32_t i = 0; i < s->n_mem && i < QSF_STATS_MEM; i++) sum += s->mem[i].used;
    return sum;
}

/* A plan uses all of its budget: only exceeding it is a warning. */
bool ui_status_over(const QSFStats *s) {
    return s->budget > 0 && (ui_status_used(s) > s->budget || s->rss > s->budget);
}

bool ui_status_offers(const UiStatus *s) {
    return s->more && s->more->budget > s->stats->budget && s->stats->streamed_bytes > 0;
}

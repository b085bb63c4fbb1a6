/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The question at a full context. */
#include "ui/ctx_full.h"

#include <stdio.h>
#include <string.h>

#include "qsf_text.h"
#include "ui/app_internal.h"
#include "ui/exchanges.h"
#include "ui/format.h"

/* What the choices would do now; 0 = impossible. */
typedef struct Offers {
    uint32_t forget;       /* exchanges */
    int64_t leave, read;   /* tokens that leave and are evaluated again */
    uint32_t compact;      /* exchanges */
    int64_t write, reread; /* tokens of the summary, and evaluated */
    uint32_t ctx;          /* tokens of a larger context */
    char no_ctx[200];      /* why it is impossible */
    char no_policy[200];   /* the same for a policy, "" = possible */
} Offers;

/* The end of an answer may have more tokens as text than it had when it was written: not only must something
 * leave, the rest must fit. */
static bool makes_room(const UiApp *a, int64_t after, int64_t now) {
    return after >= 0 && after < now && after < a->stats.ctx_size;
}

/* The fewest exchanges whose end frees an eighth of the context, or else all but the last. */
static void offer_forget(const UiApp *a, Offers *o, int64_t now, int64_t system) {
    const uint32_t most = ui_exchanges(a);
    for (uint32_t n = 1; n < most; n++) {
        const int64_t after = ui_exchanges_after(a, n);
        if (!makes_room(a, after, now)) continue;
        o->forget = n;
        o->leave = now - after;
        o->read = after - system;
        if (o->leave >= a->stats.ctx_size / 8) return;
    }
}

static void offer_compact(const UiApp *a, Offers *o, int64_t now, int64_t system) {
    const uint32_t n = ui_compact_choose(a);
    const int64_t after = n > 0 ? ui_exchanges_after(a, n) : -1;
    const int64_t most = ui_compact_tokens(a);
    if (after < 0 || !makes_room(a, after + most, now)) return;
    o->compact = n;
    o->write = most;
    o->reread = after - system + most;
}

/* Doubled, or less where the model or the budget ends earlier; the conversation of `need` tokens must fit. */
static void offer_ctx(const UiApp *a, Offers *o, int64_t need) {
    static const uint32_t quarters[] = { 8, 6, 5 };
    const uint32_t now = a->stats.ctx_size, train = a->stats.ctx_train;
    const uint64_t base = need > (int64_t)now * 7 / 4 ? (uint64_t)need : now;
    char err[600];
    (void)qsf_text_snprintf(o->no_ctx, sizeof o->no_ctx, "the model was trained for %u tokens", train);
    for (size_t i = 0; i < sizeof quarters / sizeof *quarters; i++) {
        QSFSettings s = a->settings;
        uint64_t ctx = base * quarters[i] / 4 / 16 * 16;
        if (ctx > 1u << 30) ctx = 1u << 30;
        if (train > 0 && ctx > train) ctx = train;
        if (ctx <= now || (int64_t)ctx <= need) continue;
        s.ctx = (uint32_t)ctx;
        if (a->engine.check(a->engine.self, &s, err, sizeof err) == 0) {
            o->ctx = s.ctx;
            return;
        }
        (void)snprintf(o->no_ctx, sizeof o->no_ctx, "%.*s", (int)strcspn(err, ";\n"), err);
    }
}

static void find_offers(const UiApp *a, Offers *o) {
    const int64_t now = ui_exchanges_after(a, 0), system = ui_exchanges_system(a);
    char err[600];
    *o = (Offers){ 0 };
    offer_forget(a, o, now, system);
    offer_compact(a, o, now, system);
    offer_ctx(a, o, now);
    if (!ui_app_policy_is_possible(a, err, sizeof err))
        (void)snprintf(o->no_policy, sizeof o->no_policy, "%.*s", (int)strcspn(err, ";\n"), err);
}

static bool is_offered(const Offers *o, char key) {
    switch (key) {
    case '1': return o->forget > 0;
    case '2': return o->compact > 0;
    case '3': return o->ctx > 0;
    case '4': return true;
    default: return key == '5' && o->no_policy[0] == '\0';
    }
}

#define FORMS 3u

/* The names of the choices, from the longest; two of the short ones are commands. */
static const struct {
    const char *gap, *name[5];
} forms[FORMS] = {
    { "  ", { " forget", " compact", " enlarge", " stop", " policy" } },
    { " ", { " forget", " compact", " ctx", " stop", " kv" } },
    { " ", { "", "", "", "", "" } },
};

static bool is_among_offered(const UiApp *a, char key) {
    return key >= '1' && key <= '5' && (a->ask_offered >> (key - '1') & 1) != 0;
}

void ui_ctx_full_names(const UiApp *a, int room, char *dst, size_t cap) {
    for (size_t form = 0; form < FORMS; form++) {
        size_t at = 0;
        dst[0] = '\0';
        for (char key = '1'; key <= '5' && at < cap; key++) {
            if (!is_among_offered(a, key)) continue;
            at += (size_t)snprintf(dst + at, cap - at, "%s%c%s", at > 0 ? forms[form].gap : "", key,
                                   forms[form].name[key - '1']);
        }
        if ((int)at <= room) return;
    }
}

const char *ui_ctx_full_name(const UiApp *a, char key) {
    return is_among_offered(a, key) ? forms[0].name[key - '1'] + 1 : NULL;
}

bool ui_ctx_full_needs_no_enter(char key) { return key >= '3' && key <= '5'; }

static void note_keys(UiApp *a, const Offers *o) {
    a->ask_offered = 0;
    for (char key = '1'; key <= '5'; key++) a->ask_offered |= (unsigned)is_offered(o, key) << (key - '1');
    ui_ctx_full_names(a, (int)sizeof a->ask_keys, a->ask_keys, sizeof a->ask_keys);
}

/* "3, 4 or 5", of the choices from `first` to `last` that are offered. */
static void put_keys(UiBuf *b, const Offers *o, char first, char last) {
    int n = 0, i = 0;
    for (char key = first; key <= last; key++) n += is_offered(o, key);
    for (char key = first; key <= last; key++) {
        if (!is_offered(o, key)) continue;
        ui_buf_printf(b, "%s%c", i == 0 ? "" : i == n - 1 ? " or " : ", ", key);
        i++;
    }
}

/* Which keys make a choice: ui_ctx_full_needs_no_enter. */
static void put_how(const UiApp *a, UiBuf *b, const Offers *o) {
    if (!a->full_screen) {
        ui_buf_puts(b, "Enter ");
        put_keys(b, o, '1', '5');
        return;
    }
    ui_buf_puts(b, "Press ");
    put_keys(b, o, '3', '5');
    if (!is_offered(o, '1') && !is_offered(o, '2')) return;
    ui_buf_puts(b, ", or ");
    put_keys(b, o, '1', '2');
    ui_buf_puts(b, " and Enter");
}

/* Bytes that more positions take in the layers that keep all of them. */
static uint64_t bytes_of(const UiApp *a, uint32_t positions) {
    const QSFLayerKindInfo *k = a->stats.context.kind;
    return (k[QSF_LAYERS_FULL].token_bytes + k[QSF_LAYERS_MLA].token_bytes) * positions;
}

/* ", about 2.5s" */
static void put_seconds(const UiApp *a, UiBuf *b, double read, double write) {
    const double r = a->read_tps > 0 ? a->read_tps : a->stats.prefill_tps, w = a->stats.decode_tps;
    char span[24];
    if (!(r > 0) || (write > 0 && !(w > 0))) return;
    const double seconds = read / r + (write > 0 ? write / w : 0);
    if (seconds < 0.1) return;
    ui_format_span(seconds, span, sizeof span);
    ui_buf_printf(b, ", about %s", span);
}

static const char *why_not_forget(const UiApp *a) {
    return ui_exchanges(a) > 1 ? "this exchange alone fills the context"
                               : "there is nothing before this exchange";
}

static void put_forget(const UiApp *a, UiBuf *b, const Offers *o) {
    if (o->forget == 0) return;
    char oldest[40];
    ui_exchanges_oldest(o->forget, oldest, sizeof oldest);
    ui_buf_printf(b, "\n1 forget %s: %lld tokens leave, %lld are evaluated again", oldest,
                  (long long)o->leave, (long long)o->read);
    put_seconds(a, b, (double)o->read, 0);
}

static void put_compact(const UiApp *a, UiBuf *b, const Offers *o) {
    if (o->compact == 0) return;
    char oldest[40];
    ui_exchanges_oldest(o->compact, oldest, sizeof oldest);
    ui_buf_printf(b, "\n2 compact %s to a summary: up to %lld tokens are written, %lld evaluated again",
                  oldest, (long long)o->write, (long long)o->reread);
    put_seconds(a, b, (double)o->reread, (double)o->write);
}

static void put_ctx(const UiApp *a, UiBuf *b, const Offers *o) {
    char size[24];
    if (o->ctx == 0) return;
    const uint64_t bytes = bytes_of(a, o->ctx - a->stats.ctx_size);
    ui_buf_printf(b, "\n3 enlarge the context to %u tokens: ", o->ctx);
    ui_format_bytes(bytes, size, sizeof size);
    if (bytes > 0) ui_buf_printf(b, "%s more for the KV cache, ", size);
    ui_buf_puts(b, "nothing is evaluated again");
}

void ui_ctx_full_ask(UiApp *a) {
    UiBuf b = { 0 };
    Offers o;
    find_offers(a, &o);
    ui_buf_printf(&b, "the context is full: %u tokens, and the answer is not finished. ", a->stats.ctx_size);
    put_how(a, &b, &o);
    note_keys(a, &o);
    put_forget(a, &b, &o);
    put_compact(a, &b, &o);
    put_ctx(a, &b, &o);
    ui_buf_puts(&b, "\n4 stop: keep the answer as it is, /continue asks again");
    if (is_offered(&o, '5'))
        ui_buf_puts(
            &b,
            "\n5 policy sliding: from now on the oldest tokens leave when the context is full, nothing is "
            "evaluated again");
    ui_ctx_full_over(a);
    const UiItem *last = ui_transcript_last(&a->chat);
    const uint32_t before = a->chat.next_id;
    a->asking = last ? last->id : 0;
    ui_app_print(a, UI_NOTICE, ui_buf_str(&b));
    a->ask_item = a->chat.next_id != before ? a->chat.next_id : 0;
    ui_buf_free(&b);
}

static bool evicts(const UiApp *a) { return strcmp(a->settings.eviction, "none") != 0; }

/* An answer that the model or a stop string did not end. */
static bool is_cut(const UiItem *it) {
    return it && it->kind == UI_ANSWER && strcmp(it->stop, "eos") != 0 && strcmp(it->stop, "stop") != 0;
}

bool ui_ctx_full_ask_again(UiApp *a) {
    const uint32_t size = a->stats.ctx_size;
    if (!a->interactive || !a->model_ready || evicts(a) || size == 0) return false;
    if (!is_cut(ui_transcript_last(&a->chat)) || ui_exchanges_after(a, 0) < size) return false;
    ui_ctx_full_ask(a);
    return true;
}

void ui_ctx_full_over(UiApp *a) {
    for (size_t i = a->chat.n; a->ask_item != 0 && i > 0; i--) {
        if (a->chat.items[i - 1]->id != a->ask_item) continue;
        ui_transcript_remove(&a->chat, a->chat.items[i - 1]);
        break;
    }
    a->asking = a->ask_item = 0;
}

void ui_ctx_full_answered(UiApp *a) {
    const UiItem *last = ui_transcript_last(&a->chat);
    if (!last || last->id != a->asking) ui_ctx_full_over(a);
}

bool ui_ctx_full_open(const UiApp *a) {
    const UiItem *last = ui_transcript_last(&a->chat);
    return a->asking != 0 && !a->enlarging && !ui_app_busy(a) && last && last->id == a->asking;
}

void ui_ctx_full_stop(UiApp *a) {
    ui_ctx_full_over(a);
    ui_app_send_queued(a);
}

/* The answer continues when the plan is in force. */
static void change(UiApp *a, const char *setting, const char *value) {
    a->enlarging = ui_app_set(a, qsf_setting_find(setting), value, false) && a->replanning;
}

static void enlarge(UiApp *a, uint32_t ctx) {
    char value[16];
    (void)snprintf(value, sizeof value, "%u", ctx);
    change(a, "ctx", value);
}

void ui_ctx_full_planned(UiApp *a, bool ok) {
    if (!a->enlarging) return;
    a->enlarging = false;
    if (ok && ui_ctx_full_open(a)) (void)ui_app_ask(a, true);
}

void ui_ctx_full_refresh(UiApp *a) {
    Offers o;
    if (!ui_ctx_full_open(a)) return;
    const int64_t now = ui_exchanges_after(a, 0);
    if (evicts(a) || (now >= 0 && now + a->stats.ctx_size / 16 < a->stats.ctx_size)) {
        ui_ctx_full_over(a);
        ui_app_say(a, UI_NOTICE, "there is space in the context: /continue continues the answer");
        return;
    }
    find_offers(a, &o);
    note_keys(a, &o);
}

static void refuse(UiApp *a, const Offers *o, char key) {
    note_keys(a, o);
    ui_app_say(a, UI_NOTICE, "that is not possible: %s; %s",
               key == '3'   ? o->no_ctx
               : key == '2' ? "a summary would not make space"
               : key == '1' ? why_not_forget(a)
                            : o->no_policy,
               a->ask_keys);
}

bool ui_ctx_full_key(UiApp *a, char key) {
    Offers o;
    if (!ui_ctx_full_open(a) || key < '1' || key > '5') return false;
    find_offers(a, &o);
    if (!is_offered(&o, key)) {
        refuse(a, &o, key);
    } else if (key == '5') {
        change(a, "eviction-policy", "sliding");
    } else if (key == '4') {
        ui_ctx_full_stop(a);
    } else if (key == '3') {
        enlarge(a, o.ctx);
    } else if (key == '2') {
        (void)ui_compact(a, o.compact, true);
    } else {
        ui_forget(a, o.forget);
        (void)ui_app_ask(a, true);
    }
    return true;
}

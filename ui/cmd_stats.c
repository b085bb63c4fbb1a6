/* SPDX-License-Identifier: GPL-3.0-or-later */
/* /stats and /mem: what the engine counted, in numbers. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ui/abilities.h"
#include "ui/app_internal.h"
#include "ui/commands.h"
#include "ui/format.h"
#include "ui/heat.h"

#define UI_WORST 4 /* number of layers listed */

static void stats_reused(const UiItem *last, UiBuf *b) {
    char part[24], all[24];
    if (!last || last->prompt == 0) return;
    ui_format_count(last->reused, part, sizeof part);
    ui_format_count(last->prompt, all, sizeof all);
    ui_buf_printf(b, "prompt   reused %s of %s tokens\n", part, all);
}

/* The context of a server, as far as it is known. */
static void put_context(const QSFStats *s, UiBuf *b) {
    if (s->ctx_used > 0) ui_buf_printf(b, "context  %u tokens after the last answer\n", s->ctx_used);
    if (s->ctx_size > 0)
        ui_buf_printf(b, "%-9s%u tokens at most\n", s->ctx_used > 0 ? "" : "context", s->ctx_size);
}

static void stats_speed(const QSFStats *s, const UiItem *last, UiBuf *b) {
    char decode[24], prefill[24], ttft[24], of[24] = "";
    ui_format_tps(s->decode_tps, decode, sizeof decode);
    ui_format_tps(s->prefill_tps, prefill, sizeof prefill);
    ui_format_span(s->ttft_ms / 1000, ttft, sizeof ttft);
    ui_buf_printf(b, "decode   %s t/s, %u tokens\n", decode, s->out_tokens);
    if (s->state == QSF_STATE_PREFILL) (void)snprintf(of, sizeof of, "%u of ", s->prefill_done);
    ui_buf_printf(b, "prefill  %s t/s, %s%u tokens", prefill, of, s->prefill_total);
    if (s->ttft_ms > 0) ui_buf_printf(b, "; first token after %s", ttft);
    ui_buf_puts(b, "\n");
    stats_reused(last, b);
    ui_buf_printf(b, "context  %u of %u tokens\n", s->ctx_used, s->ctx_size);
    if (s->k_type[0]) ui_buf_printf(b, "KV cache keys %s, values %s\n", s->k_type, s->v_type);
    if (s->evictions > 0)
        ui_buf_printf(b, "evicted  %llu tokens in %llu evictions (%s)\n", (unsigned long long)s->evicted,
                      (unsigned long long)s->evictions, s->eviction);
    if (s->reliefs > 0)
        ui_buf_printf(b, "memory   was short %llu time%s and was given back\n",
                      (unsigned long long)s->reliefs, s->reliefs == 1 ? "" : "s");
}

static void stats_io(const QSFStats *s, UiBuf *b) {
    char read[32], token[32], planned[32];
    ui_format_bytes(s->bytes_read, read, sizeof read);
    ui_format_bytes((uint64_t)(s->bytes_per_token > 0 ? s->bytes_per_token : 0), token, sizeof token);
    ui_format_bytes(s->streamed_bytes, planned, sizeof planned);
    ui_buf_printf(b, "disk     %s read at %.2f GB/s%s%s\n", read, s->io_gbps, s->io_name[0] ? " by " : "",
                  s->io_name);
    ui_buf_printf(b, "         %s per token, %s planned\n", token, planned);
    ui_buf_printf(b, "time     computing %.0f ms, waiting for the disk %.0f ms (%.0f %%)\n", s->compute_ms,
                  s->wait_ms, s->stall * 100);
}

/* Shares of the drafts at each position that were right. */
static void stats_source(const QSFDraftedBy *by, UiBuf *b) {
    ui_buf_printf(b, "         %s: ", by->name);
    for (uint32_t i = 0; i < QSF_SPECULATION_POSITIONS && by->drafted[i] > 0; i++)
        ui_buf_printf(b, "%s%.0f %%", i > 0 ? ", " : "",
                      100 * (double)by->accepted[i] / (double)by->drafted[i]);
    ui_buf_printf(b, " right by position; passes with drafts: %llu\n", (unsigned long long)by->drafted[0]);
}

static void stats_speculation(const QSFSpeculation *s, UiBuf *b) {
    if (s->passes > 0)
        ui_buf_printf(b, "passes   %llu, %.2f tokens each%s%s\n", (unsigned long long)s->passes,
                      (double)s->tokens / (double)s->passes, s->why[0] ? "; no drafts now: " : "", s->why);
    for (uint32_t i = 0; i < s->n_sources && i < QSF_SPECULATION_SOURCES; i++)
        if (s->source[i].drafted[0] > 0) stats_source(&s->source[i], b);
}

static void worst_layers(const UiApp *a, UiBuf *b) {
    uint32_t worst[UI_WORST];
    uint32_t n = ui_heat_worst(a->layers, a->n_layers, worst, UI_WORST);
    for (uint32_t i = 0; i < n; i++) {
        const QSFLayerStats *l = &a->layers[worst[i]];
        char name[24] = "head", read[32];
        if (worst[i] + 1 < a->n_layers) (void)snprintf(name, sizeof name, "layer %u", worst[i] + 1);
        ui_format_bytes(l->read_bytes, read, sizeof read);
        ui_buf_printf(b, "%-9s%s: waited %.0f ms, computed %.0f ms; %s read, %.0f %% pinned\n",
                      i ? "" : "slowest", name, (double)l->wait_ns / 1e6, (double)l->compute_ns / 1e6, read,
                      l->weight_bytes ? (double)l->pinned_bytes / (double)l->weight_bytes * 100 : 0);
    }
}

/* Lines that begin with "threads: ", as the others do with a word in nine columns. */
static void stats_threads(const UiApp *a, UiBuf *b) {
    char *text = a->engine.describe(a->engine.self, "threads");
    for (const char *line = text, *end; line != NULL && *line != '\0'; line = *end != '\0' ? end + 1 : end) {
        end = line + strcspn(line, "\n");
        const char *rest = strchr(line, ' ');
        if (rest != NULL && rest < end)
            ui_buf_printf(b, "\n%-9s%.*s", line == text ? "threads" : "", (int)(end - rest - 1), rest + 1);
    }
    free(text);
}

/* What a server said, or what was counted of its answer. */
static void stats_server(UiApp *a, UiBuf *b) {
    const QSFStats *s = &a->stats;
    const char *about = a->engine.counted(a->engine.self) ? "" : "about ";
    char decode[24], prefill[24], ttft[24];
    ui_format_tps(s->decode_tps, decode, sizeof decode);
    ui_format_tps(s->prefill_tps, prefill, sizeof prefill);
    ui_format_span(s->ttft_ms / 1000, ttft, sizeof ttft);
    if (s->out_tokens > 0)
        ui_buf_printf(b, "decode   %s%s t/s, %s%u tokens%s\n", about, decode, about, s->out_tokens,
                      *about ? ": the server did not count them" : "");
    if (s->prefill_tps > 0) ui_buf_printf(b, "prefill  %s t/s\n", prefill);
    if (s->ttft_ms > 0) ui_buf_printf(b, "latency  %s to the first token\n", ttft);
    stats_reused(ui_transcript_last_of(&a->chat, UI_ANSWER), b);
    put_context(s, b);
    ui_buf_printf(b, "server   %s", s->model_desc);
}

bool ui_cmd_stats(UiApp *a, const char *name, const char *args) {
    (void)name, (void)args;
    UiBuf b = { 0 };
    ui_app_refresh_context(a);
    ui_app_refresh(a);
    const QSFStats *s = &a->stats;
    if (!ui_has(a, UI_NEEDS_MEMORY)) {
        stats_server(a, &b);
        ui_app_print(a, UI_OUTPUT, ui_buf_str(&b));
        ui_buf_free(&b);
        return true;
    }
    stats_speed(s, ui_transcript_last_of(&a->chat, UI_ANSWER), &b);
    stats_speculation(&s->speculation, &b);
    if (s->streamed_bytes > 0 || s->bytes_read > 0) stats_io(s, &b);
    if (s->io_notice[0]) ui_buf_printf(&b, "note     %s\n", s->io_notice);
    worst_layers(a, &b);
    ui_buf_printf(&b, "engine   %s, %u thread%s, %s", s->backend[0] ? s->backend : "-", s->threads,
                  s->threads == 1 ? "" : "s", s->model_desc[0] ? s->model_desc : "no model");
    stats_threads(a, &b);
    ui_app_print(a, UI_OUTPUT, ui_buf_str(&b));
    ui_buf_free(&b);
    return true;
}

/* ---- /context ---- */

static void kind_row(UiBuf *b, QSFLayerKind kind, const QSFLayerKindInfo *k) {
    char most[32];
    ui_format_bytes(k->most_bytes, most, sizeof most);
    ui_buf_printf(b, "%-15s %4u layer%s ", qsf_layer_kind_name(kind), k->layers, k->layers == 1 ? " " : "s");
    if (k->token_bytes > 0)
        ui_buf_printf(b, " %.2f KB per token, %s for %u\n", (double)k->token_bytes / 1024, most,
                      k->positions);
    else
        ui_buf_printf(b, " %s, any length\n", most);
}

bool ui_cmd_context(UiApp *a, const char *name, const char *args) {
    (void)name;
    UiBuf b = { 0 };
    if (*args) return ui_app_set(a, qsf_setting_find("ctx"), args, false);
    ui_app_refresh_context(a);
    ui_app_refresh(a);
    const QSFStats *s = &a->stats;
    const QSFContextInfo *c = &s->context;
    if (!ui_has(a, UI_NEEDS_MEMORY)) {
        put_context(s, &b);
        ui_app_print(a, UI_OUTPUT,
                     b.len > 0 ? ui_buf_str(&b) : "the server has not counted the conversation yet");
        ui_buf_free(&b);
        return true;
    }
    ui_buf_printf(&b, "%-15s %4u of %u tokens\n", "conversation", s->ctx_used, s->ctx_size);
    ui_buf_printf(&b, "%-15s %4u kept, %u evicted, %u protected\n", "positions", c->kept, c->evicted,
                  c->n_protected);
    for (int k = 0; k < QSF_LAYERS_N; k++) {
        if (c->kind[k].layers > 0) kind_row(&b, (QSFLayerKind)k, &c->kind[k]);
    }
    if (s->kv_note[0])
        ui_buf_printf(&b, "%-15s %s%s\n", "KV cache", s->kv_note, c->converted ? ", converted" : "");
    ui_buf_puts(&b, "/ctx N changes the size of the context, /kv type T how K and V are stored");
    ui_app_print(a, UI_OUTPUT, ui_buf_str(&b));
    ui_buf_free(&b);
    return true;
}

/* ---- /mem ---- */

static void mem_row(UiBuf *b, const char *name, uint64_t used, uint64_t of) {
    char u[32], o[32];
    ui_format_bytes(used, u, sizeof u);
    ui_format_bytes(of, o, sizeof o);
    ui_buf_printf(b, "%-20s %10s of %10s\n", name, u, o);
}

static void mem_table(const QSFStats *s, UiBuf *b) {
    uint64_t sum = 0;
    for (uint32_t i = 0; i < s->n_mem && i < QSF_STATS_MEM; i++) {
        sum += s->mem[i].used;
        if (s->mem[i].used > 0 || s->mem[i].planned > 0)
            mem_row(b, s->mem[i].name, s->mem[i].used, s->mem[i].planned);
    }
    mem_row(b, "sum, budget", sum, s->budget);
    char rss[32], peak[32], recent[32];
    ui_format_bytes(s->rss, rss, sizeof rss);
    ui_format_bytes(s->peak_rss, peak, sizeof peak);
    ui_format_bytes(s->recent_peak_rss, recent, sizeof recent);
    ui_buf_printf(b, "%-20s %10s, peak %s", "kernel: RSS", rss, peak);
    if (s->recent_peak_rss > 0 && s->recent_peak_rss < s->peak_rss)
        ui_buf_printf(b, ", with this budget %s", recent);
    ui_buf_puts(b, "\n");
}

static void mem_experts(const QSFExpertInfo *x, UiBuf *b) {
    char in[32], all[32];
    if (x->n == 0) return;
    ui_format_bytes((uint64_t)((double)x->bytes * x->resident / x->n), in, sizeof in);
    ui_format_bytes(x->bytes, all, sizeof all);
    ui_buf_printf(b, "%-20s %10s of %10s", "experts", in, all);
    if (x->slots > 0) ui_buf_printf(b, ", %u slots, %.0f %% hits expected", x->slots, 100 * x->expected_hits);
    if (x->uses > 0) ui_buf_printf(b, ", %.0f %% measured", 100 * x->hits);
    ui_buf_puts(b, "\n");
}

static void mem_weights(const QSFStats *s, UiBuf *b) {
    char pinned[32], streamed[32], done[32];
    if (s->pinned_bytes == 0 && s->streamed_bytes == 0) return;
    ui_format_bytes(s->pinned_bytes, pinned, sizeof pinned);
    ui_format_bytes(s->streamed_bytes, streamed, sizeof streamed);
    ui_buf_printf(b, "%-20s %10s pinned", "weights", pinned);
    if (s->pin_done < s->pin_total) {
        ui_format_bytes(s->pin_done, done, sizeof done);
        ui_buf_printf(b, " (%s so far)", done);
    }
    if (s->streamed_bytes > 0) ui_buf_printf(b, ", %s per token from disk", streamed);
    ui_buf_puts(b, "\n");
    if (s->embed_hits + s->embed_misses > 0)
        ui_buf_printf(b, "%-20s %10llu from RAM, %llu from disk\n", "embedding rows",
                      (unsigned long long)s->embed_hits, (unsigned long long)s->embed_misses);
}

/* The lines of the engine's table that are indented: mapped memory, by name. */
static void mem_regions(UiApp *a, UiBuf *b) {
    char *text = a->engine.describe(a->engine.self, "memory");
    for (const char *line = text; line && *line; line += strcspn(line, "\n"), line += *line == '\n') {
        if (*line == ' ') ui_buf_printf(b, "%.*s\n", (int)strcspn(line, "\n"), line);
    }
    free(text);
}

bool ui_cmd_mem(UiApp *a, const char *name, const char *args) {
    (void)name, (void)args;
    UiBuf b = { 0 };
    ui_app_refresh(a);
    mem_table(&a->stats, &b);
    mem_weights(&a->stats, &b);
    mem_experts(&a->stats.expert, &b);
    mem_regions(a, &b);
    if (a->stats.plan_note[0]) ui_buf_printf(&b, "%s\n", a->stats.plan_note);
    ui_app_print(a, UI_OUTPUT, ui_buf_str(&b));
    ui_buf_free(&b);
    return true;
}

/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The main mode: answers a prompt from -p and stdin on stdout. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "qsf_decode.h"
#include "qsf_log.h"
#include "qsf_text.h"
#include "src/base/clock.h"
#include "src/base/json.h"
#include "src/engine/model_info.h"
#include "src/engine/prompt.h"
#include "src/engine/quality/quality.h"
#include "src/engine/snapshot/snapshot.h"
#include "src/run/run.h"

/* --- --prompt-cache: a snapshot of the conversation in a file that the user names. It only saves time:
 * whatever is wrong with it is reported, and the prompt is evaluated --- */

typedef struct RunCache {
    const char *path; /* NULL: nothing is saved */
    QsfSnapKey key;
    bool fresh;       /* the file is replaced */
    uint64_t load_ns; /* part of the time to the first token */
} RunCache;

static void report_cache(const QsfErr *err, const char *what) {
    if (err->code != QSF_E_INTERRUPTED) run_note("%s%s", err->msg, what);
}

/* SnapKV chooses at the end of each prompt, so an answer after an earlier run's prompt is not
 * that after one prompt. */
static int check_policy(const QsfRuntime *rt, QsfErr *err) {
    if (qsf_evict_parse(rt->settings.eviction) != QSF_EVICT_SNAPKV) return QSF_OK;
    return qsf_err_set(err, QSF_E_RUNTIME,
                       "no snapshot: what snapkv evicts depends on where the prompts of earlier runs ended");
}

/* Loads what the file at path (NULL = none) has of ids, unless the quality of p does not allow it. What is
 * wrong with it is printed. */
static void cache_load(RunCache *c, const char *path, QsfTimeline *t, const QSFParams *p, const QsfIds *ids) {
    QsfErr err = { 0 };
    QsfSnapKind kind = QSF_SNAP_MISSING;
    uint32_t loaded;
    *c = (RunCache){ .path = path };
    if (path == NULL) return;
    const bool evicts = qsf_forward_evicts(t->rt->fwd);
    const uint64_t start = qsf_now_ns();
    qsf_timeline_lead(t, evicts ? 0 : t->rt->system_tokens);
    int rc = check_policy(t->rt, &err);
    if (rc == QSF_OK) rc = qsf_snapshot_key(&c->key, t->rt, &err);
    if (rc == QSF_OK && !qsf_quality_measures(t->rt, p))
        rc = qsf_snapshot_load(t, path, &c->key, ids->data, ids->n, &loaded, &kind, &err);
    c->load_ns = qsf_now_ns() - start;
    c->fresh = kind == QSF_SNAP_OTHER || kind == QSF_SNAP_DAMAGED || kind == QSF_SNAP_CUT;
    t->last_apart = rc != QSF_E_RUNTIME && qsf_forward_state_bytes(t->rt->fwd) > 0 && !evicts;
    if (rc == QSF_OK && kind == QSF_SNAP_CUT)
        report_cache(&err, "; the rest of the prompt is evaluated, and the file replaced");
    if (rc == QSF_OK) return;
    report_cache(&err,
                 c->fresh ? "; the prompt is evaluated, and the file replaced" : "; the prompt is evaluated");
    if (kind == QSF_SNAP_ALIEN || rc == QSF_E_RUNTIME) c->path = NULL;
}

/* Saves the timeline; prints why it cannot. */
static void cache_save(const RunCache *c, QsfTimeline *t) {
    QsfErr err = { 0 };
    QsfForwardStats s;
    const QsfSnapSave o = { .fresh = c->fresh };
    qsf_forward_stats(t->rt->fwd, &s);
    if (c->path != NULL && s.reliefs > 0 && s.evictions > 0) {
        run_note("no snapshot: memory was short, and the KV cache was made smaller");
        return;
    }
    if (c->path != NULL && qsf_snapshot_save(t, c->path, &c->key, &o, &err) != QSF_OK) report_cache(&err, "");
}

#define DEFAULT_MAX_TOKENS 256

typedef struct Answer {
    const RunOptions *o;
    QSFParams params;
    RunMeter meter;
    QsfStrbuf text;      /* --json: the whole answer */
    QsfStrbuf reasoning; /* --json: what came before it */
    QsfStrbuf why;       /* --top-logprobs: objects of the tokens that were not written yet */
    bool why_begun;      /* the beginning of the object was */
    const QsfRuntime *rt;
    bool thought;    /* there is reasoning, shown or not */
    bool evicted;    /* it was said that tokens are evicted */
    bool memory_low; /* it was said that memory is short */
    bool answered;   /* there is an answer after it */
    char last;       /* last byte written */
    int rc;          /* a failed write */
} Answer;

/* Does stdin have a prompt? Pipes, sockets and files do; a terminal, /dev/null and a closed stdin do not. */
static bool stdin_has_text(void) {
    struct stat st;
    return !fstat(STDIN_FILENO, &st) && (S_ISFIFO(st.st_mode) || S_ISREG(st.st_mode) || S_ISSOCK(st.st_mode));
}

int run_read_prompt(const RunOptions *o, QsfStrbuf *b, RunFiles *files) {
    const bool given = o->prompt || o->n_files > 0;
    RunRoom room = run_room(o);
    int wrong = run_files_read(o, &room, b, files);
    if (wrong) return wrong;
    if (o->prompt) {
        run_add_gap(b);
        qsf_strbuf_adds(b, o->prompt);
    }
    if (!given || stdin_has_text()) {
        if (!given && isatty(STDIN_FILENO)) {
            qsf_cli_error(&run_cli, "no prompt: use -p TEXT, -f FILE, pipe text in, or --interactive");
            return QSF_EXIT_USAGE;
        }
        QsfStrbuf in = QSF_STRBUF_INIT;
        room.bytes -= b->len < room.bytes ? b->len : room.bytes;
        room.held = b->len;
        int rc = run_read_stdin(&room, &in);
        if (!rc && in.len && given) qsf_strbuf_adds(b, "\n\n");
        if (!rc) qsf_strbuf_add(b, qsf_strbuf_str(&in), in.len);
        qsf_strbuf_free(&in);
        if (rc) return rc;
    }
    if (b->len && qsf_strbuf_ok(b)) return QSF_EXIT_OK;
    qsf_cli_error(&run_cli, qsf_strbuf_ok(b) ? "the prompt is empty" : "prompt: out of memory");
    return qsf_strbuf_ok(b) ? QSF_EXIT_USAGE : QSF_EXIT_RUNTIME;
}

/* With a template, makes one user turn (after --system); without one, uses the text itself. */
int run_encode_prompt(QsfRuntime *rt, const RunOptions *o, const QsfStrbuf *prompt, QsfIds *ids,
                      QsfThinkPrompt *where, QsfErr *err) {
    QsfMsg msgs[2];
    const QSFParams *p = &o->settings.params;
    unsigned flags = QSF_CHAT_GENERATE | (p->allow_special ? QSF_CHAT_ALLOW_SPECIAL : 0) |
                     QSF_CHAT_REASON * p->reasoning;
    size_t n = 0;
    const char *note = qsf_chat_reasoning_note(rt->tmpl, p->reasoning);
    char lost[400];
    if (note != NULL) run_note("%s", note);
    if (o->system) msgs[n++] = (QsfMsg){ .role = "system", .content = o->system, .len = strlen(o->system) };
    msgs[n++] = (QsfMsg){ .role = "user", .content = qsf_strbuf_str(prompt), .len = prompt->len };
    int rc = qsf_prompt_encode(rt, msgs, n, flags, ids, where, err);
    if (rc == QSF_OK && where->lost > 0) {
        qsf_chat_lost_note(rt->tmpl, msgs, n, where->lost, lost, sizeof lost);
        run_note("%s", lost);
    }
    if (rc == QSF_OK && rt->tmpl == NULL && ids->n == 0)
        rc = qsf_err_set(err, QSF_E_MODEL, "%s: no usable vocabulary: it has no tokens for the prompt",
                         qsf_source_path(rt->model.src));
    if (rc == QSF_OK && rt->fwd != NULL) qsf_runtime_protect(rt, qsf_system_tokens(rt, msgs, n, flags, ids));
    return rc;
}

static void on_params(void *arg, QSFParams *out) { *out = ((Answer *)arg)->params; }

/* Tells it once. */
static void on_evicted(void *arg, uint64_t n) {
    Answer *a = arg;
    (void)n;
    if (!a->evicted && !a->memory_low)
        run_note("the context is full: the policy %s evicts tokens now", a->o->settings.eviction);
    a->evicted = true;
}

static void on_memory(void *arg, const char *text) {
    ((Answer *)arg)->memory_low = true;
    run_note("%s", text);
}

static void on_reasoning_cut(void *arg, uint32_t tokens) {
    (void)arg;
    run_note("thinking was cut after %u tokens (--reasoning-budget)", tokens);
}

/* Starts the meter when the prompt has been evaluated and decoding begins. */
static void on_tick(void *arg, const QsfSample *s) {
    if (!s) run_meter_begin(&((Answer *)arg)->meter);
}

static int on_text(void *arg, int32_t id, const char *text, size_t len) {
    Answer *a = arg;
    (void)id;
    if (!len) return 0;
    a->answered = true;
    a->last = text[len - 1];
    if (a->o->json)
        qsf_strbuf_add(&a->text, text, len);
    else
        a->rc = run_write(text, len);
    return a->rc;
}

/* Reasoning is omitted unless requested; on a terminal a message explains the wait. */
static int on_reasoning(void *arg, int32_t id, const char *text, size_t len) {
    Answer *a = arg;
    bool first = !a->thought;
    (void)id;
    if (!len) return 0;
    a->thought = true;
    if (a->o->json) {
        qsf_strbuf_add(&a->reasoning, text, len);
    } else if (a->o->settings.show_thinking) {
        a->last = text[len - 1];
        a->rc = run_write(text, len);
    } else if (first && isatty(STDERR_FILENO)) {
        run_note("the model is thinking (use --show-thinking to show it)");
    }
    return a->rc;
}

#define WHY_BYTES 16384 /* written together */

static void flush_why(Answer *a) {
    if (!a->rc && a->why.len > 0) a->rc = run_write_raw(qsf_strbuf_str(&a->why), a->why.len);
    qsf_strbuf_clear(&a->why);
}

/* Up to 20 KB per token, so they are written while the answer is generated, before its text. */
static void on_why(void *arg, const QSFWhy *w) {
    Answer *a = arg;
    qsf_strbuf_adds(&a->why, a->why_begun ? ", " : "{\"logprobs\": [");
    a->why_begun = true;
    run_put_why(&a->why, a->rt, w);
    if (a->why.len >= WHY_BYTES) flush_why(a);
}

/* The beginning of the object, up to its text. */
static void put_begin(Answer *a, QsfStrbuf *b) {
    flush_why(a);
    if (a->o->top_logprobs > 0)
        qsf_strbuf_adds(b, a->why_begun ? "], " : "{\"logprobs\": [], ");
    else
        qsf_strbuf_adds(b, "{");
}

static int finish_text(Answer *a) {
    if (a->o->json || a->rc) return a->rc;
    a->rc = run_write_end();
    if (!a->rc && a->last && a->last != '\n') a->rc = run_write_raw("\n", 1);
    return a->rc;
}

/* The text without tags. */
static void put_reasoning(QsfStrbuf *b, const QsfStrbuf *reasoning) {
    char *plain = malloc(reasoning->len + 1);
    b->failed = b->failed || plain == NULL;
    if (plain != NULL)
        qsf_json_put_string(b, plain, qsf_reasoning_plain(qsf_strbuf_str(reasoning), reasoning->len, plain));
    free(plain);
}

static int finish_json(Answer *a, const QsfRuntime *rt, const QsfGeneration *g) {
    QsfStrbuf b = QSF_STRBUF_INIT;
    RunFigures f = run_figures(&a->meter.s, g);
    put_begin(a, &b);
    qsf_strbuf_adds(&b, "\"text\": ");
    qsf_json_put_string(&b, qsf_strbuf_str(&a->text), a->text.len);
    qsf_strbuf_addf(&b, ", \"prompt_tokens\": %u, \"tokens\": %u, \"stop\": \"%s\", \"seed\": %llu",
                    g->prompt_tokens, g->tokens, qsf_stop_name(g->stop), (unsigned long long)g->seed);
    if (a->params.grammar_kind != QSF_GRAMMAR_NONE)
        qsf_strbuf_addf(&b, ", \"grammar\": \"%s\"", g->grammar_cut ? "cut" : "complete");
    if (a->o->prompt_cache != NULL) qsf_strbuf_addf(&b, ", \"reused_tokens\": %u", g->reused_tokens);
    if (rt->fwd != NULL && qsf_forward_evicts(rt->fwd))
        qsf_strbuf_addf(&b, ", \"evicted\": %llu", (unsigned long long)g->evicted);
    if (a->thought) {
        qsf_strbuf_adds(&b, ", \"reasoning\": ");
        put_reasoning(&b, &a->reasoning);
        qsf_strbuf_addf(&b, ", \"reasoning_tokens\": %u", g->reasoning_tokens);
        if (g->reasoning_cut)
            qsf_strbuf_addf(&b, ", \"reasoning_cut\": true, \"hidden_tokens\": %u", g->hidden_tokens);
    }
    run_put_figures(&b, &f, rt);
    qsf_strbuf_adds(&b, "}\n");
    int rc = a->rc ? a->rc : run_write_raw(qsf_strbuf_str(&b), b.len);
    qsf_strbuf_free(&b);
    return rc;
}

/* Settings of stages that are on. */
static void print_stages(const QSFParams *p) {
    QSFSettings s, usual;
    char value[QSF_SETTING_TEXT];
    qsf_settings_default(&usual);
    s = usual;
    s.params = *p;
    for (size_t i = 0; i < qsf_setting_count(); i++) {
        const QSFSetting *row = qsf_setting_at(i);
        if (!(row->flags & QSF_SETTING_MORE) || !qsf_setting_differs(&s, &usual, row)) continue;
        qsf_setting_get(&s, row, value, sizeof value);
        qsf_text_fprintf(stderr, "%s %s\n", row->name, value);
    }
}

static void print_timings(const QsfGeneration *g, const RunMeter *m, const QSFParams *p) {
    RunFigures f = run_figures(&m->s, g);
    qsf_text_fprintf(stderr,
                     "temperature %g, top-k %d, top-p %g, min-p %g, repeat-penalty %g over %d tokens\n",
                     (double)p->temperature, (int)p->top_k, (double)p->top_p, (double)p->min_p,
                     (double)p->repeat_penalty, (int)p->repeat_last_n);
    print_stages(p);
    qsf_text_fprintf(
        stderr,
        "prompt %u tokens, %.2f tok/s; answer %u tokens, %.2f tok/s; first token after %.0f ms; stop: %s; "
        "seed %llu\n",
        g->prompt_tokens, f.prefill_tps, g->tokens, f.decode_tps, f.ttft_ms, qsf_stop_name(g->stop),
        (unsigned long long)g->seed);
    if (g->reused_tokens > 0)
        qsf_text_fprintf(stderr, "%u tokens of the prompt were in the prompt cache\n", g->reused_tokens);
    if (m->s.bytes_read)
        fprintf(stderr, "read %.1f MB per token, %.2f GB/s, waited %.0f ms, stall %.0f %%\n",
                f.bytes_per_token / 1048576, f.io_gbps, f.wait_ms, 100 * f.stall);
}

static int exit_code(const Answer *a, const QsfGeneration *g) {
    int sig = atomic_load(&qsf_signal_cancel);
    if (g->stop == QSF_STOP_INTERRUPTED && sig) return 128 + sig;
    if (g->stop == QSF_STOP_CONTEXT) {
        qsf_cli_error(
            &run_cli,
            "the context is full after %u prompt and %u answer tokens (set a longer one with --ctx N)",
            g->prompt_tokens, g->tokens);
        return QSF_EXIT_CONTEXT;
    }
    return g->stop == QSF_STOP_LENGTH && a->o->fail_on_length ? QSF_EXIT_LENGTH : QSF_EXIT_OK;
}

/* --verbose: what the monitor of memory saw. */
static void print_memory(const QsfRuntime *rt) {
    char note[200];
    if (qsf_pressure_note(&rt->pressure, rt->settings.memory_threshold, note, sizeof note) > 0)
        fprintf(stderr, "memory: %s\n", note);
}

/* Why nothing was printed. */
static void say_without_text(const Answer *a, const QsfGeneration *out) {
    const bool cut = out->stop == QSF_STOP_LENGTH || out->stop == QSF_STOP_CONTEXT;
    if (a->answered || out->tokens == 0) return;
    if (a->thought && out->stop == QSF_STOP_EOS)
        qsf_cli_error(&run_cli, "the model ended without an answer (--show-thinking shows its reasoning)");
    else if (cut && out->thinking)
        qsf_cli_error(&run_cli,
                      "the model was still thinking after %u tokens (use -n N for more, --show-thinking "
                      "to show it)",
                      out->tokens);
    else if (cut)
        qsf_cli_error(&run_cli, "the answer has no text yet after %u tokens (use -n N for more)",
                      out->tokens);
}

static void log_answer(const QsfGeneration *g, const RunMeter *m) {
    const RunFigures f = run_figures(&m->s, g);
    qsf_log("answer",
            "prompt %u tokens (%u reused) at %.2f tok/s; answer %u tokens at %.2f tok/s, "
            "first one after %.0f ms; "
            "stop %s; seed %llu",
            g->prompt_tokens, g->reused_tokens, f.prefill_tps, g->tokens, f.decode_tps, f.ttft_ms,
            qsf_stop_name(g->stop), (unsigned long long)g->seed);
}

/* Prints the messages after a completed answer. */
static int report(Answer *a, const QsfRuntime *rt, const QsfGeneration *out) {
    const RunOptions *o = a->o;
    log_answer(out, &a->meter);
    qsf_cli_begin_output(); /* of an answer without text, too */
    int rc = finish_text(a);
    if (!rc && o->json) rc = finish_json(a, rt, out);
    char quality[96];
    qsf_quality_describe(rt, quality, sizeof quality);
    if (!rc && !o->json && quality[0] && !run_is_quiet()) fprintf(stderr, "%s\n", quality);
    if (!rc && !o->settings.params.seed_set && out->tokens && !o->json && !run_is_quiet() &&
        a->params.temperature > 0)
        fprintf(stderr, "seed %llu\n", (unsigned long long)out->seed);
    say_without_text(a, out);
    if (out->grammar_cut && out->stop != QSF_STOP_INTERRUPTED)
        run_note("the answer was cut before its grammar was complete (use -n N for more tokens)");
    if (o->verbose) print_timings(out, &a->meter, &a->params);
    if (o->verbose) print_memory(rt);
    if (o->stats) run_print_stats(&a->meter);
    return rc ? rc : exit_code(a, out);
}

/* The user's parameters, and the model's recommendations for the others. */
static QSFParams params_of(const QsfRuntime *rt, const RunOptions *o) {
    QSFSettings s = o->settings, advice;
    qsf_model_defaults_read(rt->model.src, &advice);
    qsf_model_defaults_apply(&s, &advice);
    if (s.params.max_tokens < 0) s.params.max_tokens = DEFAULT_MAX_TOKENS;
    return s.params;
}

static int generate(QsfRuntime *rt, QsfTimeline *t, const RunOptions *o, const QsfIds *ids,
                    const QsfThinkPrompt *where) {
    Answer a = { .o = o, .params = params_of(rt, o), .rt = rt };
    QsfGenerate g = { .prompt = ids->data,
                      .n_prompt = ids->n,
                      .continues = rt->tmpl == NULL,
                      .stop = o->stop,
                      .n_stop = o->n_stop,
                      .params = on_params,
                      .text = on_text,
                      .reasoning = on_reasoning,
                      .think = *where,
                      .tick = on_tick,
                      .evicted = on_evicted,
                      .memory = on_memory,
                      .reasoning_cut = on_reasoning_cut,
                      .arg = &a };
    QsfGeneration out = { 0 };
    QsfErr err = { 0 };
    RunCache cache;
    if (o->top_logprobs > 0) g.why = on_why;
    if (o->top_logprobs > 0) g.n_why = o->top_logprobs - 1;
    cache_load(&cache, o->prompt_cache, t, &a.params, ids);
    int rc = run_meter_init(&a.meter, rt, &err);
    if (!rc) rc = qsf_timeline_generate(t, &g, &out, &err);
    if (out.tokens > 0) run_meter_end(&a.meter);
    out.ttft_ns += cache.load_ns;
    if (!rc) {
        rc = report(&a, rt, &out);
    } else {
        finish_text(&a);
        flush_why(&a);
        if (a.why_begun && !a.rc) (void)run_write_raw("]}\n", 3);
        rc = run_fail(&err);
    }
    cache_save(&cache, t);
    run_meter_free(&a.meter);
    qsf_strbuf_free(&a.text);
    qsf_strbuf_free(&a.reasoning);
    qsf_strbuf_free(&a.why);
    return rc;
}

int run_generate(const RunOptions *o) {
    QsfRuntime rt;
    QsfErr err = { 0 };
    QsfStrbuf prompt = QSF_STRBUF_INIT;
    QsfRuntimeOptions ro = run_runtime_options(o);
    RunFiles files = { 0 };
    int rc = run_read_prompt(o, &prompt, &files);
    if (rc || (rc = run_open(&rt, o, &ro))) {
        qsf_strbuf_free(&prompt);
        return rc;
    }
    QsfIds ids = { 0 };
    QsfTimeline t = { 0 };
    QsfThinkPrompt where;
    run_files_note(&rt, o, &prompt, &files);
    if (run_encode_prompt(&rt, o, &prompt, &ids, &where, &err) || qsf_timeline_init(&t, &rt, &err))
        rc = run_fail(&err);
    else
        rc = generate(&rt, &t, o, &ids, &where);
    qsf_timeline_free(&t);
    qsf_ids_free(&ids);
    qsf_strbuf_free(&prompt);
    run_close(&rt, o);
    return rc;
}

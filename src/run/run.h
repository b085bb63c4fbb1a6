/* SPDX-License-Identifier: GPL-3.0-or-later */
/* qsf-run's types: its options, and one function per mode. */
#ifndef QSF_RUN_RUN_H
#define QSF_RUN_RUN_H

#include <stdatomic.h>
#include <stdbool.h>

#include "qsf_cli.h"
#include "qsf_config.h"
#include "src/base/err.h"
#include "src/base/strbuf.h"
#include "src/cli/signals.h"
#include "src/engine/runtime.h"
#include "src/engine/snapshot/snapshot.h"
#include "src/engine/timeline.h"

#define RUN_MAX_LIST 64

typedef enum RunMode {
    RUN_GENERATE,
    RUN_BENCH,
    RUN_PARITY,
    RUN_PERPLEXITY,
    RUN_CALIBRATE_QUALITY,
    RUN_TOKENIZE,
    RUN_DETOKENIZE,
    RUN_INSPECT,
    RUN_PLAN,
    RUN_SHOW_PROMPT,
    RUN_RENDER,
    RUN_MATCH,
    RUN_INTERACTIVE
} RunMode;

typedef struct RunOptions {
    QSFSettings settings;
    bool max_tokens_set;
    RunMode mode;
    bool mode_set;
    const char *model;
    const char *prompt; /* -p; NULL = not given. With --bench: prompt tokens */
    const char *system, *system_file;
    const char *parity_dir, *receipt;
    const char *logits;     /* --logits; NULL = logits.f32 */
    const char *perplexity; /* the text; "-" = stdin */
    const char *stride, *kl_save, *kl_base;
    const char *calibrate_quality; /* the text; "-" = stdin */
    char *files[RUN_MAX_LIST];     /* (n_files), --file, owned */
    size_t n_files;
    const char *stop[RUN_MAX_LIST];
    size_t n_stop;
    const char *dirs[RUN_MAX_LIST + 1]; /* (n_dirs), --model-dir; NULL-terminated */
    size_t n_dirs;
    const char *overrides[RUN_MAX_LIST + 1]; /* NULL-terminated */
    size_t n_overrides;
    char i2s_flavor[64];    /* one of them */
    const char *repeats;    /* --bench -r */
    const char *bench_text; /* --bench: a file with the prompt; NULL: arbitrary tokens */
    const char *svg;        /* --plan and --bench: a picture is written there; "-" is stdout; NULL: none */
    const char *prompt_cache;
    const char *output;       /* -o: a file instead of stdout, or NULL */
    const char *log_file;     /* --log-file, or NULL */
    const char *render, *now; /* --render, and the current time for its template */
    bool offline, json, jsonl, no_bos, no_special, clean_spaces, exact, verbose, fail_on_length, stats;
    uint32_t top_logprobs; /* 1 + N; 0 = not given */
    double max_kl;
    long nextn; /* --nextn: a next-token block; -1 = not given */
    QSFConfigStart config;
} RunOptions;

/* --- options.c: the command line --- */
extern const QSFCli run_cli;
/* Fills o from argv, which is permuted, and checks the combination of options. Returns 0 or QSF_EXIT_USAGE,
 * and prints the message. With res->done, help was printed and nothing is checked. */
int run_parse(RunOptions *o, int argc, char **argv, QSFCliResult *res);
/* Frees what the options own; not their configuration. */
void run_options_free(RunOptions *o);
/* --- logprobs.c --- */
/* Appends the object of a token of the answer to b. */
void run_put_why(QsfStrbuf *b, const QsfRuntime *rt, const QSFWhy *w);
/* --- run_config.c: the configuration file --- */
/* Reads it as the command line asks for. Returns 0 or QSF_EXIT_USAGE, and prints the message. */
int run_config_begin(RunOptions *o, int argc, char **argv, QSFCliHandler on_option);
/* Takes the options of the program from it that the command line does not replace and that have a meaning in
 * the mode: `wrong` returns a message for a combination that has none. The same results. */
int run_config_options(RunOptions *o, QSFCliHandler on_option, const char *(*wrong)(const RunOptions *o));
/* Takes settings, system prompt and stop strings for o->model from it. The same results. */
int run_config_settings(RunOptions *o);
/* --print-config; returns the exit status. */
int run_config_print(const RunOptions *o);

/* Each runs one mode and returns an exit code; error messages have been printed. */
int run_generate(const RunOptions *o);
int run_bench(const RunOptions *o);
int run_parity(const RunOptions *o);
int run_perplexity(const RunOptions *o);
int run_calibrate_quality(const RunOptions *o);
int run_tokenize(const RunOptions *o);
int run_detokenize(const RunOptions *o);
int run_inspect(const RunOptions *o);
int run_plan(const RunOptions *o);
int run_show_prompt(const RunOptions *o);
int run_render(const RunOptions *o);
int run_match(const RunOptions *o);

/* Where the text of each --file is in the prompt. */
typedef struct RunFiles {
    size_t from[RUN_MAX_LIST], to[RUN_MAX_LIST]; /* (n) bytes [from, to) */
    size_t n;
} RunFiles;

#define RUN_TEXT_MAX (64u << 20)
/* How much may be read. */
typedef struct RunRoom {
    size_t bytes;    /* at most RUN_TEXT_MAX */
    uint64_t budget; /* that leaves no more, in bytes; 0: RUN_TEXT_MAX is the limit */
    size_t held;     /* bytes of texts that belong to it and were read before */
    const RunOptions *o;
} RunRoom;
/* How much text fits into the part of the RAM budget that the process does not use yet, all copies of the
 * text counted; at least 1 MB. */
RunRoom run_room(const RunOptions *o);
/* Appends a blank line, unless b is empty. */
void run_add_gap(QsfStrbuf *b);
/* Appends the texts of --file to b. Returns an exit code and prints the message. */
int run_files_read(const RunOptions *o, const RunRoom *room, QsfStrbuf *b, RunFiles *files);
/* Notes the name, size and tokens of each of them, and their sum. */
void run_files_note(QsfRuntime *rt, const RunOptions *o, const QsfStrbuf *prompt, const RunFiles *files);
/* Appends the texts of --file, -p and stdin to b. Returns an exit code and prints the message. */
int run_read_prompt(const RunOptions *o, QsfStrbuf *b, RunFiles *files);
/* Appends the prompt's ids: with a template, of one user turn (after --system); without one, of the text
 * itself. */
int run_encode_prompt(QsfRuntime *rt, const RunOptions *o, const QsfStrbuf *prompt, QsfIds *ids,
                      QsfThinkPrompt *where, QsfErr *err);

/* Fills the runtime options that every mode shares. */
QsfRuntimeOptions run_runtime_options(const RunOptions *o);
/* Opens o->model and, with --verbose, prints plan, kernels, I/O and a prediction. Returns an exit code and
 * prints the message. */
int run_open(QsfRuntime *rt, const RunOptions *o, const QsfRuntimeOptions *ro);
/* Closes rt; with --verbose, prints the memory use first. */
void run_close(QsfRuntime *rt, const RunOptions *o);
/* Appends the prediction of a plan as text; nothing when nothing was measured. */
void run_put_prediction(QsfStrbuf *b, const QsfRuntime *rt);
/* Prints "qsf-run: message" and returns the exit code of err (130 or 143 when a signal was the cause). */
int run_fail(const QsfErr *err);

/* Appends the tensors and bytes of each weight type of s: lines of a table ("Q4_K 133 tensors 520.1 MB"), or
 * members of a JSON object. */
void run_put_types(QsfStrbuf *b, const QsfSource *s, bool json);

/* --- output.c: stdout; errors of writing are exit statuses --- */
/* Writes text; cleans it when stdout is a terminal. Returns 0, or exit code 1: for EPIPE without a message,
 * for other errors with one. */
int run_write(const char *s, size_t len);
/* Prints "qsf-run: message" on stderr, unless only the answer and errors are wanted. */
void run_note(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* Sets whether run_note prints. */
void run_set_quiet(bool quiet);
bool run_is_quiet(void);
int run_write_raw(const char *s, size_t len); /* own text: JSON, tables */
int run_write_end(void);                      /* what the cleaner still holds */

/* --- input.c: texts --- */
/* Appends all of stdin to b; room NULL: whatever its size. Returns an exit code and prints the message:
 * QSF_EXIT_BUDGET if it is longer than the room, with the smallest budget that works where that can be found
 * out, for which the text is read to its end; QSF_EXIT_MODEL if it has more than RUN_TEXT_MAX. */
int run_read_stdin(const RunRoom *room, QsfStrbuf *b);
/* Appends the text at path to b, as run_read_stdin; "-" is standard input, FIFOs are allowed. option: named
 * in messages. A text without a byte is an error. */
int run_read_text(const char *option, const char *path, const RunRoom *room, QsfStrbuf *b);

/* --- meter.c: the cost of decoding, in total and by layer --- */
typedef struct RunMeter {
    const QsfForward *fwd;
    const QsfModel *model;
    uint32_t n;                     /* layers plus one for the head */
    QsfForwardStats s, s0;          /* sum of the intervals; counters at the start of the last one */
    QsfLayerStats *sum, *from, *to; /* (n) each: the sum; start and end of the last interval */
} RunMeter;
/* Initializes m. QSF_E_RUNTIME when out of memory. */
int run_meter_init(RunMeter *m, const QsfRuntime *rt, QsfErr *err);
void run_meter_free(RunMeter *m); /* a zeroed one is allowed */
/* Begin and end an interval of decoding. */
void run_meter_begin(RunMeter *m);
void run_meter_end(RunMeter *m);
/* Returns the growth of the sum since *before. */
QsfForwardStats run_meter_since(const RunMeter *m, const QsfForwardStats *before);
/* Append ", "layers": [...]" for --json; print a table for --stats. Both per token. */
void run_put_layers(QsfStrbuf *b, const RunMeter *m);
void run_print_stats(const RunMeter *m);

/* --- bench_text.c: --bench with a prompt of text --- */
typedef struct RunBenchText {
    QsfIds ids;
    QsfThinkPrompt where;
    QsfTimeline timeline;
} RunBenchText;
/* Reads the file and makes the prompt; t is freed in any case. Returns 0, or the exit code, reported. */
int run_bench_text_open(RunBenchText *t, QsfRuntime *rt, const RunOptions *o);
void run_bench_text_free(RunBenchText *t); /* a zeroed one is allowed */
/* Evaluates the prompt from scratch and generates n_gen tokens after it, an interval of m. Codes of
 * qsf_timeline_generate; QSF_E_INTERRUPTED. */
int run_bench_text(RunBenchText *t, uint32_t n_gen, RunMeter *m, QsfGeneration *g, QsfErr *err);

/* --- receipt.c: the figures that --json of a generation and --bench share --- */
typedef struct RunFigures {
    double prefill_tps, decode_tps, ttft_ms;                     /* of the whole run */
    double bytes_per_token, io_gbps, wait_ms, compute_ms, stall; /* of decoding */
    double expert_hits, expert_misses; /* the same: share of the chosen experts, and experts per token */
    double expert_uses;                /* chosen and used, of all layers, per token */
    double expert_reads;               /* reads of them per token */
    double ahead_read, ahead_used,
        ahead_wasted; /* bytes of experts read before they were chosen, per token */
} RunFigures;
void run_put_figures(QsfStrbuf *b, const RunFigures *f, const QsfRuntime *rt);
/* Returns the number of threads that compute tokens of an answer, or prompts. */
int run_threads(const QsfRuntime *rt, bool prompts);
/* Computes the figures. s: the counters of decoding. */
RunFigures run_figures(const QsfForwardStats *s, const QsfGeneration *g);

/* --- breakdown.c: the time of a decoded token by part (--bench) --- */
typedef struct RunBreakdown {
    double matvec_ms, attention_ms, prep_ms, sync_ms, disk_ms, other_ms; /* of a token */
    double matmul_ms[QSF_MATMUL_N];                                      /* the parts of matvec_ms */
    double sampling_ms;                                                  /* not part of decode_tps */
    double prefill_gmacs;        /* 10^9 multiply-adds per second in the matrices of the layers */
    double decode_gbps;          /* weights multiplied, 10^9 bytes per second */
    double read_gbps, bandwidth; /* reading without computing; decode_gbps as a share of it; 0 = not
                                    measured */
} RunBreakdown;
/* Computes the breakdown. s: the counters of decoding; decode_ns: its time, without sampling. */
RunBreakdown run_breakdown(const RunMeter *m, const QsfForwardStats *s, const RunFigures *f,
                           double read_speed, uint64_t sampling_ns, uint64_t decode_ns);
void run_put_breakdown(QsfStrbuf *out, const RunBreakdown *b); /* for --json */
void run_print_breakdown(QsfStrbuf *out, const RunBreakdown *b);
/* Appends a warning with an explanation, without a newline, when decoding was faster than reading the same
 * weights. cache_bytes: size of the CPU's last-level cache, 0 = unknown. */
void run_put_share_warning(QsfStrbuf *out, const RunBreakdown *b, double weight_bytes, double cache_bytes);
/* Returns the bytes of all weights used per token. */
double run_weight_bytes(const RunMeter *m);

#endif

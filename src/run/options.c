/* SPDX-License-Identifier: GPL-3.0-or-later */
/* qsf-run's command line: its options, and which of them can be combined. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "qsf_glob.h"
#include "qsf_text.h"
#include "src/base/utf8.h"
#include "src/engine/number.h"
#include "src/file/i2s.h"
#include "src/run/run.h"

enum {
    OPT_PROMPT,
    OPT_FILE,
    OPT_PROMPT_CACHE,
    OPT_MODEL,
    OPT_MODEL_DIR,
    OPT_SYSTEM,
    OPT_SYSTEM_FILE,
    OPT_STOP,
    OPT_OFFLINE,
    OPT_JSON,
    OPT_OUTPUT,
    OPT_QUIET,
    OPT_LOG_FILE,
    OPT_VERBOSE,
    OPT_FAIL_ON_LENGTH,
    OPT_INTERACTIVE,
    OPT_STATS,
    OPT_TOP_LOGPROBS,
    OPT_BENCH,
    OPT_REPEATS,
    OPT_BENCH_TEXT,
    OPT_SVG,
    OPT_INSPECT,
    OPT_PLAN,
    OPT_TOKENIZE,
    OPT_DETOKENIZE,
    OPT_JSONL,
    OPT_NO_BOS,
    OPT_NO_SPECIAL,
    OPT_CLEAN_SPACES,
    OPT_OVERRIDE_KV,
    OPT_I2S_FLAVOR,
    OPT_PARITY,
    OPT_RECEIPT,
    OPT_LOGITS,
    OPT_MAX_KL,
    OPT_NEXTN,
    OPT_EXACT,
    OPT_PERPLEXITY,
    OPT_STRIDE,
    OPT_KL_SAVE,
    OPT_KL_BASE,
    OPT_CALIBRATE_QUALITY,
    OPT_SHOW_PROMPT,
    OPT_RENDER,
    OPT_NOW,
    OPT_MATCH
};

static const QSFCliOption options[] = {
    /* clang-format off */
    { "prompt", "", 'p', "TEXT", "the prompt; text on stdin is appended after a blank line (with --bench: number of prompt tokens, default 256)", OPT_PROMPT },
    { "file", "", 'f', "FILE", "put the text of FILE, or of the files of a pattern such as 'src/*.c', before the prompt, or take it as the prompt; can be repeated", OPT_FILE },
    { "prompt-cache", "", 0, "FILE", "keep the state of the evaluated tokens in FILE: the next run with the same beginning does not evaluate it again", OPT_PROMPT_CACHE },
    { "model", "", 'm', "FILE", "the model file, instead of the MODEL argument", OPT_MODEL },
    { "model-dir", "", 0, "DIR", "look for models in this folder, too, where MODEL is a name; can be repeated", OPT_MODEL_DIR },
    { "offline", "", 0, NULL, "download nothing: hf:OWNER/NAME has to be on this machine", OPT_OFFLINE },
    { "system", "system-prompt", 0, "TEXT", "system prompt for the chat template", OPT_SYSTEM },
    { "system-file", "sysf", 0, "FILE", "read the system prompt from a file", OPT_SYSTEM_FILE },
    { "stop", "", 0, "TEXT", "stop before this text; can be repeated", OPT_STOP },
    { "json", "", 0, NULL, "print one JSON object instead of text", OPT_JSON },
    { "output", "", 'o', "FILE", "write to FILE instead of stdout", OPT_OUTPUT },
    { "quiet", "", 'q', NULL, "print only the answer and errors", OPT_QUIET },
    { "log-file", "", 0, "FILE", "append what happens to FILE: loads, answers, errors and times, but no texts", OPT_LOG_FILE },
    { "verbose", "", 'v', NULL, "print the plan, kernels, I/O, timings and memory use to stderr", OPT_VERBOSE },
    { "top-logprobs", "", 0, "N", "with --json: each token with the N most likely ones, 0 to 20, and what each stage of the sampler made of them", OPT_TOP_LOGPROBS },
    { "stats", "", 0, NULL, "print the cost per token, layer by layer, to stderr", OPT_STATS },
    { "fail-on-length", "", 0, NULL, "exit with status 6 when --max-tokens cut the answer short", OPT_FAIL_ON_LENGTH },
    { "interactive", "", 'i', NULL, "run qsf-chat --plain, a line-by-line chat", OPT_INTERACTIVE },
    { "bench", "", 0, NULL, "measure prefill and decode (-p, -n, -r are numbers)", OPT_BENCH },
    { "repeats", "", 'r', "N", "with --bench: number of repeats (default 3)", OPT_REPEATS },
    { "bench-text", "", 0, "FILE", "with --bench: the prompt is the text of FILE instead of arbitrary tokens", OPT_BENCH_TEXT },
    { "svg", "", 0, "FILE", "with --plan: draw what ten budgets buy, with --bench: speed against length; - is stdout", OPT_SVG },
    { "inspect", "", 0, NULL, "print the contents of the model file", OPT_INSPECT },
    { "plan", "", 0, NULL, "print the memory plan without loading the model", OPT_PLAN },
    { "show-prompt", "", 0, NULL, "print the prompt as the model receives it, with special tokens marked, without loading the weights", OPT_SHOW_PROMPT },
    { "render", "", 0, "FILE.jinja", "render a chat template: one JSON object of variables per input line, one JSON string per output line", OPT_RENDER },
    { "now", "", 0, "TIME", "with --render: the current time for the template, as 2026-01-31T12:00:00", OPT_NOW },
    { "match", "", 0, NULL, "with a grammar and --jsonl: whether texts match, one JSON string per input line, without a model", OPT_MATCH },
    { "tokenize", "", 0, NULL, "convert text on stdin to token ids", OPT_TOKENIZE },
    { "detokenize", "", 0, NULL, "convert token ids on stdin, one list per line, to JSON strings", OPT_DETOKENIZE },
    { "jsonl", "", 0, NULL, "with --tokenize: one JSON string per input line, one JSON array per output line", OPT_JSONL },
    { "no-bos", "", 0, NULL, "with --tokenize: add neither BOS nor EOS; with --perplexity: no BOS", OPT_NO_BOS },
    { "no-special", "", 0, NULL, "with --tokenize and --perplexity: treat special tokens as text; with --detokenize: omit them", OPT_NO_SPECIAL },
    { "clean-spaces", "", 0, NULL, "with --detokenize: drop spaces before punctuation and contractions", OPT_CLEAN_SPACES },
    { "override-kv", "", 0, "KEY=TYPE:VALUE", "replace a metadata value (str, int, float, bool; KEY=null removes it)", OPT_OVERRIDE_KV },
    { "i2s-flavor", "", 0, "LAYOUT", "set the layout of I2_S tensors instead of detecting it by size: microsoft, bitnet32f16, split32 or qk256", OPT_I2S_FLAVOR },
    { "parity", "", 0, "DIR", "compare logits for DIR/tokens.txt with DIR/logits.f32 and print the result as JSON", OPT_PARITY },
    { "receipt", "", 0, "FILE", "with --parity: also write the kernels, calls and time of each kind of step to FILE, as JSON", OPT_RECEIPT },
    { "logits", "", 0, "NAME", "with --parity: compare with the logits in NAME, a path or a file of DIR, instead of logits.f32", OPT_LOGITS },
    { "max-kl", "", 0, "F", "with --parity: maximum mean KL divergence to pass (default 0.002)", OPT_MAX_KL },
    { "nextn", "", 0, "K", "with --parity: compare the logits of the next-token block K (0, 1, ...) of the model with DIR/mtp.f32, DIR/mtp1.f32, ...", OPT_NEXTN },
    { "perplexity", "", 0, "FILE", "print the perplexity of a text (- for stdin); -c sets the window (default 512)", OPT_PERPLEXITY },
    { "stride", "", 0, "N", "with --perplexity: tokens between window starts (default half the window)", OPT_STRIDE },
    { "kl-save", "", 0, "FILE", "with --perplexity: save the distributions of all scored tokens to FILE", OPT_KL_SAVE },
    { "kl-base", "", 0, "FILE", "with --perplexity: compare with the distributions saved in FILE by --kl-save", OPT_KL_BASE },
    { "calibrate-quality", "", 0, "FILE", "measure with a text (- for stdin) what each --quality does to this model, and use that from now on", OPT_CALIBRATE_QUALITY },
    { "exact", "", 0, NULL, "use float activations and an f32 KV cache, to test only the weights and the graph", OPT_EXACT },
    /* clang-format on */
};

const QSFCli run_cli = {
    .program = "qsf-run",
    .usage =
        "Usage: qsf-run [options] MODEL\n"
        "       qsf-run --perplexity FILE [--kl-save FILE | --kl-base FILE] MODEL\n"
        "       qsf-run --calibrate-quality FILE MODEL\n"
        "       qsf-run --parity DIR [--nextn K] [--logits NAME] [--receipt FILE] [MODEL]\n"
        "       qsf-run --render FILE.jinja [--now TIME]\n"
        "       qsf-run --match {--grammar FILE | --json-schema FILE | --regex RE | --only RE} --jsonl\n",
    .summary = "Answer one prompt with a model that may be larger than its RAM budget. The answer goes to\n"
               "stdout, everything else to stderr. MODEL is a .gguf or .qsf file, a Hugging Face\n"
               "directory with safetensors weights, the name of a model in the caches of Ollama, LM Studio,\n"
               "llama.cpp or Hugging Face, \"guide\", the bundled model, or hf:OWNER/NAME[:FILE-OR-TYPE],\n"
               "which is downloaded.",
    .options = options,
    .n_options = sizeof options / sizeof *options,
    .operands = "guide the built-in guide|@model",
    .epilogue =
        "SIZE is 200 (MB), 200M, 1.5G, 25% (of available memory) or auto.\n"
        "Exit status: 0 success, 1 runtime error, 2 usage error, 3 bad model or file, 4 RAM budget cannot "
        "be met,\n"
        "5 context full, 6 cut short by --max-tokens (--fail-on-length), 130 interrupted, 143 terminated.\n",
};

static int set_mode(RunOptions *o, RunMode mode, char *err, size_t cap) {
    if (o->mode_set && o->mode != mode) {
        snprintf(err, cap,
                 "use only one of --bench, --parity, --perplexity, --calibrate-quality, --tokenize, "
                 "--detokenize, --inspect, --plan, --show-prompt, --render, --match, --interactive");
        return QSF_EXIT_USAGE;
    }
    o->mode = mode;
    o->mode_set = true;
    return QSF_EXIT_OK;
}

static int add_to(const char **list, size_t *n, const char *value, char *err, size_t cap) {
    if (*n == RUN_MAX_LIST) {
        snprintf(err, cap, "given more than %d times", RUN_MAX_LIST);
        return QSF_EXIT_USAGE;
    }
    list[(*n)++] = value;
    return QSF_EXIT_OK;
}

static int add_files(RunOptions *o, const char *value, char *err, size_t cap) {
    char why[500] = "";
    QSFGlob g;
    bool ok = qsf_glob_files(&g, value, why, sizeof why);
    for (size_t i = 0; ok && i < g.n; i++) {
        ok = o->n_files < RUN_MAX_LIST;
        if (!ok) break;
        o->files[o->n_files++] = g.paths[i];
        g.paths[i] = NULL;
    }
    if (!ok && !*why) (void)qsf_text_snprintf(why, sizeof why, "more than %d files", RUN_MAX_LIST);
    if (!ok) (void)snprintf(err, cap, "--file: %s", why);
    qsf_glob_free(&g);
    return ok ? QSF_EXIT_OK : QSF_EXIT_USAGE;
}

void run_options_free(RunOptions *o) {
    for (; o->n_files > 0; o->n_files--) free(o->files[o->n_files - 1]);
}

/* Is chosen like a metadata value (src/file/i2s.h). */
static int add_flavor(RunOptions *o, const char *value, char *err, size_t cap) {
    (void)snprintf(o->i2s_flavor, sizeof o->i2s_flavor, QSF_I2S_KEY "=str:%s", value);
    return add_to(o->overrides, &o->n_overrides, o->i2s_flavor, err, cap);
}

static int parse_top_logprobs(RunOptions *o, const char *value, char *err, size_t cap) {
    uint64_t n;
    if (!qsf_u64_parse(value, &n) || n >= QSF_WHY_TOKENS) {
        snprintf(err, cap, "takes a whole number from 0 to %u, not '%.40s'", QSF_WHY_TOKENS - 1, value);
        return QSF_EXIT_USAGE;
    }
    o->top_logprobs = (uint32_t)n + 1;
    return QSF_EXIT_OK;
}

static int parse_nextn(RunOptions *o, const char *value, char *err, size_t cap) {
    char *end;
    o->nextn = strtol(value, &end, 10);
    if (*value != '\0' && *end == '\0' && o->nextn >= 0 && o->nextn < (long)QSF_MAX_LAYERS) return 0;
    snprintf(err, cap, "--nextn: expected the number of a block, 0, 1, ..., got '%s'", value);
    return QSF_EXIT_USAGE;
}

static int parse_max_kl(RunOptions *o, const char *value, char *err, size_t cap) {
    char *end;
    o->max_kl = strtod(value, &end);
    if (end != value && !*end && isfinite(o->max_kl) && o->max_kl >= 0) return QSF_EXIT_OK;
    snprintf(err, cap, "--max-kl: \"%s\" is not a number of 0 or more", value);
    return QSF_EXIT_USAGE;
}

/* A value that an empty text cannot be: what, as "file name". */
static int set_text(const char **to, const char *option, const char *what, const char *value, char *err,
                    size_t cap) {
    *to = value;
    if (*value) return QSF_EXIT_OK;
    snprintf(err, cap, "--%s: the %s is empty", option, what);
    return QSF_EXIT_USAGE;
}

static int on_option(void *arg, int id, const char *value, char *err, size_t cap) {
    RunOptions *o = arg;
    switch (id) {
    case OPT_PROMPT: o->prompt = value + qsf_utf8_bom(value, strlen(value)); return 0;
    case OPT_FILE: return add_files(o, value, err, cap);
    case OPT_PROMPT_CACHE: return set_text(&o->prompt_cache, "prompt-cache", "file name", value, err, cap);
    case OPT_MODEL: o->model = value; return 0;
    case OPT_MODEL_DIR: return add_to(o->dirs, &o->n_dirs, value, err, cap);
    case OPT_SYSTEM: o->system = value + qsf_utf8_bom(value, strlen(value)); return 0;
    case OPT_SYSTEM_FILE: o->system_file = value; return 0;
    case OPT_STOP:
        if (*value) return add_to(o->stop, &o->n_stop, value, err, cap);
        snprintf(err, cap, "--stop: the text is empty");
        return QSF_EXIT_USAGE;
    case OPT_JSON: o->json = true; return 0;
    case OPT_OUTPUT: o->output = value; return 0;
    case OPT_QUIET: run_set_quiet(true); return 0;
    case OPT_LOG_FILE: o->log_file = value; return 0;
    case OPT_VERBOSE: o->verbose = true; return 0;
    case OPT_STATS: o->stats = true; return 0;
    case OPT_TOP_LOGPROBS: return parse_top_logprobs(o, value, err, cap);
    case OPT_FAIL_ON_LENGTH: o->fail_on_length = true; return 0;
    case OPT_INTERACTIVE: return set_mode(o, RUN_INTERACTIVE, err, cap);
    case OPT_BENCH: return set_mode(o, RUN_BENCH, err, cap);
    case OPT_REPEATS: o->repeats = value; return 0;
    case OPT_BENCH_TEXT: o->bench_text = value; return 0;
    case OPT_SVG: return set_text(&o->svg, "svg", "file name", value, err, cap);
    case OPT_INSPECT: return set_mode(o, RUN_INSPECT, err, cap);
    case OPT_PLAN: return set_mode(o, RUN_PLAN, err, cap);
    case OPT_SHOW_PROMPT: return set_mode(o, RUN_SHOW_PROMPT, err, cap);
    case OPT_RENDER: o->render = value; return set_mode(o, RUN_RENDER, err, cap);
    case OPT_NOW: o->now = value; return 0;
    case OPT_MATCH: return set_mode(o, RUN_MATCH, err, cap);
    case OPT_TOKENIZE: return set_mode(o, RUN_TOKENIZE, err, cap);
    case OPT_DETOKENIZE: return set_mode(o, RUN_DETOKENIZE, err, cap);
    case OPT_JSONL: o->jsonl = true; return 0;
    case OPT_NO_BOS: o->no_bos = true; return 0;
    case OPT_NO_SPECIAL: o->no_special = true; return 0;
    case OPT_CLEAN_SPACES: o->clean_spaces = true; return 0;
    case OPT_OFFLINE: o->offline = true; return 0;
    case OPT_I2S_FLAVOR: return add_flavor(o, value, err, cap);
    case OPT_OVERRIDE_KV: return add_to(o->overrides, &o->n_overrides, value, err, cap);
    case OPT_PARITY: o->parity_dir = value; return set_mode(o, RUN_PARITY, err, cap);
    case OPT_RECEIPT: o->receipt = value; return 0;
    case OPT_LOGITS: return set_text(&o->logits, "logits", "name", value, err, cap);
    case OPT_PERPLEXITY: o->perplexity = value; return set_mode(o, RUN_PERPLEXITY, err, cap);
    case OPT_STRIDE: o->stride = value; return 0;
    case OPT_KL_SAVE: o->kl_save = value; return 0;
    case OPT_KL_BASE: o->kl_base = value; return 0;
    case OPT_CALIBRATE_QUALITY:
        o->calibrate_quality = value;
        return set_mode(o, RUN_CALIBRATE_QUALITY, err, cap);
    case OPT_MAX_KL: return parse_max_kl(o, value, err, cap);
    case OPT_NEXTN: return parse_nextn(o, value, err, cap);
    case OPT_EXACT: o->exact = true; return 0;
    default: return QSF_EXIT_USAGE;
    }
}

static bool evaluates(RunMode m) {
    return m == RUN_GENERATE || m == RUN_BENCH || m == RUN_PERPLEXITY || m == RUN_PARITY ||
           m == RUN_CALIBRATE_QUALITY || m == RUN_INTERACTIVE;
}

/* Rejects options that have no meaning in the selected mode: they are never ignored. */
static const char *wrong_combination(const RunOptions *o) {
    const struct {
        bool bad;
        const char *what;
    } rules[] = {
        /* clang-format off */
        { o->jsonl && o->mode != RUN_TOKENIZE && o->mode != RUN_MATCH, "--jsonl requires --tokenize or --match" },
        { o->mode == RUN_MATCH && !o->jsonl, "--match requires --jsonl" },
        { o->mode == RUN_MATCH && o->settings.params.grammar_kind == QSF_GRAMMAR_NONE, "--match requires --grammar, --json-schema, --regex or --only" },
        { o->no_bos && o->mode != RUN_TOKENIZE && o->mode != RUN_PERPLEXITY, "--no-bos requires --tokenize or --perplexity" },
        { o->no_special && o->mode != RUN_TOKENIZE && o->mode != RUN_DETOKENIZE && o->mode != RUN_PERPLEXITY, "--no-special requires --tokenize, --detokenize or --perplexity" },
        { o->clean_spaces && o->mode != RUN_DETOKENIZE, "--clean-spaces requires --detokenize" },
        { o->repeats && o->mode != RUN_BENCH, "--repeats requires --bench" },
        { o->bench_text && o->mode != RUN_BENCH, "--bench-text requires --bench" },
        { o->bench_text && (o->prompt || o->svg), "--bench-text works with neither -p nor --svg: the text is the prompt" },
        { o->svg && o->mode != RUN_PLAN && o->mode != RUN_BENCH, "--svg requires --plan or --bench" },
        { o->svg && strcmp(o->svg, "-") == 0 && o->json, "--svg - and --json cannot be combined: both write to stdout" },
        { o->receipt && o->mode != RUN_PARITY, "--receipt requires --parity" },
        { o->logits && o->mode != RUN_PARITY, "--logits requires --parity" },
        { o->max_kl >= 0 && o->mode != RUN_PARITY, "--max-kl requires --parity" },
        { o->nextn >= 0 && o->mode != RUN_PARITY, "--nextn requires --parity" },
        { (o->stride || o->kl_save || o->kl_base) && o->mode != RUN_PERPLEXITY, "--stride, --kl-save and --kl-base require --perplexity" },
        { o->kl_save && o->kl_base, "--kl-save and --kl-base cannot be combined: save with one model, compare with another" },
        { o->fail_on_length && o->mode != RUN_GENERATE, "--fail-on-length requires a prompt" },
        { o->top_logprobs > 0 && (o->mode != RUN_GENERATE || !o->json), "--top-logprobs requires a prompt and --json" },
        { o->stats && o->mode != RUN_GENERATE && o->mode != RUN_BENCH, "--stats requires a prompt or --bench" },
        { o->prompt_cache && o->mode != RUN_GENERATE, "--prompt-cache requires a prompt" },
        { o->n_files && o->mode != RUN_GENERATE && o->mode != RUN_SHOW_PROMPT && o->mode != RUN_INTERACTIVE, "--file requires a prompt" },
        { o->n_stop && o->mode != RUN_GENERATE && o->mode != RUN_INTERACTIVE, "--stop requires a prompt" },
        { o->settings.show_thinking && o->mode != RUN_GENERATE && o->mode != RUN_INTERACTIVE, "--show-thinking requires a prompt" },
        { qsf_setting_user_set(&o->settings, qsf_setting_find("prefill-ahead")) && o->mode != RUN_INTERACTIVE, "--prefill-ahead requires --interactive: nothing is typed here" },
        { o->now && o->mode != RUN_RENDER, "--now requires --render" },
        { o->system && o->mode != RUN_GENERATE && o->mode != RUN_SHOW_PROMPT && o->mode != RUN_INTERACTIVE, "--system requires a prompt" },
        { o->system && o->system_file, "--system cannot be combined with --system-file" },
        { o->system_file && o->mode != RUN_GENERATE && o->mode != RUN_SHOW_PROMPT && o->mode != RUN_INTERACTIVE, "--system-file requires a prompt" },
        { o->prompt && o->mode != RUN_GENERATE && o->mode != RUN_SHOW_PROMPT && o->mode != RUN_BENCH, "--prompt cannot be used with --parity, --perplexity, --calibrate-quality, --tokenize, --detokenize, --inspect, --plan, --render, --match or --interactive" },
        { o->exact && (o->mode == RUN_TOKENIZE || o->mode == RUN_DETOKENIZE || o->mode == RUN_SHOW_PROMPT || o->mode == RUN_RENDER || o->mode == RUN_MATCH || o->mode == RUN_INTERACTIVE), "--exact needs a mode that evaluates the model" },
        { o->json && (o->mode == RUN_TOKENIZE || o->mode == RUN_DETOKENIZE || o->mode == RUN_RENDER || o->mode == RUN_MATCH || o->mode == RUN_INTERACTIVE), "--json requires a prompt, --show-prompt, --bench, --perplexity, --calibrate-quality, --inspect or --plan (for --tokenize use --jsonl)" },
        { o->mode == RUN_CALIBRATE_QUALITY && o->settings.params.quality < 1, "--calibrate-quality measures all qualities: it cannot be combined with --quality" },
        { o->settings.trace_experts[0] && !evaluates(o->mode), "--trace-experts needs a mode that evaluates the model" },
        { o->mode == RUN_CALIBRATE_QUALITY && (o->settings.params.expert_top > 0 || o->settings.params.expert_drop > 0), "--calibrate-quality measures layers with all experts: it cannot be combined with --expert-top or --expert-drop" },
        { o->n_overrides && (o->mode == RUN_RENDER || o->mode == RUN_MATCH), "--override-kv needs a MODEL, and --render and --match take none" },
        /* clang-format on */
    };
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        if (rules[i].bad) return rules[i].what;
    return NULL;
}

static int check_combination(const RunOptions *o) {
    const char *wrong = wrong_combination(o);
    if (wrong) qsf_cli_error(&run_cli, "%s", wrong);
    return wrong ? QSF_EXIT_USAGE : QSF_EXIT_OK;
}

int run_parse(RunOptions *o, int argc, char **argv, QSFCliResult *res) {
    char err[1024];
    *o = (RunOptions){ .max_kl = -1, .nextn = -1 };
    qsf_settings_default(&o->settings);
    o->settings.params.max_tokens = -1; /* not given: each mode has its own default */
    int rc = run_config_begin(o, argc, argv, on_option);
    res->done = rc == 0 && o->config.done;
    if (rc || res->done) return rc;
    rc = qsf_cli_parse(&run_cli, argc, argv, &o->settings, on_option, o, res, err, sizeof err);
    if (rc) qsf_cli_error(&run_cli, "%s", err);
    if (!rc) rc = check_combination(o);
    return rc ? rc : run_config_options(o, on_option, wrong_combination);
}

/* SPDX-License-Identifier: GPL-3.0-or-later */
/* qsf-convert: converts model files and directories to QSF files. Options and dispatch only. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "qsf_fetch.h"
#include "qsf_models.h"
#include "src/cli/signals.h"
#include "src/convert/convert.h"

enum {
    OPT_TYPE,
    OPT_RULE,
    OPT_TARGET,
    OPT_LAYOUT,
    OPT_LORA,
    OPT_EXPERTS,
    OPT_BY_USE,
    OPT_COMPRESS,
    OPT_CALIBRATION,
    OPT_BUDGET,
    OPT_THREADS,
    OPT_OFFLINE,
    OPT_DRY,
    OPT_FORCE,
    OPT_I2S_FLAVOR,
    OPT_VERIFY,
    OPT_INSPECT,
    OPT_JSON,
    OPT_QUIET
};

static const QSFCliOption options[] = {
    /* clang-format off */
    { "quant-type", "", 'q', "TYPE", "set the type of the matrices: keep, mixed, 2bit-book, 3bit-book, 4bit-book, 8bit, ternary, q4_k, f16, ... (default keep for files, mixed for directories)", OPT_TYPE },
    { "rule", "", 0, "RULE", "find scales by search (least squares, default) or minmax (ends of the range)", OPT_RULE },
    { "target-size", "", 0, "MB", "limit the file to this size: choose the type of each matrix for the least error", OPT_TARGET },
    { "layout", "", 0, "LAYOUT", "set the layout of matrices: x16 (rows interleaved by 16, as the kernels read them, default) or rows", OPT_LAYOUT },
    { "experts", "", 0, "LAYOUT", "store the matrices of each expert one after the other, which is one read for an expert (together, default), or those of all experts as one tensor, which older versions of qsf-run read, too (stacked)", OPT_EXPERTS },
    { "experts-by-use", "", 0, "FILE", "store experts that were seldom used with fewer bits, by the choices in FILE, which qsf-run has traced; learned = by what was kept of earlier answers", OPT_BY_USE },
    { "lora", "", 0, "FILE[:SCALE]", "merge the LoRA adapter of FILE, a GGUF file or a PEFT directory, SCALE times (default 1); may be repeated", OPT_LORA },
    { "compress", "", 0, "HOW", "compress layers: none, lz4, lz4hc, zstd, or auto (default): LZ4 for layers of up to 32 MiB if it saves 3 % or more", OPT_COMPRESS },
    { "calibration", "", 0, "FILE", "run the model over this text (or chats, as JSON Lines) to weight the quantization errors and to score the layers", OPT_CALIBRATION },
    { "ram-budget", "", 0, "SIZE", "limit the memory of the calibration run (default 900M)", OPT_BUDGET },
    { "threads", "", 't', "N", "set the number of threads (default one per CPU)", OPT_THREADS },
    { "i2s-flavor", "", 0, "LAYOUT", "set the layout of I2_S tensors instead of detecting it by size: microsoft, bitnet32f16, split32 or qk256", OPT_I2S_FLAVOR },
    { "offline", "", 0, NULL, "download nothing: an INPUT like hf:OWNER/NAME has to be on this machine", OPT_OFFLINE },
    { "dry-run", "", 0, NULL, "print the type each tensor would get, but write nothing", OPT_DRY },
    { "force", "", 0, NULL, "convert a model that qsf-run cannot open, with a warning", OPT_FORCE },
    { "verify", "", 0, NULL, "verify a .qsf file (- for stdin): every checksum, bound and tensor, and whether qsf-run can open it", OPT_VERIFY },
    { "inspect", "", 0, NULL, "print the contents of a .qsf file, section by section", OPT_INSPECT },
    { "json", "", 0, NULL, "print JSON instead of tables", OPT_JSON },
    { "quiet", "", 0, NULL, "print neither progress nor report", OPT_QUIET },
    /* clang-format on */
};

/* The types are those that this build has. */
static const char *option_values(const char *option) {
    static char types[1024];
    if (strcmp(option, "quant-type") != 0) return NULL;
    qsf_pack_type_words("|", types, sizeof types);
    return types;
}

const QSFCli convert_cli = {
    .program = "qsf-convert",
    .usage = "Usage: qsf-convert [options] INPUT OUTPUT.qsf\n"
             "       qsf-convert [--lora FILE] [--i2s-flavor LAYOUT] [--dry-run] [--force] [--json] INPUT\n"
             "                   OUTPUT.gguf\n"
             "       qsf-convert --verify FILE.qsf\n"
             "       qsf-convert --inspect [--json] FILE.qsf\n",
    .summary =
        "Converts a GGUF file, a Hugging Face directory with safetensors weights, or a QSF file to QSF, or "
        "to GGUF, where only --lora changes weights.",
    .options = options,
    .n_options = sizeof options / sizeof *options,
    .no_settings = true,
    .operands = "@model",
    .values = option_values,
    .epilogue =
        "Exit status: 0 done, 1 runtime error, 2 usage, 3 model or file bad, 4 RAM budget cannot be met, "
        "130 interrupted, 143 terminated.\n"
        "The output appears only when it is complete.\n",
};

static int set_mode(ConvertOptions *o, ConvertMode mode, char *err, size_t cap) {
    if (o->mode != CONVERT_FILE && o->mode != mode) {
        snprintf(err, cap, "--verify and --inspect cannot be combined");
        return QSF_EXIT_USAGE;
    }
    o->mode = mode;
    return QSF_EXIT_OK;
}

static int on_option(void *arg, int id, const char *value, char *err, size_t cap) {
    ConvertOptions *o = arg;
    switch (id) {
    case OPT_TYPE: o->type = value; return 0;
    case OPT_RULE: o->rule = value; return 0;
    case OPT_TARGET: o->target = value; return 0;
    case OPT_LORA:
        if (strcmp(value, "off") == 0) { /* which is a setting of the other programs; ./off is a file */
            snprintf(err, cap, "--lora: expected FILE[:SCALE], got 'off'");
            return QSF_E_USAGE;
        }
        return qsf_setting_add(&o->lora, qsf_setting_find("lora"), value, err, cap);
    case OPT_LAYOUT: o->layout = value; return 0;
    case OPT_EXPERTS: o->experts = value; return 0;
    case OPT_BY_USE: o->by_use = value; return 0;
    case OPT_COMPRESS: o->compress = value; return 0;
    case OPT_CALIBRATION: o->calibration = value; return 0;
    case OPT_BUDGET: o->budget = value; return 0;
    case OPT_THREADS: o->threads = value; return 0;
    case OPT_I2S_FLAVOR: o->i2s_flavor = value; return 0;
    case OPT_OFFLINE: o->offline = true; return 0;
    case OPT_DRY: o->dry = true; return 0;
    case OPT_FORCE: o->force = true; return 0;
    case OPT_VERIFY: return set_mode(o, CONVERT_VERIFY, err, cap);
    case OPT_INSPECT: return set_mode(o, CONVERT_INSPECT, err, cap);
    case OPT_JSON: o->json = true; return 0;
    case OPT_QUIET: o->quiet = true; return 0;
    default: return QSF_EXIT_USAGE;
    }
}

static bool is_gguf(const char *path) {
    const size_t n = strlen(path), suffix = strlen(".gguf");
    return n > suffix && strcmp(path + n - suffix, ".gguf") == 0;
}

/* Assigns the files by position. An option that has no effect in this mode is an error, never ignored. */
static int check(ConvertOptions *o, const QSFCliResult *r) {
    const bool convert = o->mode == CONVERT_FILE;
    const int files = convert ? 2 : 1;
    if (!convert && (o->type || o->rule || o->target || o->layout || o->experts || o->by_use || o->compress ||
                     o->calibration || o->budget || o->threads || o->i2s_flavor || o->dry || o->force ||
                     o->lora.lora[0])) {
        qsf_cli_error(&convert_cli, "--verify and --inspect do not accept conversion options");
        return QSF_EXIT_USAGE;
    }
    if (o->json && o->quiet) {
        qsf_cli_error(&convert_cli, "--json and --quiet cannot be combined");
        return QSF_EXIT_USAGE;
    }
    if (r->n_positional != files) {
        qsf_cli_error(&convert_cli,
                      convert ? "expected INPUT and OUTPUT, got %d argument%s (see --help)"
                              : "expected one FILE, got %d argument%s (see --help)",
                      r->n_positional, r->n_positional == 1 ? "" : "s");
        return QSF_EXIT_USAGE;
    }
    o->input = r->positional[0];
    o->output = convert ? r->positional[1] : NULL;
    if (!convert || !is_gguf(o->output)) return QSF_EXIT_OK;
    o->mode = CONVERT_GGUF;
    if (!(o->type || o->rule || o->target || o->layout || o->experts || o->by_use || o->compress ||
          o->calibration || o->budget || o->threads))
        return QSF_EXIT_OK;
    qsf_cli_error(
        &convert_cli,
        "%s: weights are not changed in a GGUF file: --quant-type, --rule, "
        "--target-size, --layout, --experts, --experts-by-use, --compress, --calibration, --ram-budget and "
        "--threads are for QSF files",
        o->output);
    return QSF_EXIT_USAGE;
}

/* Downloads the input, if that is what its name means. path (owned by the caller) is where it is then. */
static int fetch_input(ConvertOptions *o, char **path) {
    char err[500];
    int code = QSF_EXIT_OK;
    if (!qsf_fetch_is_remote(o->input)) return code;
    *path = qsf_fetch(o->input, o->offline, o->quiet || o->json, 0, &code, err, sizeof err);
    if (!*path && *err) qsf_cli_error(&convert_cli, "%s", err);
    if (*path) o->input = *path;
    return code;
}

/* Finds the file of an input that is the name of a model in a cache of another program. path is owned by the
 * caller. */
static int resolve_input(ConvertOptions *o, char **path) {
    char hint[400];
    if (!o->input || *path || strcmp(o->input, "-") == 0 || access(o->input, F_OK) == 0) return QSF_EXIT_OK;
    char *found = qsf_model_resolve(o->input, NULL, hint, sizeof hint);
    *path = found ? qsf_model_file(found) : NULL;
    free(found);
    if (*hint) qsf_cli_error(&convert_cli, "%s", hint);
    if (*path) o->input = *path;
    return *hint ? QSF_EXIT_MODEL : QSF_EXIT_OK;
}

int main(int argc, char **argv) {
    static int (*const modes[])(const ConvertOptions *) = { convert_qsf, convert_verify, convert_inspect,
                                                            convert_gguf };
    ConvertOptions o = { 0 };
    QSFCliResult res;
    char err[1024], *fetched = NULL;
    if (qsf_cli_open_std_fds(convert_cli.program)) return QSF_EXIT_RUNTIME;
    qsf_signals_init();
    int rc = qsf_cli_parse(&convert_cli, argc, argv, NULL, on_option, &o, &res, err, sizeof err);
    if (rc)
        qsf_cli_error(&convert_cli, "%s", err);
    else if (res.done)
        rc = qsf_cli_printed(convert_cli.program);
    else if (!(rc = check(&o, &res)) && !(rc = fetch_input(&o, &fetched)) &&
             !(rc = resolve_input(&o, &fetched)))
        rc = modes[o.mode](&o);
    free(fetched);
    return rc;
}

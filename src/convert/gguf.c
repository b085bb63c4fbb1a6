/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Writes a model as GGUF: progress on stderr, a line or JSON on stdout. */
#include <stdlib.h>
#include <string.h>

#include "qsf_text.h"
#include "src/base/json.h"
#include "src/cli/signals.h"
#include "src/convert/convert.h"
#include "src/convert/pack/gguf_out.h"

typedef unsigned long long Big;

static void show(void *arg, const char *tensor, uint64_t done, uint64_t all) {
    convert_progress_show(arg, all > 0 ? (double)done / (double)all : 1, tensor);
}

static void put_report(QsfStrbuf *b, const ConvertOptions *o, const QsfGgufReport *r) {
    if (o->json) {
        qsf_strbuf_adds(b, "{\"output\": ");
        qsf_json_put_string(b, o->output, strlen(o->output));
        qsf_strbuf_adds(b, ", ");
        convert_put_merged(b, o);
        qsf_strbuf_addf(b, "\"bytes\": %llu, \"tensors\": %llu, \"metadata\": %llu}\n", (Big)r->bytes,
                        (Big)r->n_tensors, (Big)r->n_pairs);
        return;
    }
    convert_put_merged(b, o);
    char *path = qsf_clean_dup(o->output, strlen(o->output), true);
    qsf_strbuf_addf(b, "%s: %.1f MB, %llu tensors, %llu metadata pairs%s\n", path ? path : "",
                    (double)r->bytes / 1048576, (Big)r->n_tensors, (Big)r->n_pairs,
                    o->dry ? "; nothing was written" : "");
    free(path);
}

static int write_file(const ConvertOptions *o, const QsfSource *s) {
    ConvertProgress progress;
    const QsfGgufOptions g = {
        .dry = o->dry, .cancel = &qsf_signal_cancel, .progress = show, .progress_arg = &progress
    };
    QsfGgufReport report;
    QsfStrbuf b = QSF_STRBUF_INIT;
    QsfErr err = { 0 };
    convert_progress_begin(&progress, o);
    int rc = qsf_write_gguf(s, o->output, &g, &report, &err);
    convert_progress_end(&progress);
    if (rc) return convert_fail(&err);
    if (report.yarn_rounded)
        qsf_cli_error(
            &convert_cli,
            "warning: %s: GGUF cannot record that YaRN does not round (truncate: false in rope_scaling), so "
            "programs that read this file compute other frequencies than with %s",
            o->output, o->input);
    if (o->quiet) return QSF_EXIT_OK;
    put_report(&b, o, &report);
    return convert_print(&b);
}

static int convert(const ConvertOptions *o, QsfSource *s) {
    if (!qsf_source_n_tensors(s)) {
        qsf_cli_error(&convert_cli, "%s: is %s and has no weights", o->input, qsf_source_format(s));
        return QSF_EXIT_MODEL;
    }
    int rc = convert_check_input(o, s);
    return rc ? rc : write_file(o, s);
}

int convert_gguf(const ConvertOptions *o) { return convert_with_source(o, convert); }

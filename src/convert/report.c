/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What a conversion says: the progress line (percentage, estimated time left, current tensor) on a terminal,
 * and the report (layer scores and one row per tensor) as tables or as one JSON object. */
#include "src/convert/convert.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "qsf_text.h"

#include "src/base/clock.h"
#include "src/base/json.h"
#include "src/base/utf8.h"
#include "src/file/dtype.h"

/* ---- progress ---- */

#define PROGRESS_NS 200000000u

void convert_progress_begin(ConvertProgress *p, const ConvertOptions *o) {
    uint64_t now = qsf_now_ns();
    *p = (ConvertProgress){ .on = !o->quiet && isatty(STDERR_FILENO), .started = now, .shown = now };
}

void convert_progress_show(ConvertProgress *p, double fraction, const char *what) {
    uint64_t now = qsf_now_ns();
    if (!p->on || now - p->shown < PROGRESS_NS) return;
    p->shown = now;
    double left = fraction > 0 ? (double)(now - p->started) * 1e-9 * (1 - fraction) / fraction : 0;
    char name[48]; /* a tensor's name may be anything */
    snprintf(name, sizeof name, "%s", what);
    name[qsf_utf8_clean(name, strlen(name), false)] = '\0';
    fprintf(stderr, "\r\x1b[K%5.1f %%  %d:%02d left  %s", 100 * fraction, (int)(left / 60),
            (int)fmod(left, 60), name);
}

void convert_progress_end(const ConvertProgress *p) {
    if (p->on && p->shown > p->started) fputs("\r\x1b[K", stderr);
}

/* ---- report ---- */

const char *convert_code_name(uint8_t code, char *buf, size_t cap) {
    const QsfQuantFormat *f = qsf_quant_format_of(code);
    uint32_t dtype;
    if (code < QSFF_GGML && f != NULL) return f->name;
    if (code == QSFF_MIXED) return "mixed";
    const QsfDtype *d = qsf_code_dtype(code, 0, &dtype) ? qsf_dtype(dtype) : NULL;
    if (d == NULL) snprintf(buf, cap, "code %u", code);
    return d != NULL ? d->name : buf;
}

static double bits_of(const QsfItem *i) { return 8.0 * (double)i->bytes / ((double)i->rows * i->cols); }
static bool is_new(const QsfItem *i) { return i->code != i->keep; }

/* ---- table */

static void put_row(QsfStrbuf *b, const QsfItem *i, bool dry) {
    char from[16], to[16], outliers[24] = "", name[QSF_ITEM_NAME];
    (void)qsf_item_name(i, name);
    name[qsf_utf8_clean(name, strlen(name), false)] = '\0';
    qsf_strbuf_addf(b, "%-28s %-9s %-9s %6.2f ", name, convert_code_name(i->keep, from, sizeof from),
                    convert_code_name(i->code, to, sizeof to), bits_of(i));
    if (is_new(i) && !dry) {
        if (i->outliers)
            snprintf(outliers, sizeof outliers, "%.3f %%",
                     100.0 * (double)i->outliers / ((double)i->rows * i->cols));
        qsf_strbuf_addf(b, "%7.2f %9.6f %9s ", qsf_stats_snr(&i->stats), qsf_stats_cosine(&i->stats),
                        outliers);
    } else {
        qsf_strbuf_addf(b, "%7s %9s %9s ", "", "", "");
    }
    qsf_strbuf_adds(b, qsf_keep_reason_text(i->why));
    if (i->n_seldom > 0)
        qsf_strbuf_addf(b, "%s%u of %u seldom used: %s", i->why != QSF_WHY_NONE ? "; " : "", i->n_seldom,
                        i->experts, convert_code_name(i->seldom_code, to, sizeof to));
    qsf_strbuf_addc(b, '\n');
    while (b->len > 1 && b->data[b->len - 2] == ' ') b->data[--b->len - 1] = '\n';
}

static void put_layers(QsfStrbuf *b, const QsfCalibration *c) {
    qsf_strbuf_addf(b,
                    "calibrated with %llu tokens; layer skipping measured over %llu\n\n%-8s %10s %12s %12s\n",
                    (unsigned long long)c->tokens, (unsigned long long)c->skip_tokens, "layer", "cosine",
                    "skip nats", "importance");
    for (uint32_t l = 0; l < c->n_layers; l++)
        qsf_strbuf_addf(b, "%-8u %10.6f %12.6f %12.6f\n", l, (double)c->cosine[l], (double)c->skip_kl[l],
                        (double)qsf_calibration_importance(c, l));
    qsf_strbuf_addc(b, '\n');
}

/* A dry run does not try compression, so its size is an upper limit. */
static const char *at_most(const ConvertOptions *o) {
    return o->dry && (o->compress == NULL || strcmp(o->compress, "none")) ? "at most " : "";
}

/* Nothing is said about hundreds of tensors that stayed as they were, unless -q asked for another type: then
 * the rows tell why. */
static void put_rows(QsfStrbuf *b, const QsfItems *items, bool dry, bool asked) {
    bool any = dry || asked;
    for (uint32_t k = 0; k < items->n && !any; k++)
        any = is_new(&items->item[k]) || items->item[k].n_seldom > 0;
    if (!any) return;
    qsf_strbuf_addf(b, "%-28s %-9s %-9s %6s %7s %9s %9s %s\n", "tensor", "was", "is", "bits", "dB", "cosine",
                    "outliers", "why");
    for (uint32_t k = 0; k < items->n; k++) put_row(b, &items->item[k], dry);
    qsf_strbuf_addc(b, '\n');
}

static void put_table(QsfStrbuf *b, const QsfSource *s, const QsfPackReport *r, const QsfCalibration *c,
                      const ConvertOptions *o) {
    double weights = 0, bytes = 0;
    uint32_t changed = 0, groups = 0;
    convert_put_merged(b, o);
    if (b->len > 0) qsf_strbuf_addc(b, '\n');
    if (c != NULL) put_layers(b, c);
    put_rows(b, &r->items, o->dry, o->type != NULL);
    for (uint32_t k = 0; k < r->items.n; k++) {
        const QsfItem *i = &r->items.item[k];
        changed += is_new(i);
        groups += i->groups;
        weights += (double)i->rows * i->cols;
        bytes += (double)i->bytes;
    }
    char *out = qsf_clean_dup(o->output, strlen(o->output), true);
    if (r->n_compressed > 0)
        qsf_strbuf_addf(b, "%u of %u layers compressed: %.1f MB of %.1f MB, %.1f %% saved\n", r->n_compressed,
                        r->items.n_layers, (double)r->compressed_bytes / 1048576,
                        (double)r->whole_bytes / 1048576,
                        100 - 100 * (double)r->compressed_bytes / (double)r->whole_bytes);
    qsf_strbuf_addf(
        b,
        "%s%s: %s%.1f MB (was %.1f MB), %.3f bits per weight, %u of %u tensors requantized, %u with rows "
        "interleaved by 16\n",
        o->dry ? "not written: " : "", out ? out : "", at_most(o), (double)r->bytes / 1048576,
        (double)qsf_source_bytes(s) / 1048576, 8 * bytes / weights, changed, r->items.n, groups);
    free(out);
}

/* ---- JSON */

static void put_json_item(QsfStrbuf *b, const QsfItem *i, bool dry) {
    char from[16], to[16], name[QSF_ITEM_NAME];
    (void)qsf_item_name(i, name);
    qsf_strbuf_adds(b, "{\"name\": ");
    qsf_json_put_string(b, name, strlen(name));
    qsf_strbuf_addf(
        b,
        ", \"rows\": %u, \"columns\": %u, \"was\": \"%s\", \"is\": \"%s\", \"layout\": \"%s\", \"bytes\": "
        "%llu, \"bits\": ",
        i->rows, i->cols, convert_code_name(i->keep, from, sizeof from),
        convert_code_name(i->code, to, sizeof to), i->groups ? "x16" : "rows", (unsigned long long)i->bytes);
    qsf_json_put_real(b, bits_of(i));
    if (is_new(i) && !dry) {
        double snr = qsf_stats_snr(&i->stats);
        qsf_strbuf_adds(b, ", \"snr_db\": ");
        if (isfinite(snr))
            qsf_json_put_real(b, snr);
        else
            qsf_strbuf_adds(b, "null");
        qsf_strbuf_adds(b, ", \"cosine\": ");
        qsf_json_put_real(b, qsf_stats_cosine(&i->stats));
        if (i->weights != NULL) {
            snr = qsf_stats_heavy_snr(&i->stats);
            qsf_strbuf_adds(b, ", \"weighted_snr_db\": ");
            if (isfinite(snr))
                qsf_json_put_real(b, snr);
            else
                qsf_strbuf_adds(b, "null");
        }
        qsf_strbuf_addf(b, ", \"outliers\": %llu, \"clamped\": %llu", (unsigned long long)i->outliers,
                        (unsigned long long)i->clamped);
    }
    if (i->n_seldom > 0)
        qsf_strbuf_addf(b, ", \"seldom\": %u, \"seldom_is\": \"%s\"", i->n_seldom,
                        convert_code_name(i->seldom_code, to, sizeof to));
    qsf_strbuf_addf(b, ", \"why\": \"%s\"}", qsf_keep_reason_text(i->why));
}

static void put_json_layers(QsfStrbuf *b, const QsfCalibration *c) {
    qsf_strbuf_addf(b, "\"calibration\": {\"tokens\": %llu, \"skip_tokens\": %llu, \"layers\": [",
                    (unsigned long long)c->tokens, (unsigned long long)c->skip_tokens);
    for (uint32_t l = 0; l < c->n_layers; l++) {
        qsf_strbuf_adds(b, l ? ", {\"cosine\": " : "{\"cosine\": ");
        qsf_json_put_real(b, (double)c->cosine[l]);
        qsf_strbuf_adds(b, ", \"skip_kl\": ");
        qsf_json_put_real(b, (double)c->skip_kl[l]);
        qsf_strbuf_adds(b, ", \"importance\": ");
        qsf_json_put_real(b, (double)qsf_calibration_importance(c, l));
        qsf_strbuf_addc(b, '}');
    }
    qsf_strbuf_adds(b, "]}, ");
}

static void put_json(QsfStrbuf *b, const QsfPackReport *r, const QsfCalibration *c, const ConvertOptions *o) {
    qsf_strbuf_adds(b, "{\"output\": ");
    qsf_json_put_string(b, o->output, strlen(o->output));
    qsf_strbuf_addf(b, ", \"written\": %s, \"bytes\": %llu, ", o->dry ? "false" : "true",
                    (unsigned long long)r->bytes);
    convert_put_merged(b, o);
    if (c != NULL) put_json_layers(b, c);
    qsf_strbuf_addf(
        b, "\"compressed\": {\"layers\": %u, \"bytes\": %llu, \"whole_bytes\": %llu}, \"tensors\": [",
        r->n_compressed, (unsigned long long)r->compressed_bytes, (unsigned long long)r->whole_bytes);
    for (uint32_t k = 0; k < r->items.n; k++) {
        qsf_strbuf_adds(b, k ? ", " : "");
        put_json_item(b, &r->items.item[k], o->dry);
    }
    qsf_strbuf_adds(b, "]}\n");
}

void convert_put_report(QsfStrbuf *b, const QsfSource *s, const QsfPackReport *r, const QsfCalibration *c,
                        const ConvertOptions *o) {
    if (o->json)
        put_json(b, r, c, o);
    else
        put_table(b, s, r, c, o);
}

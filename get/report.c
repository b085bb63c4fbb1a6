/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "get/report.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "get/program.h"
#include "qsf_models.h"
#include "src/base/clock.h"
#include "src/base/json.h"

#define SHOW_NS  200000000u
#define STILL_NS 1000000000u /* when nothing has come */

void get_report_init(GetReport *r, bool json, bool quiet, bool list) {
    *r = (GetReport){ .json = json, .quiet = quiet, .list = list, .terminal = isatty(STDERR_FILENO) == 1 };
}

static void put(QsfStrbuf *b) {
    qsf_strbuf_adds(b, "}\n");
    fputs(qsf_strbuf_str(b), stdout);
    fflush(stdout);
    qsf_strbuf_free(b);
}

static QsfStrbuf event(const char *name) {
    QsfStrbuf b = QSF_STRBUF_INIT;
    qsf_strbuf_addf(&b, "{\"event\": \"%s\"", name);
    return b;
}

static void put_text(QsfStrbuf *b, const char *key, const char *text) {
    qsf_strbuf_addf(b, ", \"%s\": ", key);
    qsf_json_put_string(b, text, strlen(text));
}

/* Ends the line of progress. */
static void end_line(GetReport *r) {
    if (r->drawn) fputs("\n", stderr);
    r->drawn = false;
}

void get_report_note(GetReport *r, const char *text) {
    if (r->json) {
        QsfStrbuf b = event("note");
        put_text(&b, "message", text);
        put(&b);
    } else if (!r->quiet) {
        end_line(r);
        qsf_cli_error(&get_cli, "%s", text);
    }
}

/* "1.25 GB" or "12.5 MB". */
static const char *size_text(uint64_t bytes, char out[32]) {
    const bool big = bytes >= 1000000000u;
    snprintf(out, 32, big ? "%.2f GB" : "%.1f MB", (double)bytes / (big ? 1e9 : 1e6));
    return out;
}

static void put_choice(GetReport *r, QsfStrbuf *b, const GetChoice *m, bool chosen, const char *name,
                       const QSFModelSpeeds *speeds, uint64_t room) {
    char verdict[80], size[32];
    const double tps = qsf_model_guess(speeds, name, m->bytes, room, verdict, sizeof verdict);
    if (!r->json) {
        if (r->list || !r->quiet)
            fprintf(r->list ? stdout : stderr, "%c %10s  %-30s %s\n", chosen ? '*' : ' ',
                    size_text(m->bytes, size), verdict, name);
        return;
    }
    qsf_strbuf_addf(b, "{\"bytes\": %llu", (unsigned long long)m->bytes);
    put_text(b, "name", name);
    put_text(b, "verdict", verdict);
    if (tps > 0)
        qsf_strbuf_addf(b, ", \"tokens_per_second\": %.2f", tps);
    else
        qsf_strbuf_adds(b, ", \"tokens_per_second\": null");
    qsf_strbuf_addf(b, ", \"chosen\": %s}", chosen ? "true" : "false");
}

void get_report_choices(GetReport *r, const GetList *l, const GetChoices *c, const char *hub, uint64_t room) {
    QsfStrbuf b = event("models");
    QSFModelSpeeds speeds;
    qsf_model_speeds(hub, &speeds);
    if (r->json) qsf_strbuf_adds(&b, ", \"models\": [");
    for (size_t i = 0; i < c->n; i++) {
        const GetChoice *m = &c->items[i];
        const char *name = m->folder ? "safetensors" : l->items[m->parts[0]].path;
        if (r->json && i > 0) qsf_strbuf_adds(&b, ", ");
        put_choice(r, &b, m, i == c->chosen, name, &speeds, room);
    }
    qsf_model_speeds_free(&speeds);
    if (r->json) {
        qsf_strbuf_adds(&b, "]");
        put(&b);
    }
    qsf_strbuf_free(&b);
}

static void draw(GetReport *r, uint64_t done, double rate) {
    char left[40] = "", have[32], all[32];
    const double seconds = rate > 0 && r->total > done ? (double)(r->total - done) / rate : 0;
    if (seconds > 0)
        snprintf(left, sizeof left, "  %.0f:%02.0f left", (double)(long)(seconds / 60),
                 (double)((long)seconds % 60));
    fprintf(stderr, "\r%s of %s  %3.0f %%  %.1f MB/s%s\033[K", size_text(done, have),
            size_text(r->total, all), r->total ? 100.0 * (double)done / (double)r->total : 0, rate / 1e6,
            left);
    fflush(stderr);
    r->drawn = true;
}

/* A line for every tenth, for logs. */
static void print(GetReport *r, uint64_t done) {
    char all[32];
    const unsigned percent = r->total ? (unsigned)(100 * done / r->total) : 0;
    if (percent / 10 == r->percent / 10) return;
    r->percent = percent;
    fprintf(stderr, "%u %% of %s\n", percent, size_text(r->total, all));
}

void get_report_progress(GetReport *r, uint64_t part_done) {
    const uint64_t now = qsf_now_ns(), done = r->before + part_done;
    const bool last = r->total > 0 && done == r->total;
    if (r->begun == 0) {
        r->begun = now;
        r->at_start = done;
    }
    if (!last && now - r->shown < (done == r->shown_done ? STILL_NS : SHOW_NS)) return;
    if (last && done == r->shown_done) return;
    r->shown = now;
    r->shown_done = done;
    const double rate = now > r->begun ? (double)(done - r->at_start) / ((double)(now - r->begun) / 1e9) : 0;
    if (r->json) {
        QsfStrbuf b = event("progress");
        qsf_strbuf_addf(&b, ", \"done\": %llu, \"total\": %llu, \"rate\": %.0f", (unsigned long long)done,
                        (unsigned long long)r->total, rate);
        put(&b);
    } else if (!r->quiet && r->terminal) {
        draw(r, done, rate);
    } else if (!r->quiet) {
        print(r, done);
    }
}

void get_report_path(GetReport *r, const char *path) {
    end_line(r);
    if (!r->json) {
        puts(path);
        return;
    }
    QsfStrbuf b = event("done");
    put_text(&b, "path", path);
    put(&b);
}

void get_report_error(GetReport *r, const QsfErr *err) {
    end_line(r);
    if (r->json) {
        QsfStrbuf b = event("error");
        qsf_strbuf_addf(&b, ", \"code\": %d", err->code);
        put_text(&b, "message", err->msg);
        put(&b);
    } else if (err->code == QSF_E_INTERRUPTED) {
        qsf_cli_error(&get_cli, "stopped; the same command continues the download");
    } else {
        qsf_cli_error_text(&get_cli, err->msg);
    }
}

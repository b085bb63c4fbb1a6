/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Texts that qsf-run reads: standard input and files, only as far as the budget has memory for them. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "qsf_decode.h"
#include "src/base/clock.h"
#include "src/base/decode.h"
#include "src/engine/prompt.h"
#include "src/file/lfs.h"
#include "src/plan/options.h"
#include "src/run/run.h"
#include "src/token/tokenizer.h"

#define MIB (1ull << 20)
/* At the same time: what was read, what it was decoded to, and the prompt. */
#define COPIES 3u
/* Pages of the program that are touched later. */
#define SLACK (2 * MIB)
/* In any case: a plan has a reserve for messages. */
#define LEAST MIB

/* ---- the smallest budget with which a text that was too long can be read, and tokenized ---- */

/* A prompt that cannot fit the context is refused without being tokenized. */
static bool is_tokenized(const QsfRuntime *rt, const RunOptions *o, size_t bytes) {
    return o->mode != RUN_GENERATE || rt->plan_options.kv_lists ||
           qsf_tokenizer_least(rt->tok, NULL, bytes) <= rt->plan.ctx;
}

/* In bytes, a multiple of 1 MiB. bytes: of the text, which was read already. 0: the model cannot be opened to
 * find out. */
static uint64_t text_budget(const RunOptions *o, size_t bytes, size_t longest_word) {
    QsfRuntime rt;
    QsfErr none = { 0 };
    QsfRuntimeOptions ro = run_runtime_options(o);
    ro.plan_only = true;
    ro.learn = ro.may_draft = ro.predict = false;
    if (o->model == NULL || qsf_runtime_open(&rt, o->model, &ro, &none) != QSF_OK) return 0;
    uint64_t need = (uint64_t)bytes * QSF_REQUEST_BYTES, least = 0;
    if (qsf_tokenizer_open(&rt.tok, rt.model.src, &rt.ledger, &none) == QSF_OK) {
        if (is_tokenized(&rt, o, bytes)) need += qsf_tokenizer_need(rt.tok, bytes, longest_word);
        least = qsf_prompt_budget(&rt.model, &rt.plan_options, need);
    }
    qsf_runtime_close(&rt);
    return least;
}

/* ---- reading ---- */

RunRoom run_room(const RunOptions *o) {
    const QsfPlanMemory memory = { qsf_available_bytes(), qsf_limit_below("") };
    const uint64_t asked = qsf_settings_budget(&o->settings, memory), used = qsf_rss_bytes() + SLACK;
    const uint64_t budget = asked ? asked : memory.available / 2;
    const uint64_t left = budget > used ? (budget - used) / COPIES : 0;
    if (left >= RUN_TEXT_MAX) return (RunRoom){ .bytes = RUN_TEXT_MAX, .o = o };
    return (RunRoom){ .bytes = left > LEAST ? (size_t)left : (size_t)LEAST, .budget = budget, .o = o };
}

/* Returns an exit code, and prints the message. option: "" for standard input alone. */
static int fail(int code, const char *option, const char *name, const char *why) {
    qsf_cli_error(&run_cli, "%s%s%s: %s", option, *option ? " " : "", name, why);
    return code;
}

static int fail_size(const char *option, const char *name) {
    char why[64];
    (void)snprintf(why, sizeof why, "more than %u MB of text", RUN_TEXT_MAX >> 20);
    return fail(QSF_EXIT_MODEL, option, name, why);
}

/* Measures the text from its beginning b, which is freed, to the end of fd, up to RUN_TEXT_MAX. false: a
 * signal. */
static bool measure_rest(int fd, QsfStrbuf *b, size_t *bytes, size_t *longest) {
    char buf[16384];
    QsfWords words = { 0 };
    ssize_t n;
    *bytes = b->len;
    qsf_words_feed(&words, qsf_strbuf_str(b), b->len);
    qsf_strbuf_free(b);
    while (*bytes <= RUN_TEXT_MAX && (n = read(fd, buf, sizeof buf)) != 0) {
        if (n < 0 && errno == EINTR && atomic_load(&qsf_signal_cancel) == 0) continue;
        if (n < 0) return false;
        *bytes += (size_t)n;
        qsf_words_feed(&words, buf, (size_t)n);
    }
    *longest = words.longest;
    return true;
}

/* The budget that has memory to read so much, and then for its prompt. */
static uint64_t enough_for(const RunRoom *room, size_t bytes, size_t longest) {
    const uint64_t more = bytes > room->bytes ? bytes - room->bytes : 0;
    const uint64_t reading = ((room->budget + more * COPIES) / MIB + 1) * MIB,
                   prompt = text_budget(room->o, bytes + room->held, longest);
    return prompt == 0 ? 0 : prompt > reading ? prompt : reading;
}

/* b: what was read. */
static int fail_room(int fd, const RunRoom *room, const char *option, const char *name, QsfStrbuf *b) {
    char why[300];
    size_t bytes, longest;
    if (room->budget == 0) return fail_size(option, name);
    if (!measure_rest(fd, b, &bytes, &longest)) {
        const int sig = atomic_load(&qsf_signal_cancel);
        return sig ? 128 + sig : fail(QSF_EXIT_RUNTIME, option, name, strerror(errno));
    }
    const uint64_t enough = bytes <= RUN_TEXT_MAX ? enough_for(room, bytes, longest) / MIB : 0;
    char advice[64] = "shorten it, or raise --ram-budget";
    if (enough > 0) (void)snprintf(advice, sizeof advice, "raise --ram-budget to %" PRIu64, enough);
    (void)snprintf(why, sizeof why,
                   "more than %.1f MB of text, for which the RAM budget of %.0f MB has no memory: %s",
                   (double)room->bytes / MIB, (double)room->budget / MIB, advice);
    (void)fail(QSF_EXIT_BUDGET, option, name, why);
    if (enough > 0) (void)fprintf(stderr, "smallest budget that works: %" PRIu64 " MB\n", enough);
    return QSF_EXIT_BUDGET;
}

/* Reads until the end, or until there is more than the room. Returns as run_read_text. */
static int read_all(int fd, const char *option, const char *name, const RunRoom *room, QsfStrbuf *b) {
    char buf[16384];
    ssize_t n;
    while ((n = read(fd, buf, sizeof buf)) != 0) {
        const int sig = n < 0 && errno == EINTR ? atomic_load(&qsf_signal_cancel) : 0;
        if (sig) return 128 + sig;
        if (n < 0 && errno == EINTR) continue;
        if (n < 0)
            return fail(fd == STDIN_FILENO ? QSF_EXIT_RUNTIME : QSF_EXIT_MODEL, option, name,
                        strerror(errno));
        qsf_strbuf_add(b, buf, (size_t)n);
        if (room != NULL && b->len > room->bytes) return fail_room(fd, room, option, name, b);
    }
    if (qsf_strbuf_ok(b) && !qsf_strbuf_decode(b)) (void)fail(0, option, name, QSF_DECODE_DAMAGED);
    return qsf_strbuf_ok(b) ? QSF_EXIT_OK : fail(QSF_EXIT_RUNTIME, option, name, "out of memory");
}

int run_read_stdin(const RunRoom *room, QsfStrbuf *b) { return read_all(STDIN_FILENO, "", "stdin", room, b); }

int run_read_text(const char *option, const char *path, const RunRoom *room, QsfStrbuf *b) {
    QsfErr pointer = { 0 };
    const bool in = !strcmp(path, "-");
    const char *name = in ? "stdin" : path;
    const int fd = in ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        const int sig = errno == EINTR ? atomic_load(&qsf_signal_cancel) : 0;
        return sig ? 128 + sig : fail(QSF_EXIT_MODEL, option, name, strerror(errno));
    }
    int rc = read_all(fd, option, name, room, b);
    if (!in) close(fd);
    if (!rc && b->len == 0) return fail(QSF_EXIT_MODEL, option, name, "the text is empty");
    if (!rc && qsf_lfs_check_bytes(name, b->data, b->len, &pointer)) {
        qsf_cli_error(&run_cli, "%s %s", option, pointer.msg);
        rc = QSF_EXIT_MODEL;
    }
    return rc;
}

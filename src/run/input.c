/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Texts that qsf-run reads: standard input and files, only as far as the budget has memory for them. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "qsf_decode.h"
#include "src/base/clock.h"
#include "src/base/decode.h"
#include "src/file/lfs.h"
#include "src/plan/options.h"
#include "src/run/run.h"

#define MIB (1ull << 20)
/* At the same time: what was read, what it was decoded to, and the prompt. */
#define COPIES 3u
/* Pages of the program that are touched later. */
#define SLACK (2 * MIB)
/* In any case: a plan has a reserve for messages. */
#define LEAST MIB

RunRoom run_room(const RunOptions *o) {
    const QsfPlanMemory memory = { qsf_available_bytes(), qsf_limit_below("") };
    const uint64_t asked = qsf_settings_budget(&o->settings, memory), used = qsf_rss_bytes() + SLACK;
    const uint64_t budget = asked ? asked : memory.available / 2;
    const uint64_t left = budget > used ? (budget - used) / COPIES : 0;
    if (left >= RUN_TEXT_MAX) return (RunRoom){ .bytes = RUN_TEXT_MAX };
    return (RunRoom){ .bytes = left > LEAST ? (size_t)left : (size_t)LEAST, .budget = budget };
}

/* Returns an exit code, and prints the message. option: "" for standard input alone. */
static int fail(int code, const char *option, const char *name, const char *why) {
    qsf_cli_error(&run_cli, "%s%s%s: %s", option, *option ? " " : "", name, why);
    return code;
}

/* The budget that has memory for the file of fd; 0: it is not a file. */
static uint64_t enough_for(int fd, const RunRoom *room) {
    struct stat st;
    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode) || st.st_size > (off_t)RUN_TEXT_MAX) return 0;
    return (room->budget + ((uint64_t)st.st_size - room->bytes) * COPIES) / MIB + 1;
}

static int fail_room(int fd, const RunRoom *room, const char *option, const char *name) {
    char why[160], advice[64] = "shorten it, or raise --ram-budget";
    if (room->budget == 0) {
        (void)snprintf(why, sizeof why, "more than %u MB of text", RUN_TEXT_MAX >> 20);
        return fail(QSF_EXIT_MODEL, option, name, why);
    }
    const uint64_t enough = enough_for(fd, room);
    if (enough > 0) (void)snprintf(advice, sizeof advice, "raise --ram-budget to %" PRIu64, enough);
    (void)snprintf(why, sizeof why,
                   "more than %.1f MB of text, for which the RAM budget of %.0f MB has no memory: %s",
                   (double)room->bytes / MIB, (double)room->budget / MIB, advice);
    return fail(QSF_EXIT_BUDGET, option, name, why);
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
        if (room != NULL && b->len > room->bytes) return fail_room(fd, room, option, name);
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

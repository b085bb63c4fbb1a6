/* SPDX-License-Identifier: GPL-3.0-or-later */
/* qsf-get: downloads models. A program of its own, so that the chat never holds the memory of a network
 * library: the others run it. Options only. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "get/program.h"
#include "get/request.h"
#include "qsf_fetch.h"
#include "src/base/clock.h"
#include "src/cli/signals.h"

enum { OPT_LIST, OPT_OFFLINE, OPT_ROOM, OPT_JSON, OPT_QUIET, OPT_REQUEST };

static const QSFCliOption options[] = {
    { "list", "", 'l', NULL, "list the models of a repository; nothing is downloaded", OPT_LIST },
    { "offline", "", 0, NULL, "use only what is on this machine", OPT_OFFLINE },
    { "room", "", 0, "BYTES",
      "choose for this much memory for weights (default: half of what is available now)", OPT_ROOM },
    { "json", "", 0, NULL, "print events on stdout, one JSON object per line", OPT_JSON },
    { "quiet", "", 'q', NULL, "print no progress", OPT_QUIET },
    { "request", "", 0, NULL,
      "for qsf-chat --connect: send one HTTP request, which is read from stdin, and print the reply",
      OPT_REQUEST },
};

const QSFCli get_cli = {
    .program = "qsf-get",
    .usage = "Usage: qsf-get [options] hf:OWNER/NAME[@REVISION][:FILE-OR-TYPE]\n"
             "       qsf-get [options] https://HOST/PATH/FILE.gguf\n"
             "       qsf-get --list hf:OWNER/NAME\n",
    .summary = "Downloads a model, or continues a download, and prints the path of the file.",
    .options = options,
    .n_options = sizeof options / sizeof *options,
    .no_settings = true,
    .epilogue = "Files go to the cache of Hugging Face ($HF_HUB_CACHE, $HF_HOME/hub or\n"
                "~/.cache/huggingface/hub). HF_TOKEN, HF_ENDPOINT, HF_HUB_OFFLINE and the usual\n"
                "variables of proxies apply.\n"
                "Exit status: 0 done, 1 runtime error, 2 usage, 3 no such model, or a bad file,\n"
                "130 interrupted, 143 terminated.\n",
};

typedef struct Args {
    GetOptions o;
    bool json, quiet, request;
} Args;

static int on_option(void *arg, int id, const char *value, char *err, size_t cap) {
    Args *a = arg;
    char *end;
    switch (id) {
    case OPT_LIST: a->o.list = true; return 0;
    case OPT_OFFLINE: a->o.offline = true; return 0;
    case OPT_JSON: a->json = true; return 0;
    case OPT_QUIET: a->quiet = true; return 0;
    case OPT_REQUEST: a->request = true; return 0;
    default: break;
    }
    errno = 0;
    a->o.room = strtoull(value, &end, 10);
    if (!errno && end != value && *end == '\0' && *value != '-') return 0;
    snprintf(err, cap, "--room: \"%s\" is not a number of bytes", value);
    return QSF_EXIT_USAGE;
}

int main(int argc, char **argv) {
    const char *offline = getenv("HF_HUB_OFFLINE");
    Args a = { .o.room = qsf_fetch_weights(qsf_available_bytes() / 2), /* an automatic budget */
               .o.offline = offline && *offline && strcmp(offline, "0") != 0 };
    QSFCliResult r;
    GetReport report;
    QsfErr err = { 0 };
    char msg[1000];
    if (qsf_cli_open_std_fds(get_cli.program)) return QSF_EXIT_RUNTIME;
    int rc = qsf_cli_parse(&get_cli, argc, argv, NULL, on_option, &a, &r, msg, sizeof msg);
    if (rc == 0 && r.done) return qsf_cli_printed(get_cli.program);
    if (rc == 0 && r.n_positional != !a.request) {
        snprintf(msg, sizeof msg,
                 a.request ? "--request takes no model"
                           : "one model is needed: hf:OWNER/NAME or https://... (see --help)");
        rc = QSF_EXIT_USAGE;
    }
    if (rc) return qsf_cli_error(&get_cli, "%s", msg), rc;
    qsf_signals_init();
    if (a.request) return get_request_run(STDIN_FILENO, STDOUT_FILENO);
    a.o.model = r.positional[0];
    get_report_init(&report, a.json, a.quiet, a.o.list);
    rc = get_run(&a.o, &report, &err);
    if (rc) get_report_error(&report, &err);
    const int sig = atomic_load(&qsf_signal_cancel);
    if (rc == QSF_E_INTERRUPTED && sig) return 128 + sig;
    return fflush(stdout) == 0 ? rc : QSF_EXIT_RUNTIME;
}

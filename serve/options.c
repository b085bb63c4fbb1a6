/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The options of qsf-serve. */
#include "serve/options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    OPT_LISTEN,
    OPT_KEY_FILE,
    OPT_QUEUE,
    OPT_CONNECTIONS,
    OPT_TIMEOUT,
    OPT_BODY_LIMIT,
    OPT_SNAPSHOTS,
    OPT_SNAPSHOT_LIMIT,
    OPT_SNAPSHOT_DIR,
    OPT_HOST,
    OPT_ORIGIN,
    OPT_MODEL,
    OPT_NAME,
    OPT_MODEL_DIR,
    OPT_OFFLINE,
    OPT_LOG_FILE,
    OPT_VERBOSE,
    OPT_QUIET,
    OPT_OVERRIDE_KV,
    OPT_I2S_FLAVOR
};

#define QUEUE_MOST       1024u
#define CONNECTIONS_MOST 4096u
#define TIMEOUT_MOST     86400u
#define SNAPSHOTS_MOST   64u
#define BODY_LEAST       (4u << 10)
#define BODY_MOST        (64u << 20)

static const QSFCliOption options[] = {
    /* clang-format off */
    { "listen", "", 0, "ADDRESS", "listen on ADDRESS:PORT, or on unix:PATH, a socket for this user alone; port 0 takes a free one (default 127.0.0.1:8080)", OPT_LISTEN },
    { "api-key-file", "", 0, "FILE", "clients have to send the key in the first line of FILE; required for addresses that other machines reach", OPT_KEY_FILE },
    { "queue", "", 0, "N", "let N requests wait, 0 to 1024, and refuse more with status 429 (default 16)", OPT_QUEUE },
    { "connections", "", 0, "N", "serve N connections at a time, 1 to 4096 (default 64)", OPT_CONNECTIONS },
    { "timeout", "", 0, "SECONDS", "time for a client to send a whole request, or to read the next part of an answer, 1 to 86400 (default 30)", OPT_TIMEOUT },
    { "body-limit", "", 0, "SIZE", "maximum size of a request, 4K to 64M (default 1M)", OPT_BODY_LIMIT },
    { "snapshots", "", 0, "N", "keep the state of N conversations on disk, 0 to 64, so that continuing one of them evaluates only what is new (default 8)", OPT_SNAPSHOTS },
    { "snapshot-limit", "", 0, "SIZE", "limit all snapshots together; the oldest are removed (default a tenth of the free space, at most 4G)", OPT_SNAPSHOT_LIMIT },
    { "snapshot-dir", "", 0, "DIR", "keep snapshots in a new folder below DIR, which is removed at the end (default ~/.local/state/qsf/serve)", OPT_SNAPSHOT_DIR },
    { "allow-host", "", 0, "NAME", "accept requests for this host, too; the address that is listened on and names of the loopback always are; can be repeated", OPT_HOST },
    { "allow-origin", "", 0, "ORIGIN", "let web pages of this origin use the server, such as http://localhost:3000; can be repeated", OPT_ORIGIN },
    { "model", "", 'm', "FILE", "the model file, instead of the MODEL argument", OPT_MODEL },
    { "model-name", "alias", 0, "NAME", "the name by which clients ask for the model (default the name of its file)", OPT_NAME },
    { "model-dir", "", 0, "DIR", "look for models in this folder, too, where MODEL is a name; can be repeated", OPT_MODEL_DIR },
    { "offline", "", 0, NULL, "download nothing: hf:OWNER/NAME has to be on this machine", OPT_OFFLINE },
    { "log-file", "", 0, "FILE", "append what happens to FILE: loads, answers, errors and times, but no texts", OPT_LOG_FILE },
    { "verbose", "", 'v', NULL, "print the plan, notices, and a line for each answer to stderr", OPT_VERBOSE },
    { "quiet", "", 'q', NULL, "print only errors to stderr", OPT_QUIET },
    { "override-kv", "", 0, "KEY=TYPE:VALUE", "replace a metadata value (str, int, float, bool; KEY=null removes it)", OPT_OVERRIDE_KV },
    { "i2s-flavor", "", 0, "LAYOUT", "set the layout of I2_S tensors instead of detecting it by size: microsoft, bitnet32f16, split32 or qk256", OPT_I2S_FLAVOR },
    /* clang-format on */
};

const QSFCli serve_cli = {
    .program = "qsf-serve",
    .usage = "Usage: qsf-serve [options] MODEL\n",
    .summary =
        "Serve a language model to programs that speak OpenAI's HTTP interface, on this machine's CPU\n"
        "and within a RAM budget. MODEL is a .gguf or .qsf file, a Hugging Face directory, the name of\n"
        "a model in the caches of other programs, hf:OWNER/NAME, or \"guide\", the bundled model. The\n"
        "first line on stdout is the address, as soon as requests are answered.",
    .options = options,
    .n_options = sizeof options / sizeof *options,
    .operands = "guide the built-in guide|@model",
    .epilogue =
        "Endpoints: /v1/chat/completions, /v1/completions, /v1/models, /health and /metrics.\n"
        "SIZE is 200 (MB), 200M, 1.5G, 25% (of available memory) or auto.\n"
        "Exit status: 0 success, 1 runtime error, 2 usage error, 3 bad model or file, 4 RAM budget cannot "
        "be met,\n"
        "130 interrupted, 143 terminated.\n",
};

static int add_to(const char **list, size_t *n, const char *value, char *err, size_t cap) {
    if (*n == SERVE_LIST || *value == '\0') {
        snprintf(err, cap, *value == '\0' ? "the value is empty" : "given more than %d times", SERVE_LIST);
        return QSF_EXIT_USAGE;
    }
    list[(*n)++] = value;
    return QSF_EXIT_OK;
}

#define LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
#define HOST    LETTERS "0123456789.-_"

/* Length of the host at the beginning, a name or an IPv6 address in brackets; 0: there is none. */
static size_t host_length(const char *s) {
    if (*s != '[') return strspn(s, HOST);
    const size_t n = 1 + strspn(s + 1, "0123456789abcdefABCDEF:.");
    return n > 1 && s[n] == ']' ? n + 1 : 0;
}

static int add_host(ServeOptions *o, const char *value, char *err, size_t cap) {
    const size_t n = host_length(value);
    if (n > 0 && value[n] == '\0') return add_to(o->hosts, &o->n_hosts, value, err, cap);
    snprintf(err, cap,
             "--allow-host takes a name or address without a port, such as gpu.example, not '%.100s'", value);
    return QSF_EXIT_USAGE;
}

/* As browsers send it: SCHEME://HOST[:PORT]; or null, for pages without one. */
static int add_origin(ServeOptions *o, const char *value, char *err, size_t cap) {
    const size_t scheme = strspn(value, LETTERS "0123456789+-.");
    const char *host = strncmp(value + scheme, "://", 3) == 0 && scheme > 0 ? value + scheme + 3 : "";
    const size_t n = host_length(host);
    const char *port = host + n + (host[n] == ':');
    const bool ok = n > 0 && port[strspn(port, "0123456789")] == '\0' && (host[n] == '\0' || *port != '\0');
    if (ok || strcmp(value, "null") == 0) return add_to(o->origins, &o->n_origins, value, err, cap);
    snprintf(err, cap,
             "--allow-origin takes an origin such as http://localhost:3000, without a path, not '%.100s'",
             value);
    return QSF_EXIT_USAGE;
}

static int set_name(ServeOptions *o, const char *value, char *err, size_t cap) {
    o->name = value;
    if (*value != '\0') return QSF_EXIT_OK;
    snprintf(err, cap, "--model-name: the name is empty");
    return QSF_EXIT_USAGE;
}

/* Options that are numbers, by id. */
static const struct {
    const char *name;
    int id;
    uint32_t least, most;
    size_t place; /* in ServeOptions */
} numbers[] = {
    { "queue", OPT_QUEUE, 0, QUEUE_MOST, offsetof(ServeOptions, queue) },
    { "connections", OPT_CONNECTIONS, 1, CONNECTIONS_MOST, offsetof(ServeOptions, connections) },
    { "timeout", OPT_TIMEOUT, 1, TIMEOUT_MOST, offsetof(ServeOptions, timeout) },
    { "snapshots", OPT_SNAPSHOTS, 0, SNAPSHOTS_MOST, offsetof(ServeOptions, snapshots) },
};

static int set_number(ServeOptions *o, int id, const char *value, char *err, size_t cap) {
    char *end;
    const unsigned long n = strtoul(value, &end, 10);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        if (numbers[i].id != id) continue;
        if (*value >= '0' && *value <= '9' && *end == '\0' && n >= numbers[i].least && n <= numbers[i].most) {
            *(uint32_t *)(void *)((char *)o + numbers[i].place) = (uint32_t)n;
            return QSF_EXIT_OK;
        }
        snprintf(err, cap, "--%s takes a whole number from %u to %u, not '%.40s'", numbers[i].name,
                 numbers[i].least, numbers[i].most, value);
    }
    return QSF_EXIT_USAGE;
}

static int set_limit(uint64_t *out, const char *value, char *err, size_t cap) {
    uint32_t percent;
    if (qsf_parse_size(value, out, &percent) && percent == 0) return QSF_EXIT_OK;
    snprintf(err, cap, "--snapshot-limit takes a size such as 500M or 2G, or auto, not '%.40s'", value);
    return QSF_EXIT_USAGE;
}

static int set_body_limit(uint64_t *out, const char *value, char *err, size_t cap) {
    uint32_t percent;
    if (qsf_parse_size(value, out, &percent) && percent == 0 && *out >= BODY_LEAST && *out <= BODY_MOST)
        return QSF_EXIT_OK;
    snprintf(err, cap, "--body-limit takes a size from 4K to 64M, not '%.40s'", value);
    return QSF_EXIT_USAGE;
}

/* The engine takes it as an override. */
static int add_flavor(ServeOptions *o, const char *value, char *err, size_t cap) {
    snprintf(o->i2s_flavor, sizeof o->i2s_flavor, "qsf.i2s_flavor=str:%s", value);
    return add_to(o->overrides, &o->n_overrides, o->i2s_flavor, err, cap);
}

static int on_option(void *arg, int id, const char *value, char *err, size_t cap) {
    ServeOptions *o = arg;
    switch (id) {
    case OPT_LISTEN: o->listen = value; return 0;
    case OPT_KEY_FILE: o->key_file = value; return 0;
    case OPT_BODY_LIMIT: return set_body_limit(&o->body_limit, value, err, cap);
    case OPT_SNAPSHOT_LIMIT: return set_limit(&o->snapshot_limit, value, err, cap);
    case OPT_SNAPSHOT_DIR: o->snapshot_dir = value; return 0;
    case OPT_HOST: return add_host(o, value, err, cap);
    case OPT_ORIGIN: return add_origin(o, value, err, cap);
    case OPT_MODEL: o->model = value; return 0;
    case OPT_NAME: return set_name(o, value, err, cap);
    case OPT_MODEL_DIR: return add_to(o->dirs, &o->n_dirs, value, err, cap);
    case OPT_OFFLINE: o->offline = true; return 0;
    case OPT_LOG_FILE: o->log_file = value; return 0;
    case OPT_VERBOSE: o->verbose = true; return 0;
    case OPT_QUIET: o->quiet = true; return 0;
    case OPT_OVERRIDE_KV: return add_to(o->overrides, &o->n_overrides, value, err, cap);
    case OPT_I2S_FLAVOR: return add_flavor(o, value, err, cap);
    default: return set_number(o, id, value, err, cap);
    }
}

static int fail(const char *err) {
    qsf_cli_error(&serve_cli, "%s", err);
    return QSF_EXIT_USAGE;
}

static void set_defaults(ServeOptions *o) {
    *o = (ServeOptions){ .listen = "127.0.0.1:8080",
                         .queue = 16,
                         .connections = 64,
                         .timeout = 30,
                         .snapshots = 8,
                         .body_limit = 1u << 20 };
    qsf_settings_default(&o->settings);
    o->settings.ram_budget = 0; /* auto */
}

int serve_options_parse(ServeOptions *o, int argc, char **argv, QSFCliResult *res) {
    char err[1024];
    ServeOptions scratch;
    set_defaults(o);
    set_defaults(&scratch);
    int rc = qsf_config_begin(&o->config, &serve_cli, argc, argv, on_option, &scratch, err, sizeof err);
    res->done = rc == 0 && o->config.done;
    if (rc || res->done) return rc ? fail(err) : 0;
    rc = qsf_cli_parse(&serve_cli, argc, argv, &o->settings, on_option, o, res, err, sizeof err);
    if (!rc) rc = qsf_config_options(&o->config, &serve_cli, on_option, o, err, sizeof err);
    if (!rc && res->n_positional > (o->model && !res->n_positional ? 0 : 1)) {
        snprintf(err, sizeof err, "unexpected argument \"%.200s\": only one MODEL is allowed",
                 res->positional[1]);
        rc = QSF_EXIT_USAGE;
    }
    if (!rc && res->n_positional == 1) o->model = res->positional[0];
    if (!rc && !o->model && !res->print_config) {
        snprintf(err, sizeof err, "no MODEL given (see --help)");
        rc = QSF_EXIT_USAGE;
    }
    return rc ? fail(err) : 0;
}

int serve_options_for_model(ServeOptions *o) {
    QSFSettings s = o->settings;
    char err[1024];
    qsf_config_settings(o->config.config, o->model, qsf_config_start_role(&o->config), &s);
    qsf_config_overlay(&s, &o->config.given);
    if (qsf_settings_check(&s, err, sizeof err) != 0) {
        qsf_cli_error(&serve_cli, "%s: %s", qsf_config_path(o->config.config), err);
        return QSF_EXIT_USAGE;
    }
    o->settings = s;
    return 0;
}

int serve_options_print(const ServeOptions *o) {
    QSFSettings defaults;
    qsf_settings_default(&defaults);
    defaults.ram_budget = 0;
    qsf_config_print(&o->config, &serve_cli, &defaults, o->model, NULL, NULL);
    return qsf_cli_printed(serve_cli.program);
}

void serve_options_free(ServeOptions *o) { qsf_config_end(&o->config); }

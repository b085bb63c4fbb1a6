/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "get/http.h"

#include <curl/curl.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "get/certs.h"
#include "src/base/interrupt.h"

#define CONNECT_SECONDS 30L
#define AGAIN_SECONDS   5L  /* where the file is there, and only its version is asked for */
#define STALL_SECONDS   60L /* without a byte */
#define REDIRECTS_MAX   8L
#define REQUEST_SECONDS 10L /* to be connected for a request of a person who waits */
#define WAIT_MS         100 /* between two looks at whether the thread is to stop */

struct GetHttp {
    CURL *easy;
    CURLM *multi;
    char reason[CURL_ERROR_SIZE];
    char *token;
    bool certs; /* a file of certificates was found */
    void (*idle)(void *arg);
    void *idle_arg;
    char unless_etag[GET_HEADER_MAX + 32], unless_modified[GET_HEADER_MAX + 32]; /* headers, "" = none */
};

typedef struct Transfer {
    GetHttp *h;
    GetReply *reply;
    GetSink sink;
    void *arg;
    const char *socket; /* NULL = none */
    long stall;         /* seconds without a byte after which it fails; 0 = STALL_SECONDS */
    bool stopped;
} Transfer;

GetHttp *get_http_new(const char *token, QsfErr *err) {
    GetHttp *h = calloc(1, sizeof *h);
    if (h && curl_global_init(CURL_GLOBAL_DEFAULT) == 0) {
        h->easy = curl_easy_init();
        h->multi = curl_multi_init();
        h->token = token && *token ? strdup(token) : NULL;
    }
    if (!h || !h->easy || !h->multi || (token && *token && !h->token)) {
        get_http_free(h);
        qsf_err_memory(err, "the connection");
        return NULL;
    }
    return h;
}

void get_http_free(GetHttp *h) {
    if (!h) return;
    if (h->easy) curl_easy_cleanup(h->easy);
    if (h->multi) curl_multi_cleanup(h->multi);
    free(h->token);
    free(h);
}

bool get_http_has_token(const GetHttp *h) { return h->token != NULL; }

void get_http_on_idle(GetHttp *h, void (*idle)(void *arg), void *arg) {
    h->idle = idle;
    h->idle_arg = arg;
}

/* ---- headers */

static void copy_value(char *dst, size_t cap, const char *s, size_t len) {
    if (len >= cap) len = 0; /* a value of that length is none that is known here */
    memcpy(dst, s, len);
    dst[len] = '\0';
}

/* "abc" and W/"abc" are both abc. */
static void copy_tag(char *dst, const char *s, size_t len) {
    if (len > 2 && s[0] == 'W' && s[1] == '/') s += 2, len -= 2;
    if (len >= 2 && s[0] == '"' && s[len - 1] == '"') s++, len -= 2;
    copy_value(dst, GET_HEADER_MAX, s, len);
}

static int64_t whole(const char *s) {
    char *end;
    errno = 0;
    const long long v = strtoll(s, &end, 10);
    return errno || end == s || v < 0 ? -1 : (int64_t)v;
}

/* bytes 100-199/1000, or with an asterisk instead of one of the two; RFC 9110, section 14.4. */
static void content_range(GetReply *r, const char *s) {
    if (strncasecmp(s, "bytes ", 6) != 0) return;
    r->first = whole(s + 6);
    const char *slash = strchr(s, '/');
    r->total = slash ? whole(slash + 1) : -1;
}

/* <URL>; rel="next"; RFC 8288. */
static void link_header(GetReply *r, const char *s, size_t len) {
    const char *open = memchr(s, '<', len),
               *close = open ? memchr(open, '>', len - (size_t)(open - s)) : NULL;
    if (close && strstr(close, "rel=\"next\""))
        copy_value(r->next, sizeof r->next, open + 1, (size_t)(close - open) - 1);
}

static void header(GetReply *r, const char *name, size_t n, const char *value, size_t len) {
    if (n == 14 && !strncasecmp(name, "content-length", n)) r->length = whole(value);
    if (n == 13 && !strncasecmp(name, "content-range", n)) content_range(r, value);
    if (n == 13 && !strncasecmp(name, "x-linked-size", n)) r->linked_size = whole(value);
    if (n == 13 && !strncasecmp(name, "x-linked-etag", n)) copy_tag(r->linked_etag, value, len);
    if (n == 13 && !strncasecmp(name, "x-repo-commit", n))
        copy_value(r->commit, sizeof r->commit, value, len);
    if (n == 4 && !strncasecmp(name, "etag", n)) copy_tag(r->etag, value, len);
    if (n == 13 && !strncasecmp(name, "last-modified", n))
        copy_value(r->modified, sizeof r->modified, value, len);
    if (n == 4 && !strncasecmp(name, "link", n)) link_header(r, value, len);
    if (n == 12 && !strncasecmp(name, "content-type", n)) copy_value(r->type, sizeof r->type, value, len);
    if (n == 6 && !strncasecmp(name, "server", n)) copy_value(r->server, sizeof r->server, value, len);
    if (n == 11 && !strncasecmp(name, "retry-after", n) && whole(value) > 0)
        r->retry_after = (double)whole(value);
}

/* A new status line: what belongs to the reply before it is dropped, but for what a hub says of the file. */
static void next_reply(GetReply *r) {
    r->length = r->first = r->total = -1;
    r->retry_after = 0;
    r->etag[0] = r->modified[0] = r->location[0] = r->next[0] = r->type[0] = r->server[0] = '\0';
}

static size_t on_header(char *line, size_t size, size_t n, void *arg) {
    Transfer *t = arg;
    char text[8192];
    size_t len = n * size;
    while (len > 0 && (line[len - 1] == '\r' || line[len - 1] == '\n' || line[len - 1] == ' ')) len--;
    if (len >= sizeof text) return n * size;
    memcpy(text, line, len);
    text[len] = '\0';
    if (strncmp(text, "HTTP/", 5) == 0) next_reply(t->reply);
    const char *colon = strchr(text, ':');
    if (colon) {
        const char *value = colon + 1 + strspn(colon + 1, " \t");
        header(t->reply, text, (size_t)(colon - text), value, len - (size_t)(value - text));
    }
    return n * size;
}

static size_t on_body(char *bytes, size_t size, size_t n, void *arg) {
    Transfer *t = arg;
    const size_t len = size * n;
    curl_easy_getinfo(t->h->easy, CURLINFO_RESPONSE_CODE, &t->reply->status);
    if (!t->sink || t->stopped) return len;
    if (t->sink(t->arg, t->reply, bytes, len)) return len;
    t->stopped = true;
    return 0;
}

/* ---- transfers */

static void set_certs(GetHttp *h) {
    char *usual = NULL;
    curl_easy_getinfo(h->easy, CURLINFO_CAINFO, &usual);
    const char *file = get_certs(usual);
    h->certs = file != NULL;
    if (file) curl_easy_setopt(h->easy, CURLOPT_CAINFO, file);
}

static void prepare(Transfer *t, const char *url) {
    CURL *e = t->h->easy;
    const char *allowed = strncmp(url, "https:", 6) == 0 ? "https" : "http,https";
    *t->reply = (GetReply){ .length = -1, .first = -1, .total = -1, .linked_size = -1 };
    t->h->reason[0] = '\0';
    if (t->stall == 0) t->stall = STALL_SECONDS;
    curl_easy_reset(e);
    curl_easy_setopt(e, CURLOPT_URL, url);
    curl_easy_setopt(e, CURLOPT_ERRORBUFFER, t->h->reason);
    set_certs(t->h);
    curl_easy_setopt(e, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(e, CURLOPT_REDIR_PROTOCOLS_STR, allowed);
    curl_easy_setopt(e, CURLOPT_MAXREDIRS, REDIRECTS_MAX);
    curl_easy_setopt(e, CURLOPT_CONNECTTIMEOUT, CONNECT_SECONDS);
    curl_easy_setopt(e, CURLOPT_LOW_SPEED_LIMIT, 1L);
    curl_easy_setopt(e, CURLOPT_LOW_SPEED_TIME, t->stall);
    curl_easy_setopt(e, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(e, CURLOPT_USERAGENT, "qsf-get/" QSF_VERSION);
    curl_easy_setopt(e, CURLOPT_HEADERFUNCTION, on_header);
    curl_easy_setopt(e, CURLOPT_HEADERDATA, t);
    curl_easy_setopt(e, CURLOPT_WRITEFUNCTION, on_body);
    curl_easy_setopt(e, CURLOPT_WRITEDATA, t);
    curl_easy_setopt(e, CURLOPT_BUFFERSIZE, 256L << 10);
    if (t->h->token) {
        curl_easy_setopt(e, CURLOPT_HTTPAUTH, CURLAUTH_BEARER);
        curl_easy_setopt(e, CURLOPT_XOAUTH2_BEARER, t->h->token);
    }
}

static CURLcode result_of(GetHttp *h) {
    int left;
    for (CURLMsg *m; (m = curl_multi_info_read(h->multi, &left)) != NULL;)
        if (m->msg == CURLMSG_DONE && m->easy_handle == h->easy) return m->data.result;
    return CURLE_OK;
}

static bool is_permanent(CURLcode c) {
    return c == CURLE_TOO_MANY_REDIRECTS || c == CURLE_UNSUPPORTED_PROTOCOL || c == CURLE_URL_MALFORMAT ||
           c == CURLE_PEER_FAILED_VERIFICATION || c == CURLE_SSL_CACERT_BADFILE;
}

/* Without certificates no server is known. */
static const char *hint(const GetHttp *h, CURLcode c) {
    const bool unknown = c == CURLE_PEER_FAILED_VERIFICATION || c == CURLE_SSL_CACERT_BADFILE;
    return unknown && !h->certs ? " (this system has no certificates: install the package ca-certificates, "
                                  "or set SSL_CERT_FILE)"
                                : "";
}

/* What libcurl says in its own terms: it connects to sockets as to a host, and measures speed. */
static void explain(const Transfer *t, CURLcode c, char *dst, size_t cap) {
    const char *said = t->h->reason[0] ? t->h->reason : curl_easy_strerror(c);
    struct stat st;
    if (c == CURLE_COULDNT_CONNECT && t->socket)
        (void)snprintf(dst, cap, "%s: %s", t->socket,
                       stat(t->socket, &st) != 0 ? strerror(errno)
                       : S_ISSOCK(st.st_mode)    ? "nothing listens on this socket"
                                                 : "not a socket");
    else if (c == CURLE_OPERATION_TIMEDOUT && strncmp(said, "Operation too slow", 18) == 0)
        (void)snprintf(dst, cap, "the server sent nothing for %ld s", t->stall);
    else
        (void)snprintf(dst, cap, "%s%s", said, hint(t->h, c));
}

static int perform(Transfer *t, const char *url, QsfErr *err) {
    char why[CURL_ERROR_SIZE + 256];
    GetHttp *h = t->h;
    int running = 1;
    CURLMcode m = curl_multi_add_handle(h->multi, h->easy);
    while (m == CURLM_OK && running > 0 && !qsf_interrupted()) {
        m = curl_multi_perform(h->multi, &running);
        if (m == CURLM_OK && running > 0) m = curl_multi_poll(h->multi, NULL, 0, WAIT_MS, NULL);
        if (h->idle) h->idle(h->idle_arg);
    }
    const CURLcode c = running > 0 ? CURLE_OK : result_of(h);
    char *location = NULL;
    curl_easy_getinfo(h->easy, CURLINFO_RESPONSE_CODE, &t->reply->status);
    curl_easy_getinfo(h->easy, CURLINFO_REDIRECT_URL, &location);
    if (location) copy_value(t->reply->location, sizeof t->reply->location, location, strlen(location));
    curl_multi_remove_handle(h->multi, h->easy);
    if (qsf_interrupt_check(err)) return QSF_E_INTERRUPTED;
    if (m != CURLM_OK) return qsf_err_set(err, QSF_E_RUNTIME, "%s: %s", url, curl_multi_strerror(m));
    if (c == CURLE_OK || t->stopped) return QSF_OK;
    t->reply->permanent = is_permanent(c);
    explain(t, c, why, sizeof why);
    return qsf_err_set(err, QSF_E_RUNTIME, "%s: %s", url, why);
}

/* What was stored is not trusted: it must not begin another header. */
static bool is_header_text(const char *s) {
    for (; *s; s++)
        if ((unsigned char)*s < ' ' || *s == 0x7f || *s == '"') return false;
    return true;
}

void get_http_unless(GetHttp *h, const char *etag, const char *modified) {
    h->unless_etag[0] = h->unless_modified[0] = '\0';
    if (*etag && is_header_text(etag))
        snprintf(h->unless_etag, sizeof h->unless_etag, "If-None-Match: \"%s\"", etag);
    else if (*modified && is_header_text(modified))
        snprintf(h->unless_modified, sizeof h->unless_modified, "If-Modified-Since: %s", modified);
}

int get_http_head(GetHttp *h, const char *url, GetReply *reply, QsfErr *err) {
    Transfer t = { .h = h, .reply = reply };
    struct curl_slist *list = NULL;
    prepare(&t, url);
    curl_easy_setopt(h->easy, CURLOPT_NOBODY, 1L);
    if (h->unless_etag[0]) list = curl_slist_append(list, h->unless_etag);
    if (h->unless_modified[0]) list = curl_slist_append(list, h->unless_modified);
    if (list) {
        curl_easy_setopt(h->easy, CURLOPT_HTTPHEADER, list);
        curl_easy_setopt(h->easy, CURLOPT_CONNECTTIMEOUT, AGAIN_SECONDS);
        curl_easy_setopt(h->easy, CURLOPT_TIMEOUT, 2 * AGAIN_SECONDS);
    }
    const int rc = perform(&t, url, err);
    curl_slist_free_all(list);
    return rc;
}

typedef struct Text {
    QsfStrbuf *b;
    size_t max;
    bool too_long;
} Text;

static bool add_text(void *arg, const GetReply *reply, const void *bytes, size_t len) {
    Text *t = arg;
    (void)reply;
    t->too_long = len > t->max - t->b->len;
    if (!t->too_long) qsf_strbuf_add(t->b, bytes, len);
    return !t->too_long && qsf_strbuf_ok(t->b);
}

int get_http_text(GetHttp *h, const char *url, size_t max, QsfStrbuf *b, GetReply *reply, QsfErr *err) {
    Text text = { b, max, false };
    Transfer t = { .h = h, .reply = reply, .sink = add_text, .arg = &text };
    qsf_strbuf_clear(b);
    prepare(&t, url);
    curl_easy_setopt(h->easy, CURLOPT_FOLLOWLOCATION, 1L);
    curl_easy_setopt(h->easy, CURLOPT_ACCEPT_ENCODING, "");
    const int rc = perform(&t, url, err);
    if (text.too_long)
        return qsf_err_set(err, QSF_E_RUNTIME, "%s: the answer has more than %zu bytes", url, max);
    if (!qsf_strbuf_ok(b)) return qsf_err_memory(err, "an answer of the server");
    return rc;
}

int get_http_body(GetHttp *h, const char *url, uint64_t first, GetSink sink, void *arg, GetReply *reply,
                  bool *stopped, QsfErr *err) {
    Transfer t = { .h = h, .reply = reply, .sink = sink, .arg = arg };
    char range[40];
    prepare(&t, url);
    curl_easy_setopt(h->easy, CURLOPT_FOLLOWLOCATION, 1L);
    /* Without a range for the first byte: some servers answer "bytes=0-" with 200. */
    snprintf(range, sizeof range, "%llu-", (unsigned long long)first);
    if (first > 0) curl_easy_setopt(h->easy, CURLOPT_RANGE, range);
    const int rc = perform(&t, url, err);
    *stopped = t.stopped;
    return rc;
}

/* ---- requests of other programs */

static bool is_here(const char *url) {
    static const char *const hosts[] = { "localhost", "127.", "[::1]" };
    const char *host = strstr(url, "://");
    for (size_t i = 0; host && i < sizeof hosts / sizeof *hosts; i++)
        if (strncasecmp(host + 3, hosts[i], strlen(hosts[i])) == 0) return true;
    return false;
}

/* Seconds, also where the header has a date. */
static void retry_after(GetHttp *h, GetReply *reply) {
    curl_off_t seconds = 0;
    curl_easy_getinfo(h->easy, CURLINFO_RETRY_AFTER, &seconds);
    if (seconds > 0) reply->retry_after = (double)seconds;
}

/* "Expect" would wait a second for servers that do not know it. */
static struct curl_slist *request_headers(const GetRequest *r) {
    struct curl_slist *list = NULL;
    if (!r->body) return curl_slist_append(list, "Accept: application/json");
    for (size_t i = 0; i < 3; i++) {
        static const char *const lines[] = { "Content-Type: application/json",
                                             "Accept: text/event-stream, application/json", "Expect:" };
        struct curl_slist *more = curl_slist_append(list, lines[i]);
        if (!more) return curl_slist_free_all(list), NULL;
        list = more;
    }
    return list;
}

typedef struct Asked {
    GetHttp *h;
    GetSink sink;
    void *arg;
} Asked;

static bool pass_on(void *arg, const GetReply *reply, const void *bytes, size_t len) {
    const Asked *a = arg;
    GetReply with = *reply;
    retry_after(a->h, &with);
    return a->sink(a->arg, &with, bytes, len);
}

/* The URL that a redirect names is known only when the reply has ended: the sink does not get its page. */
static bool pass_unless_redirect(void *arg, const GetReply *reply, const void *bytes, size_t len) {
    return reply->status / 100 == 3 || pass_on(arg, reply, bytes, len);
}

int get_http_request(GetHttp *h, const GetRequest *r, GetSink sink, void *arg, GetReply *reply, QsfErr *err) {
    Asked asked = { h, sink, arg };
    Transfer t = { .h = h,
                   .reply = reply,
                   .sink = pass_unless_redirect,
                   .arg = &asked,
                   .socket = r->socket,
                   .stall = r->stall_seconds };
    struct curl_slist *list = request_headers(r);
    if (!list) return qsf_err_memory(err, "a request");
    prepare(&t, r->url);
    curl_easy_setopt(h->easy, CURLOPT_HTTPHEADER, list);
    curl_easy_setopt(h->easy, CURLOPT_CONNECTTIMEOUT, REQUEST_SECONDS);
    curl_easy_setopt(h->easy, CURLOPT_TCP_KEEPALIVE, 1L);
    curl_easy_setopt(h->easy, CURLOPT_BUFFERSIZE, 16L << 10);
    if (r->socket) curl_easy_setopt(h->easy, CURLOPT_UNIX_SOCKET_PATH, r->socket);
    if (r->socket || is_here(r->url)) curl_easy_setopt(h->easy, CURLOPT_NOPROXY, "*");
    if (r->body) {
        curl_easy_setopt(h->easy, CURLOPT_POSTFIELDS, r->body);
        curl_easy_setopt(h->easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)r->len);
    }
    const int rc = perform(&t, r->url, err);
    retry_after(h, reply);
    curl_slist_free_all(list);
    return rc;
}

void get_http_put_path(QsfStrbuf *b, const char *path) {
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~/";
    for (const char *p = path; *p; p++) {
        if (strchr(plain, *p))
            qsf_strbuf_addc(b, *p);
        else
            qsf_strbuf_addf(b, "%%%02X", (unsigned)(unsigned char)*p);
    }
}

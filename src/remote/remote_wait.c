/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A remote engine: servers that are not ready yet. */
#include <string.h>

#include "src/base/clock.h"
#include "src/remote/remote_impl.h"

#define WAIT_MOST  60u   /* seconds that a server may ask for: longer ones are for the user to decide */
#define LOADING_MS 1000u /* between two questions whether it has loaded its model */

/* llama.cpp answers nothing else until then, but listens (ggml-org/llama.cpp
 * tools/server/server-http.cpp). */
static bool is_loading(const QSFRemote *r, const char *said) {
    return r->head.status == 503 && strcasestr(said, "loading model");
}

/* 0: it is not worth it. */
static unsigned wait_ms(const QSFRemote *r, const char *said) {
    const long after = r->head.retry_after;
    const uint64_t spent = (qsf_now_ns() - r->job_begun) / 1000000u, most = (uint64_t)r->timeout * 1000u;
    unsigned ms = is_loading(r, said) ? LOADING_MS : 0;
    if (r->head.status != 503 && r->head.status != 429) return 0;
    if (after > (long)WAIT_MOST) return 0;
    if (after > 0) ms = (unsigned)after * 1000u;
    return spent + ms <= most ? ms : 0;
}

/* Not again for each of several waits that are as long. */
static void note(QSFRemote *r, const char *name, const char *said, unsigned ms) {
    const bool again = r->wait_said == ms;
    r->wait_said = ms;
    if (again) return;
    if (is_loading(r, said))
        qsf_remote_note(r, "%s is still loading its model: waiting for it (^C stops)", name);
    else
        qsf_remote_note(r, "%s: HTTP %ld%s%s; asking again in %u s (^C stops)", name, r->head.status,
                        *said ? ": " : "", said, ms / 1000u);
}

bool qsf_remote_waits(QSFRemote *r, const char *name) {
    QsfStrbuf said = QSF_STRBUF_INIT;
    qsf_reply_said(&r->head, qsf_strbuf_str(&r->body), r->body.len, &said);
    const unsigned ms = wait_ms(r, qsf_strbuf_str(&said));
    if (ms > 0) note(r, name, qsf_strbuf_str(&said), ms);
    qsf_strbuf_free(&said);
    r->delay_ms = ms;
    return ms > 0;
}

/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Who may ask for what: hosts, origins, keys, paths and methods. */
#include "serve/guard.h"

#include "serve/route.h"
#include "tests/harness/qsf_test.h"

static const char *const more_hosts[] = { "gpu.example", NULL };
static const char *const origins[] = { "http://ui.example:3000", NULL };

static void test_hosts(void **state) {
    static const char *const good[] = { "localhost", "LocalHost:8080", "127.0.0.1:1", "[::1]",
                                        "[::1]:80",  "10.1.2.3:5",     "gpu.example" };
    static const char *const bad[] = {
        /* clang-format off */
        "", "evil.example", "localhost.evil.example", "localhost:8x", "[::1",
        "[::1]x", "127.0.0.1.", "10.1.2.30", ":80", "a b",
        /* clang-format on */
    };
    const ServeGuard g = { .host = "10.1.2.3", .hosts = more_hosts };
    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        if (!serve_guard_host(&g, good[i])) fail_msg("refused: %s", good[i]);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        if (serve_guard_host(&g, bad[i])) fail_msg("accepted: %s", bad[i]);
    assert_false(serve_guard_host(&g, NULL));
    const ServeGuard path = { .host = "" }, any = { .host = "0.0.0.0", .anywhere = true };
    assert_true(serve_guard_host(&path, NULL) && serve_guard_host(&path, "x y"));
    assert_true(serve_guard_host(&any, "name.example:80") && !serve_guard_host(&any, "[x"));
}

static void test_origins(void **state) {
    const ServeGuard none = { .host = "127.0.0.1" }, some = { .host = "127.0.0.1", .origins = origins };
    (void)state;
    assert_true(serve_guard_origin(&none, NULL) && serve_guard_origin(&some, NULL));
    assert_true(serve_guard_origin(&some, "http://ui.example:3000"));
    assert_false(serve_guard_origin(&none, "http://127.0.0.1"));
    assert_false(serve_guard_origin(&some, "http://ui.example:30000"));
    assert_false(serve_guard_origin(&some, "null"));
}

static void test_keys(void **state) {
    ServeGuard g = { .host = "127.0.0.1" };
    (void)state;
    assert_true(serve_guard_key(&g, NULL));
    strcpy(g.key, "secret");
    g.key_len = 6;
    assert_true(serve_guard_key(&g, "Bearer secret") && serve_guard_key(&g, "bearer secret"));
    static const char *const bad[] = { "",
                                       "secret",
                                       "Bearer",
                                       "Bearer ",
                                       "Bearer secre",
                                       "Bearer secrets",
                                       "Bearer  secret",
                                       "Basic secret",
                                       "Bearer SECRET" };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        if (serve_guard_key(&g, bad[i])) fail_msg("accepted: '%s'", bad[i]);
    assert_false(serve_guard_key(&g, NULL));
}

static int route(const char *method, const char *path, const ServeHeaders *h, const ServeGuard *g,
                 ServeTarget *target) {
    ServeRoute r;
    ServeError e = { 0 };
    const bool ok = serve_route(&r, method, path, h, g, 100, &e);
    assert_true(ok == (e.status == 0));
    *target = r.target;
    return e.status;
}

static void test_routes(void **state) {
    static const struct {
        const char *method, *path;
        int status;
        ServeTarget target;
    } cases[] = {
        { "GET", "/health", 0, SERVE_HEALTH },
        { "HEAD", "/v1/models", 0, SERVE_MODELS },
        { "GET", "/v1/models/a/b", 0, SERVE_MODEL },
        { "POST", "/v1/chat/completions", 0, SERVE_CHAT },
        { "POST", "/v1/completions", 0, SERVE_COMPLETION },
        { "POST", "/v1/chat/completions/control", 0, SERVE_CONTROL },
        { "GET", "/v1/chat/completions/control", 405, SERVE_CONTROL },
        { "GET", "/v1/chat/completions", 405, SERVE_CHAT },
        { "POST", "/health", 405, SERVE_HEALTH },
        { "OPTIONS", "/v1/completions", 405, SERVE_COMPLETION },
        { "GET", "/", 404, SERVE_PREFLIGHT },
        { "GET", "/v1/models/", 404, SERVE_PREFLIGHT },
        { "POST", "/v1/chat/completions/", 404, SERVE_PREFLIGHT },
    };
    const ServeGuard g = { .host = "127.0.0.1", .origins = origins };
    ServeGuard keyed = g;
    ServeHeaders h = { .host = "localhost", .length = "100" };
    ServeTarget t;
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const int status = route(cases[i].method, cases[i].path, &h, &g, &t);
        if (status != cases[i].status || t != cases[i].target) fail_msg("%s: %d", cases[i].path, status);
    }
    h.length = "101";
    assert_int_equal(route("POST", "/v1/completions", &h, &g, &t), 413);
    h.length = "1x";
    assert_int_equal(route("POST", "/v1/completions", &h, &g, &t), 400);
    h = (ServeHeaders){ .host = "evil.example" };
    assert_int_equal(route("GET", "/health", &h, &g, &t), 403);
    keyed.key_len = 1;
    h = (ServeHeaders){ .host = "localhost", .origin = origins[0] };
    assert_int_equal(route("GET", "/health", &h, &keyed, &t), 0);
    assert_int_equal(route("GET", "/v1/models", &h, &keyed, &t), 401);
    assert_int_equal(route("GET", "/nothing", &h, &keyed, &t), 401); /* paths are not told to everyone */
    assert_int_equal(route("OPTIONS", "/v1/models", &h, &keyed, &t), 0);
    assert_int_equal(t, SERVE_PREFLIGHT);
}

static void test_targets(void **state) {
    static const char *const cases[][3] = {
        { "/v1/models", "/v1/models", "localhost" },
        { "http://evil.example:80/v1/models", "/v1/models", "evil.example:80" },
        { "HTTP://127.0.0.1/", "/", "127.0.0.1" },
        { "http:///v1", "/v1", "" },
        { "http://a", "http://a", "localhost" },
        { "http://a-host-that-is-too-long/", "http://a-host-that-is-too-long/", "localhost" },
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ServeHeaders h = { .host = "localhost" };
        char host[20];
        assert_string_equal(serve_route_path(cases[i][0], &h, host, sizeof host), cases[i][1]);
        assert_string_equal(h.host, cases[i][2]);
    }
}

/* A request that programs may read in different ways is refused. */
static void test_headers(void **state) {
    static const struct {
        const char *name[3], *value[3];
        int status;
        bool skippable;
    } cases[] = {
        { { "host", "Content-Length" }, { "localhost", "10" }, 0, true },
        { { "HOST", "Transfer-Encoding" }, { "localhost", "Chunked" }, 0, true },
        { { "Host", "X-A", "X-A" }, { "localhost", "a\tb", "" }, 0, false },
        { { "Host", "Content-Length", "content-length" }, { "localhost", "10", "10" }, 400, false },
        { { "Host", "Content-Length", "Transfer-Encoding" }, { "localhost", "10", "chunked" }, 400, false },
        { { "Host", "Host" }, { "localhost", "127.0.0.1" }, 400, false },
        { { "Host", "X-A " }, { "localhost", "b" }, 400, false },
        { { "Host", "" }, { "localhost", "b" }, 400, false },
        { { "Host", "X-A" }, { "localhost", "b\rc" }, 400, false },
        { { "Host", "Transfer-Encoding" }, { "localhost", "gzip, chunked" }, 400, false },
        { { "Host", "Content-Length", "Content-Encoding" }, { "localhost", "10", "gzip" }, 400, true },
        { { "Host", "Content-Length", "Expect" }, { "localhost", "1000", "100-continue" }, 413, false },
        { { "Host", "Content-Length" }, { "localhost", "1000" }, 413, true },
        { { "Host", "Content-Length" }, { "localhost", "1001" }, 413, false },
        { { "Content-Length" }, { "10" }, 403, true },
    };
    const ServeGuard g = { .host = "127.0.0.1" };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ServeHeaders h = { 0 };
        ServeTarget t;
        for (size_t k = 0; k < 3 && cases[i].name[k] != NULL; k++)
            serve_headers_add(&h, cases[i].name[k], cases[i].value[k]);
        const int status = route("POST", "/v1/completions", &h, &g, &t);
        if (status != cases[i].status) fail_msg("case %zu: %d", i, status);
        if (serve_headers_skippable(&h, 1000) != cases[i].skippable) fail_msg("case %zu: skippable", i);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_hosts),  cmocka_unit_test(test_origins), cmocka_unit_test(test_keys),
        cmocka_unit_test(test_routes), cmocka_unit_test(test_headers), cmocka_unit_test(test_targets),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

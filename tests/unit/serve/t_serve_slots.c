/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Which snapshot a request continues, and their folder. */
#include "serve/slots.h"

#include <dirent.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/harness/qsf_test.h"

static char base[] = "/tmp/t_serve_slots.XXXXXX";
static const char *from; /* of the last choice */

static int open_slots(ServeSlots *s, uint32_t n) {
    const ServeOptions o = { .snapshots = n, .snapshot_dir = base };
    QsfErr err = { 0 };
    return serve_slots_open(s, &o, &err);
}

/* A request of n messages: "system" if the first text begins with S, then user and assistant in turn. */
static char *choose(ServeSlots *s, const char *const *texts, size_t n) {
    QSFMessage m[8];
    for (size_t i = 0; i < n; i++) {
        const bool system = texts[0][0] == 'S';
        m[i] = (QSFMessage){ .role = system && i == 0        ? "system"
                                     : (i - system) % 2 == 0 ? "user"
                                                             : "assistant",
                             .content = texts[i],
                             .len = strlen(texts[i]) };
    }
    const ServeRequest r = { .chat = true, .messages = m, .n_messages = n };
    const char *path = serve_slots_choose(s, &r, &from);
    return path != NULL ? strdup(path) : NULL;
}

#define CHOOSE(s, ...) \
    choose(s, (const char *const[]){ __VA_ARGS__ }, sizeof((const char *[]){ __VA_ARGS__ }) / sizeof(char *))

static void same(char *a, char *b, bool wanted) {
    assert_non_null(a);
    assert_non_null(b);
    assert_true((strcmp(a, b) == 0) == wanted);
    free(b);
}

static void test_choice(void **state) {
    ServeSlots s;
    (void)state;
    assert_int_equal(open_slots(&s, 3), QSF_OK);
    char *a = CHOOSE(&s, "S", "hello");
    serve_slots_answered(&s, " answer a\n", 10);
    char *b = CHOOSE(&s, "S", "other");
    serve_slots_answered(&s, "answer b", 8);
    same(a, strdup(b), false);                                   /* only the system prompt is the same */
    assert_string_equal(from, a);                                /* which is taken from there */
    same(a, CHOOSE(&s, "S", "hello", "answer a", "more"), true); /* white space does not count */
    serve_slots_answered(&s, "answer c", 8);
    same(b, CHOOSE(&s, "S", "other", "answer b", "and"), true);
    same(a, CHOOSE(&s, "S", "hello", "answer a", "more"), true);    /* again */
    same(a, CHOOSE(&s, "S", "hello", "answer a", "changed"), true); /* its last message */
    serve_slots_answered(&s, "x", 1);
    same(a, CHOOSE(&s, "S", "hello", "answer a", "changed", "x", "y", "z"), true);
    char *c = CHOOSE(&s, "S", "hello"); /* a new conversation that begins like a long one */
    same(a, strdup(c), false);
    assert_string_equal(from, a);
    char *d = CHOOSE(&s, "alone"); /* replaces what was used least recently */
    same(b, strdup(d), false);
    assert_null(from);
    same(b, CHOOSE(&s, "S", "other", "answer b", "and"), false);
    free(a), free(b), free(c), free(d);
    serve_slots_close(&s);
}

/* One slot: what it has is the beginning of the next conversation. */
static void test_one(void **state) {
    ServeSlots s;
    (void)state;
    assert_int_equal(open_slots(&s, 1), QSF_OK);
    char *a = CHOOSE(&s, "S", "hello");
    same(a, CHOOSE(&s, "S", "other"), true);
    assert_null(from);
    same(a, CHOOSE(&s, "T"), false);
    free(a);
    serve_slots_close(&s);
}

/* The one that is read is not replaced, although it was not used for longest. */
static void test_alike(void **state) {
    ServeSlots s;
    (void)state;
    assert_int_equal(open_slots(&s, 2), QSF_OK);
    char *a = CHOOSE(&s, "S", "hello"), *b = CHOOSE(&s, "alone");
    char *c = CHOOSE(&s, "S", "other");
    assert_string_equal(from, a);
    same(c, strdup(a), false);
    same(c, strdup(b), false);
    free(a), free(b), free(c);
    serve_slots_close(&s);
}

/* Of several that begin alike the one with most turns is read, and kept. */
static void test_branches(void **state) {
    ServeSlots s;
    (void)state;
    assert_int_equal(open_slots(&s, 3), QSF_OK);
    char *a = CHOOSE(&s, "S", "1", "2", "3", "4", "5");
    same(a, CHOOSE(&s, "S", "1", "2", "3", "4", "5", "6"), true);
    for (int i = 0; i < 4; i++) {
        const char *branch[] = { "one", "two", "three", "four" };
        same(a, CHOOSE(&s, "S", "1", "2", branch[i], "x", "y"), false);
        assert_non_null(from);
        assert_string_equal(from, a);
    }
    free(a);
    serve_slots_close(&s);
}

static void test_prompts(void **state) {
    char text[2048];
    ServeSlots s;
    QSFMessage m = { .role = "user", .content = text, .len = 600 };
    ServeRequest r = { .chat = false, .messages = &m, .n_messages = 1 };
    (void)state;
    memset(text, 'a', sizeof text);
    assert_int_equal(open_slots(&s, 2), QSF_OK);
    char *a = strdup(serve_slots_choose(&s, &r, &from));
    m.len = 1200;
    assert_string_equal(a, serve_slots_choose(&s, &r, &from));
    text[0] = 'b';
    assert_string_not_equal(a, serve_slots_choose(&s, &r, &from));
    m.len = 100;
    assert_null(serve_slots_choose(&s, &r, &from)); /* too short */
    free(a);
    serve_slots_close(&s);
    assert_int_equal(open_slots(&s, 0), QSF_OK);
    assert_null(serve_slots_choose(&s, &r, &from));
    serve_slots_close(&s);
}

static unsigned count(const char *dir) {
    unsigned n = 0;
    DIR *d = opendir(dir);
    for (const struct dirent *e; d != NULL && (e = readdir(d)) != NULL;) n += e->d_name[0] != '.';
    if (d != NULL) closedir(d);
    return n;
}

/* Folders of servers that do not run are removed, those of others are not. */
static void test_folder(void **state) {
    ServeSlots s, other;
    char stale[200], file[300];
    (void)state;
    assert_int_equal(open_slots(&other, 1), QSF_OK);
    snprintf(stale, sizeof stale, "%s/serve.killed", base);
    assert_int_equal(mkdir(stale, 0700), 0);
    for (int i = 0; i < 2; i++) {
        snprintf(file, sizeof file, "%s/%s", stale, i == 0 ? "lock" : "1.qsfsnap");
        FILE *f = fopen(file, "w");
        assert_non_null(f);
        fclose(f);
    }
    assert_int_equal(count(base), 2);
    assert_int_equal(open_slots(&s, 1), QSF_OK);
    assert_int_equal(count(base), 2); /* of both, and not the one that was killed */
    assert_int_equal(access(stale, F_OK), -1);
    serve_slots_close(&s);
    serve_slots_close(&other);
    assert_int_equal(count(base), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_choice),   cmocka_unit_test(test_one),     cmocka_unit_test(test_alike),
        cmocka_unit_test(test_branches), cmocka_unit_test(test_prompts), cmocka_unit_test(test_folder),
    };
    if (mkdtemp(base) == NULL) return 1;
    const int rc = cmocka_run_group_tests(tests, NULL, NULL);
    return rmdir(base) == 0 ? rc : 1;
}

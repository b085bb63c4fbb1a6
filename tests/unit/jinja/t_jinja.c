/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The template engine compared with the output of Python's jinja2 for real templates and for small ones that
 * each test one language feature; its limits; the origin of the characters of a rendering. */
#include "tests/harness/qsf_test.h"

#include "src/base/interrupt.h"
#include "src/base/json.h"
#include "src/jinja/jinja.h"

/* Number of cases of the oracle, and of those that are equal. */
#define N_CASES    2580
#define N_SNIPPETS 332

static const struct tm oracle_now = { .tm_year = 126,
                                      .tm_mon = 0,
                                      .tm_mday = 15,
                                      .tm_hour = 12,
                                      .tm_min = 34,
                                      .tm_sec = 56,
                                      .tm_wday = 4,
                                      .tm_yday = 14 };

static char *read_file(const char *path, size_t *len) {
    FILE *f = fopen(path, "rb");
    if (f == NULL) return NULL;
    size_t cap = 1 << 16, n;
    char *text = malloc(cap);
    *len = 0;
    while (text != NULL && (n = fread(text + *len, 1, cap - *len, f)) > 0) {
        *len += n;
        if (*len == cap) text = realloc(text, cap *= 2);
    }
    fclose(f);
    return text;
}

static QsfJson *json_of(const char *text, size_t len) {
    QsfErr e = { 0 };
    QsfJson *j = qsf_json_parse(text, len, &e);
    if (j == NULL) fail_msg("%s", e.msg);
    return j;
}

/* --- the oracle --- */

typedef struct Oracle {
    QsfJson *conversations;
    const char *folder;
    char name[200]; /* of the compiled template */
    QsfJinja *t;
    QsfErr compile_error;
} Oracle;

static void load_template(Oracle *o, const char *name) {
    char path[1024];
    size_t len;
    if (strcmp(name, o->name) == 0) return;
    snprintf(o->name, sizeof o->name, "%s", name);
    snprintf(path, sizeof path, "%s/templates/%s.jinja", o->folder, name);
    char *text = read_file(path, &len);
    if (text == NULL) fail_msg("%s is missing", path);
    qsf_jinja_free(o->t);
    qsf_err_clear(&o->compile_error);
    qsf_jinja_compile(&o->t, text, len, NULL, &o->compile_error);
    free(text);
}

static void set_members(QsfJinjaVars *v, const QsfJson *object) {
    const char *key;
    const QsfJson *value;
    for (const void *it = NULL; (it = qsf_json_next(object, it, &key, &value)) != NULL;)
        qsf_jinja_set(v, key, qsf_jinja_from_json(qsf_jinja_vars_mem(v), value));
}

/* Renders t and compares it with the expected text of the case. Prints the difference on request. */
static bool same(const QsfJinja *t, const QsfErr *compile_error, QsfJinjaVars *v, const QsfJson *c) {
    QsfJinjaOut out = { 0 };
    QsfErr e = { 0 };
    size_t want_len = 0, error_len = 0;
    const char *want = qsf_json_string(qsf_json_get(c, "expected"), &want_len);
    const char *type = qsf_json_string(qsf_json_get(c, "error_type"), NULL);
    const char *error = qsf_json_string(qsf_json_get(c, "error"), &error_len);
    qsf_jinja_set_now(v, &oracle_now);
    int rc = t == NULL ? compile_error->code : qsf_jinja_render(t, v, &out, &e);
    bool ok = want != NULL ? rc == QSF_OK && out.text.len == want_len &&
                                 memcmp(qsf_strbuf_str(&out.text), want, want_len) == 0
                           : rc != QSF_OK;
    if (want == NULL && strcmp(type, "TemplateError") == 0)
        ok = out.raised && out.text.len == error_len &&
             memcmp(qsf_strbuf_str(&out.text), error, error_len) == 0;
    if (!ok && getenv("QSF_SHOW_DIFFERENCES") != NULL)
        printf("--- %s\n want %s\n got  %s %s%s\n", qsf_json_string(qsf_json_get(c, "id"), NULL),
               want != NULL ? want : error, qsf_strbuf_str(&out.text), e.msg,
               t == NULL ? compile_error->msg : "");
    qsf_jinja_out_free(&out);
    return ok;
}

static bool run_case(Oracle *o, const QsfJson *c) {
    const QsfJson *conversation = qsf_json_get(o->conversations,
                                               qsf_json_string(qsf_json_get(c, "conversation"), NULL));
    QsfJinjaVars *v = qsf_jinja_vars_new(NULL);
    assert_non_null(v);
    load_template(o, qsf_json_string(qsf_json_get(c, "template"), NULL));
    qsf_jinja_set(v, "tools", qsf_j_none());
    qsf_jinja_set(v, "documents", qsf_j_none());
    static const char *const names[] = { "messages", "tools", "documents" };
    for (size_t i = 0; i < 3; i++)
        if (qsf_json_get(conversation, names[i]) != NULL)
            qsf_jinja_set(v, names[i],
                          qsf_jinja_from_json(qsf_jinja_vars_mem(v), qsf_json_get(conversation, names[i])));
    set_members(v, qsf_json_get(c, "vars"));
    bool ok = same(o->t, &o->compile_error, v, c);
    qsf_jinja_vars_free(v);
    return ok;
}

static bool run_snippet(const QsfJson *c) {
    size_t len;
    QsfJinja *t;
    QsfErr e = { 0 };
    const char *text = qsf_json_string(qsf_json_get(c, "template"), &len);
    QsfJinjaVars *v = qsf_jinja_vars_new(NULL);
    assert_non_null(v);
    qsf_jinja_compile(&t, text, len, NULL, &e);
    set_members(v, qsf_json_get(c, "vars"));
    bool ok = same(t, &e, v, c);
    qsf_jinja_vars_free(v);
    qsf_jinja_free(t);
    return ok;
}

/* Runs every line of a file of JSON lines; counts the equal ones. */
static int run_lines(const char *path, Oracle *o, int *total) {
    size_t len;
    char *text = read_file(path, &len);
    int equal = 0;
    *total = 0;
    assert_non_null(text);
    for (size_t i = 0; i < len;) {
        char *nl = memchr(text + i, '\n', len - i);
        size_t end = nl == NULL ? len : (size_t)(nl - text);
        if (end > i) {
            QsfJson *c = json_of(text + i, end - i);
            equal += o == NULL ? run_snippet(c) : run_case(o, c);
            ++*total;
            qsf_json_free(c);
        }
        i = end + 1;
    }
    free(text);
    return equal;
}

static void test_snippets(void **state) {
    (void)state;
    const char *path = qsf_test_data("oracle/templates/snippets.jsonl");
    int total;
    if (path == NULL) skip();
    int equal = run_lines(path, NULL, &total);
    printf("snippets: %d of %d equal\n", equal, total);
    assert_true(equal >= N_SNIPPETS);
}

static void test_cases(void **state) {
    (void)state;
    char folder[1000], path[1100];
    const char *found = qsf_test_data("oracle/templates");
    size_t len;
    int total;
    if (found == NULL) skip();
    snprintf(folder, sizeof folder, "%s", found);
    snprintf(path, sizeof path, "%s/conversations.json", folder);
    char *text = read_file(path, &len);
    assert_non_null(text);
    Oracle o = { .conversations = json_of(text, len), .folder = folder };
    free(text);
    snprintf(path, sizeof path, "%s/cases.jsonl", folder);
    int equal = run_lines(path, &o, &total);
    printf("cases: %d of %d equal\n", equal, total);
    qsf_json_free(o.conversations);
    qsf_jinja_free(o.t);
    assert_true(equal >= N_CASES);
}

/* --- errors --- */

static void test_compile_errors(void **state) {
    static const struct {
        const char *source, *part;
    } bad[] = {
        { "a\n{% if %}", "line 2: expected an expression" },
        { "{% if x %}", "'elif' is missing" },
        { "{{ a b }}", "line 1: expected" },
        { "\n\n{{ x|nope }}", "line 3: not supported: there is no filter 'nope'" },
        { "{{ x is nope }}", "there is no test 'nope'" },
        { "{% extends 'x' %}", "not supported: tag 'extends'" },
        { "{{ 'abc }}", "string without its end" },
        { "{# x", "comment without its end" },
        { "{{ [1, 2 }}", "unexpected '}'" },
        { "{{ 99999999999999999999 }}", "integer too large" },
        { "{% break %}", "outside of a loop" },
        { "{% endfor %}", "unexpected tag 'endfor'" },
        { "{{ 1 + }}", "expected an expression" },
        { "{% raw %}x", "raw block without its end" },
        { "{{ '\\x1' }}", "malformed escape" },
        { "{{ x", "without its end" },
        { "{% for x in y %}{% if z %}{% endfor %}{% endif %}", "unexpected tag 'endfor'" },
        { "{{ !x }}", "unexpected character" },
    };
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        QsfJinja *t;
        QsfErr e = { 0 };
        assert_int_equal(qsf_jinja_compile(&t, bad[i].source, strlen(bad[i].source), NULL, &e), QSF_E_MODEL);
        assert_null(t);
        qsf_test_expect_err(&e, QSF_E_MODEL, bad[i].part);
    }
}

/* Renders source with only an untrusted string x = "<X>"; NULL in *err->msg on success. */
static void render(const char *source, size_t len, const QsfJinjaLimits *limits, QsfJinjaOut *out,
                   QsfErr *e) {
    QsfJinja *t;
    *out = (QsfJinjaOut){ 0 };
    if (qsf_jinja_compile(&t, source, len, limits, e) != QSF_OK) return;
    QsfJinjaVars *v = qsf_jinja_vars_new(limits);
    assert_non_null(v);
    qsf_jinja_set(v, "x", qsf_j_str(qsf_jinja_vars_mem(v), "<X>", 3, QSF_J_DATA));
    qsf_jinja_set(v, "mixed", qsf_j_str(qsf_jinja_vars_mem(v), " Straße ", 9, QSF_J_DATA));
    qsf_jinja_render(t, v, out, e);
    qsf_jinja_vars_free(v);
    qsf_jinja_free(t);
}

/* Attribute arguments of filters: paths, integers, defaults for each part of a path. The texts are those of
 * Python's jinja2 3.1. */
static void test_attributes(void **state) {
    static const struct {
        const char *source, *text;
    } rows[] = {
        { "{{ [{'a': {'b': 'x'}}, {'a': {}}, {}, {'a': {'b': 'Y'}}]|map(attribute='a.b', "
          "default='en')|join(',') }}",
          "x,en,en,Y" },
        { "{{ [{'a': {'b': 'x'}}, {'a': {}}, {}, {'a': {'b': 'Y'}}]|map(attribute='a.b', default={'b': "
          "'d'})|list }}",
          "['x', {'b': 'd'}, 'd', 'Y']" },
        { "{{ [['b', 2], ['a', 1], ['B', 0]]|map(attribute=1)|list }}", "[2, 1, 0]" },
        { "{{ [['b', 2], ['a', 1], ['B', 0]]|map(attribute=-1)|list }}", "[2, 1, 0]" },
        { "{{ [['b', 2], ['a', 1], ['B', 0]]|map(attribute='0.0', default='?')|list }}", "['b', 'a', 'B']" },
        { "{{ [[], [7]]|map(attribute=0, default=none)|list|length }}", "2" },
        { "{{ [{'a': {'b': 1}}, {'a': {}}]|selectattr('a.b', 'defined')|list|length }}", "1" },
        { "{{ [['b', 2], ['a', 1], ['B', 0]]|sort(attribute=1, reverse=true)|map(attribute=0)|join }}",
          "baB" },
        { "{{ [{'a': 1, 'b': 2}, {'a': 0, 'b': 3}, {'a': 1, 'b': "
          "1}]|sort(attribute='a,b')|map(attribute='b')|join }}",
          "312" },
        { "{{ [3, 1]|sort(attribute='x')|list }}", "[3, 1]" },
        { "{{ [none, none]|sort|list }}", "[None, None]" },
        { "{{ [['b', 2], ['a', 1], ['B', 0]]|min(attribute=1) }}{{ [['b', 2], ['a', 1], ['B', "
          "0]]|max(attribute='1') }}",
          "['B', 0]['b', 2]" },
        { "{{ [{'a,b': 2}, {'a,b': 1}]|min(attribute='a,b') }}", "{'a,b': 1}" },
        { "{{ [['b', 2], ['a', 1], ['B', 0]]|sum(attribute='1') }}{{ [['b', 2], ['a', 1], ['B', "
          "0]]|sum(attribute=1, start=10) }}",
          "313" },
        { "{{ [['b', 2], ['a', 1], ['B', 0]]|unique(attribute='0')|list }}", "[['b', 2], ['a', 1]]" },
        { "{{ [['b', 2], ['a', 1], ['B', 0]]|groupby('0')|list }}",
          "[('a', [['a', 1]]), ('b', [['b', 2], ['B', 0]])]" },
        { "{{ [{'a': {'b': 1}}, {'a': {}}]|groupby('a.b', default=2)|list }}",
          "[(1, [{'a': {'b': 1}}]), (2, [{'a': {}}])]" },
        { "{{ [['b', 2], ['a', 1], ['B', 0]]|join('-', attribute='1') }}", "2-1-0" },
    };
    static const char *const bad[] = { "{{ [1]|map(attribute='a', foo=1)|list }}",
                                       "{{ [1, 2]|groupby('a')|list }}", "{{ [[1]]|unique|list }}",
                                       "{{ [{}]|sum(attribute='a') }}", "{{ [{}, {}]|min(attribute='a') }}" };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        QsfErr e = { 0 };
        QsfJinjaOut out;
        render(rows[i].source, strlen(rows[i].source), NULL, &out, &e);
        qsf_test_expect_ok(e.code, &e);
        assert_string_equal(qsf_strbuf_str(&out.text), rows[i].text);
        qsf_jinja_out_free(&out);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        QsfErr e = { 0 };
        QsfJinjaOut out;
        render(bad[i], strlen(bad[i]), NULL, &out, &e);
        if (e.code != QSF_E_RUNTIME) fail_msg("no error in %s", bad[i]);
        qsf_jinja_out_free(&out);
    }
}

static void test_runtime_errors(void **state) {
    static const struct {
        const char *source, *part;
    } bad[] = {
        { "{{ 1 // 0 }}", "division by zero" },
        { "{{ 1 % 0 }}", "division by zero" },
        { "{{ 1.0 / 0 }}", "division by zero" },
        { "{{ (-9223372036854775807 - 1) // -1 }}", "integer overflow" },
        { "{{ 9223372036854775807 + 1 }}", "integer overflow" },
        { "{{ 9223372036854775807 * 2 }}", "integer overflow" },
        { "{{ 10 ** 19 }}", "integer overflow" },
        { "{{ -(-9223372036854775807 - 1) }}", "integer overflow" },
        { "{{ (-9223372036854775807 - 1)|abs }}", "integer overflow" },
        { "{{ 'a' * 10 ** 10 }}", "too large" },
        { "{{ [1] * 10 ** 10 }}", "too large" },
        { "{{ range(10 ** 9) }}", "100000" },
        { "{{ range(-9223372036854775807, 9223372036854775807) }}", "100000" },
        { "{{ 'a'|center(10 ** 12) }}", "too long" },
        { "{{ '%99999d' % 1 }}", "width" },
        { "{{ 'x'|indent(10 ** 12) }}", "too large" },
        { "{{ 'a'.zfill(10 ** 15) }}", "too long" },
        { "{{ nothing.x }}", "'nothing' is undefined" },
        { "{{ x.y.z }}", "str has no 'y'" },
        { "\n\n{{ nothing() }}", "line 3: " },
        { "{{ x.append(1) }}", "no method 'append'" },
        { "{% if true %}{{ x|nope }}{% endif %}", "there is no filter 'nope'" },
        { "{{ raise_exception('no ' ~ x) }}", "no <X>" },
        { "{{ x + 1 }}", "'+' does not work on str and int" },
        { "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}", "nested deeper" },
        { "{% set ns = namespace(l=[]) %}{% for i in range(1000) %}{% set ns.l = [ns.l] %}{% endfor %}{{ "
          "ns.l }}",
          "nested deeper" },
        { "{% set ns = namespace(l=[]) %}{% for i in range(1000) %}{% set ns.l = [ns.l] %}{% endfor %}{{ "
          "ns.l|tojson }}",
          "nested deeper" },
        { "{% set n = namespace() %}{% set n.a = n %}{{ n }}", "nested deeper" },
        { "{% for a in range(1000) %}{% for b in range(1000) %}{{ a }}{% endfor %}{% endfor %}", "steps" },
        { "{% set l = [0] * 1000 %}{% for a in range(1000) %}{% if 1 in l %}{% endif %}{% endfor %}",
          "steps" },
        { "{% set n = namespace(s='aaaaaaaaaaaaaaaa') %}{% for a in range(40) %}{% set n.s = n.s ~ n.s %}{% "
          "endfor %}",
          "limit" },
        { "{% for a in range(40) %}{% for b in range(10000) %}{{ 'aaaaaaaaaaaaaaaaaaaa' }}{% endfor %}{% "
          "endfor %}",
          "beyond the limit" },
        { "{% for a in range(100000) %}{% set l = [1,2,3,4,5,6,7,8] %}{% endfor %}", "memory" },
        { "{{ x.__class__() }}", "no method" },
        { "{{ loop() }}", "undefined" },
        { "{{ x is le nothing }}", "an undefined value has no order" },
        { "{{ x is ge 1 }}", "str and int have no order" },
        { "{{ 1 is not in 1 }}", "'in' does not work on int" },
        { "{{ x <= [1] }}", "have no order" },
        { "{{ {[]: 1} }}", "cannot be a key" },
    };
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        QsfErr e = { 0 };
        QsfJinjaOut out;
        render(bad[i].source, strlen(bad[i].source), NULL, &out, &e);
        if (e.code == QSF_OK) fail_msg("no error in %s", bad[i].source);
        qsf_test_expect_err(&e, QSF_E_RUNTIME, bad[i].part);
        assert_int_equal(out.raised, strncmp(bad[i].source, "{{ raise", 8) == 0);
        qsf_jinja_out_free(&out);
    }
}

/* Source text that nests or grows without limit is refused. */
static void test_hostile_sources(void **state) {
    static const struct {
        const char *before, *unit, *after;
    } shapes[] = {
        { "{{ ", "(", "" },
        { "{{ ", "-", "1 }}" },
        { "{{ ", "not ", "1 }}" },
        { "{{ ", "[", "" },
        { "{{ ", "{1:", "" },
        { "{{ x", ".a", " }}" },
        { "{{ x", "[0]", " }}" },
        { "{{ x", "|e", " }}" },
        { "{{ x", "()", " }}" },
        { "", "{% if x %}", "" },
        { "", "{% for a in x %}", "" },
        { "{{ ", "1 if x else ", "1 }}" },
        { "{{ 1", " if x", " }}" },
        { "{% set ", "(", " = 1 %}" },
        { "{{ ", "f(", "" },
        { "{{ x", " is none", " }}" },
        { "{{ ", "\"a\" ", "}}" },
        { "", "{% macro f() %}", "" },
    };
    (void)state;
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        QsfStrbuf b = QSF_STRBUF_INIT;
        QsfErr e = { 0 };
        QsfJinjaOut out;
        qsf_strbuf_adds(&b, shapes[i].before);
        for (int k = 0; k < 20000; k++) qsf_strbuf_adds(&b, shapes[i].unit);
        qsf_strbuf_adds(&b, shapes[i].after);
        render(qsf_strbuf_str(&b), b.len, NULL, &out, &e);
        if (e.code == QSF_OK) fail_msg("no error in many times %s", shapes[i].unit);
        qsf_jinja_out_free(&out);
        qsf_strbuf_free(&b);
    }
}

static void test_interrupted(void **state) {
    static const char source[] = "{% for i in range(100000) %}{{ i }}{% endfor %}";
    (void)state;
    QsfJinjaOut out = { 0 };
    QsfErr e = { 0 };
    atomic_int stop = 1;
    const atomic_int *before = qsf_interrupt_watch(&stop);
    render(source, sizeof source - 1, NULL, &out, &e);
    (void)qsf_interrupt_watch(before);
    assert_int_equal(e.code, QSF_E_INTERRUPTED);
    qsf_jinja_out_free(&out);
}

/* Long sequences of operators are not nesting. */
static void test_long_chains(void **state) {
    static const char *const units[] = { " + 1", " ~ 1", " or 0", " == 1", " - 1 * 1" };
    (void)state;
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        QsfStrbuf b = QSF_STRBUF_INIT;
        QsfErr e = { 0 };
        QsfJinjaOut out;
        qsf_strbuf_adds(&b, "{{ 0");
        for (int k = 0; k < 5000; k++) qsf_strbuf_adds(&b, units[i]);
        qsf_strbuf_adds(&b, " }}");
        render(qsf_strbuf_str(&b), b.len, NULL, &out, &e);
        qsf_test_expect_ok(e.code, &e);
        qsf_jinja_out_free(&out);
        qsf_strbuf_free(&b);
    }
}

/* --- origin of characters --- */

/* Tags as one letter per byte: T template, d data, L the last message. */
static void tags_of(const QsfJinjaOut *out, char *text, size_t cap) {
    size_t at = 0;
    for (size_t i = 0; i < out->n_runs; i++)
        for (; at < out->runs[i].end && at + 1 < cap; at++) text[at] = "dTL"[out->runs[i].tag];
    text[at] = '\0';
}

static void test_tags(void **state) {
    static const struct {
        const char *source, *text, *tags;
    } cases[] = {
        { "a{{ x }}b", "a<X>b", "TdddT" },
        { "{{ 'a' + x + 'b' }}", "a<X>b", "TdddT" },
        { "{{ 'a' ~ x ~ 1 }}", "a<X>1", "TdddT" },
        { "{{ ('a' + x)[1:] }}", "<X>", "ddd" },
        { "{{ ('a' + x + 'b')[1:-1] }}", "<X>", "ddd" },
        { "{{ ('a' + x)[::-1] }}", ">X<a", "dddT" },
        { "{{ (' ' + x + ' ')|trim }}", "<X>", "ddd" },
        { "{{ ('a' + x)|upper }}", "A<X>", "Tddd" },
        { "{{ x.replace('X', 'Y') }}", "<Y>", "dTd" },
        { "{{ 'aba'.replace('b', x) }}", "a<X>a", "TdddT" },
        { "{{ [x, 'a']|join('-') }}", "<X>-a", "dddTT" },
        { "{{ ('a,' + x).split(',')[1] }}", "<X>", "ddd" },
        { "{% set y %}a{{ x }}{% endset %}{{ y }}", "a<X>", "Tddd" },
        { "{% macro f(v) %}a{{ v }}{% endmacro %}{{ f(x) }}", "a<X>", "Tddd" },
        { "{{ '%s!' % x }}", "<X>!", "dddT" },
        { "{{ '{}!'.format(x) }}", "<X>!", "dddT" },
        { "{{ x|e }}", "&lt;X&gt;", "ddddddddd" },
        { "{{ [x] }}", "['<X>']", "TTdddTT" },
        { "{{ x|tojson }}", "\"<X>\"", "TdddT" },
        { "{{ {'k': x}.k }}", "<X>", "ddd" },
        { "{{ x * 2 }}", "<X><X>", "dddddd" },
        { "{{ x[0] }}", "<", "d" },
        { "{% for ch in 'a' + x %}{{ ch }}{% endfor %}", "a<X>", "Tddd" },
        { "{{ x|string|list|last }}", ">", "d" },
        { "{{ mixed|trim|upper }}", "STRASSE", "ddddddd" },
        { "{{ 'a' + mixed.strip() + x }}", "aStraße<X>", "Tdddddddddd" },
        { "{% filter upper %}a{{ x|lower }}{% endfilter %}", "A<X>", "Tddd" },
        { "{{ x|indent(2, true) }}", "  <X>", "TTddd" },
        { "{{ x if x == '<X>' else 'no' }}", "<X>", "ddd" },
        { "{{ ('<' + 'X' + '>') == x }}", "True", "TTTT" },
        { "{{ x|length }}", "3", "T" },
        { "{{ x|center(5) }}", " <X> ", "TdddT" },
        { "{{ x|safe + '<' }}", "<X>&lt;", "dddTTTT" },
        { "{{ ('a' ~ x ~ 'b' ~ x)[2:6] }}", "X>b<", "ddTd" },
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        QsfErr e = { 0 };
        QsfJinjaOut out;
        char tags[64];
        render(cases[i].source, strlen(cases[i].source), NULL, &out, &e);
        qsf_test_expect_ok(e.code, &e);
        assert_string_equal(qsf_strbuf_str(&out.text), cases[i].text);
        tags_of(&out, tags, sizeof tags);
        if (strcmp(tags, cases[i].tags) != 0)
            fail_msg("%s: tags %s, not %s", cases[i].source, tags, cases[i].tags);
        qsf_jinja_out_free(&out);
    }
}

static void test_limits(void **state) {
    static const QsfJinjaLimits tight = { .steps = 50, .memory = 1 << 20, .output = 100, .depth = 20 };
    static const struct {
        const char *source, *part;
    } bad[] = {
        { "{% for i in range(20) %}{{ i }}{% endfor %}", "50 steps" },
        { "{{ 'a' * 101 }}", "too large" },
        { "{{ 'a' ~ '%60s' % 1 }}{{ '%60s' % 2 }}", "beyond the limit of 100" },
        { "{{ ((((((((((((((((((((1)+1)+1)+1)+1)+1)+1)+1)+1)+1)+1)+1)+1)+1)+1)+1)+1)+1)+1)+1) }}",
          "deeper than 20" },
    };
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        QsfErr e = { 0 };
        QsfJinjaOut out;
        render(bad[i].source, strlen(bad[i].source), &tight, &out, &e);
        qsf_test_expect_err(&e, QSF_E_RUNTIME, bad[i].part);
        qsf_jinja_out_free(&out);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_snippets),       cmocka_unit_test(test_cases),
        cmocka_unit_test(test_compile_errors), cmocka_unit_test(test_attributes),
        cmocka_unit_test(test_runtime_errors), cmocka_unit_test(test_hostile_sources),
        cmocka_unit_test(test_interrupted),    cmocka_unit_test(test_long_chains),
        cmocka_unit_test(test_tags),           cmocka_unit_test(test_limits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

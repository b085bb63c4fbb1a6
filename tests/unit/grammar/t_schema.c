/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Random JSON Schemas: what a random walk over the automaton writes is JSON and valid by the checks of this
 * file. Bounds of numbers against arithmetic. */
#include "tests/harness/qsf_test.h"

#include <math.h>

#include "src/base/interrupt.h"
#include "src/base/json.h"
#include "src/base/utf8.h"
#include "src/grammar/automaton.h"

static uint64_t random_state = 7;

static uint32_t below(uint32_t n) {
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(random_state >> 33) % n;
}

/* --- schemas --- */

static void put_schema(QsfStrbuf *b, int depth);

static void put_string(QsfStrbuf *b) {
    qsf_strbuf_adds(b, "{\"type\": \"string\"");
    const uint32_t min = below(4);
    if (min > 0) qsf_strbuf_addf(b, ", \"minLength\": %u", min);
    if (below(2)) qsf_strbuf_addf(b, ", \"maxLength\": %u", min + below(6));
    if (below(4) == 0) qsf_strbuf_adds(b, ", \"pattern\": \"^[a-f\\\"\\\\n\xC3\xA9]*$\"");
    qsf_strbuf_adds(b, "}");
}

static void put_number(QsfStrbuf *b) {
    const int lo = (int)below(400) - 200;
    qsf_strbuf_addf(b, "{\"type\": \"%s\"", below(2) ? "integer" : "number");
    if (below(3)) qsf_strbuf_addf(b, ", \"%s\": %d", below(3) ? "minimum" : "exclusiveMinimum", lo);
    if (below(2)) qsf_strbuf_addf(b, ", \"maximum\": %d", lo + 1 + (int)below(300));
    qsf_strbuf_adds(b, "}");
}

static void put_array(QsfStrbuf *b, int depth) {
    const uint32_t min = below(3), n = below(3);
    qsf_strbuf_adds(b, "{\"type\": \"array\", \"items\": ");
    put_schema(b, depth - 1);
    if (n > 0) qsf_strbuf_adds(b, ", \"prefixItems\": [");
    for (uint32_t i = 0; i < n; i++) {
        if (i > 0) qsf_strbuf_adds(b, ", ");
        put_schema(b, depth - 1);
    }
    if (n > 0) qsf_strbuf_adds(b, "]");
    if (below(2)) qsf_strbuf_addf(b, ", \"minItems\": %u", min);
    if (below(2)) qsf_strbuf_addf(b, ", \"maxItems\": %u", min + below(4));
    qsf_strbuf_adds(b, "}");
}

static void put_object(QsfStrbuf *b, int depth) {
    static const char *const names[] = { "a", "a b", "\xC3\xA9", "c\\\"d", "long-name" };
    const uint32_t n = below(5);
    bool first = true;
    qsf_strbuf_adds(b, "{\"type\": \"object\", \"properties\": {");
    for (uint32_t i = 0; i < n; i++) {
        qsf_strbuf_addf(b, "%s\"%s\": ", i > 0 ? ", " : "", names[i]);
        put_schema(b, depth - 1);
    }
    qsf_strbuf_adds(b, "}, \"required\": [");
    for (uint32_t i = 0; i < n; i++) {
        if (below(2)) continue;
        qsf_strbuf_addf(b, "%s\"%s\"", first ? "" : ", ", names[i]);
        first = false;
    }
    qsf_strbuf_adds(b, "]");
    if (below(3) == 0) {
        qsf_strbuf_adds(b, ", \"additionalProperties\": ");
        put_schema(b, depth - 1);
    }
    qsf_strbuf_adds(b, "}");
}

static void put_schema(QsfStrbuf *b, int depth) {
    switch (below(depth > 0 ? 9 : 5)) {
    case 0: put_string(b); break;
    case 1: put_number(b); break;
    case 2: qsf_strbuf_adds(b, "{\"enum\": [\"x\", \"x y\", 3, null, {\"k\": [1]}]}"); break;
    case 3: qsf_strbuf_adds(b, "{\"type\": [\"boolean\", \"null\"]}"); break;
    case 4: qsf_strbuf_adds(b, "{\"const\": \"a\\\\b\\n\"}"); break;
    case 5: put_array(b, depth); break;
    case 6:
    case 7: put_object(b, depth); break;
    default:
        qsf_strbuf_adds(b, "{\"anyOf\": [");
        put_schema(b, depth - 1);
        qsf_strbuf_adds(b, ", ");
        put_schema(b, depth - 1);
        qsf_strbuf_adds(b, "]}");
    }
}

/* --- the checks --- */

static double number(const QsfJson *v) {
    return qsf_json_type(v) == QSF_JSON_INT ? (double)qsf_json_int(v, 0) : qsf_json_real(v, 0);
}

static bool same(const QsfJson *a, const QsfJson *b) {
    size_t n, m;
    const char *x = qsf_json_string(a, &n), *y = qsf_json_string(b, &m);
    if (x != NULL && y != NULL) return n == m && memcmp(x, y, n) == 0;
    if (qsf_json_type(a) != qsf_json_type(b)) return false;
    if (qsf_json_type(a) == QSF_JSON_INT) return number(a) == number(b);
    if (qsf_json_type(a) == QSF_JSON_OBJECT)
        return qsf_json_size(a) == 1 && qsf_json_int(qsf_json_at(qsf_json_get(a, "k"), 0), 0) == 1;
    return qsf_json_type(a) == QSF_JSON_NULL;
}

static bool is_type(const QsfJson *v, const char *name) {
    static const char *const names[] = {
        "null", "boolean", "integer", "number", "string", "array", "object"
    };
    /* Integers beyond 64 bits are read as reals. */
    if (qsf_json_type(v) == QSF_JSON_REAL && strcmp(name, "integer") == 0)
        return number(v) == floor(number(v));
    return strcmp(names[qsf_json_type(v)], name) == 0 ||
           (qsf_json_type(v) == QSF_JSON_INT && strcmp(name, "number") == 0);
}

static bool typed(const QsfJson *v, const QsfJson *type) {
    if (type == NULL) return true;
    if (qsf_json_type(type) == QSF_JSON_STRING) return is_type(v, qsf_json_string(type, NULL));
    bool any = false;
    for (size_t i = 0; i < qsf_json_size(type); i++)
        any = any || is_type(v, qsf_json_string(qsf_json_at(type, i), NULL));
    return any;
}

static bool valid(const QsfJson *v, const QsfJson *s);

static bool valid_string(const QsfJson *v, const QsfJson *s) {
    size_t len, codes = 0;
    uint32_t c;
    const char *text = qsf_json_string(v, &len);
    for (size_t i = 0; i < len; codes++) {
        i += qsf_utf8_next(text + i, len - i, &c);
        if (qsf_json_get(s, "pattern") != NULL &&
            !((c >= 'a' && c <= 'f') || c == '"' || c == '\n' || c == 0xE9))
            return false;
    }
    return codes >= (size_t)qsf_json_int(qsf_json_get(s, "minLength"), 0) &&
           codes <= (size_t)qsf_json_int(qsf_json_get(s, "maxLength"), 1000000);
}

static bool valid_array(const QsfJson *v, const QsfJson *s) {
    const QsfJson *tuple = qsf_json_get(s, "prefixItems");
    const size_t n = qsf_json_size(v);
    for (size_t i = 0; i < n; i++) {
        const bool own = tuple != NULL && i < qsf_json_size(tuple);
        if (!valid(qsf_json_at(v, i), own ? qsf_json_at(tuple, i) : qsf_json_get(s, "items"))) return false;
    }
    return n >= (size_t)qsf_json_int(qsf_json_get(s, "minItems"), 0) &&
           n <= (size_t)qsf_json_int(qsf_json_get(s, "maxItems"), 1000000);
}

static bool valid_object(const QsfJson *v, const QsfJson *s) {
    const QsfJson *required = qsf_json_get(s, "required"), *w;
    const char *key;
    for (size_t i = 0; i < qsf_json_size(required); i++)
        if (qsf_json_get(v, qsf_json_string(qsf_json_at(required, i), NULL)) == NULL) return false;
    for (const void *it = NULL; (it = qsf_json_next(v, it, &key, &w)) != NULL;) {
        const QsfJson *one = qsf_json_get(qsf_json_get(s, "properties"), key);
        if (one == NULL) one = qsf_json_get(s, "additionalProperties");
        if (one == NULL || !valid(w, one)) return false;
    }
    return true;
}

static bool valid_number(const QsfJson *v, const QsfJson *s) {
    const QsfJson *lo = qsf_json_get(s, "minimum"), *hi = qsf_json_get(s, "maximum");
    const QsfJson *above = qsf_json_get(s, "exclusiveMinimum");
    return (lo == NULL || number(v) >= number(lo)) && (hi == NULL || number(v) <= number(hi)) &&
           (above == NULL || number(v) > number(above));
}

static bool valid(const QsfJson *v, const QsfJson *s) {
    const QsfJson *list = qsf_json_get(s, "enum"), *one = qsf_json_get(s, "const");
    const QsfJson *any = qsf_json_get(s, "anyOf");
    bool found = list == NULL && any == NULL;
    for (size_t i = 0; list != NULL && i < qsf_json_size(list); i++)
        found = found || same(v, qsf_json_at(list, i));
    for (size_t i = 0; any != NULL && i < qsf_json_size(any); i++)
        found = found || valid(v, qsf_json_at(any, i));
    if (!found || (one != NULL && !same(v, one)) || !typed(v, qsf_json_get(s, "type"))) return false;
    switch (qsf_json_type(v)) {
    case QSF_JSON_STRING: return valid_string(v, s);
    case QSF_JSON_ARRAY: return list != NULL || any != NULL || valid_array(v, s);
    case QSF_JSON_OBJECT: return list != NULL || any != NULL || valid_object(v, s);
    case QSF_JSON_INT:
    case QSF_JSON_REAL: return valid_number(v, s);
    default: return true;
    }
}

/* --- the walk --- */

static uint32_t random_step(QsfAutomaton *a, uint32_t state, QsfStrbuf *out) {
    static const char often[] = "\"{}[],: 0123456789-.eabcxknltruefs\\u\xC3\xA9\xF0\x9F\xA6\x89";
    uint32_t next = 0;
    QsfErr e = { 0 };
    for (int i = 0; next == 0 && i < 4000; i++) {
        const unsigned char c = i < 60 ? (unsigned char)often[below(sizeof often - 1)]
                                       : (unsigned char)below(256);
        assert_int_equal(qsf_automaton_step(a, state, c, &next, &e), QSF_OK);
        if (next > 0) qsf_strbuf_addc(out, (char)c);
    }
    return next;
}

static void check_walk(QsfAutomaton *a, const char *text, const QsfJson *schema) {
    QsfStrbuf out = QSF_STRBUF_INIT;
    QsfErr e = { 0 };
    uint32_t state = qsf_automaton_start(a);
    const uint32_t most = below(120);
    for (uint32_t i = 0; i < most && qsf_automaton_goes_on(a, state); i++)
        state = random_step(a, state, &out);
    assert_int_equal(qsf_automaton_close(a, state, 10000, &out, &e), QSF_OK);
    QsfJson *v = qsf_json_parse(qsf_strbuf_str(&out), out.len, &e);
    if (v == NULL) fail_msg("%s\n%s: %s", text, qsf_strbuf_str(&out), e.msg);
    if (!valid(v, schema)) fail_msg("%s\nnot valid: %s", text, qsf_strbuf_str(&out));
    qsf_json_free(v);
    qsf_strbuf_free(&out);
}

static void test_random(void **state) {
    int refused = 0;
    (void)state;
    for (int i = 0; i < 500; i++) {
        QsfStrbuf b = QSF_STRBUF_INIT;
        QsfGrammar *g;
        QsfAutomaton *a;
        QsfErr e = { 0 };
        put_schema(&b, 3);
        const int rc = qsf_grammar_new(&g, QSF_KIND_SCHEMA, b.data, b.len, &e);
        if (rc != QSF_OK) { /* minItems above what prefixItems leaves, and bounds without a number between */
            if (strstr(e.msg, "nothing is valid") == NULL && strstr(e.msg, "contradict") == NULL)
                fail_msg("%s\n%s", b.data, e.msg);
            refused++;
            qsf_strbuf_free(&b);
            continue;
        }
        QsfJson *schema = qsf_json_parse(b.data, b.len, &e);
        assert_int_equal(qsf_automaton_new(&a, g, QSF_AUTOMATON_BYTES, &e), QSF_OK);
        for (int k = 0; k < 6; k++) check_walk(a, b.data, schema);
        qsf_automaton_free(a);
        qsf_grammar_free(g);
        qsf_json_free(schema);
        qsf_strbuf_free(&b);
    }
    assert_true(refused < 50);
}

/* --- bounds --- */

static void random_decimal(char *out, size_t cap, int digits) {
    const int whole = (int)below(2) ? (int)below(20) : (int)below(3000);
    int n = snprintf(out, cap, "%s%d", below(2) ? "-" : "", whole);
    if (digits > 0)
        n += snprintf(out + n, cap - (size_t)n, ".%0*d", digits, (int)below(digits == 1 ? 10 : 100));
    (void)n;
}

/* Decimals of at most two places are compared exactly as hundredths. */
static void test_bounds(void **state) {
    static const char *const lows[] = { "minimum", "exclusiveMinimum" }, *const highs[] = {
        "maximum", "exclusiveMaximum"
    };
    int inside = 0;
    (void)state;
    for (int i = 0; i < 300; i++) {
        char lo[32], hi[32], text[200], v[32];
        QsfGrammar *g;
        QsfAutomaton *a;
        QsfErr e = { 0 };
        const bool has_lo = below(4) > 0, has_hi = below(4) > 0, whole = below(3) == 0;
        const uint32_t x = below(2), y = below(2);
        random_decimal(lo, sizeof lo, (int)below(3));
        random_decimal(hi, sizeof hi, (int)below(3));
        int n = snprintf(text, sizeof text, "{\"type\": \"%s\"", whole ? "integer" : "number");
        if (has_lo) n += snprintf(text + n, sizeof text - (size_t)n, ", \"%s\": %s", lows[x], lo);
        if (has_hi) n += snprintf(text + n, sizeof text - (size_t)n, ", \"%s\": %s", highs[y], hi);
        (void)snprintf(text + n, sizeof text - (size_t)n, "}");
        const int rc = qsf_grammar_new(&g, QSF_KIND_SCHEMA, text, strlen(text), &e);
        if (rc == QSF_OK) assert_int_equal(qsf_automaton_new(&a, g, QSF_AUTOMATON_BYTES, &e), QSF_OK);
        for (int k = 0; k < 200; k++) {
            uint32_t at;
            random_decimal(v, sizeof v, whole ? 0 : (int)below(3));
            if (k % 10 == 0) snprintf(v, sizeof v, "%s", k % 20 == 0 ? lo : hi);
            if (whole && strchr(v, '.') != NULL) continue;
            const long d = lround(strtod(v, NULL) * 100), p = lround(strtod(lo, NULL) * 100);
            const long q = lround(strtod(hi, NULL) * 100);
            const bool want = (!has_lo || (x ? d > p : d >= p)) && (!has_hi || (y ? d < q : d <= q));
            if (rc != QSF_OK) {
                if (want) fail_msg("%s: %s, but %s", text, e.msg, v);
                continue;
            }
            if (d == 0 && v[0] == '-') continue; /* -0 */
            assert_int_equal(qsf_automaton_feed(a, qsf_automaton_start(a), v, strlen(v), &at, &e), QSF_OK);
            if ((at > 0 && qsf_automaton_ends(a, at)) != want) fail_msg("%s: %s", text, v);
            inside += want;
        }
        if (rc == QSF_OK) qsf_automaton_free(a);
        if (rc == QSF_OK) qsf_grammar_free(g);
    }
    assert_true(inside > 5000);
}

/* --- time --- */

/* before, n elements with their number where % stands, after. */
static void put_many(QsfStrbuf *b, const char *before, uint32_t n, const char *element, const char *after) {
    const char *hole = strchr(element, '%');
    qsf_strbuf_adds(b, before);
    for (uint32_t i = 0; i < n; i++) {
        qsf_strbuf_adds(b, i > 0 ? "," : "");
        qsf_strbuf_add(b, element, (size_t)(hole - element));
        qsf_strbuf_addf(b, "%u%s", i, hole + 1);
    }
    qsf_strbuf_adds(b, after);
}

static int compile(const QsfStrbuf *b, QsfErr *err) {
    QsfGrammar *g = NULL;
    *err = (QsfErr){ 0 };
    assert_true(qsf_strbuf_ok(b));
    int rc = qsf_grammar_new(&g, QSF_KIND_SCHEMA, b->data, b->len, err);
    assert_true((rc == QSF_OK) == (g != NULL));
    qsf_grammar_free(g);
    return rc;
}

/* Comparing every value with every other one would be more steps than are allowed. */
static void test_large_enums(void **state) {
    static const char *const ends[] = { "]}", "],\"type\":\"string\"}",
                                        "],\"$ref\":\"#/$defs/a\",\"$defs\":{\"a\":{\"type\":\"string\"}}}" };
    QsfErr err;
    (void)state;
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        QsfStrbuf b = QSF_STRBUF_INIT;
        put_many(&b, "{\"enum\":[", 30000, "\"x%\"", ends[i]);
        if (compile(&b, &err) != QSF_OK) fail_msg("%zu: %s", i, err.msg);
        qsf_strbuf_free(&b);
    }
    QsfStrbuf b = QSF_STRBUF_INIT;
    put_many(&b, "{\"$ref\":\"#/$defs/a\",\"enum\":[", 14000, "[%]", "],");
    put_many(&b, "\"$defs\":{\"a\":{\"enum\":[", 14000, "[%.0]", "]}}}");
    if (compile(&b, &err) != QSF_OK) fail_msg("%s", err.msg);
    qsf_strbuf_free(&b);
}

static void feed(QsfAutomaton *a, const char *text, bool ok) {
    QsfErr err = { 0 };
    uint32_t state;
    qsf_test_expect_ok(qsf_automaton_feed(a, qsf_automaton_start(a), text, strlen(text), &state, &err), &err);
    if ((state != 0 && qsf_automaton_ends(a, state)) != ok) fail_msg("%s", text);
}

/* Texts that begin alike are read together, in the memory that an answer has for states. */
static void test_enum_of_many_texts(void **state) {
    QsfStrbuf b = QSF_STRBUF_INIT;
    QsfAutomaton *a;
    QsfGrammar *g;
    QsfErr err = { 0 };
    (void)state;
    put_many(&b, "{\"enum\":[", 40000, "\"x%\"", ",\"x7\",7,77,{\"a\":[1]},null,\"\",\"x\\n\",");
    for (unsigned i = 1; i < 300; i++) /* each is the beginning of the next one */
        qsf_strbuf_addf(&b, "\"%0*d\",", (int)i, 0);
    qsf_strbuf_adds(&b, "\"\\u00e9\"]}");
    qsf_test_expect_ok(qsf_grammar_new(&g, QSF_KIND_SCHEMA, b.data, b.len, &err), &err);
    qsf_test_expect_ok(qsf_automaton_new(&a, g, 4u << 20, &err), &err);
    static const char *const valid[] = { "\"x0\"", "\"x7\"",       "\"x39999\"", "\"x12\"", "7",
                                         "77",     "{\"a\": [1]}", "null",       "\"\"",    "\"x\\n\"",
                                         "\"0\"",  "\"000\"",      "\"\u00e9\"" };
    static const char *const wrong[] = {
        "\"x40000\"", "\"x\"", "\"x01\"", "777", "", "\"x7", "\"y\"", "[1]"
    };
    for (size_t i = 0; i < sizeof valid / sizeof *valid; i++) feed(a, valid[i], true);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) feed(a, wrong[i], false);
    for (int i = 1; i < 302; i += 20) {
        char text[320];
        (void)snprintf(text, sizeof text, "\"%0*d\"", i, 0);
        feed(a, text, i < 300);
    }
    qsf_automaton_free(a);
    qsf_grammar_free(g);
    qsf_strbuf_free(&b);
}

/* What takes quadratic time or worse is refused, and stops when the thread is to stop. */
static void test_large_work(void **state) {
    static const char *const texts[][3] = {
        { "{\"oneOf\":[", "{\"const\":%}", "]}" },
        { "{\"enum\":[", "\"%\"", "],\"pattern\":\"^([0-9]{1,900}){1,20}$\"}" },
        { "{\"properties\":{\"a\":{\"anyOf\":[", "{\"$ref\":\"#/$defs/d\",\"maximum\":%}",
          "]}},\"$defs\":{\"d\":{\"anyOf\":[{\"oneOf\":[{\"const\":1},{\"type\":\"null\"}]},"
          "{\"type\":\"string\"}]}}}" },
    };
    const atomic_int stop = 1;
    QsfErr err;
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        QsfStrbuf b = QSF_STRBUF_INIT;
        put_many(&b, texts[i][0], 20000, texts[i][1], texts[i][2]);
        const int rc = compile(&b, &err);
        if (i < 2) assert_int_equal(rc, QSF_E_USAGE);
        if (i < 2) assert_non_null(strstr(err.msg, "too l"));
        (void)qsf_interrupt_watch(&stop);
        assert_int_equal(compile(&b, &err), QSF_E_INTERRUPTED);
        (void)qsf_interrupt_watch(NULL);
        qsf_strbuf_free(&b);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_random), cmocka_unit_test(test_bounds),
                                        cmocka_unit_test(test_large_enums),
                                        cmocka_unit_test(test_enum_of_many_texts),
                                        cmocka_unit_test(test_large_work) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

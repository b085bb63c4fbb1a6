/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Random grammars in GBNF against a recognizer of this file, which computes the sets of ends of every rule
 * at every place: sentences, mutations of them, and what the automaton adds to complete a text. */
#include "tests/harness/qsf_test.h"

#include "src/grammar/automaton.h"

#define RULES 5
#define MOST  40 /* bytes of a text: a set of places is 64 bits */
#define NODES 400

static uint64_t random_state = 1;

static uint32_t below(uint32_t n) {
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(random_state >> 33) % n;
}

/* --- grammars as trees: of this test, apart from those of the program --- */

typedef enum Kind { LITERAL, CLASS, SEQ, ALT, REPEAT, RULE } Kind;

typedef struct Node {
    Kind kind;
    char text[4];              /* of letters a to d */
    int child[3], n, min, max; /* max -1: no limit */
} Node;

static Node nodes[NODES];
static int n_nodes, rules[RULES];
static uint64_t memo[NODES][MOST + 1];
static bool known[NODES][MOST + 1];

static int new_node(Node n) {
    assert_true(n_nodes < NODES);
    nodes[n_nodes] = n;
    return n_nodes++;
}

static int literal(void) {
    Node n = { .kind = below(3) == 0 ? CLASS : LITERAL };
    for (uint32_t i = 0, len = 1 + below(2); i < len; i++) n.text[i] = (char)('a' + below(4));
    return new_node(n);
}

/* safe: a byte was taken before, so any rule may be called; otherwise only later ones. */
static int make(int rule, int depth, bool safe) {
    const uint32_t what = depth == 0 ? 0 : below(6);
    if (what <= 1) return literal();
    if (what == 5 && (safe || rule + 1 < RULES)) {
        const int least = safe ? 0 : rule + 1;
        return new_node((Node){ .kind = RULE, .n = least + (int)below((uint32_t)(RULES - least)) });
    }
    Node n = { .kind = what == 2 ? SEQ : what == 3 ? ALT : REPEAT, .n = 2 + (int)below(2) };
    if (n.kind == REPEAT) {
        n.n = 1;
        n.min = (int)below(3);
        n.max = below(2) ? -1 : n.min + (int)below(3);
    }
    for (int i = 0; i < n.n; i++)
        n.child[i] = n.kind == SEQ && i == 0 && below(2)
                         ? literal()
                         : make(rule, depth - 1,
                                safe || (n.kind == SEQ && i > 0 && nodes[n.child[0]].kind <= CLASS));
    return new_node(n);
}

static void print(QsfStrbuf *b, int at) {
    const Node *n = &nodes[at];
    switch (n->kind) {
    case LITERAL: qsf_strbuf_addf(b, "\"%s\"", n->text); break;
    case CLASS: qsf_strbuf_addf(b, "[%s]", n->text); break;
    case RULE: qsf_strbuf_addf(b, "r%d", n->n); break;
    case SEQ:
    case ALT:
        for (int i = 0; i < n->n; i++) {
            qsf_strbuf_adds(b, i == 0 ? "(" : n->kind == ALT ? " | " : " ");
            print(b, n->child[i]);
        }
        qsf_strbuf_adds(b, ")");
        break;
    case REPEAT:
        qsf_strbuf_adds(b, "(");
        print(b, n->child[0]);
        qsf_strbuf_adds(b, ")");
        if (n->max < 0)
            qsf_strbuf_addf(b, "{%d,}", n->min);
        else
            qsf_strbuf_addf(b, "{%d,%d}", n->min, n->max);
        break;
    }
}

/* --- the recognizer --- */

static uint64_t ends_at(int at, const char *text, int from);

static uint64_t ends_of(int at, const char *text, uint64_t from) {
    uint64_t ends = 0;
    for (int i = 0; i <= (int)strlen(text); i++)
        if (from >> i & 1) ends |= ends_at(at, text, i);
    return ends;
}

static uint64_t repeat_ends(const Node *n, const char *text, uint64_t now) {
    uint64_t all = 0;
    for (int i = 0; i < n->min; i++) now = ends_of(n->child[0], text, now);
    for (int i = n->min; now != 0 && (now | all) != all; i++) {
        all |= now;
        if (n->max >= 0 && i == n->max) break;
        now = ends_of(n->child[0], text, now);
    }
    return all;
}

static uint64_t ends_at(int at, const char *text, int from) {
    const Node *n = &nodes[at];
    const size_t len = strlen(n->text);
    uint64_t ends = 0, start = 1ull << from;
    if (known[at][from]) return memo[at][from];
    switch (n->kind) {
    case LITERAL: ends = strncmp(text + from, n->text, len) == 0 ? start << len : 0; break;
    case CLASS: ends = text[from] != '\0' && strchr(n->text, text[from]) != NULL ? start << 1 : 0; break;
    case SEQ:
        ends = start;
        for (int i = 0; i < n->n; i++) ends = ends_of(n->child[i], text, ends);
        break;
    case ALT:
        for (int i = 0; i < n->n; i++) ends |= ends_at(n->child[i], text, from);
        break;
    case REPEAT: ends = repeat_ends(n, text, start); break;
    case RULE: ends = ends_at(rules[n->n], text, from); break;
    }
    known[at][from] = true;
    return memo[at][from] = ends;
}

static bool recognize(const char *text) {
    memset(known, 0, sizeof known);
    return ends_at(rules[0], text, 0) >> strlen(text) & 1;
}

/* A sentence, cut at MOST bytes. */
static void generate(QsfStrbuf *b, int at, int depth) {
    const Node *n = &nodes[at];
    if (b->len > MOST || depth > 60) return;
    if (n->kind == LITERAL) qsf_strbuf_adds(b, n->text);
    if (n->kind == CLASS) qsf_strbuf_addc(b, n->text[below((uint32_t)strlen(n->text))]);
    if (n->kind == RULE) generate(b, rules[n->n], depth + 1);
    if (n->kind == ALT) generate(b, n->child[below((uint32_t)n->n)], depth + 1);
    for (int i = 0; n->kind == SEQ && i < n->n; i++) generate(b, n->child[i], depth + 1);
    const int times = n->kind == REPEAT
                          ? n->min + (int)below(n->max < 0 ? 3 : (uint32_t)(n->max - n->min + 1))
                          : 0;
    for (int i = 0; i < times; i++) generate(b, n->child[0], depth + 1);
}

/* --- the comparison --- */

typedef struct Totals {
    int accepted, refused, completed;
} Totals;

static void check_text(QsfAutomaton *a, const char *grammar, const char *text, Totals *t) {
    uint32_t state;
    QsfErr e = { 0 };
    QsfStrbuf whole = QSF_STRBUF_INIT;
    assert_int_equal(qsf_automaton_feed(a, qsf_automaton_start(a), text, strlen(text), &state, &e), QSF_OK);
    const bool is = state > 0 && qsf_automaton_ends(a, state), want = recognize(text);
    if (is != want) fail_msg("%s\n%s: %d instead of %d", grammar, text, is, want);
    t->accepted += is;
    t->refused += !is;
    if (state > 0) { /* can be completed */
        qsf_strbuf_adds(&whole, text);
        const int cost = (int)qsf_automaton_cost(a, state);
        assert_int_equal(qsf_automaton_close(a, state, 1000, &whole, &e), QSF_OK);
        assert_int_equal(whole.len, strlen(text) + (size_t)cost);
        if (whole.len <= MOST && !recognize(qsf_strbuf_str(&whole)))
            fail_msg("%s\n%s was completed to %s", grammar, text, qsf_strbuf_str(&whole));
        t->completed += cost > 0;
    }
    qsf_strbuf_free(&whole);
}

static void check_grammar(Totals *t) {
    QsfStrbuf b = QSF_STRBUF_INIT;
    QsfGrammar *g;
    QsfAutomaton *a;
    QsfErr e = { 0 };
    n_nodes = 0;
    for (int r = 0; r < RULES; r++) rules[r] = make(r, 3, false);
    for (int r = 0; r < RULES; r++) {
        qsf_strbuf_addf(&b, "r%d ::= ", r);
        print(&b, rules[r]);
        qsf_strbuf_adds(&b, "\n");
    }
    qsf_strbuf_adds(&b, "root ::= r0\n");
    const int rc = qsf_grammar_new(&g, QSF_KIND_GBNF, b.data, b.len, &e);
    if (rc != QSF_OK) { /* the only reason that this test's grammars have */
        if (strstr(e.msg, "nothing matches") == NULL) fail_msg("%s\n%s", b.data, e.msg);
        qsf_strbuf_free(&b);
        return;
    }
    assert_int_equal(qsf_automaton_new(&a, g, QSF_AUTOMATON_BYTES, &e), QSF_OK);
    for (int i = 0; i < 12; i++) {
        QsfStrbuf s = QSF_STRBUF_INIT;
        generate(&s, rules[0], 0);
        qsf_strbuf_addc(&s, '\0');
        if (s.len > MOST) s.data[MOST] = '\0';
        check_text(a, b.data, s.data, t);
        if (s.data[0] != '\0') s.data[below((uint32_t)strlen(s.data))] = (char)('a' + below(5));
        check_text(a, b.data, s.data, t);
        s.data[below((uint32_t)strlen(s.data) + 1)] = '\0';
        check_text(a, b.data, s.data, t);
        uint32_t state = qsf_automaton_start(a);
        if (i % 4 == 0) assert_int_equal(qsf_automaton_trim(a, &state, &e), QSF_OK);
        qsf_strbuf_free(&s);
    }
    qsf_automaton_free(a);
    qsf_grammar_free(g);
    qsf_strbuf_free(&b);
}

static void test_random(void **state) {
    Totals t = { 0 };
    (void)state;
    for (int i = 0; i < 400; i++) check_grammar(&t);
    assert_true(t.accepted > 2000 && t.refused > 2000 && t.completed > 1000);
}

/* --- limits --- */

static void refuse(QsfGrammarKind kind, const char *text, const char *words) {
    QsfGrammar *g;
    QsfErr e = { 0 };
    assert_int_equal(qsf_grammar_new(&g, kind, text, strlen(text), &e), QSF_E_USAGE);
    assert_null(g);
    if (strstr(e.msg, words) == NULL) fail_msg("%s: no '%s' in '%s'", text, words, e.msg);
}

static void test_refuse(void **state) {
    (void)state;
    refuse(QSF_KIND_GBNF, "a ::= \"x\"\nroot ::= a (b)\n",
           "line 2, column 13: the rule \"b\" is not defined");
    refuse(QSF_KIND_GBNF, "root ::= e root | \"a\"\ne ::= \"b\"?", "left-recursive");
    refuse(QSF_KIND_GBNF, "root ::= \"\\q\"", "no escape");
    refuse(QSF_KIND_GBNF, "root ::= \"\\uD800\"", "not a Unicode character");
    refuse(QSF_KIND_GBNF, "root ::= \"a\" %json {\"type\": \"no\"}", "line 1, column 14: %json: #/type");
    refuse(QSF_KIND_GBNF, "root ::= %json s {}",
           "line 1, column 10: %json: no schema \"s\" is defined before this");
    refuse(QSF_KIND_GBNF, "%schema s {}\nroot ::= %json s",
           "line 2, column 10: %json: the schema is not JSON");
    refuse(QSF_KIND_GBNF, "%schema s {}\n%schema s {}",
           "line 2, column 1: %schema: the schema \"s\" is defined twice");
    refuse(QSF_KIND_GBNF, "%schema s {\nroot ::= \"a\"", "line 1, column 1: %schema: the schema is not JSON");
    refuse(QSF_KIND_GBNF, "%schema true {}", "line 1, column 9: %schema: a name is expected");
    refuse(QSF_KIND_GBNF, "%other x", "line 1, column 1: the name of a rule is expected, or %schema NAME");
    refuse(QSF_KIND_GBNF, "%schema s {\"a\": {\"type\": \"no\"}}\nroot ::= %json s {\"$ref\": \"#/a\"}",
           "line 2, column 10: %json: #/$ref/type: unknown type");
    refuse(QSF_KIND_GBNF, "root ::= %json {\"type\"", "line 1, column 10: %json: the schema is not JSON");
    refuse(QSF_KIND_GBNF, "root ::= %lark x", "only json");
    refuse(QSF_KIND_REGEX, "(?:a", "character 1: the group is not closed");
    refuse(QSF_KIND_REGEX, "a{20000}", "above the limit");
    refuse(QSF_KIND_REGEX, "((a{99}){99}){99}", "too large");
    refuse(QSF_KIND_SCHEMA, "{\"type\": \"string\"", "line 1");
    refuse(QSF_KIND_SCHEMA, "[]", "#: a schema is an object");
    refuse(QSF_KIND_WORDS, "\\d \\d", "no word matches");
    refuse(QSF_KIND_WORDS, "a\n(", "not closed");
}

static bool matches(const char *gbnf, const char *text) {
    QsfGrammar *g;
    QsfAutomaton *a;
    QsfErr e = { 0 };
    uint32_t state;
    qsf_test_expect_ok(qsf_grammar_new(&g, QSF_KIND_GBNF, gbnf, strlen(gbnf), &e), &e);
    qsf_test_expect_ok(qsf_automaton_new(&a, g, QSF_AUTOMATON_BYTES, &e), &e);
    qsf_test_expect_ok(qsf_automaton_feed(a, qsf_automaton_start(a), text, strlen(text), &state, &e), &e);
    const bool ok = state != 0 && qsf_automaton_ends(a, state);
    qsf_automaton_free(a);
    qsf_grammar_free(g);
    return ok;
}

/* Schemas in GBNF: each has its own root, and its own rules. */
static void test_schemas_inside(void **state) {
    static const char gbnf[] =
        "root ::= (%json {\"$ref\": \"#/$defs/x\", \"$defs\": {\"x\": {\"enum\": [1]}}} | b)+\n"
        "b ::= \"<\" %json {\"$ref\": \"#/$defs/x\", \"$defs\": {\"x\": {\"enum\": [2]}}} \">\" |\n"
        "  \"[\" %json {\"items\": {\"type\": \"null\"}} \"]\" # a comment\n";
    (void)state;
    assert_true(matches(gbnf, "1<2>1"));
    assert_true(matches(gbnf, "[[null, null]]"));
    assert_false(matches(gbnf, "2"));
    assert_false(matches(gbnf, "<1>"));
    assert_true(matches("root ::= %json true", "{\"a\": [5]}"));
    const char named[] =
        "%schema one {\"a\": {\"items\": {\"$ref\": \"#/b/0\"}}, \"b\": [{\"enum\": [7, \"x\"]}]}\n"
        "%schema two {\"a\": {\"enum\": [8]}}\n"
        "root ::= %json one {\"$ref\": \"#/a\"} \"-\" %json two {\"$ref\": \"#/a\"} \"-\" "
        "(%json one {\"$ref\": \"#/b/0\"} | %json one {\"allOf\": [{\"$ref\": \"#/b/0\"}, "
        "{\"type\": \"string\"}]} \"!\")";
    assert_true(matches(named, "[7, \"x\"]-8-7"));
    assert_true(matches(named, "[]-8-\"x\"!"));
    assert_false(matches(named, "[8]-8-7"));
    assert_false(matches(named, "[7]-7-7"));
    assert_false(matches(named, "[7]-8-7!"));
}

/* Groups and parentheses that never end; the readers do not recurse further than their limit. */
static void test_deep(void **state) {
    static char text[200000];
    (void)state;
    memset(text, '(', sizeof text - 1);
    refuse(QSF_KIND_REGEX, text, "nested more than");
    memcpy(text, "root ::= ", 9);
    refuse(QSF_KIND_GBNF, text, "nested more than");
    memset(text, '?', sizeof text - 1);
    memcpy(text, "root ::= .", 10);
    refuse(QSF_KIND_GBNF, text, "column 19: one item is repeated by more than 8");
    memset(text, '[', sizeof text - 1);
    refuse(QSF_KIND_SCHEMA, text, "");
}

/* A grammar with too many readings for its memory ends with an error, and works again after it. */
static void test_memory(void **state) {
    static const char text[] = "root ::= s\ns ::= \"a\" s \"b\"? s | \"a\" s s \"c\"? | \"a\"";
    QsfGrammar *g;
    QsfAutomaton *a;
    QsfErr e = { 0 };
    uint32_t at, next;
    (void)state;
    assert_int_equal(qsf_grammar_new(&g, QSF_KIND_GBNF, text, sizeof text - 1, &e), QSF_OK);
    assert_int_equal(qsf_automaton_new(&a, g, 100000, &e), QSF_OK);
    int rc = QSF_OK;
    at = qsf_automaton_start(a);
    for (int i = 0; i < 5000 && rc == QSF_OK; i++) {
        rc = qsf_automaton_step(a, at, 'a', &next, &e);
        if (rc == QSF_OK) at = next;
        if (rc == QSF_OK && qsf_automaton_is_full(a)) rc = qsf_automaton_trim(a, &at, &e);
    }
    assert_int_equal(rc, QSF_E_RUNTIME);
    assert_true(qsf_automaton_bytes(a) <= 100000);
    assert_non_null(strstr(e.msg, "too many readings"));
    qsf_automaton_free(a);
    qsf_grammar_free(g);
}

/* The time of a byte is limited, too. */
static void test_time(void **state) {
    static const char text[] = "root ::= a b c d e\na ::= \"x\" a? b? c? d? e? | \"x\"\n"
                               "b ::= \"x\" b? c? d? e? a? | \"x\"\nc ::= \"x\" c? d? e? a? b? | \"x\"\n"
                               "d ::= \"x\" d? e? a? b? c? | \"x\"\ne ::= \"x\" e? a? b? c? d? | \"x\"\n";
    QsfGrammar *g;
    QsfAutomaton *a;
    QsfErr e = { 0 };
    (void)state;
    assert_int_equal(qsf_grammar_new(&g, QSF_KIND_GBNF, text, sizeof text - 1, &e), QSF_OK);
    assert_int_equal(qsf_automaton_new(&a, g, QSF_AUTOMATON_BYTES, &e), QSF_OK);
    uint32_t at = qsf_automaton_start(a), next, n = 0;
    for (; n < 2000 && qsf_automaton_step(a, at, 'x', &next, &e) == QSF_OK; n++) at = next;
    assert_true(n > 20 && n < 500);
    assert_int_equal(e.code, QSF_E_RUNTIME);
    assert_non_null(strstr(e.msg, "too many readings of this text: a byte takes"));
    qsf_err_clear(&e); /* what was found before is not lost */
    assert_int_equal(qsf_automaton_feed(a, qsf_automaton_start(a), "xxxxx", 5, &next, &e), QSF_OK);
    assert_true(next > 0 && qsf_automaton_ends(a, next));
    qsf_automaton_free(a);
    qsf_grammar_free(g);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_random),         cmocka_unit_test(test_refuse),
                                        cmocka_unit_test(test_schemas_inside), cmocka_unit_test(test_deep),
                                        cmocka_unit_test(test_memory),         cmocka_unit_test(test_time) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

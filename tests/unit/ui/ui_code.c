/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Highlighting: below each line of code is the class of each byte, as the letter in `letters`. */
#include <string.h>

#include "tests/harness/qsf_test.h"
#include "ui/code/scan.h"

static const char letters[] = " ktsncdfy+-@";

typedef struct Sample {
    const char *language;
    const char *lines[44]; /* code and classes in turn; blanks at the end of classes may be left out */
} Sample;

/* clang-format off */
static const Sample samples[] = {
    { "c", {
        "#include <stdio.h>",
        "dddddddd sssssssss",
        "#  define MAX(a, b) ((a) > (b) ? (a) : (b)) // x \\",
        "ddddddddd fff                               cccccc",
        "still a comment",
        "ccccccccccccccc",
        "static uint32_t f(const char *s, double x) { /* a",
        "kkkkkk tttttttt f kkkkk tttt     tttttt      cccc",
        "* b */ return sizeof(x) + 0x1fUL + 1.5e-3 + g (s);",
        "cccccc kkkkkk kkkkkk      nnnnnn   nnnnnn   f",
        "char *t = u8\"a\\\"b\" L'\\'', c = 'x'; int n = 1'000;",
        "tttt      ssssssss sssss      sss  ttt     nnnnn",
        "puts(\"a \\",
        "ffff ssss",
        "b\"); a.b = .5f;",
        "ss         nnn",
        "\"open",
        "sssss",
        "int a; # not a directive",
        "ttt",
      } },
    { "C++", {
        "auto s = R\"x(a)\" b",
        "kkkk     sssssssss",
        "c)x\" + 1; template <typename T> class A {};",
        "ssss   n  kkkkkkkk  kkkkkkkk    kkkkk",
        "std::vector<int> v{1, 2'000}; nullptr",
        "     tttttt ttt    n  nnnnn   kkkkkkk",
      } },
    { "python3", {
        "@cache.me",
        "ddddddddd",
        "def f(self, x: int = 1_000) -> str:  # comment",
        "kkk f          ttt   nnnnn     ttt   ccccccccc",
        "    \"\"\"Doc 'quoted' \"\"",
        "    ssssssssssssssssss",
        "    it ends\"\"\" + rb'\\'' + f\"{x}\" + 1e-5j",
        "ssssssssssssss   ssssss   ssssss   nnnnn",
        "    class Point(Base): return None or a @ b",
        "    kkkkk ttttt        kkkkkk kkkk kk",
        "match x:",
        "kkkkk",
        "match = re.match(p); case = a.print",
        "           fffff",
        "'a \\",
        "ssss",
        "b' print(a.int)",
        "ss fffff",
      } },
    { "js", {
        "const f = async (a) => `x ${a ? `in ${b({c})}` : \"n\"} y",
        "kkkkk     kkkkk        sssss    ssssssf     ss   ssssss",
        "z` + a / b / c; return /[/]\"`/gi.test(s) // c",
        "ss              kkkkkk sssssssss ffff    cccc",
        "class A extends B { static x = 0xff; $y(z) { this.default } }",
        "kkkkk t kkkkkkk t   kkkkkk     nnnn  ff      kkkk",
        "<b className=\"x\">don't</b> and <i/>",
        "             sss           ",
        "a = 'it\\'s' + 1n /* c */ + null",
        "    sssssss   nn ccccccc   kkkk",
      } },
    { "tsx", {
        "@Input() name: string = `a`; interface P<T> { x?: number }",
        "dddddd         tttttt   sss  kkkkkkkkk t t        tttttt",
      } },
    { "golang", {
        "func (s *Server) Run(ch chan<- string, m map[string]int) error {",
        "kkkk             fff    kkkk   tttttt    kkk tttttt ttt  ttttt",
        "defer f(`raw \\",
        "kkkkk f ssssss",
        "end`, 'x', \"a\\n\", 0b11); x := nil // c",
        "ssss  sss  sssss  nnnn        kkk cccc",
      } },
    { "rs", {
        "#[x(a = \"]\\\"[[\", [b])] x[0]",
        "dddddddddddddddddddddd   n",
        "#[derive(Debug)] pub fn f<'a>(x: &'a str) -> Vec<u8> { // c",
        "dddddddddddddddd kkk kk f tt      tt ttt     ttt tt    cccc",
        "let s = r#\"a\" b",
        "kkk     sssssss",
        "c\"#; println!(\"{} \\\"", 
        "sss  ffffffff ssssss",
        "long\", 'x', '\\''); for i in 0..10 { x != 1.max(2) } /* a /* b",
        "sssss  sss  ssss   kkk   kk n  nn        n fff n    ccccccccc",
        "*/ c */ b\"x\" Some(1.5f32) let",
        "ccccccc ssss tttt nnnnnn  kkk",
      } },
    { "java", {
        "@Override public List<String> f(int a) { return new Foo(\"\"\"",
        "ddddddddd kkkkkk tttt tttttt  f ttt      kkkkkk kkk ttt sss",
        "  text \"\" \\\"\"\" x",
        "ssssssssssssssss",
        "\"\"\", 'c', MAX_SIZE, 10L); }",
        "sss  sss            nnn",
      } },
    { "bash", {
        "# comment; for i in \"$@\"; do",
        "cccccccccccccccccccccccccccc",
        "for i in \"$@\"; do echo ${x:-1} in do \"a $b $(ls -l \"$c\" | wc) d\" # c",
        "kkk   kk syys  kk ffff yyyyyyy       sssyysssff    syys   ffssss ccc",
        "X=1 Y+=$((1 << 2)) make -j2 'a' && cd /tmp; done",
        "y n y     n    n            sss    ff       kkkk",
        "cat <<'END' <<-TWO >file 2>&1",
        "fff   sssss    sss       n  n",
        "  for $x END",
        "ssssssssssss",
        "END",
        "sss",
        "\tTWO",
        "ssss",
        "if [ -n \"a",
        "kk      ss",
        "b\" ]; then x $'it\\'s' \\",
        "ss    kkkk f ssssssss",
        "  y; X='a' b; case $z in a|b) run ;; esac",
        "     y sss f  kkkk yy kk   f  fff    kkkk",
        "git commit -m \"$(cat <<EOF",
        "fff           sssfff   sss",
        "text \"",
        "ssssss",
        "EOF",
        "sss",
        ")\" && x << 3",
        "ss    f    n",
      } },
    { "console", {
        "$ ls -l \"a",
        "ddff    ss",
        "b\" # c",
        "ss ccc",
        "total 0; for",
        "",
        "me@host:~/src# cat <<E",
        "dddddddddddddddfff   s",
        "$ x",
        "sss",
        "E",
        "s",
        "# no comment",
        "",
      } },
    { "SQL", {
        "SELECT count(*), \"select\" AS t -- it's",
        "kkkkkk fffff              kk   ccccccc",
        "from a.table WHERE x = 'it''s' AND y IN (1, 2.5) /* c",
        "kkkk         kkkkk     sssssss kkk   kk  n  nnn  cccc",
        "*/; create Table t (id BIGINT, s varchar(10) default 'a",
        "cc  kkkkkk kkkkk       tttttt    ttttttt nn  kkkkkkk ss",
        "b');",
        "ss",
      } },
    { "json", {
        "{ \"a\\\"b\" : \"c\", \"d\": [1, -2.5e+3, true, null], // c",
        "  yyyyyy   sss  yyy   n  nnnnnnn  kkkk  kkkk   cccc",
        "\"e\": /* x",
        "yyy  cccc",
        "*/ {} \"open",
        "cc    sssss",
      } },
    { "yml", {
        "---",
        "ddd",
        "name: value # c",
        "yyyy  sssss ccc",
        "- \"a b\": { x: 1.5, y: 'z', k: [on, off] }",
        "  yyyyy    y  nnn  y  sss  y   kk  kkk",
        "run: |- # c",
        "yyy  kk ccc",
        "  echo a: b",
        "sssssssssss",
        "",
        "",
        "  # text",
        "ssssssss",
        "next: *x",
        "yyyy  dd",
        "url: http://a.b/c#d",
        "yyy  ssssssssssssss",
        "a: \"two",
        "y  ssss",
        "  lines\" # c",
        "ssssssss ccc",
        "when: 2024-01-31",
        "yyyy  nnnnnnnnnn",
      } },
    { "HTML", {
        "<!DOCTYPE html><p class=\"a b\" id=x hidden>a &amp; &b",
        "ddddddddddddddd k yyyyy sssss yy s yyyyyy   ddddd",
        "</p><!-- c",
        "  k cccccc",
        "--><a href='x",
        "ccc k yyyy ss",
        "y'/> < b <SCRIPT>if (a < \"</p>\") { `a",
        "ss        kkkkkk kk      ssssss    ss",
        "`} </script><style>a:hover { color: #fff }",
        "s    kkkkkk  kkkkk k kkkkk   yyyyy  nnnn",
        "/* c */</style>d",
        "ccccccc  kkkkk",
      } },
    { "css", {
        "@media (x) { a:hover { margin-top: 1.5em auto; color: rgb(1, 2) } }",
        "dddddd  k    k kkkkk   yyyyyyyyyy  nnnnn       yyyyy  fff n  n",
        ".a #b > p::before { content: \"x\"; } /* c",
        "tt tt   k  kkkkkk   yyyyyyy  sss    cccc",
        "d */ a{color:red}",
        "cccc k yyyyy",
      } },
    { "diff", {
        "diff --git a/x b/x",
        "@@@@@@@@@@@@@@@@@@",
        "--- a/x",
        "@@@@@@@",
        "@@ -1,2 +1,2 @@ int f(void)",
        "@@@@@@@@@@@@@@@",
        " same",
        "",
        "--- removed",
        "-----------",
        "+++ added",
        "+++++++++",
        "+++ b/x",
        "@@@@@@@",
        "-removed",
        "--------",
        "+added",
        "++++++",
        "\\ No newline",
        "cccccccccccc",
      } },
    { "toml", {
        "[a.b] # c",
        "ttttt ccc",
        "name = \"x\" # c",
        "yyyy   sss ccc",
        "; c",
        "ccc",
        "a.\"b=c\" = [ 1, true,",
        "yyyyyyy     n  kkkk",
        "  'z', 2024-01-01 ]",
        "  sss  nnnnnnnnnn",
        "t = \"\"\"a",
        "y   ssss",
        "b\"\"\"",
        "ssss",
      } },
    { "makefile", {
        "ifeq ($(CC),gcc)  # c",
        "kkkk  yyyyy       ccc",
        "CFLAGS += -O2 $(x:.c=.o) \\",
        "yyyyyy        yyyyyyyyyy",
        "  a: b = c",
        "",
        "all $(x).o: dep",
        "ffffyyyyff",
        "\tcc -o $@ $< # c",
        "       yy yy ccc",
      } },
    { "md", {
        "# Title",
        "kkkkkkk",
        "- a `b*` and **c** `d",
        "y   ssss     kk kk",
        "~~~c",
        "dddd",
        "`x`",
        "sss",
        "~~~ x",
        "sssss",
        "     ~~~",
        "dddddddd",
        "```c``` d",
        "sssssss",
        "> quote",
        "ccccccc",
      } },
};
/* clang-format on */

#define MOST 200

/* The classes of a line as letters; checks what every result has. */
static void classes(const UiLexer *x, UiCodeState *st, const char *line, size_t len, char *dst) {
    UiCodeRun runs[MOST];
    size_t at = 0, n = ui_code_line(x, st, line, len, runs, MOST);
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(runs[i].at, at);
        assert_true(runs[i].len > 0 && runs[i].kind < UI_CODE_CLASSES);
        if (i > 0) assert_int_not_equal(runs[i].kind, runs[i - 1].kind);
        memset(dst + at, letters[runs[i].kind], runs[i].len);
        at += runs[i].len;
    }
    assert_int_equal(at, len);
    dst[len] = '\0';
}

static const UiLexer *lexer(const char *name) {
    const UiLexer *x = ui_code_lexer(name, strlen(name));
    if (!x) fail_msg("no lexer for %s", name);
    return x;
}

static void test_samples(void **state) {
    (void)state;
    int bad = 0;
    assert_int_equal(sizeof letters - 1, UI_CODE_CLASSES);
    for (size_t i = 0; i < sizeof samples / sizeof *samples; i++) {
        UiCodeState st = { 0 };
        const UiLexer *x = lexer(samples[i].language);
        for (const char *const *l = samples[i].lines; *l; l += 2) {
            char got[200];
            classes(x, &st, l[0], strlen(l[0]), got);
            for (size_t n = strlen(got); n > strlen(l[1]) && got[n - 1] == ' ';) got[--n] = '\0';
            char want[200];
            (void)snprintf(want, sizeof want, "%s", l[1]);
            for (size_t n = strlen(want); n > strlen(got) && want[n - 1] == ' ';) want[--n] = '\0';
            if (strcmp(got, want) != 0)
                bad++, print_message("%s:\n%s\n%s\nexpected:\n%s\n", samples[i].language, l[0], got, want);
        }
    }
    assert_int_equal(bad, 0);
}

static void test_names(void **state) {
    (void)state;
    static const char *const known[][2] = {
        { "c", "c" },
        { "{.c .numberLines}", "c" },
        { "language-Rust", "rust" },
        { "c++ title=x", "c++" },
        { "Py:main.py", "python" },
        { "h", "c" },
        { "CC", "c++" },
        { "node", "javascript" },
        { "zsh", "shell" },
        { "jsonc", "json" },
        { "xml", "html" },
        { "patch", "diff" },
        { "ini", "toml" },
        { "\tgo", "go" },
    };
    static const char *const unknown[] = {
        "", " ", "text", "brainfuck", ",", "language-", "{}", "c--", "\xff"
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        const char *names = lexer(known[i][0])->names;
        assert_int_equal(strcspn(names, ","), strlen(known[i][1]));
        assert_memory_equal(names, known[i][1], strlen(known[i][1]));
    }
    for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++)
        assert_null(ui_code_lexer(unknown[i], strlen(unknown[i])));
}

static void sorted(const UiWords *w) {
    for (size_t i = 1; i < w->n; i++) {
        if (strcmp(w->words[i - 1], w->words[i]) >= 0) fail_msg("%s before %s", w->words[i - 1], w->words[i]);
    }
    for (size_t i = 0; i < w->n; i++) assert_true(ui_words_have(w, w->words[i], strlen(w->words[i])));
}

/* No name belongs to two languages. */
static void test_tables(void **state) {
    (void)state;
    for (size_t i = 0; ui_code_lexers[i]; i++) {
        sorted(&ui_code_lexers[i]->keywords);
        sorted(&ui_code_lexers[i]->types);
        for (const char *p = ui_code_lexers[i]->names; *p; p += strcspn(p, ","), p += *p == ',')
            assert_ptr_equal(ui_code_lexer(p, strcspn(p, ",")), ui_code_lexers[i]);
    }
}

static uint32_t seed = 1;
static uint32_t next(void) { return (seed = seed * 1664525u + 1013904223u) >> 8; }

/* Text that begins and ends things of every language. */
static size_t noise(char *dst, size_t cap) {
    static const char *const parts[] = { "\"",
                                         "'",
                                         "`",
                                         "${",
                                         "}",
                                         "/*",
                                         "*/",
                                         "//",
                                         "\"\"\"",
                                         "R\"x(",
                                         ")x\"",
                                         "r#\"",
                                         "\\",
                                         "<<",
                                         "EOF",
                                         "(",
                                         ")",
                                         "#",
                                         "@@ -1,2 +3 @@",
                                         "<!--",
                                         "-->",
                                         "<script>",
                                         "</script>",
                                         "<style>",
                                         "$(",
                                         ": ",
                                         "|",
                                         "- ",
                                         "\xff",
                                         "\xc3\xa4",
                                         " ",
                                         "\t",
                                         "x",
                                         "if",
                                         "1.5e+",
                                         "{",
                                         "[",
                                         "]",
                                         "=",
                                         "/" };
    size_t n = 0;
    while (n + 16 < cap && next() % 16 != 0) {
        if (next() % 4 == 0) {
            dst[n++] = (char)next();
            continue;
        }
        const char *p = parts[next() % (sizeof parts / sizeof *parts)];
        memcpy(dst + n, p, strlen(p));
        n += strlen(p);
    }
    return n;
}

/* Any bytes; and the state after a line depends neither on where the runs are stored nor on how many fit. */
static void test_any_bytes(void **state) {
    (void)state;
    for (size_t i = 0; ui_code_lexers[i]; i++) {
        UiCodeState st = { 0 }, few;
        for (int round = 0; round < 1500; round++) {
            char line[160], got[161];
            UiCodeRun runs[3];
            const size_t len = noise(line, sizeof line);
            char *exact = malloc(len + 1); /* no byte behind it is read: the sanitizer sees it */
            assert_non_null(exact);
            memcpy(exact, line, len);
            exact = realloc(exact, len ? len : 1);
            assert_non_null(exact);
            few = st;
            classes(ui_code_lexers[i], &st, exact, len, got);
            const size_t n = ui_code_line(ui_code_lexers[i], &few, exact, len, runs, 1 + (size_t)round % 3);
            assert_true(n <= 1 + (size_t)round % 3);
            if (n > 0) assert_int_equal(runs[n - 1].at + runs[n - 1].len, len);
            if (memcmp(&st, &few, sizeof st) != 0)
                fail_msg("%s: another state after %.*s", ui_code_lexers[i]->names, (int)len, line);
            free(exact);
            if (round % 50 == 0) st = (UiCodeState){ 0 };
        }
    }
}

/* A long line of what makes a lexer look ahead takes no longer than other text. */
static void test_long_lines(void **state) {
    (void)state;
    static const char *const parts[] = { "a",  "/",    "'",  "\"", "`",    "``a",  "${",   "$(",  "<",
                                         "a:", "a b ", "(",  ")",  "R\"(", "r#\"", "<<A ", "&a",  "[",
                                         "{",  "--",   "a(", "\\", "*",    "#",    "/*",   "a -", "=" };
    const size_t len = 1 << 15;
    char *line = malloc(len);
    assert_non_null(line);
    UiCodeRun runs[64];
    for (size_t p = 0; p < sizeof parts / sizeof *parts; p++) {
        for (size_t n = 0, k = strlen(parts[p]); n < len; n++) line[n] = parts[p][n % k];
        for (size_t i = 0; ui_code_lexers[i]; i++) {
            UiCodeState st = { 0 };
            const size_t n = ui_code_line(ui_code_lexers[i], &st, line, len, runs, 64);
            assert_true(n > 0 && n <= 64 && runs[n - 1].at + runs[n - 1].len == len);
        }
    }
    free(line);
}

/* A NUL after a word makes it another word; nothing behind the words of a table is read. */
static void test_nul(void **state) {
    (void)state;
    static const char *const words[] = { "true", "word" };
    const UiWords table = { words, 2 };
    assert_true(ui_words_have(&table, "true", 4));
    for (size_t len = 5; len < 12; len++) {
        assert_false(ui_words_have(&table, "true\0\0\0\0\0\0\0", len));
        assert_false(ui_words_have_nocase(&table, "TRUE\0\0\0\0\0\0\0", len));
    }
    UiCodeState st = { 0 };
    char got[16];
    classes(lexer("yaml"), &st, "~true", 6, got);
}

/* States are compared as bytes. */
static void test_no_padding(void **state) {
    (void)state;
    UiCodeState s;
    size_t n = sizeof s.mode + sizeof s.outer + sizeof s.depth + sizeof s.flag + sizeof s.nest +
               sizeof s.count + sizeof s.more + sizeof s.tag + sizeof s.next_tag;
    assert_int_equal(n, sizeof s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_samples),    cmocka_unit_test(test_names),
        cmocka_unit_test(test_tables),     cmocka_unit_test(test_any_bytes),
        cmocka_unit_test(test_long_lines), cmocka_unit_test(test_no_padding),
        cmocka_unit_test(test_nul),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: GPL-3.0-or-later */
/* SQL: the words of the standard, PostgreSQL, SQLite and MySQL, in any case. */
#include "ui/code/scan.h"

/* clang-format off */
static const char *const keywords[] = {
    "add", "all", "alter", "analyze", "and", "any", "as", "asc", "auto_increment", "begin", "between",
    "by", "cascade", "case", "check", "column", "commit", "conflict", "constraint", "create", "cross",
    "current_date", "current_timestamp", "database", "declare", "default", "delete", "desc", "distinct",
    "do", "drop", "else", "end", "except", "exists", "explain", "false", "fetch", "first", "following",
    "for", "foreign", "from", "full", "function", "grant", "group", "having", "if", "ignore", "ilike",
    "in", "index", "inner", "insert", "intersect", "interval", "into", "is", "join", "key", "language",
    "last", "lateral", "left", "like", "limit", "materialized", "merge", "natural", "no", "not",
    "nothing", "null", "nulls", "of", "offset", "on", "only", "or", "order", "outer", "over", "partition",
    "preceding", "primary", "procedure", "range", "recursive", "references", "rename", "replace",
    "restrict", "return", "returning", "returns", "revoke", "right", "rollback", "row", "rows",
    "savepoint", "select", "set", "similar", "start", "table", "temp", "temporary", "then", "to",
    "transaction", "trigger", "true", "truncate", "unbounded", "union", "unique", "update", "use",
    "using", "values", "view", "when", "where", "window", "with", "without",
};
/* clang-format on */

/* clang-format off */
static const char *const types[] = {
    "array", "bigint", "bigserial", "binary", "bit", "blob", "bool", "boolean", "bytea", "char",
    "character", "clob", "date", "datetime", "decimal", "double", "enum", "float", "int", "int2", "int4",
    "int8", "integer", "json", "jsonb", "money", "number", "numeric", "nvarchar", "precision", "real",
    "serial", "smallint", "string", "text", "time", "timestamp", "timestamptz", "tinyint", "unsigned",
    "uuid", "varbinary", "varchar", "varchar2", "varying",
};
/* clang-format on */

/* What a line begins in. */
enum { CODE, COMMENT, STRING }; /* flag: its quote */

static void comment(UiScan *s) { s->st->mode = ui_scan_through(s, "*/", UI_CODE_COMMENT) ? CODE : COMMENT; }

/* A quote in a string is doubled, which reads as two strings. Names in quotes are text. */
static void string(UiScan *s) {
    const char quote[2] = { (char)s->st->flag, '\0' };
    const bool closed = ui_scan_through(s, quote, quote[0] == '\'' ? UI_CODE_STRING : UI_CODE_TEXT);
    s->st->mode = closed ? CODE : STRING;
    if (closed) s->st->flag = 0;
}

static void name(UiScan *s) {
    const size_t n = ui_scan_word(s, '$');
    const char *p = s->s + s->at;
    size_t next = n;
    while (next < n + 2 && ui_is_blank(ui_scan_peek(s, next))) next++;
    if (ui_scan_before(s) == '.')
        ui_scan_take(s, n, UI_CODE_TEXT);
    else if (ui_words_have_nocase(&s->x->keywords, p, n))
        ui_scan_take(s, n, UI_CODE_KEYWORD);
    else if (ui_words_have_nocase(&s->x->types, p, n))
        ui_scan_take(s, n, UI_CODE_TYPE);
    else
        ui_scan_take(s, n, ui_scan_peek(s, n) == '(' ? UI_CODE_FUNCTION : UI_CODE_TEXT);
}

static void code(UiScan *s) {
    const char c = ui_scan_peek(s, 0);
    if (ui_is_digit(c)) {
        ui_scan_take(s, ui_scan_number(s), UI_CODE_NUMBER);
    } else if (ui_is_word(c)) {
        name(s);
    } else if (ui_scan_is(s, "--")) {
        ui_scan_rest(s, UI_CODE_COMMENT);
    } else if (ui_scan_is(s, "/*")) {
        ui_scan_take(s, 2, UI_CODE_COMMENT);
        comment(s);
    } else if (c == '\'' || c == '"' || c == '`') {
        s->st->flag = (uint8_t)c;
        ui_scan_take(s, 1, c == '\'' ? UI_CODE_STRING : UI_CODE_TEXT);
        string(s);
    } else {
        ui_scan_take(s, 1, UI_CODE_TEXT);
    }
}

static void line(UiScan *s) {
    static void (*const modes[])(UiScan *) = { [CODE] = code, [COMMENT] = comment, [STRING] = string };
    while (!ui_scan_end(s)) modes[s->st->mode](s);
}

const UiLexer ui_lexer_sql = {
    .names = "sql,mysql,postgresql,postgres,pgsql,plpgsql,sqlite,sqlite3,tsql,plsql",
    .line = line,
    .keywords = UI_WORDS(keywords),
    .types = UI_WORDS(types),
};

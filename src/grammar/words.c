/* SPDX-License-Identifier: GPL-3.0-or-later */
/* --only: a text whose words match an expression, or another one that holds for words between them. Words
 * are letters, digits, apostrophes and hyphens; what is between words is free. */
#include <string.h>

#include "src/grammar/regex.h"

/* Letters beyond ASCII count as parts of words, but no signs: Latin-1's, general punctuation, symbols, and
 * the punctuation of East Asia. */
static void add_signs(QsfCharset *s) {
    static const QsfRange signs[] = { { '\t', '\n' },     { ' ', '&' },         { '(', ',' },
                                      { '.', '/' },       { ':', '@' },         { '[', '`' },
                                      { '{', '~' },       { 0xA0, 0xBF },       { 0xD7, 0xD7 },
                                      { 0xF7, 0xF7 },     { 0x2000, 0x2018 },   { 0x201A, 0x206F },
                                      { 0x20A0, 0x20CF }, { 0x2190, 0x2BFF },   { 0x3000, 0x303F },
                                      { 0xFF01, 0xFF0F }, { 0x1F000, 0x1FAFF }, { 0xFE00, 0xFE0F } };
    qsf_charset_add_all(s, signs, sizeof signs / sizeof *signs);
}

/* A rule: a word that the expression matches. */
static uint32_t word_graph(QsfGrammarBuild *b, const char *text, size_t len) {
    static const char word[] = "(?:[^\\t\\n -&(-,./:-@\\[-`{-~\\xa0-\\xbf\\xd7\\xf7\\u2000-\\u2018\\u201a-"
                               "\\u206f\\u20a0-\\u20cf\\u2190-\\u2bff\\u3000-\\u303f\\uff01-\\uff0f"
                               "\\u{1f000}-\\u{1faff}\\ufe00-\\ufe0f])+";
    const uint32_t one = qsf_regex_parse(b, word, sizeof word - 1), two = qsf_regex_parse(b, text, len);
    QsfGraph *g = b->failed ? NULL : qsf_regex_graph(b, one, false);
    QsfGraph *h = b->failed ? NULL : qsf_regex_graph(b, two, false);
    QsfGraph *both = g != NULL && h != NULL ? qsf_graph_both(g, h) : NULL;
    if (!b->failed && both == NULL) qsf_gbuild_fail(b, QSF_E_USAGE, "the expression for words is too large");
    if (both != NULL && qsf_graph_is_empty(both))
        qsf_gbuild_fail(b, QSF_E_USAGE, "no word matches the expression \"%.*s\"",
                        (int)(len < 200 ? len : 200), text);
    qsf_graph_free(g);
    qsf_graph_free(h);
    if (!b->failed) return qsf_node_graph(b, both, false);
    qsf_graph_free(both);
    return 0;
}

static uint32_t signs(QsfGrammarBuild *b, uint32_t min) {
    QsfCharset s = { 0 };
    add_signs(&s);
    const uint32_t node = qsf_node_repeat(b, qsf_node_set(b, &s), min, QSF_NO_LIMIT);
    qsf_charset_free(&s);
    return node;
}

/* signs? (word (signs word)* signs?)? with at least one word of the first expression. */
int qsf_read_words(QsfGrammarBuild *b, const char *text, size_t len) {
    const char *nl = memchr(text, '\n', len);
    const size_t first = nl != NULL ? (size_t)(nl - text) : len;
    b->root = qsf_rule_new(b, "", 0);
    const uint32_t word = qsf_rule_new(b, "", 0), gap = qsf_rule_new(b, "", 0), only = qsf_rule_new(b, "", 0);
    const uint32_t ways = qsf_node_list(b, QSF_NODE_ALT), again = qsf_node_list(b, QSF_NODE_SEQ);
    const uint32_t all = qsf_node_list(b, QSF_NODE_SEQ);
    if (b->failed) return b->err->code;
    const uint32_t body = word_graph(b, text, first);
    if (!b->failed) b->rules[only].node = body;
    qsf_node_add(b, ways, qsf_node_rule(b, only));
    if (nl != NULL && !b->failed) qsf_node_add(b, ways, word_graph(b, nl + 1, len - first - 1));
    qsf_node_add(b, again, qsf_node_rule(b, gap));
    qsf_node_add(b, again, qsf_node_rule(b, word));
    qsf_node_add(b, all, signs(b, 0));
    qsf_node_add(b, all, qsf_node_rule(b, word));
    qsf_node_add(b, all, qsf_node_repeat(b, again, 0, QSF_NO_LIMIT));
    qsf_node_add(b, all, signs(b, 0));
    if (b->failed) return b->err->code;
    const uint32_t between = signs(b, 1);
    if (b->failed) return b->err->code;
    b->rules[word].node = ways;
    b->rules[gap].node = between;
    b->rules[b->root].node = all;
    return QSF_OK;
}

/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The Jinja templates of chat models: compile once, render many times. The language is the part of Jinja 3.1
 * (pallets/jinja) that models use, set up as Hugging Face transformers does: trim_blocks and lstrip_blocks
 * on, no autoescape, an immutable sandbox, break and continue, {% generation %}. A template is an untrusted
 * program: steps, nesting, memory and output are limited, integers are checked, only namespaces can be
 * modified, and nothing except the variables is accessible.
 *
 * Every character of the output has a tag with its origin (QsfJTag). */
#ifndef QSF_JINJA_JINJA_H
#define QSF_JINJA_JINJA_H

#include <time.h>

#include "src/base/json.h"
#include "src/jinja/value.h"

typedef struct QsfJinjaLimits {
    uint64_t steps; /* nodes evaluated, plus the bytes and elements that filters walk over */
    size_t memory;  /* bytes of values alive in one rendering (and of one compiled template) */
    size_t output;  /* bytes of text, including unfinished macro and block texts */
    unsigned depth; /* depth of nested evaluator calls */
} QsfJinjaLimits;
/* 10^6 steps, 16 MiB, 4 MiB, 200 levels. The nesting of the source itself is always limited to 64. */
extern const QsfJinjaLimits qsf_jinja_limits;
/* The same, plus more for a rendering whose variables hold that many bytes of text: these are not a loop of
 * the template, and templates make a few passes over them and copies of them. */
QsfJinjaLimits qsf_jinja_limits_for(size_t data_bytes);

typedef struct QsfJinja QsfJinja;

/* Compiles source[0..len), which may be freed afterwards. limits NULL = the ones above. QSF_E_MODEL "line N:
 * ..." for text that is not Jinja or is not supported (the message then says "not supported"). The result is
 * immutable: any thread may render from it. */
int qsf_jinja_compile(QsfJinja **out, const char *source, size_t len, const QsfJinjaLimits *limits,
                      QsfErr *err);
void qsf_jinja_free(QsfJinja *t); /* NULL allowed */
/* Whether it reads a variable of this name, perhaps one that it sets itself. */
bool qsf_jinja_reads(const QsfJinja *t, const char *name);
/* Whether it contains this text as a string literal. */
bool qsf_jinja_has_word(const QsfJinja *t, const char *word);

/* --- the variables of one rendering; one thread --- */
typedef struct QsfJinjaVars QsfJinjaVars;
/* NULL without memory. limits: those of the rendering to follow; NULL = qsf_jinja_limits. */
QsfJinjaVars *qsf_jinja_vars_new(const QsfJinjaLimits *limits);
void qsf_jinja_vars_free(QsfJinjaVars *v); /* NULL allowed */
/* The memory of the values below; they live as long as v. */
QsfJMem *qsf_jinja_vars_mem(QsfJinjaVars *v);
/* Binds a variable; the last value counts. Running out of memory here or in making a value is remembered and
 * reported by the rendering. */
void qsf_jinja_set(QsfJinjaVars *v, const char *name, QsfJVal val);
/* A copy of j; all its text is tagged QSF_J_DATA. The tree may be freed afterwards. */
QsfJVal qsf_jinja_from_json(QsfJMem *m, const QsfJson *j);
/* The clock of strftime_now; without it the local time of the rendering. */
void qsf_jinja_set_now(QsfJinjaVars *v, const struct tm *now);

typedef struct QsfJinjaOut {
    QsfStrbuf text;
    QsfJRun *runs; /* (n_runs): text[runs[i-1].end .. runs[i].end) has runs[i].tag */
    size_t n_runs, cap_runs;
    bool raised;    /* the template called raise_exception; text is its message */
    uint64_t steps; /* how many it took */
} QsfJinjaOut;
/* Frees the text and the tags; a zeroed one is allowed. */
void qsf_jinja_out_free(QsfJinjaOut *o);

/* Renders t with v (once per v: its memory also holds the values of the rendering). *out must be
 * zero-initialised. QSF_E_RUNTIME: "line N: ..." with the construct, or the message of raise_exception alone
 * (then out->raised), or the limit that was exceeded. */
int qsf_jinja_render(const QsfJinja *t, QsfJinjaVars *v, QsfJinjaOut *out, QsfErr *err);

#endif

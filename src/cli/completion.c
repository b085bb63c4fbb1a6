/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Completions for shells, written from the tables of options: implements qsf_cli_print_completion. Each is
 * one file that needs nothing else; names of sessions and files are looked up when they are completed. */
#include <stdlib.h>
#include <string.h>

#include "qsf_cli.h"

#define COLON_FROM 25 /* characters before a colon that ends a clause */
/* Prints the names of the roles in the file that follows. */
#define ROLES    "sed -n 's/^ *\\[role  *\\([^]]*[^] ]\\) *\\].*/\\1/p' "
#define HELP_MAX 100 /* characters of a description: a menu has one line for it */

/* A row of either table. */
typedef struct Option {
    const char *name, *aliases, *arg, *help, *values;
    char short_name;
} Option;

/* What one output needs: the file, and the program's name with underscores, for names of functions. */
typedef struct Out {
    const QSFCli *cli;
    FILE *to;
    char id[32];
} Out;

static bool option_at(const QSFCli *cli, size_t i, Option *o) {
    const QSFCliOption *own = qsf_cli_option_at(cli, i);
    *o = (Option){ 0 };
    if (own) {
        const bool other = cli->no_settings && qsf_setting_find(own->name); /* a name that means less here */
        const char *values = cli->values ? cli->values(own->name) : NULL;
        *o = (Option){ .name = own->name,
                       .aliases = own->aliases,
                       .arg = own->arg,
                       .help = own->help,
                       .values = values || other ? values : qsf_cli_values(own->name),
                       .short_name = own->short_name };
        return true;
    }
    size_t n = 0;
    while (qsf_cli_option_at(cli, n)) n++;
    const QSFSetting *row = cli->no_settings ? NULL : qsf_setting_at(i - n);
    if (!row) return false;
    *o = (Option){ .name = row->name,
                   .aliases = row->aliases,
                   .arg = row->arg,
                   .help = row->help,
                   .values = qsf_cli_values(row->name),
                   .short_name = row->short_name };
    return true;
}

/* The first clause of a help text: "with --bench: number of repeats" is one. */
static size_t clause(const char *help) {
    size_t n = strcspn(help, ";:(|\n");
    if (help[n] == ':' && n < COLON_FROM) n += strcspn(help + n, ";(|\n");
    if (n > HELP_MAX)
        for (n = HELP_MAX; n > 0 && help[n] != ' '; n--) {
        }
    while (n > 0 && (help[n - 1] == ' ' || help[n - 1] == ',')) n--;
    return n;
}

/* Writes text with a backslash before each character of `special`; a single quote ends the quotes around it,
 * is written, and begins them again. */
static void put(const Out *o, const char *text, size_t len, const char *special) {
    for (size_t i = 0; i < len; i++) {
        if (text[i] == '\'') {
            fputs("'\\''", o->to);
            continue;
        }
        if (strchr(special, text[i])) fputc('\\', o->to);
        fputc(text[i], o->to);
    }
}

/* Writes a part of a script: @ID@ is for names of functions, @PROGRAM@ the program. */
static void script(const Out *o, const char *text) {
    for (const char *at; (at = strchr(text, '@')) != NULL; text = strchr(at + 1, '@') + 1) {
        fprintf(o->to, "%.*s%s", (int)(at - text), text, at[1] == 'I' ? o->id : o->cli->program);
    }
    fputs(text, o->to);
}

/* All spellings of an option, with dashes. */
static void put_names(const Out *o, const Option *opt, const char *separator) {
    if (opt->short_name) fprintf(o->to, "-%c%s", opt->short_name, separator);
    fprintf(o->to, "--%s", opt->name);
    for (const char *a = opt->aliases; a && *a; a += strcspn(a, ","), a += *a == ',')
        fprintf(o->to, "%s--%.*s", separator, (int)strcspn(a, ","), a);
}

/* The next one of a list of values, or NULL. */
static const char *next_value(const char *p) {
    p += strcspn(p, "|");
    return *p ? p + 1 : NULL;
}

/* Is this kind of names among the values? */
static bool has(const char *values, const char *kind) {
    for (const char *p = values; p && *p; p = next_value(p))
        if (strcspn(p, "|") == strlen(kind) && strncmp(p, kind, strlen(kind)) == 0) return true;
    return false;
}

static bool has_words(const char *values) {
    for (const char *p = values; p && *p; p = next_value(p))
        if (*p != '@') return true;
    return has(values, "@template");
}

typedef void PutWord(const Out *o, const char *word, size_t n, const char *help, size_t help_n);

/* Every word with its meaning; the names of templates are those that exist now. */
static void each_word(const Out *o, const char *values, PutWord *word) {
    for (const char *p = values; p && *p; p = next_value(p)) {
        const size_t len = strcspn(p, "|"), n = strcspn(p, " |");
        const char *help = p + n + 1;
        if (*p != '@') word(o, p, n, help, n < len ? clause(help) : 0);
    }
    char *names = has(values, "@template") ? qsf_template_names() : NULL;
    for (const char *t = names; t && *t; t += strlen(t) + 1) word(o, t, strlen(t), "", 0);
    free(names);
}

/* ---- bash */

static const char bash_head[] =
    "# bash completion for @PROGRAM@, written by @PROGRAM@ --print-completion bash\n"
    "_@ID@_files() {\n"
    "    local name\n"
    "    compopt -o filenames 2>/dev/null\n"
    "    while IFS= read -r name; do\n"
    "        [[ -d $name || $name == $1 ]] && COMPREPLY+=(\"$prefix$name\")\n"
    "    done < <(compgen -f -- \"${word/#'~/'/$HOME/}\")\n"
    "}\n"
    "_@ID@_sessions() {\n"
    "    local name\n"
    "    for name in \"${XDG_DATA_HOME:-$HOME/.local/share}\"/qsf/sessions/*.jsonl; do\n"
    "        [[ -e $name ]] || continue\n"
    "        name=${name##*/} name=${name%.jsonl}\n"
    "        [[ $name == \"$word\"* ]] && COMPREPLY+=(\"$prefix$(printf %q \"$name\")\")\n"
    "    done\n"
    "}\n"
    "_@ID@_roles() {\n"
    "    local name\n"
    "    while IFS= read -r name; do\n"
    "        [[ $name == \"$word\"* ]] && COMPREPLY+=(\"$prefix$(printf %q \"$name\")\")\n"
    "    done < <(" ROLES "\"${XDG_CONFIG_HOME:-$HOME/.config}/qsf/config\" 2>/dev/null)\n"
    "}\n"
    "_@ID@_words() {\n"
    "    local name\n"
    "    for name in $1; do\n"
    "        [[ $name == \"$word\"* ]] && COMPREPLY+=(\"$prefix$name\")\n"
    "    done\n"
    "}\n"
    "_@ID@() {\n"
    "    local word=${COMP_WORDS[COMP_CWORD]} option=${COMP_WORDS[COMP_CWORD - 1]} prefix= i\n"
    "    COMPREPLY=()\n"
    "    # --option=value is one word, or three where = is in COMP_WORDBREAKS.\n"
    "    if [[ $word == = ]]; then\n"
    "        word=\n"
    "    elif [[ $option == = ]]; then\n"
    "        option=${COMP_WORDS[COMP_CWORD - 2]}\n"
    "    elif [[ $word == --*=* ]]; then\n"
    "        option=${word%%=*} prefix=${word%%=*}= word=${word#*=}\n"
    "    fi\n"
    "    for ((i = 1; i < COMP_CWORD; i++)); do\n"
    "        [[ ${COMP_WORDS[i]} == -- ]] && option=--\n"
    "    done\n"
    "    word=${word#[\\\"\\']} word=${word//\\\\/}\n"
    "    case $option in\n";

static void bash_word(const Out *o, const char *word, size_t n, const char *help, size_t help_n) {
    (void)help, (void)help_n;
    put(o, word, n, "");
    fputc(' ', o->to);
}

/* The commands that complete the word. */
static void bash_action(const Out *o, const char *values) {
    static const char *const kinds[][2] = { { "@file", "files '*'" },
                                            { "@jinja", "files '*.@(jinja|json)'" },
                                            { "@model", "files '*.@(gguf|qsf)'" },
                                            { "@dir", "files /" },
                                            { "@session", "sessions" },
                                            { "@role", "roles" } };
    if (has_words(values)) {
        fprintf(o->to, " _%s_words '", o->id);
        each_word(o, values, bash_word);
        fputs("';", o->to);
    }
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (has(values, kinds[i][0])) fprintf(o->to, " _%s_%s;", o->id, kinds[i][1]);
}

static void print_bash(const Out *o) {
    Option opt;
    script(o, bash_head);
    for (size_t i = 0; option_at(o->cli, i, &opt); i++) {
        if (!opt.arg) continue;
        fputs("    ", o->to);
        put_names(o, &opt, " | ");
        fputc(')', o->to);
        bash_action(o, opt.values);
        fputs(" return ;;\n", o->to);
    }
    script(o, "    esac\n    if [[ $word == -* && $option != -- ]]; then\n        _@ID@_words '");
    for (size_t i = 0; option_at(o->cli, i, &opt); i++) {
        fprintf(o->to, "--%s ", opt.name);
        if (opt.short_name) fprintf(o->to, "-%c ", opt.short_name);
    }
    fputs("'\n    else\n       ", o->to);
    bash_action(o, o->cli->operands);
    script(o, " :\n    fi\n}\ncomplete -F _@ID@ @PROGRAM@\n");
}

/* ---- zsh */

static const char zsh_head[] =
    "#compdef @PROGRAM@\n"
    "# zsh completion for @PROGRAM@, written by @PROGRAM@ --print-completion zsh\n"
    "_@ID@_sessions() {\n"
    "    local -a names\n"
    "    names=(${XDG_DATA_HOME:-$HOME/.local/share}/qsf/sessions/*.jsonl(N:t:r))\n"
    "    compadd -a names\n"
    "}\n"
    "_@ID@_roles() {\n"
    "    local -a names\n"
    "    names=(${(f)\"$(" ROLES "${XDG_CONFIG_HOME:-$HOME/.config}/qsf/config 2>/dev/null)\"})\n"
    "    compadd -a names\n"
    "}\n"
    "_@ID@_models() {\n"
    "    _files -g '*.(gguf|qsf)(-.)'\n"
    "}\n"
    "_@ID@_templates() {\n"
    "    _files -g '*.(jinja|json)(-.)'\n"
    "}\n"
    "_@ID@() {\n"
    "    _arguments -s -S";

/* A word, and after `before` its help in quotes, where the characters of `special` are escaped. */
static void described(const Out *o, const char *word, size_t n, const char *help, size_t help_n,
                      const char *before, const char *special) {
    put(o, word, n, "");
    if (help_n > 0) {
        fputs(before, o->to);
        put(o, help, help_n, special);
        fputc('"', o->to);
    }
    fputc(' ', o->to);
}

static void zsh_word(const Out *o, const char *word, size_t n, const char *help, size_t help_n) {
    described(o, word, n, help, help_n, "\\:\"", "\"$`\\");
}

static void zsh_plain_word(const Out *o, const char *word, size_t n, const char *help, size_t help_n) {
    (void)help, (void)help_n;
    put(o, word, n, "");
    fputc(' ', o->to);
}

/* The function of a kind of names, or NULL. */
static const char *zsh_names(const char *values) {
    return has(values, "@file")      ? "_files"
           : has(values, "@jinja")   ? "_@ID@_templates"
           : has(values, "@model")   ? "_@ID@_models"
           : has(values, "@dir")     ? "_files -/"
           : has(values, "@session") ? "_@ID@_sessions"
           : has(values, "@role")    ? "_@ID@_roles"
                                     : NULL;
}

static void zsh_action(const Out *o, const char *values) {
    const char *names = zsh_names(values);
    if (!has_words(values)) {
        script(o, names ? names : " ");
        return;
    }
    fputs(names ? "{_alternative \"values\\:value\\:(" : "((", o->to);
    each_word(o, values, names ? zsh_plain_word : zsh_word);
    fputs(names ? ")\" \"files\\:file\\:" : "))", o->to);
    if (names) script(o, names);
    if (names) fputs("\"}", o->to);
}

/* One spelling: what may be in the same word, or in the next one. */
static void zsh_spec(const Out *o, const Option *opt, const char *dashes, const char *name,
                     const char *glue) {
    fprintf(o->to, " \\\n        '*%s%s%s[", dashes, name, opt->arg ? glue : "");
    put(o, opt->help, clause(opt->help), "[]\\");
    fputc(']', o->to);
    if (opt->arg) {
        fputc(':', o->to);
        put(o, opt->arg, strlen(opt->arg), ":\\");
        fputc(':', o->to);
        zsh_action(o, opt->values);
    }
    fputc('\'', o->to);
}

static void print_zsh(const Out *o) {
    Option opt;
    script(o, zsh_head);
    for (size_t i = 0; option_at(o->cli, i, &opt); i++) {
        const char letter[] = { opt.short_name, '\0' };
        if (opt.short_name) zsh_spec(o, &opt, "-", letter, "+");
        zsh_spec(o, &opt, "--", opt.name, "=");
    }
    fputs(" \\\n        '*:file:", o->to);
    zsh_action(o, o->cli->operands);
    fprintf(o->to, "'\n}\n_%s \"$@\"\n", o->id);
}

/* ---- fish */

static const char fish_head[] =
    "# fish completion for @PROGRAM@, written by @PROGRAM@ --print-completion fish\n"
    "function __@ID@_sessions\n"
    "    set -l dir ~/.local/share\n"
    "    test -n \"$XDG_DATA_HOME\"; and set dir $XDG_DATA_HOME\n"
    "    for file in $dir/qsf/sessions/*.jsonl\n"
    "        string replace -r '^.*/(.*)\\.jsonl$' '$1' -- $file\n"
    "    end\n"
    "end\n"
    "function __@ID@_roles\n"
    "    set -l dir ~/.config\n"
    "    test -n \"$XDG_CONFIG_HOME\"; and set dir $XDG_CONFIG_HOME\n"
    "    " ROLES "$dir/qsf/config 2>/dev/null\n"
    "end\n";

static void fish_word(const Out *o, const char *word, size_t n, const char *help, size_t help_n) {
    described(o, word, n, help, help_n, "\\t\"", "\"$\\");
}

/* -r: an argument, which may be a file; -x: not a file; -k: in this order. */
static void fish_action(const Out *o, const char *values, bool argument) {
    const bool suffixes = has(values, "@model") || has(values, "@jinja");
    const bool files = suffixes || has(values, "@file");
    if (argument) fputs(files ? " -r" : " -x", o->to);
    const bool names = has(values, "@dir") || has(values, "@session") || has(values, "@role");
    if (!has_words(values) && !suffixes && !names) return;
    fputs(suffixes ? " -k -a '" : " -a '", o->to);
    each_word(o, values, fish_word);
    if (has(values, "@model")) fputs("(__fish_complete_suffix .gguf .qsf)", o->to);
    if (has(values, "@jinja")) fputs("(__fish_complete_suffix .jinja .json)", o->to);
    if (has(values, "@dir")) fputs("(__fish_complete_directories)", o->to);
    if (has(values, "@session")) fprintf(o->to, "(__%s_sessions)", o->id);
    if (has(values, "@role")) fprintf(o->to, "(__%s_roles)", o->id);
    fputc('\'', o->to);
}

static void print_fish(const Out *o) {
    Option opt;
    script(o, fish_head);
    for (size_t i = 0; option_at(o->cli, i, &opt); i++) {
        fprintf(o->to, "complete -c %s -l %s", o->cli->program, opt.name);
        if (opt.short_name) fprintf(o->to, " -s %c", opt.short_name);
        fputs(" -d '", o->to);
        put(o, opt.help, clause(opt.help), "\\");
        fputc('\'', o->to);
        if (opt.arg) fish_action(o, opt.values, true);
        fputc('\n', o->to);
    }
    fprintf(o->to, "complete -c %s", o->cli->program);
    fish_action(o, o->cli->operands, false);
    fputc('\n', o->to);
}

bool qsf_cli_print_completion(const QSFCli *cli, const char *shell, FILE *to) {
    Out o = { .cli = cli, .to = to };
    (void)snprintf(o.id, sizeof o.id, "%s", cli->program);
    for (char *c = o.id; *c; c++)
        if (*c == '-') *c = '_';
    if (strcmp(shell, "bash") == 0)
        print_bash(&o);
    else if (strcmp(shell, "zsh") == 0)
        print_zsh(&o);
    else if (strcmp(shell, "fish") == 0)
        print_fish(&o);
    else
        return false;
    return true;
}

/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Character references and line breaks of HTML in Markdown. Names: the part of HTML's list that models
 * write. */
#include "ui/md/entity.h"

#include <stdint.h>
#include <string.h>

#include "qsf_text.h"

typedef struct Name {
    const char *name, *text;
} Name;

static const Name names[] = {
    { "AElig", "Æ" },  { "Aring", "Å" },  { "Auml", "Ä" },   { "Delta", "Δ" },   { "Gamma", "Γ" },
    { "Lambda", "Λ" }, { "Omega", "Ω" },  { "Ouml", "Ö" },   { "Phi", "Φ" },     { "Pi", "Π" },
    { "Psi", "Ψ" },    { "Sigma", "Σ" },  { "Theta", "Θ" },  { "Uuml", "Ü" },    { "aacute", "á" },
    { "acirc", "â" },  { "acute", "´" },  { "aelig", "æ" },  { "agrave", "à" },  { "alpha", "α" },
    { "amp", "&" },    { "and", "∧" },    { "apos", "'" },   { "approx", "≈" },  { "aring", "å" },
    { "ast", "*" },    { "asymp", "≈" },  { "atilde", "ã" }, { "auml", "ä" },    { "beta", "β" },
    { "bsol", "\\" },  { "bull", "•" },   { "ccedil", "ç" }, { "cent", "¢" },    { "check", "✓" },
    { "chi", "χ" },    { "colon", ":" },  { "comma", "," },  { "copy", "©" },    { "cross", "✗" },
    { "curren", "¤" }, { "dagger", "†" }, { "dArr", "⇓" },   { "darr", "↓" },    { "deg", "°" },
    { "delta", "δ" },  { "divide", "÷" }, { "dollar", "$" }, { "eacute", "é" },  { "ecirc", "ê" },
    { "egrave", "è" }, { "emsp", " " },   { "ensp", " " },   { "epsilon", "ε" }, { "equals", "=" },
    { "equiv", "≡" },  { "eta", "η" },    { "euml", "ë" },   { "euro", "€" },    { "excl", "!" },
    { "exist", "∃" },  { "forall", "∀" }, { "frac12", "½" }, { "frac14", "¼" },  { "frac34", "¾" },
    { "gamma", "γ" },  { "ge", "≥" },     { "geq", "≥" },    { "gt", ">" },      { "hArr", "⇔" },
    { "harr", "↔" },   { "hellip", "…" }, { "iacute", "í" }, { "iexcl", "¡" },   { "infin", "∞" },
    { "int", "∫" },    { "iota", "ι" },   { "iquest", "¿" }, { "isin", "∈" },    { "iuml", "ï" },
    { "kappa", "κ" },  { "lArr", "⇐" },   { "lambda", "λ" }, { "laquo", "«" },   { "larr", "←" },
    { "lbrace", "{" }, { "lbrack", "[" }, { "lcub", "{" },   { "ldquo", "“" },   { "le", "≤" },
    { "leq", "≤" },    { "lowbar", "_" }, { "lpar", "(" },   { "lsaquo", "‹" },  { "lsqb", "[" },
    { "lsquo", "‘" },  { "lt", "<" },     { "mdash", "—" },  { "micro", "µ" },   { "middot", "·" },
    { "minus", "−" },  { "mu", "μ" },     { "nabla", "∇" },  { "nbsp", " " },    { "ndash", "–" },
    { "ne", "≠" },     { "not", "¬" },    { "notin", "∉" },  { "ntilde", "ñ" },  { "nu", "ν" },
    { "num", "#" },    { "oacute", "ó" }, { "ocirc", "ô" },  { "ograve", "ò" },  { "omega", "ω" },
    { "or", "∨" },     { "oslash", "ø" }, { "otilde", "õ" }, { "ouml", "ö" },    { "para", "¶" },
    { "part", "∂" },   { "percnt", "%" }, { "period", "." }, { "phi", "φ" },     { "pi", "π" },
    { "plus", "+" },   { "plusmn", "±" }, { "pound", "£" },  { "prime", "′" },   { "prod", "∏" },
    { "psi", "ψ" },    { "quest", "?" },  { "quot", "\"" },  { "rArr", "⇒" },    { "radic", "√" },
    { "raquo", "»" },  { "rarr", "→" },   { "rbrace", "}" }, { "rbrack", "]" },  { "rcub", "}" },
    { "rdquo", "”" },  { "reg", "®" },    { "rho", "ρ" },    { "rpar", ")" },    { "rsaquo", "›" },
    { "rsqb", "]" },   { "rsquo", "’" },  { "sect", "§" },   { "semi", ";" },    { "sigma", "σ" },
    { "sol", "/" },    { "sub", "⊂" },    { "sube", "⊆" },   { "sum", "∑" },     { "sup", "⊃" },
    { "supe", "⊇" },   { "sup1", "¹" },   { "sup2", "²" },   { "sup3", "³" },    { "szlig", "ß" },
    { "tau", "τ" },    { "theta", "θ" },  { "thinsp", " " }, { "times", "×" },   { "tilde", "˜" },
    { "trade", "™" },  { "uArr", "⇑" },   { "uacute", "ú" }, { "uarr", "↑" },    { "ucirc", "û" },
    { "ugrave", "ù" }, { "uuml", "ü" },   { "verbar", "|" }, { "vert", "|" },    { "xi", "ξ" },
    { "yen", "¥" },    { "zeta", "ζ" },
};

static size_t utf8(uint32_t c, char dst[4]) {
    if (c < 0x80) {
        dst[0] = (char)c;
        return 1;
    }
    const size_t n = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    static const unsigned char first[] = { 0, 0, 0xc0, 0xe0, 0xf0 };
    for (size_t i = n; i-- > 1; c >>= 6) dst[i] = (char)(0x80 | (c & 0x3f));
    dst[0] = (char)(first[n] | c);
    return n;
}

static int digit(char c, bool hex) {
    if (c >= '0' && c <= '9') return c - '0';
    if (!hex) return -1;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* "#65" or "#x41"; characters that do not exist become U+FFFD, the end of a line a blank. 0: not a number. */
static size_t number(const char *s, size_t len, char dst[4]) {
    const bool hex = len > 1 && (s[1] == 'x' || s[1] == 'X');
    size_t i = hex ? 2 : 1;
    uint32_t c = 0;
    if (i >= len) return 0;
    for (; i < len; i++) {
        const int d = digit(s[i], hex);
        if (d < 0) return 0;
        if (c <= 0x10ffff) c = c * (hex ? 16u : 10u) + (uint32_t)d;
    }
    if (c == '\n' || c == '\r') c = ' ';
    const bool exists = c != 0 && c <= 0x10ffff && (c < 0xd800 || c > 0xdfff);
    return utf8(exists ? c : 0xfffd, dst);
}

static const char *text_of(const char *s, size_t len) {
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (strlen(names[i].name) == len && memcmp(names[i].name, s, len) == 0) return names[i].text;
    }
    return NULL;
}

size_t ui_md_entity(const char *s, size_t len, bool ascii, char dst[UI_MD_ENTITY_MAX]) {
    QSFClean clean = { .ascii = ascii };
    char bytes[4];
    if (len < 3 || s[0] != '&' || s[len - 1] != ';') return 0;
    if (s[1] == '#') {
        const size_t n = number(s + 1, len - 2, bytes);
        return n > 0 ? qsf_clean(&clean, bytes, n, true, dst) : 0;
    }
    const char *text = text_of(s + 1, len - 2);
    return text ? qsf_clean(&clean, text, strlen(text), true, dst) : 0;
}

bool ui_md_is_br(const char *s, size_t len) {
    if (len < 4 || s[0] != '<' || (s[1] | 32) != 'b' || (s[2] | 32) != 'r') return false;
    size_t i = 3;
    while (i < len && (s[i] == ' ' || s[i] == '/')) i++;
    return i + 1 == len && s[i] == '>';
}

/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Writes JSON strings and numbers, without a library. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/json.h"
#include "src/base/utf8.h"

/* Appends one code point, escaped for a JSON string. DEL, C1 and code points that are invisible
 * or change how others are shown are escaped too, beyond what RFC 8259 requires: the text may
 * be shown on a terminal. */
static void put_code_point(QsfStrbuf *b, uint32_t cp) {
    static const char letters[32] = { ['\b'] = 'b', ['\f'] = 'f', ['\n'] = 'n', ['\r'] = 'r', ['\t'] = 't' };
    if (cp == '"' || cp == '\\') {
        qsf_strbuf_addc(b, '\\');
        qsf_strbuf_addc(b, (char)cp);
    } else if (cp < 32 && letters[cp] != 0) {
        qsf_strbuf_addc(b, '\\');
        qsf_strbuf_addc(b, letters[cp]);
    } else if (cp < 32 || (cp >= 0x7F && cp <= 0x9F) || (cp < 0x10000 && qsf_utf8_is_hidden(cp))) {
        qsf_strbuf_addf(b, "\\u%04x", (unsigned)cp);
    } else if (qsf_utf8_is_hidden(cp)) { /* a surrogate pair */
        qsf_strbuf_addf(b, "\\u%04x\\u%04x", 0xD7C0 + (unsigned)(cp >> 10), 0xDC00 + (unsigned)(cp & 0x3FF));
    } else {
        qsf_strbuf_add_utf8(b, cp == 0xFFFFFFFFu ? 0xFFFD : cp);
    }
}

void qsf_json_put_string(QsfStrbuf *b, const char *s, size_t len) {
    qsf_strbuf_addc(b, '"');
    for (size_t i = 0; i < len;) {
        uint32_t cp;
        i += qsf_utf8_next(s + i, len - i, &cp);
        put_code_point(b, cp);
    }
    qsf_strbuf_addc(b, '"');
}

/* Formats v with the fewest digits that read back as v, without an exponent for common magnitudes. */
static void shortest_real(char *text, size_t cap, double v) {
    int digits = 1;
    do {
        snprintf(text, cap, "%.*e", digits - 1, v);
    } while ((strtod(text, NULL) < v || strtod(text, NULL) > v) && ++digits <= 17);
    int exponent = atoi(strchr(text, 'e') + 1), decimals = digits - 1 - exponent;
    if (exponent >= -5 && exponent < 15) snprintf(text, cap, "%.*f", decimals > 0 ? decimals : 0, v);
}

void qsf_json_put_real(QsfStrbuf *b, double v) {
    char text[64];
    if (!isfinite(v)) {
        qsf_strbuf_adds(b, "null");
        return;
    }
    shortest_real(text, sizeof text, v);
    bool point = false; /* the locale's decimal point may be any bytes; JSON's is '.' */
    for (const char *p = text; *p != '\0'; p++) {
        if (strchr("0123456789+-e", *p) != NULL) {
            qsf_strbuf_addc(b, *p);
        } else if (!point) {
            qsf_strbuf_addc(b, '.');
            point = true;
        }
    }
}

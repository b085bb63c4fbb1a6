/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Byte order marks and encoding forms: The Unicode Standard, sections 3.10 and 23.8. */
#include "src/base/decode.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "qsf_decode.h"
#include "src/base/utf8.h"

#define REPLACEMENT 0xFFFDu

enum { UNKNOWN, PLAIN, UTF16_LE, UTF16_BE, UTF32_LE, UTF32_BE };

/* The longer ones first: that of UTF-32 begins with that of UTF-16. */
static const struct {
    unsigned char bytes[4], n, encoding;
    const char *name;
} marks[] = {
    { { 0xFF, 0xFE, 0, 0 }, 4, UTF32_LE, "UTF-32" }, { { 0, 0, 0xFE, 0xFF }, 4, UTF32_BE, "UTF-32" },
    { { 0xEF, 0xBB, 0xBF }, 3, PLAIN, NULL },        { { 0xFF, 0xFE }, 2, UTF16_LE, "UTF-16" },
    { { 0xFE, 0xFF }, 2, UTF16_BE, "UTF-16" },
};
#define N_MARKS (sizeof marks / sizeof *marks)

/* Finds the mark that the n bytes are or begin with; N_MARKS if none. *more: with more bytes,
 * another one is possible. */
static size_t find_mark(const unsigned char *p, size_t n, bool *more) {
    size_t found = N_MARKS;
    *more = false;
    for (size_t i = N_MARKS; i-- > 0;) {
        const size_t have = n < marks[i].n ? n : marks[i].n;
        if (memcmp(p, marks[i].bytes, have) != 0) continue;
        if (have == marks[i].n)
            found = i;
        else
            *more = true;
    }
    return found;
}

static uint32_t unit(const unsigned char *p, unsigned bytes, bool big) {
    uint32_t v = 0;
    for (unsigned i = 0; i < bytes; i++) v |= (uint32_t)p[i] << 8 * (big ? bytes - 1 - i : i);
    return v;
}

static bool is_scalar(uint32_t v) { return v <= 0x10FFFF && (v < 0xD800 || v > 0xDFFF); }

/* Decodes one character from the n held bytes; returns how many it takes, 0 if there are too
 * few. *bad: it is none. */
static unsigned take(const unsigned char *p, unsigned n, unsigned char encoding, bool end, uint32_t *cp,
                     bool *bad) {
    const bool wide = encoding == UTF32_LE || encoding == UTF32_BE;
    const bool big = encoding == UTF16_BE || encoding == UTF32_BE;
    const unsigned bytes = wide ? 4 : 2;
    *cp = REPLACEMENT;
    *bad = true;
    if (n < bytes) return end ? n : 0;
    const uint32_t v = unit(p, bytes, big);
    *bad = !is_scalar(v);
    if (!*bad) *cp = v;
    if (wide || v < 0xD800 || v > 0xDBFF) return bytes;
    if (n < 4) return end ? 2 : 0; /* the second half of a pair follows, if any */
    const uint32_t low = unit(p + 2, 2, big);
    if (low < 0xDC00 || low > 0xDFFF) return 2;
    *bad = false;
    *cp = 0x10000 + ((v - 0xD800) << 10) + (low - 0xDC00);
    return 4;
}

/* Writes the held bytes as far as they are complete. */
static size_t drain(QSFDecode *d, bool end, char *dst) {
    size_t out = 0;
    while (d->n > 0) {
        uint32_t cp;
        bool bad;
        const unsigned used = take(d->held, d->n, d->encoding, end, &cp, &bad);
        if (used == 0) break;
        d->damaged = d->damaged || bad;
        out += qsf_utf8_put(cp, dst + out);
        d->n = (unsigned char)(d->n - used);
        memmove(d->held, d->held + used, d->n);
    }
    return out;
}

/* Decides about the encoding; false if more bytes are needed. Afterwards held has the bytes
 * after the mark. */
static bool detect(QSFDecode *d, bool end) {
    bool more;
    const size_t i = find_mark(d->held, d->n, &more);
    if (more && !end) return false;
    const unsigned skip = i < N_MARKS ? marks[i].n : 0;
    d->encoding = i < N_MARKS ? marks[i].encoding : PLAIN;
    d->n = (unsigned char)(d->n - skip);
    memmove(d->held, d->held + skip, d->n);
    return true;
}

/* Writes what is held of a text that needs no decoding. */
static size_t pass_held(QSFDecode *d, char *dst) {
    const size_t n = d->n;
    memcpy(dst, d->held, n);
    d->n = 0;
    return n;
}

size_t qsf_decode(QSFDecode *d, const char *s, size_t len, bool end, char *dst) {
    size_t out = 0, i = 0;
    while (d->encoding == UNKNOWN && i < len) {
        d->held[d->n++] = (unsigned char)s[i++];
        (void)detect(d, false);
    }
    if (d->encoding == UNKNOWN && end) (void)detect(d, true);
    if (d->encoding == PLAIN) {
        out += pass_held(d, dst);
        memcpy(dst + out, s + i, len - i);
        return out + len - i;
    }
    if (d->encoding == UNKNOWN) return 0;
    out += drain(d, false, dst + out);
    while (i < len) {
        d->held[d->n++] = (unsigned char)s[i++];
        out += drain(d, false, dst + out);
    }
    return end ? out + drain(d, true, dst + out) : out;
}

bool qsf_strbuf_decode(QsfStrbuf *b) {
    QSFDecode d = { 0 };
    const unsigned char first = b->len > 0 ? (unsigned char)b->data[0] : 0xFF;
    if (b->len == 0 || (first != 0xEF && first < 0xFE && first != 0))
        return true; /* no mark begins like this */
    char *text = malloc(QSF_DECODE_MAX(b->len));
    const size_t n = text != NULL ? qsf_decode(&d, b->data, b->len, true, text) : 0;
    qsf_strbuf_clear(b);
    if (text != NULL)
        qsf_strbuf_add(b, text, n);
    else
        b->failed = true;
    free(text);
    return !d.damaged;
}

const char *qsf_decode_name(const char *text, size_t len) {
    bool more;
    const size_t i = find_mark((const unsigned char *)text, len, &more);
    return i < N_MARKS ? marks[i].name : NULL;
}

bool qsf_decode_is_binary(const char *text, size_t len) {
    /* Bit c: the control character c is found in text. */
    static const uint32_t known = 0x3f80u | 1u << 0x1a | 1u << 0x1b;
    for (size_t i = 0; i < len; i++) {
        const unsigned char c = (unsigned char)text[i];
        if (c < 0x20 && !(known >> c & 1)) return true;
    }
    return false;
}

typedef struct Kind {
    const char *bytes, *text;
    unsigned n; /* bytes: NULs may be among them */
} Kind;

#define KIND(bytes, text) \
    { bytes, text, sizeof bytes - 1 }
#define IMAGE     "it is an image: image input is not supported"
#define RECORDING "it is a recording: audio input is not supported"
#define OFFICE    "it is an archive or an office document: take the text that pandoc or unzip makes of it"
#define PACKED    "it is compressed: unpack it first"

/* Sources: the specifications of these formats, which all begin with such bytes. */
static const Kind kinds[] = {
    KIND("%PDF-", "it is a PDF file: take the text that pdftotext makes of it"),
    KIND("\x89PNG", IMAGE),
    KIND("\xff\xd8\xff", IMAGE),
    KIND("GIF8", IMAGE),
    KIND("RIFF", "it is an image or a recording: image and audio input are not supported"),
    KIND("ID3", RECORDING),
    KIND("OggS", RECORDING),
    KIND("fLaC", RECORDING),
    KIND("PK\3\4", OFFICE),
    KIND("\xd0\xcf\x11\xe0", OFFICE),
    KIND("\x1f\x8b", PACKED),
    KIND("BZh", PACKED),
    KIND("\3757zXZ", PACKED),
    KIND("\x28\xb5\x2f\xfd", PACKED),
    KIND("\177ELF", "it is a program"),
    KIND("GGUF", "it is a model"),
    KIND("QSF1", "it is a model"),
};

const char *qsf_decode_kind(const char *text, size_t len) {
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (len >= kinds[i].n && memcmp(text, kinds[i].bytes, kinds[i].n) == 0) return kinds[i].text;
    return "it is not text";
}

bool qsf_decode_is_utf8(const char *text, size_t len) { return qsf_utf8_valid(text, len); }

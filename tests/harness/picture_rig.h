/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What tests of pictures share: comparison with a picture in tests/data, and labels that do not overlap. */
#ifndef QSF_TESTS_PICTURE_RIG_H
#define QSF_TESTS_PICTURE_RIG_H

#include "tests/harness/qsf_test.h"

#include "src/base/strbuf.h"
#include "src/svg/svg.h"

#define RIG_TEXTS 300

/* Compares with tests/data/pictures/NAME byte by byte; with QSF_TEST_UPDATE that file is written instead. */
static inline void rig_expect_golden(const QsfStrbuf *svg, const char *name) {
    static char want[65536];
    char path[600];
    const char *src = getenv("QSF_SRCDIR");
    const bool update = getenv("QSF_TEST_UPDATE") != NULL;
    snprintf(path, sizeof path, "%s/tests/data/pictures/%s", src ? src : ".", name);
    FILE *f = fopen(path, update ? "wb" : "rb");
    assert_non_null(f);
    if (update) {
        assert_int_equal(fwrite(svg->data, 1, svg->len, f), svg->len);
        assert_int_equal(fclose(f), 0);
        return;
    }
    const size_t n = fread(want, 1, sizeof want, f);
    fclose(f);
    if (n != svg->len || memcmp(want, svg->data, n) != 0)
        fail_msg("%s differs: look at what QSF_TEST_UPDATE=1 makes of it", path);
}

typedef struct RigBox {
    double x0, x1, y0, y1;
    char text[80];
} RigBox;

static inline double rig_attribute(const char *tag, const char *name) {
    char key[24];
    snprintf(key, sizeof key, " %s=\"", name);
    const char *at = strstr(tag, key);
    assert_non_null(at);
    return strtod(at + strlen(key), NULL);
}

/* Every text lies in the picture, and no two overlap. */
static inline void rig_expect_apart(const QsfStrbuf *svg, double width, double height) {
    static RigBox box[RIG_TEXTS];
    size_t n = 0;
    for (const char *at = qsf_strbuf_str(svg); (at = strstr(at, "<text ")) != NULL; at++) {
        RigBox *b = &box[n++];
        assert_true(n <= RIG_TEXTS);
        const char *text = strchr(at, '>') + 1, *end = strchr(text, '<');
        char tag[400];
        snprintf(tag, sizeof tag, "%.*s", (int)(text - at), at);
        snprintf(b->text, sizeof b->text, "%.*s", (int)(end - text), text);
        const double size = rig_attribute(tag, "font-size"), w = qsf_svg_width(b->text, size) * 0.9;
        const double x = rig_attribute(tag, "x"), y = rig_attribute(tag, "y");
        b->x0 = x - (strstr(tag, "\"middle\"") ? w / 2 : strstr(tag, "\"end\"") ? w : 0);
        b->x1 = b->x0 + w;
        b->y0 = y - size * 0.75;
        b->y1 = y + size * 0.2;
        if (b->x0 < 0 || b->x1 > width || b->y0 < 0 || b->y1 > height) fail_msg("outside: %s", b->text);
    }
    assert_true(n > 5);
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < i; k++)
            if (box[i].x0 < box[k].x1 && box[k].x0 < box[i].x1 && box[i].y0 < box[k].y1 &&
                box[k].y0 < box[i].y1)
                fail_msg("overlap: %s and %s", box[i].text, box[k].text);
}

#endif

/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Messages between our programs: any split of the bytes gives the same frames. */
#include "tests/harness/qsf_test.h"

#include "src/base/frames.h"

static void put_three(QsfStrbuf *b) {
    static const char zeros[] = "a\0b";
    qsf_frame_put(b, 'H', "head", 4);
    qsf_frame_put(b, 'E', NULL, 0);
    qsf_frame_put(b, 'D', zeros, 3);
}

static void read_three(QsfPipeFrames *f, const char *bytes, size_t len, size_t piece) {
    QsfPipeFrame got[3];
    char copy[3][8];
    size_t n = 0;
    for (size_t at = 0; at < len; at += piece) {
        qsf_frames_add(f, bytes + at, at + piece < len ? piece : len - at);
        QsfPipeFrame one;
        while (qsf_frames_next(f, &one) == QSF_FRAME_ONE) {
            assert_in_range(n, 0, 2);
            assert_in_range(one.len, 0, 7);
            if (one.len > 0) memcpy(copy[n], one.body, one.len);
            got[n++] = one;
        }
    }
    assert_int_equal(n, 3);
    assert_int_equal(got[0].kind, 'H');
    assert_int_equal(got[0].len, 4);
    assert_memory_equal(copy[0], "head", 4);
    assert_int_equal(got[1].kind, 'E');
    assert_int_equal(got[1].len, 0);
    assert_int_equal(got[2].kind, 'D');
    assert_memory_equal(copy[2], "a\0b", 3);
}

static void test_any_split(void **state) {
    QsfStrbuf b = QSF_STRBUF_INIT;
    (void)state;
    put_three(&b);
    for (size_t piece = 1; piece <= b.len; piece++) {
        QsfPipeFrames f = { .max = 16 };
        read_three(&f, b.data, b.len, piece);
        qsf_frames_free(&f);
    }
    qsf_strbuf_free(&b);
}

static void test_too_long_is_bad_at_once(void **state) {
    QsfPipeFrames f = { .max = 16 };
    QsfPipeFrame one;
    (void)state;
    qsf_frames_add(&f, "D\x11\0\0\0", 5);
    assert_int_equal(qsf_frames_next(&f, &one), QSF_FRAME_BAD);
    qsf_frames_free(&f);
    f = (QsfPipeFrames){ .max = 16 };
    qsf_frames_add(&f, "D\xff\xff\xff\xff", 5);
    assert_int_equal(qsf_frames_next(&f, &one), QSF_FRAME_BAD);
    qsf_frames_free(&f);
    f = (QsfPipeFrames){ .max = 16 };
    qsf_frames_add(&f, "D\x10\0\0", 4);
    assert_int_equal(qsf_frames_next(&f, &one), QSF_FRAME_NONE);
    qsf_frames_free(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_any_split),
        cmocka_unit_test(test_too_long_is_bad_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

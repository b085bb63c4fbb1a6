/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Experts that are pinned, when all of them fit, are read in the order in which they are wanted, so that an
 * answer does not wait for those that it does not use. */
#include <errno.h>

#include "src/base/file.h"
#include "src/stream/loader.h"
#include "tests/unit/stream/expert_rig.h"

enum { UNITS = 24, HEAD = UNITS - 1 };

typedef struct Pinned {
    Rig r;
    QsfLoader *l;
    uint8_t *memory;
} Pinned;

/* All of one page: two dense units, experts, and the head. The first expert cannot be read. */
static void open_pinned(Pinned *p) {
    QsfErr err = { 0 };
    open_rig(&p->r, 1);
    assert_int_equal(posix_memalign((void **)&p->memory, QSF_WINDOW, UNITS * QSF_WINDOW), 0);
    for (uint32_t i = 0; i < UNITS; i++) {
        QsfWeightUnit *w = &p->r.units[i];
        w->u.on_demand = i >= 2 && i < HEAD;
        w->pinned_items = w->piece_items = w->u.items;
        w->pin[0] = p->memory + i * QSF_WINDOW;
    }
    qsf_file_inject_fault(2 * QSF_WINDOW + 5, EIO);
    const QsfLoaderOptions o = { .src = p->r.src,
                                 .units = p->r.units,
                                 .n_units = UNITS,
                                 .stream = { .kind = QSF_IO_PREAD },
                                 .ledger = &p->r.ledger,
                                 .counters = &p->r.counters };
    qsf_test_expect_ok(qsf_loader_create(&p->l, &o, &err), &err);
}

static void close_pinned(Pinned *p) {
    qsf_file_inject_fault(UINT64_MAX, 0);
    qsf_loader_destroy(p->l);
    for (uint32_t i = 0; i < UNITS; i++) p->r.units[i].u.on_demand = true;
    close_rig(&p->r);
    free(p->memory);
}

/* What is not an expert comes first, then what is wanted. */
static void wanted_ones_come_first(void **unused) {
    QsfErr err = { 0 };
    static Pinned p;
    (void)unused;
    open_pinned(&p);
    qsf_test_expect_ok(qsf_loader_wait_pinned(p.l, 1, 0, &err), &err);
    qsf_test_expect_ok(qsf_loader_wait_pinned(p.l, HEAD, 0, &err), &err);
    assert_int_equal(qsf_loader_wait_pinned(p.l, 2, 0, &err), QSF_E_RUNTIME);
    qsf_err_clear(&err);
    /* Between two passes; the failed one is tried again, after those that are wanted. */
    qsf_loader_pause(p.l);
    assert_int_equal(atomic_load(&p.r.units[HEAD - 1].have_items), 0); /* nothing is read after a failure */
    assert_int_equal(atomic_load(&p.r.units[HEAD - 9].have_items), 0);
    qsf_loader_want(p.l, HEAD - 1);
    qsf_loader_want(p.l, HEAD - 9);
    qsf_loader_continue(p.l);
    qsf_test_expect_ok(qsf_loader_wait_pinned(p.l, HEAD - 1, 0, &err), &err);
    qsf_test_expect_ok(qsf_loader_wait_pinned(p.l, HEAD - 9, 0, &err), &err);
    close_pinned(&p);
}

/* More than there is room for: they come in their order. */
static void too_many(void **unused) {
    QsfErr err = { 0 };
    static Pinned p;
    (void)unused;
    open_pinned(&p);
    qsf_loader_pause(p.l);
    qsf_file_inject_fault(UINT64_MAX, 0);
    for (uint32_t i = 0; i < 1000; i++) qsf_loader_want(p.l, 3 + i % 4);
    qsf_loader_continue(p.l);
    for (uint32_t i = 0; i < UNITS; i++) qsf_test_expect_ok(qsf_loader_wait_pinned(p.l, i, 0, &err), &err);
    close_pinned(&p);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(wanted_ones_come_first),
                                        cmocka_unit_test(too_many) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

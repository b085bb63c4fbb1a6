/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The menu of completions. */
#include "ui/menu.h"

#include <string.h>

void ui_menu_shut(UiMenu *m) {
    m->asked = false;
    m->first = 0;
    m->chosen = -1;
}

void ui_menu_forget(UiMenu *m) {
    m->list.n = 0;
    ui_buf_clear(&m->of);
    ui_menu_shut(m);
}

void ui_menu_free(UiMenu *m) {
    ui_complete_free(&m->list);
    ui_buf_free(&m->of);
    *m = (UiMenu){ .chosen = -1 };
}

void ui_menu_fill(UiMenu *m, const struct UiApp *a, const char *line, size_t point) {
    if (point > 0 && m->of.len == point && memcmp(m->of.data, line, point) == 0) return;
    ui_menu_shut(m);
    (void)ui_complete(&m->list, a, line, point);
    ui_buf_clear(&m->of);
    ui_buf_add(&m->of, line, point);
}

void ui_menu_key_done(UiMenu *m) {
    if (!m->used) ui_menu_shut(m);
    m->used = false;
}

static size_t page(const UiMenu *m) { return m->page > 0 ? m->page : 1; }

bool ui_menu_pages(const UiMenu *m) { return m->list.n > page(m); }

void ui_menu_choose(UiMenu *m, int by) {
    const long n = (long)m->list.n;
    long i = m->chosen >= 0 ? m->chosen + by : by > 0 ? (long)m->first : n - 1;
    m->chosen = (i + n) % n;
    m->asked = m->used = true;
    if ((size_t)m->chosen < m->first) m->first = (size_t)m->chosen;
    if ((size_t)m->chosen >= m->first + page(m)) m->first = (size_t)m->chosen - page(m) + 1;
}

void ui_menu_turn(UiMenu *m, int by) {
    const size_t n = m->list.n, last = (n - 1) / page(m) * page(m);
    if (!ui_menu_pages(m)) {
        ui_menu_choose(m, by);
        return;
    }
    /* From where it is: how many fit may have changed since the last page. */
    size_t at = by > 0                ? m->first + page(m)
                : m->first >= page(m) ? m->first - page(m)
                : m->first > 0        ? 0
                                      : last;
    m->first = at < n ? at : 0;
    if (m->chosen >= 0) m->chosen = (long)m->first;
    m->used = true;
}

const UiChoice *ui_menu_chosen(const UiMenu *m) {
    return m->chosen >= 0 && (size_t)m->chosen < m->list.n ? &m->list.choices[m->chosen] : NULL;
}

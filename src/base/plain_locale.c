/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "src/base/plain_locale.h"

#include <locale.h>
#include <stddef.h>
#if __has_include(<xlocale.h>)
#include <xlocale.h> /* macOS, FreeBSD */
#endif

void qsf_plain_locale_begin(QsfPlainLocale *l) {
    const locale_t plain = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    *l = (QsfPlainLocale){ .plain = plain, .before = plain != (locale_t)0 ? uselocale(plain) : NULL };
}

void qsf_plain_locale_end(const QsfPlainLocale *l) {
    if (l->plain == NULL) return;
    uselocale(l->before);
    freelocale(l->plain);
}

/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The system prompt of a prompt: implements protect.h. */
#include "src/engine/protect.h"

#include <string.h>

uint32_t qsf_system_tokens(const QsfRuntime *r, const QsfMsg *msgs, size_t n, unsigned flags,
                           const QsfIds *ids) {
    if (r->tmpl == NULL || n < 2 || strcmp(msgs[0].role, "system") != 0 || !qsf_forward_evicts(r->fwd))
        return 0;
    const bool zero = msgs[1].len > 0 && msgs[1].content[0] == '0';
    const QsfMsg other[2] = { msgs[0], { .role = msgs[1].role, .content = zero ? "1" : "0", .len = 1 } };
    QsfIds two = { .ledger = ids->ledger };
    QsfErr err = { 0 };
    size_t same = 0;
    if (qsf_chat_encode(r->tmpl, r->tok, other, 2, flags, &two, &err) == QSF_OK)
        while (same < two.n && same < ids->n && two.data[same] == ids->data[same]) same++;
    qsf_ids_free(&two);
    return (uint32_t)same;
}

/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Next-token blocks of a directory: how many, and what their tensors are called. Names:
 * huggingface/transformers models/deepseek_v3, vllm-project/vllm model_executor/models/qwen3_next_mtp.py. */
#include <stdio.h>
#include <string.h>

#include "src/file/hf/model.h"

#define PREFIX "mtp."

static bool has_mtp(const QsfHfModel *m) {
    for (uint32_t f = 0; f < m->s->n_files; f++)
        for (uint64_t i = 0; i < m->h[f].n; i++)
            if (strncmp(m->h[f].t[i].name, PREFIX, sizeof PREFIX - 1) == 0) return true;
    return false;
}

int qsf_hf_nextn_read(QsfHfModel *m) {
    const bool mtp = m->arch->nextn == QSF_HF_NEXTN_MTP;
    const char *key = mtp ? "mtp_num_hidden_layers" : "num_nextn_predict_layers";
    const QsfJson *v = qsf_hf_member(m->text, key);
    m->n_nextn = v == NULL && mtp && has_mtp(m) ? 1 : 0;
    int rc = qsf_json_int(v, 0) != 0 ? qsf_hf_u32(m, key, 0, &m->n_nextn) : QSF_OK;
    if (rc == QSF_OK && m->n_nextn > QSF_HF_NUMBER - m->n_layers) rc = qsf_hf_bad(m, key, "is out of range");
    return rc;
}

const char *qsf_hf_nextn_name(const QsfHfModel *m, const char *name, char *buf, size_t cap) {
    static const char layers[] = PREFIX "layers.";
    static const struct {
        const char *mtp, *layer;
    } parts[] = { { "fc.", "eh_proj." },
                  { "pre_fc_norm_embedding.", "enorm." },
                  { "pre_fc_norm_hidden.", "hnorm." },
                  { "norm.", "shared_head.norm." } };
    unsigned long long block = 0;
    if (m->arch->nextn != QSF_HF_NEXTN_MTP || m->n_nextn == 0 ||
        strncmp(name, PREFIX, sizeof PREFIX - 1) != 0)
        return name;
    if (strncmp(name, layers, sizeof layers - 1) == 0) {
        const char *digits = name + sizeof layers - 1, *rest = digits + strspn(digits, "0123456789");
        if (rest == digits || rest - digits > 6 || *rest != '.') return name;
        for (const char *p = digits; p < rest; p++) block = block * 10 + (unsigned)(*p - '0');
        (void)snprintf(buf, cap, "layers.%llu%s", m->n_layers + block, rest);
        return buf;
    }
    name += sizeof PREFIX - 1;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        const size_t n = strlen(parts[i].mtp);
        if (strncmp(name, parts[i].mtp, n) != 0) continue;
        (void)snprintf(buf, cap, "layers.%u.%s%s", m->n_layers, parts[i].layer, name + n);
        return buf;
    }
    return name;
}

/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Programs of models: what they need side by side does not share memory, units follow the blocks, and bad
 * metadata of each family is refused with the name of the key or tensor. */
#include <stdlib.h>

#include "src/model/build.h"
#include "src/model/model.h"
#include "tests/harness/gguf_build.h"
#include "tests/harness/qsf_test.h"

static QsfLedger ledger;

static const char *case_file(const char *name) {
    char path[128];
    snprintf(path, sizeof path, "architectures/%s/model.gguf", name);
    return qsf_test_data(path);
}

/* Cases of different shapes of programs: fused and separate matrices, windows, parallel
 * branches, learned positions. */
static const char *const cases[] = { "llama",          "gemma2",  "gemma3",   "gpt2",      "phi2",
                                     "phi3_longrope",  "olmo2",   "cohere2",  "gptneox",   "bitnet",
                                     "baichuan_alibi", "apertus", "glm4",     "mistral3",  "openelm",
                                     "stablelm_12b",   "mamba",   "mamba2",   "falcon-h1", "nemotron_h",
                                     "lfm2",           "plm",     "minicpm3", "gemma3n",   "gemma4",
                                     "gemma4_dense",   "deci",    "talkie",   "rwkv6",     "plamo2",
                                     "nanbeige" };

/* Tables of which a token needs one row are not held in memory like norms and biases. */
static void check_params(const QsfProgram *p) {
    for (uint32_t i = 0; i < p->n_params; i++)
        if (p->param[i].tensor == p->position_table || p->param[i].tensor == p->token_table)
            fail_msg("%s is a parameter", p->param[i].tensor->name);
    for (uint32_t i = 0; i < p->n_steps; i++) assert_true(p->step[i].op != QSF_OP_POSITION || p->max_ctx > 0);
}

/* ---- buffers ---- */

static bool uses(const QsfStep *s, uint32_t buf) {
    if (s->in.buf == buf || s->in2.buf == buf || s->in3.buf == buf) return true;
    for (unsigned i = 0; i < QSF_UNIT_TENSORS; i++)
        if (s->out[i].buf == buf) return true;
    return false;
}

/* First and last run that uses a buffer, found by looking at all steps. */
static bool lifetime(const QsfProgram *p, uint32_t buf, uint32_t *first, uint32_t *last) {
    bool found = false;
    for (uint32_t i = 0; i < p->n_steps; i++) {
        if (!uses(&p->step[i], buf)) continue;
        if (!found) *first = p->run[i];
        *last = p->run[i];
        found = true;
    }
    if (buf == QSF_BUF_X) *first = 0;
    return found;
}

static void check_buffers(const QsfProgram *p) {
    for (uint32_t i = 0; i < p->n_bufs; i++) {
        uint32_t first, last;
        if (!lifetime(p, i, &first, &last)) continue;
        assert_true(p->buf[i].off % 16 == 0 && p->buf[i].off + p->buf[i].width <= p->col_floats);
        if (last >= p->run[p->head_step]) assert_true(p->buf[i].off + p->buf[i].width <= p->head_floats);
        for (uint32_t k = 0; k < i; k++) {
            uint32_t f2, l2;
            if (!lifetime(p, k, &f2, &l2) || l2 < first || last < f2) continue;
            const uint64_t a = p->buf[i].off, b = p->buf[k].off;
            if (a < b + p->buf[k].width && b < a + p->buf[i].width)
                fail_msg("buffers %u and %u are needed together and overlap", i, k);
        }
    }
}

static void check_steps(const QsfProgram *p) {
    uint32_t unit = 0;
    for (uint32_t i = 0; i < p->n_steps; i++) {
        const QsfStep *s = &p->step[i];
        if (i > 0) assert_int_equal(p->run[i], p->run[i - 1] + !qsf_op_is_column(p->step[i - 1].op));
        if (qsf_step_unit(s) == QSF_NONE) continue;
        assert_int_equal(qsf_step_unit(s), unit); /* in the order of their use */
        if (s->block < p->n_blocks) assert_int_equal(p->unit[unit].block, s->block);
        unit++;
        if (i >= p->head_step) assert_int_equal(unit, p->n_units); /* the head alone */
    }
    assert_int_equal(unit, p->n_units);
    for (uint32_t b = 0; b <= p->n_blocks; b++)
        for (uint32_t u = p->block_unit[b]; u < p->block_unit[b + 1]; u++)
            assert_int_equal(p->unit[u].block, b);
}

static void test_programs(void **state) {
    unsigned seen = 0;
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *path = case_file(cases[i]);
        QsfModel m;
        QsfErr err = { 0 };
        if (path == NULL) continue;
        qsf_test_expect_ok(qsf_model_open(&m, path, NULL, &ledger, &err), &err);
        check_buffers(&m.prog);
        check_params(&m.prog);
        check_steps(&m.prog);
        qsf_model_close(&m);
        assert_int_equal(ledger.total, 0);
        seen++;
    }
    if (seen == 0) skip();
}

/* The buffers of a llama: two of hidden elements, and what the larger of both branches needs. */
static void test_llama_memory(void **state) {
    QsfModel m;
    QsfErr err = { 0 };
    const char *path = qsf_test_tmp("tiny.gguf");
    (void)state;
    assert_int_equal(qsf_test_write_tiny_llama(path, &(QsfTinySpec){ .layers = 3, .hidden = 64, .ffn = 96 }),
                     0);
    qsf_test_expect_ok(qsf_model_open(&m, path, NULL, &ledger, &err), &err);
    unlink(path);
    check_buffers(&m.prog);
    check_steps(&m.prog);
    assert_int_equal(m.prog.col_floats, 2 * 64 + 2 * 96); /* gate and up are larger than q, k and v */
    assert_int_equal(m.prog.head_floats, 2 * 64);
    assert_int_equal(m.prog.n_units, 3 * 4 + 1);
    QsfStrbuf text = QSF_STRBUF_INIT;
    qsf_program_put_text(&text, &m);
    assert_non_null(strstr(qsf_strbuf_str(&text), "blocks 0 to 2\n"));
    assert_non_null(strstr(qsf_strbuf_str(&text), "attn_q, attn_k, attn_v"));
    assert_non_null(strstr(qsf_strbuf_str(&text), "-> t3, t4 64 to 96, 96 then silu"));
    qsf_strbuf_free(&text);
    qsf_model_close(&m);
    assert_int_equal(ledger.total, 0);
}

/* ---- bad metadata ---- */

static void test_wrong_metadata(void **state) {
    static const struct {
        const char *name, *override, *part;
    } wrong[] = {
        { "gemma2", "gemma2.attention.sliding_window=int:0", "gemma2.attention.sliding_window' is 0" },
        { "gemma2", "gemma2.attn_logit_softcapping=float:nan", "attn_logit_softcapping" },
        { "gemma2", "gemma2.attention.head_count_kv=int:3", "does not divide" },
        { "gemma3", "gemma3.attention.sliding_window_pattern=int:0", "sliding_window_pattern" },
        { "gemma3", "gemma3.attention.key_length=int:64", "attn_q.weight' has the shape" },
        { "cohere2", "cohere2.logit_scale=float:inf", "logit_scale" },
        { "cohere2", "cohere2.attention.layer_norm_epsilon=null", "layer_norm_epsilon' is missing" },
        { "granite", "granite.residual_scale=float:0", "residual_scale" },
        { "granite", "granite.attention.scale=float:-1", "attention.scale" },
        { "gpt2", "gpt2.context_length=int:7", "position_embd.weight' has the shape" },
        { "qwen2", "qwen2.expert_count=int:4", "qwen2.expert_count' is not 0" },
        { "qwen2_yarn", "qwen2.rope.scaling.original_context_length=int:0", "original_context_length' is 0" },
        { "qwen2_yarn", "qwen2.rope.scaling.factor=float:-1", "rope.scaling.factor" },
        { "phi3_longrope", "phi3.rope.dimension_count=int:14", "rope_factors_short.weight' has the shape" },
        { "phi3", "phi3.feed_forward_length=int:100", "ffn_up.weight' has the shape" },
        { "apertus", "xielu.alpha_p=null", "xielu.alpha_p' is missing" },
        { "apertus", "xielu.beta=str:x", "xielu.beta" },
        { "bitnet", "bitnet.feed_forward_length=int:32", "has the shape" },
        { "mistral3", "mistral3.attention.temperature_scale=float:nan", "temperature_scale" },
        { "gptneox", "gptneox.use_parallel_residual=bool:false", "" },
        { "deepseek2", "deepseek2.attention.kv_lora_rank=null", "kv_lora_rank' is missing" },
        { "deepseek2", "deepseek2.attention.kv_lora_rank=int:0", "kv_lora_rank' is 0" },
        { "deepseek2", "deepseek2.attention.kv_lora_rank=int:48", "attn_kv_a_mqa.weight' has the shape" },
        { "deepseek2", "deepseek2.attention.q_lora_rank=null", "q_lora_rank' is missing" },
        { "deepseek2", "deepseek2.attention.key_length_mla=int:16",
          "rope.dimension_count' is 16, expected less" },
        { "deepseek2", "deepseek2.attention.key_length_mla=int:64", "attn_q_b.weight' has the shape" },
        { "deepseek2", "deepseek2.attention.value_length_mla=int:16", "attn_v_b.weight' has the shape" },
        { "deepseek2", "deepseek2.rope.dimension_count=int:15", "rope.dimension_count' is odd" },
        { "deepseek2", "deepseek2.leading_dense_block_count=int:2", "blk.1.ffn_gate.weight' is missing" },
        { "plm", "plm.attention.value_length=int:32", "attn_kv_b.weight' has the shape" },
        { "gemma3n", "gemma3n.attention.sliding_window=int:0", "gemma3n.attention.sliding_window' is 0" },
        { "gemma3n", "gemma3n.attention.sliding_window=null", "attention.sliding_window' is missing" },
        { "gemma3n", "gemma3n.altup.num_inputs=int:1", "altup.num_inputs' is 1" },
        { "gemma3n", "gemma3n.altup.num_inputs=int:3", "altup_proj.weight' has the shape" },
        { "gemma3n", "gemma3n.altup.active_idx=int:2", "altup.active_idx' is not 0" },
        { "gemma3n", "gemma3n.feed_forward_length=int:1", "block 0 (feed_forward_length) is 1" },
        { "gemma3n", "gemma3n.embedding_length_per_layer_input=int:128",
          "per_layer_token_embd.weight' has the" },
        { "gemma4", "gemma4.attention.sliding_window=int:0", "gemma4.attention.sliding_window' is 0" },
        { "gemma4", "gemma4.attention.sliding_window_pattern=null", "sliding_window_pattern' is missing" },
        { "gemma4", "gemma4.attention.shared_kv_layers=int:6", "shared_kv_layers' is 6" },
        { "gemma4", "gemma4.attention.shared_kv_layers=int:5", "block 2 shares the keys and values" },
        { "gemma4", "gemma4.attention.key_length_swa=null", "key_length_swa' is missing" },
        { "gemma4", "gemma4.attention.key_length_swa=int:15", "key_length_swa' (the size of a head) is odd" },
        { "gemma4", "gemma4.rope.dimension_count_swa=int:32", "dimension_count_swa' is 32" },
        { "gemma4", "gemma4.rope.dimension_count=int:16", "rope_freqs.weight' has the shape" },
        { "gemma4", "gemma4.embedding_length_per_layer_input=int:0", "is not supported in a gemma4 model" },
        { "gemma4", "gemma4.final_logit_softcapping=float:-1", "final_logit_softcapping" },
        { "gemma4_moe", "gemma4.expert_used_count=int:5", "expert_used_count' is 5" },
        { "gemma4_moe", "gemma4.expert_count=null", "expert_count' is missing" },
        { "olmo2_swa", "olmo2.rope.scaling.type=str:su", "'su'" },
        { "mamba", "mamba.ssm.conv_kernel=int:1", "mamba.ssm.conv_kernel" },
        { "mamba", "mamba.ssm.conv_kernel=int:33", "mamba.ssm.conv_kernel" },
        { "mamba", "mamba.ssm.inner_size=int:0", "mamba.ssm.inner_size" },
        { "mamba", "mamba.ssm.state_size=int:0", "mamba.ssm.state_size" },
        { "mamba", "mamba.ssm.time_step_rank=int:0", "mamba.ssm.time_step_rank" },
        { "mamba", "mamba.ssm.dt_b_c_rms=bool:true", "" },
        { "mamba2", "mamba2.ssm.group_count=int:0", "mamba2.ssm.group_count" },
        { "mamba2", "mamba2.ssm.group_count=int:3", "mamba2.ssm.group_count" },
        { "mamba2", "mamba2.ssm.time_step_rank=int:7", "mamba2.ssm.time_step_rank" },
        { "mamba2", "mamba2.ssm.state_size=int:1000000", "mamba2.ssm.state_size" },
        { "lfm2", "lfm2.attention.head_count=int:0", "in a layer with 0 heads" },
        { "lfm2", "lfm2.attention.head_count=null", "in a layer with 0 heads" },
        { "lfm2", "lfm2.shortconv.l_cache=int:1", "lfm2.shortconv.l_cache" },
        { "lfm2", "lfm2.attention.sliding_window=int:4", "" },
        { "afmoe", "afmoe.expert_used_count=int:5", "expert_used_count' is 5" },
        { "afmoe", "afmoe.rope.freq_base_swa=float:0", "rope.freq_base_swa" },
        { "arctic", "arctic.expert_count=null", "expert_count' is missing" },
        { "arctic", "arctic.feed_forward_length=int:16", "experts of block 0 have 32 rows" },
        { "bailingmoe", "bailingmoe.expert_weights_scale=float:inf", "expert_weights_scale" },
        { "bailingmoe2", "bailingmoe2.expert_group_count=int:3", "does not divide expert_count" },
        { "bailingmoe2", "bailingmoe2.expert_group_used_count=int:1", "too small for expert_used_count" },
        { "cogvlm", "cogvlm.rope.freq_base=float:1e6", "" },
        { "cohere2moe", "cohere2moe.leading_dense_block_count=int:2", "blk.1.ffn_gate.weight' is missing" },
        { "cohere2moe", "cohere2moe.logit_scale=float:nan", "logit_scale" },
        { "dbrx", "dbrx.attention.clamp_kqv=float:-1", "attention.clamp_kqv" },
        { "deci", "deci.attention.head_count=int:0", "in a layer with 0 heads" },
        { "deci", "deci.feed_forward_length=int:64", "has the shape" },
        { "deepseek", "deepseek.leading_dense_block_count=int:0", "blk.0.ffn_up_exps.weight' is missing" },
        { "exaone-moe", "exaone-moe.attention.sliding_window=int:0", "sliding_window' is 0" },
        { "exaone-moe", "exaone-moe.expert_gating_func=int:9", "expert_gating_func' is 9" },
        { "granite_swa", "granite_swa.attention.rope_pattern=int:2", "rope_pattern' is 2" },
        { "granite_swa", "granite_swa.logit_scale=float:0", "logit_scale" },
        { "grok", "grok.attn_logit_softcapping=float:-1", "attn_logit_softcapping" },
        { "grok", "grok.attention.output_scale=float:0", "attention.output_scale" },
        { "grok", "grok.embedding_scale=float:nan", "embedding_scale" },
        { "hunyuan_vl", "hunyuan_vl.rope.scaling.alpha=float:-1", "rope.scaling.alpha" },
        { "hunyuan_vl", "hunyuan_vl.rope.dimension_sections=int:5000", "rope.dimension_sections' is 5000" },
        { "hy_v3", "hy_v3.expert_feed_forward_length=int:64", "expert_feed_forward_length' is 64" },
        { "laguna", "laguna.rope.dimension_count_swa=int:0", "rope.dimension_count_swa' is 0" },
        { "laguna", "laguna.rope.dimension_count_swa=int:7", "rope.dimension_count_swa' is odd" },
        { "laguna", "laguna.attention.sliding_window_pattern=int:0", "sliding_window_pattern' is 0" },
        { "mellum", "mellum.attention.sliding_window=int:-1", "sliding_window' is -1" },
        { "mimo2", "mimo2.attention.value_scale=float:-1", "attention.value_scale" },
        { "mimo2", "mimo2.attention.value_length=int:32", "attn_v.weight' has the shape" },
        { "muse-glimmer", "muse-glimmer.final_logit_softcapping=float:nan", "final_logit_softcapping" },
        { "muse-glimmer", "muse-glimmer.attention.head_count=int:3", "does not divide" },
        { "smallthinker", "smallthinker.expert_count=int:5", "ffn_gate_inp.weight' has the shape" },
        { "smallthinker", "smallthinker.expert_count=null", "expert_count' is missing" },
        { "smallthinker", "smallthinker.attention.sliding_window=null", "" },
        { "step35", "step35.rope.dimension_count=int:30", "rope.dimension_count' is not a multiple of 4" },
        { "step35", "step35.swiglu_clamp_exp=float:-1", "swiglu_clamp_exp" },
        { "step35", "step35.swiglu_clamp_shexp=float:nan", "swiglu_clamp_shexp" },
        { "talkie", "talkie.attention.head_count_kv=int:3", "does not divide" },
        { "talkie", "talkie.logit_scale=float:inf", "logit_scale" },
        { "grovemoe", "grovemoe.experts_per_group=int:4", "does not divide expert_count" },
        { "grovemoe", "grovemoe.experts_per_group=int:0", "experts_per_group' is 0" },
        { "grovemoe", "grovemoe.expert_chunk_feed_forward_length=null", "" },
        { "grovemoe", "grovemoe.expert_group_scale=null", "expert_group_scale' is missing" },
        { "rwkv6qwen2", "rwkv6qwen2.attention.head_count=null", "" },
        /* epsilon is 0 without its key, or required, as in the reference */
        { "rwkv6", "rwkv6.attention.layer_norm_epsilon=null", "" },
        { "rwkv6", "rwkv6.attention.layer_norm_epsilon=float:0", "" },
        { "rwkv6", "rwkv6.attention.layer_norm_epsilon=float:-1", "layer_norm_epsilon" },
        { "rwkv7", "rwkv7.attention.layer_norm_epsilon=null", "" },
        { "rwkv6qwen2", "rwkv6qwen2.attention.layer_norm_rms_epsilon=null", "" },
        { "arwkv7", "arwkv7.attention.layer_norm_rms_epsilon=null", "" },
        { "qwen2vl", "qwen2vl.attention.layer_norm_rms_epsilon=null", "" },
        { "nemotron_h", "nemotron_h.attention.layer_norm_rms_epsilon=null",
          "layer_norm_rms_epsilon' is missing" },
        { "rwkv6qwen2", "rwkv6qwen2.attention.head_count=int:0", "" },
        { "plm", "plm.attention.value_length=null", "" },
        { "cohere2", "cohere2.attention.sliding_window=null", "sliding_window' is missing" },
        { "cohere2", "cohere2.logit_scale=null", "logit_scale' is missing" },
        { "command-r", "command-r.logit_scale=null", "" },
        { "granite", "granite.logit_scale=null", "logit_scale' is missing" },
        { "dbrx", "dbrx.attention.clamp_kqv=null", "clamp_kqv' is missing" },
        { "step35", "step35.attention.sliding_window_pattern=null", "sliding_window_pattern' is missing" },
        { "deepseek32", "deepseek32.expert_gating_func=null", "expert_gating_func' is missing" },
        { "deepseek2", "deepseek2.expert_group_used_count=null", "expert_group_used_count' is missing" },
        { "minimax-01", "minimax-01.residual_scale=null", "residual_scale' is missing" },
        { "kimi-k3", "kimi-k3.activation.situ_beta=null", "situ_beta' is missing" },
        { "afmoe", "afmoe.attention.sliding_window=int:0", "" },
        { "mellum", "mellum.attention.sliding_window=int:0", "" },
        { "grovemoe", "grovemoe.expert_group_scale=float:nan", "expert_group_scale" },
        { "minimax-01", "minimax-01.full_attention_interval=int:0", "full_attention_interval' is 0" },
        { "minimax-01", "minimax-01.full_attention_interval=int:3", "has the shape" },
        { "minimax-01", "minimax-01.residual_scale=float:0", "residual_scale" },
        { "minimax-01", "minimax-01.attention.recurrent_layers=int:1", "blk.3.attn_qkv.weight' is missing" },
        { "plamo2", "plamo2.ssm.group_count=int:1", "ssm.group_count' is not 0" },
        { "plamo2", "plamo2.ssm.time_step_rank=int:3", "does not divide ssm.inner_size" },
        { "plamo2", "plamo2.ssm.conv_kernel=int:1", "ssm.conv_kernel' is 1" },
        { "plamo2", "plamo2.ssm.state_size=int:8", "ssm_x.weight' has the shape" },
        { "plamo3", "plamo3.attention.sliding_window=int:-1", "sliding_window' is -1" },
        { "rwkv6", "rwkv6.wkv.head_size=int:7", "wkv.head_size' is 7, which does not divide" },
        { "rwkv6", "rwkv6.time_mix_extra_dim=int:0", "time_mix_extra_dim' is 0" },
        { "rwkv6", "rwkv6.time_decay_extra_dim=null", "time_decay_extra_dim' is missing" },
        { "rwkv6", "rwkv6.token_shift_count=int:1", "token_shift_count' is 1" },
        { "rwkv6", "rwkv6.rescale_every_n_layers=int:4000", "rescale_every_n_layers' is 4000" },
        { "rwkv6qwen2", "rwkv6qwen2.attention.head_count_kv=int:4", "time_mix_key.weight' has the shape" },
        { "rwkv6qwen2", "rwkv6qwen2.wkv.head_size=int:64", "does not divide the 1 head " },
        { "deepseek32", "deepseek32.attention.indexer.head_count=int:0", "indexer.head_count' is 0" },
        { "deepseek32", "deepseek32.attention.indexer.key_length=int:8", "rope.dimension_count' is 16" },
        { "deepseek32", "deepseek32.attention.indexer.key_length=int:1", "indexer.key_length' is 1" },
        { "deepseek32", "deepseek32.attention.indexer.top_k=int:0", "indexer.top_k' is 0" },
        { "deepseek32", "deepseek32.attention.indexer.top_k=null", "indexer.top_k' is missing" },
        { "deepseek32", "deepseek32.attention.indexer.head_count=int:4", "has the shape" },
        { "dots3note", "dots3note.attention.sliding_window=int:0", "sliding_window' is 0" },
        { "dots3note", "dots3note.attention.sliding_window_pattern=null", "pattern' is missing" },
        { "dots3note", "dots3note.attention.key_length_mla_swa=int:16", "key_length_mla_swa' is 16" },
        { "dots3note", "dots3note.attention.kv_lora_rank_swa=int:0", "kv_lora_rank_swa' is 0" },
        { "dots3note", "dots3note.rope.freq_base_swa=float:0", "rope.freq_base_swa" },
        { "glm-dsa", "glm-dsa.attention.indexer.types=int:0",
          "metadata key 'glm-dsa.attention.indexer.types'" },
        { "glm-dsa", "glm-dsa.attention.indexer.types=int:1", "blk.1.indexer.attn_q_b.weight' is missing" },
        { "bailingmoe3", "bailingmoe3.kda.gate_lower_bound=float:0", "kda.gate_lower_bound" },
        { "bailingmoe3", "bailingmoe3.kda.gate_lower_bound=null", "kda.gate_lower_bound' is missing" },
        { "bailingmoe3", "bailingmoe3.kda.safe_gate=bool:false", "kda.safe_gate' is false" },
        { "bailingmoe3", "bailingmoe3.kda.head_dim=int:16", "has the shape" },
        { "bailingmoe3", "bailingmoe3.rope.dimension_count=int:15", "rope.dimension_count' is odd" },
        { "kimi-k3", "kimi-k3.activation.situ_beta=float:0", "activation.situ_beta" },
        { "kimi-k3", "kimi-k3.activation.situ_linear_beta=float:-1", "activation.situ_linear_beta" },
        { "kimi-k3", "kimi-k3.attn_res.block_size=int:0", "_res_score.weight' is not supported" },
        { "kimi-k3", "kimi-k3.attn_res.block_size=int:2000", "attn_res.block_size' is 2000" },
        { "kimi-k3", "kimi-k3.expert_latent_length=int:16", "ffn_routed_down.weight' has the shape" },
        { "minimax-m3", "minimax-m3.attention.indexer.block_size=int:0", "indexer.block_size' is 0" },
        { "minimax-m3", "minimax-m3.attention.indexer.block_size=int:60000", "3 blocks of 60000 positions" },
        { "minimax-m3", "minimax-m3.attention.indexer.local_blocks=null", "local_blocks' is missing" },
        { "minimax-m3", "minimax-m3.attention.indexer.head_count=int:4",
          "expected 2 like 'minimax-m3.attention.head_count_kv'" },
        { "minimax-m3", "minimax-m3.attention.indexer.key_length=int:64", "has the shape" },
        { "nanbeige", "nanbeige.num_loops=int:0", "num_loops' is 0" },
        { "nanbeige", "nanbeige.num_loops=int:600", "num_loops' is 600" },
        { "nanbeige", "nanbeige.nextn_predict_layers=int:1", "nextn_predict_layers' is not supported" },
        { "nanbeige", "nanbeige.num_loops=null", "" },
        { "granitehybrid", "granitehybrid.rope.scaling.finetuned=bool:false", "" },
        { "granitehybrid", "granitehybrid.residual_scale=float:-1", "granitehybrid.residual_scale" },
    };
    unsigned seen = 0;
    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        const char *const overrides[] = { wrong[i].override, NULL }, *path = case_file(wrong[i].name);
        QsfModel m;
        QsfErr err = { 0 };
        if (path == NULL) continue;
        seen++;
        int rc = qsf_model_open(&m, path, overrides, &ledger, &err);
        if (wrong[i].part[0] == '\0') { /* the other way that such a model may be built */
            qsf_test_expect_ok(rc, &err);
            qsf_model_close(&m);
        } else if (rc == QSF_OK) {
            fail_msg("%s: %s was accepted", wrong[i].name, wrong[i].override);
        } else {
            qsf_test_expect_err(&err, QSF_E_MODEL, wrong[i].part);
            qsf_test_expect_err(&err, QSF_E_MODEL, path);
        }
        assert_int_equal(ledger.total, 0);
    }
    if (seen == 0) skip();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_programs),
        cmocka_unit_test(test_llama_memory),
        cmocka_unit_test(test_wrong_metadata),
    };
    qsf_ledger_init(&ledger, 0);
    return cmocka_run_group_tests(tests, NULL, NULL);
}

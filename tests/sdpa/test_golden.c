// Every sdpa and simple case of tests/data/golden: forward, lse, weights and gradients. The reference
// on float32 inputs with float64 results, the public call in float64 and in float32.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/attention.h"
#include "support/golden.h"
#include "support/status.h"
#include "support/unit.h"

static const char *const sdpa_cases[] = {
    "T1",
    "alibi_causal",
    "bias_bcast_head",
    "bias_bcast_key",
    "bias_causal",
    "bias_full",
    "block_edges_1x1x65x65x16",
    "boolmask_all",
    "boolmask_dead_rows",
    "boolmask_padding",
    "boolmask_random",
    "causal_br_5x9",
    "causal_br_9x5_dead",
    "causal_square",
    "causal_tl_5x9",
    "causal_tl_9x5",
    "decode_q1",
    "dlse",
    "dropout_mask_p50",
    "dv_differs",
    "gqa_4q2kv",
    "kitchen_sink",
    "large_logits",
    "mqa_4q1kv",
    "plain_1x2x5x7x8",
    "plain_seed_like",
    "scale_custom",
    "scale_one",
    "softcap_5",
    "softcap_causal",
    "window_l2_br_6x10",
    "window_l3_r1",
    "window_left2_causal",
};

static const char *const simple_cases[] = {"13x1", "17x16", "1x4", "5x3_large", "6x3_seed", "7x5"};

// ---- reading a case -----------------------------------------------------------------------------

static int64_t number(const attn_safetensors *file, const char *key)
{
    const char *text = attn_safetensors_metadata(file, key);
    assert_non_null(text);
    return strtoll(text, NULL, 10);
}

static double real(const attn_safetensors *file, const char *key, double without)
{
    const char *text = attn_safetensors_metadata(file, key);
    return text != NULL ? strtod(text, NULL) : without;
}

static void copy_into(const attn_safetensors *file, const char *name, const attn_tensor *target)
{
    attn_error error;
    const attn_tensor source = golden_tensor(file, name);
    ASSERT_OK(attn_tensor_copy(&source, target, &error));
}

// The file's dropout_keep has a byte for each weight, the descriptor's a bit.
static void pack_dropout_keep(struct attention *a, const attn_tensor *bytes)
{
    const int64_t *sizes = bytes->shape;
    attention_add_dropout_keep(a, sizes, 0.5);
    uint8_t *bits = a->dropout_keep.data;
    memset(bits, 0, (size_t)attn_tensor_count(&a->dropout_keep));
    const int64_t row_bytes = a->dropout_keep.shape[3];
    const uint8_t *kept = bytes->data;
    for (int64_t row = 0; row < sizes[0] * sizes[1] * sizes[2]; row++) {
        for (int64_t j = 0; j < sizes[3]; j++) {
            uint8_t *target = &bits[row * row_bytes + j / 8];
            *target = (uint8_t)(*target | (kept[row * sizes[3] + j] != 0) << j % 8);
        }
    }
}

static void read_terms(struct attention *a, const attn_safetensors *file)
{
    if (attn_safetensors_find(file, "bias") != NULL) {
        const attn_tensor bias = golden_tensor(file, "bias");
        attention_add_bias(a, a->shape.dtype, bias.shape, 0.0);
        copy_into(file, "bias", &a->bias);
    }
    if (attn_safetensors_find(file, "bool_mask") != NULL) {
        const attn_tensor mask = golden_tensor(file, "bool_mask");
        attention_add_keep(a, mask.shape, 0.0);
        memcpy(a->keep.data, mask.data, (size_t)attn_tensor_count(&mask));
    }
    if (attn_safetensors_find(file, "alibi_slopes") != NULL) {
        attention_add_alibi(a);
        copy_into(file, "alibi_slopes", &a->alibi_slopes);
    }
    if (attn_safetensors_find(file, "grad_lse") != NULL) {
        attention_add_grad_lse(a);
        copy_into(file, "grad_lse", &a->grad_lse);
    }
    if (attn_safetensors_find(file, "dropout_keep") != NULL) {
        const attn_tensor bytes = golden_tensor(file, "dropout_keep");
        pack_dropout_keep(a, &bytes);
        a->desc.dropout_p = real(file, "dropout_p", 0.0);
    }
}

static void read_case(struct attention *a, const attn_safetensors *file, attn_dtype dtype)
{
    attention_begin(a,
                    (struct attention_shape){.batch = number(file, "B"),
                                             .query_heads = number(file, "Hq"),
                                             .key_heads = number(file, "Hkv"),
                                             .queries = number(file, "Tq"),
                                             .keys = number(file, "Tk"),
                                             .head_dim = number(file, "D"),
                                             .value_dim = number(file, "Dv"),
                                             .dtype = dtype},
                    0);
    copy_into(file, "q", &a->query);
    copy_into(file, "k", &a->key);
    copy_into(file, "v", &a->value);
    copy_into(file, "grad_out", &a->grad_output);
    read_terms(a, file);
    a->desc.scale_mode = ATTN_SCALE_GIVEN;
    a->desc.scale = real(file, "scale", 0.0);
    a->desc.softcap = real(file, "softcap", 0.0);
    const char *causal = attn_safetensors_metadata(file, "causal");
    a->desc.causal = strcmp(causal, "none") != 0;
    a->desc.diagonal = strcmp(causal, "top_left") == 0 ? ATTN_DIAGONAL_TOP_LEFT
                                                       : ATTN_DIAGONAL_BOTTOM_RIGHT;
    const char *window = attn_safetensors_metadata(file, "window"); // "[left, right]"
    if (window != NULL) {
        char *end;
        a->desc.window_left = strtoll(window + 1, &end, 10);
        a->desc.window_right = strtoll(end + 1, NULL, 10);
    }
}

// ---- checking it --------------------------------------------------------------------------------

static void check(const attn_safetensors *file, const struct attention_results *r, double forward,
                  double backward)
{
    static const struct {
        enum attention_result result;
        const char *name;
    } stored[] = {
        {ATTENTION_OUTPUT, "out.f64"},           {ATTENTION_LSE, "lse.f64"},
        {ATTENTION_WEIGHTS, "attn_weights.f64"}, {ATTENTION_GRAD_QUERY, "grad.q.f64"},
        {ATTENTION_GRAD_KEY, "grad.k.f64"},      {ATTENTION_GRAD_VALUE, "grad.v.f64"},
        {ATTENTION_GRAD_BIAS, "grad.bias.f64"},
    };
    for (size_t n = 0; n < sizeof(stored) / sizeof(stored[0]); n++) {
        if (!r->present[stored[n].result]) {
            continue;
        }
        const attn_tensor expected = golden_tensor(file, stored[n].name);
        const double bound = stored[n].result <= ATTENTION_KEY_SUMS ? forward : backward;
        assert_tensors_close(stored[n].name, &r->of[stored[n].result], &expected, bound, bound);
    }
}

static void run_case(const attn_context *context, const attn_safetensors *file, attn_dtype dtype,
                     enum attention_path path, attn_dtype results_dtype, double forward,
                     double backward)
{
    struct attention a;
    struct attention_results r;
    read_case(&a, file, dtype);
    attention_run(context, &a, path, results_dtype, &r);
    check(file, &r, forward, backward);
    attention_results_end(&r);
    attention_end(&a);
}

static void check_sdpa_cases(attn_dtype dtype, enum attention_path path, attn_dtype results_dtype,
                             double forward, double backward)
{
    attn_context *context = test_context();
    for (size_t n = 0; n < sizeof(sdpa_cases) / sizeof(sdpa_cases[0]); n++) {
        char name[64];
        snprintf(name, sizeof(name), "sdpa_%s", sdpa_cases[n]);
        attn_safetensors *file = golden_open(context, name);
        // torch's own float32 gradients are off by 3e-4 where logits are large
        const double factor = dtype == ATTN_F32 && strstr(name, "large") != NULL ? 20.0 : 1.0;
        run_case(context, file, dtype, path, results_dtype, forward, factor * backward);
        attn_safetensors_close(file);
    }
    attn_context_destroy(context);
}

static void reference_of_float32_inputs(void **state)
{
    (void)state;
    check_sdpa_cases(ATTN_F32, ATTENTION_REFERENCE, ATTN_F64, 1e-12, 1e-12);
}

static void public_call_in_float64(void **state)
{
    (void)state;
    check_sdpa_cases(ATTN_F64, ATTENTION_PUBLIC, ATTN_DTYPE_NONE, 1e-12, 1e-12);
}

static void public_call_in_float32(void **state)
{
    (void)state;
    check_sdpa_cases(ATTN_F32, ATTENTION_PUBLIC, ATTN_DTYPE_NONE, 5e-6, 2e-5);
}

// softmax(x x^T) x: query, key and value are one tensor, and its gradient is the sum of three.
static void simple_attention(void **state)
{
    (void)state;
    attn_context *context = test_context();
    for (size_t n = 0; n < sizeof(simple_cases) / sizeof(simple_cases[0]); n++) {
        char name[64];
        snprintf(name, sizeof(name), "simple_%s", simple_cases[n]);
        attn_safetensors *file = golden_open(context, name);
        const attn_tensor x = golden_tensor(file, "x");
        const int64_t rows = x.shape[0], dims = x.shape[1];
        struct attention a;
        struct attention_results r;
        attention_begin(&a, (struct attention_shape){1, 1, 1, rows, rows, dims, dims, ATTN_F64}, 0);
        a.desc.scale_mode = ATTN_SCALE_GIVEN;
        a.desc.scale = 1.0;
        const attn_tensor *const inputs[] = {&a.query, &a.key, &a.value, &a.grad_output};
        for (int m = 0; m < 4; m++) {
            attn_tensor flat = attn_tensor_wrap(inputs[m]->data, ATTN_F64, 2, x.shape);
            copy_into(file, m < 3 ? "x" : "grad_out", &flat);
        }
        attention_run(context, &a, ATTENTION_PUBLIC, ATTN_DTYPE_NONE, &r);
        const attn_tensor output =
            attn_tensor_wrap(r.of[ATTENTION_OUTPUT].data, ATTN_F64, 2, x.shape);
        const attn_tensor weights =
            attn_tensor_wrap(r.of[ATTENTION_WEIGHTS].data, ATTN_F64, 2, (int64_t[]){rows, rows});
        const attn_tensor gradient =
            attn_tensor_wrap(r.of[ATTENTION_GRAD_QUERY].data, ATTN_F64, 2, x.shape);
        for (int64_t at = 0; at < rows * dims; at++) {
            ((double *)gradient.data)[at] += ((double *)r.of[ATTENTION_GRAD_KEY].data)[at] +
                                             ((double *)r.of[ATTENTION_GRAD_VALUE].data)[at];
        }
        const attn_tensor expected[] = {golden_tensor(file, "out.f64"),
                                        golden_tensor(file, "attn_weights.f64"),
                                        golden_tensor(file, "grad.x.f64")};
        assert_tensors_close(name, &output, &expected[0], 1e-12, 1e-12);
        assert_tensors_close(name, &weights, &expected[1], 1e-12, 1e-12);
        assert_tensors_close(name, &gradient, &expected[2], 1e-12, 1e-12);
        attention_results_end(&r);
        attention_end(&a);
        attn_safetensors_close(file);
    }
    attn_context_destroy(context);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reference_of_float32_inputs),
        cmocka_unit_test(public_call_in_float64),
        cmocka_unit_test(public_call_in_float32),
        cmocka_unit_test(simple_attention),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

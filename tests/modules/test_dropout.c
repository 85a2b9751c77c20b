// Dropout on attention weights: which weights, from where, and when not.
#include <math.h>
#include <string.h>

#include "modules/module_fixture.h"
#include "support/allocator.h"
#include "support/status.h"
#include "support/unit.h"

enum { BATCH = 2, HEADS = 3, LENGTH = 11, WIDTH = 6 };

typedef struct fixture {
    test_allocator allocator;
    attn_context *context;
    attn_tape *tape;
    attn_trace *trace;
    attn_generator *generator;
    attn_tensor x;
    attn_attention_config config;
} fixture;

static int set_up(void **state)
{
    static fixture f;
    attn_error error;
    f.context = test_context_on(&f.allocator);
    ASSERT_OK(attn_tape_create(f.context, &f.tape, &error));
    ASSERT_OK(attn_trace_create(f.context, &f.trace, &error));
    ASSERT_OK(attn_generator_create(f.context, 17, &f.generator, &error));
    f.x = random_tensor(f.context, ATTN_F64, 3, (int64_t[]){BATCH, LENGTH, WIDTH}, 1);
    attn_attention_config_init(&f.config);
    f.config.dtype = ATTN_F64;
    f.config.d_in = WIDTH;
    f.config.d_out = WIDTH;
    f.config.num_heads = HEADS;
    f.config.context_length = LENGTH + 20;
    f.config.dropout = 0.3;
    *state = &f;
    return 0;
}

static int tear_down(void **state)
{
    fixture *f = *state;
    attn_tensor_destroy(f->context, &f->x);
    attn_generator_destroy(f->generator);
    attn_trace_destroy(f->trace);
    attn_tape_destroy(f->tape);
    test_context_end(f->context, &f->allocator);
    return 0;
}

static attn_tensor run(fixture *f, attn_module *module, int64_t position)
{
    attn_module_call call;
    attn_module_call_init(&call);
    attn_trace_clear(f->trace);
    call.input = attn_input(f->tape, &f->x, false);
    call.generator = f->generator;
    call.trace = f->trace;
    call.position = position;
    const attn_tensor output = attn_value(attn_module_forward(module, &call));
    test_assert_ok(attn_tape_status(f->tape), attn_tape_error(f->tape), __FILE__, __LINE__);
    return output;
}

// What became of weight (b, h, i, j): its factor. NaN where the weight itself is 0.
static double factor_at(const attn_tensor *weights, const attn_tensor *dropped, int64_t b,
                        int64_t h, int64_t i, int64_t j)
{
    const int64_t with_head[] = {b, h, i, j}, without[] = {b, i, j};
    const int64_t *index = weights->ndim == 4 ? with_head : without;
    return attn_tensor_get(dropped, index) / attn_tensor_get(weights, index);
}

// Checks the traced factors of one head against the position-addressed generator.
static void check_philox_head(fixture *f, const attn_module *module, const char *prefix,
                              uint64_t call, int64_t head, int64_t position)
{
    char name[64];
    const attn_attention_config *config = attn_module_config(module);
    strcat(strcpy(name, prefix), "attn_weights");
    const attn_tensor weights = attn_trace_find(f->trace, name)->tensor;
    strcat(name, ".dropped");
    const attn_tensor dropped = attn_trace_find(f->trace, name)->tensor;
    const uint64_t threshold = attn_philox_threshold(0.3);
    int kept = 0;
    for (int64_t b = 0; b < BATCH; b++) {
        uint32_t key[2];
        attn_philox_head_key(
            &(attn_philox_address){config->dropout_seed, config->dropout_stream, call, b, head},
            key);
        for (int64_t i = 0; i < LENGTH; i++) {
            for (int64_t j = 0; j <= i; j++) {
                const bool keep = attn_philox_word(key, position + i, j) < threshold;
                const double factor = factor_at(&weights, &dropped, b, head, i, j);
                assert_true(keep ? fabs(factor - 1 / 0.7) < 1e-12 : factor == 0);
                kept += keep;
            }
        }
    }
    assert_in_range(kept, 60, 125); // of 132, 92 expected
}

static void philox_by_position(void **state)
{
    fixture *f = *state;
    f->config.dropout_source = ATTN_DROPOUT_FROM_PHILOX;
    f->config.dropout_seed = 0x123456789abcdef0;
    f->config.dropout_stream = 5;
    attn_generator_state before, after;
    attn_generator_save(f->generator, &before);
    attn_module *module = make_module(f->context, "MultiHeadAttention", &f->config, NULL);
    attn_module *wrapper = make_module(f->context, "MultiHeadAttentionWrapper", &f->config, NULL);
    for (uint64_t call = 0; call < 3; call++) {
        assert_int_equal(attn_module_dropout_calls(module), call);
        run(f, module, 4 * (int64_t)call);
        for (int64_t head = 0; head < HEADS; head++) {
            check_philox_head(f, module, "", call, head, 4 * (int64_t)call);
        }
    }
    attn_module_set_dropout_calls(wrapper, 40);
    run(f, wrapper, 0);
    check_philox_head(f, wrapper, "heads.0.", 40, 0, 0);
    check_philox_head(f, wrapper, "heads.2.", 40, 2, 0);
    assert_int_equal(attn_module_dropout_calls(wrapper), 41);
    attn_generator_save(f->generator, &after);
    assert_memory_equal(&before, &after, sizeof before);
    attn_module_destroy(wrapper);
    attn_module_destroy(module);
}

// The generator is read once for each weight, also for the masked ones, in the weights' order.
static void torch_stream(void **state)
{
    fixture *f = *state;
    attn_error error;
    attn_module *module = make_module(f->context, "MultiHeadAttention", &f->config, NULL);
    attn_generator_manual_seed(f->generator, 99);
    run(f, module, 0);
    attn_generator_state after, wanted;
    attn_generator_save(f->generator, &after);
    attn_generator_manual_seed(f->generator, 99);
    static uint8_t keep[BATCH * HEADS * LENGTH * LENGTH];
    const attn_tensor mask =
        attn_tensor_wrap(keep, ATTN_U8, 4, (int64_t[]){BATCH, HEADS, LENGTH, LENGTH});
    ASSERT_OK(attn_dropout_mask(f->generator, 0.3, &mask, &error));
    attn_generator_save(f->generator, &wanted);
    assert_memory_equal(&after, &wanted, sizeof after);
    const attn_tensor weights = attn_trace_find(f->trace, "attn_weights")->tensor;
    const attn_tensor dropped = attn_trace_find(f->trace, "attn_weights.dropped")->tensor;
    for (int64_t row = 0; row < BATCH * HEADS * LENGTH; row++) {
        const int64_t b = row / (HEADS * LENGTH), h = row / LENGTH % HEADS, i = row % LENGTH;
        for (int64_t j = 0; j <= i; j++) {
            const double factor = factor_at(&weights, &dropped, b, h, i, j);
            assert_true(keep[row * LENGTH + j] ? fabs(factor - 1 / 0.7) < 1e-12 : factor == 0);
        }
    }
    attn_module_destroy(module);
}

// The engine drops what the trace shows: without out_proj the output is dropped weights times values.
static void output_is_dropped(void **state)
{
    fixture *f = *state;
    attn_error error;
    f->config.out_proj = false;
    for (int source = 0; source < 2; source++) {
        f->config.dropout_source = (attn_dropout_source)source;
        attn_module *module =
            make_module(f->context, "MultiHeadAttention", &f->config, f->generator);
        attn_tensor output = run(f, module, 0), context;
        ASSERT_OK(attn_tensor_view(&output, 4, (int64_t[]){BATCH, LENGTH, HEADS, WIDTH / HEADS},
                                   &output, &error));
        ASSERT_OK(attn_tensor_transpose(&attn_trace_find(f->trace, "context")->tensor, 1, 2,
                                        &context, &error));
        assert_close(&output, &context, 1e-13, 1e-12, "context");
        attn_module_destroy(module);
    }
}

// eval and p = 0 have the same bits, draw nothing and count nothing.
static void only_in_training(void **state)
{
    fixture *f = *state;
    for (int source = 0; source < 2; source++) {
        f->config.dropout_source = (attn_dropout_source)source;
        f->config.dropout = 0.3;
        attn_generator_manual_seed(f->generator, 3);
        attn_module *with = make_module(f->context, "MultiHeadAttention", &f->config, f->generator);
        f->config.dropout = 0;
        attn_generator_manual_seed(f->generator, 3);
        attn_module *without =
            make_module(f->context, "MultiHeadAttention", &f->config, f->generator);
        attn_generator_state before, after;
        attn_generator_save(f->generator, &before);
        attn_module_eval(with);
        const attn_tensor eval = run(f, with, 0);
        assert_null(attn_trace_find(f->trace, "attn_weights.dropped"));
        const attn_tensor plain = run(f, without, 0);
        assert_same_bits(&eval, &plain, "eval and p = 0");
        attn_generator_save(f->generator, &after);
        assert_memory_equal(&before, &after, sizeof before);
        assert_int_equal(attn_module_dropout_calls(with), 0);
        attn_module_train(with);
        const attn_tensor trained = run(f, with, 0);
        attn_comparison found;
        attn_error error;
        ASSERT_OK(attn_tensor_compare(&trained, &plain, 0, 0, &found, &error));
        assert_true(found.differing > 0);
        attn_module_destroy(without);
        attn_module_destroy(with);
    }
}

// What the engine refuses after the mask was drawn leaves the generator as if it never was.
static void a_failed_forward_draws_nothing(void **state)
{
    fixture *f = *state;
    for (int variant = 0; variant < 2; variant++) {
        attn_module *module =
            make_module(f->context, variant ? "MultiHeadAttentionWrapper" : "MultiHeadAttention",
                        &f->config, NULL);
        int64_t lengths[BATCH] = {LENGTH, LENGTH + 1};
        const attn_tensor key_lengths = attn_tensor_wrap(lengths, ATTN_I64, 1, (int64_t[]){BATCH});
        attn_module_call call;
        attn_module_call_init(&call);
        call.input = attn_input(f->tape, &f->x, false);
        call.generator = f->generator;
        call.key_lengths = &key_lengths;
        attn_generator_state before, after;
        attn_generator_save(f->generator, &before);
        attn_module_forward(module, &call);
        assert_int_equal(attn_tape_status(f->tape), ATTN_ERR_INVALID_ARGUMENT);
        attn_generator_save(f->generator, &after);
        assert_memory_equal(&before, &after, sizeof before);
        attn_tape_reset(f->tape);
        attn_module_destroy(module);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(philox_by_position, set_up, tear_down),
        cmocka_unit_test_setup_teardown(torch_stream, set_up, tear_down),
        cmocka_unit_test_setup_teardown(output_is_dropped, set_up, tear_down),
        cmocka_unit_test_setup_teardown(only_in_training, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_failed_forward_draws_nothing, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

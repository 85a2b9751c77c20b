// What the modules' products run on, and what they copy. The linker puts this file's functions before
// the library's (--wrap), so that calls can be counted.
#include <stdatomic.h>
#include <string.h>

#include "kernels/kernels.h"
#include "modules/module.h"
#include "modules/module_fixture.h"
#include "support/allocator.h"
#include "support/status.h"
#include "support/unit.h"
#include "tape/loop.h"

// ---- counting -----------------------------------------------------------------------------------

static atomic_llong tile_terms; // multiply-adds asked of the tile
static atomic_llong copies;
static const struct attn_kernels *counted;

const struct attn_kernels *__real_attn_kernels_select(attn_tier tier);
const struct attn_kernels *__wrap_attn_kernels_select(attn_tier tier);
void __real_attn_loop_copy(const attn_context *context, const attn_tensor *source,
                           const attn_tensor *target);
void __wrap_attn_loop_copy(const attn_context *context, const attn_tensor *source,
                           const attn_tensor *target);

static void counting_tile(const struct attn_tile_f32 *tile, int64_t rows, int64_t lanes,
                          int64_t depth)
{
    atomic_fetch_add(&tile_terms, rows * lanes * depth);
    counted->f32->tile(tile, rows, lanes, depth);
}

const struct attn_kernels *__wrap_attn_kernels_select(attn_tier tier)
{
    static struct attn_kernels table;
    static struct attn_kernels_f32 table_f32;
    counted = __real_attn_kernels_select(tier);
    table = *counted;
    table_f32 = *counted->f32;
    table_f32.tile = counting_tile;
    table.f32 = &table_f32;
    return &table;
}

void __wrap_attn_loop_copy(const attn_context *context, const attn_tensor *source,
                           const attn_tensor *target)
{
    atomic_fetch_add(&copies, 1);
    __real_attn_loop_copy(context, source, target);
}

// ---- the fixture --------------------------------------------------------------------------------

enum { BATCH = 2, TOKENS = 40, WIDTH = 24, HEADS = 3 };

typedef struct fixture {
    test_allocator allocator;
    attn_context *context;
    attn_tape *tape;
    attn_generator *generator;
    attn_tensor x, upstream;
} fixture;

static int set_up(void **state)
{
    static fixture f;
    attn_error error;
    f.context = test_context_on(&f.allocator);
    ASSERT_OK(attn_tape_create(f.context, &f.tape, &error));
    ASSERT_OK(attn_generator_create(f.context, 3, &f.generator, &error));
    f.x = random_tensor(f.context, ATTN_F32, 3, (int64_t[]){BATCH, TOKENS, WIDTH}, 1);
    f.upstream = random_tensor(f.context, ATTN_F32, 3, (int64_t[]){BATCH, TOKENS, WIDTH}, 2);
    *state = &f;
    return 0;
}

static int tear_down(void **state)
{
    fixture *f = *state;
    attn_tensor_destroy(f->context, &f->x);
    attn_tensor_destroy(f->context, &f->upstream);
    attn_generator_destroy(f->generator);
    attn_tape_destroy(f->tape);
    test_context_end(f->context, &f->allocator);
    return 0;
}

static attn_module *module_of(const fixture *f, const char *variant)
{
    attn_attention_config config;
    attn_attention_config_init(&config);
    config.d_in = WIDTH;
    config.context_length = TOKENS;
    config.num_heads = HEADS;
    const bool wrapper = strcmp(variant, "MultiHeadAttentionWrapper") == 0;
    config.d_out = wrapper ? WIDTH / HEADS : WIDTH; // the wrapper's is that of one head
    if (strncmp(variant, "MultiHead", 9) != 0) {
        attn_attention_config fresh;
        attn_attention_config_init(&fresh);
        config.num_heads = fresh.num_heads;
    }
    if (strncmp(variant, "SelfAttention", 13) == 0) {
        attn_attention_config fresh;
        attn_attention_config_init(&fresh);
        config.context_length = fresh.context_length;
    }
    return make_module(f->context, variant, &config, f->generator);
}

static attn_var forward(const fixture *f, attn_module *module)
{
    attn_tape_reset(f->tape);
    attn_module_zero_grad(module);
    const attn_var output = attn_module_apply(module, attn_borrow(f->tape, &f->x, NULL));
    assert_int_equal(attn_tape_status(f->tape), ATTN_OK);
    return output;
}

// ---- tests --------------------------------------------------------------------------------------

// Forward: three projections and two products of attention, of which causality may spare half, and
// out_proj. Backward: twice that, less the gradient of x, which nobody wants here, and the scores
// once more.
static void products_run_on_the_tile(void **state)
{
    static const struct {
        const char *variant;
        bool causal;
        int64_t projections;
    } cases[] = {
        {"SelfAttentionV1", false, 3},          {"SelfAttentionV2", false, 3},
        {"CausalAttention", true, 3},           {"MultiHeadAttention", true, 4},
        {"MultiHeadAttentionWrapper", true, 3},
    };
    const fixture *f = *state;
    for (size_t n = 0; n < sizeof cases / sizeof cases[0]; n++) {
        attn_module *module = module_of(f, cases[n].variant);
        const int64_t projection = BATCH * TOKENS * WIDTH * WIDTH;
        const int64_t product = BATCH * TOKENS * TOKENS * WIDTH / (cases[n].causal ? 2 : 1);
        atomic_store(&tile_terms, 0);
        const attn_var output = forward(f, module);
        assert_true(atomic_load(&tile_terms) >= cases[n].projections * projection + 2 * product);

        atomic_store(&tile_terms, 0);
        attn_error error;
        ASSERT_OK(attn_backward_from(output, &f->upstream, &error));
        assert_true(atomic_load(&tile_terms) >= cases[n].projections * projection + 5 * product);
        attn_module_destroy(module);
    }
}

static void heads_are_split_and_merged_without_copies(void **state)
{
    const fixture *f = *state;
    attn_module *module = module_of(f, "MultiHeadAttention");
    atomic_store(&copies, 0);
    const attn_var output = forward(f, module);
    assert_int_equal(atomic_load(&copies), 0);
    attn_error error;
    ASSERT_OK(attn_backward_from(output, &f->upstream, &error));
    assert_int_equal(atomic_load(&copies), 0);

    // The counter does count: a leaf by value is a copy.
    attn_input(f->tape, &f->x, false);
    assert_int_equal(atomic_load(&copies), 1);
    attn_module_destroy(module);
}

// ---- packed weights -----------------------------------------------------------------------------

static attn_tensor output_of(const fixture *f, attn_module *module)
{
    const attn_tensor value = attn_value(forward(f, module));
    attn_error error;
    attn_tensor copy;
    ASSERT_OK(attn_tensor_create(f->context, ATTN_F32, 3, value.shape, &copy, &error));
    ASSERT_OK(attn_tensor_copy(&value, &copy, &error));
    return copy;
}

// Packed in eval, followed by the version: the same bits as unpacked, whatever happens to a weight.
static void packed_weights_follow_their_version(void **state)
{
    const fixture *f = *state;
    attn_error error;
    attn_module *module = module_of(f, "MultiHeadAttention");
    attn_module *plain = module_of(f, "MultiHeadAttention"); // stays in training: never packed
    attn_parameter *weight = attn_module_find_parameter(module, "out_proj.weight");
    assert_null(attn_packed_parameter(weight));
    attn_module_eval(module);
    assert_null(attn_packed_parameter(attn_module_find_parameter(module, "out_proj.bias")));

    for (int round = 0; round < 4; round++) {
        attn_named_tensor tensors[16];
        const int64_t count = attn_module_parameter_count(module);
        assert_true(count <= 16);
        if (round == 1) { // a changed weight is read as it lies
            ASSERT_OK(attn_tensor_fill(&weight->value, 0.25, &error));
            attn_parameter_touch(weight);
            assert_null(attn_packed_parameter(weight));
        } else if (round == 2) { // and packed again into the same memory
            const long long calls = atomic_load(&f->allocator.calls);
            attn_module_eval(module);
            assert_int_equal(atomic_load(&f->allocator.calls), calls);
            assert_non_null(attn_packed_parameter(weight));
        } else if (round == 3) { // loading does so too
            attn_tensor_fill(&attn_module_find_parameter(plain, "W_key.weight")->value, 0.5, NULL);
            attn_module_state(plain, tensors);
            ASSERT_OK(attn_module_load_state(module, tensors, count, false, &error));
            assert_non_null(attn_packed_parameter(weight));
        }
        attn_module_state(module, tensors);
        ASSERT_OK(attn_module_load_state(plain, tensors, count, false, &error));
        attn_tensor actual = output_of(f, module);
        attn_tensor expected = output_of(f, plain);
        assert_same_bits(&actual, &expected, "output");
        attn_tensor_destroy(f->context, &actual);
        attn_tensor_destroy(f->context, &expected);
    }
    attn_module_destroy(plain);
    attn_module_destroy(module);
}

// The packed form is what a forward reads: a write that nobody was told of does not reach it.
static void forwards_read_the_packed_form(void **state)
{
    const fixture *f = *state;
    attn_module *module = module_of(f, "MultiHeadAttention");
    attn_module_eval(module);
    attn_tensor before = output_of(f, module);
    attn_parameter *weight = attn_module_find_parameter(module, "out_proj.weight");
    attn_tensor_fill(&weight->value, 0, NULL);
    attn_tensor after = output_of(f, module);
    assert_same_bits(&after, &before, "output");
    attn_tensor_destroy(f->context, &before);
    attn_tensor_destroy(f->context, &after);
    attn_module_destroy(module);
}

static void without_memory_weights_stay_unpacked(void **state)
{
    fixture *f = *state;
    attn_module *module = module_of(f, "MultiHeadAttention");
    attn_tensor expected = output_of(f, module);
    attn_parameter *weight = attn_module_find_parameter(module, "W_query.weight");
    for (long long n = 0; n < 2; n++) { // the handle's memory, then that of the panels
        atomic_store(&f->allocator.fail_at, atomic_load(&f->allocator.calls) + n);
        attn_module_eval(module);
        atomic_store(&f->allocator.fail_at, -1);
        assert_null(attn_packed_parameter(weight));
        attn_tensor actual = output_of(f, module);
        assert_same_bits(&actual, &expected, "output");
        attn_tensor_destroy(f->context, &actual);
    }
    attn_module_eval(module);
    assert_non_null(attn_packed_parameter(weight));
    attn_tensor_destroy(f->context, &expected);
    attn_module_destroy(module);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(products_run_on_the_tile, set_up, tear_down),
        cmocka_unit_test_setup_teardown(heads_are_split_and_merged_without_copies, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(packed_weights_follow_their_version, set_up, tear_down),
        cmocka_unit_test_setup_teardown(forwards_read_the_packed_form, set_up, tear_down),
        cmocka_unit_test_setup_teardown(without_memory_weights_stay_unpacked, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

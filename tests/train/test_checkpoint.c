// Checkpoints: a resumed training has the bits of one that never stopped; loading is strict and all or
// nothing; a failing allocator or disk leaves everything as it was.
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "modules/module_fixture.h"
#include "support/allocator.h"
#include "support/status.h"
#include "support/unit.h"

static char folder[] = "/tmp/attn-checkpoint-XXXXXX";
static char path[64];

// ---- a training with everything that a checkpoint holds ------------------------------------------

typedef struct full_training {
    const attn_context *context;
    attn_module *modules[2]; // dropout from the generator, dropout by position
    attn_generator *generators[2];
    attn_optimizer *optimizer;
    attn_tape *tape;
    int64_t cursor[2];
    attn_checkpoint checkpoint;
} full_training;

static full_training begin(const attn_context *context, attn_optimizer_kind kind)
{
    attn_error error;
    full_training t = {.context = context, .cursor = {100, 200}};
    attn_attention_config config;
    attn_attention_config_init(&config);
    config.d_in = 4;
    config.d_out = 4;
    config.num_heads = 2;
    config.context_length = 3;
    config.dropout = 0.25;
    for (uint64_t i = 0; i < 2; i++) {
        ASSERT_OK(attn_generator_create(context, 11 + i, &t.generators[i], &error));
    }
    t.modules[0] = make_module(context, "MultiHeadAttention", &config, t.generators[0]);
    config.dropout_source = ATTN_DROPOUT_FROM_PHILOX;
    config.qkv_bias = true;
    t.modules[1] = make_module(context, "MultiHeadAttention", &config, t.generators[0]);
    attn_optimizer_config rule;
    if (kind == ATTN_OPTIMIZER_ADAMW) {
        attn_adamw_config_init(&rule);
    } else {
        attn_sgd_config_init(&rule);
        rule.momentum = 0.9;
    }
    rule.learning_rate = 0.05;
    rule.schedule =
        (attn_schedule){.kind = ATTN_SCHEDULE_COSINE, .warmup_steps = 3, .total_steps = 20};
    ASSERT_OK(attn_optimizer_create(context, &rule, &t.optimizer, &error));
    ASSERT_OK(attn_optimizer_add_module(t.optimizer, "first.", t.modules[0], &error));
    ASSERT_OK(attn_optimizer_add_module(t.optimizer, "second.", t.modules[1], &error));
    ASSERT_OK(attn_tape_create(context, &t.tape, &error));
    return t;
}

static void end(full_training *t)
{
    attn_tape_destroy(t->tape);
    attn_optimizer_destroy(t->optimizer);
    for (int i = 0; i < 2; i++) {
        attn_module_destroy(t->modules[i]);
        attn_generator_destroy(t->generators[i]);
    }
}

static const attn_checkpoint *checkpoint_of(full_training *t)
{
    attn_checkpoint_init(&t->checkpoint);
    t->checkpoint.optimizer = t->optimizer;
    t->checkpoint.modules = t->modules;
    t->checkpoint.module_count = 2;
    t->checkpoint.generators = t->generators;
    t->checkpoint.generator_count = 2;
    t->checkpoint.cursor = t->cursor;
    t->checkpoint.cursor_count = 2;
    return &t->checkpoint;
}

// Twelve normals and one more: the generator keeps a second one of a pair for the next step.
static void step(full_training *t)
{
    attn_error error;
    attn_tensor x, extra;
    const int64_t one = 1;
    ASSERT_OK(attn_tensor_create(t->context, ATTN_F32, 2, (int64_t[]){3, 4}, &x, &error));
    ASSERT_OK(attn_tensor_create(t->context, ATTN_F32, 1, &one, &extra, &error));
    ASSERT_OK(attn_randn(t->generators[1], &x, &error));
    ASSERT_OK(attn_randn(t->generators[1], &extra, &error));
    attn_tape_reset(t->tape);
    attn_optimizer_zero_grad(t->optimizer);
    attn_var hidden = attn_input(t->tape, &x, false);
    for (int i = 0; i < 2; i++) {
        attn_module_call call;
        attn_module_call_init(&call);
        call.input = hidden;
        call.generator = t->generators[0];
        hidden = attn_module_forward(t->modules[i], &call);
    }
    const attn_var loss = attn_mse_loss(
        hidden, attn_multiply(attn_input(t->tape, &x, false), attn_input(t->tape, &extra, false)));
    ASSERT_OK(attn_backward(loss, &error));
    ASSERT_OK(attn_optimizer_clip_grad_norm(t->optimizer, 1, NULL, &error));
    attn_optimizer_step(t->optimizer);
    t->cursor[0] += 7;
    t->cursor[1] -= 3;
    attn_tensor_destroy(t->context, &extra);
    attn_tensor_destroy(t->context, &x);
}

static void assert_same_state(full_training *a, full_training *b)
{
    for (int64_t i = 0; i < attn_optimizer_parameter_count(a->optimizer); i++) {
        assert_same_bits(&attn_optimizer_parameter(a->optimizer, i)->value,
                         &attn_optimizer_parameter(b->optimizer, i)->value,
                         attn_optimizer_parameter_name(a->optimizer, i));
    }
    attn_named_tensor held_a[64], held_b[64];
    assert_in_range(attn_optimizer_moment_count(a->optimizer), 1, 64);
    attn_optimizer_moments(a->optimizer, held_a);
    attn_optimizer_moments(b->optimizer, held_b);
    for (int64_t i = 0; i < attn_optimizer_moment_count(a->optimizer); i++) {
        assert_same_bits(&held_a[i].tensor, &held_b[i].tensor, held_a[i].name);
    }
    for (int i = 0; i < 2; i++) {
        attn_generator_state state_a, state_b;
        attn_generator_save(a->generators[i], &state_a);
        attn_generator_save(b->generators[i], &state_b);
        assert_memory_equal(&state_a, &state_b, sizeof state_a);
        assert_int_equal(attn_module_dropout_calls(a->modules[i]),
                         attn_module_dropout_calls(b->modules[i]));
        assert_int_equal(a->cursor[i], b->cursor[i]);
    }
    assert_int_equal(attn_optimizer_steps(a->optimizer), attn_optimizer_steps(b->optimizer));
}

// ---- tests --------------------------------------------------------------------------------------

static void resume(attn_optimizer_kind kind)
{
    attn_error error;
    test_allocator allocator;
    attn_context *context = test_context_on(&allocator);
    full_training whole = begin(context, kind), stopped = begin(context, kind);
    for (int n = 0; n < 12; n++) {
        step(&whole);
    }
    for (int n = 0; n < 5; n++) {
        step(&stopped);
    }
    attn_generator_state state;
    attn_generator_save(stopped.generators[1], &state);
    assert_int_equal(state.has_normal, 1);
    ASSERT_OK(attn_checkpoint_save(context, path, checkpoint_of(&stopped), &error));
    end(&stopped);

    full_training resumed = begin(context, kind);
    step(&resumed); // whatever it was before
    const uint64_t version = attn_optimizer_parameter(resumed.optimizer, 0)->version;
    ASSERT_OK(attn_checkpoint_load(context, path, checkpoint_of(&resumed), &error));
    assert_int_equal(attn_optimizer_parameter(resumed.optimizer, 0)->version, version + 1);
    assert_int_equal(attn_optimizer_steps(resumed.optimizer), 5);
    assert_int_equal(attn_module_dropout_calls(resumed.modules[1]), 5);
    assert_int_equal(resumed.cursor[0], 135);
    for (int n = 5; n < 12; n++) {
        step(&resumed);
    }
    assert_same_state(&resumed, &whole);
    end(&resumed);
    end(&whole);
    assert_int_equal(unlink(path), 0);
    test_context_end(context, &allocator);
}

static void resume_adamw(void **state)
{
    (void)state;
    resume(ATTN_OPTIMIZER_ADAMW);
}

static void resume_sgd(void **state)
{
    (void)state;
    resume(ATTN_OPTIMIZER_SGD);
}

// Loading `checkpoint` must fail so and change nothing in `t`, of which `same` is a twin.
static void load_refused(full_training *t, full_training *same, const attn_checkpoint *checkpoint,
                         attn_status expected, const char *text)
{
    attn_error error;
    ASSERT_FAILS(expected, text, attn_checkpoint_load(t->context, path, checkpoint, &error));
    assert_same_state(t, same);
}

static void strict_loading(void **state)
{
    (void)state;
    attn_error error;
    test_allocator allocator;
    attn_context *context = test_context_on(&allocator);
    full_training saved = begin(context, ATTN_OPTIMIZER_ADAMW);
    full_training t = begin(context, ATTN_OPTIMIZER_ADAMW);
    full_training same = begin(context, ATTN_OPTIMIZER_ADAMW);
    full_training other = begin(context, ATTN_OPTIMIZER_SGD);
    step(&saved);
    ASSERT_OK(attn_checkpoint_save(context, path, checkpoint_of(&saved), &error));

    ASSERT_FAILS(ATTN_ERR_FORMAT, "checkpoint: the file's optimizer is adamw, not sgd",
                 attn_checkpoint_load(context, path, checkpoint_of(&other), &error));
    attn_checkpoint checkpoint = *checkpoint_of(&t);
    checkpoint.cursor_count = 1;
    load_refused(&t, &same, &checkpoint, ATTN_ERR_FORMAT, "checkpoint: cursor is [2], not [1]");
    checkpoint = *checkpoint_of(&t);
    checkpoint.generator_count = 0;
    load_refused(&t, &same, &checkpoint, ATTN_ERR_FORMAT,
                 "checkpoint: generators.normal is [2], not [0]");
    checkpoint = *checkpoint_of(&t);
    checkpoint.struct_size = 8;
    const char *null_text = "checkpoint: context, path, checkpoint or its optimizer is NULL, or "
                            "attn_checkpoint_init was not called";
    load_refused(&t, &same, &checkpoint, ATTN_ERR_INVALID_ARGUMENT, null_text);
    checkpoint = *checkpoint_of(&t);
    checkpoint.reserved[0] = 1;
    load_refused(&t, &same, &checkpoint, ATTN_ERR_INVALID_ARGUMENT,
                 "checkpoint: reserved[0] must be zero");
    attn_generator *const missing[] = {t.generators[0], NULL};
    checkpoint = *checkpoint_of(&t);
    checkpoint.generators = missing;
    load_refused(&t, &same, &checkpoint, ATTN_ERR_INVALID_ARGUMENT,
                 "checkpoint: generator 1 is NULL");
    checkpoint = *checkpoint_of(&t);
    checkpoint.modules = NULL;
    load_refused(&t, &same, &checkpoint, ATTN_ERR_INVALID_ARGUMENT,
                 "checkpoint: 2 modules do not go with their array");

    // A parameter more than the file has, and one less.
    attn_module *linear;
    ASSERT_OK(attn_linear_create(context, 2, 3, false, ATTN_F32, NULL, &linear, &error));
    ASSERT_OK(attn_optimizer_add_module(t.optimizer, "head.", linear, &error));
    ASSERT_FAILS(ATTN_ERR_NOT_FOUND, "checkpoint: model.head.weight is missing",
                 attn_checkpoint_load(context, path, checkpoint_of(&t), &error));
    step(&t);
    ASSERT_OK(attn_checkpoint_save(context, path, checkpoint_of(&t), &error));
    full_training small = begin(context, ATTN_OPTIMIZER_ADAMW);
    ASSERT_FAILS(ATTN_ERR_FORMAT, "checkpoint: the file holds 50 tensors, 47 are known",
                 attn_checkpoint_load(context, path, checkpoint_of(&small), &error));
    assert_same_state(&small, &same);

    // Any other .safetensors file.
    const attn_named_tensor weight = {"weight", attn_module_parameter(linear, 0)->value};
    ASSERT_OK(attn_safetensors_save(context, path, &weight, 1, NULL, 0, &error));
    ASSERT_FAILS(ATTN_ERR_FORMAT, "checkpoint: the file is no \"attn checkpoint 1\"",
                 attn_checkpoint_load(context, path, checkpoint_of(&small), &error));
    assert_int_equal(unlink(path), 0);
    assert_int_equal(attn_checkpoint_load(context, path, checkpoint_of(&small), &error),
                     ATTN_ERR_IO);
    assert_int_equal(attn_checkpoint_save(context, "/nowhere/x", checkpoint_of(&small), &error),
                     ATTN_ERR_IO);
    assert_same_state(&small, &same);
    end(&small);
    end(&t);
    attn_module_destroy(linear);
    end(&other);
    end(&same);
    end(&saved);
    test_context_end(context, &allocator);
}

// A state that no generator can have is found before anything is written.
static void impossible_generator(void **state)
{
    (void)state;
    attn_error error;
    test_allocator allocator;
    attn_context *context = test_context_on(&allocator);
    full_training t = begin(context, ATTN_OPTIMIZER_SGD), same = begin(context, ATTN_OPTIMIZER_SGD);
    step(&t);
    step(&same);
    ASSERT_OK(attn_checkpoint_save(context, path, checkpoint_of(&t), &error));
    attn_safetensors *file;
    ASSERT_OK(attn_safetensors_open(context, path, &file, &error));
    static const struct {
        const char *name;
        int64_t value;
        attn_status status;
        const char *text;
    } wrong[] = {
        {"generators.position", 625, ATTN_ERR_FORMAT,
         "checkpoint: generator 1 has an impossible state"},
        {"generators.has_normal", 2, ATTN_ERR_FORMAT,
         "checkpoint: generator 1 has an impossible state"},
        {"generators.words", -1, ATTN_ERR_FORMAT,
         "checkpoint: generator 1 has an impossible state"},
        {"steps", -4, ATTN_ERR_FORMAT, "checkpoint: steps (-4) is negative"},
    };
    const attn_text_pair metadata[] = {{"format", "attn checkpoint 1"}, {"optimizer", "sgd"}};
    for (size_t w = 0; w < sizeof wrong / sizeof wrong[0]; w++) {
        attn_named_tensor tensors[64];
        attn_tensor changed = {0};
        const int64_t count = attn_safetensors_count(file);
        assert_in_range(count, 1, 64);
        for (int64_t i = 0; i < count; i++) {
            tensors[i] = *attn_safetensors_entry(file, i);
            if (strcmp(tensors[i].name, wrong[w].name) == 0) {
                changed = converted(context, &tensors[i].tensor, ATTN_I64);
                ((int64_t *)changed.data)[attn_tensor_count(&changed) - 1] = wrong[w].value;
                tensors[i].tensor = changed;
            }
        }
        char bad[80];
        snprintf(bad, sizeof bad, "%s.bad", path);
        ASSERT_OK(attn_safetensors_save(context, bad, tensors, count, metadata, 2, &error));
        ASSERT_FAILS(wrong[w].status, wrong[w].text,
                     attn_checkpoint_load(context, bad, checkpoint_of(&t), &error));
        assert_same_state(&t, &same);
        assert_int_equal(unlink(bad), 0);
        attn_tensor_destroy(context, &changed);
    }
    attn_safetensors_close(file);
    assert_int_equal(unlink(path), 0);
    end(&same);
    end(&t);
    test_context_end(context, &allocator);
}

static void failing_allocator(void **state)
{
    (void)state;
    for (int loading = 0; loading < 2; loading++) {
        bool done = false;
        for (long long n = 0; !done; n++) {
            attn_error error;
            test_allocator allocator;
            attn_context *context = test_context_on(&allocator);
            full_training t = begin(context, ATTN_OPTIMIZER_SGD);
            full_training same = begin(context, ATTN_OPTIMIZER_SGD);
            ASSERT_OK(attn_checkpoint_save(context, path, checkpoint_of(&t), &error));
            step(&t);
            step(&same);
            const attn_checkpoint *checkpoint = checkpoint_of(&t);
            const long long before = atomic_load(&allocator.calls);
            atomic_store(&allocator.fail_at, before + n);
            const attn_status status =
                loading ? attn_checkpoint_load(context, path, checkpoint, &error)
                        : attn_checkpoint_save(context, path, checkpoint, &error);
            done = atomic_load(&allocator.calls) <= before + n;
            assert_int_equal(status, done ? ATTN_OK : ATTN_ERR_OUT_OF_MEMORY);
            atomic_store(&allocator.fail_at, -1);
            if (!done || !loading) {
                assert_same_state(&t, &same);
            }
            end(&same);
            end(&t);
            test_context_end(context, &allocator);
        }
    }
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rmdir(folder), 0); // no temporary file is left either
    assert_non_null(mkdtemp(strcpy(folder, "/tmp/attn-checkpoint-XXXXXX")));
}

static int make_folder(void **state)
{
    (void)state;
    if (!mkdtemp(folder)) {
        return -1;
    }
    snprintf(path, sizeof path, "%s/state.safetensors", folder);
    return 0;
}

static int remove_folder(void **state)
{
    (void)state;
    return rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(resume_adamw),      cmocka_unit_test(resume_sgd),
        cmocka_unit_test(strict_loading),    cmocka_unit_test(impossible_generator),
        cmocka_unit_test(failing_allocator),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}

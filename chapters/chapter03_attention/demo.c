// demo.c: the shared state and the small helpers of every section.
#define _POSIX_C_SOURCE 200809L // clock_gettime

#include "demo.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

const char *const token_names[TOKENS] = {"Your", "journey", "starts", "with", "one", "step"};

const float token_inputs[TOKENS][EMBEDDING] = {
    {0.43F, 0.15F, 0.89F}, // Your     x_1
    {0.55F, 0.87F, 0.66F}, // journey  x_2
    {0.57F, 0.85F, 0.64F}, // starts   x_3
    {0.22F, 0.58F, 0.33F}, // with     x_4
    {0.77F, 0.25F, 0.10F}, // one      x_5
    {0.05F, 0.80F, 0.55F}, // step     x_6
};

void demo_open(demo *d)
{
    attn_error error = {0};
    must(attn_context_create(NULL, &d->context, &error), &error);
    must(attn_tape_create(d->context, &d->tape, &error), &error);
    must(attn_generator_create(d->context, 0, &d->generator, &error), &error);
}

void demo_close(demo *d)
{
    attn_generator_destroy(d->generator);
    attn_tape_destroy(d->tape);
    attn_context_destroy(d->context);
}

void must(attn_status status, const attn_error *error)
{
    if (status != ATTN_OK) {
        fflush(stdout);
        fprintf(stderr, "chapter03_attention: %s\n", error->text);
        exit(EXIT_FAILURE);
    }
}

void must_tape(const demo *d)
{
    must(attn_tape_status(d->tape), attn_tape_error(d->tape));
}

void fresh_tape(demo *d)
{
    attn_tape_reset(d->tape);
}

void manual_seed(demo *d, uint64_t seed)
{
    attn_generator_manual_seed(d->generator, seed);
}

attn_var make_inputs(demo *d)
{
    return leaf(d, token_inputs[0], 2, (int64_t[]){TOKENS, EMBEDDING});
}

attn_var make_batch(demo *d)
{
    const attn_var sentence = make_inputs(d);
    return attn_stack((attn_var[]){sentence, sentence}, 2, 0);
}

attn_var leaf(demo *d, const float *numbers, int32_t ndim, const int64_t *shape)
{
    const attn_tensor tensor = attn_tensor_wrap_const(numbers, ATTN_F32, ndim, shape);
    return attn_input(d->tape, &tensor, false);
}

typedef attn_status (*fill_function)(attn_generator *, const attn_tensor *, attn_error *);

static attn_var filled_leaf(demo *d, fill_function fill, int32_t ndim, const int64_t *shape)
{
    attn_error error = {0};
    attn_tensor tensor;
    must(attn_tensor_create(d->context, ATTN_F32, ndim, shape, &tensor, &error), &error);
    must(fill(d->generator, &tensor, &error), &error);
    const attn_var var = attn_input(d->tape, &tensor, false);
    attn_tensor_destroy(d->context, &tensor);
    return var;
}

attn_var rand_leaf(demo *d, int32_t ndim, const int64_t *shape)
{
    return filled_leaf(d, attn_rand, ndim, shape);
}

attn_var randn_leaf(demo *d, int32_t ndim, const int64_t *shape)
{
    return filled_leaf(d, attn_randn, ndim, shape);
}

void own_parameter_create(demo *d, attn_parameter *p, const char *name, int64_t rows,
                          int64_t columns, double deviation)
{
    attn_error error = {0};
    const int64_t shape[] = {rows, columns};
    *p = (attn_parameter){.name = name};
    must(attn_tensor_create(d->context, ATTN_F32, 2, shape, &p->value, &error), &error);
    must(attn_tensor_create(d->context, ATTN_F32, 2, shape, &p->grad, &error), &error);
    must(attn_randn(d->generator, &p->value, &error), &error);
    float *numbers = p->value.data;
    for (int64_t i = 0; i < rows * columns; ++i) {
        numbers[i] *= (float)deviation;
    }
}

void own_parameter_destroy(demo *d, attn_parameter *p)
{
    attn_tensor_destroy(d->context, &p->value);
    attn_tensor_destroy(d->context, &p->grad);
}

attn_var parameter(demo *d, attn_module *module, const char *name)
{
    attn_parameter *found = attn_module_find_parameter(module, name);
    if (!found) {
        attn_tape_fail(d->tape, ATTN_ERR_NOT_FOUND, name);
        return ATTN_NO_VAR;
    }
    return attn_borrow(d->tape, &found->value, &found->grad);
}

attn_var traced(demo *d, attn_module *module, attn_var input, const char *name)
{
    attn_error error = {0};
    attn_trace *trace;
    must(attn_trace_create(d->context, &trace, &error), &error);
    attn_module_call call;
    attn_module_call_init(&call);
    call.input = input;
    call.trace = trace;
    (void)attn_module_forward(module, &call);
    must_tape(d);
    const attn_named_tensor *entry = attn_trace_find(trace, name);
    attn_var var = ATTN_NO_VAR;
    if (entry) {
        var = attn_input(d->tape, &entry->tensor, false);
    } else {
        attn_tape_fail(d->tape, ATTN_ERR_NOT_FOUND, name);
    }
    attn_trace_destroy(trace);
    must_tape(d);
    return var;
}

double element(attn_var var, int64_t row, int64_t column)
{
    const attn_tensor value = attn_value(var);
    return attn_tensor_get(&value, (int64_t[ATTN_MAX_DIMS]){row, column});
}

static attn_comparison compare(attn_var a, attn_var b, double tolerance)
{
    attn_error error = {0};
    attn_comparison comparison;
    const attn_tensor left = attn_value(a);
    const attn_tensor right = attn_value(b);
    must(attn_tensor_compare(&left, &right, tolerance, 0, &comparison, &error), &error);
    return comparison;
}

bool same_bits(attn_var a, attn_var b)
{
    return compare(a, b, 0).equal_bits;
}

bool close_to(attn_var a, attn_var b, double tolerance)
{
    return compare(a, b, tolerance).differing == 0;
}

double largest_difference(attn_var a, attn_var b)
{
    return compare(a, b, 0).max_absolute;
}

double seconds_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

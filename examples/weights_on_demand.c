// Looks at a few attention weights of a long sequence without ever holding the T x T matrix.
//
//   weights_on_demand
//
// All weights of one head here would be 4096 x 4096 floats, 64 MiB. The program asks for one row of
// two heads, and for each key's sum of weights: how much attention it gets from all rows.
#include <attn/attn.h>
#include <stdio.h>

enum { HEADS = 2, LENGTH = 4096, SIZE = 16, COUNT = HEADS * LENGTH * SIZE };

static void print_largest(const char *what, const float *numbers)
{
    int largest = 0;
    double sum = 0;
    for (int i = 0; i < LENGTH; i++) {
        largest = numbers[i] > numbers[largest] ? i : largest;
        sum += numbers[i];
    }
    printf("%s: key %d has most, %.4f of %.1f\n", what, largest, numbers[largest], sum);
}

static attn_status look(const attn_context *context, float *memory, float *weights, float *sums,
                        attn_error *error)
{
    const int64_t shape[] = {1, HEADS, LENGTH, SIZE};
    const int64_t per_key[] = {1, HEADS, LENGTH};
    const int64_t chosen[] = {1, HEADS, 1, LENGTH};
    static const int64_t row[] = {1000};
    static const int64_t one[] = {1};
    const attn_tensor q = attn_tensor_wrap_const(memory, ATTN_F32, 4, shape);
    const attn_tensor k = attn_tensor_wrap_const(memory + COUNT, ATTN_F32, 4, shape);
    const attn_tensor v = attn_tensor_wrap_const(memory + 2 * COUNT, ATTN_F32, 4, shape);
    const attn_tensor w = attn_tensor_wrap(weights, ATTN_F32, 4, chosen);
    const attn_tensor s = attn_tensor_wrap(sums, ATTN_F32, 3, per_key);
    const attn_tensor rows = attn_tensor_wrap_const(row, ATTN_I64, 1, one);
    attn_sdpa_desc desc;
    attn_sdpa_desc_init(&desc);
    desc.causal = true;
    attn_sdpa_forward_args args;
    attn_sdpa_forward_args_init(&args);
    args.query = &q;
    args.key = &k;
    args.value = &v;
    args.weights = &w;
    args.weight_rows = &rows; // weight_heads stays NULL: all heads
    args.key_sums = &s;
    return attn_sdpa_forward(context, &desc, &args, error);
}

int main(void)
{
    attn_error error;
    attn_context *context = NULL;
    attn_generator *generator = NULL;
    static float memory[3 * COUNT], weights[HEADS][LENGTH], sums[HEADS][LENGTH];
    attn_status status = attn_context_create(NULL, &context, &error);
    if (status == ATTN_OK) {
        status = attn_generator_create(context, 7, &generator, &error);
    }
    if (status == ATTN_OK) {
        const int64_t shape[] = {3 * (int64_t)COUNT};
        const attn_tensor all = attn_tensor_wrap(memory, ATTN_F32, 1, shape);
        status = attn_randn(generator, &all, &error);
    }
    if (status == ATTN_OK) {
        status = look(context, memory, weights[0], sums[0], &error);
    }
    if (status == ATTN_OK) {
        print_largest("row 1000 of head 0", weights[0]);
        print_largest("row 1000 of head 1", weights[1]);
        print_largest("all rows of head 0", sums[0]);
        print_largest("all rows of head 1", sums[1]);
    } else {
        fprintf(stderr, "%s\n", error.text);
    }
    attn_generator_destroy(generator);
    attn_context_destroy(context);
    return status == ATTN_OK ? 0 : 1;
}

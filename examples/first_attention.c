// Attention without a module: query, key and value in, output and weights out.
//
//   first_attention
#include <attn/attn.h>
#include <stdio.h>

static float query[3][2] = {{1, 0}, {0, 1}, {1, 1}};
static float key[3][2] = {{1, 0}, {0, 1}, {-1, 0}};
static float value[3][2] = {{10, 0}, {0, 10}, {5, 5}};

static void print(const char *name, const attn_tensor *tensor)
{
    char text[1024];
    attn_tensor_format(tensor, 4, text, sizeof(text));
    printf("%s\n%s\n", name, text);
}

int main(void)
{
    attn_error error;
    attn_context *context = NULL;
    if (attn_context_create(NULL, &context, &error) != ATTN_OK) {
        fprintf(stderr, "%s\n", error.text);
        return 1;
    }

    // One batch entry and one head: (B, H, T, D) = (1, 1, 3, 2).
    const int64_t shape[] = {1, 1, 3, 2};
    const int64_t square[] = {1, 1, 3, 3};
    float output[3][2], weights[3][3];
    const attn_tensor q = attn_tensor_wrap_const(query, ATTN_F32, 4, shape);
    const attn_tensor k = attn_tensor_wrap_const(key, ATTN_F32, 4, shape);
    const attn_tensor v = attn_tensor_wrap_const(value, ATTN_F32, 4, shape);
    const attn_tensor o = attn_tensor_wrap(output, ATTN_F32, 4, shape);
    const attn_tensor w = attn_tensor_wrap(weights, ATTN_F32, 4, square);

    attn_sdpa_desc desc; // what attention means here: causal, otherwise the defaults
    attn_sdpa_desc_init(&desc);
    desc.causal = true;

    attn_sdpa_forward_args args;
    attn_sdpa_forward_args_init(&args);
    args.query = &q;
    args.key = &k;
    args.value = &v;
    args.output = &o;
    args.weights = &w;
    const attn_status status = attn_sdpa_forward(context, &desc, &args, &error);
    if (status == ATTN_OK) {
        print("weights", &w);
        print("output", &o);
    } else {
        fprintf(stderr, "%s\n", error.text);
    }
    attn_context_destroy(context);
    return status == ATTN_OK ? 0 : 1;
}

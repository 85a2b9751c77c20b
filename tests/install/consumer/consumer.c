// A program outside the project: one query over two keys, and the library's version.
#include <attn/attn.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

int main(int argc, char **argv)
{
    if (argc != 2 || strcmp(attn_version(), argv[1]) != 0) {
        fprintf(stderr, "the library says version %s\n", attn_version());
        return 1;
    }
    float query[1] = {0.0f}, key[2] = {1.0f, 2.0f}, value[2] = {3.0f, 5.0f}, output[1] = {0.0f};
    const attn_tensor q = attn_tensor_wrap_const(query, ATTN_F32, 4, (int64_t[]){1, 1, 1, 1});
    const attn_tensor k = attn_tensor_wrap_const(key, ATTN_F32, 4, (int64_t[]){1, 1, 2, 1});
    const attn_tensor v = attn_tensor_wrap_const(value, ATTN_F32, 4, (int64_t[]){1, 1, 2, 1});
    const attn_tensor o = attn_tensor_wrap(output, ATTN_F32, 4, (int64_t[]){1, 1, 1, 1});

    attn_error error;
    attn_context *context = NULL;
    if (attn_context_create(NULL, &context, &error) != ATTN_OK) {
        fprintf(stderr, "%s\n", error.text);
        return 1;
    }
    attn_sdpa_desc desc;
    attn_sdpa_desc_init(&desc);
    attn_sdpa_forward_args args;
    attn_sdpa_forward_args_init(&args);
    args.query = &q;
    args.key = &k;
    args.value = &v;
    args.output = &o;
    const attn_status status = attn_sdpa_forward(context, &desc, &args, &error);
    attn_context_destroy(context);
    if (status != ATTN_OK) {
        fprintf(stderr, "%s\n", error.text);
        return 1;
    }
    // A query of 0 weighs both keys alike: the mean of 3 and 5.
    return fabsf(output[0] - 4.0f) < 1e-6f ? 0 : 1;
}

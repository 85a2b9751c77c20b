#include "tool.h"

static const option_row compute_rows[] = {
    {"threads", 0, "N", "Number of threads; 0, the default, is one per available CPU."},
    {"tier", 0, "auto|portable|avx2|avx512|neon",
     "Instruction set of the kernels. Every one gives the same bits."},
    {NULL, 0, NULL, NULL},
};
const option_group compute_group = {"Computation", compute_rows};

static const option_row format_rows[] = {
    {"bfloat16", 0, NULL,
     "In .npy files two-byte opaque elements ('V2') are bfloat16, as ml_dtypes writes them."},
    {NULL, 0, NULL, NULL},
};
const option_group format_group = {"File formats", format_rows};

attn_context *context_for(const arguments *a, progress *p, int *status)
{
    attn_error error;
    int64_t threads;
    *status = EXIT_USAGE;
    if (!argument_integer(a, "threads", 0, 4096, 0, &threads)) {
        return NULL;
    }
    *status = EXIT_TROUBLE;
    attn_context_config config;
    attn_context_config_init(&config);
    config.tier = (attn_tier)argument_choice(a, "tier", ATTN_TIER_AUTO);
    attn_status made = attn_executor_pthreadpool((int32_t)threads, &config.executor, &error);
    if (made == ATTN_ERR_NOT_SUPPORTED) {
        made = attn_executor_pthreads((int32_t)threads, &config.executor, &error);
    }
    if (made != ATTN_OK) {
        library_trouble(a, &error);
        return NULL;
    }
    if (p != NULL) {
        config.executor = progress_executor(p, config.executor);
    }
    attn_context *context = NULL;
    if (attn_context_create(&config, &context, &error) != ATTN_OK) {
        config.executor.destroy(config.executor.state);
        library_trouble(a, &error);
        return NULL;
    }
    return context;
}

attn_context *plain_context(const arguments *a)
{
    attn_error error;
    attn_context *context = NULL;
    if (attn_context_create(NULL, &context, &error) != ATTN_OK) {
        library_trouble(a, &error);
    }
    return context;
}

uint32_t npy_flags(const arguments *a)
{
    return argument_given(a, "bfloat16") ? ATTN_NPY_BFLOAT16 : 0;
}

int library_trouble(const arguments *a, const attn_error *error)
{
    return trouble(a, "%s", error->text);
}

// Scaled dot-product attention through the public call, beside the plain path on each BLAS.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "case.h"

// The plain path materialises its scores; beyond this it is left out.
static const double most_score_bytes = 1.5e9;

struct attention {
    const attn_context *context;
    attn_sdpa_desc desc;
    attn_tensor query, key, value, output, row_max, row_sum;
    attn_tensor grad_output, grad_query, grad_key, grad_value;
    void *workspace;
    size_t forward_bytes, backward_bytes;
    attn_status status;
};

static attn_sdpa_forward_args forward_args(const struct attention *a)
{
    attn_sdpa_forward_args args;
    attn_sdpa_forward_args_init(&args);
    args.query = &a->query;
    args.key = &a->key;
    args.value = &a->value;
    args.output = &a->output;
    if (a->row_max.data) {
        args.row_max = &a->row_max;
        args.row_sum = &a->row_sum;
    }
    args.workspace = a->workspace;
    args.workspace_size = a->forward_bytes;
    return args;
}

static attn_sdpa_backward_args backward_args(const struct attention *a)
{
    attn_sdpa_backward_args args;
    attn_sdpa_backward_args_init(&args);
    args.query = &a->query;
    args.key = &a->key;
    args.value = &a->value;
    args.output = &a->output;
    args.row_max = &a->row_max;
    args.row_sum = &a->row_sum;
    args.grad_output = &a->grad_output;
    args.grad_query = &a->grad_query;
    args.grad_key = &a->grad_key;
    args.grad_value = &a->grad_value;
    args.workspace = a->workspace;
    args.workspace_size = a->backward_bytes;
    return args;
}

static void run_forward(void *state)
{
    struct attention *const a = state;
    const attn_sdpa_forward_args args = forward_args(a);
    const attn_status status = attn_sdpa_forward(a->context, &a->desc, &args, NULL);
    a->status = a->status == ATTN_OK ? status : a->status;
}

static void run_both(void *state)
{
    struct attention *const a = state;
    run_forward(a);
    const attn_sdpa_backward_args args = backward_args(a);
    const attn_status status = attn_sdpa_backward(a->context, &a->desc, &args, NULL);
    a->status = a->status == ATTN_OK ? status : a->status;
}

static bool make(const attn_context *context, attn_dtype dtype, int32_t ndim, const int64_t *shape,
                 attn_generator *generator, attn_tensor *tensor)
{
    if (attn_tensor_create(context, dtype, ndim, shape, tensor, NULL) != ATTN_OK) {
        return false;
    }
    if (!generator) {
        return true;
    }
    if (dtype == ATTN_F32) {
        return attn_uniform(generator, -1, 1, tensor, NULL) == ATTN_OK;
    }
    attn_tensor single = {0};
    bool made = make(context, ATTN_F32, ndim, shape, generator, &single);
    made = made && attn_tensor_copy(&single, tensor, NULL) == ATTN_OK;
    attn_tensor_destroy(context, &single);
    return made;
}

static bool make_tensors(struct attention *a, const struct attention_shape *s)
{
    const int64_t query[] = {s->batch, s->heads, s->tq, s->head_dim};
    const int64_t key[] = {s->batch, s->kv_heads, s->tk, s->head_dim};
    attn_generator *generator = NULL;
    bool made = attn_generator_create(a->context, 1, &generator, NULL) == ATTN_OK;
    made = made && make(a->context, ATTN_F32, 4, query, generator, &a->query);
    made = made && make(a->context, s->cache, 4, key, generator, &a->key);
    made = made && make(a->context, s->cache, 4, key, generator, &a->value);
    made = made && make(a->context, ATTN_F32, 4, query, NULL, &a->output);
    if (s->backward) {
        made = made && make(a->context, ATTN_F32, 3, query, NULL, &a->row_max);
        made = made && make(a->context, ATTN_F32, 3, query, NULL, &a->row_sum);
        made = made && make(a->context, ATTN_F32, 4, query, generator, &a->grad_output);
        made = made && make(a->context, ATTN_F32, 4, query, NULL, &a->grad_query);
        made = made && make(a->context, ATTN_F32, 4, key, NULL, &a->grad_key);
        made = made && make(a->context, ATTN_F32, 4, key, NULL, &a->grad_value);
    }
    attn_generator_destroy(generator);
    return made;
}

static void destroy_tensors(struct attention *a)
{
    attn_tensor *const all[] = {&a->query,    &a->key,       &a->value,       &a->output,
                                &a->row_max,  &a->row_sum,   &a->grad_output, &a->grad_query,
                                &a->grad_key, &a->grad_value};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        attn_tensor_destroy(a->context, all[i]);
    }
}

// The same tensors on another number of threads, with that context's own scratch.
static bool on_threads(const struct attention *of, const attn_context *context, bool backward,
                       struct attention *a)
{
    *a = *of;
    a->context = context;
    a->workspace = NULL;
    const attn_sdpa_forward_args forward = forward_args(a);
    const attn_sdpa_backward_args going_back = backward_args(a);
    if (attn_sdpa_forward_workspace(context, &a->desc, &forward, &a->forward_bytes, NULL) !=
            ATTN_OK ||
        (backward && attn_sdpa_backward_workspace(context, &a->desc, &going_back,
                                                  &a->backward_bytes, NULL) != ATTN_OK)) {
        return false;
    }
    const size_t most = a->forward_bytes > a->backward_bytes ? a->forward_bytes : a->backward_bytes;
    a->workspace = aligned_alloc(64, (most + 64) / 64 * 64);
    return a->workspace != NULL;
}

static int add_plain(const struct bench *bench, const struct attention_shape *s,
                     const struct attention *a, attn_executor *executors, struct plain *plain,
                     struct contender *contenders)
{
    int count = 0;
    const double score_bytes = 4.0 * (double)s->tq * (double)s->tk * bench->machine.threads;
    for (int b = 0; b < bench->blas_count && s->cache == ATTN_F32 && score_bytes < most_score_bytes;
         b++) {
        for (int t = 1; t <= bench->machine.threads; t++) {
            plain[count] = (struct plain){
                .blas = &bench->blas[b],
                .executor = &executors[t],
                .heads = s->batch * s->heads,
                .heads_per_kv = s->heads / s->kv_heads,
                .tq = s->tq,
                .tk = s->tk,
                .head_dim = s->head_dim,
                .causal = s->causal,
                .query = a->query.data,
                .key = a->key.data,
                .value = a->value.data,
                .output = malloc((size_t)attn_tensor_count(&a->output) * sizeof(float)),
                .scores = malloc((size_t)score_bytes + 64),
            };
            if (!plain[count].output || !plain[count].scores) {
                return count; // the caller frees all
            }
            contenders[count] = (struct contender){.name = bench->blas[b].name,
                                                   .what = "forward",
                                                   .threads = t,
                                                   .run = peers_run_plain,
                                                   .state = &plain[count]};
            count++;
        }
    }
    return count;
}

// The peers compute the same thing, or the comparison means nothing.
static bool agrees(const struct plain *plain, const struct attention *a)
{
    const attn_tensor theirs =
        attn_tensor_wrap(plain->output, ATTN_F32, a->output.ndim, a->output.shape);
    attn_comparison comparison;
    return attn_tensor_compare(&theirs, &a->output, 1e-4, 1e-4, &comparison, NULL) == ATTN_OK &&
           comparison.differing == 0;
}

static int add_own(const struct bench *bench, const struct attention_shape *s,
                   const struct attention *base, struct attention *own,
                   struct contender *contenders)
{
    int count = 0;
    for (int t = 1; t <= bench->machine.threads; t++) {
        if (!on_threads(base, bench->contexts[t], s->backward, &own[t])) {
            return -1;
        }
        contenders[count++] = (struct contender){
            .name = "attn", .what = "forward", .threads = t, .run = run_forward, .state = &own[t]};
        if (s->backward) {
            contenders[count++] = (struct contender){.name = "attn",
                                                     .what = "forward+backward",
                                                     .threads = t,
                                                     .run = run_both,
                                                     .state = &own[t]};
        }
    }
    return count;
}

static int add_limits(struct bench *bench, const struct attention_shape *s,
                      const struct attention *a, struct contender *contenders)
{
    const void *const memory[2] = {a->key.data, a->value.data};
    const int64_t bytes = attn_tensor_count(&a->key) * (int64_t)attn_dtype_size(s->cache);
    return machine_add_limits(&bench->machine, s->by_bytes ? memory : NULL, bytes, contenders);
}

static struct result result_of(const struct attention_shape *s, const struct attention *own)
{
    const double scores = (double)s->batch * (double)s->heads * (double)s->tq * (double)s->tk *
                          (s->causal ? 0.5 : 1.0);
    return (struct result){
        .name = s->name,
        .operations = 4 * scores * (double)s->head_dim,
        .backward = 2.5 * 4 * scores * (double)s->head_dim, // five products instead of two
        .bytes = s->by_bytes ? 2.0 * (double)attn_tensor_count(&own->key) *
                                   (double)attn_dtype_size(s->cache)
                             : 0,
        .workspace = (double)own->forward_bytes,
        .softmax_scores = scores,
    };
}

bool bench_attention(struct bench *bench, const struct attention_shape *s)
{
    struct attention base = {.context = bench->contexts[1]};
    struct attention own[MOST_THREADS + 1] = {0};
    struct plain plain[MOST_BLAS * MOST_THREADS] = {0};
    attn_executor executors[MOST_THREADS + 1] = {0};
    struct contender contenders[MOST_CONTENDERS];
    attn_sdpa_desc_init(&base.desc);
    base.desc.causal = s->causal;

    bool fine = make_tensors(&base, s);
    int count = fine ? add_own(bench, s, &base, own, contenders) : -1;
    fine = count > 0;
    int peers = 0, limits = 0;
    for (int t = 1; fine && t <= bench->machine.threads; t++) {
        fine = attn_executor_pthreads(t, &executors[t], NULL) == ATTN_OK;
    }
    if (fine) {
        peers = add_plain(bench, s, &base, executors, plain, contenders + count);
        limits = add_limits(bench, s, &base, contenders + count + peers);
        timing_run(contenders, count + peers + limits, &bench->timing);
    }
    for (int p = 0; fine && p < peers; p++) {
        fine = agrees(&plain[p], &base);
    }
    for (int t = 1; t <= bench->machine.threads; t++) {
        fine = fine && own[t].status == ATTN_OK;
    }
    if (fine) {
        const struct result result = result_of(s, &own[1]);
        report_case(bench, &result, contenders, count + peers + limits);
    } else {
        fprintf(stderr, "attn_bench: %s: out of memory, or a result that does not agree\n",
                s->name);
    }

    for (int p = 0; p < MOST_BLAS * MOST_THREADS; p++) {
        free(plain[p].output);
        free(plain[p].scores);
    }
    for (int t = 1; t <= MOST_THREADS; t++) {
        free(own[t].workspace);
        if (executors[t].destroy) {
            executors[t].destroy(executors[t].state);
        }
    }
    destroy_tensors(&base);
    return fine;
}

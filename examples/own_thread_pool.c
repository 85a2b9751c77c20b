// Gives attn the program's own threads, and checks that they change no bit.
//
//   own_thread_pool
//
// An executor is one function. This one starts threads for every loop, which is the simplest that is
// right; a program would hand the jobs to the pool it already has.
#include <attn/attn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

enum { THREADS = 4 };

// One loop: the threads take its jobs one by one.
typedef struct loop {
    atomic_llong next;
    int64_t count;
    attn_job job;
    void *argument;
} loop;

typedef struct worker {
    loop *of;
    int32_t number;
} worker;

static void *work(void *argument)
{
    const worker *self = argument;
    for (;;) {
        const int64_t index = atomic_fetch_add(&self->of->next, 1);
        if (index >= self->of->count) {
            return NULL;
        }
        self->of->job(self->of->argument, index, self->number);
    }
}

static _Thread_local int inside; // a loop within a job runs where it is

static void parallel_for(void *state, int64_t count, attn_job job, void *argument)
{
    (void)state;
    loop shared = {.count = count, .job = job, .argument = argument};
    worker workers[THREADS];
    pthread_t threads[THREADS];
    int started = 0;
    for (int32_t i = 0; i < THREADS; i++) {
        workers[i] = (worker){&shared, i};
    }
    for (int32_t i = 1; i < THREADS && i < count && !inside; i++) {
        if (pthread_create(&threads[started], NULL, work, &workers[i]) == 0) {
            started++;
        }
    }
    const int before = inside;
    inside = 1;
    work(&workers[0]);
    inside = before;
    for (int i = 0; i < started; i++) {
        pthread_join(threads[i], NULL);
    }
}

enum { HEADS = 8, LENGTH = 128, SIZE = 32, COUNT = HEADS * LENGTH * SIZE };
static float query[COUNT], key[COUNT], value[COUNT], outputs[2][COUNT];

static attn_status attend(const attn_context *context, float *output, attn_error *error)
{
    const int64_t shape[] = {1, HEADS, LENGTH, SIZE};
    const attn_tensor q = attn_tensor_wrap_const(query, ATTN_F32, 4, shape);
    const attn_tensor k = attn_tensor_wrap_const(key, ATTN_F32, 4, shape);
    const attn_tensor v = attn_tensor_wrap_const(value, ATTN_F32, 4, shape);
    const attn_tensor o = attn_tensor_wrap(output, ATTN_F32, 4, shape);
    attn_sdpa_desc desc;
    attn_sdpa_desc_init(&desc);
    attn_sdpa_forward_args args;
    attn_sdpa_forward_args_init(&args);
    args.query = &q;
    args.key = &k;
    args.value = &v;
    args.output = &o;
    return attn_sdpa_forward(context, &desc, &args, error);
}

int main(void)
{
    for (int i = 0; i < COUNT; i++) {
        query[i] = (float)(i * 7 % 23 - 11) / 8;
        key[i] = (float)(i * 5 % 19 - 9) / 8;
        value[i] = (float)(i * 3 % 17 - 8) / 8;
    }
    attn_error error;
    attn_status status = ATTN_OK;
    for (int own = 0; own < 2 && status == ATTN_OK; own++) {
        attn_context_config config;
        attn_context_config_init(&config);
        if (own) {
            config.executor = (attn_executor){.workers = THREADS, .parallel_for = parallel_for};
        }
        attn_context *context = NULL;
        status = attn_context_create(&config, &context, &error);
        if (status == ATTN_OK) {
            status = attend(context, outputs[own], &error);
        }
        if (status == ATTN_OK) {
            printf("%d worker%s\n", (int)attn_context_workers(context), own ? "s" : "");
        }
        attn_context_destroy(context);
    }
    if (status != ATTN_OK) {
        fprintf(stderr, "%s\n", error.text);
        return 1;
    }
    const int equal = memcmp(outputs[0], outputs[1], sizeof(outputs[0])) == 0;
    puts(equal ? "the same bits" : "other bits");
    return equal ? 0 : 1;
}

#include "machine.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/context.h"
#include "kernels/kernels.h"
#include "timing.h"

enum { FMA_CHAINS = 16, FMA_ROUNDS = 400000 };

// Independent chains of fused multiply-adds on registers alone; returns operations done.
#if defined(__x86_64__)
#define CHAIN(width, i) "vfmadd231ps %%" width "mm31, %%" width "mm31, %%" width "mm" #i "\n"
#define CHAINS(c, w)                                                                         \
    c(w, 0) c(w, 1) c(w, 2) c(w, 3) c(w, 4) c(w, 5) c(w, 6) c(w, 7) c(w, 8) c(w, 9) c(w, 10) \
        c(w, 11) c(w, 12) c(w, 13) c(w, 14) c(w, 15)
#define CHAIN_AVX2(width, i) "vfmadd231ps %%ymm15, %%ymm15, %%ymm" #i "\n"
#define CLOBBERS                                                                             \
    "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", \
        "xmm11", "xmm12", "xmm13", "xmm14", "xmm15", "cc"

__attribute__((target("avx512f"))) static double fma_avx512(void)
{
    int64_t rounds = FMA_ROUNDS;
    __asm__ volatile("vpxord %%zmm31, %%zmm31, %%zmm31\n"
                     "1:\n" CHAINS(CHAIN, "z") "dec %0\n"
                                               "jnz 1b\n"
                     : "+r"(rounds)
                     :
                     : CLOBBERS, "xmm31");
    return 2.0 * 16 * FMA_CHAINS * FMA_ROUNDS;
}

// ymm15 is the operand, so that 15 chains are left.
__attribute__((target("avx2,fma"))) static double fma_avx2(void)
{
    int64_t rounds = FMA_ROUNDS;
    __asm__ volatile("vxorps %%ymm15, %%ymm15, %%ymm15\n"
                     "1:\n" CHAIN_AVX2("y", 0) CHAIN_AVX2("y", 1) CHAIN_AVX2("y", 2)
                         CHAIN_AVX2("y", 3) CHAIN_AVX2("y", 4) CHAIN_AVX2("y", 5) CHAIN_AVX2("y", 6)
                             CHAIN_AVX2("y", 7) CHAIN_AVX2("y", 8) CHAIN_AVX2("y", 9)
                                 CHAIN_AVX2("y", 10) CHAIN_AVX2("y", 11) CHAIN_AVX2("y", 12)
                                     CHAIN_AVX2("y", 13) CHAIN_AVX2("y", 14) "dec %0\n"
                                                                             "jnz 1b\n"
                     : "+r"(rounds)
                     :
                     : CLOBBERS);
    return 2.0 * 8 * 15 * FMA_ROUNDS;
}
#endif

static double fma_portable(void)
{
    static volatile float sink;
    float sums[FMA_CHAINS] = {0};
    const float x = 0.5F;
    for (int64_t r = 0; r < FMA_ROUNDS; r++) {
        for (int i = 0; i < FMA_CHAINS; i++) {
            sums[i] = __builtin_fmaf(x, x, sums[i]);
        }
    }
    for (int i = 0; i < FMA_CHAINS; i++) {
        sink = sink + sums[i];
    }
    return 2.0 * FMA_CHAINS * FMA_ROUNDS;
}

static double fma_operations(attn_tier tier)
{
#if defined(__x86_64__)
    if (tier == ATTN_TIER_AVX512) {
        return fma_avx512();
    }
    if (tier == ATTN_TIER_AVX2) {
        return fma_avx2();
    }
#endif
    (void)tier;
    return fma_portable();
}

static void fma_job(void *argument, int64_t index, int32_t worker)
{
    struct limit *const limit = argument;
    (void)worker;
    const double operations = fma_operations(attn_context_tier(limit->context));
    if (index == 0) {
        limit->operations = operations;
    }
}

static void run_fma(void *state)
{
    struct limit *const limit = state;
    attn_parallel_for(limit->context, attn_context_workers(limit->context), fma_job, limit);
}

// ---- reading ------------------------------------------------------------------------------------

typedef uint64_t cache_line __attribute__((vector_size(64), may_alias));

enum { READ_STREAMS = 8, READ_JOBS = 32, READ_AHEAD = 16384 };

// Asked for ahead, since the hardware follows a stream only to the end of its page.
static uint64_t read_streams(const char *memory, int64_t bytes, const int streams)
{
    const int64_t stream = bytes / streams;
    cache_line sum[READ_STREAMS] = {{0}};
    for (int64_t i = 0; i < stream; i += READ_STREAMS * 64 / streams) {
        for (int s = 0; s < READ_STREAMS; s++) {
            const char *const at = memory + s % streams * stream + i +
                                   s / streams * (int64_t)sizeof(cache_line);
            __builtin_prefetch(at + READ_AHEAD, 0, 2);
            sum[s] += *(const cache_line *)(const void *)at;
        }
    }
    for (int s = 1; s < READ_STREAMS; s++) {
        sum[0] += sum[s];
    }
    return sum[0][0] + sum[0][7];
}

static void read_job(void *argument, int64_t index, int32_t worker)
{
    struct limit *const limit = argument;
    const int64_t bytes = limit->bytes / READ_JOBS;
    for (int m = 0; m < 2; m++) {
        const char *const memory = limit->memory[m] + index * bytes;
        limit->sums[worker % MOST_THREADS] += limit->streams == 1
                                                  ? read_streams(memory, bytes, 1)
                                                  : read_streams(memory, bytes, READ_STREAMS);
    }
}

// Which is faster, one stream or several, depends on where the memory is: in a cache or not.
static void run_read(void *state)
{
    struct limit *const limit = state;
    limit->streams = 1;
    attn_parallel_for(limit->context, READ_JOBS, read_job, limit);
}

static void run_read_streams(void *state)
{
    struct limit *const limit = state;
    limit->streams = READ_STREAMS;
    attn_parallel_for(limit->context, READ_JOBS, read_job, limit);
}

// ---- the kernels alone ----------------------------------------------------------------------------

enum { ALONE_KEYS = 64, ALONE_DIM = 64, MOST_LANES = 64 };

struct kernels_alone {
    const struct attn_kernels_f32 *kernels;
    float a[ALONE_KEYS * ALONE_DIM], b[ALONE_DIM * MOST_LANES], c[ALONE_KEYS * MOST_LANES];
    float max[MOST_LANES], sum[MOST_LANES], factor[MOST_LANES];
};

static void run_tile(void *state)
{
    struct kernels_alone *const s = state;
    const int64_t lanes = s->kernels->tile_lanes;
    const struct attn_tile_f32 tile = {.a = s->a,
                                       .a_row = ALONE_DIM,
                                       .a_depth = 1,
                                       .b = s->b,
                                       .b_depth = lanes,
                                       .c = s->c,
                                       .c_row = lanes};
    s->kernels->tile(&tile, ALONE_KEYS, lanes, ALONE_DIM);
}

// The pass writes its weights over the scores; weights in (0, 1] are scores as good as any.
static void run_softmax(void *state)
{
    struct kernels_alone *const s = state;
    const struct attn_softmax_f32 strip = {.score = s->c,
                                           .row = s->kernels->tile_lanes,
                                           .scale = 1,
                                           .max = s->max,
                                           .sum = s->sum,
                                           .factor = s->factor};
    s->kernels->softmax(&strip, ALONE_KEYS, s->kernels->tile_lanes);
}

// ---- the machine ----------------------------------------------------------------------------------

bool machine_init(struct machine *machine, attn_context *const *contexts)
{
    struct kernels_alone *const alone = aligned_alloc(64, MOST_THREADS * sizeof *alone);
    if (!alone) {
        return false;
    }
    for (int t = 1; t <= machine->threads; t++) {
        machine->limits[t].context = contexts[t];
        struct kernels_alone *const own = &alone[t - 1];
        *own = (struct kernels_alone){
            .kernels = attn_kernels_select(attn_context_tier(contexts[1]))->f32};
        for (int i = 0; i < ALONE_KEYS * ALONE_DIM; i++) {
            own->a[i] = own->b[i] = 0.01F * (float)(i % 97);
        }
    }
    machine->alone = alone;
    return true;
}

void machine_free(struct machine *machine)
{
    free(machine->alone);
}

// ---- is it disturbed? -----------------------------------------------------------------------------

struct look {
    struct machine *machine;
    double rate[MOST_THREADS]; // tiles per second
};

static void look_job(void *argument, int64_t index, int32_t worker)
{
    enum { CALLS = 30 };
    struct look *const look = argument;
    struct kernels_alone *const alone = &look->machine->alone[index];
    (void)worker;
    for (int i = 0; i < CALLS; i++) { // into the cache
        run_tile(alone);
    }
    const double start = timing_now();
    for (int i = 0; i < CALLS; i++) {
        run_tile(alone);
    }
    look->rate[index] = CALLS / (timing_now() - start);
}

double machine_look(void *state, int threads)
{
    struct look look = {.machine = state};
    attn_parallel_for(look.machine->limits[threads].context, threads, look_job, &look);
    double least = look.rate[0];
    for (int t = 1; t < threads; t++) {
        least = look.rate[t] < least ? look.rate[t] : least;
    }
    return least;
}

// ---- limits -------------------------------------------------------------------------------------

static const char name[] = "machine";

int machine_add_limits(struct machine *machine, const void *const memory[2], int64_t bytes,
                       struct contender *contenders)
{
    int count = 0;
    for (int t = 1; t <= machine->threads; t++) {
        struct limit *const limit = &machine->limits[t];
        struct contender *const c = &contenders[count++];
        *c = (struct contender){.name = name, .threads = t, .state = limit};
        if (memory) {
            const int64_t unit = INT64_C(64) * READ_STREAMS * READ_JOBS;
            limit->bytes = bytes / unit * unit;
            limit->memory[0] = memory[0];
            limit->memory[1] = memory[1];
            c->what = "read";
            c->run = run_read;
            c->worth = 2 * (double)limit->bytes;
            contenders[count] = *c;
            contenders[count].run = run_read_streams;
            count++;
        } else {
            c->what = "multiply-add";
            c->run = run_fma;
            run_fma(limit);
            c->worth = limit->operations * t;
        }
    }
    if (!memory) {
        const double elements = (double)ALONE_KEYS * machine->alone->kernels->tile_lanes;
        contenders[count++] = (struct contender){.name = name,
                                                 .what = "tile",
                                                 .threads = 1,
                                                 .run = run_tile,
                                                 .state = machine->alone,
                                                 .worth = 2 * elements * ALONE_DIM};
        contenders[count++] = (struct contender){.name = name,
                                                 .what = "softmax",
                                                 .threads = 1,
                                                 .run = run_softmax,
                                                 .state = machine->alone,
                                                 .worth = elements};
    }
    return count;
}

// Calls per second of the best of them, times what a call is worth.
static double rate_of(const struct contender *contenders, int count, const char *what, int threads)
{
    double rate = 0;
    for (int i = 0; i < count; i++) {
        const struct contender *const c = &contenders[i];
        if (strcmp(c->name, name) == 0 && strcmp(c->what, what) == 0 && c->threads == threads &&
            c->worth / c->low > rate) {
            rate = c->worth / c->low;
        }
    }
    return rate;
}

double machine_limit(const struct contender *contenders, int count, int threads)
{
    const double fma = rate_of(contenders, count, "multiply-add", threads);
    return fma > 0 ? fma : rate_of(contenders, count, "read", threads);
}

double machine_tile_share(const struct contender *contenders, int count)
{
    const double fma = rate_of(contenders, count, "multiply-add", 1);
    return fma > 0 ? rate_of(contenders, count, "tile", 1) / fma : 0;
}

double machine_softmax_seconds(const struct contender *contenders, int count)
{
    const double rate = rate_of(contenders, count, "softmax", 1);
    return rate > 0 ? 1 / rate : 0;
}

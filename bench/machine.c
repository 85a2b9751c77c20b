#include "machine.h"

#include <stdint.h>
#include <stdlib.h>

#include "core/context.h"
#include "kernels/kernels.h"
#include "timing.h"

enum { FMA_CHAINS = 16, FMA_ROUNDS = 400000 };
static const int64_t read_bytes = INT64_C(512) << 20;

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

struct work {
    const attn_context *context;
    const uint64_t *memory;
    int64_t words_per_job;
    double operations; // of one job
    uint64_t sums[64]; // keeps the reads alive
};

static void fma_job(void *argument, int64_t index, int32_t worker)
{
    struct work *const work = argument;
    (void)worker;
    const double operations = fma_operations(work->context->tier);
    if (index == 0) {
        work->operations = operations;
    }
}

static void read_job(void *argument, int64_t index, int32_t worker)
{
    struct work *const work = argument;
    const uint64_t *const words = work->memory + index * work->words_per_job;
    uint64_t sums[8] = {0};
    for (int64_t i = 0; i < work->words_per_job; i += 8) {
        for (int k = 0; k < 8; k++) {
            sums[k] += words[i + k];
        }
    }
    for (int k = 0; k < 8; k++) {
        work->sums[worker % 64] += sums[k];
    }
}

static void run_fma(void *state)
{
    struct work *const work = state;
    attn_parallel_for(work->context, work->context->executor.workers, fma_job, work);
}

static void run_read(void *state)
{
    struct work *const work = state;
    const int64_t jobs = 64;
    work->words_per_job = read_bytes / 8 / jobs;
    attn_parallel_for(work->context, jobs, read_job, work);
}

// ---- the kernels alone ----------------------------------------------------------------------------

enum { STRIP_KEYS = 64, STRIP_LANES = 64, STRIP_DIM = 64 };

struct strip {
    const struct attn_kernels_f32 *kernels;
    float a[STRIP_KEYS * STRIP_DIM], b[STRIP_DIM * STRIP_LANES], c[STRIP_KEYS * STRIP_LANES];
    float max[STRIP_LANES], sum[STRIP_LANES], factor[STRIP_LANES];
};

static void run_tile(void *state)
{
    struct strip *const s = state;
    const struct attn_tile_f32 tile = {.a = s->a,
                                       .a_row = STRIP_DIM,
                                       .a_depth = 1,
                                       .b = s->b,
                                       .b_depth = STRIP_LANES,
                                       .c = s->c,
                                       .c_row = STRIP_LANES};
    s->kernels->tile(&tile, STRIP_KEYS, STRIP_LANES, STRIP_DIM);
}

// The pass writes its weights over the scores; weights in (0, 1] are scores as good as any.
static void run_softmax(void *state)
{
    struct strip *const s = state;
    const struct attn_softmax_f32 strip = {.score = s->c,
                                           .row = STRIP_LANES,
                                           .scale = 1,
                                           .max = s->max,
                                           .sum = s->sum,
                                           .factor = s->factor};
    s->kernels->softmax(&strip, STRIP_KEYS, STRIP_LANES);
}

static void measure_kernels(struct machine *machine, const attn_context *context)
{
    struct strip *const strip = aligned_alloc(64, (sizeof *strip + 63) / 64 * 64);
    if (!strip) {
        return;
    }
    *strip = (struct strip){.kernels = attn_kernels_select(context->tier)->f32};
    for (int i = 0; i < STRIP_KEYS * STRIP_DIM; i++) {
        strip->a[i] = strip->b[i] = 0.01F * (float)(i % 97);
    }
    struct contender contenders[] = {
        {.name = "tile", .run = run_tile, .state = strip},
        {.name = "softmax", .run = run_softmax, .state = strip},
    };
    timing_run(contenders, 2, 0.3);
    const double operations = 2.0 * STRIP_KEYS * STRIP_LANES * STRIP_DIM;
    machine->tile = operations / contenders[0].low / machine->fma_peak[1];
    machine->softmax = contenders[1].low / (STRIP_KEYS * STRIP_LANES);
    free(strip);
}

void machine_measure(struct machine *machine, attn_context *const *contexts)
{
    void *const memory = calloc(1, (size_t)read_bytes);
    for (int t = 1; t <= machine->threads; t++) {
        struct work work = {.context = contexts[t], .memory = memory};
        for (int64_t i = 0; memory && i < read_bytes; i += 4096) {
            ((char *)memory)[i] = 1; // real pages, not the one of zeros
        }
        struct contender contenders[] = {
            {.name = "fma", .run = run_fma, .state = &work},
            {.name = "read", .run = run_read, .state = &work},
        };
        timing_run(contenders, memory ? 2 : 1, 1.0);
        // A limit is what the machine can do undisturbed: the faster quartile.
        machine->fma_peak[t] = work.operations * t / contenders[0].low;
        machine->bandwidth[t] = memory ? (double)read_bytes / contenders[1].low : 0;
    }
    free(memory);
    measure_kernels(machine, contexts[1]);
}

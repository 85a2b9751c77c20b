// attn/context.h: what a call may use: threads, memory, a logger, and a CPU tier.
//
// A context is created once, never changes afterwards, and may be shared between threads. It has no
// effect on any number: outputs have the same bits for every executor and thread count. The default
// is serial, malloc, silent, and the best tier that this CPU offers.
#ifndef ATTN_CONTEXT_H
#define ATTN_CONTEXT_H

#include <stddef.h>
#include <stdint.h>

#include "attn/export.h"
#include "attn/status.h"

ATTN_BEGIN_DECLS

typedef struct attn_context attn_context;

// ---- memory -------------------------------------------------------------------------------------

// `allocate` returns memory of at least `size` bytes (> 0) aligned to `alignment` (a power of two),
// or NULL. `release` gets the same size and alignment. Both must be callable from any thread.
typedef struct attn_allocator {
    void *state;
    void *(*allocate)(void *state, size_t size, size_t alignment);
    void (*release)(void *state, void *memory, size_t size, size_t alignment);
} attn_allocator;

// ---- threads ------------------------------------------------------------------------------------

// One job of a parallel loop. `worker` is in [0, workers); two jobs that run at the same time have
// different workers, so it may index scratch memory.
typedef void (*attn_job)(void *argument, int64_t index, int32_t worker);

// `parallel_for` runs job(argument, 0 .. count-1, worker) in any order and returns when all are
// done. A call from inside a job runs its loop serially on that worker.
typedef struct attn_executor {
    void *state;
    int32_t workers; // >= 1
    void (*parallel_for)(void *state, int64_t count, attn_job job, void *argument);
    void (*destroy)(
        void *state); // called with the context's destruction; NULL: the caller keeps it
} attn_executor;

// Ready executors. Each fills *executor and owns what it starts until executor->destroy(state)
// (an executor handed to a context is destroyed with that context).
//   serial:          the calling thread alone.
//   pthreads:        `threads` plain POSIX threads (the one that thread sanitizer understands).
//   pthreadpool:     an own pool of `threads` threads from the pthreadpool library.
//   pthreadpool_use: the caller's `pthreadpool_t`, which must outlive the executor. The library must
//                    not be called from inside a task that the caller runs on the same pool.
// threads = 0 means the number of CPUs in this process's affinity mask.
// Errors: INVALID_ARGUMENT (threads < 0 or > 4096), OUT_OF_MEMORY, NOT_SUPPORTED (built without
// pthreadpool), STATE (the system refused a thread).
ATTN_API attn_status attn_executor_serial(attn_executor *executor, attn_error *error);
ATTN_API attn_status attn_executor_pthreads(int32_t threads, attn_executor *executor,
                                            attn_error *error);
ATTN_API attn_status attn_executor_pthreadpool(int32_t threads, attn_executor *executor,
                                               attn_error *error);
ATTN_API attn_status attn_executor_pthreadpool_use(void *pool, attn_executor *executor,
                                                   attn_error *error);

// The number of CPUs that this process may run on (its affinity mask), at least 1.
ATTN_API int32_t attn_available_cpus(void);

// ---- logger -------------------------------------------------------------------------------------

typedef enum attn_log_level { ATTN_LOG_DEBUG = 0, ATTN_LOG_INFO, ATTN_LOG_WARNING } attn_log_level;

// Receives one line without a newline; valid only during the call. Must be callable from any thread.
// The library says one thing, at level DEBUG when a context was created: "context: tier avx2, 4 workers".
typedef struct attn_logger {
    void *state;
    void (*log)(void *state, attn_log_level level, const char *text);
} attn_logger;

// ---- CPU tier -----------------------------------------------------------------------------------

// The instruction set that the kernels may use. Every tier gives the same bits.
typedef enum attn_tier {
    ATTN_TIER_AUTO = 0, // the best that the CPU and the operating system offer
    ATTN_TIER_PORTABLE, // C11, correctly rounded fma; slow where the CPU has none
    ATTN_TIER_AVX2,     // AVX2 + FMA + F16C
    ATTN_TIER_AVX512,   // AVX-512 F, BW, DQ, VL
    ATTN_TIER_NEON,     // AArch64
    ATTN_TIER_COUNT
} attn_tier;

// "auto", "portable", "avx2", "avx512", "neon"; "unknown" outside the enum.
ATTN_API const char *attn_tier_name(attn_tier tier);

// 1 where this machine and build can run the tier, else 0.
ATTN_API int attn_tier_available(attn_tier tier);

// ---- the context --------------------------------------------------------------------------------

typedef struct attn_context_config {
    size_t struct_size;       // set by attn_context_config_init
    attn_allocator allocator; // default: aligned; asks for huge pages from 2 MiB on
    attn_executor executor;   // default: serial; ownership passes to the context on success only
    attn_logger logger;       // default: none
    attn_tier tier;           // default: AUTO; the environment variable ATTN_CPU overrides AUTO
    uint64_t reserved[8];     // zero
} attn_context_config;

// Fills *config with the defaults.
ATTN_API void attn_context_config_init(attn_context_config *config);

// config NULL means all defaults. On failure *context is not written and the executor stays the
// caller's. Errors: INVALID_ARGUMENT (a field, or an ATTN_CPU that is no tier name), NOT_SUPPORTED
// (a tier that this machine cannot run), OUT_OF_MEMORY.
ATTN_API attn_status attn_context_create(const attn_context_config *config, attn_context **context,
                                         attn_error *error);

// Takes NULL. Destroys the executor. Everything created from the context must be gone before.
ATTN_API void attn_context_destroy(attn_context *context);

// The tier in use (never AUTO), and the executor's number of workers.
ATTN_API attn_tier attn_context_tier(const attn_context *context);
ATTN_API int32_t attn_context_workers(const attn_context *context);

ATTN_END_DECLS

#endif

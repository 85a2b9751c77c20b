#include "core/context.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/allocator.h"
#include "core/cpu.h"
#include "core/error.h"
#include "core/job.h"

static attn_status check_config(const attn_context_config *config, attn_error *error);
static attn_status resolve_tier(attn_tier *tier, attn_error *error);
static void log_created(const attn_context *context);

void attn_context_config_init(attn_context_config *config)
{
    *config = (attn_context_config){
        .struct_size = sizeof *config,
        .allocator = attn_default_allocator(),
        .tier = ATTN_TIER_AUTO,
    };
    attn_executor_serial(&config->executor, NULL);
}

attn_status attn_context_create(const attn_context_config *config, attn_context **context,
                                attn_error *error)
{
    if (!context) {
        return attn_fail(error, ATTN_ERR_INVALID_ARGUMENT, "context: context is NULL");
    }
    attn_context_config defaults;
    if (!config) {
        attn_context_config_init(&defaults);
        config = &defaults;
    }
    attn_status status = check_config(config, error);
    if (status != ATTN_OK) {
        return status;
    }
    attn_tier tier = config->tier;
    status = resolve_tier(&tier, error);
    if (status != ATTN_OK) {
        return status;
    }
    const attn_allocator allocator = config->allocator;
    attn_context *created = allocator.allocate(allocator.state, sizeof *created, ATTN_ALIGNMENT);
    if (!created) {
        return attn_fail(error, ATTN_ERR_OUT_OF_MEMORY, "context: out of memory");
    }
    *created = (attn_context){
        .allocator = allocator,
        .executor = config->executor,
        .logger = config->logger,
        .tier = tier,
        .second_level_bytes = attn_cpu_second_level_bytes(),
    };
    log_created(created);
    *context = created;
    return ATTN_OK;
}

static void log_created(const attn_context *context)
{
    if (context->logger.log) {
        char text[80];
        snprintf(text, sizeof text, "context: tier %s, %d workers", attn_tier_name(context->tier),
                 context->executor.workers);
        context->logger.log(context->logger.state, ATTN_LOG_DEBUG, text);
    }
}

void attn_context_destroy(attn_context *context)
{
    if (!context) {
        return;
    }
    if (context->executor.destroy) {
        context->executor.destroy(context->executor.state);
    }
    const attn_allocator allocator = context->allocator;
    allocator.release(allocator.state, context, sizeof *context, ATTN_ALIGNMENT);
}

attn_tier attn_context_tier(const attn_context *context)
{
    return context->tier;
}

int32_t attn_context_workers(const attn_context *context)
{
    return context->executor.workers;
}

static attn_status check_config(const attn_context_config *config, attn_error *error)
{
    const attn_status invalid = ATTN_ERR_INVALID_ARGUMENT;
    if (config->struct_size != sizeof *config) {
        return attn_fail(error, invalid,
                         "context: struct_size is %zu, not %zu; fill the config with "
                         "attn_context_config_init first",
                         config->struct_size, sizeof *config);
    }
    if (!config->allocator.allocate || !config->allocator.release) {
        return attn_fail(error, invalid, "context: allocator.%s is NULL",
                         config->allocator.allocate ? "release" : "allocate");
    }
    if (!config->executor.parallel_for) {
        return attn_fail(error, invalid, "context: executor.parallel_for is NULL");
    }
    if (config->executor.workers < 1 || config->executor.workers > ATTN_MAX_WORKERS) {
        return attn_fail(error, invalid, "context: executor.workers (%d) must be in [1, %d]",
                         config->executor.workers, ATTN_MAX_WORKERS);
    }
    for (size_t i = 0; i < sizeof config->reserved / sizeof config->reserved[0]; i++) {
        if (config->reserved[i]) {
            return attn_fail(error, invalid, "context: reserved[%zu] must be zero", i);
        }
    }
    return ATTN_OK;
}

// ---- tier ---------------------------------------------------------------------------------------

static const char *const tier_names[ATTN_TIER_COUNT] = {
    [ATTN_TIER_AUTO] = "auto",     [ATTN_TIER_PORTABLE] = "portable", [ATTN_TIER_AVX2] = "avx2",
    [ATTN_TIER_AVX512] = "avx512", [ATTN_TIER_NEON] = "neon",
};

static bool is_tier(attn_tier tier)
{
    return (unsigned)tier < ATTN_TIER_COUNT;
}

const char *attn_tier_name(attn_tier tier)
{
    return is_tier(tier) ? tier_names[tier] : "unknown";
}

int attn_tier_available(attn_tier tier)
{
    return tier == ATTN_TIER_AUTO || (is_tier(tier) && attn_cpu_supports(tier));
}

static attn_status resolve_tier(attn_tier *tier, attn_error *error)
{
    if (!is_tier(*tier)) {
        return attn_fail(error, ATTN_ERR_INVALID_ARGUMENT, "context: unknown tier %d", (int)*tier);
    }
    const char *source = "";
    const char *wanted = *tier == ATTN_TIER_AUTO ? getenv("ATTN_CPU") : NULL;
    if (wanted && *wanted) {
        source = "ATTN_CPU: ";
        attn_tier named = ATTN_TIER_AUTO;
        while (is_tier(named) && strcmp(wanted, tier_names[named]) != 0) {
            named = (attn_tier)(named + 1);
        }
        if (!is_tier(named)) {
            return attn_fail(error, ATTN_ERR_INVALID_ARGUMENT,
                             "context: ATTN_CPU is '%s'; it must be auto, portable, avx2, avx512 "
                             "or neon",
                             wanted);
        }
        *tier = named;
    }
    if (!attn_tier_available(*tier)) {
        return attn_fail(error, ATTN_ERR_NOT_SUPPORTED,
                         "context: %sthis machine cannot run tier %s", source,
                         attn_tier_name(*tier));
    }
    if (*tier == ATTN_TIER_AUTO) {
        *tier = attn_cpu_best_tier();
    }
    return ATTN_OK;
}

// ---- memory -------------------------------------------------------------------------------------

void *attn_allocate(const attn_context *context, size_t size)
{
    const attn_allocator *allocator = &context->allocator;
    return size ? allocator->allocate(allocator->state, size, ATTN_ALIGNMENT) : NULL;
}

void attn_release(const attn_context *context, void *memory, size_t size)
{
    const attn_allocator *allocator = &context->allocator;
    if (memory) {
        allocator->release(allocator->state, memory, size, ATTN_ALIGNMENT);
    }
}

// ---- threads ------------------------------------------------------------------------------------

struct scoped_job {
    attn_job job;
    void *argument;
};

// The caller's executor knows nothing of nesting or of the floating-point environment.
static void run_in_scope(void *argument, int64_t index, int32_t worker)
{
    const struct scoped_job *scoped = argument;
    const attn_job_scope scope = attn_job_enter(worker);
    scoped->job(scoped->argument, index, worker);
    attn_job_leave(scope);
}

void attn_parallel_for(const attn_context *context, int64_t count, attn_job job, void *argument)
{
    const attn_executor *executor = &context->executor;
    if (attn_job_worker != ATTN_NO_WORKER || count <= 1) {
        attn_run_serially(executor->workers, count, job, argument);
        return;
    }
    struct scoped_job scoped = {job, argument};
    executor->parallel_for(executor->state, count, run_in_scope, &scoped);
}

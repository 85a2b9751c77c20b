// A training's state as a .safetensors file.
//
// Saving and loading share one list: every tensor of the file with the memory that it stands for.
// Parameters and moments are their own memory; small integers go through a buffer, so that a file can
// be checked completely before anything is written.
#include "attn/checkpoint.h"

#include <inttypes.h>
#include <string.h>

#include "attn/safetensors.h"
#include "core/context.h"
#include "core/error.h"
#include "io/text.h"
#include "modules/name.h"
#include "modules/optimizer.h"

enum { WORDS = 624, INTEGERS_PER_GENERATOR = WORDS + 3, FIXED_TENSORS = 8 };

typedef struct contents {
    const attn_context *context;
    const attn_checkpoint *checkpoint;

    // The list: parameters, moments, then the fixed tensors.
    attn_named_tensor *tensors;
    int64_t count, capacity;
    attn_named_tensor *moments; // as the optimizer names them
    int64_t moment_count;

    int64_t *integers; // all that the pointers below point into
    int64_t integer_count;
    int64_t *steps, *dropout_calls, *cursor, *seeds, *positions, *has_normal, *words;
    double *normals;
} contents;

static attn_status check_arguments(const attn_context *context, const char *path,
                                   const attn_checkpoint *checkpoint, attn_error *error);
static attn_status list_contents(const attn_context *context, const attn_checkpoint *checkpoint,
                                 contents *all, attn_error *error);
static void release_contents(contents *all);
static void gather(contents *all);
static attn_status fetch(const contents *all, const attn_safetensors *file, attn_error *error);
static attn_status check_generators(const contents *all, attn_error *error);
static attn_status scatter(const contents *all, const attn_safetensors *file, attn_error *error);

static const char format_name[] = "attn checkpoint 1";

static const char *kind_name(const attn_optimizer *optimizer)
{
    return optimizer->config.kind == ATTN_OPTIMIZER_ADAMW ? "adamw" : "sgd";
}

void attn_checkpoint_init(attn_checkpoint *checkpoint)
{
    *checkpoint = (attn_checkpoint){.struct_size = sizeof *checkpoint};
}

attn_status attn_checkpoint_save(const attn_context *context, const char *path,
                                 const attn_checkpoint *checkpoint, attn_error *error)
{
    attn_status status = check_arguments(context, path, checkpoint, error);
    if (status != ATTN_OK) {
        return status;
    }
    contents all;
    status = list_contents(context, checkpoint, &all, error);
    if (status == ATTN_OK) {
        gather(&all);
        const attn_text_pair metadata[] = {{"format", format_name},
                                           {"optimizer", kind_name(checkpoint->optimizer)}};
        status = attn_safetensors_save(context, path, all.tensors, all.count, metadata, 2, error);
    }
    release_contents(&all);
    return status;
}

attn_status attn_checkpoint_load(const attn_context *context, const char *path,
                                 const attn_checkpoint *checkpoint, attn_error *error)
{
    attn_status status = check_arguments(context, path, checkpoint, error);
    if (status != ATTN_OK) {
        return status;
    }
    attn_safetensors *file;
    status = attn_safetensors_open(context, path, &file, error);
    if (status != ATTN_OK) {
        return status;
    }
    contents all;
    status = list_contents(context, checkpoint, &all, error);
    if (status == ATTN_OK) {
        status = fetch(&all, file, error);
    }
    if (status == ATTN_OK) {
        status = check_generators(&all, error);
    }
    if (status == ATTN_OK) {
        status = scatter(&all, file, error);
    }
    release_contents(&all);
    attn_safetensors_close(file);
    return status;
}

static attn_status check_arguments(const attn_context *context, const char *path,
                                   const attn_checkpoint *checkpoint, attn_error *error)
{
    if (!context || !path || !checkpoint || checkpoint->struct_size != sizeof *checkpoint ||
        !checkpoint->optimizer) {
        return attn_fail(error, ATTN_ERR_INVALID_ARGUMENT,
                         "checkpoint: context, path, checkpoint or its optimizer is NULL, or "
                         "attn_checkpoint_init was not called");
    }
    for (size_t i = 0; i < sizeof checkpoint->reserved / sizeof checkpoint->reserved[0]; i++) {
        if (checkpoint->reserved[i] != 0) {
            return attn_fail(error, ATTN_ERR_INVALID_ARGUMENT,
                             "checkpoint: reserved[%zu] must be zero", i);
        }
    }
    for (int64_t i = 0; i < checkpoint->module_count && checkpoint->modules; i++) {
        if (!checkpoint->modules[i]) {
            return attn_fail(error, ATTN_ERR_INVALID_ARGUMENT,
                             "checkpoint: module %" PRId64 " is NULL", i);
        }
    }
    for (int64_t i = 0; i < checkpoint->generator_count && checkpoint->generators; i++) {
        if (!checkpoint->generators[i]) {
            return attn_fail(error, ATTN_ERR_INVALID_ARGUMENT,
                             "checkpoint: generator %" PRId64 " is NULL", i);
        }
    }
    const struct {
        const char *name;
        const void *array;
        int64_t count;
    } arrays[] = {
        {"modules", checkpoint->modules, checkpoint->module_count},
        {"generators", checkpoint->generators, checkpoint->generator_count},
        {"cursor", checkpoint->cursor, checkpoint->cursor_count},
    };
    for (size_t i = 0; i < sizeof arrays / sizeof arrays[0]; i++) {
        if (arrays[i].count < 0 || arrays[i].count > INT32_MAX ||
            (arrays[i].count > 0 && !arrays[i].array)) {
            return attn_fail(error, ATTN_ERR_INVALID_ARGUMENT,
                             "checkpoint: %" PRId64 " %s do not go with their array",
                             arrays[i].count, arrays[i].name);
        }
    }
    return ATTN_OK;
}

// ---- the list -----------------------------------------------------------------------------------

static bool add_named(contents *all, const char *prefix, const char *name,
                      const attn_tensor *tensor)
{
    char *text = attn_name_create(all->context, prefix, name, "");
    if (text) {
        all->tensors[all->count++] = (attn_named_tensor){text, *tensor};
    }
    return text != NULL;
}

// The next `rows` x `columns` integers of the buffer, as a tensor with one dim where columns is 0.
static bool add_integers(contents *all, const char *name, int64_t rows, int64_t columns,
                         int64_t **place)
{
    const int64_t shape[] = {rows, columns};
    const attn_tensor tensor =
        attn_tensor_wrap(all->integers + all->integer_count, ATTN_I64, columns ? 2 : 1, shape);
    *place = all->integers + all->integer_count;
    all->integer_count += attn_tensor_count(&tensor);
    return add_named(all, "", name, &tensor);
}

static size_t integer_bytes(const attn_checkpoint *checkpoint)
{
    return (size_t)(1 + checkpoint->module_count + checkpoint->cursor_count +
                    checkpoint->generator_count * INTEGERS_PER_GENERATOR) *
           sizeof(int64_t);
}

static attn_status list_contents(const attn_context *context, const attn_checkpoint *checkpoint,
                                 contents *all, attn_error *error)
{
    const attn_optimizer *optimizer = checkpoint->optimizer;
    const int64_t parameters = attn_optimizer_parameter_count(optimizer);
    const int64_t generators = checkpoint->generator_count;
    *all = (contents){.context = context, .checkpoint = checkpoint};
    all->moment_count = attn_optimizer_moment_count(optimizer);
    all->capacity = parameters + all->moment_count + FIXED_TENSORS;
    all->tensors = attn_allocate(context, (size_t)all->capacity * sizeof *all->tensors);
    all->moments = attn_allocate(context, (size_t)all->moment_count * sizeof *all->moments);
    all->integers = attn_allocate(context, integer_bytes(checkpoint));
    all->normals = attn_allocate(context, (size_t)generators * sizeof *all->normals);
    bool complete = all->tensors && (all->moments || all->moment_count == 0) && all->integers &&
                    (all->normals || generators == 0);
    if (complete) {
        attn_optimizer_moments(optimizer, all->moments);
    }
    for (int64_t i = 0; complete && i < parameters; i++) {
        complete = add_named(all, "model.", attn_optimizer_parameter_name(optimizer, i),
                             &attn_optimizer_parameter(optimizer, i)->value);
    }
    for (int64_t i = 0; complete && i < all->moment_count; i++) {
        complete = add_named(all, "optimizer.", all->moments[i].name, &all->moments[i].tensor);
    }
    if (complete) {
        const attn_tensor normals = attn_tensor_wrap(all->normals, ATTN_F64, 1, &generators);
        complete = add_named(all, "", "generators.normal", &normals) &&
                   add_integers(all, "steps", 1, 0, &all->steps) &&
                   add_integers(all, "modules.dropout_calls", checkpoint->module_count, 0,
                                &all->dropout_calls) &&
                   add_integers(all, "cursor", checkpoint->cursor_count, 0, &all->cursor) &&
                   add_integers(all, "generators.seed", generators, 0, &all->seeds) &&
                   add_integers(all, "generators.position", generators, 0, &all->positions) &&
                   add_integers(all, "generators.has_normal", generators, 0, &all->has_normal) &&
                   add_integers(all, "generators.words", generators, WORDS, &all->words);
    }
    return complete ? ATTN_OK
                    : attn_fail(error, ATTN_ERR_OUT_OF_MEMORY, "checkpoint: out of memory");
}

static void release_contents(contents *all)
{
    for (int64_t i = 0; i < all->count; i++) {
        attn_name_release(all->context, all->tensors[i].name);
    }
    attn_release(all->context, all->tensors, (size_t)all->capacity * sizeof *all->tensors);
    attn_release(all->context, all->moments, (size_t)all->moment_count * sizeof *all->moments);
    attn_release(all->context, all->integers, integer_bytes(all->checkpoint));
    attn_release(all->context, all->normals,
                 (size_t)all->checkpoint->generator_count * sizeof *all->normals);
}

// ---- saving -------------------------------------------------------------------------------------

// From the objects into the buffer.
static void gather(contents *all)
{
    const attn_checkpoint *checkpoint = all->checkpoint;
    *all->steps = attn_optimizer_steps(checkpoint->optimizer);
    for (int64_t i = 0; i < checkpoint->module_count; i++) {
        all->dropout_calls[i] = (int64_t)attn_module_dropout_calls(checkpoint->modules[i]);
    }
    for (int64_t i = 0; i < checkpoint->cursor_count; i++) {
        all->cursor[i] = checkpoint->cursor[i];
    }
    for (int64_t i = 0; i < checkpoint->generator_count; i++) {
        attn_generator_state state;
        attn_generator_save(checkpoint->generators[i], &state);
        all->seeds[i] = (int64_t)state.seed;
        all->positions[i] = state.position;
        all->has_normal[i] = state.has_normal;
        all->normals[i] = state.normal;
        for (int k = 0; k < WORDS; k++) {
            all->words[i * WORDS + k] = state.words[k];
        }
    }
}

// ---- loading ------------------------------------------------------------------------------------

// Checks the whole file against the list and reads the small tensors into the buffer.
static attn_status fetch(const contents *all, const attn_safetensors *file, attn_error *error)
{
    const char *format = attn_safetensors_metadata(file, "format");
    const char *kind = attn_safetensors_metadata(file, "optimizer");
    const char *wanted_kind = kind_name(all->checkpoint->optimizer);
    if (!format || strcmp(format, format_name) != 0 || !kind) {
        return attn_fail(error, ATTN_ERR_FORMAT, "checkpoint: the file is no \"%s\"", format_name);
    }
    if (strcmp(kind, wanted_kind) != 0) {
        return attn_fail(error, ATTN_ERR_FORMAT, "checkpoint: the file's optimizer is %s, not %s",
                         attn_show_name(kind).text, wanted_kind);
    }
    const int64_t state_count = attn_optimizer_parameter_count(all->checkpoint->optimizer) +
                                all->moment_count; // the rest of the list is the buffer
    for (int64_t i = 0; i < all->count; i++) {
        const attn_named_tensor *wanted = &all->tensors[i];
        const attn_named_tensor *found = attn_safetensors_find(file, wanted->name);
        if (!found) {
            return attn_fail(error, ATTN_ERR_NOT_FOUND, "checkpoint: %s is missing", wanted->name);
        }
        const attn_tensor *given = &found->tensor, *target = &wanted->tensor;
        if (given->dtype != target->dtype) {
            return attn_fail(error, ATTN_ERR_DTYPE, "checkpoint: %s is %s, not %s", wanted->name,
                             attn_dtype_name(given->dtype), attn_dtype_name(target->dtype));
        }
        if (!attn_tensor_same_shape(given, target)) {
            return attn_fail(error, i < state_count ? ATTN_ERR_SHAPE : ATTN_ERR_FORMAT,
                             "checkpoint: %s is %s, not %s", wanted->name,
                             attn_show_shape(given->ndim, given->shape).text,
                             attn_show_shape(target->ndim, target->shape).text);
        }
        if (i >= state_count) {
            const attn_status status = attn_tensor_copy(given, target, error);
            if (status != ATTN_OK) {
                return status;
            }
        }
    }
    if (attn_safetensors_count(file) != all->count) {
        return attn_fail(error, ATTN_ERR_FORMAT,
                         "checkpoint: the file holds %" PRId64 " tensors, %" PRId64 " are known",
                         attn_safetensors_count(file), all->count);
    }
    return *all->steps >= 0 ? ATTN_OK
                            : attn_fail(error, ATTN_ERR_FORMAT,
                                        "checkpoint: steps (%" PRId64 ") is negative", *all->steps);
}

static attn_status check_generators(const contents *all, attn_error *error)
{
    for (int64_t i = 0; i < all->checkpoint->generator_count; i++) {
        bool valid = all->positions[i] >= 0 && all->positions[i] <= WORDS &&
                     all->has_normal[i] >= 0 && all->has_normal[i] <= 1;
        for (int k = 0; k < WORDS; k++) {
            const int64_t word = all->words[i * WORDS + k];
            valid = valid && word >= 0 && word <= UINT32_MAX;
        }
        if (!valid) {
            return attn_fail(error, ATTN_ERR_FORMAT,
                             "checkpoint: generator %" PRId64 " has an impossible state", i);
        }
    }
    return ATTN_OK;
}

// Into the objects; everything has been checked.
static attn_status scatter(const contents *all, const attn_safetensors *file, attn_error *error)
{
    const attn_checkpoint *checkpoint = all->checkpoint;
    attn_optimizer *optimizer = checkpoint->optimizer;
    const int64_t parameters = attn_optimizer_parameter_count(optimizer);
    for (int64_t i = 0; i < parameters + all->moment_count; i++) {
        const attn_named_tensor *target = &all->tensors[i];
        const attn_status status = attn_tensor_copy(
            &attn_safetensors_find(file, target->name)->tensor, &target->tensor, error);
        if (status != ATTN_OK) {
            return status;
        }
    }
    for (int64_t i = 0; i < parameters; i++) {
        attn_parameter_touch(attn_optimizer_parameter(optimizer, i));
    }
    optimizer->steps = *all->steps;
    for (int64_t i = 0; i < checkpoint->module_count; i++) {
        attn_module_set_dropout_calls(checkpoint->modules[i], (uint64_t)all->dropout_calls[i]);
    }
    for (int64_t i = 0; i < checkpoint->cursor_count; i++) {
        checkpoint->cursor[i] = all->cursor[i];
    }
    attn_status status = ATTN_OK;
    for (int64_t i = 0; i < checkpoint->generator_count && status == ATTN_OK; i++) {
        attn_generator_state state = {.seed = (uint64_t)all->seeds[i],
                                      .position = (uint32_t)all->positions[i],
                                      .has_normal = (uint32_t)all->has_normal[i],
                                      .normal = all->normals[i]};
        for (int k = 0; k < WORDS; k++) {
            state.words[k] = (uint32_t)all->words[i * WORDS + k];
        }
        status = attn_generator_restore(checkpoint->generators[i], &state, error);
    }
    return status;
}

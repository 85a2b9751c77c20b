#include "tensor_file.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static attn_status read_standard_input(unsigned char **bytes, size_t *size, attn_error *error);
static attn_status open_format(const attn_context *context, const char *path, uint32_t flags,
                               const unsigned char *start, size_t started, size_t size,
                               tensor_file *file, attn_error *error);
static attn_status take_entries(tensor_file *file, attn_error *error);
static attn_status save_folder(const attn_context *context, const char *path,
                               const attn_named_tensor *tensors, int64_t count, uint32_t flags,
                               attn_error *error);
static bool write_standard_output(void *state, const void *bytes, size_t size);

attn_status tool_fail(attn_error *error, attn_status status, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(error->text, sizeof(error->text), format, arguments);
    va_end(arguments);
    error->status = status;
    return status;
}

bool has_ending(const char *path, const char *ending)
{
    const size_t length = strlen(path);
    const size_t ending_length = strlen(ending);
    return length > ending_length && strcmp(path + length - ending_length, ending) == 0;
}

// ---- reading ------------------------------------------------------------------------------------

attn_status tensor_file_open(const attn_context *context, const char *path, uint32_t flags,
                             tensor_file *file, attn_error *error)
{
    enum { SNIFFED = 8 };
    *file = (tensor_file){0};
    attn_status status;
    if (strcmp(path, "-") == 0) {
        size_t size = 0;
        status = read_standard_input(&file->bytes, &size, error);
        if (status == ATTN_OK) {
            status = open_format(context, NULL, flags, file->bytes, size < SNIFFED ? size : SNIFFED,
                                 size, file, error);
        }
    } else {
        unsigned char start[SNIFFED];
        FILE *stream = fopen(path, "rb");
        if (stream == NULL) {
            return tool_fail(error, ATTN_ERR_IO, "%s: %s", path, strerror(errno));
        }
        const size_t started = fread(start, 1, sizeof(start), stream);
        fclose(stream);
        status = open_format(context, path, flags, start, started, 0, file, error);
    }
    if (status == ATTN_OK) {
        status = take_entries(file, error);
    }
    if (status != ATTN_OK) {
        tensor_file_close(file);
    }
    return status;
}

static attn_status read_standard_input(unsigned char **bytes, size_t *size, attn_error *error)
{
    size_t capacity = 0;
    for (;;) {
        if (*size == capacity) {
            capacity = capacity == 0 ? 1 << 16 : 2 * capacity;
            unsigned char *grown = realloc(*bytes, capacity);
            if (grown == NULL) {
                return tool_fail(error, ATTN_ERR_OUT_OF_MEMORY, "standard input: out of memory");
            }
            *bytes = grown;
        }
        const size_t count = fread(*bytes + *size, 1, capacity - *size, stdin);
        *size += count;
        if (count == 0) {
            break;
        }
    }
    if (ferror(stdin)) {
        return tool_fail(error, ATTN_ERR_IO, "standard input: %s", strerror(errno));
    }
    return ATTN_OK;
}

// path NULL: the bytes are in file->bytes.
static attn_status open_format(const attn_context *context, const char *path, uint32_t flags,
                               const unsigned char *start, size_t started, size_t size,
                               tensor_file *file, attn_error *error)
{
    if (started >= 6 && memcmp(start, "\x93NUMPY", 6) == 0) {
        file->format = "npy";
        return path != NULL ? attn_npy_open(context, path, flags, &file->npy, error)
                            : attn_npy_parse(context, file->bytes, size, flags, &file->npy, error);
    }
    if (started >= 4 && memcmp(start, "PK", 2) == 0) {
        file->format = "npz";
        return path != NULL ? attn_npz_open(context, path, flags, &file->npz, error)
                            : attn_npz_parse(context, file->bytes, size, flags, &file->npz, error);
    }
    if (path != NULL && has_ending(path, ".json")) {
        file->format = "sharded safetensors";
        return attn_safetensors_open_index(context, path, &file->safetensors, error);
    }
    file->format = "safetensors";
    return path != NULL
               ? attn_safetensors_open(context, path, &file->safetensors, error)
               : attn_safetensors_parse(context, file->bytes, size, &file->safetensors, error);
}

static attn_status take_entries(tensor_file *file, attn_error *error)
{
    file->count = file->npy != NULL   ? 1
                  : file->npz != NULL ? attn_npz_count(file->npz)
                                      : attn_safetensors_count(file->safetensors);
    file->entries = calloc((size_t)file->count + 1, sizeof(*file->entries));
    if (file->entries == NULL) {
        return tool_fail(error, ATTN_ERR_OUT_OF_MEMORY, "out of memory");
    }
    for (int64_t i = 0; i < file->count; i++) {
        if (file->npy != NULL) {
            file->entries[i] = (attn_named_tensor){"", *attn_npy_tensor(file->npy)};
        } else if (file->npz != NULL) {
            file->entries[i] = *attn_npz_entry(file->npz, i);
        } else {
            file->entries[i] = *attn_safetensors_entry(file->safetensors, i);
        }
    }
    return ATTN_OK;
}

void tensor_file_close(tensor_file *file)
{
    attn_npy_close(file->npy);
    attn_npz_close(file->npz);
    attn_safetensors_close(file->safetensors);
    free(file->entries);
    free(file->bytes);
    *file = (tensor_file){0};
}

attn_status tensor_file_open_one(const attn_context *context, const char *spec, uint32_t flags,
                                 tensor_file *file, attn_tensor *tensor, attn_error *error)
{
    // A colon may be part of a path; a file of the whole name goes first.
    const char *colon = access(spec, F_OK) == 0 ? NULL : strrchr(spec, ':');
    char path[4096];
    const size_t length = colon == NULL ? strlen(spec) : (size_t)(colon - spec);
    if (length >= sizeof(path)) {
        return tool_fail(error, ATTN_ERR_IO, "%s: %s", spec, strerror(ENAMETOOLONG));
    }
    memcpy(path, spec, length);
    path[length] = '\0';
    attn_status status = tensor_file_open(context, path, flags, file, error);
    if (status != ATTN_OK) {
        return status;
    }
    const char *name = colon == NULL ? NULL : colon + 1;
    if (name == NULL && file->count == 1) {
        *tensor = file->entries[0].tensor;
        return ATTN_OK;
    }
    for (int64_t i = 0; name != NULL && i < file->count; i++) {
        if (strcmp(file->entries[i].name, name) == 0) {
            *tensor = file->entries[i].tensor;
            return ATTN_OK;
        }
    }
    if (name == NULL) {
        status = tool_fail(error, ATTN_ERR_NOT_FOUND,
                           "%s: it holds %lld tensors; name one as %s:NAME (attn inspect lists "
                           "them)",
                           path, (long long)file->count, path);
    } else {
        status = tool_fail(error, ATTN_ERR_NOT_FOUND, "%s: no tensor is named \"%s\"", path, name);
    }
    tensor_file_close(file);
    return status;
}

// ---- writing ------------------------------------------------------------------------------------

static bool is_folder(const char *path)
{
    struct stat info;
    return has_ending(path, "/") || (stat(path, &info) == 0 && S_ISDIR(info.st_mode));
}

attn_status tensor_file_save(const attn_context *context, const char *path,
                             const attn_named_tensor *tensors, int64_t count,
                             const attn_text_pair *metadata, int64_t metadata_count, uint32_t flags,
                             attn_error *error)
{
    if (has_ending(path, ".safetensors")) {
        return attn_safetensors_save(context, path, tensors, count, metadata, metadata_count,
                                     error);
    }
    if (is_folder(path)) {
        return save_folder(context, path, tensors, count, flags, error);
    }
    if (strcmp(path, "-") != 0 && !has_ending(path, ".npy")) {
        return tool_fail(error, ATTN_ERR_NOT_SUPPORTED,
                         "%s: the name must end in .npy, .safetensors or '/'", path);
    }
    if (count != 1) {
        return tool_fail(error, ATTN_ERR_NOT_SUPPORTED,
                         "%s: %lld tensors do not fit in a .npy file; use .safetensors or a folder",
                         path, (long long)count);
    }
    if (strcmp(path, "-") != 0) {
        return attn_npy_save(context, path, &tensors[0].tensor, flags, error);
    }
    if (isatty(STDOUT_FILENO)) {
        return tool_fail(error, ATTN_ERR_INVALID_ARGUMENT,
                         "standard output is a terminal; send the .npy data to a file or a pipe");
    }
    const attn_sink sink = {NULL, write_standard_output};
    const attn_status status = attn_npy_write(&sink, &tensors[0].tensor, flags, error);
    if (status == ATTN_OK && fflush(stdout) != 0) {
        return tool_fail(error, ATTN_ERR_IO, "standard output: %s", strerror(errno));
    }
    return status;
}

static attn_status save_folder(const attn_context *context, const char *path,
                               const attn_named_tensor *tensors, int64_t count, uint32_t flags,
                               attn_error *error)
{
    if (mkdir(path, 0777) != 0 && errno != EEXIST) {
        return tool_fail(error, ATTN_ERR_IO, "%s: %s", path, strerror(errno));
    }
    for (int64_t i = 0; i < count; i++) {
        const char *name = tensors[i].name;
        char file[4096];
        // A name from a file must not leave the folder.
        if (*name == '\0' || *name == '.' || strchr(name, '/') != NULL) {
            return tool_fail(error, ATTN_ERR_INVALID_ARGUMENT,
                             "%s: the tensor name \"%s\" cannot be a file name", path, name);
        }
        if (snprintf(file, sizeof(file), "%s%s%s.npy", path, has_ending(path, "/") ? "" : "/",
                     name) >= (int)sizeof(file)) {
            return tool_fail(error, ATTN_ERR_IO, "%s: %s", path, strerror(ENAMETOOLONG));
        }
        const attn_status status = attn_npy_save(context, file, &tensors[i].tensor, flags, error);
        if (status != ATTN_OK) {
            return status;
        }
    }
    return ATTN_OK;
}

static bool write_standard_output(void *state, const void *bytes, size_t size)
{
    (void)state;
    return fwrite(bytes, 1, size, stdout) == size;
}

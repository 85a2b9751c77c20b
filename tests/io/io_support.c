#define _GNU_SOURCE
#include "io_support.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "unit.h"

static long long own_blocks; // of the context itself

attn_context *io_context(test_allocator *memory)
{
    attn_context *context = test_context_on(memory);
    own_blocks = memory->live;
    return context;
}

void fail_nth(test_allocator *memory, int64_t nth)
{
    memory->fail_at = nth > 0 ? memory->calls + nth - 1 : -1;
}

int64_t blocks_left(const test_allocator *memory)
{
    return memory->live - own_blocks;
}

static bool append(void *state, const void *bytes, size_t size)
{
    byte_buffer *buffer = state;
    if (buffer->limit > 0 && buffer->size + size > buffer->limit) {
        errno = ENOSPC;
        return false;
    }
    unsigned char *grown = realloc(buffer->bytes, buffer->size + size);
    if (grown == NULL) {
        return false;
    }
    memcpy(grown + buffer->size, bytes, size);
    buffer->bytes = grown;
    buffer->size += size;
    return true;
}

attn_sink buffer_sink(byte_buffer *buffer)
{
    return (attn_sink){.state = buffer, .write = append};
}

void buffer_free(byte_buffer *buffer)
{
    free(buffer->bytes);
    *buffer = (byte_buffer){0};
}

byte_buffer read_file(const char *path)
{
    byte_buffer buffer = {0};
    FILE *file = fopen(path, "rb");
    if (file == NULL) {
        fail_msg("%s: %s", path, strerror(errno));
    }
    char chunk[4096];
    size_t count;
    while ((count = fread(chunk, 1, sizeof(chunk), file)) > 0) {
        assert_true(append(&buffer, chunk, count));
    }
    fclose(file);
    return buffer;
}

void write_file(const char *path, const void *bytes, size_t size)
{
    FILE *file = fopen(path, "wb");
    if (file == NULL || fwrite(bytes, 1, size, file) != size || fclose(file) != 0) {
        fail_msg("%s: %s", path, strerror(errno));
    }
}

char *make_folder(void)
{
    const char *base = getenv("TMPDIR");
    char *folder = NULL;
    if (asprintf(&folder, "%s/attn-io.XXXXXX", base != NULL ? base : "/tmp") < 0 ||
        mkdtemp(folder) == NULL) {
        fail_msg("mkdtemp: %s", strerror(errno));
    }
    return folder;
}

void remove_folder(char *folder)
{
    DIR *open = opendir(folder);
    for (struct dirent *entry; open != NULL && (entry = readdir(open)) != NULL;) {
        unlink(in_folder(folder, entry->d_name));
    }
    closedir(open);
    rmdir(folder);
    free(folder);
}

const char *in_folder(const char *folder, const char *name)
{
    static char paths[4][4096];
    static unsigned next;
    char *path = paths[next++ % 4];
    snprintf(path, sizeof(paths[0]), "%s/%s", folder, name);
    return path;
}

int64_t count_files(const char *folder)
{
    int64_t count = 0;
    DIR *open = opendir(folder);
    for (struct dirent *entry; open != NULL && (entry = readdir(open)) != NULL;) {
        count += strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
    }
    closedir(open);
    return count;
}

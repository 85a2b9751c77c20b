// What the tests of the file formats share: memory that runs out, bytes in memory,
// folders that go away.
#ifndef ATTN_TESTS_IO_SUPPORT_H
#define ATTN_TESTS_IO_SUPPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "allocator.h"
#include "attn/io.h"

// A serial context on a test allocator; test_context_end ends it.
attn_context *io_context(test_allocator *memory);

// Lets the n-th allocation from now fail (0: none).
void fail_nth(test_allocator *memory, int64_t nth);

// Blocks that were allocated since the context was made and not given back.
int64_t blocks_left(const test_allocator *memory);

// Bytes that grow; a sink writes to them. With `limit` > 0 the sink refuses beyond it (ENOSPC).
typedef struct byte_buffer {
    unsigned char *bytes;
    size_t size, limit;
} byte_buffer;

attn_sink buffer_sink(byte_buffer *buffer);
void buffer_free(byte_buffer *buffer);

// A whole file in memory; fails the test when it cannot be read.
byte_buffer read_file(const char *path);
void write_file(const char *path, const void *bytes, size_t size);

// A fresh folder (free the name with remove_folder, which deletes what is in it), and a path in it.
char *make_folder(void);
void remove_folder(char *folder);
const char *in_folder(const char *folder, const char *name); // valid until the fourth next call
int64_t count_files(const char *folder);

#endif

// What the tests of the file formats share: memory that counts and can run out, bytes in memory,
// folders that go away.
#ifndef ATTN_TESTS_IO_SUPPORT_H
#define ATTN_TESTS_IO_SUPPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "attn/context.h"
#include "attn/io.h"
#include "attn/tensor.h"

// An allocator's account. `fail_at` = n lets the n-th allocation from now fail (0: none).
typedef struct account {
    int64_t live;        // blocks that were not given back
    size_t largest;      // the largest size that was asked for
    int64_t allocations; // since the last reset
    int64_t fail_at;
} account;

attn_context *counting_context(account *count);

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

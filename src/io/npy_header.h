// io/npy_header.h: the header of a .npy file, read and written.
#ifndef ATTN_IO_NPY_HEADER_H
#define ATTN_IO_NPY_HEADER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "attn/npy.h"

// numpy's own limit for a header that it trusts.
enum { ATTN_NPY_MAX_HEADER = 10000 };

typedef struct attn_npy_header {
    attn_dtype dtype;
    bool swapped; // the elements are big endian
    bool fortran_order;
    int32_t ndim;
    int64_t shape[ATTN_MAX_DIMS];
    size_t size;       // bytes before the data
    int64_t data_size; // bytes of the data
} attn_npy_header;

// Reads the header at the start of `size` bytes; `label` stands in front of every message. Errors:
// FORMAT, NOT_SUPPORTED.
attn_status attn_npy_read_header(const char *label, const unsigned char *bytes, size_t size,
                                 uint32_t flags, attn_npy_header *header, attn_error *error);

// A header of this library's tensors is at most this long: 8 sizes of 19 digits and the keys.
enum { ATTN_NPY_HEADER_ROOM = 384 };

// Writes the whole prefix of a version 1 file into `buffer` and returns its length.
size_t attn_npy_format_header(const char *descr, bool fortran_order, int32_t ndim,
                              const int64_t *shape, unsigned char buffer[ATTN_NPY_HEADER_ROOM]);

// What 'descr' is called: "<f4", "|b1"; "<V2" for bfloat16.
const char *attn_npy_descr(attn_dtype dtype);

#endif

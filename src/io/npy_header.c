#include "io/npy_header.h"

#include <stdio.h>
#include <string.h>

#include "attn/tensor.h"
#include "core/checked.h"
#include "core/error.h"
#include "io/text.h"

static const char *const descrs[ATTN_DTYPE_COUNT] = {
    [ATTN_F32] = "<f4", [ATTN_F64] = "<f8",  [ATTN_F16] = "<f2", [ATTN_BF16] = "<V2",
    [ATTN_I64] = "<i8", [ATTN_I32] = "<i4",  [ATTN_I16] = "<i2", [ATTN_I8] = "|i1",
    [ATTN_U8] = "|u1",  [ATTN_BOOL] = "|b1",
};

static const unsigned char magic[6] = {0x93, 'N', 'U', 'M', 'P', 'Y'};

// A place in the header's text, which is a literal of Python.
typedef struct reader {
    const char *label;
    const char *next, *end;
    uint32_t flags;
    attn_npy_header *header;
    attn_error *error;
} reader;

static attn_status find_text(reader *r, const unsigned char *bytes, size_t size);
static attn_status read_dict(reader *r);
static attn_status read_value(reader *r, const char *key, size_t length, unsigned *seen);
static attn_status read_descr(reader *r);
static attn_status read_order(reader *r);
static attn_status read_shape(reader *r);
static attn_status read_size(reader *r);
static attn_status compute_data_size(reader *r);
static void skip_space(reader *r);
static bool accept(reader *r, char c);
static bool accept_word(reader *r, const char *word);
static bool read_string(reader *r, const char **text, size_t *length);
static attn_status broken(const reader *r, const char *what);

attn_status attn_npy_read_header(const char *label, const unsigned char *bytes, size_t size,
                                 uint32_t flags, attn_npy_header *header, attn_error *error)
{
    attn_npy_header read = {0};
    reader r = {.label = label, .flags = flags, .header = &read, .error = error};
    attn_status status = find_text(&r, bytes, size);
    if (status == ATTN_OK) {
        status = read_dict(&r);
    }
    if (status == ATTN_OK) {
        status = compute_data_size(&r);
    }
    if (status == ATTN_OK) {
        *header = read;
    }
    return status;
}

// ---- reading ------------------------------------------------------------------------------------

static attn_status find_text(reader *r, const unsigned char *bytes, size_t size)
{
    enum { VERSION_END = 8 };
    if (size < VERSION_END || memcmp(bytes, magic, sizeof(magic)) != 0) {
        return attn_fail(r->error, ATTN_ERR_FORMAT,
                         "%s: not a .npy file: it does not start with \\x93NUMPY", r->label);
    }
    unsigned major = bytes[6];
    unsigned minor = bytes[7];
    if (major < 1 || major > 3 || minor != 0) {
        return attn_fail(r->error, ATTN_ERR_NOT_SUPPORTED,
                         "%s: .npy version %u.%u; 1.0, 2.0 and 3.0 are known", r->label, major,
                         minor);
    }
    size_t length_size = major == 1 ? 2 : 4;
    if (size - VERSION_END < length_size) {
        return broken(r, "the file ends in the header");
    }
    size_t length = 0;
    for (size_t i = length_size; i > 0; i--) {
        length = length << 8 | bytes[VERSION_END + i - 1];
    }
    if (length > ATTN_NPY_MAX_HEADER) {
        return attn_fail(r->error, ATTN_ERR_FORMAT,
                         "%s: header of %zu bytes; more than 10000 are refused", r->label, length);
    }
    if (length > size - VERSION_END - length_size) {
        return broken(r, "the file ends in the header");
    }
    r->next = (const char *)bytes + VERSION_END + length_size;
    r->end = r->next + length;
    r->header->size = VERSION_END + length_size + length;
    return ATTN_OK;
}

// {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }
static attn_status read_dict(reader *r)
{
    enum { ALL_SEEN = 7 };
    unsigned seen = 0;
    skip_space(r);
    if (!accept(r, '{')) {
        return broken(r, "the header is not a dictionary");
    }
    while (!accept(r, '}')) {
        const char *key;
        size_t length;
        if (!read_string(r, &key, &length) || !accept(r, ':')) {
            return broken(r, "the header is not a dictionary");
        }
        attn_status status = read_value(r, key, length, &seen);
        if (status != ATTN_OK) {
            return status;
        }
        if (!accept(r, ',') && (r->next == r->end || *r->next != '}')) {
            return broken(r, "the header is not a dictionary");
        }
    }
    if (r->next != r->end) {
        return broken(r, "something follows the header's dictionary");
    }
    if (seen != ALL_SEEN) {
        return broken(r, "the header lacks 'descr', 'fortran_order' or 'shape'");
    }
    return ATTN_OK;
}

static attn_status read_value(reader *r, const char *key, size_t length, unsigned *seen)
{
    static const struct {
        const char *key;
        attn_status (*read)(reader *r);
    } values[] = {{"descr", read_descr}, {"fortran_order", read_order}, {"shape", read_shape}};
    for (unsigned i = 0; i < sizeof(values) / sizeof(*values); i++) {
        if (length != strlen(values[i].key) || memcmp(key, values[i].key, length) != 0) {
            continue;
        }
        if ((*seen & 1U << i) != 0) {
            return attn_fail(r->error, ATTN_ERR_FORMAT, "%s: the header gives '%s' twice", r->label,
                             values[i].key);
        }
        *seen |= 1U << i;
        return values[i].read(r);
    }
    return attn_fail(r->error, ATTN_ERR_FORMAT, "%s: unknown key '%s' in the header", r->label,
                     attn_show_bytes(key, length).text);
}

static attn_status read_descr(reader *r)
{
    if (r->next < r->end && *r->next == '[') {
        return attn_fail(r->error, ATTN_ERR_NOT_SUPPORTED,
                         "%s: structured arrays (with fields) are not supported", r->label);
    }
    const char *text;
    size_t length;
    if (!read_string(r, &text, &length)) {
        return broken(r, "'descr' is not a string");
    }
    if (length == 0) {
        return broken(r, "'descr' is empty");
    }
    char order = text[0];
    bool ordered = order == '<' || order == '>' || order == '|' || order == '=';
    const char *kind = ordered ? text + 1 : text;
    size_t kind_length = length - (ordered ? 1 : 0);
    if (kind_length > 0 && kind[0] == 'O') {
        return attn_fail(r->error, ATTN_ERR_NOT_SUPPORTED,
                         "%s: object arrays hold pickled Python objects, which are not read",
                         r->label);
    }
    for (int dtype = ATTN_DTYPE_NONE + 1; dtype < ATTN_DTYPE_COUNT; dtype++) {
        if (kind_length != 2 || memcmp(kind, descrs[dtype] + 1, 2) != 0) {
            continue;
        }
        if (dtype == ATTN_BF16 && (r->flags & ATTN_NPY_BFLOAT16) == 0) {
            return attn_fail(r->error, ATTN_ERR_NOT_SUPPORTED,
                             "%s: 2-byte opaque elements ('V2'); if they are bfloat16, say so "
                             "(ATTN_NPY_BFLOAT16, --bfloat16)",
                             r->label);
        }
        r->header->dtype = (attn_dtype)dtype;
        r->header->swapped = order == '>' && attn_dtype_size((attn_dtype)dtype) > 1;
        return ATTN_OK;
    }
    return attn_fail(r->error, ATTN_ERR_NOT_SUPPORTED, "%s: dtype '%s' is not supported", r->label,
                     attn_show_bytes(text, length).text);
}

static attn_status read_order(reader *r)
{
    if (accept_word(r, "True")) {
        r->header->fortran_order = true;
    } else if (!accept_word(r, "False")) {
        return broken(r, "'fortran_order' is not True or False");
    }
    return ATTN_OK;
}

// (), (3,), (2, 3): only a single size needs its comma. Python 2 wrote (2L, 3L).
static attn_status read_shape(reader *r)
{
    if (!accept(r, '(')) {
        return broken(r, "'shape' is not a tuple");
    }
    bool comma = true;
    while (!accept(r, ')')) {
        if (!comma) {
            return broken(r, "'shape' is not a tuple of whole numbers");
        }
        attn_status status = read_size(r);
        if (status != ATTN_OK) {
            return status;
        }
        comma = accept(r, ',');
    }
    if (r->header->ndim == 1 && !comma) {
        return broken(r, "'shape' is a number in brackets, not a tuple");
    }
    return ATTN_OK;
}

static attn_status read_size(reader *r)
{
    if (r->next < r->end && *r->next == '-') {
        return broken(r, "'shape' has a negative size");
    }
    if (r->next == r->end || *r->next < '0' || *r->next > '9') {
        return broken(r, "'shape' is not a tuple of whole numbers");
    }
    if (r->header->ndim == ATTN_MAX_DIMS) {
        return attn_fail(r->error, ATTN_ERR_NOT_SUPPORTED,
                         "%s: more than 8 dimensions are not supported", r->label);
    }
    int64_t size = 0;
    for (; r->next < r->end && *r->next >= '0' && *r->next <= '9'; r->next++) {
        if (!attn_checked_mul(size, 10, &size) || !attn_checked_add(size, *r->next - '0', &size)) {
            return broken(r, "'shape' overflows");
        }
    }
    accept(r, 'L');
    skip_space(r);
    r->header->shape[r->header->ndim++] = size;
    return ATTN_OK;
}

// A size of 0 does not excuse the others from fitting.
static attn_status compute_data_size(reader *r)
{
    attn_npy_header *header = r->header;
    int64_t bytes = (int64_t)attn_dtype_size(header->dtype);
    bool empty = false;
    for (int32_t d = 0; d < header->ndim; d++) {
        empty = empty || header->shape[d] == 0;
        if (header->shape[d] > 0 && !attn_checked_mul(bytes, header->shape[d], &bytes)) {
            return broken(r, "'shape' overflows");
        }
    }
    header->data_size = empty ? 0 : bytes;
    return ATTN_OK;
}

// ---- the language of headers --------------------------------------------------------------------

static void skip_space(reader *r)
{
    while (r->next < r->end && (*r->next == ' ' || *r->next == '\n' || *r->next == '\t')) {
        r->next++;
    }
}

// Takes a character and the space after it.
static bool accept(reader *r, char c)
{
    if (r->next == r->end || *r->next != c) {
        return false;
    }
    r->next++;
    skip_space(r);
    return true;
}

static bool accept_word(reader *r, const char *word)
{
    size_t length = strlen(word);
    if ((size_t)(r->end - r->next) < length || memcmp(r->next, word, length) != 0) {
        return false;
    }
    r->next += length;
    skip_space(r);
    return true;
}

// A string in single or double quotes without escapes, and the space after it.
static bool read_string(reader *r, const char **text, size_t *length)
{
    if (r->next == r->end || (*r->next != '\'' && *r->next != '"')) {
        return false;
    }
    char quote = *r->next;
    const char *start = r->next + 1;
    const char *stop = memchr(start, quote, (size_t)(r->end - start));
    if (stop == NULL || memchr(start, '\\', (size_t)(stop - start)) != NULL) {
        return false;
    }
    *text = start;
    *length = (size_t)(stop - start);
    r->next = stop + 1;
    skip_space(r);
    return true;
}

static attn_status broken(const reader *r, const char *what)
{
    return attn_fail(r->error, ATTN_ERR_FORMAT, "%s: %s", r->label, what);
}

// ---- writing ------------------------------------------------------------------------------------

const char *attn_npy_descr(attn_dtype dtype)
{
    return dtype > ATTN_DTYPE_NONE && dtype < ATTN_DTYPE_COUNT ? descrs[dtype] : NULL;
}

size_t attn_npy_format_header(const char *descr, bool fortran_order, int32_t ndim,
                              const int64_t *shape, unsigned char buffer[ATTN_NPY_HEADER_ROOM])
{
    enum { PREFIX_SIZE = 10, DATA_ALIGNMENT = 64, GROWTH_DIGITS = 21 };
    char text[ATTN_NPY_HEADER_ROOM];
    int length = snprintf(text, sizeof(text), "{'descr': '%s', 'fortran_order': %s, 'shape': (",
                          descr, fortran_order ? "True" : "False");
    for (int32_t d = 0; d < ndim; d++) {
        length += snprintf(text + length, sizeof(text) - (size_t)length, d == 0 ? "%lld" : ", %lld",
                           (long long)shape[d]);
    }
    length +=
        snprintf(text + length, sizeof(text) - (size_t)length, "%s), }", ndim == 1 ? "," : "");
    // numpy leaves room for the size along which an array can grow in place.
    if (ndim > 0) {
        int digits = snprintf(NULL, 0, "%lld", (long long)shape[fortran_order ? ndim - 1 : 0]);
        length += snprintf(text + length, sizeof(text) - (size_t)length, "%*s",
                           GROWTH_DIGITS - digits, "");
    }
    size_t used = (size_t)length + 1;
    size_t padding = DATA_ALIGNMENT - (PREFIX_SIZE + used) % DATA_ALIGNMENT;
    size_t total = used + padding;
    memcpy(buffer, magic, sizeof(magic));
    buffer[6] = 1;
    buffer[7] = 0;
    buffer[8] = (unsigned char)(total & 0xFF);
    buffer[9] = (unsigned char)(total >> 8);
    memcpy(buffer + PREFIX_SIZE, text, (size_t)length);
    memset(buffer + PREFIX_SIZE + length, ' ', padding);
    buffer[PREFIX_SIZE + total - 1] = '\n';
    return PREFIX_SIZE + total;
}

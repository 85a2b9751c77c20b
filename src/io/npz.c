#include "attn/npz.h"

#include <string.h>
#include <zlib.h>

#include "core/context.h"
#include "core/error.h"
#include "io/file_map.h"
#include "io/npy.h"
#include "io/text.h"

// One member: its name without ".npy", its bytes where they were deflated, and the parsed array.
typedef struct member {
    char *name;
    size_t name_size;
    unsigned char *inflated; // NULL when the member is stored
    size_t inflated_size;
    attn_npy *array;
} member;

struct attn_npz {
    const attn_context *context;
    attn_file_map map; // cleared when the bytes are the caller's
    member *members;
    attn_named_tensor *entries;
    int64_t count, capacity;
};

// What is known while an archive is parsed. `label` stands in front of every message.
typedef struct parser {
    const char *label;
    const unsigned char *bytes;
    size_t size;
    size_t directory;  // where the central directory starts: the members' data lie before it
    size_t compressed; // bytes of all members so far
    uint32_t flags;
    attn_npz *file;
    attn_error *error;
} parser;

// A record of the central directory.
typedef struct record {
    unsigned flags, method;
    uint32_t crc, compressed_size, size, local;
    const unsigned char *name;
    size_t name_size;
} record;

enum {
    END_SIZE = 22,
    RECORD_SIZE = 46,
    LOCAL_SIZE = 30,
    MAX_COMMENT = 0xFFFF,
    METHOD_STORED = 0,
    METHOD_DEFLATED = 8,
    FLAG_ENCRYPTED = 1,
    MAX_RATIO = 1032 // of deflate
};

static attn_status parse_labelled(const attn_context *context, const char *label,
                                  const unsigned char *bytes, size_t size, uint32_t flags,
                                  attn_npz **file, attn_error *error);
static attn_status find_directory(parser *p, size_t *count);
static attn_status read_members(parser *p, size_t count);
static attn_status read_record(parser *p, size_t *position, record *out);
static attn_status read_member(parser *p, const record *from);
static attn_status name_member(parser *p, const record *from, member *out);
static attn_status locate_data(parser *p, const record *from, const char *name,
                               const unsigned char **data);
static attn_status inflate_member(const parser *p, const record *from, const unsigned char *data,
                                  member *out);
static bool inflate_exactly(const unsigned char *data, size_t size, unsigned char *out,
                            size_t out_size);
static attn_status out_of_memory(const parser *p);
static uint16_t load_u16(const unsigned char *bytes);
static uint32_t load_u32(const unsigned char *bytes);

// ---- opening and closing ------------------------------------------------------------------------

attn_status attn_npz_open(const attn_context *context, const char *path, uint32_t flags,
                          attn_npz **file, attn_error *error)
{
    if (context == NULL || file == NULL) {
        return attn_fail(error, ATTN_ERR_INVALID_ARGUMENT,
                         "npz: context and file must not be NULL");
    }
    attn_file_map map = {0};
    attn_status status = attn_npy_check_flags(flags, error);
    if (status == ATTN_OK) {
        status = attn_file_map_open(path, &map, error);
    }
    if (status != ATTN_OK) {
        return status;
    }
    attn_npz *opened = NULL;
    status = parse_labelled(context, attn_show_name(path).text, map.bytes, map.size, flags, &opened,
                            error);
    if (status != ATTN_OK) {
        attn_file_map_close(&map);
        return status;
    }
    opened->map = map;
    *file = opened;
    return ATTN_OK;
}

attn_status attn_npz_parse(const attn_context *context, const void *bytes, size_t size,
                           uint32_t flags, attn_npz **file, attn_error *error)
{
    if (context == NULL || file == NULL || (bytes == NULL && size > 0)) {
        return attn_fail(error, ATTN_ERR_INVALID_ARGUMENT,
                         "npz: context, bytes and file must not be NULL");
    }
    attn_status status = attn_npy_check_flags(flags, error);
    if (status != ATTN_OK) {
        return status;
    }
    return parse_labelled(context, "npz", bytes, size, flags, file, error);
}

static attn_status parse_labelled(const attn_context *context, const char *label,
                                  const unsigned char *bytes, size_t size, uint32_t flags,
                                  attn_npz **file, attn_error *error)
{
    parser p = {.label = label, .bytes = bytes, .size = size, .flags = flags, .error = error};
    size_t count = 0;
    attn_status status = find_directory(&p, &count);
    if (status != ATTN_OK) {
        return status;
    }
    attn_npz *opened = attn_allocate(context, sizeof(*opened));
    if (opened == NULL) {
        return out_of_memory(&p);
    }
    *opened = (attn_npz){.context = context, .capacity = (int64_t)count};
    p.file = opened;
    opened->members = attn_allocate(context, count * sizeof(*opened->members));
    opened->entries = attn_allocate(context, count * sizeof(*opened->entries));
    if (count > 0 && (opened->members == NULL || opened->entries == NULL)) {
        status = out_of_memory(&p);
    }
    if (status == ATTN_OK) {
        status = read_members(&p, count);
    }
    if (status != ATTN_OK) {
        attn_npz_close(opened);
        return status;
    }
    *file = opened;
    return ATTN_OK;
}

static void release_member(const attn_context *context, member *old)
{
    attn_npy_close(old->array);
    attn_release(context, old->inflated, old->inflated_size);
    attn_release(context, old->name, old->name_size);
}

void attn_npz_close(attn_npz *file)
{
    if (file == NULL) {
        return;
    }
    const attn_context *context = file->context;
    for (int64_t i = 0; i < file->count; i++) {
        release_member(context, &file->members[i]);
    }
    attn_release(context, file->members, (size_t)file->capacity * sizeof(*file->members));
    attn_release(context, file->entries, (size_t)file->capacity * sizeof(*file->entries));
    attn_file_map_close(&file->map);
    attn_release(context, file, sizeof(*file));
}

// ---- what is in it ------------------------------------------------------------------------------

int64_t attn_npz_count(const attn_npz *file)
{
    return file->count;
}

const attn_named_tensor *attn_npz_entry(const attn_npz *file, int64_t index)
{
    return index >= 0 && index < file->count ? &file->entries[index] : NULL;
}

const attn_named_tensor *attn_npz_find(const attn_npz *file, const char *name)
{
    for (int64_t i = 0; name != NULL && i < file->count; i++) {
        if (strcmp(file->entries[i].name, name) == 0) {
            return &file->entries[i];
        }
    }
    return NULL;
}

// ---- the central directory ----------------------------------------------------------------------

// The record at the end of the archive, before at most 65,535 bytes of comment.
static attn_status find_directory(parser *p, size_t *count)
{
    static const unsigned char end_mark[4] = {'P', 'K', 5, 6};
    size_t last = p->size < END_SIZE ? 0 : p->size - END_SIZE;
    size_t first = last > MAX_COMMENT ? last - MAX_COMMENT : 0;
    const unsigned char *end = NULL;
    for (size_t at = last + 1; p->size >= END_SIZE && end == NULL && at-- > first;) {
        if (memcmp(p->bytes + at, end_mark, sizeof(end_mark)) == 0 &&
            load_u16(p->bytes + at + 20) == last - at) {
            end = p->bytes + at;
        }
    }
    if (end == NULL) {
        return attn_fail(p->error, ATTN_ERR_FORMAT,
                         "%s: not a .npz file: no zip directory at its end (cut short?)", p->label);
    }
    uint32_t directory_size = load_u32(end + 12);
    uint32_t directory = load_u32(end + 16);
    *count = load_u16(end + 10);
    if (directory == UINT32_MAX || directory_size == UINT32_MAX || *count == UINT16_MAX) {
        return attn_fail(p->error, ATTN_ERR_NOT_SUPPORTED,
                         "%s: zip64 archives (over 4 GiB or 65,534 members) are not supported",
                         p->label);
    }
    size_t room = (size_t)(end - p->bytes);
    if (load_u16(end + 4) != 0 || load_u16(end + 6) != 0 || load_u16(end + 8) != *count) {
        return attn_fail(p->error, ATTN_ERR_NOT_SUPPORTED, "%s: a zip archive in several parts",
                         p->label);
    }
    if (directory > room || room - directory != directory_size ||
        directory_size / RECORD_SIZE < *count) {
        return attn_fail(p->error, ATTN_ERR_FORMAT, "%s: broken zip directory", p->label);
    }
    p->directory = directory;
    return ATTN_OK;
}

static attn_status read_members(parser *p, size_t count)
{
    size_t position = p->directory;
    for (size_t i = 0; i < count; i++) {
        record current;
        attn_status status = read_record(p, &position, &current);
        if (status == ATTN_OK) {
            status = read_member(p, &current);
        }
        if (status != ATTN_OK) {
            return status;
        }
    }
    return ATTN_OK;
}

static attn_status read_record(parser *p, size_t *position, record *out)
{
    static const unsigned char mark[4] = {'P', 'K', 1, 2};
    const unsigned char *at = p->bytes + *position;
    size_t room = p->size - END_SIZE - *position;
    if (room < RECORD_SIZE || memcmp(at, mark, sizeof(mark)) != 0) {
        return attn_fail(p->error, ATTN_ERR_FORMAT, "%s: broken zip directory", p->label);
    }
    size_t name_size = load_u16(at + 28);
    size_t whole = RECORD_SIZE + name_size + load_u16(at + 30) + (size_t)load_u16(at + 32);
    if (whole > room) {
        return attn_fail(p->error, ATTN_ERR_FORMAT, "%s: broken zip directory", p->label);
    }
    *out = (record){
        .flags = load_u16(at + 8),
        .method = load_u16(at + 10),
        .crc = load_u32(at + 16),
        .compressed_size = load_u32(at + 20),
        .size = load_u32(at + 24),
        .local = load_u32(at + 42),
        .name = at + RECORD_SIZE,
        .name_size = name_size,
    };
    *position += whole;
    return ATTN_OK;
}

// ---- a member -----------------------------------------------------------------------------------

static attn_status read_member(parser *p, const record *from)
{
    member read = {0};
    attn_status status = name_member(p, from, &read);
    if (status != ATTN_OK) {
        return status;
    }
    const unsigned char *data = NULL;
    status = locate_data(p, from, read.name, &data);
    if (status == ATTN_OK && from->method == METHOD_DEFLATED) {
        status = inflate_member(p, from, data, &read);
        data = read.inflated;
    }
    attn_shown shown = attn_show_name(read.name);
    if (status == ATTN_OK && crc32_z(crc32_z(0, NULL, 0), data, from->size) != from->crc) {
        status = attn_fail(p->error, ATTN_ERR_FORMAT, "%s: member \"%s\": wrong check sum",
                           p->label, shown.text);
    }
    if (status == ATTN_OK) {
        attn_error reason = {0};
        status = attn_npy_parse_labelled(p->file->context, shown.text, data, from->size, p->flags,
                                         &read.array, &reason);
        if (status != ATTN_OK) {
            status = attn_fail(p->error, status, "%s: %s", p->label, reason.text);
        }
    }
    if (status != ATTN_OK) {
        release_member(p->file->context, &read);
        return status;
    }
    int64_t index = p->file->count++;
    p->file->members[index] = read;
    p->file->entries[index] =
        (attn_named_tensor){.name = read.name, .tensor = *attn_npy_tensor(read.array)};
    return ATTN_OK;
}

// The member's name with ".npy" taken off.
static attn_status name_member(parser *p, const record *from, member *out)
{
    attn_shown shown = attn_show_bytes(from->name, from->name_size);
    size_t length = from->name_size;
    if (length < 5 || memcmp(from->name + length - 4, ".npy", 4) != 0) {
        return attn_fail(p->error, ATTN_ERR_FORMAT, "%s: member \"%s\" is no .npy file", p->label,
                         shown.text);
    }
    length -= 4;
    if (memchr(from->name, '\0', length) != NULL) {
        return attn_fail(p->error, ATTN_ERR_FORMAT, "%s: member \"%s\": NUL in its name", p->label,
                         shown.text);
    }
    out->name = attn_allocate(p->file->context, length + 1);
    if (out->name == NULL) {
        return out_of_memory(p);
    }
    out->name_size = length + 1;
    memcpy(out->name, from->name, length);
    out->name[length] = '\0';
    attn_status status = ATTN_OK;
    if (attn_npz_find(p->file, out->name) != NULL) {
        status = attn_fail(p->error, ATTN_ERR_FORMAT, "%s: member \"%s\" is there twice", p->label,
                           shown.text);
    }
    if (status != ATTN_OK) {
        release_member(p->file->context, out);
    }
    return status;
}

// The members together may not hold more than the file does; so what they inflate to is bounded.
static attn_status locate_data(parser *p, const record *from, const char *name,
                               const unsigned char **data)
{
    static const unsigned char mark[4] = {'P', 'K', 3, 4};
    attn_shown shown = attn_show_name(name);
    if ((from->flags & FLAG_ENCRYPTED) != 0) {
        return attn_fail(p->error, ATTN_ERR_NOT_SUPPORTED, "%s: member \"%s\" is encrypted",
                         p->label, shown.text);
    }
    if (from->method != METHOD_STORED && from->method != METHOD_DEFLATED) {
        return attn_fail(p->error, ATTN_ERR_NOT_SUPPORTED,
                         "%s: member \"%s\": compression method %u; stored and deflated are known",
                         p->label, shown.text, from->method);
    }
    if (from->size == UINT32_MAX || from->compressed_size == UINT32_MAX ||
        from->local == UINT32_MAX) {
        return attn_fail(p->error, ATTN_ERR_NOT_SUPPORTED,
                         "%s: member \"%s\": zip64 members (over 4 GiB) are not supported",
                         p->label, shown.text);
    }
    const unsigned char *local = p->bytes + from->local;
    if (from->local > p->directory || p->directory - from->local < LOCAL_SIZE ||
        memcmp(local, mark, sizeof(mark)) != 0) {
        return attn_fail(p->error, ATTN_ERR_FORMAT, "%s: member \"%s\": no data where it should be",
                         p->label, shown.text);
    }
    size_t start = (size_t)from->local + LOCAL_SIZE + load_u16(local + 26) + load_u16(local + 28);
    p->compressed += from->compressed_size;
    if (start > p->directory || p->directory - start < from->compressed_size ||
        p->compressed > p->directory) {
        return attn_fail(p->error, ATTN_ERR_FORMAT, "%s: member \"%s\" leaves the file", p->label,
                         shown.text);
    }
    if (from->method == METHOD_STORED && from->size != from->compressed_size) {
        return attn_fail(p->error, ATTN_ERR_FORMAT, "%s: member \"%s\": two sizes for stored data",
                         p->label, shown.text);
    }
    *data = p->bytes + start;
    return ATTN_OK;
}

static attn_status inflate_member(const parser *p, const record *from, const unsigned char *data,
                                  member *out)
{
    attn_shown shown = attn_show_name(out->name);
    if (from->size == 0 || from->size / MAX_RATIO > from->compressed_size) {
        return attn_fail(p->error, ATTN_ERR_FORMAT,
                         "%s: member \"%s\": %u deflated bytes cannot become %u", p->label,
                         shown.text, (unsigned)from->compressed_size, (unsigned)from->size);
    }
    out->inflated = attn_allocate(p->file->context, from->size);
    if (out->inflated == NULL) {
        return out_of_memory(p);
    }
    out->inflated_size = from->size;
    if (!inflate_exactly(data, from->compressed_size, out->inflated, from->size)) {
        return attn_fail(p->error, ATTN_ERR_FORMAT, "%s: member \"%s\": broken deflated data",
                         p->label, shown.text);
    }
    return ATTN_OK;
}

// Raw deflate that must use all of the input and fill all of the output. Both sizes fit in 32 bits.
static bool inflate_exactly(const unsigned char *data, size_t size, unsigned char *out,
                            size_t out_size)
{
    z_stream stream = {
        .next_in = (unsigned char *)(uintptr_t)data,
        .avail_in = (uInt)size,
    };
    stream.next_out = out;
    stream.avail_out = (uInt)out_size;
    if (inflateInit2(&stream, -MAX_WBITS) != Z_OK) {
        return false;
    }
    int result = inflate(&stream, Z_FINISH);
    bool exact = result == Z_STREAM_END && stream.avail_in == 0 && stream.avail_out == 0;
    inflateEnd(&stream);
    return exact;
}

static attn_status out_of_memory(const parser *p)
{
    return attn_fail(p->error, ATTN_ERR_OUT_OF_MEMORY, "%s: out of memory", p->label);
}

static uint16_t load_u16(const unsigned char *bytes)
{
    return (uint16_t)(bytes[0] | bytes[1] << 8);
}

static uint32_t load_u32(const unsigned char *bytes)
{
    return load_u16(bytes) | (uint32_t)load_u16(bytes + 2) << 16;
}

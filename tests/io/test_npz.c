// .npz: archives made here byte by byte, stored and deflated, and archives that are broken on purpose.
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "attn/npy.h"
#include "attn/npz.h"
#include "io_support.h"
#include "unit.h"

static test_allocator memory;
static attn_context *context;

// An archive with one member, field by field; tests change fields to break it.
typedef struct archive {
    const char *name;
    unsigned char *data; // as it lies in the file
    uint32_t compressed_size, size, crc, local;
    unsigned method, flags, count;
    unsigned comment_size;
    bool twice; // the directory names the member twice
} archive;

static void put(byte_buffer *out, uint32_t value, int bytes)
{
    attn_sink sink = buffer_sink(out);
    for (int i = 0; i < bytes; i++) {
        unsigned char byte = (unsigned char)(value >> 8 * i);
        assert_true(sink.write(sink.state, &byte, 1));
    }
}

static void put_bytes(byte_buffer *out, const void *bytes, size_t size)
{
    attn_sink sink = buffer_sink(out);
    assert_true(size == 0 || sink.write(sink.state, bytes, size));
}

static void put_record(byte_buffer *out, const archive *a)
{
    put(out, 0x02014B50, 4);
    put(out, 20 | 20 << 16, 4);
    put(out, a->flags | a->method << 16, 4);
    put(out, 0, 4);
    put(out, a->crc, 4);
    put(out, a->compressed_size, 4);
    put(out, a->size, 4);
    put(out, (uint32_t)strlen(a->name), 4);
    put(out, 0, 4);
    put(out, 0, 2);
    put(out, 0, 4);
    put(out, a->local, 4);
    put_bytes(out, a->name, strlen(a->name));
}

// numpy's local headers hold an extra field; the directory's do not.
static byte_buffer pack(const archive *a)
{
    byte_buffer out = {0};
    put(&out, 0x04034B50, 4);
    put(&out, 45, 2);
    put(&out, a->flags | a->method << 16, 4);
    put(&out, 0, 4);
    put(&out, a->crc, 4);
    put(&out, 0xFFFFFFFF, 4);
    put(&out, 0xFFFFFFFF, 4);
    put(&out, (uint32_t)strlen(a->name) | 20 << 16, 4);
    put_bytes(&out, a->name, strlen(a->name));
    put(&out, 1 | 16 << 16, 4);
    put(&out, a->size, 4);
    put(&out, 0, 4);
    put(&out, a->compressed_size, 4);
    put(&out, 0, 4);
    put_bytes(&out, a->data, a->compressed_size);
    size_t directory = out.size;
    put_record(&out, a);
    if (a->twice) {
        put_record(&out, a);
    }
    size_t end = out.size;
    put(&out, 0x06054B50, 4);
    put(&out, 0, 4);
    put(&out, a->count | a->count << 16, 4);
    put(&out, (uint32_t)(end - directory), 4);
    put(&out, (uint32_t)directory, 4);
    put(&out, a->comment_size, 2);
    for (unsigned i = 0; i < a->comment_size; i++) {
        put(&out, 'c', 1);
    }
    return out;
}

// A member "x.npy" of float32 [COUNT] with the values 0, 1, ...
enum { COUNT = 1000 };

static archive make_member(bool deflated)
{
    static float values[COUNT];
    for (int i = 0; i < COUNT; i++) {
        values[i] = (float)i;
    }
    const int64_t shape[] = {COUNT};
    attn_tensor tensor = attn_tensor_wrap(values, ATTN_F32, 1, shape);
    byte_buffer npy = {0};
    attn_sink sink = buffer_sink(&npy);
    assert_int_equal(attn_npy_write(&sink, &tensor, 0, NULL), ATTN_OK);
    archive a = {.name = "x.npy", .count = 1, .size = (uint32_t)npy.size};
    a.crc = (uint32_t)crc32(0, npy.bytes, (uInt)npy.size);
    if (!deflated) {
        a.data = npy.bytes;
        a.compressed_size = a.size;
        return a;
    }
    a.method = 8;
    uLong bound = compressBound((uLong)npy.size) + 64;
    a.data = malloc(bound);
    assert_non_null(a.data);
    z_stream stream = {.next_in = npy.bytes,
                       .avail_in = (uInt)npy.size,
                       .next_out = a.data,
                       .avail_out = (uInt)bound};
    assert_int_equal(deflateInit2(&stream, 6, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY), Z_OK);
    assert_int_equal(deflate(&stream, Z_FINISH), Z_STREAM_END);
    a.compressed_size = (uint32_t)stream.total_out;
    deflateEnd(&stream);
    buffer_free(&npy);
    return a;
}

static void test_stored_and_deflated(void **state)
{
    (void)state;
    for (int deflated = 0; deflated < 2; deflated++) {
        for (unsigned comment = 0; comment < 70000; comment += 65535) {
            archive a = make_member(deflated);
            a.comment_size = comment;
            byte_buffer bytes = pack(&a);
            attn_npz *file = NULL;
            attn_error error = {0};
            if (attn_npz_parse(context, bytes.bytes, bytes.size, 0, &file, &error) != ATTN_OK) {
                fail_msg("%s", error.text);
            }
            assert_int_equal(attn_npz_count(file), 1);
            const attn_named_tensor *x = attn_npz_find(file, "x");
            assert_ptr_equal(x, attn_npz_entry(file, 0));
            assert_string_equal(x->name, "x");
            assert_int_equal(x->tensor.shape[0], COUNT);
            const float *values = x->tensor.data;
            for (int i = 0; i < COUNT; i++) {
                assert_true(values[i] == (float)i);
            }
            assert_null(attn_npz_find(file, "x.npy"));
            assert_null(attn_npz_entry(file, 1));
            attn_npz_close(file);
            buffer_free(&bytes);
            free(a.data);
        }
    }
    assert_int_equal(blocks_left(&memory), 0);
}

typedef void (*breaker)(archive *a);

static void break_crc(archive *a)
{
    a->crc ^= 1;
}
static void break_data(archive *a)
{
    a->data[20] ^= 0x40;
}
static void break_name(archive *a)
{
    a->name = "x.txt";
}
static void break_method(archive *a)
{
    a->method = 12;
}
static void break_flags(archive *a)
{
    a->flags = 1;
}
static void break_size(archive *a)
{
    a->size++;
}
static void break_size_down(archive *a)
{
    a->size--;
}
static void break_size_bomb(archive *a)
{
    a->size = 0xFFFFFF00;
}
static void break_size_zip64(archive *a)
{
    a->size = 0xFFFFFFFF;
}
static void break_local(archive *a)
{
    a->local = 1;
}
static void break_local_far(archive *a)
{
    a->local = 0x7FFFFFFF;
}
static void break_count(archive *a)
{
    a->count = 2;
}
static void break_count_zip64(archive *a)
{
    a->count = 0xFFFF;
}
static void break_twice(archive *a)
{
    a->count = 2;
    a->twice = true;
}

static void test_broken_archives(void **state)
{
    (void)state;
    static const struct {
        bool deflated;
        breaker change;
        attn_status status;
        const char *message;
    } cases[] = {
        {false, break_crc, ATTN_ERR_FORMAT, "npz: member \"x\": wrong check sum"},
        {true, break_crc, ATTN_ERR_FORMAT, "npz: member \"x\": wrong check sum"},
        {false, break_data, ATTN_ERR_FORMAT, "npz: member \"x\": wrong check sum"},
        {true, break_data, ATTN_ERR_FORMAT, "npz: member \"x\": "},
        {false, break_name, ATTN_ERR_FORMAT, "npz: member \"x.txt\" is no .npy file"},
        {false, break_method, ATTN_ERR_NOT_SUPPORTED,
         "npz: member \"x\": compression method 12; stored and deflated are known"},
        {false, break_flags, ATTN_ERR_NOT_SUPPORTED, "npz: member \"x\" is encrypted"},
        {false, break_size, ATTN_ERR_FORMAT, "npz: member \"x\": two sizes for stored data"},
        {true, break_size, ATTN_ERR_FORMAT, "npz: member \"x\": broken deflated data"},
        {true, break_size_down, ATTN_ERR_FORMAT, "npz: member \"x\": broken deflated data"},
        {true, break_size_bomb, ATTN_ERR_FORMAT, "cannot become 4294967040"},
        {true, break_size_zip64, ATTN_ERR_NOT_SUPPORTED,
         "npz: member \"x\": zip64 members (over 4 GiB) are not supported"},
        {false, break_local, ATTN_ERR_FORMAT, "npz: member \"x\": no data where it should be"},
        {false, break_local_far, ATTN_ERR_FORMAT, "npz: member \"x\": no data where it should be"},
        {false, break_count, ATTN_ERR_FORMAT, "npz: broken zip directory"},
        {false, break_count_zip64, ATTN_ERR_NOT_SUPPORTED, "npz: zip64 archives"},
        {false, break_twice, ATTN_ERR_FORMAT, "npz: member \"x.npy\" is there twice"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        archive a = make_member(cases[i].deflated);
        cases[i].change(&a);
        byte_buffer bytes = pack(&a);
        attn_npz *file = NULL;
        attn_error error = {0};
        attn_status status = attn_npz_parse(context, bytes.bytes, bytes.size, 0, &file, &error);
        if (status != cases[i].status || strstr(error.text, cases[i].message) == NULL) {
            fail_msg("%zu gave %s: %s\n  not %s", i, attn_status_name(status), error.text,
                     cases[i].message);
        }
        assert_null(file);
        assert_int_equal(blocks_left(&memory), 0);
        buffer_free(&bytes);
        free(a.data);
    }
}

// Cut at any length, an archive is refused, not believed.
static void test_cut_short(void **state)
{
    (void)state;
    archive a = make_member(true);
    byte_buffer bytes = pack(&a);
    for (size_t size = 0; size < bytes.size; size++) {
        attn_npz *file = NULL;
        assert_int_equal(attn_npz_parse(context, bytes.bytes, size, 0, &file, NULL),
                         ATTN_ERR_FORMAT);
    }
    buffer_free(&bytes);
    free(a.data);
}

static void test_out_of_memory(void **state)
{
    (void)state;
    archive a = make_member(true);
    byte_buffer bytes = pack(&a);
    int failures = 0;
    for (int64_t nth = 1;; nth++) {
        fail_nth(&memory, nth);
        attn_npz *file = NULL;
        attn_status status = attn_npz_parse(context, bytes.bytes, bytes.size, 0, &file, NULL);
        attn_npz_close(file);
        assert_int_equal(blocks_left(&memory), 0);
        if (status == ATTN_OK) {
            break;
        }
        assert_int_equal(status, ATTN_ERR_OUT_OF_MEMORY);
        failures++;
    }
    fail_nth(&memory, 0);
    assert_true(failures >= 4);
    buffer_free(&bytes);
    free(a.data);
}

int main(void)
{
    context = io_context(&memory);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_stored_and_deflated),
        cmocka_unit_test(test_broken_archives),
        cmocka_unit_test(test_cut_short),
        cmocka_unit_test(test_out_of_memory),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    test_context_end(context, &memory);
    return failed;
}

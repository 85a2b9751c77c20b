// The outputs of the suite are those that hash.txt holds for this numerics version.
//
//   test_promises_hash HASHES           compares
//   test_promises_hash HASHES --write   writes the file, after a change that raised
//                                       ATTN_NUMERICS_VERSION
//
// The file holds the version, then one line for each problem: a digest of all its results' bytes.
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "suite.h"
#include "support/unit.h"

static const char *path;

static uint64_t digest_of(const attn_context *context, int n)
{
    struct attention a;
    struct attention_results r;
    suite_begin(&a, n);
    attention_run(context, &a, ATTENTION_PUBLIC, ATTN_DTYPE_NONE, &r);
    uint64_t digest = TEST_DIGEST_START;
    for (int m = 0; m < ATTENTION_RESULT_COUNT; m++) {
        if (r.present[m]) {
            digest = test_digest(digest, &r.of[m]);
        }
    }
    attention_results_end(&r);
    attention_end(&a);
    return digest;
}

static int write_hashes(void)
{
    FILE *file = fopen(path, "w");
    if (file == NULL) {
        perror(path);
        return 1;
    }
    attn_context *context = test_context();
    fprintf(file, "numerics version %" PRIu32 "\n", attn_numerics_version());
    for (int n = 0; n < suite_count; n++) {
        fprintf(file, "%016" PRIx64 " %s\n", digest_of(context, n), suite[n].name);
    }
    attn_context_destroy(context);
    return fclose(file) == 0 ? 0 : 1;
}

static void hashes(void **state)
{
    (void)state;
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    char line[128], expected[128];
    assert_non_null(fgets(line, sizeof(line), file));
    snprintf(expected, sizeof(expected), "numerics version %" PRIu32 "\n", attn_numerics_version());
    assert_string_equal(line, expected);
    attn_context *context = test_context();
    for (int n = 0; n < suite_count; n++) {
        assert_non_null(fgets(line, sizeof(line), file));
        snprintf(expected, sizeof(expected), "%016" PRIx64 " %s\n", digest_of(context, n),
                 suite[n].name);
        assert_string_equal(expected, line);
    }
    assert_null(fgets(line, sizeof(line), file));
    attn_context_destroy(context);
    fclose(file);
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        fprintf(stderr, "usage: test_promises_hash HASHES [--write]\n");
        return 2;
    }
    path = argv[1];
    if (argc > 2 && strcmp(argv[2], "--write") == 0) {
        return write_hashes();
    }
    const struct CMUnitTest tests[] = {cmocka_unit_test(hashes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#include <math.h>
#include <string.h>

#include "core/element.h"
#include "core/error.h"
#include "core/half.h"
#include "core/layout.h"
#include "core/rows.h"
#include "core/text.h"

struct pair {
    double actual, expected;
    double difference; // >= 0; infinite where not both are numbers and they are unlike
    uint64_t ulp;
    bool finite; // both
    bool equal_bits;
};

static attn_status check_comparable(const attn_tensor *actual, const attn_tensor *expected,
                                    double absolute, double relative, attn_error *error);
static struct pair compare_floats(attn_dtype actual_dtype, const void *actual,
                                  attn_dtype expected_dtype, const void *expected);
static struct pair compare_integers(attn_dtype dtype, const void *actual, const void *expected);
static bool account(attn_comparison *found, const struct pair *pair, bool differs, double worst);

attn_status attn_tensor_compare(const attn_tensor *actual, const attn_tensor *expected,
                                double absolute, double relative, attn_comparison *comparison,
                                attn_error *error)
{
    if (!comparison) {
        return attn_fail(error, ATTN_ERR_INVALID_ARGUMENT, "compare: comparison is NULL");
    }
    const attn_status status = check_comparable(actual, expected, absolute, relative, error);
    if (status != ATTN_OK) {
        return status;
    }
    attn_comparison found = {.equal_bits = actual->dtype == expected->dtype};
    const int64_t size_a = (int64_t)attn_dtype_size(actual->dtype);
    const int64_t size_e = (int64_t)attn_dtype_size(expected->dtype);
    const bool floating = attn_is_floating(actual->dtype);
    double worst = -1;
    int64_t worst_position = 0, position = 0;
    for (attn_rows rows = attn_rows_of(actual, expected); rows.left > 0; attn_rows_next(&rows)) {
        const char *a = (const char *)actual->data + rows.offset[0] * size_a;
        const char *e = (const char *)expected->data + rows.offset[1] * size_e;
        for (int64_t i = 0; i < rows.count; i++, position++) {
            const char *element_a = a + i * rows.stride[0] * size_a;
            const char *element_e = e + i * rows.stride[1] * size_e;
            const struct pair pair =
                floating ? compare_floats(actual->dtype, element_a, expected->dtype, element_e)
                         : compare_integers(actual->dtype, element_a, element_e);
            const double tolerance = pair.finite ? absolute + relative * fabs(pair.expected) : 0;
            if (account(&found, &pair, pair.difference > tolerance, worst)) {
                worst = pair.difference;
                worst_position = position;
            }
        }
    }
    found.count = position;
    attn_index_at(actual, worst_position, found.worst);
    *comparison = found;
    return ATTN_OK;
}

// Adds one pair to what has been found; true when it is the worst so far.
static bool account(attn_comparison *found, const struct pair *pair, bool differs, double worst)
{
    const bool any_before = found->differing > 0;
    found->differing += differs;
    found->equal_bits = found->equal_bits && pair->equal_bits;
    found->max_ulp = pair->ulp > found->max_ulp ? pair->ulp : found->max_ulp;
    if (pair->finite) {
        found->max_absolute = fmax(found->max_absolute, pair->difference);
        if (pair->expected != 0) {
            const double relative = pair->difference / fabs(pair->expected);
            found->max_relative = fmax(found->max_relative, relative);
        }
    }
    const bool first_differing = differs && !any_before;
    const bool worse = first_differing || (pair->difference > worst && differs == any_before);
    if (worse) {
        found->worst_actual = pair->actual;
        found->worst_expected = pair->expected;
    }
    return worse;
}

static attn_status check_comparable(const attn_tensor *actual, const attn_tensor *expected,
                                    double absolute, double relative, attn_error *error)
{
    attn_status status = attn_tensor_check(actual, "compare: actual", error);
    if (status == ATTN_OK) {
        status = attn_tensor_check(expected, "compare: expected", error);
    }
    if (status != ATTN_OK) {
        return status;
    }
    if (!attn_tensor_same_shape(actual, expected)) {
        return attn_fail(error, ATTN_ERR_SHAPE, "compare: actual of shape %s, expected of shape %s",
                         attn_shape_text(actual).text, attn_shape_text(expected).text);
    }
    if (actual->dtype != expected->dtype &&
        !(attn_is_floating(actual->dtype) && attn_is_floating(expected->dtype))) {
        return attn_fail(error, ATTN_ERR_DTYPE, "compare: actual is %s, expected is %s",
                         attn_dtype_name(actual->dtype), attn_dtype_name(expected->dtype));
    }
    if (!(absolute >= 0) || !(relative >= 0)) {
        return attn_fail(error, ATTN_ERR_INVALID_ARGUMENT,
                         "compare: the tolerances (%g, %g) must be >= 0", absolute, relative);
    }
    return ATTN_OK;
}

// ---- one pair of elements -----------------------------------------------------------------------

// The bits of `value` in the given format, as an integer that grows with the value; 0 for both
// zeros.
static int64_t ordered_bits(attn_dtype dtype, double value)
{
    uint64_t bits = 0, sign = 0;
    switch (dtype) {
    case ATTN_F32:
        bits = attn_f32_bits((float)value);
        sign = UINT64_C(1) << 31;
        break;
    case ATTN_F64:
        memcpy(&bits, &value, sizeof bits);
        sign = UINT64_C(1) << 63;
        break;
    case ATTN_F16:
        bits = attn_f64_to_f16(value);
        sign = UINT64_C(1) << 15;
        break;
    default:
        bits = attn_f64_to_bf16(value);
        sign = UINT64_C(1) << 15;
        break;
    }
    const int64_t magnitude = (int64_t)(bits & (sign - 1));
    return bits & sign ? -magnitude : magnitude;
}

static uint64_t distance(int64_t a, int64_t b)
{
    return a > b ? (uint64_t)a - (uint64_t)b : (uint64_t)b - (uint64_t)a;
}

static struct pair compare_floats(attn_dtype actual_dtype, const void *actual,
                                  attn_dtype expected_dtype, const void *expected)
{
    struct pair pair = {
        .actual = attn_element_load(actual_dtype, actual),
        .expected = attn_element_load(expected_dtype, expected),
    };
    pair.finite = isfinite(pair.actual) && isfinite(pair.expected);
    pair.equal_bits = actual_dtype == expected_dtype &&
                      memcmp(actual, expected, attn_dtype_size(actual_dtype)) == 0;
    if (isnan(pair.actual) || isnan(pair.expected)) {
        const bool both = isnan(pair.actual) && isnan(pair.expected);
        pair.difference = both ? 0 : (double)INFINITY;
        pair.ulp = both ? 0 : UINT64_MAX;
    } else if (pair.actual != pair.expected) {
        pair.difference = fabs(pair.actual - pair.expected);
        pair.ulp = distance(ordered_bits(expected_dtype, pair.actual),
                            ordered_bits(expected_dtype, pair.expected));
    }
    return pair;
}

static struct pair compare_integers(attn_dtype dtype, const void *actual, const void *expected)
{
    const int64_t a = attn_element_load_integer(dtype, actual);
    const int64_t e = attn_element_load_integer(dtype, expected);
    const uint64_t apart = distance(a, e);
    return (struct pair){
        .actual = (double)a,
        .expected = (double)e,
        .difference = (double)apart,
        .ulp = apart,
        .finite = true,
        .equal_bits = memcmp(actual, expected, attn_dtype_size(dtype)) == 0,
    };
}

// check_kernels/check_functions_text.h: exp, log and tanh against the C library's, in units in the last
// place; for one element type, included by check_text.h.

// A type in which the C library's own error does not count; for every float32 it has to be fast as well.
#if ATTN_REAL_BITS == 32
typedef double wide;
#define WIDE(name) name
#else
typedef long double wide;
#define WIDE(name) name##l
#endif

struct function {
    const char *name;
    void (*kernel)(const real *, real *, int64_t);
    void (*portable)(const real *, real *, int64_t);
    wide (*right)(wide);
    double low, high; // arguments of the sample
    double ulp;       // largest error allowed
};

static wide ulp_of(wide x)
{
    int exponent;
    WIDE(frexp)(x, &exponent);
    return WIDE(ldexp)(1, exponent - (ATTN_REAL_BITS == 32 ? 24 : 53));
}

static void check_values(struct check *check, const struct function *f, const real *x,
                         int64_t count, bool against_portable, double *worst)
{
    real actual[64], expected[64];
    f->kernel(x, actual, count);
    if (against_portable) {
        f->portable(x, expected, count);
        compare(check, f->name, actual, expected, count);
    }
    for (int64_t i = 0; i < count; i++) {
        const wide right = f->right((wide)x[i]);
        const wide smallest = ATTN_REAL_BITS == 32 ? (wide)0x1p-124 : (wide)0x1p-1020;
        const wide largest = ATTN_REAL_BITS == 32 ? (wide)0x1.fffffep127
                                                  : (wide)0x1.fffffffffffffp1023;
        if (!(WIDE(fabs)(right) >= smallest && WIDE(fabs)(right) <= largest)) {
            continue; // zero, infinite, subnormal or NaN: below, and against the portable table
        }
        const double error = (double)(WIDE(fabs)((wide)actual[i] - right) / ulp_of(right));
        *worst = fmax(*worst, error);
        if (!(error <= f->ulp)) {
            check_failed(check, f->name, "at %a: %a is off by %.2f units in the last place",
                         (double)x[i], (double)actual[i], error);
        }
    }
}

static void check_function(struct check *check, const struct function *f)
{
    double worst = 0;
    real x[64];
    for (int64_t n = 0; n < 2000; n++) {
        for (int64_t i = 0; i < 64; i++) {
            const double u = (check_uniform(check) + 1) / 2;
            const double near_zero = n % 2 ? ldexp(u, (int)check_between(check, -30, 0)) : u;
            x[i] = (real)(f->low + (f->high - f->low) * near_zero);
        }
        check_values(check, f, x, check_between(check, 1, 64), true, &worst);
    }
#if ATTN_REAL_BITS == 32
    // The portable table, which takes most of the time, says the same of a sixteenth of them.
    for (uint64_t bits = 0; check->exhaustive && bits <= UINT32_MAX; bits += 64) {
        for (uint32_t i = 0; i < 64; i++) {
            const uint32_t one = (uint32_t)bits + i;
            memcpy(&x[i], &one, sizeof one);
        }
        // Logarithms: not of negative numbers, nor of subnormal ones, which are as they come.
        const bool out_of_range = f->low >= 0 && (x[0] < 0 || bits < 0x00800000);
        check_values(check, f, x, out_of_range ? 0 : 64, bits % 1024 == 0, &worst);
    }
#endif
    if (check->exhaustive) {
        printf("%s %s float%d: largest error %.3f ULP\n", check->table->name, f->name,
               ATTN_REAL_BITS, worst);
        fflush(stdout);
    }
}

static void check_specials(struct check *check, const kernels_t *kernels)
{
    const real infinity = (real)INFINITY;
    const struct {
        const char *name;
        void (*kernel)(const real *, real *, int64_t);
        real x, right;
    } cases[] = {
        {"exp", kernels->exp, 0, 1},
        {"exp", kernels->exp, -infinity, 0},
        {"exp", kernels->exp, infinity, infinity},
        {"exp", kernels->exp, (real)NAN, (real)NAN},
        {"exp", kernels->exp, (real)1e5, infinity},
        {"exp", kernels->exp, (real)-1e5, 0},
        {"log", kernels->log, 1, 0},
        {"log", kernels->log, 0, -infinity},
        {"log", kernels->log, infinity, infinity},
        {"log", kernels->log, (real)NAN, (real)NAN},
        {"tanh", kernels->tanh, 0, 0},
        {"tanh", kernels->tanh, HIDDEN, HIDDEN},
        {"tanh", kernels->tanh, infinity, 1},
        {"tanh", kernels->tanh, -infinity, -1},
        {"tanh", kernels->tanh, (real)NAN, (real)NAN},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        real result;
        cases[i].kernel(&cases[i].x, &result, 1);
        if (!same(result, cases[i].right)) {
            check_failed(check, cases[i].name, "of %g is %g", (double)cases[i].x, (double)result);
        }
    }
}

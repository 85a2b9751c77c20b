// attn_bench: how fast this machine runs attention, as shares of its own limits, beside peers.
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "case.h"

static const struct attention_shape attention_cases[] = {
    {"(1,12,1024,1024,64) causal", 1, 12, 12, 1024, 1024, 64, true, true, ATTN_F32, false},
    {"(1,12,1024,1024,64) full", 1, 12, 12, 1024, 1024, 64, false, true, ATTN_F32, false},
    {"(8,12,256,256,64) causal", 8, 12, 12, 256, 256, 64, true, true, ATTN_F32, false},
    {"(1,8,4096,4096,128) causal", 1, 8, 8, 4096, 4096, 128, true, true, ATTN_F32, false},
    {"(1,8,4096,4096,128) full", 1, 8, 8, 4096, 4096, 128, false, true, ATTN_F32, false},
    {"(1,4,16384,16384,64) causal", 1, 4, 4, 16384, 16384, 64, true, false, ATTN_F32, false},
    {"(2,5,333,777,80) full", 2, 5, 5, 333, 777, 80, false, true, ATTN_F32, false},
    {"(1,32,1,8192,128) kv 8", 1, 32, 8, 1, 8192, 128, false, false, ATTN_F32, true},
    {"(1,32,1,8192,128) kv 8 float16", 1, 32, 8, 1, 8192, 128, false, false, ATTN_F16, true},
    {"(1,32,1,8192,128) kv 32", 1, 32, 32, 1, 8192, 128, false, false, ATTN_F32, true},
    {"(1,32,1,8192,128) kv 32 float16", 1, 32, 32, 1, 8192, 128, false, false, ATTN_F16, true},
    {"(2,1,6,6,2) causal", 2, 1, 1, 6, 6, 2, true, true, ATTN_F32, false},
    {"growth T=1024", 1, 1, 1, 1024, 1024, 64, true, false, ATTN_F32, false},
    {"growth T=2048", 1, 1, 1, 2048, 2048, 64, true, false, ATTN_F32, false},
    {"growth T=4096", 1, 1, 1, 4096, 4096, 64, true, false, ATTN_F32, false},
    {"growth T=8192", 1, 1, 1, 8192, 8192, 64, true, false, ATTN_F32, false},
    {"growth T=16384", 1, 1, 1, 16384, 16384, 64, true, false, ATTN_F32, false},
    {"growth T=32768", 1, 1, 1, 32768, 32768, 64, true, false, ATTN_F32, false},
    {"growth T=65536", 1, 1, 1, 65536, 65536, 64, true, false, ATTN_F32, false},
};

static const char usage[] =
    "Usage: attn_bench [options]\n"
    "Times attention, MultiHeadAttention and a linear layer, and reports each as a share of what\n"
    "this machine can do, measured in the same run. Peers are used where installed.\n"
    "\n"
    "  --case TEXT     only cases whose name contains TEXT (e.g. --case '(8,12,256')\n"
    "  --seconds S     about S seconds per case (default 2)\n"
    "  --undisturbed   leave out calls during which the machine was busy with something else\n"
    "  --threads N     1 or 2 threads at most (default: what this process may use)\n"
    "  --torch         ask python3's torch for the attention cases as well\n"
    "  --json          one JSON object per line\n"
    "  --list          names of the cases\n"
    "  --help          this text\n";

static void ask_torch(const struct attention_shape *s, int threads)
{
    char command[1024];
    snprintf(command, sizeof command, "python3 '%s' %lld,%lld,%lld,%lld,%lld,%lld,%d,%d",
             ATTN_BENCH_TORCH, (long long)s->batch, (long long)s->heads, (long long)s->kv_heads,
             (long long)s->tq, (long long)s->tk, (long long)s->head_dim, s->causal ? 1 : 0,
             threads);
    fflush(stdout);
    if (system(command) != 0) { // NOLINT(cert-env33-c): a fixed command and numbers
        fprintf(stderr, "attn_bench: torch did not run %s\n", s->name);
    }
}

static bool wanted(const char *name, const char *filter)
{
    return !filter || strstr(name, filter) != NULL;
}

static int run_all(struct bench *bench, const char *filter)
{
    bool fine = true;
    for (size_t i = 0; i < sizeof attention_cases / sizeof attention_cases[0]; i++) {
        if (wanted(attention_cases[i].name, filter)) {
            fine = bench_attention(bench, &attention_cases[i]) && fine;
            for (int t = 1; bench->torch && t <= bench->machine.threads; t++) {
                ask_torch(&attention_cases[i], t);
            }
        }
    }
    if (wanted("MultiHeadAttention [2,8,768]", filter)) {
        fine = bench_module(bench, "MultiHeadAttention [2,8,768]", 2, 8) && fine;
    }
    if (wanted("MultiHeadAttention [8,1024,768]", filter)) {
        fine = bench_module(bench, "MultiHeadAttention [8,1024,768]", 8, 1024) && fine;
    }
    if (wanted("linear 8192 x 2304 x 768", filter)) {
        fine = bench_linear(bench, "linear 8192 x 2304 x 768", 8192, 2304, 768) && fine;
    }
    return fine ? 0 : 1;
}

static void list_cases(void)
{
    for (size_t i = 0; i < sizeof attention_cases / sizeof attention_cases[0]; i++) {
        puts(attention_cases[i].name);
    }
    puts("MultiHeadAttention [2,8,768]\nMultiHeadAttention [8,1024,768]\nlinear 8192 x 2304 x 768");
}

static bool make_contexts(struct bench *bench, attn_error *error)
{
    for (int t = 1; t <= bench->machine.threads; t++) {
        attn_context_config config;
        attn_context_config_init(&config);
        attn_status status = ATTN_OK;
        if (t > 1) {
            status = attn_executor_pthreadpool(t, &config.executor, error);
            if (status == ATTN_ERR_NOT_SUPPORTED) {
                status = attn_executor_pthreads(t, &config.executor, error);
            }
        }
        if (status != ATTN_OK ||
            attn_context_create(&config, &bench->contexts[t], error) != ATTN_OK) {
            return false;
        }
    }
    return true;
}

// A positive number below `most`, or the end of the program.
static double number(const char *option, const char *text, double most)
{
    char *end = NULL;
    const double value = strtod(text, &end);
    if (end == text || *end != '\0' || !(value > 0 && value <= most)) {
        fprintf(stderr, "attn_bench: --%s: '%s' is no number above 0 and up to %g\n", option, text,
                most);
        exit(2);
    }
    return value;
}

int main(int argc, char **argv)
{
    static const struct option options[] = {
        {"case", required_argument, NULL, 'c'},
        {"seconds", required_argument, NULL, 's'},
        {"undisturbed", no_argument, NULL, 'u'},
        {"threads", required_argument, NULL, 't'},
        {"torch", no_argument, NULL, 'p'},
        {"json", no_argument, NULL, 'j'},
        {"list", no_argument, NULL, 'l'},
        {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0},
    };
    const int cpus = (int)attn_available_cpus();
    struct bench bench = {.machine.threads = cpus < MOST_THREADS ? cpus : MOST_THREADS,
                          .timing.seconds = 2};
    const char *filter = NULL;
    for (int option; (option = getopt_long(argc, argv, "h", options, NULL)) != -1;) {
        switch (option) {
        case 'c': filter = optarg; break;
        case 's': bench.timing.seconds = number("seconds", optarg, 3600); break;
        case 't': bench.machine.threads = (int)number("threads", optarg, MOST_THREADS); break;
        case 'u': bench.timing.look = machine_look; break;
        case 'p': bench.torch = true; break;
        case 'j': bench.json = true; break;
        case 'l': list_cases(); return 0;
        case 'h': fputs(usage, stdout); return 0;
        default: fputs("Try 'attn_bench --help'.\n", stderr); return 2;
        }
    }
    if (optind < argc) {
        fprintf(stderr, "attn_bench: unexpected argument '%s'\n", argv[optind]);
        return 2;
    }
    attn_error error;
    if (!make_contexts(&bench, &error)) {
        fprintf(stderr, "attn_bench: %s\n", error.text);
        return 1;
    }
    bench.blas_count = peers_find_blas(bench.blas);
    if (!machine_init(&bench.machine, bench.contexts)) {
        fprintf(stderr, "attn_bench: out of memory\n");
        return 1;
    }
    bench.timing.state = &bench.machine;
    report_head(&bench);
    const int status = run_all(&bench, filter);
    machine_free(&bench.machine);
    for (int t = 1; t <= bench.machine.threads; t++) {
        attn_context_destroy(bench.contexts[t]);
    }
    return status;
}

// attn plot: heat maps of weights, bars, curves.
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "figures.h"
#include "tensor_file.h"
#include "tool.h"

static const option_row plot_rows[] = {
    {"output", 'o', "FILE", "The picture: .png, .svg or .pdf."},
    {"kind", 'K', "auto|heat|bars|curve",
     "What to draw; auto is a heat map from rank 2 on, else a curve."},
    {"title", 't', "TEXT", "Title above the figure."},
    {NULL, 0, NULL, NULL},
};
static const option_group plot_group = {"Plot", plot_rows};

static const option_row heat_rows[] = {
    {"tokens", 'T', "FILE", "Labels of rows and columns, one per line."},
    {"key-tokens", 0, "FILE", "Other labels for the columns."},
    {"heads", 'H', "LIST", "Only these heads; default all, as a grid."},
    {"batch", 'b', "N", "Which batch entry; default 0."},
    {"hide-future", 0, NULL, "Hatch keys after the query's own position."},
    {"digits", 'd', "N", "Decimals in the cells where they fit, -1: none; default 2."},
    {"columns", 0, "N", "Maps side by side."},
    {"range", 'r', "LOW,HIGH", "Ends of the colour bar."},
    {NULL, 0, NULL, NULL},
};
static const option_group heat_group = {"Heat maps", heat_rows};

static const option_row line_rows[] = {
    {"row", 0, "N", "Bars: which row of a matrix."},
    {"labels", 'l', "FILE", "Bars: a label for each; curves: one per file. One per line."},
    {"x-title", 0, "TEXT", "Below the curves; default 'step'."},
    {"y-title", 0, "TEXT", "Beside curves or bars; default 'loss' for curves."},
    {"log", 0, NULL, "Curves: logarithmic axis."},
    {NULL, 0, NULL, NULL},
};
static const option_group line_group = {"Bars and curves", line_rows};

static int run(const arguments *a);

static const option_group *const groups[] = {&plot_group,   &heat_group, &line_group,
                                             &format_group, &help_group, NULL};

const command plot_command = {
    .name = "plot",
    .summary = "draw attention weights, distributions or loss curves",
    .operands = "FILE...",
    .least = 1,
    .most = 8,
    .description =
        "Draws a heat map of attention weights (T, T), (H, T, T) or (B, H, T, T) with one map per "
        "head; bars of a distribution; or curves, one per FILE. FILE is as for attn run; a text "
        "file of numbers serves for curves and bars. Colours are even to the eye and safe for "
        "colour-blind readers; NaN is hatched.",
    .groups = groups,
    .example = "  attn plot weights.npy --tokens tokens.txt -o weights.png\n"
               "  attn plot --kind curve --log loss.txt -o loss.svg\n",
    .run = run,
};

// Lines of a text file.
typedef struct lines {
    char *text;
    const char **at;
    int64_t count;
} lines;

// Numbers of one operand.
typedef struct numbers {
    double *values;
    int64_t count;
} numbers;

static int plot_heat(const arguments *a, const attn_context *context, const attn_tensor *tensor);
static int plot_bars(const arguments *a, const numbers *series);
static int plot_curves(const arguments *a, const numbers *series);
static bool read_lines(const arguments *a, const char *option, int64_t needed, lines *read);
static void free_lines(lines *read);
static int read_numbers(const arguments *a, const attn_context *context, const char *path,
                        numbers *read);

enum { AUTO = 0, HEAT, BARS, CURVE };

static int run(const arguments *a)
{
    if (!argument_given(a, "output")) {
        return usage_error(a, "--output is needed");
    }
    attn_context *context = plain_context(a);
    if (context == NULL) {
        return EXIT_TROUBLE;
    }
    int kind = argument_choice(a, "kind", AUTO);
    attn_error error;
    tensor_file file = {0};
    attn_tensor tensor = {0};
    int status = EXIT_OK;
    // A text file opens as no tensor; then it can only be a curve or bars.
    const attn_status opened =
        tensor_file_open_one(context, a->operands[0], npy_flags(a), &file, &tensor, &error);
    if (kind == AUTO) {
        kind = opened == ATTN_OK && tensor.ndim >= 2 ? HEAT : CURVE;
    }
    if (kind == HEAT) {
        if (opened != ATTN_OK) {
            status = library_trouble(a, &error);
        } else if (a->operand_count > 1) {
            status = usage_error(a, "a heat map is drawn from one file");
        } else {
            status = plot_heat(a, context, &tensor);
        }
    } else {
        numbers series[8] = {{0}};
        for (int i = 0; status == EXIT_OK && i < a->operand_count; i++) {
            status = read_numbers(a, context, a->operands[i], &series[i]);
        }
        if (status == EXIT_OK) {
            status = kind == BARS ? plot_bars(a, series) : plot_curves(a, series);
        }
        for (int i = 0; i < a->operand_count; i++) {
            free(series[i].values);
        }
    }
    tensor_file_close(&file);
    attn_context_destroy(context);
    return status;
}

// ---- heat maps ----------------------------------------------------------------------------------

enum { MOST_HEADS = 64 };

// What a figure of heads is made of.
typedef struct heads {
    figure_heat_map maps[MOST_HEADS];
    char titles[MOST_HEADS][32];
    attn_tensor copies[MOST_HEADS]; // with the future hidden
    int count;
} heads;

static int choose_heads(const arguments *a, const attn_tensor *tensor, heads *h);
static int hide_future(const arguments *a, const attn_context *context, heads *h);

static int plot_heat(const arguments *a, const attn_context *context, const attn_tensor *tensor)
{
    figure_heat_map_options options;
    figure_heat_map_options_init(&options);
    options.title = argument_text(a, "title");
    options.row_title = "query";
    options.column_title = "key";
    int64_t digits, columns;
    double range[2];
    int range_count;
    if (!argument_integer(a, "digits", -1, 17, 2, &digits) ||
        !argument_integer(a, "columns", 0, MOST_HEADS, 0, &columns) ||
        !argument_reals(a, "range", range, 2, &range_count)) {
        return EXIT_USAGE;
    }
    if (range_count == 1 || (range_count == 2 && !(range[0] < range[1]))) {
        return usage_error(a, "--range takes two rising numbers, such as 0,1");
    }
    options.digits = (int32_t)digits;
    options.columns = (int32_t)columns;
    if (range_count == 2) {
        options.low = range[0];
        options.high = range[1];
    }
    heads h = {.count = 0};
    int status = choose_heads(a, tensor, &h);
    if (status != EXIT_OK) {
        return status;
    }
    lines rows = {0};
    lines keys = {0};
    const char *key_option = argument_given(a, "key-tokens") ? "key-tokens" : "tokens";
    if (!read_lines(a, "tokens", h.maps[0].values.shape[0], &rows) ||
        !read_lines(a, key_option, h.maps[0].values.shape[1], &keys)) {
        free_lines(&rows);
        return EXIT_TROUBLE;
    }
    for (int i = 0; i < h.count; i++) {
        h.maps[i].row_labels = rows.at;
        h.maps[i].column_labels = keys.at;
    }
    status = argument_given(a, "hide-future") ? hide_future(a, context, &h) : EXIT_OK;
    attn_error error;
    if (status == EXIT_OK && figure_heat_maps(h.maps, h.count, &options, argument_text(a, "output"),
                                              &error) != ATTN_OK) {
        status = library_trouble(a, &error);
    }
    for (int i = 0; i < h.count; i++) {
        attn_tensor_destroy(context, &h.copies[i]);
    }
    free_lines(&rows);
    free_lines(&keys);
    return status;
}

// tensor: (T, T), (H, T, T) or (B, H, T, T)
static int choose_heads(const arguments *a, const attn_tensor *tensor, heads *h)
{
    attn_error error;
    int64_t batch;
    int64_t chosen[MOST_HEADS];
    int chosen_count;
    if (!argument_integer(a, "batch", 0, INT64_MAX, 0, &batch) ||
        !argument_integers(a, "heads", chosen, MOST_HEADS, &chosen_count)) {
        return EXIT_USAGE;
    }
    if (tensor->ndim < 2 || tensor->ndim > 4) {
        return trouble(a, "weights of rank %d; (T, T), (H, T, T) or (B, H, T, T) can be drawn",
                       (int)tensor->ndim);
    }
    attn_tensor all = *tensor;
    if (all.ndim == 4 && attn_tensor_select(tensor, 0, batch, &all, &error) != ATTN_OK) {
        return trouble(a, "--batch: %s", error.text);
    }
    if (all.ndim == 2) {
        h->maps[0].values = all;
        h->count = 1;
        return EXIT_OK;
    }
    if (chosen_count == 0) {
        chosen_count = all.shape[0] > MOST_HEADS ? MOST_HEADS : (int)all.shape[0];
        for (int i = 0; i < chosen_count; i++) {
            chosen[i] = i;
        }
    }
    for (int i = 0; i < chosen_count; i++) {
        if (attn_tensor_select(&all, 0, chosen[i], &h->maps[i].values, &error) != ATTN_OK) {
            return trouble(a, "--heads: %s", error.text);
        }
        snprintf(h->titles[i], sizeof(h->titles[i]), "head %" PRId64, chosen[i]);
        h->maps[i].title = chosen_count > 1 || all.shape[0] > 1 ? h->titles[i] : NULL;
    }
    h->count = chosen_count;
    if (chosen_count == 0) {
        return trouble(a, "there are no heads to draw");
    }
    return EXIT_OK;
}

static int hide_future(const arguments *a, const attn_context *context, heads *h)
{
    for (int i = 0; i < h->count; i++) {
        attn_error error;
        attn_tensor *values = &h->maps[i].values;
        if (attn_tensor_create(context, ATTN_F64, 2, values->shape, &h->copies[i], &error) !=
                ATTN_OK ||
            attn_tensor_copy(values, &h->copies[i], &error) != ATTN_OK) {
            return library_trouble(a, &error);
        }
        double *cells = h->copies[i].data;
        for (int64_t row = 0; row < values->shape[0]; row++) {
            for (int64_t column = row + 1; column < values->shape[1]; column++) {
                cells[row * values->shape[1] + column] = NAN;
            }
        }
        *values = h->copies[i];
    }
    return EXIT_OK;
}

// ---- bars and curves ----------------------------------------------------------------------------

static int plot_bars(const arguments *a, const numbers *series)
{
    lines labels = {0};
    if (!read_lines(a, "labels", series[0].count, &labels)) {
        return EXIT_TROUBLE;
    }
    figure_bars panels[8];
    for (int i = 0; i < a->operand_count; i++) {
        panels[i] = (figure_bars){
            .title = a->operand_count > 1 ? a->operands[i] : NULL,
            .values = series[i].values,
            .count = series[i].count,
            .labels = labels.at,
        };
        if (labels.at != NULL && series[i].count != series[0].count) {
            free_lines(&labels);
            return trouble(a, "--labels: the files hold different numbers of bars");
        }
    }
    attn_error error;
    const attn_status status =
        figure_bar_panels(panels, a->operand_count, argument_text(a, "title"),
                          argument_text(a, "y-title"), argument_text(a, "output"), &error);
    free_lines(&labels);
    return status == ATTN_OK ? EXIT_OK : library_trouble(a, &error);
}

static int plot_curves(const arguments *a, const numbers *series)
{
    lines labels = {0};
    if (!read_lines(a, "labels", a->operand_count, &labels)) {
        return EXIT_TROUBLE;
    }
    figure_curve curves[8];
    for (int i = 0; i < a->operand_count; i++) {
        const char *label = a->operand_count > 1 ? a->operands[i] : NULL;
        curves[i] = (figure_curve){
            .label = labels.at != NULL ? labels.at[i] : label,
            .values = series[i].values,
            .count = series[i].count,
        };
    }
    const char *x_title = argument_text(a, "x-title");
    const char *y_title = argument_text(a, "y-title");
    const figure_curve_options options = {
        .title = argument_text(a, "title"),
        .x_title = x_title != NULL ? x_title : "step",
        .y_title = y_title != NULL ? y_title : "loss",
        .log_scale = argument_given(a, "log"),
    };
    attn_error error;
    const attn_status status =
        figure_curves(curves, a->operand_count, &options, argument_text(a, "output"), &error);
    free_lines(&labels);
    return status == ATTN_OK ? EXIT_OK : library_trouble(a, &error);
}

// ---- reading ------------------------------------------------------------------------------------

// A whole text file; NULL after a message.
static char *read_text(const arguments *a, const char *path)
{
    FILE *stream = strcmp(path, "-") == 0 ? stdin : fopen(path, "rb");
    if (stream == NULL) {
        trouble(a, "%s: %s", path, strerror(errno));
        return NULL;
    }
    char *text = NULL;
    size_t size = 0;
    size_t count;
    do {
        char *grown = realloc(text, size + 4097);
        if (grown == NULL) {
            free(text);
            text = NULL;
            break;
        }
        text = grown;
        count = fread(text + size, 1, 4096, stream);
        size += count;
        text[size] = '\0';
    } while (count > 0);
    if (stream != stdin) {
        fclose(stream);
    }
    if (text == NULL) {
        trouble(a, "%s: out of memory", path);
    } else if (strlen(text) != size) {
        trouble(a, "%s: neither a tensor file nor text", path);
        free(text);
        text = NULL;
    }
    return text;
}

// Without the option: no lines, and success. False after a message.
static bool read_lines(const arguments *a, const char *option, int64_t needed, lines *read)
{
    const char *path = argument_text(a, option);
    *read = (lines){0};
    if (path == NULL) {
        return true;
    }
    read->text = read_text(a, path);
    if (read->text == NULL) {
        return false;
    }
    int64_t capacity = 1;
    for (const char *c = read->text; *c != '\0'; c++) {
        capacity += *c == '\n';
    }
    read->at = calloc((size_t)capacity, sizeof(*read->at));
    for (char *line = read->text; read->at != NULL && *line != '\0';) {
        char *end = line + strcspn(line, "\n");
        const bool last = *end == '\0';
        *end = '\0';
        if (end > line && end[-1] == '\r') {
            end[-1] = '\0';
        }
        read->at[read->count++] = line;
        line = last ? end : end + 1;
    }
    if (read->count != needed) {
        trouble(a, "--%s: %s has %lld lines, but %lld labels are needed", option, path,
                (long long)read->count, (long long)needed);
        free_lines(read);
        return false;
    }
    return true;
}

static void free_lines(lines *read)
{
    free((void *)read->at);
    free(read->text);
    *read = (lines){0};
}

static int numbers_of_tensor(const arguments *a, attn_tensor tensor, numbers *read);
static int numbers_of_text(const arguments *a, const char *path, numbers *read);

static int read_numbers(const arguments *a, const attn_context *context, const char *path,
                        numbers *read)
{
    tensor_file file;
    attn_tensor tensor;
    attn_error error;
    const attn_status status =
        tensor_file_open_one(context, path, npy_flags(a), &file, &tensor, &error);
    if (status == ATTN_OK) {
        const int result = numbers_of_tensor(a, tensor, read);
        tensor_file_close(&file);
        return result;
    }
    const bool tensor_name = has_ending(path, ".npy") || has_ending(path, ".npz") ||
                             has_ending(path, ".safetensors") || status != ATTN_ERR_FORMAT;
    return tensor_name ? library_trouble(a, &error) : numbers_of_text(a, path, read);
}

static int numbers_of_tensor(const arguments *a, attn_tensor tensor, numbers *read)
{
    attn_error error;
    int64_t row;
    if (!argument_integer(a, "row", 0, INT64_MAX, 0, &row)) {
        return EXIT_USAGE;
    }
    while (tensor.ndim > 2) {
        if (attn_tensor_select(&tensor, 0, 0, &tensor, &error) != ATTN_OK) {
            return library_trouble(a, &error);
        }
    }
    if (tensor.ndim == 2 && attn_tensor_select(&tensor, 0, row, &tensor, &error) != ATTN_OK) {
        return trouble(a, "--row: %s", error.text);
    }
    read->count = attn_tensor_count(&tensor);
    read->values = calloc((size_t)read->count + 1, sizeof(double));
    if (read->values == NULL) {
        return trouble(a, "out of memory");
    }
    for (int64_t i = 0; i < read->count; i++) {
        read->values[i] = attn_tensor_get(&tensor, &i);
    }
    return EXIT_OK;
}

// Numbers between spaces, commas or line ends.
static int numbers_of_text(const arguments *a, const char *path, numbers *read)
{
    char *text = read_text(a, path);
    if (text == NULL) {
        return EXIT_TROUBLE;
    }
    read->values = calloc(strlen(text) / 2 + 2, sizeof(double));
    if (read->values == NULL) {
        free(text);
        return trouble(a, "out of memory");
    }
    int status = EXIT_OK;
    for (char *next = text; status == EXIT_OK;) {
        next += strspn(next, " \t\r\n,;");
        if (*next == '\0') {
            break;
        }
        char *end;
        read->values[read->count] = strtod(next, &end);
        if (end == next) {
            status = trouble(a, "%s: number %lld is none: \"%.16s\"", path,
                             (long long)read->count + 1, next);
        }
        read->count++;
        next = end;
    }
    free(text);
    return status;
}

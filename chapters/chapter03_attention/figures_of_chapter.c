// figures_of_chapter.c: the chapter's figures through tools/figures.
#include "figures_of_chapter.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "attention.h"
#include "causal.h"
#include "figures.h"
#include "print.h"

enum { KEYS = 8, D_K = 64, SEED = 123, PATH_SIZE = 4096 };

// Draws one figure to a path; `drawing` holds what it shows.
typedef attn_status (*draw_function)(const demo *d, const void *drawing, const char *path,
                                     attn_error *error);

// Draws with the labels of the program's language, or, where no font has its characters, in English
// after a message; the labels of later figures follow.
static attn_status draw_with_labels(demo *labels, draw_function draw, const void *drawing,
                                    const char *path, attn_error *error)
{
    const attn_status status = draw(labels, drawing, path, error);
    if (status != ATTN_ERR_NOT_SUPPORTED || labels->text == text_en) {
        return status;
    }
    fflush(stdout);
    fprintf(stderr, "chapter03_attention: %s; %s\n", error->text, labels->text[T_FIG_OTHER_LABELS]);
    labels->text = text_en;
    return draw(labels, drawing, path, error);
}

// Writes the figure as PNG and as SVG. False after a message on standard error.
static bool write_figure(const demo *d, demo *labels, const char *folder, const char *name,
                         draw_function draw, const void *drawing)
{
    static const char *const endings[] = {"png", "svg"};
    for (int i = 0; i < 2; ++i) {
        char path[PATH_SIZE];
        attn_error error = {0};
        const int length = snprintf(path, sizeof path, "%s/%s.%s", folder, name, endings[i]);
        if (length >= (int)sizeof path) {
            fprintf(stderr, "chapter03_attention: %s: %s\n", folder, strerror(ENAMETOOLONG));
            return false;
        }
        if (draw_with_labels(labels, draw, drawing, path, &error) != ATTN_OK) {
            fflush(stdout);
            fprintf(stderr, "chapter03_attention: %s\n", error.text);
            return false;
        }
        say(d, T_FIG_WRITTEN, path);
    }
    return true;
}

static attn_status draw_map(const demo *d, const figure_heat_map *maps, int64_t count,
                            const char *title, const char *path, attn_error *error)
{
    figure_heat_map_options options;
    figure_heat_map_options_init(&options);
    options.title = title;
    options.row_title = d->text[T_FIG_QUERY];
    options.column_title = d->text[T_FIG_KEY];
    options.columns = (int32_t)count;
    return figure_heat_maps(maps, count, &options, path, error);
}

// ---- figure 1: the 6 x 6 weights of the simple attention ----------------------------------------

static attn_status draw_simple(const demo *d, const void *drawing, const char *path,
                               attn_error *error)
{
    const figure_heat_map map = {.values = *(const attn_tensor *)drawing,
                                 .row_labels = token_names,
                                 .column_labels = token_names};
    return draw_map(d, &map, 1, d->text[T_FIG_1], path, error);
}

static attn_tensor simple_weights(demo *d)
{
    const attn_var inputs = make_inputs(d);
    return attn_value(attn_softmax(attn_matmul(inputs, attn_transpose(inputs, 0, 1)), -1));
}

// ---- figure 2: one query and eight keys before and after scaling --------------------------------

typedef struct scaling {
    double raw[KEYS], scaled[KEYS];
} scaling;

static attn_status draw_scaling(const demo *d, const void *drawing, const char *path,
                                attn_error *error)
{
    const scaling *s = drawing;
    char title[512];
    snprintf(title, sizeof title, d->text[T_FIG_2], SEED);
    const figure_bars panels[] = {
        {.title = d->text[T_FIG_2_RAW], .values = s->raw, .count = KEYS},
        {.title = d->text[T_FIG_2_SCALED], .values = s->scaled, .count = KEYS}};
    return figure_bar_panels(panels, 2, title, d->text[T_FIG_2_VALUE], path, error);
}

static scaling scaled_weights(demo *d)
{
    manual_seed(d, SEED);
    const attn_var query = randn_leaf(d, 2, (int64_t[]){1, D_K});
    const attn_var keys = randn_leaf(d, 2, (int64_t[]){KEYS, D_K});
    const attn_var scores = attn_matmul(query, attn_transpose(keys, 0, 1)); // (1, 8)
    const attn_var raw = attn_softmax(scores, -1);
    const attn_var scaled = attn_softmax(attn_scale(scores, 1 / sqrt(D_K)), -1);
    scaling s;
    for (int64_t j = 0; j < KEYS; ++j) {
        s.raw[j] = element(raw, 0, j);
        s.scaled[j] = element(scaled, 0, j);
    }
    return s;
}

// ---- figure 3: before and after the causal mask -------------------------------------------------

typedef struct masking {
    attn_tensor before, after;
} masking;

static attn_status draw_masking(const demo *d, const void *drawing, const char *path,
                                attn_error *error)
{
    const masking *m = drawing;
    const figure_heat_map maps[] = {{.title = d->text[T_FIG_3_BEFORE],
                                     .values = m->before,
                                     .row_labels = token_names,
                                     .column_labels = token_names},
                                    {.title = d->text[T_FIG_3_AFTER],
                                     .values = m->after,
                                     .row_labels = token_names,
                                     .column_labels = token_names}};
    return draw_map(d, maps, 2, d->text[T_FIG_3], path, error);
}

static masking masked_weights(demo *d, attn_module *sa_v2, const attn_tensor *mask)
{
    const attn_var scores = causal_scores(d, sa_v2, make_inputs(d));
    return (masking){.before = attn_value(attn_softmax(attn_scale(scores, 1 / sqrt(2)), -1)),
                     .after = attn_value(causal_weights(scores, mask))};
}

int figures_of_chapter(demo *d, const char *folder)
{
    if (mkdir(folder, 0777) != 0 && errno != EEXIST) {
        fprintf(stderr, "chapter03_attention: %s: %s\n", folder, strerror(errno));
        return EXIT_FAILURE;
    }
    heading(d, "--figures", T_FIG_TITLE, "figures_of_chapter.c");
    fresh_tape(d);
    bool mask_memory[TOKENS][TOKENS];
    const attn_tensor mask = causal_mask(mask_memory);
    const attn_tensor simple = simple_weights(d);
    const scaling bars = scaled_weights(d);
    manual_seed(d, 789);
    attn_module *sa_v2 = self_attention_v2(d, EMBEDDING, 2, false);
    const masking maps = masked_weights(d, sa_v2, &mask);
    must_tape(d);
    demo labels = *d;
    const bool drawn = write_figure(d, &labels, folder, "figure1_weights", draw_simple, &simple) &&
                       write_figure(d, &labels, folder, "figure2_scaling", draw_scaling, &bars) &&
                       write_figure(d, &labels, folder, "figure3_causal", draw_masking, &maps);
    fresh_tape(d);
    attn_module_destroy(sa_v2);
    return drawn ? EXIT_SUCCESS : EXIT_FAILURE;
}

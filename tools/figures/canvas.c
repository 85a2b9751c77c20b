#include "canvas.h"

#include <cairo-pdf.h>
#include <cairo-svg.h>
#include <math.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "attn/io.h"

enum { FORMAT_PNG = 0, FORMAT_SVG, FORMAT_PDF };

static const double pixels_per_point = 2;

static cairo_status_t collect(void *state, const unsigned char *bytes, unsigned length);
static void use_surface(canvas *c, cairo_surface_t *surface);
static bool choose_font(canvas *c, font f, const char *text);
static bool has_glyphs(canvas *c, const char *text, size_t *missing);
static uint32_t decode_character(const unsigned char *text);

// ---- open, begin, finish ------------------------------------------------------------------------

void canvas_open(canvas *c, const char *path)
{
    static const char *const endings[] = {".png", ".svg", ".pdf"};
    *c = (canvas){.path = path, .format = -1};
    const size_t length = path == NULL ? 0 : strlen(path);
    for (int i = 0; i < 3; i++) {
        if (length > 4 && strcasecmp(path + length - 4, endings[i]) == 0) {
            c->format = i;
        }
    }
    if (c->format < 0) {
        canvas_fail(c, ATTN_ERR_NOT_SUPPORTED,
                    "figure: %s: the name must end in .png, .svg or .pdf",
                    path == NULL ? "no path" : path);
        return;
    }
    use_surface(c, cairo_image_surface_create(CAIRO_FORMAT_A8, 1, 1));
}

void canvas_begin(canvas *c, double width, double height)
{
    // What an image of 32-bit pixels may take, and more than any page needs.
    static const double largest = 16000;
    if (!canvas_failed(c) && !(width <= largest && height <= largest)) {
        canvas_fail(c, ATTN_ERR_INVALID_ARGUMENT, "figure: %.0f x %.0f points are too many", width,
                    height);
    }
    if (canvas_failed(c)) {
        return;
    }
    width = ceil(width);
    height = ceil(height);
    cairo_destroy(c->cairo);
    cairo_surface_destroy(c->surface);
    c->cairo = NULL;
    c->surface = NULL;
    if (c->format == FORMAT_SVG) {
        use_surface(c, cairo_svg_surface_create_for_stream(collect, c, width, height));
    } else if (c->format == FORMAT_PDF) {
        cairo_surface_t *surface = cairo_pdf_surface_create_for_stream(collect, c, width, height);
        // Without a date the same figure is the same bytes.
        cairo_pdf_surface_set_metadata(surface, CAIRO_PDF_METADATA_CREATE_DATE,
                                       "2000-01-01T00:00:00Z");
        use_surface(c, surface);
    } else {
        cairo_surface_t *surface = cairo_image_surface_create(
            CAIRO_FORMAT_RGB24, (int)(width * pixels_per_point), (int)(height * pixels_per_point));
        cairo_surface_set_device_scale(surface, pixels_per_point, pixels_per_point);
        use_surface(c, surface);
    }
    if (!canvas_failed(c)) {
        cairo_set_source_rgb(c->cairo, 1, 1, 1);
        cairo_paint(c->cairo);
    }
}

static void use_surface(canvas *c, cairo_surface_t *surface)
{
    c->surface = surface;
    c->cairo = cairo_create(surface);
    cairo_font_options_t *options = cairo_font_options_create();
    cairo_font_options_set_hint_style(options, CAIRO_HINT_STYLE_NONE);
    cairo_font_options_set_hint_metrics(options, CAIRO_HINT_METRICS_OFF);
    cairo_font_options_set_antialias(options, CAIRO_ANTIALIAS_GRAY);
    cairo_set_font_options(c->cairo, options);
    cairo_font_options_destroy(options);
    if (cairo_status(c->cairo) != CAIRO_STATUS_SUCCESS) {
        canvas_fail(c, ATTN_ERR_OUT_OF_MEMORY, "figure: %s",
                    cairo_status_to_string(cairo_status(c->cairo)));
    }
}

attn_status canvas_finish(canvas *c, attn_error *error)
{
    if (!canvas_failed(c)) {
        cairo_status_t status = cairo_status(c->cairo);
        cairo_surface_flush(c->surface);
        if (status == CAIRO_STATUS_SUCCESS && c->format == FORMAT_PNG) {
            status = cairo_surface_write_to_png_stream(c->surface, collect, c);
        }
        cairo_surface_finish(c->surface);
        if (status == CAIRO_STATUS_SUCCESS) {
            status = cairo_surface_status(c->surface);
        }
        if (status != CAIRO_STATUS_SUCCESS) {
            canvas_fail(c, ATTN_ERR_OUT_OF_MEMORY, "figure: %s", cairo_status_to_string(status));
        }
    }
    cairo_destroy(c->cairo);
    cairo_surface_destroy(c->surface);
    if (!canvas_failed(c)) {
        attn_context *context = NULL;
        attn_status status = attn_context_create(NULL, &context, &c->error);
        if (status == ATTN_OK) {
            status = attn_save_bytes(context, c->path, c->bytes, c->size, &c->error);
        }
        c->error.status = status;
        attn_context_destroy(context);
    }
    free(c->bytes);
    if (canvas_failed(c) && error != NULL) {
        *error = c->error;
    }
    return c->error.status;
}

static cairo_status_t collect(void *state, const unsigned char *bytes, unsigned length)
{
    canvas *c = state;
    if (c->size + length > c->capacity) {
        const size_t capacity = 2 * (c->size + length);
        unsigned char *grown = realloc(c->bytes, capacity);
        if (grown == NULL) {
            return CAIRO_STATUS_WRITE_ERROR;
        }
        c->bytes = grown;
        c->capacity = capacity;
    }
    memcpy(c->bytes + c->size, bytes, length);
    c->size += length;
    return CAIRO_STATUS_SUCCESS;
}

void canvas_fail(canvas *c, attn_status status, const char *format, ...)
{
    if (canvas_failed(c)) {
        return;
    }
    c->error.status = status;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(c->error.text, sizeof(c->error.text), format, arguments);
    va_end(arguments);
}

bool canvas_failed(const canvas *c)
{
    return c->error.status != ATTN_OK;
}

// ---- texts --------------------------------------------------------------------------------------

double canvas_text_width(canvas *c, font f, const char *text)
{
    if (text == NULL || canvas_failed(c) || !choose_font(c, f, text)) {
        return 0;
    }
    cairo_text_extents_t extents;
    cairo_text_extents(c->cairo, text, &extents);
    return extents.x_advance;
}

void canvas_text(canvas *c, font f, colour ink, align a, double x, double y, const char *text)
{
    const double width = canvas_text_width(c, f, text);
    if (text == NULL || canvas_failed(c)) {
        return;
    }
    const double middle = 0.36 * f.size; // of capitals and digits above the baseline
    cairo_set_source_rgb(c->cairo, ink.red, ink.green, ink.blue);
    cairo_move_to(c->cairo, x - width * (double)a / 2, y + middle);
    cairo_show_text(c->cairo, text);
}

void canvas_turned_text(canvas *c, font f, colour ink, align a, double x, double y, double degrees,
                        const char *text)
{
    if (canvas_failed(c)) {
        return;
    }
    cairo_save(c->cairo);
    cairo_translate(c->cairo, x, y);
    cairo_rotate(c->cairo, degrees * 3.14159265358979323846 / 180);
    canvas_text(c, f, ink, a, 0, 0, text);
    cairo_restore(c->cairo);
}

// The first family that has every character of the text.
static bool choose_font(canvas *c, font f, const char *text)
{
    static const char *const families[] = {
        "sans-serif",        "Noto Sans CJK SC",    "Noto Sans CJK JP",   "Noto Sans SC",
        "WenQuanYi Zen Hei", "WenQuanYi Micro Hei", "Droid Sans Fallback"};
    size_t missing = 0;
    for (size_t i = 0; i < sizeof(families) / sizeof(*families); i++) {
        cairo_select_font_face(c->cairo, families[i], CAIRO_FONT_SLANT_NORMAL,
                               f.bold ? CAIRO_FONT_WEIGHT_BOLD : CAIRO_FONT_WEIGHT_NORMAL);
        cairo_set_font_size(c->cairo, f.size);
        if (has_glyphs(c, text, &missing)) {
            return true;
        }
        if (canvas_failed(c)) {
            return false;
        }
    }
    const uint32_t character = decode_character((const unsigned char *)text + missing);
    const bool cjk = (character >= 0x2E80 && character <= 0x9FFF) ||
                     (character >= 0xAC00 && character <= 0xD7AF) ||
                     (character >= 0xF900 && character <= 0xFAFF) ||
                     (character >= 0xFF00 && character <= 0xFFEF) ||
                     (character >= 0x20000 && character <= 0x3FFFF);
    int length = 1;
    while ((text[missing + (size_t)length] & 0xC0) == 0x80) {
        length++;
    }
    canvas_fail(c, ATTN_ERR_NOT_SUPPORTED,
                "figure: no installed font has the character %.*s (U+%04X)%s", length,
                text + missing, (unsigned)character,
                cjk ? "; on Debian: apt-get install fonts-noto-cjk" : "");
    return false;
}

// Whether the chosen font has all characters; else the byte at which the first one without a glyph
// starts.
static bool has_glyphs(canvas *c, const char *text, size_t *missing)
{
    cairo_glyph_t *glyphs = NULL;
    cairo_text_cluster_t *clusters = NULL;
    int glyph_count = 0;
    int cluster_count = 0;
    cairo_text_cluster_flags_t flags;
    const cairo_status_t status = cairo_scaled_font_text_to_glyphs(
        cairo_get_scaled_font(c->cairo), 0, 0, text, (int)strlen(text), &glyphs, &glyph_count,
        &clusters, &cluster_count, &flags);
    if (status != CAIRO_STATUS_SUCCESS) {
        canvas_fail(c, ATTN_ERR_INVALID_ARGUMENT, "figure: a text cannot be drawn: %s",
                    cairo_status_to_string(status));
        return false;
    }
    bool complete = true;
    size_t byte = 0;
    int glyph = 0;
    for (int i = 0; i < cluster_count && complete; i++) {
        for (int k = 0; k < clusters[i].num_glyphs; k++) {
            complete = complete && glyphs[glyph + k].index != 0;
        }
        if (!complete) {
            *missing = byte;
        }
        glyph += clusters[i].num_glyphs;
        byte += (size_t)clusters[i].num_bytes;
    }
    cairo_glyph_free(glyphs);
    cairo_text_cluster_free(clusters);
    return complete;
}

// The first character of well-formed UTF-8.
static uint32_t decode_character(const unsigned char *text)
{
    if (text[0] < 0x80) {
        return text[0];
    }
    const int more = text[0] >= 0xF0 ? 3 : text[0] >= 0xE0 ? 2 : 1;
    uint32_t character = text[0] & (0x3FU >> more);
    for (int i = 1; i <= more; i++) {
        character = character << 6 | (text[i] & 0x3FU);
    }
    return character;
}

// ---- shapes -------------------------------------------------------------------------------------

void canvas_fill(canvas *c, colour ink, double x, double y, double width, double height)
{
    if (canvas_failed(c)) {
        return;
    }
    cairo_set_source_rgb(c->cairo, ink.red, ink.green, ink.blue);
    cairo_rectangle(c->cairo, x, y, width, height);
    cairo_fill(c->cairo);
}

void canvas_frame(canvas *c, colour ink, double line, double x, double y, double width,
                  double height)
{
    if (canvas_failed(c)) {
        return;
    }
    cairo_set_source_rgb(c->cairo, ink.red, ink.green, ink.blue);
    cairo_set_line_width(c->cairo, line);
    cairo_rectangle(c->cairo, x, y, width, height);
    cairo_stroke(c->cairo);
}

void canvas_line(canvas *c, colour ink, double line, double x0, double y0, double x1, double y1)
{
    if (canvas_failed(c)) {
        return;
    }
    cairo_set_source_rgb(c->cairo, ink.red, ink.green, ink.blue);
    cairo_set_line_width(c->cairo, line);
    cairo_move_to(c->cairo, x0, y0);
    cairo_line_to(c->cairo, x1, y1);
    cairo_stroke(c->cairo);
}

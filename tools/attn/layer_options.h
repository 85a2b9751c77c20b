// layer_options.h: an attention layer of a model file, chosen and configured from the command line.
#ifndef ATTN_TOOL_LAYER_OPTIONS_H
#define ATTN_TOOL_LAYER_OPTIONS_H

#include "tensor_file.h"
#include "tool.h"

extern const option_group layer_group;  // which layer
extern const option_group module_group; // what the file does not say

// Finds the layer and completes its config from the options, the file's metadata and a config.json
// beside it. False after a message, with *status set.
bool choose_layer(const arguments *a, const tensor_file *file, const char *path, attn_layer *layer,
                  int *status);

// Only the config of a layer that was found already.
bool complete_layer(const arguments *a, const tensor_file *file, const char *path,
                    attn_layer *layer, int *status);

// Creates the module and loads the layer into it. NULL after a message.
attn_module *load_layer(const arguments *a, const attn_context *context, const tensor_file *file,
                        const attn_layer *layer);

#endif

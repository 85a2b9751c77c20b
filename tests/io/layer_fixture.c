#include "layer_fixture.h"

#include "status.h"

attn_tensor *fixture_add(layer_fixture *f, const char *name, int64_t rows, int64_t columns)
{
    assert_true(f->count < FIXTURE_MOST);
    const int64_t shape[] = {rows, columns};
    const int32_t ndim = columns == 0 ? 1 : 2;
    attn_named_tensor *entry = &f->tensors[f->count++];
    attn_error error;
    ASSERT_OK(attn_tensor_create(f->context, ATTN_F32, ndim, shape, &entry->tensor, &error));
    entry->name = name;
    float *values = entry->tensor.data;
    for (int64_t i = 0; i < attn_tensor_count(&entry->tensor); i++) {
        values[i] = f->next++;
    }
    return &entry->tensor;
}

void fixture_clear(layer_fixture *f)
{
    for (int64_t i = 0; i < f->count; i++) {
        attn_tensor_destroy(f->context, &f->tensors[i].tensor);
    }
    *f = (layer_fixture){.context = f->context};
}

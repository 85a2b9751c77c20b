// attn/export.h: which symbols the shared library shows, and how C++ sees them.
#ifndef ATTN_EXPORT_H
#define ATTN_EXPORT_H

#if defined(__GNUC__)
#define ATTN_API __attribute__((visibility("default")))
#else
#define ATTN_API
#endif

#ifdef __cplusplus
#define ATTN_BEGIN_DECLS extern "C" {
#define ATTN_END_DECLS }
#else
#define ATTN_BEGIN_DECLS
#define ATTN_END_DECLS
#endif

#endif

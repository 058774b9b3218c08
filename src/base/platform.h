/* platform.h - the few things that depend on compiler or sanitizer. */
#ifndef TP_BASE_PLATFORM_H
#define TP_BASE_PLATFORM_H

#if defined(__SANITIZE_ADDRESS__)
#define TP_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define TP_ASAN 1
#endif
#endif

#ifdef TP_ASAN
#include <sanitizer/asan_interface.h>
#define TP_POISON(p, n) __asan_poison_memory_region((p), (n))
#define TP_UNPOISON(p, n) __asan_unpoison_memory_region((p), (n))
#else
#define TP_POISON(p, n) ((void)(p), (void)(n))
#define TP_UNPOISON(p, n) ((void)(p), (void)(n))
#endif

#define TP_LIKELY(x) __builtin_expect(!!(x), 1)
#define TP_UNLIKELY(x) __builtin_expect(!!(x), 0)
#define TP_COUNTOF(a) (sizeof(a) / sizeof *(a))
#define TP_MIN(a, b) ((a) < (b) ? (a) : (b))
#define TP_MAX(a, b) ((a) > (b) ? (a) : (b))

#endif

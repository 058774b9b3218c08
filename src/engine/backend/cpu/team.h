/* team.h - OpenMP's order, told to the thread sanitizer.
 *
 * OpenMP's library keeps a team in order with means of its own, which the sanitizer does not
 * see: without help it reports every hand-over as a race.  What a thread did before
 * TP_TEAM_RELEASE(p) is known to whoever comes out of TP_TEAM_ACQUIRE(p).  A function with a
 * region in it is TP_TEAM_FUNCTION: the sanitizer passes over the function itself (not what it
 * calls), for the region's variables travel before a worker can say so.  Elsewhere all three
 * are nothing. */
#ifndef TP_ENGINE_BACKEND_CPU_TEAM_H
#define TP_ENGINE_BACKEND_CPU_TEAM_H

#if defined(__SANITIZE_THREAD__)
#define TP_TEAM_IS_WATCHED 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define TP_TEAM_IS_WATCHED 1
#endif
#endif

#ifdef TP_TEAM_IS_WATCHED
#include <sanitizer/tsan_interface.h>
#define TP_TEAM_RELEASE(p) __tsan_release(p)
#define TP_TEAM_ACQUIRE(p) __tsan_acquire(p)
#define TP_TEAM_FUNCTION __attribute__((no_sanitize("thread")))
#else
#define TP_TEAM_RELEASE(p) ((void)(p))
#define TP_TEAM_ACQUIRE(p) ((void)(p))
#define TP_TEAM_FUNCTION
#endif

#endif

/* revision.c - another version to compare with: a program that exists, or a revision
 * of the repository around us, checked out and built once; what stays is the program:
 *
 *     $XDG_CACHE_HOME/temper/bench/<commit>/temper         the program
 *     $XDG_CACHE_HOME/temper/bench/<commit>.<pid>/source   while it is built: a git worktree
 *     $XDG_CACHE_HOME/temper/bench/<commit>.<pid>/build    ... and its build
 *
 * The second folder and git's note of the worktree go in any case, built or not: a revision
 * that was half checked out or half built is never taken for one. */
#include <string.h>
#include <unistd.h>

#include "base/cpu.h"
#include "base/files.h"
#include "base/working.h"
#include "instrument/bench/process.h"
#include "instrument/bench/session.h"

enum { MAX_LOG = 4 << 20 };

/* Run and keep the first line of its output in `out` (which may be NULL). */
static tp_status run(const tp_bench_setup *f, const char *folder, const char *const *argv,
                     const char *doing, double limit_s, char *out, size_t cap, tp_error *err)
{
    TP_OWN(tp_buf) text = {0};
    tp_process_usage usage;
    tp_process_command command = {
        .argv = argv, .folder = folder, .timeout_s = limit_s, .keep_output = !out};
    TP_TRY(tp_process_read(&command, MAX_LOG, &text, &usage, err));
    if (usage.has_timed_out || usage.exit_status != 0) {
        /* The end of a build's output says what went wrong. */
        const char *tail = tp_buf_str(&text) + (text.len > 2000 ? text.len - 2000 : 0);
        if (!out)
            tp_bench_note(f, "%s", tail);
        return tp_fail(err, TP_ERR_IO, "%s failed%s", doing,
                       usage.has_timed_out ? ": it took too long" : "");
    }
    if (out)
        snprintf(out, cap, "%.*s", (int)strcspn(tp_buf_str(&text), "\n"), tp_buf_str(&text));
    return TP_OK;
}

static tp_status check_out(const tp_bench_setup *f, const char *top, const char *source,
                           const char *commit, tp_error *err)
{
    const char *add[] = {"git", "worktree", "add", "--detach", "--force", source, commit, NULL};
    char ignored[16];
    return run(f, top, add, "git worktree add", 600, ignored, sizeof ignored, err);
}

static tp_status build(const tp_bench_setup *f, const char *source, const char *folder,
                       tp_error *err)
{
    const char *level = getenv("CMAKE_BUILD_PARALLEL_LEVEL");
    char jobs[16];
    const char *configure[] = {"cmake",
                               "-S",
                               source,
                               "-B",
                               folder,
                               "-DCMAKE_BUILD_TYPE=RelWithDebInfo",
                               "-DTEMPER_TESTS=OFF",
                               NULL};
    /* make without a number starts as many compilers as there are files. */
    const char *make[] = {"cmake", "--build",  folder,   "--parallel",
                          jobs,    "--target", "temper", NULL};
    snprintf(jobs, sizeof jobs, "%.8s", level ? level : "");
    if (!level || !*level)
        snprintf(jobs, sizeof jobs, "%d", tp_cpu_count());
    TP_TRY(run(f, NULL, configure, "cmake", 600, NULL, 0, err));
    return run(f, NULL, make, "the build", 3600, NULL, 0, err);
}

static void clean_up(const tp_bench_setup *f, const char *top, const char *work)
{
    const char *prune[] = {"git", "worktree", "prune", NULL};
    char ignored[16];
    tp_error err = {0};
    if (tp_dir_remove(work, &err) != TP_OK)
        tp_bench_note(f, "%s", err.message);
    if (run(f, top, prune, "git worktree prune", 60, ignored, sizeof ignored, &err) != TP_OK &&
        err.status != TP_ERR_INTERRUPTED)
        tp_bench_note(f, "%s", err.message);
}

static tp_status build_into(const tp_bench_setup *f, const char *top, const char *commit,
                            const char *work, const char *program, tp_error *err)
{
    char source[3200], target[3200], built[3300];
    snprintf(source, sizeof source, "%s/source", work);
    snprintf(target, sizeof target, "%s/build", work);
    snprintf(built, sizeof built, "%s/src/cli/temper", target);
    TP_TRY(tp_dir_make(work, err));
    tp_status status = check_out(f, top, source, commit, err);
    if (status == TP_OK)
        status = build(f, source, target, err);
    if (status == TP_OK && access(built, X_OK) != 0)
        status = tp_fail(err, TP_ERR_IO, "the build left no program src/cli/temper");
    if (status == TP_OK && rename(built, program) != 0)
        status = tp_fail(err, TP_ERR_IO, "cannot move %s to %s", built, program);
    clean_up(f, top, work);
    return status;
}

static tp_status build_revision(const tp_bench_setup *f, const char *revision, char *out,
                                char *label, tp_error *err)
{
    char top[2048], commit[64], cache[2200], folder[2300], work[2400], wanted[300];
    char doing[160];
    const char *root[] = {"git", "rev-parse", "--show-toplevel", NULL};
    const char *resolve[] = {"git",  "rev-parse", "--verify", "--quiet", "--end-of-options",
                             wanted, NULL};
    if (run(f, NULL, root, "git", 60, top, sizeof top, err) != TP_OK)
        return tp_fail(err, TP_ERR_CONFIG,
                       "--against '%s': no such program, and this is no git repository to build a "
                       "revision of",
                       revision);
    snprintf(wanted, sizeof wanted, "%.250s^{commit}", revision);
    if (run(f, top, resolve, "git", 60, commit, sizeof commit, err) != TP_OK || strlen(commit) < 40)
        return tp_fail(err, TP_ERR_CONFIG,
                       "--against '%s': neither a program nor a revision of '%s'%s", revision, top,
                       tp_file_exists(revision) ? "; the file there cannot be executed" : "");
    TP_TRY(tp_cache_path("bench", false, cache, sizeof cache, err));
    snprintf(folder, sizeof folder, "%s/%s", cache, commit);
    snprintf(out, 4096, "%s/temper", folder);
    snprintf(label, 128, "%.40s (%.12s)", revision, commit);
    if (tp_file_exists(out))
        return TP_OK;
    snprintf(work, sizeof work, "%s.%d", folder, (int)getpid());
    tp_bench_note(f, "building %s, once; this takes minutes", label);
    snprintf(doing, sizeof doing, "building %s", label);
    tp_work_tell(doing, 0, 0);
    TP_TRY(tp_dir_make(folder, err));
    tp_status status = build_into(f, top, commit, work, out, err);
    if (status != TP_OK) {
        rmdir(folder);
        return tp_error_prefix(err, status, "--against '%.200s' (%.12s): ", revision, commit);
    }
    return status;
}

tp_status tp_bench_other_version(const tp_bench_setup *f, char *out, char *label, tp_error *err)
{
    const char *against = f->o.against;
    if (!tp_dir_exists(against) && access(against, X_OK) == 0) {
        if (!realpath(against, out))
            return tp_fail(err, TP_ERR_IO, "--against '%s' cannot be resolved", against);
        snprintf(label, 128, "%.120s", against);
        return TP_OK;
    }
    return build_revision(f, against, out, label, err);
}

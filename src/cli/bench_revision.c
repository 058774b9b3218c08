/* bench_revision.c - another version to compare with: a program that exists, or a revision
 * of the repository around us, checked out and built once into the cache:
 *
 *     $XDG_CACHE_HOME/temper/bench/<commit>/source    a git worktree, detached
 *     $XDG_CACHE_HOME/temper/bench/<commit>/build     its build; src/cli/temper is the program */
#include <string.h>
#include <unistd.h>

#include "base/files.h"
#include "cli/bench.h"
#include "instrument/bench/process.h"

enum { MAX_LOG = 4 << 20 };

/* Run and keep the first line of its output in `out` (which may be NULL). */
static tp_status run(const char *folder, const char *const *argv, const char *doing, double limit_s,
                     char *out, size_t cap, tp_error *err)
{
    tp_buf text = {0};
    tp_process_usage usage;
    tp_process_command command = {
        .argv = argv, .folder = folder, .timeout_s = limit_s, .keep_output = !out};
    tp_status status = tp_process_read(&command, MAX_LOG, &text, &usage, err);
    if (status == TP_OK && (usage.has_timed_out || usage.exit_status != 0)) {
        /* The end of a build's output says what went wrong. */
        const char *tail = tp_buf_str(&text) + (text.len > 2000 ? text.len - 2000 : 0);
        if (!out)
            fputs(tail, stderr);
        status = tp_fail(err, TP_ERR_CONFIG, "%s failed%s", doing,
                         usage.has_timed_out ? ": it took too long" : "");
    }
    if (status == TP_OK && out)
        snprintf(out, cap, "%.*s", (int)strcspn(tp_buf_str(&text), "\n"), tp_buf_str(&text));
    tp_buf_release(&text);
    return status;
}

static tp_status cache_folder(const char *commit, char *out, size_t cap, tp_error *err)
{
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    if ((!cache || !*cache) && (!home || !*home))
        return tp_fail(err, TP_ERR_CONFIG, "no place to build in: set XDG_CACHE_HOME");
    snprintf(out, cap, "%s%s/temper/bench/%s", cache && *cache ? cache : home,
             cache && *cache ? "" : "/.cache", commit);
    return tp_dir_make(out, err);
}

static tp_status check_out(const char *top, const char *source, const char *commit, tp_error *err)
{
    char file[4200];
    const char *prune[] = {"git", "worktree", "prune", NULL};
    const char *add[] = {"git", "worktree", "add", "--detach", "--force", source, commit, NULL};
    char ignored[16];
    snprintf(file, sizeof file, "%s/CMakeLists.txt", source);
    if (tp_file_exists(file))
        return TP_OK;
    TP_TRY(run(top, prune, "git worktree prune", 60, ignored, sizeof ignored, err));
    return run(top, add, "git worktree add", 600, ignored, sizeof ignored, err);
}

static tp_status build(const char *source, const char *folder, tp_error *err)
{
    const char *configure[] = {"cmake",
                               "-S",
                               source,
                               "-B",
                               folder,
                               "-DCMAKE_BUILD_TYPE=RelWithDebInfo",
                               "-DTEMPER_TESTS=OFF",
                               NULL};
    const char *make[] = {"cmake", "--build", folder, "--parallel", "--target", "temper", NULL};
    TP_TRY(run(NULL, configure, "cmake", 600, NULL, 0, err));
    return run(NULL, make, "the build", 3600, NULL, 0, err);
}

static tp_status build_revision(const char *revision, char *out, char *label, tp_error *err)
{
    char top[2048], commit[64], folder[3000], source[3100], target[3100], wanted[300];
    const char *root[] = {"git", "rev-parse", "--show-toplevel", NULL};
    const char *resolve[] = {"git", "rev-parse", "--verify", "--quiet", wanted, NULL};
    if (run(NULL, root, "git", 60, top, sizeof top, err) != TP_OK)
        return tp_fail(err, TP_ERR_CONFIG,
                       "--against '%s': no such program, and this is no git repository to build a "
                       "revision of",
                       revision);
    snprintf(wanted, sizeof wanted, "%.250s^{commit}", revision);
    if (run(top, resolve, "git", 60, commit, sizeof commit, err) != TP_OK || strlen(commit) < 40)
        return tp_fail(err, TP_ERR_CONFIG,
                       "--against '%s': neither a program nor a revision of '%s'", revision, top);
    TP_TRY(cache_folder(commit, folder, sizeof folder, err));
    snprintf(source, sizeof source, "%s/source", folder);
    snprintf(target, sizeof target, "%s/build", folder);
    snprintf(out, 4096, "%s/src/cli/temper", target);
    snprintf(label, 128, "%.40s (%.12s)", revision, commit);
    if (tp_file_exists(out))
        return TP_OK;
    fprintf(stderr, "temper bench: building %s in %s\n", label, folder);
    TP_TRY(check_out(top, source, commit, err));
    return build(source, target, err);
}

tp_status tp_bench_other_version(const char *against, char *out, char *label, tp_error *err)
{
    if (!tp_dir_exists(against) && access(against, X_OK) == 0) {
        if (!realpath(against, out))
            return tp_fail(err, TP_ERR_IO, "--against '%s' cannot be resolved", against);
        snprintf(label, 128, "%.120s", against);
        return TP_OK;
    }
    return build_revision(against, out, label, err);
}

/* env_library.c - judging by a shared library: temper/environment.h. */
#include <dlfcn.h>
#include <math.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "base/files.h"
#include "base/platform.h"
#include "engine/reward/environment_rows.h"
#include "temper/environment.h"

typedef struct {
    const char *path;
    const tp_json *settings;
    bool thread_safe;
} settings;

/* clang-format off */
static const tp_option rows[] = {
    TEXT("path", path, "\?\?\?", "The shared library; a name with a slash is that file.")
    TREE("settings", settings, "null", "Handed to the library as JSON.")
    FLAG("thread_safe", thread_safe, "false", "Several threads may ask it at once.")
};
/* clang-format on */

typedef struct {
    void *handle, *state;
    tp_judge_score_function *score;
    tp_judge_close_function *close;
    pthread_mutex_t mutex;
} library;

/* A function pointer from dlsym(), which gives an object pointer. */
static tp_status find(void *handle, const char *path, const char *name, void *ret, tp_error *err)
{
    void *symbol = dlsym(handle, name);
    if (!symbol)
        return tp_fail(err, TP_ERR_FORMAT,
                       "'%s' does not export %s; temper/environment.h says what is needed", path,
                       name);
    memcpy(ret, &symbol, sizeof symbol);
    return TP_OK;
}

static tp_status connect_library(library *lib, const settings *o, tp_error *err)
{
    tp_judge_open_function *open_it = NULL;
    char message[512] = "";
    TP_TRY(find(lib->handle, o->path, "tp_judge_open", &open_it, err));
    TP_TRY(find(lib->handle, o->path, "tp_judge_score", &lib->score, err));
    TP_TRY(find(lib->handle, o->path, "tp_judge_close", &lib->close, err));
    TP_OWN(tp_buf) json = {0};
    tp_json_text(o->settings, &json);
    int rc = open_it(o->settings ? tp_buf_str(&json) : "{}", &lib->state, message, sizeof message);
    message[sizeof message - 1] = 0;
    if (rc == 0)
        return TP_OK;
    lib->close = NULL; /* there is nothing to close */
    return tp_fail(err, TP_ERR_CONFIG, "'%s': %s", o->path,
                   message[0] ? message : "tp_judge_open failed without a message");
}

static void close_library(void *state)
{
    library *lib = state;
    if (lib->close)
        lib->close(lib->state);
    if (lib->handle)
        dlclose(lib->handle);
    pthread_mutex_destroy(&lib->mutex);
    free(lib);
}

static tp_status open_library(const void *settings_, const tp_environment_context *context,
                              void **ret_state, tp_error *err)
{
    (void)context;
    const settings *o = settings_;
    if (strchr(o->path, '/')) { /* dlopen() would wait for the writer of a pipe */
        int fd;
        int64_t size;
        TP_TRY(tp_input_open(o->path, TP_INPUT_FILE, &fd, &size, err));
        close(fd);
    }
    void *handle = dlopen(o->path, RTLD_NOW | RTLD_LOCAL);
    if (!handle)
        return tp_fail(err, TP_ERR_IO, "cannot load a library: %s", dlerror());
    library *lib = tp_new(1, sizeof *lib);
    lib->handle = handle;
    pthread_mutex_init(&lib->mutex, NULL);
    TP_HAND_OVER(connect_library(lib, o, err), ret_state, lib, close_library(lib));
}

static void give(const tp_judge_verdict *v, int rc, tp_reward *ret)
{
    if (rc != 0) {
        tp_reward_exclude(ret, TP_REWARD_REFUSED, "%.*s", (int)sizeof v->message - 1,
                          v->message[0] ? v->message : "the library gave no verdict");
        return;
    }
    tp_correct correct = v->correct == 1   ? TP_CORRECT_YES
                         : v->correct == 0 ? TP_CORRECT_NO
                         : v->reward == 1  ? TP_CORRECT_YES
                         : v->reward == 0  ? TP_CORRECT_NO
                                           : TP_CORRECT_UNKNOWN;
    char answer[sizeof v->answer];
    memcpy(answer, v->answer, sizeof answer);
    answer[sizeof answer - 1] = 0;
    tp_reward_give(ret, v->reward, correct, answer[0] ? answer : NULL);
}

static void score(const void *settings_, void *state, const tp_completion *c, tp_reward *ret)
{
    const settings *o = settings_;
    library *lib = state;
    TP_OWN(tp_buf) row = {0};
    tp_json_text(c->prompt->row, &row);
    tp_judge_question question = {.size = sizeof question,
                                  .prompt_id = c->prompt->id,
                                  .prompt = c->prompt->text,
                                  .truth = c->prompt->truth,
                                  .row = c->prompt->row ? tp_buf_str(&row) : NULL,
                                  .completion = c->text,
                                  .completion_bytes = c->n_text,
                                  .n_tokens = c->n_ids,
                                  .sample = c->sample,
                                  .is_truncated = c->is_truncated};
    tp_judge_verdict verdict = {.size = sizeof verdict, .reward = NAN, .correct = -1};
    if (!o->thread_safe)
        pthread_mutex_lock(&lib->mutex);
    int rc = lib->score(lib->state, &question, &verdict);
    if (!o->thread_safe)
        pthread_mutex_unlock(&lib->mutex);
    verdict.message[sizeof verdict.message - 1] = 0;
    give(&verdict, rc, ret);
}

const tp_environment_kind tp_env_library = {.name = "library",
                                            .doc = "Judged by a shared library of three functions.",
                                            .is_outside = true,
                                            .settings = {rows, TP_COUNTOF(rows), sizeof(settings)},
                                            .open = open_library,
                                            .close = close_library,
                                            .score = score};

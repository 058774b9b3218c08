/* log.c - one sink for messages, standard error unless told otherwise. */
#include "base/log.h"
#include "base/terminal.h"

#include <pthread.h>
#include <string.h>

static void write_stderr(void *user, tp_log_level level, const char *component, const char *message)
{
    (void)user;
    static const char *const words[] = {"debug", "note", "warning"};
    TP_OWN(tp_buf) shown = {0};
    tp_buf_add_shown(&shown, message, strlen(message), true);
    fprintf(stderr, "%s: %s: %s\n", words[level], component, tp_buf_str(&shown));
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static tp_log_sink current_sink = write_stderr;
static void *current_user;
static tp_log_level least_level = TP_LOG_NOTICE;

void tp_log_set_sink(tp_log_sink sink, void *user)
{
    pthread_mutex_lock(&lock);
    current_sink = sink ? sink : write_stderr;
    current_user = user;
    pthread_mutex_unlock(&lock);
}

void tp_log_set_level(tp_log_level least)
{
    pthread_mutex_lock(&lock);
    least_level = least;
    pthread_mutex_unlock(&lock);
}

void tp_log(tp_log_level level, const char *component, const char *fmt, ...)
{
    char message[1024];
    TP_FORMAT(message, fmt);
    pthread_mutex_lock(&lock);
    if (level >= least_level)
        current_sink(current_user, level, component, message);
    pthread_mutex_unlock(&lock);
}

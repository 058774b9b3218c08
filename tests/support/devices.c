/* devices.c - one device per backend and number of threads, one team per number of threads, for as
 * long as a test program runs. */
#include "support/devices.h"

#include <string.h>

enum { MOST = 16 };

static struct {
    const char *backend;
    int threads;
    tp_device *device;
} opened[MOST];
static int n_opened;
static tp_team *teams[MOST];
static int n_teams;

static void close_all(void)
{
    for (int i = 0; i < n_opened; i++)
        tp_device_close(opened[i].device);
}

tp_device *device_of(const char *backend, int threads)
{
    for (int i = 0; i < n_opened; i++)
        if (strcmp(opened[i].backend, backend) == 0 && opened[i].threads == threads)
            return opened[i].device;
    const tp_device_options options = {.threads = threads};
    TP_ASSERT(n_opened < MOST);
    MUST(tp_device_open(tp_backend_find(backend), &options, &opened[n_opened].device, NULL));
    if (n_opened == 0)
        atexit(close_all);
    opened[n_opened].backend = backend;
    opened[n_opened].threads = threads;
    return opened[n_opened++].device;
}

static void free_teams(void)
{
    for (int i = 0; i < n_teams; i++)
        tp_team_free(teams[i]);
}

tp_team *team_of(int threads)
{
    for (int i = 0; i < n_teams; i++)
        if (tp_team_size(teams[i]) == threads)
            return teams[i];
    TP_ASSERT(n_teams < MOST);
    MUST(tp_team_create(&teams[n_teams], threads, threads, NULL));
    if (n_teams == 0)
        atexit(free_teams);
    return teams[n_teams++];
}

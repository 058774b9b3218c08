/* Every real trace cut short at 500 random places and with bits flipped 500 times, as files and
 * as the text inside a .gz; takes minutes, so it is not part of the usual tests.
 *
 *     check_cuts [FILE...]      default: ../shared/traces beside the repository
 *     CUTS=N                    instead of 500 */
#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/files.h"
#include "support/cuts.h"

static char paths[256][512];
static int n_paths;

static bool ends(const char *name, const char *ending)
{
    size_t n = strlen(name), k = strlen(ending);
    return n >= k && strcmp(name + n - k, ending) == 0;
}

static void find_files(const char *folder)
{
    DIR *d = opendir(folder);
    for (struct dirent *e; d && (e = readdir(d)) && n_paths < 256;)
        if (ends(e->d_name, ".json.gz") || ends(e->d_name, ".sqlite") || ends(e->d_name, ".pickle"))
            snprintf(paths[n_paths++], sizeof *paths, "%s/%s", folder, e->d_name);
    if (d)
        closedir(d);
}

static void tell(const char *what, const char *path, tp_cut_result r)
{
    const char *name = strrchr(path, '/');
    printf("%-12s %-40s %d, %d refused, rows %llu to %llu\n", what, name ? name + 1 : path, r.n,
           r.refused, (unsigned long long)r.least, (unsigned long long)r.most);
    fflush(stdout);
}

static void damaged_files(void **state)
{
    const char *number = getenv("CUTS");
    int n = number ? atoi(number) : 500;
    if (n_paths == 0)
        skip();
    for (int i = 0; i < n_paths; i++) {
        tell("cut", paths[i], ingest_check_cuts(paths[i], n, 11));
        if (ends(paths[i], ".gz"))
            tell("cut inside", paths[i], ingest_check_cuts_inside(paths[i], n, 12));
        tell("flipped", paths[i], ingest_check_flips(paths[i], n, 13));
    }
}

int main(int argc, char **argv)
{
    for (int i = 1; i < argc && n_paths < 256; i++)
        snprintf(paths[n_paths++], sizeof *paths, "%s", argv[i]);
    if (argc < 2)
        find_files(TP_SOURCE_DIR "/../shared/traces");
    const struct CMUnitTest tests[] = {cmocka_unit_test(damaged_files)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

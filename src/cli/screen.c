/* screen.c - what standard output and standard error are, and how wide. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/cli.h"

bool tp_cli_is_pipe(void)
{
    struct stat st;
    return fstat(STDOUT_FILENO, &st) == 0 && (S_ISFIFO(st.st_mode) || S_ISSOCK(st.st_mode));
}

bool tp_cli_flush(void)
{
    static int why; /* a stream that failed drops what it held, and fails no second time */
    errno = 0;
    if (fflush(stdout) == 0 && !ferror(stdout))
        return true;
    why = why ? why : errno;
    errno = why;
    return false;
}

bool tp_cli_terminal(FILE *out)
{
    const char *term = getenv("TERM");
    return isatty(out == stdout ? STDOUT_FILENO : STDERR_FILENO) &&
           !(term && strcmp(term, "dumb") == 0);
}

/* Of COLUMNS or the terminal; 0: not known. */
static int screen_width(int fd)
{
    struct winsize size;
    const char *columns = getenv("COLUMNS");
    int64_t n;
    if (columns && tp_str_to_i64(columns, &n) && n >= 40 && n <= 1000)
        return (int)n;
    if (isatty(fd) && ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col >= 40)
        return size.ws_col;
    return 0;
}

int tp_cli_width(void)
{
    int width = screen_width(STDOUT_FILENO);
    return width ? width : 110;
}

int tp_cli_error_width(void)
{
    int width = screen_width(STDERR_FILENO);
    return width ? width : 80;
}

void tp_cli_wrap(void) { tp_terminal_wrap(screen_width(STDOUT_FILENO)); }

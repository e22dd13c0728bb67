/* A file system that lies or lacks something: LAYER names what. A rename is done and, three times in ten, reported as failed. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

int renameat(int, const char *, int, const char *);

static int is(const char *what)
{
    const char *layer = getenv("LAYER");
    return layer && strstr(layer, what);
}

int rename(const char *from, const char *to)
{
    struct timespec now;
    int done = renameat(AT_FDCWD, from, AT_FDCWD, to);
    clock_gettime(CLOCK_MONOTONIC, &now);
    if (!is("rename") || now.tv_nsec / 1000 % 10 > 2)
        return done;
    errno = EIO;
    return -1;
}

int symlink(const char *target, const char *link)
{
    if (!is("symlink"))
        return symlinkat(target, AT_FDCWD, link);
    errno = EPERM;
    return -1;
}

int flock(int file, int operation)
{
    if (!is("flock"))
        return syscall(SYS_flock, file, operation);
    errno = ENOLCK;
    return -1;
}

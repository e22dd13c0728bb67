/* A file system that lies or lacks something: LAYER names what.
   rename: each is done and, three times in ten, reported as failed;
   stale: it always is, and with undone it is not done either;
   noreplace: a rename cannot refuse to replace;
   hardlink, symlink: there are no such links;
   flock: there are no locks;
   hang: a request for a lock is never answered. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static int is(const char *what)
{
    const char *layer = getenv("LAYER");
    return layer && strstr(layer, what);
}

static int fails(int error)
{
    errno = error;
    return -1;
}

static int renamed(const char *from, const char *to, long flags)
{
    struct timespec now;
    int done = 0;
    if (!is("undone"))
        done = syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, flags);
    clock_gettime(CLOCK_MONOTONIC, &now);
    if (is("stale"))
        return fails(ESTALE);
    if (is("rename") && now.tv_nsec / 1000 % 10 <= 2)
        return fails(EIO);
    return done;
}

int rename(const char *from, const char *to)
{
    return renamed(from, to, 0);
}

/* q renames by this where nothing must be replaced. */
int renameat2(int from_directory, const char *from, int to_directory, const char *to, unsigned flags)
{
    (void)from_directory, (void)to_directory;
    if (is("noreplace"))
        return fails(EINVAL);
    return renamed(from, to, flags);
}

int linkat(int from_directory, const char *from, int to_directory, const char *to, int flags)
{
    if (is("hardlink"))
        return fails(EPERM);
    return syscall(SYS_linkat, from_directory, from, to_directory, to, flags);
}

int symlink(const char *target, const char *link)
{
    if (is("symlink"))
        return fails(EPERM);
    return symlinkat(target, AT_FDCWD, link);
}

int flock(int file, int operation)
{
    while (is("hang"))
        pause();
    if (is("flock"))
        return fails(ENOLCK);
    return syscall(SYS_flock, file, operation);
}

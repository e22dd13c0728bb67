/* A file system that lies or lacks something: LAYER names what. rename: each is done and, three times in ten, reported as failed;
   stale: it always is, and with undone it is not done either; noreplace: a rename cannot refuse to replace; hardlink, symlink: there are no such links; flock: there are no locks; hang: a
   request for a lock is never answered. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
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

static long real_syscall(long number, long a, long b, long c, long d, long e, long f)
{
    static long (*real)(long, ...);
    if (!real)
        real = (long (*)(long, ...))dlsym(RTLD_NEXT, "syscall");
    return real(number, a, b, c, d, e, f);
}

static int renamed(const char *from, const char *to, long flags)
{
    struct timespec now;
    int done = 0;
    if (!is("undone"))
        done = real_syscall(SYS_renameat2, AT_FDCWD, (long)from, AT_FDCWD, (long)to, flags, 0);
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
long syscall(long number, ...)
{
    va_list list;
    va_start(list, number);
    long a = va_arg(list, long), b = va_arg(list, long), c = va_arg(list, long);
    long d = va_arg(list, long), e = va_arg(list, long), f = va_arg(list, long);
    va_end(list);
    if (number != SYS_renameat2)
        return real_syscall(number, a, b, c, d, e, f);
    if (is("noreplace"))
        return fails(EINVAL);
    return renamed((const char *)b, (const char *)d, e);
}

int linkat(int from_folder, const char *from, int to_folder, const char *to, int flags)
{
    if (is("hardlink"))
        return fails(EPERM);
    return real_syscall(SYS_linkat, from_folder, (long)from, to_folder, (long)to, flags, 0);
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
    return real_syscall(SYS_flock, file, operation, 0, 0, 0, 0);
}

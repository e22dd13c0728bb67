// Ways out of a confined command, one in each run: confined WAY [WORDS…] prints “worked” where it gets through, and else the
// name of the error. Linux only.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/fs.h>
#include <linux/io_uring.h>
#include <linux/netlink.h>
#include <linux/perf_event.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/acct.h>
#include <sys/fanotify.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/ipc.h>
#include <sys/klog.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/msg.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/reboot.h>
#include <sys/resource.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/swap.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/time.h>
#include <sys/timex.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <utime.h>
#if defined(__x86_64__)
#include <sys/io.h>
#endif

// Newer than the headers of some systems; the numbers are the same on all architectures.
enum { FCHMODAT2 = 452, SETXATTRAT = 463, GETXATTRAT = 464, REMOVEXATTRAT = 466, FILE_SETATTR = 469, OPEN_TREE = 428 };

static int tell(long result) {
    if (result >= 0) {
        puts("worked");
        return 0;
    }
    const char *name = strerrorname_np(errno);
    puts(name ? name : "unknown error");
    return 1;
}

// Prints what can be read from a descriptor, too.
static int tell_contents(int descriptor) {
    char text[256] = "";
    ssize_t length = descriptor < 0 ? -1 : read(descriptor, text, sizeof text - 1);
    int status = tell(length);
    if (length > 0)
        puts(text);
    return status;
}

static int fail(int number) {
    errno = number;
    return tell(-1);
}

// The descriptor of a Unix socket, connected to a path or, where it begins with @, to an abstract name.
static socklen_t unix_address(const char *path, struct sockaddr_un *address) {
    memset(address, 0, sizeof *address);
    address->sun_family = AF_UNIX;
    strncpy(address->sun_path, path, sizeof address->sun_path - 1);
    if (path[0] != '@')
        return sizeof *address;
    address->sun_path[0] = 0;
    return offsetof(struct sockaddr_un, sun_path) + strlen(path);
}

static int connect_unix(int type, const char *path) {
    struct sockaddr_un address;
    socklen_t length = unix_address(path, &address);
    int descriptor = socket(AF_UNIX, type, 0);
    return descriptor < 0 ? -1 : connect(descriptor, (struct sockaddr *)&address, length);
}

// One end of a pair, sent from to an address of somebody else.
static long pair_to(int type, const char *path) {
    struct sockaddr_un address;
    socklen_t length = unix_address(path, &address);
    int ends[2];
    if (socketpair(AF_UNIX, type, 0, ends) < 0)
        return -1;
    return sendto(ends[0], "out", 3, 0, (struct sockaddr *)&address, length);
}

static int connect_inet(int family, int type, int port) {
    int descriptor = socket(family, type, 0);
    if (descriptor < 0)
        return -1;
    struct sockaddr_in four = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_port = htons(port), .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    if (family == AF_INET)
        return connect(descriptor, (struct sockaddr *)&four, sizeof four);
    return connect(descriptor, (struct sockaddr *)&six, sizeof six);
}

static int listen_inet(void) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int descriptor = socket(AF_INET, SOCK_STREAM, 0);
    if (descriptor < 0 || bind(descriptor, (struct sockaddr *)&address, sizeof address) < 0)
        return -1;
    return listen(descriptor, 1);
}

// Opens a file without a call of open, by a ring.
static int open_by_ring(const char *path) {
    struct io_uring_params parameters = {0};
    int ring = syscall(SYS_io_uring_setup, 4, &parameters);
    if (ring < 0)
        return -1;
    size_t size = parameters.sq_off.array + parameters.sq_entries * sizeof(unsigned);
    size_t more = parameters.cq_off.cqes + parameters.cq_entries * sizeof(struct io_uring_cqe);
    char *queue = mmap(0, size > more ? size : more, PROT_READ | PROT_WRITE, MAP_SHARED, ring, IORING_OFF_SQ_RING);
    struct io_uring_sqe *entry = mmap(0, sizeof *entry * parameters.sq_entries, PROT_READ | PROT_WRITE, MAP_SHARED, ring,
                                      IORING_OFF_SQES);
    memset(entry, 0, sizeof *entry);
    entry->opcode = IORING_OP_OPENAT;
    entry->fd = AT_FDCWD;
    entry->addr = (unsigned long)path;
    entry->open_flags = O_RDONLY;
    *(unsigned *)(queue + parameters.sq_off.array) = 0;
    *(unsigned *)(queue + parameters.sq_off.tail) += 1;
    if (syscall(SYS_io_uring_enter, ring, 1, 1, IORING_ENTER_GETEVENTS, 0, 0) < 0)
        return -1;
    int result = ((struct io_uring_cqe *)(queue + parameters.cq_off.cqes))->res;
    if (result < 0) {
        errno = -result;
        return -1;
    }
    return result;
}

// A file opened by its handle, which no path leads to.
static int open_by_handle(const char *path, const char *mount) {
    struct {
        struct file_handle handle;
        char more[MAX_HANDLE_SZ];
    } found = {.handle.handle_bytes = MAX_HANDLE_SZ};
    int id;
    if (name_to_handle_at(AT_FDCWD, path, &found.handle, &id, 0) < 0)
        return -1;
    int directory = open(mount, O_RDONLY | O_DIRECTORY);
    return directory < 0 ? -1 : open_by_handle_at(directory, &found.handle, O_RDONLY);
}

static int child_in(unsigned long flags, int newer) {
    long child;
    if (newer) {
        struct clone_args arguments = {.flags = flags, .exit_signal = SIGCHLD};
        child = syscall(SYS_clone3, &arguments, sizeof arguments);
    } else {
        child = syscall(SYS_clone, flags | SIGCHLD, 0, 0, 0, 0);
    }
    if (child == 0)
        _exit(0);
    return child;
}

// A signal from the kernel to a process that is said to own a pipe.
static int signal_by_owner(int process) {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) < 0 || fcntl(ends[0], F_SETOWN, process) < 0 ||
        fcntl(ends[0], F_SETSIG, SIGUSR1) < 0 || fcntl(ends[0], F_SETFL, O_ASYNC) < 0)
        return -1;
    return write(ends[1], "x", 1);
}

// Whether a number is surely none of the parent's threads: the next processes have such numbers, too, and are not to be harmed.
static int is_another(int parent, int thread) {
    char path[50];
    snprintf(path, sizeof path, "/proc/%d/task/%d", parent, thread);
    return access("/proc/self/task", F_OK) == 0 && access(path, F_OK) < 0;
}

// Ends the parent by any of its threads, as soon as this runs.
static int kill_threads(int parent) {
    for (int round = 0; round < 3000; round++)
        for (int thread = parent + 1; thread < parent + 12; thread++)
            if (thread != getpid() && syscall(SYS_tgkill, parent, thread, SIGKILL) == 0)
                return 0;
    return -1;
}

// The same, by making each of them the owner of a socket. It ends with its parent: what starts next may get the same numbers.
static int own_threads(int parent) {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) < 0 || fcntl(ends[0], F_SETSIG, SIGKILL) < 0 ||
        fcntl(ends[0], F_SETFL, O_ASYNC | O_NONBLOCK) < 0)
        return -1;
    int result = -1;
    for (int round = 0; round < 400; round++)
        for (int thread = parent + 1; thread < parent + 12; thread++) {
            char byte;
            if (getppid() != parent)
                return 0;
            if (is_another(parent, thread) || ioctl(ends[0], FIOSETOWN, &thread) < 0)
                continue;
            result = write(ends[1], "x", 1) + read(ends[0], &byte, 1);
        }
    return result < 0 ? -1 : 0;
}

// The same, by the directories of /proc that stand for them.
static int kill_by_directories(int parent) {
    for (int round = 0; round < 300; round++)
        for (int thread = parent + 1; thread < parent + 12; thread++) {
            char path[30];
            snprintf(path, sizeof path, "/proc/%d", thread);
            int directory = is_another(parent, thread) ? -1 : open(path, O_RDONLY | O_DIRECTORY);
            if (directory < 0)
                continue;
            if (syscall(SYS_pidfd_send_signal, directory, SIGKILL, 0, 0) == 0)
                return 0;
            close(directory);
        }
    return -1;
}

static int watch(const char *path) {
    int descriptor = inotify_init1(0);
    return descriptor < 0 ? -1 : inotify_add_watch(descriptor, path, IN_ALL_EVENTS);
}

static int run_copy_in_memory(char **words) {
    char buffer[65536];
    ssize_t length;
    int from = open(words[0], O_RDONLY), to = memfd_create("copy", 0);
    if (from < 0 || to < 0)
        return -1;
    while ((length = read(from, buffer, sizeof buffer)) > 0)
        if (write(to, buffer, length) != length)
            return -1;
    return fexecve(to, words, environ);
}

#if defined(__x86_64__)
// A call by its number on 32 bits, which a filter for 64 bits could miss. The path lies below 4 GB.
static long call_of_32_bits(long number, const char *path, long second) {
    char *low = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
    strcpy(low, path);
    long result;
    __asm__ volatile("int $0x80" : "=a"(result) : "a"(number), "b"(low), "c"(second), "d"(0) : "memory", "r8", "r9", "r10", "r11");
    if (result < 0 && result > -4096) {
        errno = -result;
        return -1;
    }
    return result;
}
#endif

int main(int count, char **words) {
    setvbuf(stdout, 0, _IONBF, 0);
    char *self = words[0], *way = count > 1 ? words[1] : "";
    char *a = count > 2 ? words[2] : "", *b = count > 3 ? words[3] : "";
    int pid = atoi(a), here = AT_FDCWD;
    struct timespec times[2] = {{1, 0}, {1, 0}};
    struct timeval old_times[2] = {{1, 0}, {1, 0}};
    struct utimbuf oldest_times = {1, 1};
    char byte[1] = "";
#define WAY(name) if (!strcmp(way, name))
    // Reading.
    WAY("read") return tell_contents(open(a, O_RDONLY));
    WAY("read-of-parent") { // and of its threads, by a file of /proc; "worked" if any can be read
        char path[300];
        snprintf(path, sizeof path, "/proc/%d/task", getppid());
        DIR *tasks = opendir(path);
        for (struct dirent *task; tasks && (task = readdir(tasks));) {
            snprintf(path, sizeof path, "/proc/%d/task/%s/%s", getppid(), task->d_name, a);
            char byte;
            int file = *task->d_name == '.' ? -1 : open(path, O_RDONLY);
            if (file >= 0 && read(file, &byte, 1) == 1) return tell(0);
        }
        return tasks ? (errno = EACCES, tell(-1)) : tell(-1);
    }
    WAY("read-by-directory") { // the directory itself may be opened as a place
        int directory = open(a, O_PATH | O_DIRECTORY);
        return tell_contents(directory < 0 ? -1 : openat(directory, b, O_RDONLY));
    }
    WAY("read-after-chdir") return chdir(a) < 0 ? tell(-1) : tell_contents(open(b, O_RDONLY));
    WAY("read-after-chroot") {
        if (mkdir("jail", 0700) < 0 || chroot("jail") < 0)
            return tell(-1);
        for (int level = 0; level < 64; level++)
            if (chdir("..") < 0)
                return tell(-1);
        return tell_contents(open(a + 1, O_RDONLY));
    }
    WAY("read-by-place") { // opened without a right, and opened again
        char again[64];
        snprintf(again, sizeof again, "/proc/self/fd/%d", open(a, O_PATH));
        return tell_contents(open(again, O_RDONLY));
    }
    WAY("read-by-handle") return tell_contents(open_by_handle(a, b));
    WAY("read-by-ring") return tell_contents(open_by_ring(a));
    WAY("read-by-tree") return tell_contents(syscall(OPEN_TREE, here, a, 1) < 0 ? -1 : open(a, O_RDONLY));
    WAY("read-inherited") return tell_contents(pid);
    WAY("read-as-program") return tell(execv(a, words));
    WAY("read-as-program-at") return tell(execveat(here, a, words, environ, 0));
    WAY("list") {
        int directory = open(a, O_RDONLY | O_DIRECTORY);
        return tell(directory < 0 ? -1 : syscall(SYS_getdents64, directory, (char[4096]){0}, 4096));
    }
    WAY("watch") return tell(watch(a));
    WAY("watch-all") {
        int descriptor = fanotify_init(FAN_CLASS_NOTIF, O_RDONLY);
        return tell(descriptor < 0 ? -1 : fanotify_mark(descriptor, FAN_MARK_ADD | FAN_MARK_MOUNT, FAN_OPEN, here, a));
    }
    WAY("watch-names") {
        int descriptor = fanotify_init(FAN_CLASS_NOTIF | FAN_REPORT_DFID_NAME, O_RDONLY);
        return tell(descriptor < 0 ? -1 : fanotify_mark(descriptor, FAN_MARK_ADD, FAN_CREATE | FAN_ONDIR, here, a));
    }
    WAY("read-attribute") return tell(syscall(SYS_getxattr, a, "user.x", (char[64]){0}, 64));
    WAY("handle") {
        struct { struct file_handle handle; char more[MAX_HANDLE_SZ]; } found = {.handle.handle_bytes = MAX_HANDLE_SZ};
        int id;
        return tell(name_to_handle_at(here, a, &found.handle, &id, 0));
    }
    WAY("stat") { struct statx found; return tell(statx(here, a, 0, STATX_ALL, &found)); }
    // Writing.
    WAY("write") return tell(open(a, O_WRONLY));
    WAY("append") return tell(open(a, O_WRONLY | O_APPEND | O_CREAT, 0600));
    WAY("empty") return tell(open(a, O_RDONLY | O_TRUNC));
    WAY("truncate") return tell(truncate(a, 0));
    WAY("make") return tell(open(a, O_RDONLY | O_CREAT | O_EXCL, 0600));
    WAY("make-unnamed") return tell(open(a, O_RDWR | O_TMPFILE, 0600));
    WAY("make-directory") return tell(mkdir(a, 0700));
    WAY("make-link") return tell(symlink("/", a));
    WAY("make-pipe") return tell(mkfifo(a, 0600));
    WAY("make-disk") { // a file for the disk that this directory is on
        struct stat found;
        if (stat(a, &found) < 0 || mknod(b, S_IFBLK | 0600, found.st_dev) < 0)
            return tell(-1);
        return tell_contents(open(b, O_RDONLY));
    }
    WAY("make-device") { // a second /dev/kmsg
        if (mknod(a, S_IFCHR | 0600, makedev(1, 11)) < 0)
            return tell(-1);
        return tell(open(a, O_RDWR | O_NONBLOCK));
    }
    WAY("remove") return tell(unlink(a));
    WAY("remove-directory") return tell(rmdir(a));
    WAY("rename") return tell(rename(a, b));
    WAY("exchange") return tell(renameat2(here, a, here, b, RENAME_EXCHANGE));
    WAY("link") return tell(link(a, b));
    WAY("link-by-descriptor") {
        int descriptor = open(a, O_PATH);
        return tell(descriptor < 0 ? -1 : linkat(descriptor, "", here, b, AT_EMPTY_PATH));
    }
    WAY("make-then-rename") { // below what may be written, and out
        int descriptor = open("out", O_WRONLY | O_CREAT, 0600);
        return tell(descriptor < 0 ? -1 : rename("out", a));
    }
    WAY("make-then-link") {
        int descriptor = open("out2", O_WRONLY | O_CREAT, 0600);
        return tell(descriptor < 0 ? -1 : link("out2", a));
    }
    WAY("write-by-link") { // a link is made where it may be made, and followed
        return symlink(a, b) < 0 ? tell(-1) : tell(open(b, O_WRONLY | O_CREAT, 0600));
    }
    WAY("account") return tell(acct(a));
    WAY("swap") return tell(swapon(a, 0));
    WAY("dump") { // a dump of this process in another directory
        struct rlimit most = {RLIM_INFINITY, RLIM_INFINITY};
        if (chdir(a) < 0 || setrlimit(RLIMIT_CORE, &most) < 0 || prctl(PR_SET_DUMPABLE, 1) < 0)
            return tell(-1);
        abort();
    }
    // Modes, owners, times and attributes.
    WAY("chmod-at") return tell(syscall(SYS_fchmodat, here, a, 0777));
    WAY("chmod-at-2") return tell(syscall(FCHMODAT2, here, a, 0777, 0));
    WAY("chmod-place") {
        int descriptor = open(a, O_PATH);
        return tell(descriptor < 0 ? -1 : syscall(FCHMODAT2, descriptor, "", 0777, AT_EMPTY_PATH));
    }
    WAY("chown-at") return tell(syscall(SYS_fchownat, here, a, getuid(), getgid(), 0));
    WAY("chown-place") {
        int descriptor = open(a, O_PATH);
        return tell(descriptor < 0 ? -1 : syscall(SYS_fchownat, descriptor, "", getuid(), getgid(), AT_EMPTY_PATH));
    }
    WAY("times-at") return tell(syscall(SYS_utimensat, here, a, times, 0));
    WAY("times-at-link") return tell(syscall(SYS_utimensat, here, a, times, AT_SYMLINK_NOFOLLOW));
    WAY("touch-at") return tell(syscall(SYS_utimensat, here, a, 0, 0));
    WAY("times-place") {
        int descriptor = open(a, O_PATH);
        return tell(descriptor < 0 ? -1 : syscall(SYS_utimensat, descriptor, "", times, AT_EMPTY_PATH));
    }
    WAY("attribute") return tell(syscall(SYS_setxattr, a, "user.new", "x", 1, 0));
    WAY("attribute-of-link") return tell(syscall(SYS_lsetxattr, a, "user.new", "x", 1, 0));
    WAY("remove-attribute") return tell(syscall(SYS_removexattr, a, "user.x"));
    WAY("remove-attribute-of-link") return tell(syscall(SYS_lremovexattr, a, "user.x"));
    WAY("attribute-at") {
        struct { unsigned long value; unsigned size, flags; } arguments = {(unsigned long)"x", 1, 0};
        return tell(syscall(SETXATTRAT, here, a, 0, "user.new", &arguments, sizeof arguments));
    }
    WAY("remove-attribute-at") return tell(syscall(REMOVEXATTRAT, here, a, 0, "user.x"));
    WAY("flags-at") { // chattr +d, by a path
        struct { unsigned long flags; unsigned extent, count, project, copy; } attributes = {.flags = FS_XFLAG_NODUMP};
        return tell(syscall(FILE_SETATTR, here, a, &attributes, sizeof attributes, 0));
    }
#if defined(__x86_64__)
    WAY("chmod") return tell(syscall(SYS_chmod, a, 0777));
    WAY("chown") return tell(syscall(SYS_chown, a, getuid(), getgid()));
    WAY("chown-link") return tell(syscall(SYS_lchown, a, getuid(), getgid()));
    WAY("times-oldest") return tell(syscall(SYS_utime, a, &oldest_times));
    WAY("touch-oldest") return tell(syscall(SYS_utime, a, 0));
    WAY("times-old") return tell(syscall(SYS_utimes, a, old_times));
    WAY("times-old-at") return tell(syscall(SYS_futimesat, here, a, old_times));
    WAY("chmod-32-bits") return tell(call_of_32_bits(15, a, 0777));
    WAY("ring-32-bits") return tell(call_of_32_bits(425, "\4", 0));
    WAY("chmod-x32") return tell(syscall(0x40000000 + SYS_chmod, a, 0777));
    WAY("socket-x32") return tell(syscall(0x40000000 + SYS_socket, AF_INET, SOCK_STREAM, 0));
    WAY("open-x32") return tell(syscall(0x40000000 + SYS_open, a, O_RDONLY));
    WAY("ports") return tell(iopl(3));
    WAY("port") return tell(ioperm(0x80, 1, 1));
#endif
    // By a descriptor that may only be read.
    int descriptor = strncmp(way, "descriptor-", 11) ? -1 : open(a, O_RDONLY);
    WAY("descriptor-mode") return tell(descriptor < 0 ? -1 : fchmod(descriptor, 0777));
    WAY("descriptor-owner") return tell(descriptor < 0 ? -1 : fchown(descriptor, getuid(), getgid()));
    WAY("descriptor-times") return tell(descriptor < 0 ? -1 : futimens(descriptor, times));
    WAY("descriptor-attribute") return tell(descriptor < 0 ? -1 : syscall(SYS_fsetxattr, descriptor, "user.new", "x", 1, 0));
    WAY("descriptor-flags") {
        int flags = 0;
        return tell(ioctl(descriptor, FS_IOC_GETFLAGS, &flags) < 0 ? -1
                                                                  : (flags |= FS_NODUMP_FL, ioctl(descriptor, FS_IOC_SETFLAGS, &flags)));
    }
    WAY("descriptor-version") { int version = 7; return tell(ioctl(descriptor, FS_IOC_SETVERSION, &version)); }
    WAY("standard-input-mode") { struct stat found; return tell(fstat(0, &found) < 0 ? -1 : fchmod(0, found.st_mode & 07777)); }
    // Other processes.
    WAY("signal") return tell(kill(pid, SIGUSR1));
    WAY("signal-all") return tell(kill(-1, SIGWINCH));
    WAY("kill") return tell(kill(pid, SIGKILL));
    WAY("kill-all") return tell(kill(-1, SIGKILL));
    WAY("kill-parent") return tell(kill(getppid(), SIGKILL));
    WAY("kill-threads") return tell(kill_threads(getppid()));
    WAY("own-threads") return tell(own_threads(getppid()));
    WAY("kill-by-directories") return tell(kill_by_directories(getppid()));
    WAY("signal-group") return tell(kill(-getpgid(pid), SIGWINCH));
    WAY("signal-task") return tell(syscall(SYS_tkill, pid, SIGUSR1));
    WAY("signal-thread") return tell(syscall(SYS_tgkill, pid, pid, SIGUSR1));
    WAY("signal-value") { siginfo_t info = {.si_code = SI_QUEUE}; return tell(syscall(SYS_rt_sigqueueinfo, pid, SIGUSR1, &info)); }
    WAY("signal-thread-value") {
        siginfo_t info = {.si_code = SI_QUEUE};
        return tell(syscall(SYS_rt_tgsigqueueinfo, pid, pid, SIGUSR1, &info));
    }
    WAY("signal-descriptor") {
        int descriptor = syscall(SYS_pidfd_open, pid, 0);
        return tell(descriptor < 0 ? -1 : syscall(SYS_pidfd_send_signal, descriptor, SIGUSR1, 0, 0));
    }
    WAY("signal-by-owner") return tell(signal_by_owner(pid));
    WAY("attach") return tell(ptrace(PTRACE_ATTACH, pid, 0, 0));
    WAY("seize") return tell(ptrace(PTRACE_SEIZE, pid, 0, 0));
    WAY("read-memory") {
        struct iovec to = {byte, 1}, from = {(void *)strtoul(b, 0, 0), 1};
        return tell(syscall(SYS_process_vm_readv, pid, &to, 1, &from, 1, 0));
    }
    WAY("write-memory") {
        struct iovec to = {byte, 1}, from = {(void *)strtoul(b, 0, 0), 1};
        return tell(syscall(SYS_process_vm_writev, pid, &to, 1, &from, 1, 0));
    }
    WAY("take-descriptor") {
        int descriptor = syscall(SYS_pidfd_open, pid, 0);
        return tell(descriptor < 0 ? -1 : syscall(SYS_pidfd_getfd, descriptor, 0, 0));
    }
    WAY("compare") return tell(syscall(SYS_kcmp, pid, getpid(), 0, 0, 0));
    WAY("advise-memory") {
        int descriptor = syscall(SYS_pidfd_open, pid, 0);
        struct iovec range = {(void *)(strtoul(b, 0, 0) & ~4095UL), 4096};
        return tell(descriptor < 0 ? -1 : syscall(SYS_process_madvise, descriptor, &range, 1, MADV_COLD, 0));
    }
    WAY("move-memory") return tell(syscall(SYS_migrate_pages, pid, 8, (unsigned long[1]){1}, (unsigned long[1]){1}));
    WAY("limit") { // of open files, and to the same: it would do for a processor time of 0, which kills
        struct rlimit limit;
        if (prlimit(pid, RLIMIT_CORE, 0, &limit) < 0)
            return tell(-1);
        limit.rlim_cur = 0;
        return tell(prlimit(pid, RLIMIT_CORE, &limit, 0));
    }
    WAY("priority") return tell(setpriority(PRIO_PROCESS, pid, 19));
    WAY("scheduler") { struct sched_param none = {0}; return tell(sched_setscheduler(pid, SCHED_BATCH, &none)); }
    WAY("scheduler-attributes") {
        struct { unsigned size, policy; unsigned long flags; int nice; unsigned priority; unsigned long more[3]; } values =
            {.size = 48, .policy = SCHED_BATCH, .nice = 19};
        return tell(syscall(SYS_sched_setattr, pid, &values, 0));
    }
    WAY("processor") { cpu_set_t one; CPU_ZERO(&one); CPU_SET(0, &one); return tell(sched_setaffinity(pid, sizeof one, &one)); }
    WAY("disk-priority") return tell(syscall(SYS_ioprio_set, 1, pid, (3 << 13)));
    WAY("count-events") {
        struct perf_event_attr event = {.type = PERF_TYPE_SOFTWARE, .size = sizeof event, .config = PERF_COUNT_SW_TASK_CLOCK};
        return tell(syscall(SYS_perf_event_open, &event, pid, -1, -1, 0));
    }
    // Sockets.
    WAY("connect") return tell(connect_inet(AF_INET, SOCK_STREAM, pid));
    WAY("connect-6") return tell(connect_inet(AF_INET6, SOCK_STREAM, pid));
    WAY("datagram") return tell(connect_inet(AF_INET, SOCK_DGRAM, pid));
    WAY("listen") return tell(listen_inet());
    WAY("connect-unix") return tell(connect_unix(SOCK_STREAM, a));
    WAY("connect-unix-datagram") return tell(connect_unix(SOCK_DGRAM, a));
    WAY("pair") return tell(pair_to(SOCK_DGRAM, a));
    WAY("pair-close-on-exec") return tell(pair_to(SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, a));
    WAY("pair-raw") return tell(pair_to(SOCK_RAW, a)); // the kernel takes it for one of datagrams
    WAY("pair-upper-half") { // only the lower half of an argument counts
        struct sockaddr_un address;
        socklen_t length = unix_address(a, &address);
        int ends[2];
        if (syscall(SYS_socketpair, (long)AF_UNIX, 0x100000000L | SOCK_DGRAM, 0L, ends) < 0)
            return tell(-1);
        return tell(sendto(ends[0], "out", 3, 0, (struct sockaddr *)&address, length));
    }
    WAY("socket-upper-half") return tell(syscall(SYS_socket, 0x100000000L | AF_UNIX, (long)SOCK_STREAM, 0L));
    WAY("netlink") return tell(socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE));
    WAY("packet") return tell(socket(AF_PACKET, SOCK_RAW, 0));
    WAY("vsock") return tell(socket(AF_VSOCK, SOCK_STREAM, 0));
    WAY("send-descriptor") { // within the tool's own processes this is allowed, and it gives no more rights
        int ends[2];
        if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) < 0)
            return tell(-1);
        if (fork() == 0) {
            char space[CMSG_SPACE(sizeof(int))] = "";
            struct iovec one = {"x", 1};
            struct msghdr message = {.msg_iov = &one, .msg_iovlen = 1, .msg_control = space, .msg_controllen = sizeof space};
            struct cmsghdr *head = CMSG_FIRSTHDR(&message);
            head->cmsg_level = SOL_SOCKET, head->cmsg_type = SCM_RIGHTS, head->cmsg_len = CMSG_LEN(sizeof(int));
            int descriptor = open(a, O_PATH);
            memcpy(CMSG_DATA(head), &descriptor, sizeof descriptor);
            sendmsg(ends[1], &message, 0);
            _exit(0);
        }
        char space[CMSG_SPACE(sizeof(int))];
        struct iovec one = {byte, 1};
        struct msghdr message = {.msg_iov = &one, .msg_iovlen = 1, .msg_control = space, .msg_controllen = sizeof space};
        if (recvmsg(ends[0], &message, 0) < 0)
            return tell(-1);
        char again[64];
        snprintf(again, sizeof again, "/proc/self/fd/%d", *(int *)CMSG_DATA(CMSG_FIRSTHDR(&message)));
        return tell_contents(open(again, O_RDONLY));
    }
    // What programs share without files.
    WAY("memory-get") return tell(shmget(atoi(a), 0, 0));
    WAY("memory-attach") return tell(shmat(pid, 0, 0) == (void *)-1 ? -1 : 0);
    WAY("memory-remove") return tell(shmctl(pid, IPC_RMID, 0));
    WAY("semaphore-get") return tell(semget(atoi(a), 0, 0));
    WAY("semaphore-operate") { struct sembuf up = {0, 1, IPC_NOWAIT}; return tell(semop(pid, &up, 1)); }
    WAY("semaphore-operate-timed") {
        struct sembuf up = {0, 1, IPC_NOWAIT};
        struct timespec soon = {1, 0};
        return tell(semtimedop(pid, &up, 1, &soon));
    }
    WAY("semaphore-remove") return tell(semctl(pid, 0, IPC_RMID));
    WAY("queue-get") return tell(msgget(atoi(a), 0));
    WAY("queue-send") { struct { long type; char text; } one = {1, 'x'}; return tell(msgsnd(pid, &one, 1, IPC_NOWAIT)); }
    WAY("queue-receive") { struct { long type; char text[9]; } one; return tell(msgrcv(pid, &one, 9, 0, IPC_NOWAIT | MSG_NOERROR)); }
    WAY("queue-remove") return tell(msgctl(pid, IPC_RMID, 0));
    WAY("named-queue") return tell(syscall(SYS_mq_open, a, O_RDWR | O_CREAT, 0600, 0));
    WAY("named-queue-remove") return tell(syscall(SYS_mq_unlink, a));
    WAY("key-add") return tell(syscall(SYS_add_key, "user", a, "x", 1L, -3));
    WAY("key-request") return tell(syscall(SYS_request_key, "user", a, 0L, -3));
    WAY("key-search") return tell(syscall(SYS_keyctl, 10, -3, "user", a, 0));
    // The kernel.
    WAY("unshare") return tell(unshare(strtoul(a, 0, 0)));
    WAY("clone") return tell(child_in(strtoul(a, 0, 0), 0));
    WAY("clone3") return tell(child_in(strtoul(a, 0, 0), 1));
    WAY("enter") { // the namespaces of another process
        int descriptor = syscall(SYS_pidfd_open, pid, 0);
        return tell(descriptor < 0 ? -1 : setns(descriptor, CLONE_NEWUTS));
    }
    WAY("mount") return tell(mount("none", a, "tmpfs", 0, 0));
    WAY("mount-again") return tell(mount(a, b, 0, MS_BIND, 0));
    WAY("unmount") return tell(umount2(a, MNT_DETACH));
    WAY("open-tree") return tell(syscall(OPEN_TREE, here, a, 1));
    WAY("open-file-system") return tell(syscall(SYS_fsopen, "tmpfs", 0));
    WAY("pivot") return tell(syscall(SYS_pivot_root, a, a));
    WAY("mount-attributes") return tell(syscall(SYS_mount_setattr, here, a, 0, (unsigned long[4]){0}, 32));
    WAY("quota") return tell(syscall(SYS_quotactl, 0x800001 << 8, 0, 0, 0));
    WAY("program-of-the-kernel") {
        union bpf_attr map = {.map_type = BPF_MAP_TYPE_ARRAY, .key_size = 4, .value_size = 4, .max_entries = 1};
        return tell(syscall(SYS_bpf, BPF_MAP_CREATE, &map, sizeof map));
    }
    WAY("page-faults") return tell(syscall(SYS_userfaultfd, 1)); // those of the program alone
    WAY("log-of-the-kernel") return tell(klogctl(3, (char[4096]){0}, 4096));
    WAY("host-name") { char name[256] = ""; return tell(gethostname(name, 255) < 0 ? -1 : sethostname(name, strlen(name))); }
    WAY("clock") { // the estimated error, to what it is
        struct timex clock = {0};
        if (adjtimex(&clock) < 0)
            return tell(-1);
        clock.modes = ADJ_ESTERROR;
        return tell(adjtimex(&clock));
    }
    WAY("restart") return tell(reboot(RB_DISABLE_CAD)); // what three keys do, which is the least of it
    WAY("module") return tell(syscall(SYS_delete_module, "none", O_NONBLOCK));
    // What runs, and must be as confined as before: then the way in `a` is tried.
    WAY("then-in-memory") {
        words[1] = self;
        return tell(run_copy_in_memory(words + 1));
    }
    WAY("then-dumpable") {
        if (prctl(PR_SET_DUMPABLE, 1) < 0 || prctl(PR_SET_PTRACER, -1) < -1)
            return tell(-1);
        words[1] = self;
        return tell(execv(self, words + 1));
    }
    WAY("then-persona") {
        personality(READ_IMPLIES_EXEC | ADDR_NO_RANDOMIZE);
        words[1] = self;
        return tell(execv(self, words + 1));
    }
    WAY("then-preloaded") {
        setenv("LD_PRELOAD", "libm.so.6", 1);
        words[1] = self;
        return tell(execv(self, words + 1));
    }
    WAY("then-detached") { // by a grandchild in a session of its own
        int ends[2];
        char text[256] = "";
        if (pipe(ends) < 0)
            return tell(-1);
        if (fork() == 0) {
            setsid();
            if (fork() == 0) {
                dup2(ends[1], 1);
                words[1] = self;
                execv(self, words + 1);
            }
            _exit(0);
        }
        close(ends[1]);
        if (read(ends[0], text, sizeof text - 1) < 0)
            return tell(-1);
        fputs(text, stdout);
        return 0;
    }
    WAY("then-as-owner") { // of a program with the bit for it
        words[2] = a;
        return tell(execv(a, (char *[]){a, "user", 0}));
    }
    WAY("user") return geteuid() == getuid() ? fail(EPERM) : tell(0);
    WAY("privileges") return prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) ? fail(EPERM) : tell(0);
    WAY("push-character") {
        int terminal = open(a, O_RDWR | O_NOCTTY);
        return tell(terminal < 0 ? -1 : ioctl(terminal, TIOCSTI, "x"));
    }
    WAY("terminal") return tell(open("/dev/tty", O_RDWR));
    puts("no such way");
    return 2;
}

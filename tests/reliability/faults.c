/* Fails, or kills the process, at the n-th system call that touches what lies below a folder.
 *
 * Loaded by LD_PRELOAD, armed by faults_arm(). Calls are counted that open, write, sync, rename,
 * delete or make something there; each is written to a trace, a letter and a newline a call. A kill
 * comes before the call, but in the middle of a write: half of it is then on the disk. A full disk
 * stays full; any other error comes once.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#define KILL (-1)
#define MOST_FILES 65536
#define REAL(name)                      \
    static __typeof__(name) *real;      \
    if (!real) {                        \
        real = dlsym(RTLD_NEXT, #name); \
    }

static char folder[PATH_MAX];
static size_t length;
static long wanted, seen;
static int fault, trace = -1, armed;
static unsigned char ours[MOST_FILES];

/* Count calls below `path`; let the one with this number, from 1, meet `error`; 0 meets nothing. */
void faults_arm(const char *path, long number, int error, int trace_file) {
    strncpy(folder, path, PATH_MAX - 1);
    length = strlen(folder);
    wanted = number, fault = error, trace = trace_file, seen = 0, armed = 1;
}

static void die(void) {
    syscall(SYS_kill, getpid(), SIGKILL);
}

/* Note a call; return the error that it is to meet, KILL, or 0. */
static int meet(char call, int grows) {
    long number = __atomic_add_fetch(&seen, 1, __ATOMIC_SEQ_CST);
    char line[2] = {call, '\n'};
    if (trace >= 0) {
        syscall(SYS_write, trace, line, 2);
    }
    if (!wanted || !fault) {
        return 0;
    }
    if (fault == ENOSPC) {
        return number >= wanted && grows ? fault : 0;
    }
    return number == wanted ? fault : 0;
}

static int is_below(int at, const char *path) {
    char place[PATH_MAX];
    if (!armed || !path) {
        return 0;
    }
    if (path[0] == '/') {
        return !strncmp(path, folder, length) && (path[length] == '/' || !path[length]);
    }
    if (at != AT_FDCWD) {
        return at >= 0 && at < MOST_FILES && ours[at];
    }
    return getcwd(place, sizeof place) && !strncmp(place, folder, length);
}

static int is_ours(int file) {
    return armed && file >= 0 && file < MOST_FILES && ours[file];
}

/* Before a call that is one of ours: fail, kill or go on. */
#define STEP(is_one, call, grows)           \
    if (is_one) {                           \
        int error = meet(call, grows);      \
        if (error == KILL) {                \
            die();                          \
        } else if (error) {                 \
            errno = error;                  \
            return -1;                      \
        }                                   \
    }

#define MODE                                \
    int mode = 0;                           \
    if (flags & (O_CREAT | O_TMPFILE)) {    \
        va_list more;                       \
        va_start(more, flags);              \
        mode = va_arg(more, int);           \
        va_end(more);                       \
    }

static int opened(int file, int is_one) {
    if (file >= 0 && file < MOST_FILES) {
        ours[file] = is_one;
    }
    return file;
}

#define OPEN(name)                                             \
    int name(const char *path, int flags, ...) {               \
        REAL(name) MODE;                                       \
        int one = is_below(AT_FDCWD, path);                    \
        int makes = (flags & O_CREAT) != 0;                    \
        STEP(one, makes ? 'c' : 'o', makes)                    \
        return opened(real(path, flags, mode), one);           \
    }
#define OPEN_AT(name)                                          \
    int name(int at, const char *path, int flags, ...) {       \
        REAL(name) MODE;                                       \
        int one = is_below(at, path);                          \
        int makes = (flags & O_CREAT) != 0;                    \
        STEP(one, makes ? 'c' : 'o', makes)                    \
        return opened(real(at, path, flags, mode), one);       \
    }
OPEN(open)
OPEN(open64)
OPEN_AT(openat)
OPEN_AT(openat64)

#define STREAM(name)                                                        \
    FILE *name(const char *restrict path, const char *restrict how) {       \
        REAL(name)                                                          \
        int one = is_below(AT_FDCWD, path), error;                          \
        if (one && (error = meet(how[0] == 'r' ? 'o' : 'c', how[0] != 'r'))) { \
            if (error == KILL) {                                            \
                die();                                                      \
            }                                                               \
            errno = error;                                                  \
            return NULL;                                                    \
        }                                                                   \
        FILE *file = real(path, how);                                       \
        if (file) {                                                         \
            opened(fileno(file), one);                                      \
        }                                                                   \
        return file;                                                        \
    }
STREAM(fopen)
STREAM(fopen64)

size_t fwrite(const void *restrict from, size_t size, size_t count, FILE *restrict file) {
    REAL(fwrite)
    if (is_ours(fileno(file))) {
        int error = meet('w', 1);
        if (error == KILL) {
            real(from, size, count / 2, file);
            fflush(file);
            die();
        } else if (error) {
            errno = error;
            return 0;
        }
    }
    return real(from, size, count, file);
}

int close(int file) {
    REAL(close)
    opened(file, 0);
    return real(file);
}

#define WRITE(name, parameters, arguments, half)               \
    ssize_t name parameters {                                  \
        REAL(name)                                             \
        if (is_ours(file)) {                                   \
            int error = meet('w', 1);                          \
            if (error == KILL) {                               \
                half;                                          \
                die();                                         \
            } else if (error) {                                \
                errno = error;                                 \
                return -1;                                     \
            }                                                  \
        }                                                      \
        return real arguments;                                 \
    }
WRITE(write, (int file, const void *from, size_t size), (file, from, size),
      real(file, from, size / 2))
WRITE(pwrite, (int file, const void *from, size_t size, off_t at), (file, from, size, at),
      real(file, from, size / 2, at))
WRITE(pwrite64, (int file, const void *from, size_t size, off64_t at), (file, from, size, at),
      real(file, from, size / 2, at))
WRITE(writev, (int file, const struct iovec *parts, int count), (file, parts, count),
      real(file, parts, count / 2))
WRITE(sendfile, (int file, int from, off_t *at, size_t size), (file, from, at, size),
      real(file, from, at, size / 2))
WRITE(sendfile64, (int file, int from, off64_t *at, size_t size), (file, from, at, size),
      real(file, from, at, size / 2))
WRITE(copy_file_range,
      (int from, off64_t *at, int file, off64_t *to, size_t size, unsigned flags),
      (from, at, file, to, size, flags), real(from, at, file, to, size / 2, flags))

#define CALL(name, parameters, arguments, is_one, call, grows) \
    int name parameters {                                      \
        REAL(name)                                             \
        STEP(is_one, call, grows)                              \
        return real arguments;                                 \
    }
#define HERE is_below(AT_FDCWD, path)
CALL(fsync, (int file), (file), is_ours(file), 's', 1)
CALL(fdatasync, (int file), (file), is_ours(file), 's', 1)
CALL(ftruncate, (int file, off_t size), (file, size), is_ours(file), 't', 1)
CALL(ftruncate64, (int file, off64_t size), (file, size), is_ours(file), 't', 1)
CALL(rename, (const char *path, const char *to), (path, to), HERE, 'r', 1)
CALL(renameat, (int at, const char *path, int there, const char *to), (at, path, there, to),
     is_below(at, path), 'r', 1)
CALL(renameat2, (int at, const char *path, int there, const char *to, unsigned flags),
     (at, path, there, to, flags), is_below(at, path), 'r', 1)
CALL(unlink, (const char *path), (path), HERE, 'u', 0)
CALL(unlinkat, (int at, const char *path, int flags), (at, path, flags), is_below(at, path), 'u', 0)
CALL(rmdir, (const char *path), (path), HERE, 'u', 0)
CALL(mkdir, (const char *path, mode_t mode), (path, mode), HERE, 'm', 1)
CALL(mkdirat, (int at, const char *path, mode_t mode), (at, path, mode), is_below(at, path), 'm', 1)

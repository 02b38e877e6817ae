/* Makes system calls of a program fail, or end after one byte: those that the page in FAULTS_FILE names.
 *
 * The page is a file with the 64-bit words of `struct page`. A test writes and reads it while the program runs. Once `armed`
 * is set, calls are counted for each class, over all threads; what the program did before does not count. The calls `first`
 * to `last` of `class` fail with the error `error`; 0 lets them end after one byte. The classes are writes and syncs of the
 * file whose path ends with FAULTS_BOOKS, and calls on TCP sockets, except those of the port FAULTS_EXCEPT_PORT. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

enum class { WRITE, SYNC, CONNECT, ACCEPT, SEND, RECV, CLASSES, NONE };
enum verdict { PASS, FAIL, SHORT };

struct page {
    _Atomic uint64_t armed, class, first, last, error, happened, counts[CLASSES];
};

static struct page *page;
static const char *books;
static int except_port;

/* What the program waits for on each socket. A program that watches for changes takes a short transfer for the end of the
 * room or of the data, and waits for the system to report more of it. */
enum { WATCHED_MAX = 4096 };
static struct watched {
    int epoll;
    struct epoll_event event;
} watched[WATCHED_MAX];

__attribute__((constructor)) static void begin(void) {
    const char *path = getenv("FAULTS_FILE"), *port = getenv("FAULTS_EXCEPT_PORT");
    books = getenv("FAULTS_BOOKS");
    except_port = port ? atoi(port) : 0;
    int file = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
    if (file < 0)
        return;
    void *mapped = mmap(NULL, sizeof *page, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    page = mapped == MAP_FAILED ? NULL : mapped;
    close(file);
}

static int is_books(int fd) {
    char link[32] = "/proc/self/fd/", path[4096], *digit = link + sizeof link - 1;
    int length = 14;
    unsigned left = fd;
    do
        *--digit = '0' + left % 10;
    while (left /= 10);
    memmove(link + length, digit, strlen(digit) + 1);
    ssize_t bytes = readlink(link, path, sizeof path - 1);
    size_t end = books ? strlen(books) : 0;
    return end && bytes >= (ssize_t)end && !memcmp(path + bytes - end, books, end);
}

static int port_of(const struct sockaddr *address) {
    /* The port is in the same place in both families. */
    int is_internet = address->sa_family == AF_INET || address->sa_family == AF_INET6;
    return is_internet ? ntohs(((const struct sockaddr_in *)address)->sin_port) : -1;
}

static int is_stream(int fd) {
    int type = 0;
    socklen_t length = sizeof type;
    return !getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &length) && type == SOCK_STREAM;
}

/* Whether the socket belongs to a TCP connection, or waits for one, that counts. */
static int is_counted(int fd, int listens) {
    struct sockaddr_storage address = { 0 };
    socklen_t length = sizeof address;
    struct sockaddr *side = (struct sockaddr *)&address;
    if ((listens ? getsockname(fd, side, &length) : getpeername(fd, side, &length)) || !is_stream(fd))
        return 0;
    int port = port_of(side);
    return port > 0 && port != except_port;
}

/* Counts a call of this class and decides its end. If it fails, errno has the reason. */
static enum verdict judge(enum class class) {
    uint64_t position = atomic_fetch_add(&page->counts[class], 1) + 1;
    if (page->class != class || position < page->first || position > page->last)
        return PASS;
    atomic_fetch_add(&page->happened, 1);
    errno = page->error;
    return errno ? FAIL : SHORT;
}

static int is_armed(void) {
    return page && page->armed;
}

static enum verdict transfer(int fd, enum class of_file, enum class of_socket) {
    if (!is_armed())
        return PASS;
    int before = errno;
    enum class class = of_socket != NONE && is_counted(fd, 0) ? of_socket : NONE;
    if (class == NONE && of_file != NONE && is_books(fd))
        class = of_file;
    errno = before;
    enum verdict verdict = class == NONE ? PASS : judge(class);
    /* A connection that is reset is gone for both sides. */
    if (verdict == FAIL && class == of_socket && errno == ECONNRESET) {
        shutdown(fd, SHUT_RDWR);
        errno = ECONNRESET;
    }
    return verdict;
}

/* Has the system report once more what a socket is ready for. */
static void wake(int fd) {
    if (fd < 0 || fd >= WATCHED_MAX || !watched[fd].event.events)
        return;
    int before = errno;
    struct epoll_event event = watched[fd].event;
    syscall(SYS_epoll_ctl, watched[fd].epoll, EPOLL_CTL_MOD, fd, &event);
    errno = before;
}

int epoll_ctl(int epoll, int operation, int fd, struct epoll_event *event) {
    int failed = (int)syscall(SYS_epoll_ctl, epoll, operation, fd, event);
    if (!failed && fd >= 0 && fd < WATCHED_MAX) {
        struct watched none = { 0 };
        watched[fd] = operation == EPOLL_CTL_DEL ? none : (struct watched){ epoll, *event };
    }
    return failed;
}

static size_t least(enum verdict verdict, size_t bytes) {
    return verdict == SHORT && bytes > 1 ? 1 : bytes;
}

/* The first part that holds anything, shortened to one byte. */
static struct iovec first_byte(const struct iovec *parts, size_t count) {
    while (count > 1 && !parts->iov_len)
        parts++, count--;
    struct iovec one = { count ? parts->iov_base : NULL, count && parts->iov_len ? 1 : 0 };
    return one;
}

ssize_t write(int fd, const void *bytes, size_t length) {
    enum verdict verdict = transfer(fd, WRITE, SEND);
    if (verdict == FAIL)
        return -1;
    ssize_t done = syscall(SYS_write, fd, bytes, least(verdict, length));
    if (verdict == SHORT)
        wake(fd);
    return done;
}

ssize_t pwrite64(int fd, const void *bytes, size_t length, off64_t offset) {
    enum verdict verdict = transfer(fd, WRITE, NONE);
    return verdict == FAIL ? -1 : syscall(SYS_pwrite64, fd, bytes, least(verdict, length), offset);
}

ssize_t pwrite(int fd, const void *bytes, size_t length, off_t offset) {
    return pwrite64(fd, bytes, length, offset);
}

ssize_t writev(int fd, const struct iovec *parts, int count) {
    enum verdict verdict = transfer(fd, WRITE, SEND);
    if (verdict == FAIL)
        return -1;
    if (verdict == PASS)
        return syscall(SYS_writev, fd, parts, count);
    struct iovec one = first_byte(parts, count > 0 ? count : 0);
    ssize_t done = syscall(SYS_writev, fd, &one, 1);
    wake(fd);
    return done;
}

ssize_t send(int fd, const void *bytes, size_t length, int flags) {
    enum verdict verdict = transfer(fd, NONE, SEND);
    if (verdict == FAIL)
        return -1;
    ssize_t done = syscall(SYS_sendto, fd, bytes, least(verdict, length), flags, NULL, 0);
    if (verdict == SHORT)
        wake(fd);
    return done;
}

ssize_t sendmsg(int fd, const struct msghdr *message, int flags) {
    enum verdict verdict = transfer(fd, NONE, SEND);
    if (verdict == FAIL)
        return -1;
    if (verdict == PASS)
        return syscall(SYS_sendmsg, fd, message, flags);
    struct iovec one = first_byte(message->msg_iov, message->msg_iovlen);
    struct msghdr shortened = *message;
    shortened.msg_iov = &one;
    shortened.msg_iovlen = 1;
    ssize_t done = syscall(SYS_sendmsg, fd, &shortened, flags);
    wake(fd);
    return done;
}

ssize_t read(int fd, void *bytes, size_t length) {
    enum verdict verdict = transfer(fd, NONE, RECV);
    if (verdict == FAIL)
        return -1;
    ssize_t done = syscall(SYS_read, fd, bytes, least(verdict, length));
    if (verdict == SHORT)
        wake(fd);
    return done;
}

ssize_t readv(int fd, const struct iovec *parts, int count) {
    enum verdict verdict = transfer(fd, NONE, RECV);
    if (verdict == FAIL)
        return -1;
    if (verdict == PASS)
        return syscall(SYS_readv, fd, parts, count);
    struct iovec one = first_byte(parts, count > 0 ? count : 0);
    ssize_t done = syscall(SYS_readv, fd, &one, 1);
    wake(fd);
    return done;
}

ssize_t recv(int fd, void *bytes, size_t length, int flags) {
    enum verdict verdict = transfer(fd, NONE, RECV);
    if (verdict == FAIL)
        return -1;
    ssize_t done = syscall(SYS_recvfrom, fd, bytes, least(verdict, length), flags, NULL, NULL);
    if (verdict == SHORT)
        wake(fd);
    return done;
}

static int sync_fails(int fd) {
    return transfer(fd, SYNC, NONE) == FAIL;
}

int fsync(int fd) {
    return sync_fails(fd) ? -1 : (int)syscall(SYS_fsync, fd);
}

int fdatasync(int fd) {
    return sync_fails(fd) ? -1 : (int)syscall(SYS_fdatasync, fd);
}

int ftruncate64(int fd, off64_t length) {
    return sync_fails(fd) ? -1 : (int)syscall(SYS_ftruncate, fd, length);
}

int ftruncate(int fd, off_t length) {
    return ftruncate64(fd, length);
}

int fallocate64(int fd, int mode, off64_t offset, off64_t length) {
    return sync_fails(fd) ? -1 : (int)syscall(SYS_fallocate, fd, mode, offset, length);
}

int fallocate(int fd, int mode, off_t offset, off_t length) {
    return fallocate64(fd, mode, offset, length);
}

int connect(int fd, const struct sockaddr *address, socklen_t length) {
    if (is_armed()) {
        int before = errno, port = port_of(address), counts = port > 0 && port != except_port && is_stream(fd);
        errno = before;
        if (counts && judge(CONNECT) == FAIL)
            return -1;
    }
    return (int)syscall(SYS_connect, fd, address, length);
}

int accept4(int fd, struct sockaddr *address, socklen_t *length, int flags) {
    if (is_armed()) {
        int before = errno, counts = is_counted(fd, 1);
        errno = before;
        if (counts && judge(ACCEPT) == FAIL)
            return -1;
    }
    return (int)syscall(SYS_accept4, fd, address, length, flags);
}

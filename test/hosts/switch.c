/* SPDX-License-Identifier: MIT */
/* An Ethernet switch in user space, for tests on several hosts that are network namespaces of one
 * machine:
 *
 *     switch [SETTING]... PID...
 *
 * Gives each namespace, that of a process, an interface eth0: the k-th has the address 10.77.0.k
 * and is a TAP device, whose other end is a port of the switch. Prints "ready", then moves frames
 * until its standard input ends. Settings, as arguments or as lines of the standard input:
 *
 *     delay=MICROSECONDS   from one port to another; 0 at first
 *     loss=PERCENT         so many frames vanish, at random
 *     mtu=BYTES            9000 at first; only as an argument
 *     down=PORT, up=PORT   frames from and to a port vanish, or no longer
 *     stall=PORT, go=PORT  they wait, or no longer
 *
 * Answers each line with "ok" or "no". No frame overtakes another on its way to the same port. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <poll.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { MOST_PORTS = 64, LONGEST = 65535, DEVICE_QUEUE = 20000, BURST = 64 };

static const unsigned char mac_of_first[6] = {2, 0x4e, 0x42, 0x43, 0, 1};

/* A frame on its way. One that goes to several ports is copied. */
struct frame {
    struct frame *next;
    int64_t due; /* nanoseconds */
    size_t length;
    unsigned char bytes[];
};

static struct port {
    int fd;
    bool down, stalled;
    struct frame *first, **end; /* towards the host, by the time at which they are due */
} ports[MOST_PORTS];

static int nports;
static int64_t delay; /* nanoseconds */
static double loss;   /* 0 … 1 */
static long mtu = 9000;

static void die(const char *what)
{
    perror(what);
    exit(1);
}

static int64_t now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

/* --- the hosts' interfaces -------------------------------------------------------------------- */

static void control(int fd, unsigned long request, struct ifreq *device, const char *what)
{
    if (ioctl(fd, request, device) < 0)
        die(what);
}

static void put_address(struct sockaddr *to, uint32_t address)
{
    const struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(address)};
    memcpy(to, &in, sizeof in);
}

static uint32_t address_of(int number)
{
    return 0x0a4d0000u + (uint32_t)number;
}

static void put_mac_of(struct sockaddr *to, int number)
{
    to->sa_family = ARPHRD_ETHER;
    memcpy(to->sa_data, mac_of_first, sizeof mac_of_first);
    to->sa_data[5] = (char)number;
}

static void set_address(int fd, struct ifreq *device, unsigned long request, uint32_t address)
{
    put_address(&device->ifr_addr, address);
    control(fd, request, device, "address");
}

/* Hosts know the hardware addresses of all others. One that had to ask while a port fails would
 * give up after three seconds: "no route to host". */
static void set_neighbor(int fd, int number)
{
    struct arpreq entry = {.arp_flags = ATF_PERM | ATF_COM, .arp_dev = "eth0"};
    put_address(&entry.arp_pa, address_of(number));
    put_mac_of(&entry.arp_ha, number);
    if (ioctl(fd, SIOCSARP, &entry) < 0)
        die("neighbor");
}

static void bring_up(int fd, const char *name)
{
    struct ifreq device = {0};
    strcpy(device.ifr_name, name);
    control(fd, SIOCGIFFLAGS, &device, name);
    device.ifr_flags |= IFF_UP;
    control(fd, SIOCSIFFLAGS, &device, name);
}

/* In the namespace of the caller. */
static int make_interface(int number)
{
    struct ifreq device = {.ifr_flags = IFF_TAP | IFF_NO_PI};
    int tap = open("/dev/net/tun", O_RDWR | O_NONBLOCK), fd = socket(AF_INET, SOCK_DGRAM, 0);
    if (tap < 0 || fd < 0)
        die("/dev/net/tun");
    strcpy(device.ifr_name, "eth0");
    control(tap, TUNSETIFF, &device, "TUNSETIFF");
    put_mac_of(&device.ifr_hwaddr, number);
    control(fd, SIOCSIFHWADDR, &device, "hardware address");
    device.ifr_mtu = (int)mtu;
    control(fd, SIOCSIFMTU, &device, "mtu");
    device.ifr_qlen = DEVICE_QUEUE;
    control(fd, SIOCSIFTXQLEN, &device, "queue");
    set_address(fd, &device, SIOCSIFADDR, address_of(number));
    set_address(fd, &device, SIOCSIFNETMASK, 0xffffff00u);
    bring_up(fd, "lo");
    bring_up(fd, "eth0");
    for (int other = 1; other <= MOST_PORTS; other++)
        if (other != number)
            set_neighbor(fd, other);
    close(fd);
    return tap;
}

static void add_port(const char *pid)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%.20s/ns/net", pid);
    int space = open(path, O_RDONLY);
    if (space < 0 || setns(space, CLONE_NEWNET) < 0)
        die(path);
    close(space);
    struct port *port = &ports[nports++];
    port->end = &port->first;
    port->fd = make_interface(nports);
}

/* --- frames ----------------------------------------------------------------------------------- */

static void put(struct port *port, const unsigned char *bytes, size_t length, int64_t due)
{
    struct frame *f = malloc(sizeof *f + length);
    if (port->down || !f) {
        free(f);
        return;
    }
    f->next = NULL;
    f->due = due;
    f->length = length;
    memcpy(f->bytes, bytes, length);
    *port->end = f;
    port->end = &f->next;
}

static bool is_lost(void)
{
    return loss > 0 && drand48() < loss;
}

/* To the port that its address names, or to all others. */
static void forward(const struct port *from, const unsigned char *bytes, size_t length)
{
    int64_t due = now() + delay;
    if (from->down || length < 14 || is_lost())
        return;
    bool known = memcmp(bytes, mac_of_first, 5) == 0 && bytes[5] > 0 && bytes[5] <= nports;
    if (known) {
        put(&ports[bytes[5] - 1], bytes, length, due);
        return;
    }
    for (struct port *p = ports; p < ports + nports; p++)
        if (p != from)
            put(p, bytes, length, due);
}

/* Takes what a host has sent; not for ever, so that other ports have their turns. */
static void take(const struct port *from)
{
    static unsigned char bytes[LONGEST];
    ssize_t n;
    for (int i = 0; i < BURST && (n = read(from->fd, bytes, sizeof bytes)) > 0; i++)
        forward(from, bytes, (size_t)n);
}

/* Delivers what is due. Returns when the next one is; −1: there is none. */
static int64_t deliver(struct port *port)
{
    struct frame *f;
    while ((f = port->first) && !port->stalled && f->due <= now()) {
        if (!port->down && write(port->fd, f->bytes, f->length) < 0)
            perror("a frame is lost");
        port->first = f->next;
        if (!port->first)
            port->end = &port->first;
        free(f);
    }
    return f && !port->stalled ? f->due : -1;
}

static int64_t deliver_all(void)
{
    int64_t next = -1;
    for (struct port *p = ports; p < ports + nports; p++) {
        int64_t due = deliver(p);
        if (due >= 0 && (next < 0 || due < next))
            next = due;
    }
    return next;
}

/* --- settings --------------------------------------------------------------------------------- */

static struct port *port_of(double number)
{
    return number >= 1 && number <= nports ? &ports[(int)number - 1] : NULL;
}

static bool set(const char *line)
{
    char name[16], more;
    double value;
    if (sscanf(line, "%15[a-z]=%lf %c", name, &value, &more) != 2 || !(value >= 0))
        return false;
    struct port *port = port_of(value);
    if (strcmp(name, "delay") == 0)
        delay = (int64_t)(value * 1e3);
    else if (strcmp(name, "loss") == 0)
        loss = value / 100;
    else if (strcmp(name, "mtu") == 0 && nports == 0)
        mtu = (long)value;
    else if (port && (strcmp(name, "down") == 0 || strcmp(name, "up") == 0))
        port->down = *name == 'd';
    else if (port && (strcmp(name, "stall") == 0 || strcmp(name, "go") == 0))
        port->stalled = *name == 's';
    else
        return false;
    return true;
}

/* Returns false at the end of the input. */
static bool obey(void)
{
    char line[64];
    if (!fgets(line, sizeof line, stdin))
        return false;
    puts(set(line) ? "ok" : "no");
    return true;
}

/* --- the loop --------------------------------------------------------------------------------- */

/* Waits for frames or a line. Returns false at the end of the input. */
static bool turn(int64_t next)
{
    struct pollfd fds[MOST_PORTS + 1];
    for (int i = 0; i < nports; i++)
        fds[i] = (struct pollfd){ports[i].stalled ? -1 : ports[i].fd, POLLIN, 0};
    fds[nports] = (struct pollfd){STDIN_FILENO, POLLIN, 0};
    int64_t left = next < 0 ? 0 : next - now();
    left = left < 0 ? 0 : left;
    struct timespec wait = {left / 1000000000, left % 1000000000};
    ppoll(fds, (nfds_t)nports + 1, next < 0 ? NULL : &wait, NULL);
    for (int i = 0; i < nports; i++)
        if (fds[i].revents)
            take(&ports[i]);
    return !fds[nports].revents || obey();
}

/* It shares processors with the ranks, and must not wait for them where that can be had. */
static void hurry(void)
{
    struct sched_param soon = {.sched_priority = 1};
    if (sched_setscheduler(0, SCHED_RR, &soon) < 0 && setpriority(PRIO_PROCESS, 0, -20) < 0)
        perror("switch: no priority");
    prctl(PR_SET_TIMERSLACK, 1);
}

int main(int argc, char **argv)
{
    int i = 1;
    while (i < argc && strchr(argv[i], '=') && set(argv[i]))
        i++;
    if (i == argc || argc - i > MOST_PORTS) {
        fprintf(stderr, "usage: switch [SETTING=VALUE]... PID...\n");
        return 2;
    }
    for (; i < argc; i++)
        add_port(argv[i]);
    hurry();
    setvbuf(stdin, NULL, _IONBF, 0);
    setvbuf(stdout, NULL, _IOLBF, 0);
    puts("ready");
    while (turn(deliver_all()))
        ;
    return 0;
}

/* SPDX-License-Identifier: MIT */
/*
 * A small HTTP/1.1 server that stamps each response and each log line.
 *
 *	cc -O2 http_server.c $(pkg-config --cflags --libs cachedtime)
 *
 * with -Wl,-rpath,PREFIX/lib behind it where that is a prefix of your own.
 *
 * One thread, one epoll loop, keep-alive and pipelining; it answers GET and
 * HEAD. Of cachedtime it uses ct_now_ms() for stamps, ct_mono_ms() for
 * durations and ct_status_text() at the end.
 */
#define _GNU_SOURCE 1
#include <argp.h>
#include <arpa/inet.h>
#include <err.h>
#include <errno.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cachedtime.h>

#define EVENTS 256
/* A response and its head: never longer. */
#define RESPONSE_MAX 512
#define LOG_DELAY_MS 100

static struct options {
	int port;
	long reads;
	const char *log_name;
	bool quiet;
} options = { .reads = 1 };

struct connection {
	int fd;
	bool waits_for_room; /* to send; reads nothing meanwhile */
	bool ended;	     /* that was the last response */
	int64_t begin_ms;    /* mono, when the current request began */
	size_t in_size, out_begin, out_end;
	char in[8192];
	char out[16384];
};

static int epoll_fd;
static FILE *log_file;
static bool log_waits; /* for its buffer to be written */

/* A handler that reads the clock a lot (-n): each read is a load. */
static int64_t read_clock(void)
{
	int64_t now_ms = 0;

	for (long i = 0; i < options.reads; i++)
		now_ms = ct_now_ms();
	return now_ms;
}

static void log_request(const struct connection *c, int64_t now_ms, int status,
	const char *line)
{
	int shown = 0;

	if (log_file == NULL)
		return;
	/* Nothing that could upset a terminal. */
	while (line[shown] >= ' ' && line[shown] <= '~')
		shown++;
	fprintf(log_file, "%" PRId64 ".%03d \"%.*s\" %d %" PRId64 "ms\n",
		now_ms / 1000, (int)(now_ms % 1000), shown, line, status,
		ct_mono_ms() - c->begin_ms);
	log_waits = true;
}

/* Is there such a field in the head, and `value` in it? `name` with the line
 * break before it. */
static bool has_field(const char *head, const char *name, const char *value)
{
	const char *field = strcasestr(head, name);
	const char *found;

	if (field == NULL)
		return false;
	field += strlen(name);
	found = strcasestr(field, value);
	return found != NULL && found < field + strcspn(field, "\r\n");
}

static void respond(
	struct connection *c, const char *head, int status, const char *reason)
{
	int64_t now_ms = read_clock();
	char body[64];
	int body_size, size;

	body_size = snprintf(
		body, sizeof(body), "%s\n%" PRId64 "\n", reason, now_ms);
	size = snprintf(&c->out[c->out_end], RESPONSE_MAX,
		"HTTP/1.1 %d %s\r\n"
		"Content-Type: text/plain\r\n"
		"Content-Length: %d\r\n"
		"X-Time-Ms: %" PRId64 "\r\n"
		"%s\r\n%s",
		status, reason, body_size, now_ms,
		c->ended ? "Connection: close\r\n" : "",
		strncmp(head, "HEAD ", 5) == 0 ? "" : body);

	c->out_end += (size_t)size;
	log_request(c, now_ms, status, head);
}

/* One request, whose head is a string. */
static void answer(struct connection *c, const char *head)
{
	size_t line = strcspn(head, "\r");
	bool known = strncmp(head, "GET ", 4) == 0 ||
		     strncmp(head, "HEAD ", 5) == 0;

	/* Bodies are not read here, so nothing can follow one. */
	c->ended = !known || line < 9 ||
		   strncmp(&head[line - 9], " HTTP/1.1", 9) != 0 ||
		   has_field(head, "\r\nconnection:", "close") ||
		   has_field(head, "\r\ncontent-length:", "") ||
		   has_field(head, "\r\ntransfer-encoding:", "");

	if (known)
		respond(c, head, 200, "OK");
	else
		respond(c, head, 405, "Method Not Allowed");
}

/* All requests that are complete and have room for their response. */
static void answer_all(struct connection *c)
{
	size_t begin = 0;

	while (!c->ended && sizeof(c->out) - c->out_end >= RESPONSE_MAX) {
		char *head = &c->in[begin];
		char *end = memmem(head, c->in_size - begin, "\r\n\r\n", 4);

		if (end == NULL)
			break;
		end[2] = '\0';
		answer(c, head);
		begin = (size_t)(end + 4 - c->in);
		c->begin_ms = ct_mono_ms();
	}

	c->in_size -= begin;
	memmove(c->in, &c->in[begin], c->in_size);
}

/* False: the connection is broken, or is done. */
static bool receive(struct connection *c)
{
	ssize_t size;

	size = recv(c->fd, &c->in[c->in_size], sizeof(c->in) - c->in_size, 0);
	if (size < 0)
		return errno == EAGAIN || errno == EINTR;
	if (size == 0)
		return false;
	if (c->in_size == 0)
		c->begin_ms = ct_mono_ms();
	c->in_size += (size_t)size;
	return true;
}

/* False: the connection is broken. */
static bool send_out(struct connection *c)
{
	ssize_t size;

	while (c->out_begin < c->out_end) {
		size = send(c->fd, &c->out[c->out_begin],
			c->out_end - c->out_begin, MSG_NOSIGNAL);
		if (size < 0 && errno == EINTR)
			continue;
		if (size < 0)
			return errno == EAGAIN;
		c->out_begin += (size_t)size;
	}

	c->out_begin = c->out_end = 0;
	return true;
}

static void watch(struct connection *c, int operation)
{
	struct epoll_event event = { .data.ptr = c,
		.events = c->waits_for_room ? EPOLLOUT : EPOLLIN };

	if (epoll_ctl(epoll_fd, operation, c->fd, &event) != 0)
		err(1, "epoll_ctl");
}

static bool serve(struct connection *c)
{
	size_t left;
	bool waited = c->waits_for_room;

	if (!waited && !receive(c))
		return false;

	/* Sending makes room for more responses. */
	do {
		left = c->in_size;
		answer_all(c);
		if (!send_out(c))
			return false;
	} while (c->out_end == 0 && c->in_size < left);

	c->waits_for_room = c->out_end > 0;
	if (c->waits_for_room != waited)
		watch(c, EPOLL_CTL_MOD);
	if (c->waits_for_room)
		return true;
	/* A head that doesn't fit won't get any better. */
	return !c->ended && c->in_size < sizeof(c->in);
}

static void hang_up(struct connection *c)
{
	close(c->fd);
	free(c);
}

static void accept_one(int listener)
{
	int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	struct connection *c;
	int one = 1;

	if (fd < 0 && (errno == EMFILE || errno == ENFILE))
		err(1, "accept");
	if (fd < 0)
		return; /* gone already */

	c = calloc(1, sizeof(*c));
	if (c == NULL)
		err(1, "calloc");
	c->fd = fd;
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	watch(c, EPOLL_CTL_ADD);
}

static int listen_on(int port)
{
	struct sockaddr_in address = { .sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
		.sin_port = htons((uint16_t)port) };
	socklen_t size = sizeof(address);
	int fd, one = 1;

	fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		err(1, "socket");
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(fd, (struct sockaddr *)&address, size) != 0)
		err(1, "port %d", port);
	if (listen(fd, SOMAXCONN) != 0)
		err(1, "listen");
	getsockname(fd, (struct sockaddr *)&address, &size);

	fprintf(stderr, "listening on http://127.0.0.1:%d/\n",
		ntohs(address.sin_port));
	return fd;
}

/*
 * As events of the loop, not by handlers: blocked signals with a handler would
 * keep the first read from starting cachedtime's thread.
 */
static int listen_for_signals(void)
{
	sigset_t ends;
	int fd;

	sigemptyset(&ends);
	sigaddset(&ends, SIGINT);
	sigaddset(&ends, SIGTERM);
	sigprocmask(SIG_BLOCK, &ends, NULL);
	fd = signalfd(-1, &ends, SFD_CLOEXEC);
	if (fd < 0)
		err(1, "signalfd");
	return fd;
}

static void add_fd(int *fd)
{
	struct epoll_event event = { .data.ptr = fd, .events = EPOLLIN };

	if (epoll_ctl(epoll_fd, EPOLL_CTL_ADD, *fd, &event) != 0)
		err(1, "epoll_ctl");
}

static void run(int *listener, int *signals)
{
	struct epoll_event events[EVENTS];
	int count;

	for (;;) {
		/* Log lines are buffered, but not for long. */
		count = epoll_wait(
			epoll_fd, events, EVENTS, log_waits ? LOG_DELAY_MS : -1);
		if (count == 0) {
			fflush(log_file);
			log_waits = false;
		}

		for (int i = 0; i < count; i++) {
			if (events[i].data.ptr == signals)
				return;
			else if (events[i].data.ptr == listener)
				accept_one(*listener);
			else if (!serve(events[i].data.ptr))
				hang_up(events[i].data.ptr);
		}
	}
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	switch (key) {
	case 'p':
		options.port = atoi(arg);
		if (options.port < 0 || options.port > 65535)
			argp_error(state, "%s: not a port", arg);
		return 0;
	case 'n':
		options.reads = atol(arg);
		if (options.reads < 1)
			argp_error(state, "%s: want 1 read or more", arg);
		return 0;
	case 'l':
		options.log_name = arg;
		return 0;
	case 'q':
		options.quiet = true;
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

int main(int argc, char **argv)
{
	static const struct argp_option known[] = {
		{ "port", 'p', "PORT", 0, "Port on 127.0.0.1 (0: any free)", 0 },
		{ "reads", 'n', "N", 0, "Reads of the clock a request (1)", 0 },
		{ "log", 'l', "FILE", 0, "Log there, not to stdout", 0 },
		{ "quiet", 'q', NULL, 0, "Log nothing", 0 },
		{ 0 },
	};
	static const struct argp argp = { .options = known, .parser = parse,
		.doc = "Serves the time over HTTP" };
	int listener, signals;
	char text[2048];

	argp_parse(&argp, argc, argv, 0, NULL, NULL);
	if (!options.quiet)
		log_file = options.log_name ? fopen(options.log_name, "ae") :
					      stdout;
	if (!options.quiet && log_file == NULL)
		err(1, "%s", options.log_name);

	epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (epoll_fd < 0)
		err(1, "epoll_create1");
	signals = listen_for_signals();
	listener = listen_on(options.port);
	add_fd(&signals);
	add_fd(&listener);

	run(&listener, &signals);

	if (log_file != NULL)
		fflush(log_file);
	ct_status_text(text, sizeof(text));
	fputs(text, stderr);
	return 0;
}

/* SPDX-License-Identifier: MIT */
/* When the TSC is taken, and in which words it is not. */
#include "counters.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/stat.h>

#include <cachedtime.h>

#include "clocksource.h"

/*
 * Vendor and hypervisor are labels: nothing is decided by them, and these rows
 * hold that down.
 */
static const struct row {
	const char *machine;
	bool present, invariant, readable;
	const char *current;
	bool automatic, asked; /* is it taken? */
} rows[] = {
	{ "Intel, bare", true, true, true, "tsc", true, true },
	{ "AMD, bare", true, true, true, "tsc", true, true },
	{ "Hygon, bare", true, true, true, "tsc", true, true },
	{ "unknown vendor, bare", true, true, true, "tsc", true, true },
	{ "Intel, KVM", true, true, true, "tsc", true, true },
	{ "Intel, KVM", true, true, true, "kvm-clock", true, true },
	{ "AMD, KVM", true, true, true, "kvm-clock", true, true },
	{ "Intel, Hyper-V", true, true, true, "hyperv_clocksource_tsc_page",
		true, true },
	{ "AMD, Hyper-V", true, true, true, "hyperv_clocksource_msr", false,
		true },
	{ "AMD, Xen", true, true, true, "xen", false, true },
	{ "Intel, Xen", true, true, true, "tsc", true, true },
	{ "AMD, bare, unstable", true, true, true, "hpet", false, true },
	{ "Intel, bare, unstable", true, true, true, "acpi_pm", false, true },
	{ "Hygon, booting", true, true, true, "refined-jiffies", false, true },
	{ "Intel, early", true, true, true, "tsc-early", false, true },
	{ "sandbox", true, true, true, "", false, true },
	{ "Intel, nearly", true, true, true, "tsc2", false, true },
	{ "Intel, old", true, false, true, "tsc", false, false },
	{ "AMD, KVM, migratable", true, false, true, "kvm-clock", false,
		false },
	{ "TCG", true, false, true, "hpet", false, false },
	{ "Intel, trapped", true, true, false, "tsc", false, false },
	{ "Hygon, trapped", true, true, false, "kvm-clock", false, false },
	{ "Intel, old and trapped", true, false, false, "tsc", false, false },
	{ "Arm", false, false, false, "arch_sys_counter", false, false },
	{ "RISC-V", false, false, true, "riscv_clocksource", false, false },
};

static void words_for(const struct row *row, bool taken, char *words,
	size_t size)
{
	const char *current = row->current[0] != '\0' ? row->current : "unknown";

	if (taken)
		snprintf(words, size, "invariant; the kernel's clocksource is "
			"%s", current);
	else if (!row->present)
		snprintf(words, size, "this processor has none");
	else if (!row->invariant)
		snprintf(words, size, "its rate isn't invariant (CPUID)");
	else if (!row->readable)
		snprintf(words, size, "reading it is trapped (PR_GET_TSC)");
	else
		snprintf(words, size, "the kernel's clocksource is %s",
			current);
}

START_TEST(decision)
{
	const struct row *row = &rows[_i];
	const struct tsc_facts facts = {
		.present = row->present,
		.invariant = row->invariant,
		.readable = row->readable,
		.current = row->current,
	};
	char why[128], words[128];
	bool taken;
	int ret;

	for (int asked = 0; asked < 2; asked++) {
		taken = asked ? row->asked : row->automatic;
		memset(why, 'x', sizeof(why));
		ret = tsc_decide(&facts, asked, why, sizeof(why));
		words_for(row, taken, words, sizeof(words));
		ck_assert_msg(ret == (taken ? 0 : -ENODEV), "%s: %d",
			row->machine, ret);
		ck_assert_str_eq(why, words);
	}
}
END_TEST

START_TEST(small_words)
{
	const struct tsc_facts facts = { .present = true, .invariant = true,
		.readable = true, .current = "kvm-clock" };
	char why[8];

	ck_assert_int_eq(tsc_decide(&facts, false, why, sizeof(why)), 0);
	ck_assert_str_eq(why, "invaria");
}
END_TEST

/* A file of the test's own instead of sysfs'. */
static char path[] = "clocksource-XXXXXX";

static void make_file(const char *text)
{
	int fd = mkstemp(path);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(write(fd, text, strlen(text)), (int)strlen(text));
	close(fd);
	clocksource_kernel_from(path);
}

START_TEST(file)
{
	static const struct {
		const char *text, *name;
	} files[] = {
		{ "tsc\n", "tsc" },
		{ "tsc", "tsc" },
		{ "hyperv_clocksource_tsc_page\n",
			"hyperv_clocksource_tsc_page" },
		{ "", "" },
		{ "\n", "" },
		{ "hpet\nacpi_pm\n", "hpet" },
	};
	char name[64];

	make_file(files[_i].text);
	memset(name, 'x', sizeof(name));
	errno = 4711;
	ck_assert_int_eq(clocksource_kernel(name, sizeof(name)), 0);
	ck_assert_str_eq(name, files[_i].name);
	ck_assert_int_eq(errno, 4711);
	unlink(path);
}
END_TEST

START_TEST(missing_file)
{
	char name[64] = "leftover";

	clocksource_kernel_from("no/such/file");
	errno = 4711;
	ck_assert_int_eq(clocksource_kernel(name, sizeof(name)), -ENOENT);
	ck_assert_str_eq(name, "");
	ck_assert_int_eq(errno, 4711);
}
END_TEST

START_TEST(directory)
{
	char name[64] = "leftover";

	clocksource_kernel_from(".");
	errno = 4711;
	ck_assert_int_eq(clocksource_kernel(name, sizeof(name)), -EISDIR);
	ck_assert_str_eq(name, "");
	ck_assert_int_eq(errno, 4711);
}
END_TEST

START_TEST(long_file)
{
	char text[1000], name[64];

	memset(text, 'y', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	make_file(text);
	ck_assert_int_eq(clocksource_kernel(name, sizeof(name)), 0);
	ck_assert_uint_eq(strlen(name), sizeof(name) - 1);
	ck_assert_uint_eq(strspn(name, "y"), sizeof(name) - 1);
	/* Cut off within "tsc" it isn't "tsc". */
	memset(name, 'x', sizeof(name));
	ck_assert_int_eq(clocksource_kernel(name, 3), 0);
	ck_assert_str_eq(name, "yy");
	unlink(path);
}
END_TEST

START_TEST(trusted_names)
{
	static const char *const trusted[] = { "tsc", "kvm-clock",
		"hyperv_clocksource_tsc_page" };
	static const char *const others[] = { "", "hpet", "acpi_pm", "xen",
		"jiffies", "refined-jiffies", "tsc-early", "ts", "TSC", "tsc ",
		"hyperv_clocksource_msr", "arch_sys_counter", "unknown" };

	for (int i = 0; i < LENGTH(trusted); i++)
		ck_assert(clocksource_kernel_trusts_tsc(trusted[i]));
	for (int i = 0; i < LENGTH(others); i++)
		ck_assert(!clocksource_kernel_trusts_tsc(others[i]));
}
END_TEST

static bool invariant_here(void)
{
	struct clocksource cs;
	char reason[512];

	return clocksource_open(&cs, "tsc", reason, sizeof(reason)) == 0;
}

/*
 * From here to the end no clock may be read through the vDSO, which reads the
 * counter as well: it would be ended by SIGSEGV.
 */
static void open_trapped(void)
{
	struct clocksource cs;
	char asked[512], automatic[512];
	int ret;

	CHECK(prctl(PR_SET_TSC, PR_TSC_SIGSEGV) == 0);
	errno = 4711;
	ret = clocksource_open(&cs, "tsc", asked, sizeof(asked));
	CHECK(errno == 4711);
	CHECK(prctl(PR_SET_TSC, PR_TSC_ENABLE) == 0);

	CHECK(ret == -ENODEV);
	CHECK(strcmp(cs.name, "realtime") == 0);
	CHECK(cs.read == NULL);
	CHECK(strstr(asked, "tsc was asked for: reading it is trapped "
			    "(PR_GET_TSC); ") == asked);
	CHECK(strstr(asked, "; realtime: ") != NULL);

	CHECK(prctl(PR_SET_TSC, PR_TSC_SIGSEGV) == 0);
	ret = clocksource_open(&cs, "auto", automatic, sizeof(automatic));
	CHECK(prctl(PR_SET_TSC, PR_TSC_ENABLE) == 0);
	CHECK(ret == 0);
	CHECK(strcmp(cs.name, "realtime") == 0);
	CHECK(strstr(automatic, "not tsc: reading it is trapped "
				"(PR_GET_TSC); realtime: ") == automatic);
}

/* By the public interface, in a mode that reads no clock. */
static void start_trapped(void)
{
	struct ct_config config = { .size = sizeof(config),
		.mode = CT_MODE_OFF };
	struct ct_status status = { .size = sizeof(status) };
	int64_t before_ms;

	CHECK(setenv("CT_BACKEND", "tsc", 1) == 0);
	CHECK(prctl(PR_SET_TSC, PR_TSC_SIGSEGV) == 0);
	CHECK(ct_start(&config) == 0);
	CHECK(ct_status(&status) == 0);
	CHECK(prctl(PR_SET_TSC, PR_TSC_ENABLE) == 0);

	CHECK(strcmp(status.backend, "realtime") == 0);
	CHECK(strstr(status.reason, "tsc was asked for: reading it is trapped "
				    "(PR_GET_TSC)") != NULL);
	CHECK(status.last_error == -ENODEV);
	CHECK(status.counter_hz == 0);
	before_ms = clock_ns(CLOCK_REALTIME) / MS;
	CHECK(ct_now_ms() - before_ms >= 0);
	CHECK(ct_now_ms() - before_ms < 10000);
}

START_TEST(trapped)
{
	if (!invariant_here())
		return;
	ck_assert(child_does(open_trapped));
	ck_assert(child_does(start_trapped));
}
END_TEST

/* What the kernel says on this machine, and what `auto` makes of it. */
START_TEST(here)
{
	struct clocksource cs;
	char name[64], reason[512];

	if (!invariant_here())
		return;
	clocksource_kernel(name, sizeof(name));
	ck_assert_int_eq(clocksource_open(&cs, "auto", reason, sizeof(reason)),
		0);
	ck_assert_str_eq(cs.name,
		clocksource_kernel_trusts_tsc(name) ? "tsc" : "realtime");
}
END_TEST

/* The same machine, with another opinion of the kernel's. */
START_TEST(kernel_disagrees)
{
	static const struct {
		const char *text;
		bool trusted;
	} kernels[] = { { "tsc\n", true }, { "kvm-clock\n", true },
		{ "hpet\n", false }, { "", false } };
	struct clocksource cs;
	char reason[512], words[128];
	bool trusted = kernels[_i].trusted;

	if (!invariant_here())
		return;
	make_file(kernels[_i].text);

	clocksource_open(&cs, NULL, reason, sizeof(reason));
	ck_assert_str_eq(cs.name, trusted ? "tsc" : "realtime");
	/* Who asks for it gets it, and keeps it. */
	ck_assert_int_eq(
		clocksource_open(&cs, "tsc", reason, sizeof(reason)), 0);
	ck_assert_str_eq(cs.name, "tsc");
	ck_assert(cs.watched);
	ck_assert(cs.kernels_own == trusted);
	ck_assert_uint_eq(cs.hz, 0);
	snprintf(words, sizeof(words), "tsc: asked for; invariant; the "
		"kernel's clocksource is %.*s",
		(int)strcspn(kernels[_i].text, "\n"), kernels[_i].text);
	if (kernels[_i].text[0] != '\0')
		ck_assert_str_eq(reason, words);
	unlink(path);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("tsc choice");

	add_table(suite, "machines", decision, LENGTH(rows));
	add_situation(suite, "little room for words", small_words);
	add_table(suite, "the kernel's clocksource", file, 6);
	add_situation(suite, "no sysfs", missing_file);
	add_situation(suite, "a directory instead", directory);
	add_situation(suite, "a long name", long_file);
	add_situation(suite, "trusted names", trusted_names);
	add_situation(suite, "trapped by PR_SET_TSC", trapped);
	add_situation(suite, "this machine", here);
	add_table(suite, "another kernel's opinion", kernel_disagrees, 4);
	return run_suite(suite);
}

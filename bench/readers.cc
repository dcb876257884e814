/* SPDX-License-Identifier: MIT */
/*
 * What a read costs: the loops of loops*.c under google-benchmark. One of its
 * iterations is one read.
 *
 * All of them in one run, many short repetitions in random order, so that
 * everybody gets quiet moments of the machine and busy ones; and by the
 * thread's CPU time, so that being preempted doesn't count. Compare figures of
 * one run, never of two. Options of google-benchmark may be given, and win.
 */
#include <sched.h>
#include <time.h>

#include <algorithm>
#include <string>
#include <vector>

#include <benchmark/benchmark.h>

#include <cachedtime.h>

#include "loops.h"

namespace
{

/* 2048 reads, 0.3 us of the quickest loop: what google-benchmark adds for each
 * batch is under a hundredth. */
constexpr uint64_t rounds = 32;

constexpr struct timespec a_moment = { 0, 100000 };

cpu_set_t allowed_cpus()
{
	cpu_set_t set;

	CPU_ZERO(&set);
	sched_getaffinity(0, sizeof(set), &set);
	return set;
}

/* The n-th of the CPUs that this process may use. */
cpu_set_t nth_cpu(const cpu_set_t &allowed, int n)
{
	cpu_set_t one;

	CPU_ZERO(&one);
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
		if (CPU_ISSET(cpu, &allowed) && n-- == 0)
			CPU_SET(cpu, &one);
	return one;
}

void start_ticking(const benchmark::State &)
{
	struct ct_config config = {};

	config.size = sizeof(config);
	config.mode = CT_MODE_TICK;
	ct_start(&config);
	while (ct_age_ns() == 0)
		nanosleep(&a_moment, nullptr);
}

/* Until the counter's rate has been measured. False where no counter can be
 * used: the longest that it takes is some ten milliseconds. */
bool begin_precise()
{
	struct ct_status status = {};

	status.size = sizeof(status);
	for (int i = 0; i < 1000 && !status.precise; i++) {
		ct_precise_ns();
		nanosleep(&a_moment, nullptr);
		ct_status(&status);
	}
	return status.precise;
}

void start_precise(const benchmark::State &state)
{
	start_ticking(state);
	begin_precise();
}

void stop_ticking(const benchmark::State &)
{
	ct_stop();
}

void run_loop(benchmark::State &state, const struct loop *loop)
{
	while (state.KeepRunningBatch(rounds * LOOP_READS))
		loop->run(rounds);
}

/* Each thread on a core of its own. */
void run_loop_pinned(benchmark::State &state, const struct loop *loop)
{
	cpu_set_t allowed = allowed_cpus();
	cpu_set_t mine = nth_cpu(allowed, state.thread_index());

	sched_setaffinity(0, sizeof(mine), &mine);
	run_loop(state, loop);
	sched_setaffinity(0, sizeof(allowed), &allowed);
}

double lowest(const std::vector<double> &values)
{
	return *std::min_element(values.begin(), values.end());
}

double p90(const std::vector<double> &values)
{
	std::vector<double> sorted = values;

	std::sort(sorted.begin(), sorted.end());
	return sorted[(sorted.size() - 1) * 9 / 10];
}

benchmark::internal::Benchmark *add(
	const char *group, const struct loop *loop, bool pinned = false)
{
	std::string name = std::string(group) + "/" + loop->name;

	return benchmark::RegisterBenchmark(
		name.c_str(), pinned ? run_loop_pinned : run_loop, loop)
		->ComputeStatistics("min", lowest)
		->ComputeStatistics("p90", p90);
}

void add_table(const char *group, const struct loop *table,
	void (*setup)(const benchmark::State &))
{
	for (const struct loop *loop = table; loop->name != nullptr; loop++)
		add(group, loop)->Setup(setup);
}

/* One thread, and one on each core; of the wall words and the mono words one
 * each, which is one for each cache line. */
void add_cores()
{
	cpu_set_t allowed = allowed_cpus();
	int cores = CPU_COUNT(&allowed);

	for (const struct loop *loop = loops_exe; loop->name != nullptr;
		loop++) {
		std::string name = loop->name;

		if (name == "ct_now_ms" || name == "ct_mono_ns")
			add("cores", loop, true)
				->Setup(start_ticking)
				->Threads(1)
				->Threads(cores);
	}
}

/* Without a counter they would be the live ones once more. */
void add_precise()
{
	if (begin_precise()) {
		add_table("precise", loops_exe_precise, start_precise);
		add_table("precise, PIC", loops_pic_precise, start_precise);
		add_table("precise, called", loops_call_precise, start_precise);
	}
	add_table("precise, live", loops_call_precise, stop_ticking);
}

/* The defaults come first, so that what is given overrides them. */
std::vector<char *> with_defaults(int argc, char **argv)
{
	static char interleave[] =
		"--benchmark_enable_random_interleaving=true";
	static char repetitions[] = "--benchmark_repetitions=101";
	static char min_time[] = "--benchmark_min_time=0.005";
	static char aggregates[] = "--benchmark_display_aggregates_only=true";
	std::vector<char *> args = { argv[0], interleave, repetitions, min_time,
		aggregates };

	args.insert(args.end(), argv + 1, argv + argc);
	return args;
}

} // namespace

int main(int argc, char **argv)
{
	std::vector<char *> args = with_defaults(argc, argv);
	int count = static_cast<int>(args.size());

	benchmark::Initialize(&count, args.data());
	if (benchmark::ReportUnrecognizedArguments(count, args.data()))
		return 1;

	add_table("inline", loops_exe, start_ticking);
	add_table("inline, PIC", loops_pic, start_ticking);
	add_table("called", loops_call, start_ticking);
	add_table("live", loops_call, stop_ticking);
	add_table("kernel", loops_kernel, stop_ticking);
	add_cores();
	add_precise();

	benchmark::AddCustomContext("cachedtime", ct_version());
	benchmark::RunSpecifiedBenchmarks();
	benchmark::Shutdown();
	return 0;
}

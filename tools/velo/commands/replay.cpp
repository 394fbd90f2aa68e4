// velo replay: what a trace of allocations reserves, and what an operation costs, in velo's pool,
// by a static plan, and in a model of the allocator that frameworks use on devices. Sizes are
// rounded up to 512 bytes for all of them, so that what differs is fragmentation alone.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <string>
#include <utility>
#include <vector>
#include <velo/velo.hpp>

#include "tools/velo/commands.hpp"
#include "tools/velo/commands/caching_model.hpp"
#include "tools/velo/json.hpp"
#include "tools/velo/messages.hpp"
#include "tools/velo/table.hpp"
#include "tools/velo/text_file.hpp"

namespace command {

const char* const replay_help =
    "usage: velo replay TRACE.csv [--pool velo|plan|model] [--time S] [--svg PICTURE.svg] "
    "[--json]\n\n"
    "Repeats the allocations of a log (columns Thread,Time,Action,Pointer,Size,Stream) without\n"
    "touching the memory, and tells the most bytes alive (sizes rounded up to 512), the most "
    "bytes\n"
    "reserved, how much of these was never alive (in per cent; with --json a share), and the time "
    "of\n"
    "an operation.\n\n"
    "  velo   velo's pool, which knows nothing of what comes (the default)\n"
    "  plan   a static plan of the whole trace, searched for S seconds (1) before it starts\n"
    "  model  the caching allocator of frameworks, as a model: its time is that of the model's "
    "own\n"
    "         bookkeeping, and says nothing of such an allocator's\n\n"
    "--svg draws the plan.\n";

namespace {

struct event {
  std::size_t buffer;
  bool allocates;
};

struct trace {
  std::string file;
  std::vector<std::int64_t> rows;    // by buffer: where it is allocated
  std::vector<std::uint64_t> sizes;  // by buffer, rounded
  std::vector<event> events;         // in the order of time
  velo::plan plan = velo::plan::create();
};

struct outcome {
  std::uint64_t reserved = 0;
  double seconds = 0;
};

[[noreturn]] void refuse(const trace& all, std::size_t buffer, const std::string& why) {
  throw input_error(all.file + ": line " + std::to_string(line_of_row(all.file, all.rows[buffer])) +
                    ": " + std::to_string(all.sizes[buffer]) + " bytes: " + why);
}

trace read_trace(const std::string& file) {
  const velo::plan log = velo::plan::create();
  read_into(log, VELO_PLAN_RMM_LOG, file);
  trace all;
  all.file = file;
  std::uint64_t sum = 0;
  const auto count = static_cast<int64_t>(log.stats().buffers);
  std::vector<std::pair<std::int64_t, event>> timed;
  for (int64_t i = 0; i < count; ++i) {
    const velo_plan_buffer b = log.buffer(i);
    all.sizes.push_back(round_up(b.bytes, 512));
    all.rows.push_back(b.lower);
    if ((sum += all.sizes.back()) >> 63 != 0)
      refuse(all, all.rows.size() - 1, "with the sizes before it 2^63 or more, rounded up to 512");
    all.plan.add(b.lower, b.upper, all.sizes.back());
    timed.push_back({b.lower, {static_cast<std::size_t>(i), true}});
    timed.push_back({b.upper, {static_cast<std::size_t>(i), false}});
  }
  // Every row is one event; only at the end many buffers go at once.
  std::stable_sort(timed.begin(), timed.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  for (const auto& one : timed) all.events.push_back(one.second);
  return all;
}

// Runs every event of the trace and measures all of them together.
template <class Allocate, class Free>
double run(const trace& all, Allocate&& allocate, Free&& free) {
  const auto begin = std::chrono::steady_clock::now();
  for (const event& e : all.events) e.allocates ? allocate(e.buffer) : free(e.buffer);
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

outcome by_velo(const trace& all) {
  const velo::pool pool = velo::pool::create();
  std::vector<void*> blocks(all.sizes.size());
  outcome o;
  o.seconds = run(
      all,
      [&](std::size_t i) {
        try {
          blocks[i] = pool.allocate(all.sizes[i]);
        } catch (const velo::error& failure) {
          refuse(all, i, sentence_of(failure));
        }
      },
      [&](std::size_t i) { pool.free(blocks[i], all.sizes[i]); });
  o.reserved = velo_pool_stats(pool.stats()).bytes_reserved_peak;
  return o;
}

// One block of the plan's height, reserved and not touched; an allocation is a table look-up.
outcome by_plan(const trace& all) {
  const auto page = static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  outcome o;
  o.reserved = round_up(velo_plan_stats(all.plan.stats()).height, page);
  if (o.reserved == 0) return o;
  void* memory = mmap(nullptr, o.reserved, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED)
    throw input_error(all.file + ": the plan's " + std::to_string(o.reserved) +
                      " bytes: " + std::strerror(errno));
  std::vector<std::int64_t> offsets;
  for (std::size_t i = 0; i < all.sizes.size(); ++i)
    offsets.push_back(velo_plan_buffer(all.plan.buffer(static_cast<int64_t>(i))).offset);
  std::vector<char*> blocks(offsets.size());
  o.seconds = run(
      all, [&](std::size_t i) { blocks[i] = static_cast<char*>(memory) + offsets[i]; },
      [&](std::size_t i) { blocks[i] = nullptr; });
  munmap(memory, o.reserved);
  return o;
}

outcome by_model(const trace& all) {
  caching_model model;
  std::vector<std::uint64_t> blocks(all.sizes.size());
  outcome o;
  o.seconds = run(
      all, [&](std::size_t i) { blocks[i] = model.allocate(all.sizes[i]); },
      [&](std::size_t i) { model.free(blocks[i]); });
  o.reserved = model.reserved();
  return o;
}

// A number of bytes in the largest unit of which there is at least one.
std::string amount(json_int_t bytes) {
  char all[32];
  if (bytes < 1 << 10)
    std::snprintf(all, sizeof all, "%d bytes", static_cast<int>(bytes));
  else if (bytes < 1 << 20)
    std::snprintf(all, sizeof all, "%.1f KiB", static_cast<double>(bytes) / (1 << 10));
  else
    std::snprintf(all, sizeof all, "%.1f MiB", static_cast<double>(bytes) / (1 << 20));
  return all;
}

void show(const json_t* all) {
  table facts({"pool", text(all, "pool")});
  char value[64];
  for (const char* bytes : {"peak_live", "peak_reserved"}) {
    facts.add({bytes, amount(json_integer_value(member(all, bytes)))});
  }
  std::snprintf(value, sizeof value, "%.4f %%",
                100 * json_real_value(member(all, "fragmentation")));
  facts.add({"fragmentation", value});
  std::snprintf(value, sizeof value, "%.1f ns", json_real_value(member(all, "ns_per_op")));
  if (text(all, "pool") != "model") facts.add({"per operation", value});
  std::printf("%s", facts.str().c_str());
}

}  // namespace

int replay(const arguments& given) {
  if (given.words.size() != 1) throw input_error("replay wants one TRACE.csv; velo help replay");
  const std::string pool = given.pool.empty() ? "velo" : given.pool;
  const trace all = read_trace(given.words[0]);
  if (pool == "plan") all.plan.solve(given.seconds < 0 ? 1 : given.seconds);
  if (!given.picture.empty()) {
    if (pool != "plan") throw input_error("--svg draws a plan: it goes with --pool plan");
    write_file(given.picture, all.plan.write<std::string>(VELO_PLAN_SVG));
  }
  const outcome o = pool == "velo" ? by_velo(all) : pool == "plan" ? by_plan(all) : by_model(all);
  const std::uint64_t live = velo_plan_stats(all.plan.stats()).lower_bound;
  const double fragmentation =
      o.reserved == 0 ? 0 : 1 - static_cast<double>(live) / static_cast<double>(o.reserved);
  const double events = static_cast<double>(std::max<std::size_t>(all.events.size(), 1));
  const json result(json_pack("{s:s,s:I,s:I,s:f,s:f}", "pool", pool.c_str(), "peak_live",
                              static_cast<json_int_t>(live), "peak_reserved",
                              static_cast<json_int_t>(o.reserved), "fragmentation", fragmentation,
                              "ns_per_op", o.seconds * 1e9 / events));
  given.json ? print(result.get()) : show(result.get());
  return done;
}

}  // namespace command

// velo swap-bench: the bandwidth of the swap tiers on this machine, in this folder. An object is
// swapped out and in by each way to read and write files, with and without checksums; memcpy and
// the host tier are measured for comparison. The first round allocates the file and is compared
// byte for byte; the best of the others counts.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>
#include <velo/velo.hpp>

#include "tools/velo/commands.hpp"
#include "tools/velo/json.hpp"
#include "tools/velo/messages.hpp"
#include "tools/velo/table.hpp"

namespace command {

const char* const swap_bench_help =
    "usage: velo swap-bench DIR [--size N] [--block N] [--depth N] [--time S] [--json]\n\n"
    "Writes an object of N bytes (268435456) to a file without a name in DIR and reads it back, "
    "in\n"
    "blocks of N bytes (1048576), so many at a time (8): by io_uring, where the system allows it, "
    "and\n"
    "by threads, with and without checksums. Beside it a copy within memory and the host tier. "
    "Each\n"
    "row takes about S seconds (2) and tells its best round. DIR may be several folders, separated "
    "by\n"
    "':'.\n";

namespace {

using clock = std::chrono::steady_clock;

struct settings {
  std::string directories;
  std::uint64_t bytes, block;
  int depth;
  double seconds;
};

struct rates {
  double write = 0, read = 0;                      // GB/s, the best
  double checksums_write = 0, checksums_read = 0;  // shares of the time, over all rounds
  std::string engine, how;
};

// The object's memory: touched pages, with contents that do not compress.
class object_memory {
 public:
  explicit object_memory(std::uint64_t bytes) : bytes_(bytes), block_(pool_.allocate(bytes)) {
    fill();
  }
  ~object_memory() { pool_.free(block_, bytes_); }
  object_memory(const object_memory&) = delete;
  object_memory& operator=(const object_memory&) = delete;

  char* get() const { return static_cast<char*>(block_); }
  void fill() const {
    each([](std::uint64_t value, char* at) { std::memcpy(at, &value, sizeof value); });
  }
  bool intact() const {
    bool same = true;
    each([&](std::uint64_t value, const char* at) {
      same = same && std::memcmp(at, &value, sizeof value) == 0;
    });
    return same;
  }

 private:
  template <class F>
  void each(F&& f) const {
    std::uint64_t state = 88172645463325252u;
    for (std::uint64_t i = 0; i + 8 <= bytes_; i += 8) {
      state ^= state << 13;
      state ^= state >> 7;
      state ^= state << 17;
      f(state, get() + i);
    }
  }

  velo::pool pool_ = velo::pool::create();
  std::uint64_t bytes_;
  void* block_;
};

double seconds_of(clock::time_point begin) {
  return std::chrono::duration<double>(clock::now() - begin).count();
}

// Runs round() for about so many seconds, three times at least.
template <class F>
void rounds(double seconds, F&& round) {
  const auto begin = clock::now();
  for (int i = 0; i < 3 || seconds_of(begin) < seconds; ++i) round();
}

rates of_memcpy(const settings& s, const object_memory& memory) {
  const object_memory other(s.bytes);
  rates found;
  found.engine = found.how = "memcpy";
  rounds(s.seconds, [&] {
    const auto begin = clock::now();
    std::memcpy(other.get(), memory.get(), s.bytes);
    const auto half = clock::now();
    std::memcpy(memory.get(), other.get(), s.bytes);
    const double there = std::chrono::duration<double>(half - begin).count();
    found.write = std::max(found.write, 1e-9 * static_cast<double>(s.bytes) / there);
    found.read = std::max(found.read, 1e-9 * static_cast<double>(s.bytes) / seconds_of(half));
  });
  return found;
}

rates of_swap(const settings& s, const velo_swap_desc& desc, const object_memory& memory) {
  const velo::context context = velo::context::create();
  const velo::swap_space swap = velo::swap_space::create(context, desc);
  const velo::stream_ref stream = context.inline_stream();
  const std::uint64_t object = swap.add(memory.get(), s.bytes);
  rates found;
  const auto timed = [&](auto&& copy, double& best) {
    const auto begin = clock::now();
    copy();
    swap.wait(object, stream);
    best = std::max(best, 1e-9 * static_cast<double>(s.bytes) / seconds_of(begin));
  };
  memory.fill();
  swap.out(object, stream);
  swap.wait(object, stream);
  std::memset(memory.get(), 0, s.bytes);
  swap.in(object, stream);
  swap.wait(object, stream);
  if (!memory.intact()) throw input_error("what came back is not what went out");
  rounds(s.seconds, [&] {
    timed([&] { swap.out(object, stream); }, found.write);
    timed([&] { swap.in(object, stream); }, found.read);
  });
  const velo_swap_stats stats = swap.stats();
  found.checksums_write = stats.seconds_checksum_out / stats.seconds_out;
  found.checksums_read = stats.seconds_checksum_in / stats.seconds_in;
  found.how = stats.how;
  found.engine = stats.engine == VELO_SWAP_ENGINE_URING     ? "io_uring"
                 : stats.engine == VELO_SWAP_ENGINE_THREADS ? "threads"
                                                            : "copy";
  return found;
}

json row_of(const char* tier, bool checksums, const rates& r) {
  return json(json_pack("{s:s,s:s,s:b,s:f,s:f,s:f,s:f,s:s}", "tier", tier, "engine",
                        r.engine.c_str(), "checksums", checksums ? 1 : 0, "write_gb_s", r.write,
                        "read_gb_s", r.read, "checksum_share_write", r.checksums_write,
                        "checksum_share_read", r.checksums_read, "how", r.how.c_str()));
}

json measure_all(const settings& s) {
  const object_memory memory(s.bytes);
  json rows(json_array());
  const auto add = [&](const char* tier, bool checksums, const rates& r) {
    json_array_append(rows.get(), row_of(tier, checksums, r).get());
  };
  add("memory", false, of_memcpy(s, memory));
  velo_swap_desc desc = VELO_SWAP_DESC_INIT;
  add("host", false, of_swap(s, desc, memory));
  desc.tier = VELO_SWAP_DISK;
  desc.directories = s.directories.c_str();
  desc.block = s.block;
  desc.depth = s.depth;
  for (const velo_swap_engine engine : {VELO_SWAP_ENGINE_AUTO, VELO_SWAP_ENGINE_THREADS}) {
    for (const bool checksums : {false, true}) {
      desc.engine = engine;
      desc.checksums = checksums ? 1 : 0;
      add("disk", checksums, of_swap(s, desc, memory));
    }
  }
  return json(json_pack("{s:s,s:I,s:I,s:i,s:O}", "directories", s.directories.c_str(), "bytes",
                        static_cast<json_int_t>(s.bytes), "block", static_cast<json_int_t>(s.block),
                        "depth", s.depth, "rows", rows.get()));
}

// Runs `measure`, and rewords a failure for the command, whose objects and requests have no names.
template <class F>
auto measured(const settings& s, F&& measure) {
  try {
    return measure();
  } catch (const velo::error& failure) {
    const std::string expected = failure.expected(), why = sentence_of(failure);
    if (failure.status() == VELO_ERR_MEMORY)
      throw input_error("--size " + std::to_string(s.bytes) + ": no memory for two objects of it" +
                        (expected.empty() ? "" : ": expected " + expected));
    const std::string object = "object 1: ";
    if (why.compare(0, object.size(), object) != 0) throw;
    throw input_error(s.directories + ": " + why.substr(object.size()));
  }
}

void show(const json_t* all) {
  std::printf("%s: %lld bytes in blocks of %lld, %lld at a time\n",
              text(all, "directories").c_str(), json_integer_value(member(all, "bytes")),
              json_integer_value(member(all, "block")), json_integer_value(member(all, "depth")));
  table rows({"tier", "checksums", "write GB/s", "read GB/s", "of it checksums", "how"});
  for (std::size_t i = 0; i < json_array_size(member(all, "rows")); ++i) {
    const json_t* row = json_array_get(member(all, "rows"), i);
    const auto number = [&](const char* name, const char* format, double scale) {
      char value[32];
      std::snprintf(value, sizeof value, format, scale * json_real_value(member(row, name)));
      return std::string(value);
    };
    const bool checksums = json_is_true(member(row, "checksums"));
    rows.add({text(row, "tier"), checksums ? "yes" : "no", number("write_gb_s", "%.2f", 1),
              number("read_gb_s", "%.2f", 1),
              checksums ? number("checksum_share_write", "%.0f %%, ", 100) +
                              number("checksum_share_read", "%.0f %%", 100)
                        : "",
              text(row, "how")});
  }
  std::printf("%s", rows.str().c_str());
}

}  // namespace

int swap_bench(const arguments& given) {
  if (given.words.size() != 1) throw input_error("swap-bench wants one DIR; velo help swap-bench");
  settings s;
  s.directories = given.words[0];
  s.bytes = given.size != 0 ? given.size : std::uint64_t{256} << 20;
  s.block = given.block != 0 ? given.block : std::uint64_t{1} << 20;
  s.depth = static_cast<int>(std::min<std::uint64_t>(given.depth != 0 ? given.depth : 8, 1000));
  s.seconds = given.seconds < 0 ? 2 : given.seconds;
  const json all = measured(s, [&] { return measure_all(s); });
  given.json ? print(all.get()) : show(all.get());
  return done;
}

}  // namespace command

// velo collective: the algorithm of a collective among ranks of this machine, the reason for it,
// and its time.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <thread>
#include <velo/velo.hpp>

#include "tools/velo/closest_name.hpp"
#include "tools/velo/commands.hpp"
#include "tools/velo/json.hpp"
#include "tools/velo/table.hpp"

namespace command {

const char* const collective_help =
    "usage: velo collective KIND [--ranks N] [--size BYTES] [--json]\n\n"
    "Which way a collective of BYTES (1048576) of float32 takes among N ranks (2), threads of "
    "this\n"
    "process, why it takes no other, and its time: predicted by a measurement of the group, and\n"
    "measured itself. KIND: all_reduce, reduce, broadcast, all_gather, reduce_scatter, "
    "all_to_all.\n"
    "BYTES are those of the largest tensor of a rank, rounded down to as many float32 for every "
    "rank.\n\n"
    "  velo collective all_reduce --ranks 4 --size 65536\n\n"
    "Exit codes: 0 done, 1 bad input.\n";

namespace {

struct kind_row {
  const char* name;
  velo_collective_kind kind;
  bool gives_part, gets_part;  // of the whole
};
constexpr kind_row kinds[] = {{"all_reduce", VELO_COLLECTIVE_ALL_REDUCE, false, false},
                              {"reduce", VELO_COLLECTIVE_REDUCE, false, false},
                              {"broadcast", VELO_COLLECTIVE_BROADCAST, false, false},
                              {"all_gather", VELO_COLLECTIVE_ALL_GATHER, true, false},
                              {"reduce_scatter", VELO_COLLECTIVE_REDUCE_SCATTER, false, true},
                              {"all_to_all", VELO_COLLECTIVE_ALL_TO_ALL, false, false}};

const kind_row& kind_called(const std::string& name) {
  std::vector<std::string> names;
  for (const kind_row& row : kinds) {
    if (name == row.name) return row;
    names.emplace_back(row.name);
  }
  throw input_error(name + ": no such collective" + did_you_mean(name, names) +
                    "; velo help collective lists them");
}

// One rank's findings: the explanation of the collective, and the median of its calls.
struct finding {
  std::string explained, failure;
  double seconds = 0;
};

class rank_of_job {
 public:
  rank_of_job(const velo::context& context, const velo::group& group, const kind_row& kind,
              std::size_t part, std::size_t ranks)
      : stream_(context.inline_stream()),
        group_(group),
        kind_(kind),
        in_(kind.gives_part ? part : part * ranks),
        out_(kind.gets_part ? part : part * ranks) {}

  finding run() {
    finding all;
    try {
      group_.measure(stream_);
      const velo::tensor_view in(in_.data(), {static_cast<std::int64_t>(in_.size())}),
          out(out_.data(), {static_cast<std::int64_t>(out_.size())});
      velo_collective_desc desc = VELO_COLLECTIVE_DESC_INIT;
      desc.kind = kind_.kind;
      desc.in = in.get();
      desc.out = out.get();
      const velo::collective one = velo::collective::create(group_, desc);
      all.explained = one.explain<std::string>();
      std::vector<double> took;
      for (int i = 0; i < 15; ++i) {
        group_.barrier(stream_);
        const auto begin = std::chrono::steady_clock::now();
        one.start(stream_);
        took.push_back(
            std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
      }
      std::nth_element(took.begin(), took.begin() + 7, took.end());
      all.seconds = took[7];
    } catch (const std::exception& why) {
      all.failure = why.what();
    }
    return all;
  }

 private:
  const velo::stream_ref stream_;
  const velo::group& group_;
  const kind_row& kind_;
  std::vector<float> in_, out_;
};

// Every rank's tensors, before any thread runs.
std::vector<rank_of_job> make_jobs(const std::vector<velo::context>& contexts,
                                   const std::vector<velo::group>& groups, const kind_row& kind,
                                   std::uint64_t bytes) {
  const std::size_t ranks = groups.size();
  if (bytes < 4 * ranks)
    throw input_error("--size " + std::to_string(bytes) + ": a float32 for each of " +
                      std::to_string(ranks) + " ranks takes " + std::to_string(4 * ranks));
  std::vector<rank_of_job> jobs;
  jobs.reserve(ranks);
  try {
    for (std::size_t rank = 0; rank < ranks; ++rank)
      jobs.emplace_back(contexts[rank], groups[rank], kind, bytes / 4 / ranks, ranks);
  } catch (const std::exception&) {  // bad_alloc, length_error
    throw input_error("--size " + std::to_string(bytes) + ": no memory for the tensors of " +
                      std::to_string(ranks) + " ranks");
  }
  return jobs;
}

std::vector<finding> measure_all(const kind_row& kind, std::size_t ranks, std::uint64_t bytes) {
  velo_context_desc one = VELO_CONTEXT_DESC_INIT;
  one.threads = 1;
  std::vector<velo::context> contexts;
  std::vector<velo_context> handles;
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    contexts.push_back(velo::context::create(one));
    handles.push_back(contexts.back().get());
  }
  const std::vector<velo::group> groups =
      velo::group::create_local<std::vector<velo::group>>(handles.data(), static_cast<int>(ranks));
  std::vector<rank_of_job> jobs = make_jobs(contexts, groups, kind, bytes);
  std::vector<finding> all(ranks);
  std::vector<std::thread> threads;
  for (std::size_t rank = 0; rank < ranks; ++rank)
    threads.emplace_back([&, rank] { all[rank] = jobs[rank].run(); });
  for (std::thread& each : threads) each.join();
  for (const finding& each : all)
    if (!each.failure.empty()) throw std::runtime_error(each.failure);
  return all;
}

std::string microseconds(double nanoseconds) {
  char all[32];
  std::snprintf(all, sizeof all, "%.2f us", nanoseconds / 1e3);
  return all;
}

void show(const json_t* all, double measured_ns) {
  std::printf("%s over %s\n\n", text(all, "operation").c_str(), text(all, "transport").c_str());
  table list({"way", "", "reason"});
  const json_t* ways = member(all, "ways");
  for (std::size_t i = 0; i < json_array_size(ways); ++i) {
    const json_t* row = json_array_get(ways, i);
    list.add({text(row, "name"), json_is_true(member(row, "chosen")) ? "taken" : "-",
              text(row, "reason")});
  }
  std::printf("%s\n", list.str().c_str());
  const auto number = [&](const char* name) {
    return static_cast<double>(json_integer_value(member(all, name)));
  };
  table numbers({"steps", "of", "latency", "bandwidth", "predicted", "measured"});
  char rate[32];
  std::snprintf(rate, sizeof rate, "%.2f GB/s", number("bytes_per_second") / 1e9);
  numbers.add({std::to_string(json_integer_value(member(all, "steps"))),
               std::to_string(json_integer_value(member(all, "step_bytes"))) + " bytes",
               microseconds(number("latency_ns")), rate, microseconds(number("predicted_ns")),
               microseconds(measured_ns)});
  std::printf("%s", numbers.str().c_str());
}

}  // namespace

int collective(const arguments& given) {
  if (given.words.size() != 1)
    throw input_error("collective wants a kind, as in velo collective all_reduce");
  const kind_row& kind = kind_called(given.words[0]);
  const std::vector<finding> all =
      measure_all(kind, given.ranks, given.size != 0 ? given.size : 1 << 20);
  double slowest = 0;
  for (const finding& one : all) slowest = std::max(slowest, one.seconds);
  const json explained = parse(all[0].explained);
  const double measured_ns = slowest * 1e9;
  if (given.json) {
    json_object_set_new(explained.get(), "measured_ns",
                        json_integer(static_cast<json_int_t>(measured_ns)));
    print(explained.get());
  } else {
    show(explained.get(), measured_ns);
  }
  return done;
}

}  // namespace command

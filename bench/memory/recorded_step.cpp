// Traces by way of velo's own reader, which knows the format.
#include "bench/memory/recorded_step.hpp"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <utility>

#include "bench/harness/require.hpp"

namespace velo::bench {
namespace {

recorded_step read_step(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  velo_plan log = nullptr;
  const velo_plan_desc desc = VELO_PLAN_DESC_INIT;
  require(velo_plan_create(&desc, &log));
  require(velo_plan_read(log, VELO_PLAN_RMM_LOG, text.data(), text.size()));
  velo_plan_stats stats = VELO_PLAN_STATS_INIT;
  require(velo_plan_get_stats(log, &stats));
  recorded_step step;
  step.name = file.stem();
  std::vector<std::pair<std::int64_t, recorded_step::event>> timed;
  for (std::int64_t i = 0; i < static_cast<std::int64_t>(stats.buffers); ++i) {
    velo_plan_buffer b = VELO_PLAN_BUFFER_INIT;
    require(velo_plan_get_buffer(log, i, &b));
    step.sizes.push_back(b.bytes);
    timed.push_back({b.lower, {static_cast<std::size_t>(i), true}});
    timed.push_back({b.upper, {static_cast<std::size_t>(i), false}});
  }
  velo_plan_destroy(log);
  std::stable_sort(timed.begin(), timed.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  for (const auto& one : timed) step.events.push_back(one.second);
  return step;
}

// A decoder of 12 layers, hidden 768, on 8 sequences of 512 tokens in 16 bits: what a layer keeps
// for its gradient, what it needs for a moment, and, on the way back, the gradients of both.
class decoder {
 public:
  recorded_step step() {
    std::vector<std::vector<std::size_t>> kept;
    for (int layer = 0; layer < 12; ++layer) {
      kept.emplace_back();
      for (const std::size_t columns : {hidden, 3 * hidden, hidden, hidden, 8 * hidden / 3 * 2})
        kept.back().push_back(take(tokens * columns * 2));
      for (int vector = 0; vector < 2; ++vector) kept.back().push_back(take(tokens * 4));
      pass(tokens * hidden * 2), pass(tokens * hidden * 4), pass(tokens * 12 * 4);
    }
    const std::size_t logits = take(tokens * 32000 * 2);
    pass(tokens * 4), pass(4);
    std::size_t gradient = take(tokens * hidden * 2);
    give(logits);
    for (int layer = 12; layer-- > 0;) {
      for (const std::size_t columns : {8 * hidden / 3 * 2, hidden, 3 * hidden}) {
        const std::size_t of_output = take(tokens * columns * 2);
        pass(hidden * columns * 4), pass(tokens * hidden * 2);
        give(of_output);
      }
      give(std::exchange(gradient, take(tokens * hidden * 2)));
      for (std::size_t b : kept[static_cast<std::size_t>(layer)]) give(b);
    }
    give(gradient);
    made_.name = "decoder";
    return std::move(made_);
  }

 private:
  static constexpr std::size_t hidden = 768, tokens = 8 * 512;

  std::size_t take(std::size_t bytes) {
    made_.sizes.push_back(bytes);
    made_.events.push_back({made_.sizes.size() - 1, true});
    return made_.sizes.size() - 1;
  }
  void give(std::size_t buffer) { made_.events.push_back({buffer, false}); }
  void pass(std::size_t bytes) { give(take(bytes)); }

  recorded_step made_;
};

}  // namespace

std::vector<recorded_step> steps_in(const std::string& folder) {
  std::vector<recorded_step> found;
  if (!folder.empty())
    for (const auto& entry : std::filesystem::directory_iterator(folder))
      if (entry.path().extension() == ".csv") found.push_back(read_step(entry.path()));
  std::sort(found.begin(), found.end(),
            [](const auto& a, const auto& b) { return a.name < b.name; });
  if (found.empty()) found.push_back(decoder().step());
  return found;
}

}  // namespace velo::bench

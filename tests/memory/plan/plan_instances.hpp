// Placement problems made from a seed, and a checker that knows nothing of the planner.
//
// churn: an address space of `height` bytes that is kept full. Runs of neighboring blocks are freed
// together and cut anew, so that some placement of that height exists, blocks interlock in time and
// address, and no moment has room to spare. That is what makes a problem hard; with fill below 1
// some blocks are left out, which loosens it.
//
// pipeline: the first of 8 stages of a pipeline with 4 chunks each under interleaved 1F1B, layers
// recomputed whole: what a layer keeps lives long, what it and its backward pass work with briefly.
#pragma once

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

#include "memory/plan/solver/placement.hpp"
#include "memory/plan/solver/random.hpp"

namespace velo::testing {

struct churn {
  std::uint64_t seed;
  int buffers;
  int width;  // blocks alive at one time, about
  double fill = 1;
  std::int64_t height = 1 << 20;
};

inline std::vector<memory::lifetime> make_churn(const churn& of) {
  struct block {
    std::int64_t begin, end, since;
    bool there;
  };
  memory::plan_random random(of.seed);
  const auto between = [&](std::int64_t least, std::int64_t most) {
    return least + static_cast<std::int64_t>(random.below(most - least + 1));
  };
  std::vector<block> space = {{0, of.height / 1024, 0, true}};
  std::vector<memory::lifetime> made;
  std::int64_t now = 0;
  const auto finish = [&](const block& b) {
    if (b.there && b.since < now) made.push_back({b.since, now, (b.end - b.begin) * 1024});
  };
  const auto recut = [&](std::size_t first, std::size_t count, std::int64_t pieces) {
    const std::int64_t begin = space[first].begin, end = space[first + count - 1].end;
    std::vector<std::int64_t> cuts = {begin, end};
    for (std::int64_t x = 1; x < std::min(pieces, end - begin); ++x)
      cuts.push_back(between(begin, end));
    std::sort(cuts.begin(), cuts.end());
    cuts.erase(std::unique(cuts.begin(), cuts.end()), cuts.end());
    std::vector<block> fresh;
    for (std::size_t x = 1; x < cuts.size(); ++x)
      fresh.push_back({cuts[x - 1], cuts[x], now, random.unit() < of.fill});
    space.erase(space.begin() + first, space.begin() + first + count);
    space.insert(space.begin() + first, fresh.begin(), fresh.end());
  };
  recut(0, 1, of.width);
  while (static_cast<int>(made.size() + space.size()) < of.buffers) {
    now += between(1, 5);
    const std::size_t count = between(1, std::min<std::int64_t>(5, space.size()));
    const std::size_t first = between(0, space.size() - count);
    for (std::size_t x = first; x < first + count; ++x) finish(space[x]);
    const int wanting = of.width - static_cast<int>(space.size());
    recut(first, count,
          static_cast<std::int64_t>(count) + between(-1, 1) + (wanting > 0) - (wanting < 0));
  }
  now += 3;
  for (const block& b : space) finish(b);
  for (std::size_t i = made.size(); i > 1; --i) std::swap(made[i - 1], made[random.below(i)]);
  return made;
}

class pipeline {
 public:
  explicit pipeline(std::uint64_t seed) : random_(seed) {
    for (const std::int64_t kib : {8192, 24576, 8192, 128, 8192, 8192, 32768, 32768, 4096, 64})
      sizes_.push_back(about(kib));
    kept_size_ = about(8192);
  }

  // So many buffers, about.
  std::vector<memory::lifetime> make(std::int64_t buffers) {
    const std::int64_t a_layer = 3 * static_cast<std::int64_t>(sizes_.size()) + 1;
    const std::int64_t rounds =
        std::max<std::int64_t>(buffers / (chunks * layers * a_layer), stages);
    const std::int64_t passes = rounds / stages * stages * chunks;
    const std::int64_t ahead =
        std::min<std::int64_t>(2 * (stages - 1) + (chunks - 1) * stages, passes);
    for (std::int64_t k = 0; k < ahead; ++k) forward(k);
    for (std::int64_t k = 0; k < passes; ++k) {
      if (ahead + k < passes) forward(ahead + k);
      backward(k);
    }
    return std::move(made_);
  }

 private:
  static constexpr std::int64_t stages = 8, chunks = 4, layers = 4;
  struct block {
    std::int64_t since, size;
  };

  std::int64_t about(std::int64_t kib) {
    return static_cast<std::int64_t>(static_cast<double>(kib) * (1 + 0.1 * random_.unit())) * 1024;
  }
  void finish(const block& b) { made_.push_back({b.since, now_++, b.size}); }

  // The chunk and micro-batch of the k-th pass.
  static std::int64_t pass(std::int64_t k, bool back) {
    const std::int64_t chunk = k % (stages * chunks) / stages;
    const std::int64_t batch = k / (stages * chunks) * stages + k % stages;
    return batch * chunks + (back ? chunks - 1 - chunk : chunk);
  }
  void forward(std::int64_t k) {
    for (std::int64_t l = 0; l < layers; ++l) {
      kept_[pass(k, false) * layers + l] = now_++;
      std::vector<block> live;
      for (const std::int64_t size : sizes_) {
        live.push_back({now_++, size});
        if (live.size() <= 3) continue;
        const auto ended = live.begin() + (random_.unit() < 0.7 ? 0 : 1);
        finish(*ended);
        live.erase(ended);
      }
      for (const block& b : live) finish(b);
    }
  }
  void backward(std::int64_t k) {
    for (std::int64_t l = layers; l-- > 0;) {
      std::vector<block> again, gradients;
      for (const std::int64_t size : sizes_) again.push_back({now_++, size});
      for (; !again.empty(); again.pop_back()) {
        gradients.push_back({now_++, again.back().size});
        finish(again.back());
        if (gradients.size() <= 2) continue;
        finish(gradients.front());
        gradients.erase(gradients.begin());
      }
      for (const block& b : gradients) finish(b);
      const auto kept = kept_.find(pass(k, true) * layers + l);
      finish({kept->second, kept_size_});
      kept_.erase(kept);
    }
  }

  memory::plan_random random_;
  std::vector<std::int64_t> sizes_;
  std::int64_t kept_size_ = 0, now_ = 0;
  std::map<std::int64_t, std::int64_t> kept_;
  std::vector<memory::lifetime> made_;
};

// Time passes, and what begins must lie clear of its neighbors in address among what is alive.
// O(n log n).
inline bool lies_apart(const std::vector<memory::lifetime>& buffers,
                       const std::vector<std::int64_t>& offsets) {
  using event = std::tuple<std::int64_t, bool, std::size_t>;  // at one time ends come first
  std::vector<event> events;
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    events.emplace_back(buffers[i].lower, true, i);
    events.emplace_back(buffers[i].upper, false, i);
  }
  std::sort(events.begin(), events.end());
  std::map<std::int64_t, std::int64_t> live;  // from begin to end
  for (const auto& [time, begins, i] : events) {
    const std::int64_t offset = offsets[i], end = offset + buffers[i].size;
    if (!begins) {
      live.erase(offset);
      continue;
    }
    const auto next = live.lower_bound(offset);
    if (offset < 0 || (next != live.end() && next->first < end)) return false;
    if (next != live.begin() && std::prev(next)->second > offset) return false;
    live[offset] = end;
  }
  return true;
}

inline void check_placement(const std::vector<memory::lifetime>& buffers,
                            const memory::placement& placed) {
  REQUIRE(placed.offsets.size() == buffers.size());
  std::int64_t height = 0;
  for (std::size_t i = 0; i < buffers.size(); ++i)
    height = std::max(height, placed.offsets[i] + buffers[i].size);
  CHECK(lies_apart(buffers, placed.offsets));
  CHECK(placed.height == height);
}

}  // namespace velo::testing

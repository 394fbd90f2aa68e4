// Ranks of simulated hosts as threads, with a group inside each host and, for each local rank, one
// across hosts, whose bytes are counted.
#pragma once

#include <atomic>
#include <memory>
#include <utility>
#include <vector>

#include "comm/forwarding.hpp"
#include "comm/ranks.hpp"
#include "comm/transport/local/local.hpp"
#include "comm/transport/shared/shared_area.hpp"

namespace velo::testing {

using numbers = std::vector<std::int64_t>;

inline velo_tensor tensor_of(void* data, velo_dtype dtype, const numbers& shape) {
  return view_of(data, dtype, shape.data(), static_cast<std::int32_t>(shape.size()));
}

inline std::int64_t sum_of(const numbers& all) {
  std::int64_t sum = 0;
  for (const std::int64_t one : all) sum += one;
  return sum;
}

// Counts the bytes that go to other ranks.
class counting final : public forwarding {
 public:
  counting(std::unique_ptr<comm::transport> link, std::atomic<std::int64_t>& bytes)
      : forwarding(std::move(link)), bytes_(bytes) {}
  void run(const comm::operation& what, core::execution& state) override {
    for (int peer = 0; peer < size(); ++peer)
      if (peer != rank()) bytes_ += what.in_block(peer).count * what.in_size();
    forwarding::run(what, state);
  }

 private:
  std::atomic<std::int64_t>& bytes_;
};

// A rank's wrong count of rows to or from another rank: on another host, with the same local rank
// or not, on its own host, itself, and with one host, one rank a host, or one rank.
struct wrong_count {
  int hosts, per_host, rank, other;
};
inline constexpr wrong_count wrong_counts[] = {{2, 2, 1, 3}, {2, 2, 1, 2}, {2, 2, 0, 0},
                                               {3, 1, 0, 2}, {1, 3, 2, 0}, {1, 2, 1, 1},
                                               {1, 1, 0, 0}};

// A group of all ranks, one for each host, and one across hosts for each local rank.
struct hosts {
  hosts(int count, int per_host, std::int64_t timeout_ms = 20000)
      : count(count), per_host(per_host), all(count * per_host, group_desc(timeout_ms)) {
    inside.resize(at(count * per_host));
    across = inside;
    const velo_group_desc desc = group_desc(timeout_ms);
    for (int host = 0; host < count; ++host) {
      std::vector<velo_context> contexts;
      for (int local = 0; local < per_host; ++local)
        contexts.push_back(all.context(host * per_host + local));
      REQUIRE(velo_group_create_local(contexts.data(), per_host, &desc,
                                      &inside[at(host * per_host)]) == VELO_OK);
    }
    for (int local = 0; local < per_host; ++local) {
      auto links =
          comm::make_local(count, comm::shared_area::slot_for(65536, count), desc.timeout_ns);
      for (int host = 0; host < count; ++host) {
        const int rank = host * per_host + local;
        across[at(rank)] = group_over(
            all.context(rank), std::make_unique<counting>(std::move(links[at(host)]), crossed),
            "across", false, desc.timeout_ns);
      }
    }
  }
  ~hosts() {
    for (const velo_group one : inside) velo_group_destroy(one);
    for (const velo_group one : across) velo_group_destroy(one);
  }

  bool ended_inside(int rank) const {  // without waiting for anybody
    return info_of(inside[at(rank)]).failed == 1;
  }
  bool ended_across(int rank) const { return info_of(across[at(rank)]).failed == 1; }

  const int count, per_host;
  std::atomic<std::int64_t> crossed{0};
  local_ranks all;
  std::vector<velo_group> inside, across;
};

}  // namespace velo::testing

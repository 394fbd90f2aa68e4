// The families of a job against lists worked out by hand, and against the rule they follow, spelled
// out rank by rank.
#include <algorithm>
#include <catch2/catch.hpp>
#include <chrono>
#include <map>
#include <numeric>
#include <set>

#include "comm/topology/topologies.hpp"
#include "tests/random.hpp"

using velo::testing::groups;
using velo::testing::random_source32;
using velo::testing::sizes;
using velo::testing::topology;

TEST_CASE("sixteen ranks, two for tensors and four stages: the example of Megatron-LM") {
  const topology t(sizes(2, 1, 1, 2, 4));
  CHECK(t.info().ranks == 16);
  CHECK(t.all("dp") ==
        groups{{0, 2}, {1, 3}, {4, 6}, {5, 7}, {8, 10}, {9, 11}, {12, 14}, {13, 15}});
  CHECK(t.all("tp") ==
        groups{{0, 1}, {2, 3}, {4, 5}, {6, 7}, {8, 9}, {10, 11}, {12, 13}, {14, 15}});
  CHECK(t.all("pp") == groups{{0, 4, 8, 12}, {1, 5, 9, 13}, {2, 6, 10, 14}, {3, 7, 11, 15}});
  CHECK(t.all("mp") == groups{{0, 1, 4, 5, 8, 9, 12, 13}, {2, 3, 6, 7, 10, 11, 14, 15}});
  CHECK(t.all("embedding") == groups{{0, 12}, {1, 13}, {2, 14}, {3, 15}});
  CHECK(t.all("position-embedding") == groups{{0}, {1}, {2}, {3}});
  CHECK(t.place("embedding", 5).group == -1);
  CHECK(t.place("embedding", 5).position == -1);
  CHECK(t.place("embedding", 13).group == 1);
  CHECK(t.place("embedding", 13).position == 1);
}

TEST_CASE(
    "four for tensors and two for sequences: context groups across, data groups around both") {
  const topology t(sizes(4, 2, 1, 1, 1));
  CHECK(t.all("cp") == groups{{0, 4}, {1, 5}, {2, 6}, {3, 7}});
  CHECK(t.all("embedding") == groups{{0}, {1}, {2}, {3}, {4}, {5}, {6}, {7}});
  const topology u(sizes(2, 2, 1, 2, 2));
  CHECK(u.all("dp-cp") == groups{{0, 2, 4, 6}, {1, 3, 5, 7}, {8, 10, 12, 14}, {9, 11, 13, 15}});
  CHECK(u.all("tp-cp") == groups{{0, 1, 2, 3}, {4, 5, 6, 7}, {8, 9, 10, 11}, {12, 13, 14, 15}});
  CHECK(u.all("tp-dp") == groups{{0, 1, 4, 5}, {2, 3, 6, 7}, {8, 9, 12, 13}, {10, 11, 14, 15}});
  CHECK(u.all("tp-dp-cp") == groups{{0, 1, 2, 3, 4, 5, 6, 7}, {8, 9, 10, 11, 12, 13, 14, 15}});
}

TEST_CASE("another order moves the ranks, and names of sets follow it whatever theirs is") {
  // tp-pp-dp with 2, 2, 2: the example in Megatron-LM's generator.
  const topology t(sizes(2, 1, 1, 2, 2, "tp-pp-dp"));
  CHECK(t.all("dp") == groups{{0, 4}, {1, 5}, {2, 6}, {3, 7}});
  CHECK(t.all("pp") == groups{{0, 2}, {1, 3}, {4, 6}, {5, 7}});
  CHECK(t.all("tp-dp") == groups{{0, 1, 4, 5}, {2, 3, 6, 7}});
  CHECK(t.all("dp-tp") == t.all("tp-dp"));
  CHECK(t.all("pp-tp") == t.all("mp"));
  // tp-dp-pp with 2, 3, 4: the other example there.
  const topology u(sizes(2, 1, 1, 3, 4, "TP-DP-PP"));
  CHECK(u.group("dp", 0) == std::vector<std::int32_t>{0, 2, 4});
  CHECK(u.group("dp", 1) == std::vector<std::int32_t>{1, 3, 5});
  CHECK(u.group("dp", 7) == std::vector<std::int32_t>{19, 21, 23});
  // Data parallel ranks as neighbors.
  CHECK(topology(sizes(2, 1, 1, 2, 1, "dp-tp")).all("tp") == groups{{0, 2}, {1, 3}});
}

TEST_CASE("experts have a layout of their own, in the same order") {
  // Dense 2 x 1 x 4; experts 2 x 4 x 1.
  const topology t(sizes(2, 1, 4, 4, 1));
  CHECK(t.info().edp == 1);
  CHECK(t.all("ep") == groups{{0, 2, 4, 6}, {1, 3, 5, 7}});
  CHECK(t.all("tp-ep") == groups{{0, 1, 2, 3, 4, 5, 6, 7}});
  CHECK(t.all("edp") == groups{{0}, {1}, {2}, {3}, {4}, {5}, {6}, {7}});

  // Whole experts on each rank: etp 1, with cp folded into what is left.
  velo_topology_desc desc = sizes(2, 2, 2, 2, 2);
  desc.etp = 1;
  const topology u(desc);
  CHECK(u.info().etp == 1);
  CHECK(u.info().edp == 4);
  CHECK(u.all("ep") ==
        groups{{0, 1}, {2, 3}, {4, 5}, {6, 7}, {8, 9}, {10, 11}, {12, 13}, {14, 15}});
  CHECK(u.all("etp").size() == 16);
  CHECK(u.all("edp") == groups{{0, 2, 4, 6}, {1, 3, 5, 7}, {8, 10, 12, 14}, {9, 11, 13, 15}});
  CHECK(u.all("tp-ep-pp") == groups{{0, 1, 8, 9}, {2, 3, 10, 11}, {4, 5, 12, 13}, {6, 7, 14, 15}});
  CHECK(u.all("pp-edp") == groups{{0, 2, 4, 6, 8, 10, 12, 14}, {1, 3, 5, 7, 9, 11, 13, 15}});
}

TEST_CASE("levels of context: pairs, pairs of pairs, quads") {
  velo_topology_desc desc = sizes(1, 16, 1, 1, 1);
  const std::int64_t levels[] = {2, 2, 4};
  desc.cp_levels = levels;
  desc.cp_level_count = 3;
  const topology t(desc);
  CHECK(t.all("cp-level-1") ==
        groups{{0, 1}, {2, 3}, {4, 5}, {6, 7}, {8, 9}, {10, 11}, {12, 13}, {14, 15}});
  CHECK(t.all("cp-level-2") ==
        groups{{0, 2}, {1, 3}, {4, 6}, {5, 7}, {8, 10}, {9, 11}, {12, 14}, {13, 15}});
  CHECK(t.all("cp-level-3") ==
        groups{{0, 4, 8, 12}, {1, 5, 9, 13}, {2, 6, 10, 14}, {3, 7, 11, 15}});
}

TEST_CASE("hybrid slices have every power of two up to half, the last one what is left") {
  velo_topology_desc desc = sizes(1, 1, 1, 10, 1);
  desc.hybrid = 1;
  const topology t(desc);
  CHECK(t.all("dp-cp-2") == groups{{0, 1}, {2, 3}, {4, 5}, {6, 7}, {8, 9}});
  CHECK(t.all("dp-cp-4") == groups{{0, 1, 2, 3}, {4, 5, 6, 7}, {8, 9}});
  CHECK(t.family("dp-cp-4").size == 4);
  const std::vector<std::string> names = t.names();
  CHECK(std::count_if(names.begin(), names.end(),
                      [](const std::string& name) { return name.rfind("dp-cp-", 0) == 0; }) == 2);
  // tp apart: slices count data ranks, cp fastest.
  desc = sizes(2, 2, 1, 2, 1);
  desc.hybrid = 1;
  CHECK(topology(desc).all("dp-cp-2") == groups{{0, 2}, {4, 6}, {1, 3}, {5, 7}});
}

TEST_CASE("an instance of the optimizer is a slice, its replicas stand at the same place") {
  velo_topology_desc desc = sizes(2, 1, 2, 4, 2);
  desc.instances = 2;
  const topology t(desc);  // edp = 2
  CHECK(t.all("intra-dp-cp") ==
        groups{{0, 2}, {4, 6}, {1, 3}, {5, 7}, {8, 10}, {12, 14}, {9, 11}, {13, 15}});
  CHECK(t.all("inter-dp-cp") ==
        groups{{0, 4}, {2, 6}, {1, 5}, {3, 7}, {8, 12}, {10, 14}, {9, 13}, {11, 15}});
  CHECK(t.all("intra-edp").size() == 16);
  CHECK(t.all("inter-edp") == t.all("edp"));
  CHECK(t.all("optimizer-instance") ==
        groups{{0, 1, 2, 3, 8, 9, 10, 11}, {4, 5, 6, 7, 12, 13, 14, 15}});
}

TEST_CASE("context in two: heads among neighbors, a ring across them, windows in the ring") {
  velo_topology_desc desc = sizes(1, 8, 1, 1, 1);
  desc.cp_ulysses = 2;
  desc.cp_window = 2;
  const topology t(desc);
  CHECK(t.all("cp-ulysses") == groups{{0, 1}, {2, 3}, {4, 5}, {6, 7}});
  CHECK(t.all("cp-ring") == groups{{0, 2, 4, 6}, {1, 3, 5, 7}});
  CHECK(t.all("cp-ring-intra") == groups{{0, 2}, {1, 3}, {4, 6}, {5, 7}});
  desc = sizes(2, 4, 1, 1, 1);
  desc.cp_window = 2;
  CHECK(topology(desc).all("cp-ring-intra") == groups{{0, 2}, {4, 6}, {1, 3}, {5, 7}});
}

TEST_CASE("tensors in two dimensions: rows, columns, and either with the context") {
  velo_topology_desc desc = sizes(8, 2, 1, 1, 1);
  desc.tp_x = 2;
  const topology t(desc);
  CHECK(t.group("nd1-dim1", 1) == std::vector<std::int32_t>{2, 3});
  CHECK(t.all("nd1-dim2") == groups{{0, 2, 4, 6}, {1, 3, 5, 7}, {8, 10, 12, 14}, {9, 11, 13, 15}});
  CHECK(t.all("nd2-dim1") == groups{{0, 1, 2, 3}, {4, 5, 6, 7}, {8, 9, 10, 11}, {12, 13, 14, 15}});
  CHECK(t.group("nd2-dim2", 3) == std::vector<std::int32_t>{3, 7});
  CHECK(t.group("tp-x-cp", 0) == std::vector<std::int32_t>{0, 1, 8, 9});
  CHECK(t.all("tp-y-cp") == groups{{0, 2, 4, 6, 8, 10, 12, 14}, {1, 3, 5, 7, 9, 11, 13, 15}});
  desc.tp_y = 8;
  CHECK(topology(desc).family("nd2-dim1").size == 8);
}

TEST_CASE("twins have the groups of another family, and name it") {
  velo_topology_desc desc = sizes(4, 4, 1, 2, 2);
  desc.twins = 1;
  desc.cp_window = 2;
  desc.tp_x = 2;
  const topology t(desc);
  const std::map<std::string, std::string> expected = {
      {"dp-cp-overlap", "dp-cp"},       {"cp-overlap", "cp"},
      {"pp-new-stream", "pp"},          {"cp-ring-intra-overlap", "cp-ring-intra"},
      {"nd1-dim1-overlap", "nd1-dim1"}, {"nd1-dim2-overlap", "nd1-dim2"},
      {"tp-y-cp-overlap", "tp-y-cp"}};
  std::map<std::string, std::string> found;
  for (const std::string& name : t.names()) {
    const char* of = t.family(name).twin_of;
    if (of != nullptr) found[name] = of;
  }
  CHECK(found == expected);
  for (const auto& [twin, of] : found) CHECK(t.all(twin) == t.all(of));
}

TEST_CASE("gathered weights have an axis after tp, and after ep among the experts") {
  velo_topology_desc desc = sizes(2, 1, 2, 2, 1);
  desc.gtp = 2;
  desc.egtp = 2;
  const topology t(desc);
  CHECK(t.info().ranks == 8);
  CHECK(t.all("gtp") == groups{{0, 2}, {1, 3}, {4, 6}, {5, 7}});
  CHECK(t.all("dp") == groups{{0, 4}, {1, 5}, {2, 6}, {3, 7}});
  CHECK(t.all("ep") == groups{{0, 2}, {1, 3}, {4, 6}, {5, 7}});
  CHECK(t.all("egtp") == groups{{0, 4}, {1, 5}, {2, 6}, {3, 7}});
  CHECK(t.info().edp == 1);
}

namespace {

// The rule itself, without arithmetic on strides: ranks whose indices differ in the masked axes
// alone are a group; groups and ranks in the order of their first rank.. in the order of counting.
groups by_counting(const std::vector<std::pair<std::string, std::int64_t>>& axes,
                   const std::set<std::string>& masked) {
  std::int64_t ranks = 1;
  for (const auto& axis : axes) ranks *= axis.second;
  std::map<std::vector<std::int64_t>, std::vector<std::int32_t>> found;
  for (std::int64_t rank = 0; rank < ranks; ++rank) {
    std::vector<std::int64_t> fixed;
    std::int64_t rest = rank;
    for (const auto& [name, size] : axes) {
      if (masked.count(name) == 0) fixed.insert(fixed.begin(), rest % size);
      rest /= size;
    }
    found[fixed].push_back(
        static_cast<std::int32_t>(rank));  // slowest axis first: sorted as counted
  }
  groups all;
  for (auto& one : found) all.push_back(one.second);
  return all;
}

std::int64_t draw(random_source32& random, std::initializer_list<std::int64_t> from) {
  return random.pick(from);
}

std::int64_t divisor(random_source32& random, std::int64_t of) {
  for (;;) {
    const auto d = static_cast<std::int64_t>(random.below(of)) + 1;
    if (of % d == 0) return d;
  }
}

}  // namespace

TEST_CASE("random jobs in random orders follow the rule") {
  random_source32 random(14);
  int tried = 0;
  for (int round = 0; round < 400; ++round) {
    velo_topology_desc desc = sizes(draw(random, {1, 2, 3, 4}), draw(random, {1, 2, 3}), 1,
                                    draw(random, {1, 2, 3, 4, 6}), draw(random, {1, 2, 3, 4}));
    const std::int64_t stage = desc.tp * desc.cp * desc.dp;
    desc.etp = divisor(random, stage);
    desc.ep = divisor(random, stage / desc.etp);
    const std::int64_t edp = stage / desc.etp / desc.ep;
    std::vector<std::string> words = {"tp", "cp", "ep", "dp", "pp"};
    std::shuffle(words.begin(), words.end(), random);
    std::string order;
    std::vector<std::pair<std::string, std::int64_t>> dense, expert;
    const std::map<std::string, std::int64_t> dense_sizes = {
        {"tp", desc.tp}, {"cp", desc.cp}, {"ep", 1}, {"dp", desc.dp}, {"pp", desc.pp}};
    const std::map<std::string, std::int64_t> expert_sizes = {
        {"tp", desc.etp}, {"cp", 1}, {"ep", desc.ep}, {"dp", edp}, {"pp", desc.pp}};
    for (const std::string& word : words) {
      order += (order.empty() ? "" : "-") + word;
      dense.emplace_back(word, dense_sizes.at(word));
      expert.emplace_back(word, expert_sizes.at(word));
    }
    desc.order = order.c_str();
    INFO(order << " tp " << desc.tp << " cp " << desc.cp << " dp " << desc.dp << " pp " << desc.pp
               << " ep " << desc.ep << " etp " << desc.etp);
    const bool allowed = (words.back() == "pp" || desc.pp == 1 || edp == desc.dp) &&
                         by_counting(dense, {"pp"}) == by_counting(expert, {"pp"});
    velo_topology made = nullptr;
    if (!allowed) {
      CHECK(velo_topology_create(&desc, &made) == VELO_ERR_ARGUMENT);
      velo_topology_destroy(made);
      continue;
    }
    ++tried;
    const topology t(desc);
    const std::set<std::string> none;
    for (const auto& masked : {std::set<std::string>{"tp"},
                               {"pp"},
                               {"dp"},
                               {"cp"},
                               {"dp", "cp"},
                               {"tp", "cp"},
                               {"tp", "dp"},
                               {"tp", "dp", "cp"},
                               {"cp", "pp"}}) {
      std::string name;
      for (const std::string& word : masked) name = word + (name.empty() ? "" : "-") + name;
      CHECK(t.all(name) == by_counting(dense, masked));
    }
    CHECK(t.all("mp") == by_counting(dense, {"tp", "pp"}));
    CHECK(t.all("ep") == by_counting(expert, {"ep"}));
    CHECK(t.all("etp") == by_counting(expert, {"tp"}));
    CHECK(t.all("tp-ep") == by_counting(expert, {"tp", "ep"}));
    CHECK(t.all("tp-ep-pp") == by_counting(expert, {"tp", "ep", "pp"}));
    CHECK(t.all("edp") == by_counting(expert, {"dp"}));
    groups ends;
    for (const auto& pipeline : by_counting(dense, {"pp"}))
      ends.push_back(desc.pp == 1 ? pipeline
                                  : std::vector<std::int32_t>{pipeline.front(), pipeline.back()});
    CHECK(t.all("embedding") == ends);
  }
  CHECK(tried > 100);
}

TEST_CASE("every family puts each rank into one group, where its place says") {
  random_source32 random(15);
  for (int round = 0; round < 200; ++round) {
    velo_topology_desc desc = sizes(draw(random, {1, 2, 4, 6}), draw(random, {1, 2, 4, 6, 8}), 1,
                                    draw(random, {1, 2, 3, 4}), draw(random, {1, 2, 3}));
    desc.gtp = draw(random, {1, 2});
    const std::int64_t stage = desc.tp * desc.cp * desc.dp * desc.gtp;
    desc.etp = divisor(random, stage);
    desc.ep = divisor(random, stage / desc.etp);
    desc.egtp = divisor(random, stage / desc.etp / desc.ep);
    desc.instances =
        divisor(random, std::gcd(desc.dp * desc.cp, stage / desc.etp / desc.ep / desc.egtp));
    desc.hybrid = desc.dp * desc.cp % 2 == 0 ? 1 : 0;
    desc.twins = 1;
    desc.tp_x = divisor(random, desc.tp);
    desc.tp_y = divisor(random, desc.tp);
    const std::int64_t first = divisor(random, desc.cp);
    const std::int64_t levels[] = {first, desc.cp / first};
    desc.cp_levels = levels;
    desc.cp_level_count = 2;
    if (first > 1 && first < desc.cp) desc.cp_ulysses = first;
    const std::int64_t window = divisor(random, desc.cp / desc.cp_ulysses);
    if (window < desc.cp / desc.cp_ulysses) desc.cp_window = window;
    const topology t(desc);
    for (const std::string& name : t.names()) {
      INFO(name << " in round " << round);
      std::set<std::int32_t> seen;
      const groups all = t.all(name);
      std::size_t largest = 0;
      bool agree = true;
      for (std::size_t g = 0; g < all.size(); ++g) {
        largest = std::max(largest, all[g].size());
        for (std::size_t i = 0; i < all[g].size(); ++i) {
          seen.insert(all[g][i]);
          const velo_topology_place place = t.place(name, all[g][i]);
          agree &= place.group == static_cast<std::int64_t>(g);
          agree &= place.position == static_cast<std::int64_t>(i);
        }
      }
      CHECK(agree);
      CHECK(static_cast<std::int64_t>(largest) == t.family(name).size);
      const auto count = [&] {
        std::size_t sum = 0;
        for (const auto& one : all) sum += one.size();
        return sum;
      }();
      CHECK(seen.size() == count);
      std::int64_t members = t.info().ranks;
      if (name == "embedding") members = members / desc.pp * std::min<std::int64_t>(desc.pp, 2);
      if (name == "position-embedding") members /= desc.pp;
      CHECK(static_cast<std::int64_t>(count) == members);
      if (static_cast<std::int64_t>(count) < t.info().ranks)
        for (std::int32_t rank = 0; rank < t.info().ranks; ++rank)
          if (seen.count(rank) == 0) CHECK(t.place(name, rank).group == -1);
    }
  }
}

TEST_CASE("the largest jobs cost as much as the smallest") {
  const auto begin = std::chrono::steady_clock::now();
  velo_topology_desc desc = sizes(8, 16, 64, 1024, 16);
  desc.hybrid = 1;
  desc.twins = 1;
  const topology t(desc);
  CHECK(t.info().ranks == 2097152);
  for (const std::string& name : t.names())
    for (const std::int64_t rank : {0, 1, 77777, 2097151}) {
      const velo_topology_place place = t.place(name, rank);
      if (place.group < 0) continue;
      CHECK(t.group(name, place.group).at(static_cast<std::size_t>(place.position)) == rank);
    }
  const topology largest(sizes(1, 1, 1, 2147483647, 1));
  CHECK(largest.place("dp", 2147483646).position == 2147483646);
  CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(1));
}

TEST_CASE("a thousand hosts: all families of 10,752 ranks") {
  velo_topology_desc desc = sizes(8, 2, 12, 42, 16);
  const topology t(desc);
  CHECK(t.info().ranks == 10752);
  std::int64_t sum = 0;
  for (const std::string& name : t.names())
    for (const auto& group : t.all(name))
      for (const std::int32_t rank : group) sum += rank;
  constexpr std::int64_t every = std::int64_t{10752} * 10751 / 2;
  // Fourteen families hold each rank once; embedding and position-embedding the ends of pipelines.
  std::int64_t ends = 0, firsts = 0;
  for (std::int64_t rank = 0; rank < 672; ++rank) {
    firsts += rank;
    ends += rank + rank + 672 * 15;
  }
  CHECK(sum == 14 * every + ends + firsts);
}

// Events are bounded, so that a long profile cannot take all memory.
#include "examples/decoder/ranks/profile.hpp"

#include <algorithm>
#include <sstream>
#include <utility>
#include <vector>

namespace decoder {
namespace {

std::vector<std::string> parts_of(const std::string& list) {
  std::vector<std::string> all;
  std::istringstream from(list);
  for (std::string each; std::getline(from, each, ',');) all.push_back(each);
  return all;
}

}  // namespace

void profile::start(const velo::context& of, int rank, std::int64_t level) {
  velo_profiler_desc desc = VELO_PROFILER_DESC_INIT;
  desc.level = static_cast<velo_profiler_level>(level);
  desc.rank = rank;
  desc.events = 1 << 18;  // 32 MiB
  now_ = velo::profiler::create(of.get(), desc);
}

profile::result profile::stop() {
  const velo::profiler done = std::exchange(now_, {});
  done.stop();
  return {done.write<std::string>(VELO_PROFILER_EVENTS), done.stats().dropped};
}

bool names_ranks(const std::string& list) {
  if (list == "all") return true;
  const std::vector<std::string> parts = parts_of(list);
  return !parts.empty() && list.back() != ',' &&
         std::all_of(parts.begin(), parts.end(), [](const std::string& each) {
           return !each.empty() && each.size() <= 4 &&
                  each.find_first_not_of("0123456789") == std::string::npos;
         });
}

bool are_ranks_below(const std::string& list, std::int64_t ranks) {
  if (list == "all") return true;
  const std::vector<std::string> parts = parts_of(list);
  return std::all_of(parts.begin(), parts.end(),
                     [&](const std::string& each) { return std::stoi(each) < ranks; });
}

bool is_named(const std::string& list, int rank) {
  if (list == "all") return true;
  const std::vector<std::string> parts = parts_of(list);
  return std::any_of(parts.begin(), parts.end(),
                     [&](const std::string& each) { return std::stoi(each) == rank; });
}

}  // namespace decoder

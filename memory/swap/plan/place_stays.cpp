// Placing stays, and finding the copies out that each stay must wait for.
#include "memory/swap/plan/place_stays.hpp"

#include <algorithm>
#include <map>

namespace velo::memory {
namespace {

// The last stay that left each address by a copy.
class traces {
 public:
  void leave(const swap_stay& stay, std::int32_t number) {
    left_[stay.offset] = {stay.offset + stay.bytes, number};
  }

  // Removes [begin, end) from the traces and returns the stays that left it.
  std::vector<std::int32_t> take(std::int64_t begin, std::int64_t end) {
    std::vector<std::int32_t> found;
    auto at = left_.upper_bound(begin);
    if (at != left_.begin() && std::prev(at)->second.end > begin) --at;
    while (at != left_.end() && at->first < end) {
      const std::int64_t from = at->first;
      const trace old = at->second;
      found.push_back(old.stay);
      at = left_.erase(at);
      if (from < begin) left_[from] = {begin, old.stay};
      if (old.end > end) at = left_.emplace(end, old).first;
    }
    std::sort(found.begin(), found.end());
    found.erase(std::unique(found.begin(), found.end()), found.end());
    return found;
  }

 private:
  struct trace {
    std::int64_t end;
    std::int32_t stay;
  };
  std::map<std::int64_t, trace> left_;  // by begin; they do not overlap
};

// Moments are counted from 0; one stay begins or ends at each.
void find_room(std::vector<swap_stay>& stays) {
  std::vector<std::int32_t> at(2 * stays.size());
  for (std::size_t i = 0; i < stays.size(); ++i)
    at[stays[i].begin] = at[stays[i].end] = static_cast<std::int32_t>(i);
  traces of;
  for (std::size_t moment = 0; moment < at.size(); ++moment) {
    swap_stay& s = stays[at[moment]];
    if (s.begin == static_cast<std::int64_t>(moment)) {
      s.room = of.take(s.offset, s.offset + s.bytes);
    } else if (s.leaves) {
      of.leave(s, at[moment]);
    }
  }
}

}  // namespace

void place_stays(swap_schedule& schedule, const plan_limits& limits) {
  std::vector<lifetime> lives;
  lives.reserve(schedule.stays.size());
  for (const swap_stay& s : schedule.stays) lives.push_back({s.begin, s.end, s.bytes});
  const placement found = place(lives, limits);
  for (std::size_t i = 0; i < lives.size(); ++i) schedule.stays[i].offset = found.offsets[i];
  find_room(schedule.stays);
  schedule.height = found.height;
  schedule.placed = true;
}

}  // namespace velo::memory

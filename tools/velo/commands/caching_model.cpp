// Best fit by size, then address; merging by the order of addresses.
#include "tools/velo/commands/caching_model.hpp"

#include <algorithm>
#include <iterator>

namespace command {
namespace {

constexpr std::uint64_t mib = 1 << 20;
constexpr std::uint64_t smallest = 512, most_small = mib, least_own = 10 * mib;

std::uint64_t segment_size(std::uint64_t bytes) {
  if (bytes <= most_small) return 2 * mib;
  if (bytes < least_own) return 20 * mib;
  return round_up(bytes, 2 * mib);
}

}  // namespace

std::uint64_t caching_model::allocate(std::uint64_t bytes) {
  const std::uint64_t size = std::max(round_up(bytes, smallest), smallest);
  const bool small = size <= most_small;
  free_set& free = small ? small_ : large_;
  auto found = free.lower_bound({size, 0});
  if (found == free.end()) {
    const std::uint64_t segment = segment_size(size), begin = reserved_;
    reserved_ += segment;
    blocks_[begin] = {segment, begin, small, true};
    found = free.insert({segment, begin}).first;
  }
  const std::uint64_t address = found->second;
  block& taken = blocks_[address];
  free.erase(found);
  taken.free = false;
  const std::uint64_t left = taken.size - size;
  if (small ? left >= smallest : left > mib) {
    taken.size = size;
    blocks_[address + size] = {left, taken.segment, small, true};
    free.insert({left, address + size});
  }
  return address;
}

void caching_model::free(std::uint64_t address) {
  auto at = blocks_.find(address);
  const auto joins = [&](blocks::iterator other) {
    return other->second.free && other->second.segment == at->second.segment;
  };
  const auto next = std::next(at);
  if (next != blocks_.end() && joins(next)) {
    free_of(next->second).erase({next->second.size, next->first});
    at->second.size += next->second.size;
    blocks_.erase(next);
  }
  if (at != blocks_.begin() && joins(std::prev(at))) {
    const auto before = std::prev(at);
    free_of(before->second).erase({before->second.size, before->first});
    before->second.size += at->second.size;
    blocks_.erase(at);
    at = before;
  }
  at->second.free = true;
  free_of(at->second).insert({at->second.size, at->first});
}

}  // namespace command

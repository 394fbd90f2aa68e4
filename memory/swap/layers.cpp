// Buckets of layers: the objects that a layer's forward pass keeps are swapped out after that pass,
// and swapped in during the backward pass of the next layer.
//
// A bucket is a list of object numbers. Numbers of objects that were dropped, or moved to a later
// layer, are removed when the bucket is next used. Cost: the copies of its objects.
#include <algorithm>

#include "core/failure.hpp"
#include "memory/swap/swap.hpp"

namespace velo::memory {

void swap::assign(std::uint64_t id, std::int64_t layer) {
  const object_ptr o = find(id);
  const std::lock_guard<std::mutex> lock(o->lock);
  if (o->layer >= layer) return;
  const std::lock_guard<std::mutex> tables(lock_);
  layers_[layer].push_back(id);
  o->layer = layer;
}

std::vector<swap::object_ptr> swap::bucket(std::int64_t layer) {
  std::vector<object_ptr> listed;
  {
    const std::lock_guard<std::mutex> tables(lock_);
    const auto found = layers_.find(layer);
    if (found == layers_.end()) return listed;
    std::vector<std::uint64_t>& ids = found->second;
    listed.reserve(ids.size());
    ids.erase(std::remove_if(ids.begin(), ids.end(),
                             [&](std::uint64_t id) {
                               const auto known = objects_.find(id);
                               if (known == objects_.end()) return true;
                               listed.push_back(known->second);
                               return false;
                             }),
              ids.end());
    if (ids.empty()) layers_.erase(found);
  }
  const auto moved = [&](const object_ptr& o) {
    const std::lock_guard<std::mutex> lock(o->lock);
    return o->layer != layer || o->dropped;
  };
  listed.erase(std::remove_if(listed.begin(), listed.end(), moved), listed.end());
  return listed;
}

bool swap::is_resident_later(const object& o) const {
  const std::lock_guard<std::mutex> lock(o.lock);
  return o.resident_later;
}

void swap::forward(std::int64_t layer, core::stream& on) {
  for (const object_ptr& o : bucket(layer))
    if (o->bytes >= minimum_ && is_resident_later(*o)) out(o->id, on, nullptr);
}

void swap::backward(std::int64_t layer, core::stream& on) {
  const std::vector<object_ptr> mine = bucket(layer);
  for (const object_ptr& o : mine)
    if (!is_resident_later(*o)) in(o->id, nullptr, on, nullptr);
  for (const object_ptr& o : mine) wait(o->id, on);
  for (const object_ptr& o : bucket(layer - 1))
    if (!is_resident_later(*o)) in(o->id, nullptr, on, nullptr);
}

}  // namespace velo::memory

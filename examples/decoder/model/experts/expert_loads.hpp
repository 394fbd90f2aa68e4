// How many choices the experts of each layer get in a step, of all its tokens on all ranks.
//
// Choices that a capacity drops count, too; those of padding do not. A layer without experts has
// zeros. Cost: 8 bytes an expert of each layer, and a sum of these over the ranks once a step.
#pragma once

#include <cstdint>
#include <vector>

#include "examples/decoder/ranks/member.hpp"

namespace decoder {

class expert_loads {
 public:
  // `rank` must outlive the object.
  expert_loads(const member& rank, const model_settings& of);

  void begin();  // a step
  // The choices of this rank's tokens of a micro-batch, [experts], in a layer of the whole model.
  void add(std::size_t layer, const std::int64_t* counts);
  void end();  // all ranks call it; rank 0 then has the sums

  std::size_t layers() const { return counts_.size() / experts_; }
  std::size_t experts() const { return experts_; }
  std::int64_t count(std::size_t layer, std::size_t expert) const {
    return counts_[layer * experts_ + expert];
  }
  // The count of an expert, and the largest of all, as a multiple of the mean of its layer.
  double share(std::size_t layer, std::size_t expert) const;
  double busiest() const;

 private:
  const member& rank_;
  const std::size_t experts_;
  std::vector<std::int64_t> counts_;  // [layers, experts]
};

}  // namespace decoder

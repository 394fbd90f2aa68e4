// The splits of a rank's micro-batches, and the keys and values that the splits of each share.
//
// Keys and values lie by stage and micro-batch. A training step frees them itself, with the
// backward pass of a micro-batch's first split; forward passes alone leave them. Cost: the memory
// of sequence_keys, and nothing from the heap in a step.
#pragma once

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "examples/decoder/model/activations.hpp"

namespace decoder {

class split_sequences {
 public:
  split_sequences() = default;  // sequences are whole
  // layers: of each stage of the rank.
  split_sequences(std::vector<sequence_split> splits, int microbatches,
                  const std::vector<std::size_t>& layers)
      : splits_(std::move(splits)), microbatches_(static_cast<std::size_t>(microbatches)) {
    for (const std::size_t count : layers)
      for (std::size_t i = 0; i < microbatches_; ++i) keys_.emplace_back(count);
  }

  bool are_whole() const { return splits_.empty(); }
  // The shape of so many windows with the most rows; the first splits have them.
  batch_shape largest(std::int64_t windows) const {
    batch_shape most = {windows, 0};
    for (const sequence_split& each : splits_) {
      most.length = std::max(most.length, each.count());
      most.all_length = std::max(most.all_length, each.rows_of_tensor_ranks());
    }
    return most;
  }

  // Makes `of` serve a split of a micro-batch at a stage, which is counted among the rank's.
  void assign(std::size_t stage, int microbatch, int split, activations& of) {
    of.split = &splits_[static_cast<std::size_t>(split)];
    of.keys = &keys_[stage * microbatches_ + static_cast<std::size_t>(microbatch)];
  }
  bool is_last(const activations& of) const { return of.split == &splits_.back(); }

  static void free_keys(const activations& of) {
    for (sequence_keys& each : *of.keys) each = {};
  }
  void free_keys() {
    for (auto& layers : keys_)
      for (sequence_keys& each : layers) each = {};
  }

 private:
  std::vector<sequence_split> splits_;
  std::size_t microbatches_ = 0;
  std::vector<std::vector<sequence_keys>> keys_;
};

}  // namespace decoder

// Documents in a micro-batch, as operators take them: the ends of their rows for attention, and the
// row of the rotary tables that each token takes. Without documents both are those of a window.
#pragma once

#include "examples/decoder/model/activations.hpp"

namespace decoder {

// Objects of both classes add to the arguments of an operator, which must not outlive them.

class document_ends {
 public:
  explicit document_ends(const pass& now) : are_given_(now.documents != nullptr) {
    if (are_given_)
      ends_ = {now.documents->ends.data(), static_cast<std::int64_t>(now.documents->ends.size())};
  }

  template <class Arguments>
  Arguments fill(Arguments with) const {
    if (are_given_)
      with.layout(velo::attention_layout::tnd).actual_seq_qlen(ends_).actual_seq_kvlen(ends_);
    return with;
  }

 private:
  bool are_given_;
  velo_ints ends_ = {};
};

class rotation {
 public:
  explicit rotation(const pass& now)
      : at_positions_(now.documents != nullptr),
        cosines_(now.angles.cosines(at_positions_)),
        sines_(now.angles.sines(at_positions_)) {
    if (at_positions_)
      positions_ = {reinterpret_cast<const std::int32_t*>(now.documents->positions.data()),
                    {1, now.batch.length, 1}};
  }

  template <class Arguments>
  Arguments fill(Arguments with) const {
    with.cos(cosines_).sin(sines_);
    if (at_positions_) with.positions(positions_);
    return with;
  }

 private:
  bool at_positions_;
  velo::tensor_view cosines_, sines_, positions_;
};

}  // namespace decoder

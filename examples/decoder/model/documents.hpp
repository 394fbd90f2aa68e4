// Documents in a micro-batch, as operators take them: the ends of their rows for attention, and the
// row of the rotary tables that each token takes. Without documents both are those of a window, or
// of a split of it.
#pragma once

#include "examples/decoder/model/activations.hpp"

namespace decoder {

// Objects of both classes add to the arguments of an operator, which must not outlive them.

class document_ends {
 public:
  // run: of the queries of a split.
  explicit document_ends(const pass& now, std::size_t run = 0)
      : are_given_(now.documents != nullptr) {
    if (!are_given_) return;
    const packed_documents& of = *now.documents;
    if (now.split == nullptr) {
      queries_ = keys_ = ints_of(of.ends);
    } else if (run < of.runs.size()) {  // in a dry run there are no rows
      queries_ = ints_of(of.runs[run].queries);
      keys_ = ints_of(of.runs[run].keys);
    }
  }

  template <class Arguments>
  Arguments fill(Arguments with) const {
    if (are_given_)
      with.layout(velo::attention_layout::tnd).actual_seq_qlen(queries_).actual_seq_kvlen(keys_);
    return with;
  }

 private:
  static velo_ints ints_of(const std::vector<std::int64_t>& all) {
    return {all.data(), static_cast<std::int64_t>(all.size())};
  }

  bool are_given_;
  velo_ints queries_ = {}, keys_ = {};
};

class rotation {
 public:
  explicit rotation(const pass& now)
      : at_positions_(now.documents != nullptr), mode_(now.angles.mode()) {
    if (now.split != nullptr && !at_positions_) {
      cosines_ = now.angles.cosines(now.split->before, now.split->count());
      sines_ = now.angles.sines(now.split->before, now.split->count());
      return;
    }
    cosines_ = now.angles.cosines(at_positions_);
    sines_ = now.angles.sines(at_positions_);
    if (at_positions_)
      positions_ = {reinterpret_cast<const std::int32_t*>(now.documents->positions.data()),
                    {1, now.batch.length, 1}};
  }

  template <class Arguments>
  Arguments fill(Arguments with) const {
    with.cos(cosines_).sin(sines_).mode(mode_);
    if (at_positions_) with.positions(positions_);
    return with;
  }

 private:
  bool at_positions_;
  velo::rotary_mode mode_;
  velo::tensor_view cosines_, sines_, positions_;
};

}  // namespace decoder

// The windows that a run trains on, by their numbers: of one text, or packed with documents.
//
// Documents are packed once; each epoch visits the windows in an order of its own.
#pragma once

#include "examples/decoder/data/corpus.hpp"
#include "examples/decoder/data/packing.hpp"
#include "examples/decoder/data/windows.hpp"

namespace decoder {

class training_windows {
 public:
  // The text must outlive the object.
  training_windows(const corpus& text, std::int64_t rows, std::int64_t seed);

  // The run's number-th window; valid until the next call.
  window at(std::int64_t number);

  // The targets of windows [first, first + count).
  std::int64_t targets(std::int64_t first, std::int64_t count) const;

  bool has_documents() const { return !packed_.ends.empty(); }
  const packing& packed() const { return packed_; }

 private:
  const corpus& text_;
  std::int64_t rows_;
  windows stream_;
  piece whole_;  // of the last window without documents
  packing packed_;
  epoch_order order_;
};

}  // namespace decoder

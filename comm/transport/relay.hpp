// A relay: pieces that every rank shows all others, one after the other, while it computes in between.
//
// A rank writes a piece into its place and shows it; what all have shown it reads, and releases. Up
// to `places` pieces may be on show, so that ranks need not keep step: none waits for another unless
// that one is so many pieces behind. Nothing here copies. One relay is one operation of its group;
// what its terms and pieces mean is up to who made it. Cost of a piece: two lines from each peer.
#pragma once

#include <cstdint>

namespace velo::comm {

class relay {
 public:
  static constexpr int places = 4;

  relay() = default;
  virtual ~relay() = default;
  relay(const relay&) = delete;
  relay& operator=(const relay&) = delete;

  virtual std::int64_t room() const noexcept = 0;  // bytes of a place, of a multiple of 64

  // Each waits for peers; throws PEER.
  virtual void await_place() = 0;  // until the next place may be written
  virtual void await_piece() = 0;  // until all ranks show the oldest piece that is not released

  virtual char* place() noexcept = 0;                    // to write the next piece to
  virtual void show() noexcept = 0;                      // it is there
  virtual const char* piece(int of) const noexcept = 0;  // the oldest that is not released
  virtual void release() noexcept = 0;                   // it was read
  virtual void finish() noexcept = 0;                    // the last was released
};

}  // namespace velo::comm

// A relay: pieces that every rank shows all others, one after the other, while it computes in
// between.
//
// A rank writes a piece into its place and shows it; what all have shown it reads, and releases. Up
// to `places` pieces may be on show, so that ranks need not keep step: none waits for another
// unless that one is so many pieces behind. Ranks of one process see each other's tensors besides,
// and then a piece may be rows of those, to which nothing is written. Nothing here copies. One
// relay is one operation of its group; what its terms and pieces mean is up to who made it. Cost of
// a piece: two lines from each peer.
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

  // What each rank's operation has as `in`, once a piece was awaited; nullptr where ranks do not
  // see each other's tensors. It may be used, and be written where that is agreed, during a `use`,
  // for a piece that was not released yet; an operation that fails waits for that.
  virtual void* tensor(int of) const noexcept = 0;

  // Each waits for peers; throws PEER.
  virtual void await_place() = 0;    // until the next place may be written
  virtual void await_piece() = 0;    // until all ranks show the oldest piece that is not released
  virtual void await_readers() = 0;  // until no rank uses a tensor of this one any more

  virtual char* place() noexcept = 0;                    // to write the next piece to
  virtual void show() noexcept = 0;                      // it is there
  virtual const char* piece(int of) const noexcept = 0;  // the oldest that is not released
  virtual void release() noexcept = 0;                   // it was read
  virtual void finish() noexcept = 0;                    // the last was released

  class use {
   public:
    explicit use(relay& of) : of_(of) { of.touch(); }  // throws PEER when the group has ended
    ~use() { of_.leave(); }
    use(const use&) = delete;
    use& operator=(const use&) = delete;

   private:
    relay& of_;
  };

 private:
  virtual void touch() = 0;
  virtual void leave() noexcept = 0;
};

}  // namespace velo::comm

// A relay: a pipelined all-gather, in which every rank posts a sequence of pieces for all ranks and
// computes in between.
//
// A rank writes a piece into its next slot and posts it. Once all ranks have posted a piece, the
// rank reads them all and releases them. Up to `slots` pieces may be posted and not released, so a
// rank waits only for a peer that is that many pieces behind. Ranks of one process also see each
// other's tensors; a piece may then consist of rows of these, and its slot stays empty. The relay
// copies nothing. A relay is one operation of its group; its user defines the meaning of terms and
// pieces. A piece costs two lines from each peer.
#pragma once

#include <cstdint>

namespace velo::comm {

class relay {
 public:
  static constexpr int slots = 4;

  relay() = default;
  virtual ~relay() = default;
  relay(const relay&) = delete;
  relay& operator=(const relay&) = delete;

  // The `in` tensor of a rank's operation, known after the first wait; nullptr if ranks do not see
  // each other's tensors. It may be read, or by agreement of the ranks written, during a
  // tensor_access for a piece that is not yet released. An operation that fails waits for the end
  // of all accesses.
  virtual void* peer_tensor(int rank) const noexcept = 0;

  // These wait for peers and throw PEER.
  virtual void wait_slot() = 0;     // until the next slot may be written
  virtual void wait_piece() = 0;    // until all ranks have posted the oldest unreleased piece
  virtual void wait_readers() = 0;  // until no rank uses this rank's tensors any more

  virtual char* slot() noexcept = 0;                       // for the next piece
  virtual void post() noexcept = 0;                        // the next piece is complete
  virtual const char* piece(int rank) const noexcept = 0;  // the oldest unreleased one
  virtual void release() noexcept = 0;                     // this rank has read it
  virtual void finish() noexcept = 0;                      // after the last release

  class tensor_access {
   public:
    explicit tensor_access(relay& of) : of_(of) { of.begin_access(); }  // PEER: the group has ended
    ~tensor_access() { of_.end_access(); }
    tensor_access(const tensor_access&) = delete;
    tensor_access& operator=(const tensor_access&) = delete;

   private:
    relay& of_;
  };

 private:
  virtual void begin_access() = 0;
  virtual void end_access() noexcept = 0;
};

}  // namespace velo::comm

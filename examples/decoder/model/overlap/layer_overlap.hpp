// Passes through layers whose messages to experts travel while something else is computed.
//
// velo's plan of sublayers (velo/sublayers.h) orders the parts: of one pass, so that the weight
// gradients of experts are computed beside the message that returns gradients; or of a forward and
// a backward pass of two micro-batches, so that the messages of one travel while the other is
// computed. The operators and their order within each pass stay, so results have the same bits.
//
// Parts that compute run on the calling thread's stream, messages on a stream of their own. Cost:
// that stream's thread, and a plan for each pair of stages.
#pragma once

#include <exception>
#include <map>
#include <utility>
#include <vector>
#include <velo/velo.hpp>

namespace decoder {

class model;
struct forward_parts;
struct backward_parts;

class layer_overlap {
 public:
  // `pairs`: the schedule's pairs of a forward and a backward pass run at once.
  layer_overlap(const velo::context& context, bool pairs)
      : messages_(velo::stream::create(context)), pairs_(pairs) {}
  layer_overlap(const layer_overlap&) = delete;
  layer_overlap& operator=(const layer_overlap&) = delete;

  velo::stream_ref messages() const { return messages_; }
  bool pairs() const { return pairs_; }

  // A pass of a stage; empty: there is none.
  struct forward_pass {
    model* stage = nullptr;
    const forward_parts* parts = nullptr;
  };
  struct backward_pass {
    const model* stage = nullptr;
    backward_parts* parts = nullptr;
  };
  void run(const velo::stream_ref& compute, const forward_pass& forward,
           const backward_pass& backward);

 private:
  struct under_way;
  using layers = std::vector<std::int32_t>;  // 1: without experts
  const velo::sublayers& plan_of(const layers& forward, const layers& backward, bool has_shared);

  velo::stream messages_;
  bool pairs_;
  std::map<std::pair<layers, layers>, velo::sublayers> plans_;
};

}  // namespace decoder

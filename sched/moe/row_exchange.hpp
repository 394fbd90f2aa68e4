// The movements of rows between tokens and experts, and their gradients.
//
//   to experts   rows[..] = tokens[t], or weight * tokens[t] with the products that are the
//                gradients of the weights
//   to tokens    tokens[t] = sum of weight * row over the choices of t
//
// Ranks that see each other's tensors read rows where they lie and write them where they belong.
// Processes with shared memory do so through shared slots, in pieces. Others send a row for each
// choice by an all-to-all: packed by expert before it, put in their places after it; or gather the
// tokens of all ranks and choose; or send a token once to each host, where it is passed on.
// Invariant: all ways give the same bits. Cost: one read and one write of each row; through slots
// another write and read of what goes to other ranks; by all-to-all a copy on each side.
#pragma once

#include <memory>

#include "comm/group/group.hpp"
#include "core/stream/stream.hpp"
#include "sched/moe/row_routes.hpp"

namespace velo::sched {

enum class row_direction { to_experts, to_tokens };

// A call, checked. Tensors that it does not have are nullptr, as empty ones may be.
struct row_exchange {
  const char* function;
  row_direction direction;
  std::shared_ptr<const row_routes> routes;
  comm::group* among;
  velo_dtype dtype;
  std::int64_t width;  // elements of a row
  const void* from;    // tokens or rows, by the direction
  void* to;            // rows or tokens
  bool weighted = false;
  const float* weights = nullptr;       // [tokens, top_k]; weighted alone
  const void* products_with = nullptr;  // rows whose products with `from` are dweights
  float* dweights = nullptr;            // [tokens, top_k]

  // Whether gradients of the weights are wanted.
  bool differentiates() const { return weighted && direction == row_direction::to_experts; }
  comm::operation request() const;
  void carry_out(const comm::group::ticket& place, core::execution& on) const;
};

void submit(core::stream& on, const row_exchange& what);

}  // namespace velo::sched

// Tensors on their way from one stage to the next.
//
// A parcel is tensors with the memory behind them: where they came from another rank, the
// executor's own or borrowed of the link, else the host's, whose action is to be told when they are
// needed no more. A form is what can be said of tensors without their contents; a sender and its
// receiver keep the last one of each stage and direction, so that it crosses only when it changes.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "sched/schedule/action.hpp"
#include "velo/executor.h"

namespace velo::sched {

inline constexpr int most_dims = 8;

struct tensor_form {  // as it crosses between ranks
  velo_dtype dtype;
  std::int32_t ndim;
  std::int64_t shape[most_dims];  // zeros behind ndim
};
using form = std::vector<tensor_form>;

bool same(const form& a, const form& b);

// Of tensors of the host; throws RANK, SHAPE, DTYPE, LAYOUT, DEVICE.
form form_of(const velo_tensor* tensors, std::int64_t count);
// Bytes of a tensor; throws PEER for what no sender of ours would say.
std::uint64_t bytes_of(const tensor_form& of);

struct parcel {
  std::shared_ptr<const form> what;
  std::vector<velo_tensor> tensors;  // shapes are those of `what`
  bool received = false;             // else the host's
  std::uint32_t owned = 0;           // bits by tensor: received into memory of the executor
  std::uint32_t lent = 0;            // bits by tensor: to be given back to the link
  action from{};                     // of the host's: who made it

  velo_tensors view() const { return {tensors.data(), static_cast<std::int64_t>(tensors.size())}; }
};
using parcel_ptr = std::unique_ptr<parcel>;

// The host's tensors; null where there are none.
parcel_ptr parcel_of_host(const velo_tensor* tensors, std::int64_t count, const action& from);
// Tensors of a form, received; those without bytes are there, others have yet to be given memory.
parcel_ptr empty_parcel(std::shared_ptr<const form> what);

}  // namespace velo::sched

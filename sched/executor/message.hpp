// Messages between stages.
//
// A message consists of tensors and their memory. If it came from another rank, the memory is the
// executor's or borrowed from the link. Otherwise it is the host's, and the host is notified when
// the message is no longer needed. A form describes tensors without their data. Sender and receiver
// keep the last form of each stage and direction, so a form is sent only when it changes.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "core/tensor/shape.hpp"
#include "sched/schedule/action.hpp"
#include "velo/executor.h"

namespace velo::sched {

struct tensor_form {  // as it is sent between ranks
  velo_dtype dtype;
  std::int32_t ndim;
  std::int64_t shape[core::max_rank];  // zeros from ndim on
};
using form = std::vector<tensor_form>;

bool same(const form& a, const form& b);

// The form of the host's tensors; throws RANK, SHAPE, DTYPE, LAYOUT, DEVICE.
form form_of(const velo_tensor* tensors, std::int64_t count);
// The bytes of a tensor; throws PEER for sizes that no velo sender states.
std::uint64_t form_bytes(const tensor_form& of);

struct message {
  std::shared_ptr<const form> common_form;
  std::vector<velo_tensor> tensors;  // shapes are those of `common_form`
  bool received = false;             // false: made by the host
  std::uint32_t owned = 0;           // bits by tensor: received into memory of the executor
  std::uint32_t borrowed = 0;        // bits by tensor: borrowed from the link
  action from{};                     // the action that made a message of the host

  velo_tensors view() const { return {tensors.data(), static_cast<std::int64_t>(tensors.size())}; }
};
using message_ptr = std::unique_ptr<message>;

// A message of the host's tensors; null if there are none.
message_ptr message_of_host(const velo_tensor* tensors, std::int64_t count, const action& from);
// A message to be received, with a form. Tensors without bytes are complete; the others have no
// memory yet.
message_ptr empty_message(std::shared_ptr<const form> common_form);

}  // namespace velo::sched

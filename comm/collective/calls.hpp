// The checks of each call. A collective's arguments become an operation, messages become a batch.
//
// There is one function for each call. It throws as the C function says, before any other rank
// learns of the call.
#pragma once

#include "comm/group/buffer.hpp"
#include "comm/operation/message.hpp"

namespace velo::comm {

// The caller has checked `how`. A tensor that only the root has is nullptr on all other ranks.
operation barrier_call();
operation all_reduce_call(const caller& by, const velo_reduction& how, const velo_tensor* in,
                          const velo_tensor* out);
operation reduce_call(const caller& by, std::int32_t root, const velo_reduction& how,
                      const velo_tensor* in, const velo_tensor* out);
operation broadcast_call(const caller& by, std::int32_t root, const velo_tensor* x);

// The sizes of the blocks of each rank. offsets: where each block begins; nullptr: each follows the
// one before it.
struct block_sizes {
  const std::int64_t* counts = nullptr;
  const std::int64_t* offsets = nullptr;
};
// sizes: nullptr if all blocks have the same number of elements.
operation all_gather_call(const caller& by, const velo_tensor* in, const velo_tensor* out,
                          const block_sizes* sizes);
operation reduce_scatter_call(const caller& by, const velo_reduction& how, const velo_tensor* in,
                              const velo_tensor* out, const block_sizes* sizes);
operation all_to_all_call(const caller& by, const velo_tensor* in, const velo_tensor* out,
                          const block_sizes* in_sizes, const block_sizes* out_sizes);
operation gather_call(const caller& by, std::int32_t root, const velo_tensor* in,
                      const velo_tensor* out, const block_sizes* sizes);
operation scatter_call(const caller& by, std::int32_t root, const velo_tensor* in,
                       const velo_tensor* out, const block_sizes* sizes);

inline constexpr int most_messages = 4096;
message_batch send_call(const caller& by, std::int32_t to, const velo_tensor* x);
message_batch receive_call(const caller& by, std::int32_t from, const velo_tensor* x);
message_batch exchange_call(const caller& by, const velo_group_message* messages,
                            std::int64_t count);
// These need a transport that can start messages. start: the call returns before the message has
// moved. finish: waits for all started messages. borrow: receives a message in place if it lies in
// its sender's message heap (message_heap.hpp).
message_batch start_call(const caller& by, std::int32_t to, const velo_tensor* x);
message_batch finish_call();
message_batch borrow_call(const caller& by, std::int32_t from, std::int64_t bytes);

// Shared by the checks.
operation call_of(collective kind, const char* function, const buffer& in, const buffer& out);
void set_reduction(operation& what, const caller& by, const velo_reduction& how);
void set_root(operation& what, const caller& by, std::int32_t root);  // throws ARGUMENT
[[noreturn]] void refuse_dtype(const buffer& of, const char* argument, const buffer& other);
inline void require_dtype(const buffer& of, const char* argument, const buffer& other) {
  if (of.dtype.code != other.dtype.code || of.dtype.bits != other.dtype.bits)
    refuse_dtype(of, argument, other);
}

}  // namespace velo::comm

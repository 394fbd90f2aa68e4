// Collectives as they are called: arguments checked, and made an operation.
//
// One function for each, in the file of its algorithm. They throw as the C functions say; nothing
// has been told to other ranks by then.
#pragma once

#include "comm/group/buffer.hpp"
#include "comm/group/operation.hpp"

namespace velo::comm {

// how: checked. Where only the root has a tensor, it is nullptr elsewhere.
operation barrier_call();
operation all_reduce_call(const caller& by, const velo_reduction& how, const velo_tensor* in,
                          const velo_tensor* out);
operation reduce_call(const caller& by, std::int32_t root, const velo_reduction& how,
                      const velo_tensor* in, const velo_tensor* out);
operation broadcast_call(const caller& by, std::int32_t root, const velo_tensor* x);

// What each rank has, where ranks have different numbers of elements.
struct uneven {
  const std::int64_t* counts = nullptr;
  const std::int64_t* offsets = nullptr;
};
operation all_gather_call(const caller& by, const velo_tensor* in, const velo_tensor* out,
                          const uneven* parts);
operation reduce_scatter_call(const caller& by, const velo_reduction& how, const velo_tensor* in,
                              const velo_tensor* out, const uneven* parts);
operation all_to_all_call(const caller& by, const velo_tensor* in, const velo_tensor* out,
                          const uneven* in_parts, const uneven* out_parts);
operation gather_call(const caller& by, std::int32_t root, const velo_tensor* in,
                      const velo_tensor* out, const uneven* parts);
operation scatter_call(const caller& by, std::int32_t root, const velo_tensor* in,
                       const velo_tensor* out, const uneven* parts);

inline constexpr int most_messages = 4096;
operation send_call(const caller& by, std::int32_t to, const velo_tensor* x);
operation receive_call(const caller& by, std::int32_t from, const velo_tensor* x);
operation exchange_call(const caller& by, const velo_group_message* messages, std::int64_t count);
// Of a transport that starts messages. start: the message goes on after the call. finish: waits for
// all that were started. borrow: receives a message in place if it lies in its sender's
// message heap (message_heap.hpp).
operation start_call(const caller& by, std::int32_t to, const velo_tensor* x);
operation finish_call();
operation borrow_call(const caller& by, std::int32_t from, std::int64_t bytes);

// What calls share.
operation call_of(collective kind, const char* function, const buffer& in, const buffer& out);
void set_reduction(operation& what, const caller& by, const velo_reduction& how);
void set_root(operation& what, const caller& by, std::int32_t root);  // throws ARGUMENT
[[noreturn]] void refuse_dtype(const buffer& of, const char* argument, const buffer& other);
inline void require_dtype(const buffer& of, const char* argument, const buffer& other) {
  if (of.dtype.code != other.dtype.code || of.dtype.bits != other.dtype.bits)
    refuse_dtype(of, argument, other);
}

}  // namespace velo::comm

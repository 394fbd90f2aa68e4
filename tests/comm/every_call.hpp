// Every call by which three ranks do something together, with tensors for it: to see how each ends.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "velo/velo.h"

namespace velo::test {

struct rank_of_three {
  velo_stream stream;
  velo_group group;
  int rank;
};

struct call_tensors {
  call_tensors(std::int64_t count, int ranks)
      : part(count), whole(count * ranks), in(static_cast<std::size_t>(whole), 1.0f), out(in) {}
  velo_tensor view(std::vector<float>& of, const std::int64_t& count) const {
    return {of.data(), {VELO_DEVICE_CPU, 0}, 1, {VELO_DTYPE_FLOAT, 32, 1}, &count, nullptr, 0};
  }
  std::int64_t part, whole;
  std::vector<float> in, out;
};

using one_call = std::function<velo_status(const rank_of_three&, call_tensors&)>;
struct named_call {
  const char* name;
  one_call call;
};

inline std::vector<named_call> every_call() {
  static const std::int64_t uneven[3] = {1000, 0, 2000};
  return {{"barrier", [](const rank_of_three& me,
                         call_tensors&) { return velo_group_barrier(me.stream, me.group); }},
          {"all_reduce",
           [](const rank_of_three& me, call_tensors& v) {
             const velo_tensor in = v.view(v.in, v.whole), out = v.view(v.out, v.whole);
             return velo_group_all_reduce(me.stream, me.group, nullptr, &in, &out);
           }},
          {"reduce",
           [](const rank_of_three& me, call_tensors& v) {
             const velo_tensor in = v.view(v.in, v.whole), out = v.view(v.out, v.whole);
             return velo_group_reduce(me.stream, me.group, 0, nullptr, &in, &out);
           }},
          {"broadcast",
           [](const rank_of_three& me, call_tensors& v) {
             const velo_tensor x = v.view(v.in, v.whole);
             return velo_group_broadcast(me.stream, me.group, 2, &x);
           }},
          {"all_gather",
           [](const rank_of_three& me, call_tensors& v) {
             const velo_tensor in = v.view(v.in, v.part), out = v.view(v.out, v.whole);
             return velo_group_all_gather(me.stream, me.group, &in, &out);
           }},
          {"all_gather_v",
           [](const rank_of_three& me, call_tensors& v) {
             const velo_tensor in = v.view(v.in, uneven[me.rank]), out = v.view(v.out, v.whole);
             return velo_group_all_gather_v(me.stream, me.group, &in, uneven, nullptr, &out);
           }},
          {"reduce_scatter",
           [](const rank_of_three& me, call_tensors& v) {
             const velo_tensor in = v.view(v.in, v.whole), out = v.view(v.out, v.part);
             return velo_group_reduce_scatter(me.stream, me.group, nullptr, &in, &out);
           }},
          {"reduce_scatter_v",
           [](const rank_of_three& me, call_tensors& v) {
             static const std::int64_t all = 3000;
             const velo_tensor in = v.view(v.in, all), out = v.view(v.out, uneven[me.rank]);
             return velo_group_reduce_scatter_v(me.stream, me.group, nullptr, &in, uneven, &out);
           }},
          {"all_to_all",
           [](const rank_of_three& me, call_tensors& v) {
             const velo_tensor in = v.view(v.in, v.whole), out = v.view(v.out, v.whole);
             return velo_group_all_to_all(me.stream, me.group, &in, &out);
           }},
          {"all_to_all_v",
           [](const rank_of_three& me, call_tensors& v) {
             const std::int64_t same[3] = {v.part, v.part, v.part};
             const velo_tensor in = v.view(v.in, v.whole), out = v.view(v.out, v.whole);
             return velo_group_all_to_all_v(me.stream, me.group, &in, same, nullptr, same, nullptr,
                                            &out);
           }},
          {"gather",
           [](const rank_of_three& me, call_tensors& v) {
             const velo_tensor in = v.view(v.in, v.part), out = v.view(v.out, v.whole);
             return velo_group_gather(me.stream, me.group, 1, &in, &out);
           }},
          {"gather_v",
           [](const rank_of_three& me, call_tensors& v) {
             const velo_tensor in = v.view(v.in, uneven[me.rank]), out = v.view(v.out, v.whole);
             return velo_group_gather_v(me.stream, me.group, 1, &in, uneven, nullptr, &out);
           }},
          {"scatter",
           [](const rank_of_three& me, call_tensors& v) {
             const velo_tensor in = v.view(v.in, v.whole), out = v.view(v.out, v.part);
             return velo_group_scatter(me.stream, me.group, 1, &in, &out);
           }},
          {"scatter_v",
           [](const rank_of_three& me, call_tensors& v) {
             const velo_tensor in = v.view(v.in, v.whole), out = v.view(v.out, uneven[me.rank]);
             return velo_group_scatter_v(me.stream, me.group, 1, &in, uneven, nullptr, &out);
           }},
          {"messages", [](const rank_of_three& me, call_tensors& v) {
             const int next = (me.rank + 1) % 3, last = (me.rank + 2) % 3;
             const velo_tensor in = v.view(v.in, v.part), out = v.view(v.out, v.part);
             const velo_group_message both[] = {{&in, next, VELO_MESSAGE_SEND},
                                                {&out, last, VELO_MESSAGE_RECEIVE}};
             return velo_group_exchange(me.stream, me.group, both, 2);
           }}};
}

}  // namespace velo::test

// Every call by which three ranks do something together, with tensors for it: to see how each ends.
// A rank calls it, or plans it and starts that: it makes no difference to anybody.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "comm/collective/every_collective.hpp"
#include "tests/tensors.hpp"

namespace velo::testing {

struct rank_of_three {
  velo_stream stream;
  velo_group group;
  int rank;
  bool plans = false;

  velo_status ask(const velo_collective_desc& what) const {
    return (plans ? plan_and_start : call)(stream, group, what);
  }
};

struct call_tensors {
  call_tensors(std::int64_t count, int ranks)
      : part(count), whole(count * ranks), in(static_cast<std::size_t>(whole), 1.0f), out(in) {}
  velo_tensor view(std::vector<float>& of, const std::int64_t& count) const {
    return view_of(of.data(), f32, count);
  }
  std::int64_t part, whole;  // part: 1000 at least, of which uneven parts are
  std::vector<float> in, out;
};

using one_call = std::function<velo_status(const rank_of_three&, call_tensors&)>;
struct named_call {
  const char* name;
  one_call call;
};

inline std::vector<named_call> every_call() {
  static const std::int64_t uneven[3] = {1000, 0, 2000}, all = 3000;
  using tensor = velo_tensor;
  return {{"barrier",
           [](const rank_of_three& me, call_tensors&) {
             return me.ask(collective_of(VELO_COLLECTIVE_BARRIER, nullptr, nullptr));
           }},
          {"all_reduce",
           [](const rank_of_three& me, call_tensors& v) {
             const tensor in = v.view(v.in, v.whole), out = v.view(v.out, v.whole);
             return me.ask(collective_of(VELO_COLLECTIVE_ALL_REDUCE, &in, &out));
           }},
          {"reduce",
           [](const rank_of_three& me, call_tensors& v) {
             const tensor in = v.view(v.in, v.whole), out = v.view(v.out, v.whole);
             return me.ask(collective_of(VELO_COLLECTIVE_REDUCE, &in, &out, 0));
           }},
          {"broadcast",
           [](const rank_of_three& me, call_tensors& v) {
             const tensor x = v.view(v.in, v.whole);
             return me.ask(collective_of(VELO_COLLECTIVE_BROADCAST, &x, nullptr, 2));
           }},
          {"all_gather",
           [](const rank_of_three& me, call_tensors& v) {
             const tensor in = v.view(v.in, v.part), out = v.view(v.out, v.whole);
             return me.ask(collective_of(VELO_COLLECTIVE_ALL_GATHER, &in, &out));
           }},
          {"all_gather_v",
           [](const rank_of_three& me, call_tensors& v) {
             const tensor in = v.view(v.in, uneven[me.rank]), out = v.view(v.out, v.whole);
             velo_collective_desc desc = collective_of(VELO_COLLECTIVE_ALL_GATHER_V, &in, &out);
             desc.out_counts = uneven;
             return me.ask(desc);
           }},
          {"reduce_scatter",
           [](const rank_of_three& me, call_tensors& v) {
             const tensor in = v.view(v.in, v.whole), out = v.view(v.out, v.part);
             return me.ask(collective_of(VELO_COLLECTIVE_REDUCE_SCATTER, &in, &out));
           }},
          {"reduce_scatter_v",
           [](const rank_of_three& me, call_tensors& v) {
             const tensor in = v.view(v.in, all), out = v.view(v.out, uneven[me.rank]);
             velo_collective_desc desc = collective_of(VELO_COLLECTIVE_REDUCE_SCATTER_V, &in, &out);
             desc.in_counts = uneven;
             return me.ask(desc);
           }},
          {"all_to_all",
           [](const rank_of_three& me, call_tensors& v) {
             const tensor in = v.view(v.in, v.whole), out = v.view(v.out, v.whole);
             return me.ask(collective_of(VELO_COLLECTIVE_ALL_TO_ALL, &in, &out));
           }},
          {"all_to_all_v",
           [](const rank_of_three& me, call_tensors& v) {
             const std::int64_t same[3] = {v.part, v.part, v.part};
             const tensor in = v.view(v.in, v.whole), out = v.view(v.out, v.whole);
             velo_collective_desc desc = collective_of(VELO_COLLECTIVE_ALL_TO_ALL_V, &in, &out);
             desc.in_counts = desc.out_counts = same;
             return me.ask(desc);
           }},
          {"gather",
           [](const rank_of_three& me, call_tensors& v) {
             const tensor in = v.view(v.in, v.part), out = v.view(v.out, v.whole);
             return me.ask(collective_of(VELO_COLLECTIVE_GATHER, &in, &out, 1));
           }},
          {"gather_v",
           [](const rank_of_three& me, call_tensors& v) {
             const tensor in = v.view(v.in, uneven[me.rank]), out = v.view(v.out, v.whole);
             velo_collective_desc desc = collective_of(VELO_COLLECTIVE_GATHER_V, &in, &out, 1);
             desc.out_counts = uneven;
             return me.ask(desc);
           }},
          {"scatter",
           [](const rank_of_three& me, call_tensors& v) {
             const tensor in = v.view(v.in, v.whole), out = v.view(v.out, v.part);
             return me.ask(collective_of(VELO_COLLECTIVE_SCATTER, &in, &out, 1));
           }},
          {"scatter_v",
           [](const rank_of_three& me, call_tensors& v) {
             const tensor in = v.view(v.in, v.whole), out = v.view(v.out, uneven[me.rank]);
             velo_collective_desc desc = collective_of(VELO_COLLECTIVE_SCATTER_V, &in, &out, 1);
             desc.in_counts = uneven;
             return me.ask(desc);
           }},
          {"messages", [](const rank_of_three& me, call_tensors& v) {
             const int next = (me.rank + 1) % 3, last = (me.rank + 2) % 3;
             const tensor in = v.view(v.in, v.part), out = v.view(v.out, v.part);
             const velo_group_message both[] = {{&in, next, VELO_MESSAGE_SEND},
                                                {&out, last, VELO_MESSAGE_RECEIVE}};
             velo_collective_desc desc = collective_of(VELO_COLLECTIVE_EXCHANGE, nullptr, nullptr);
             desc.messages = both, desc.message_count = 2;
             return me.ask(desc);
           }}};
}

// Around in a ring, one after the other; rank 0 sends first.
inline named_call send_and_receive() {
  return {"send_and_receive", [](const rank_of_three& me, call_tensors& v) {
            const velo_tensor in = v.view(v.in, v.part), out = v.view(v.out, v.part);
            const velo_collective_desc send = collective_of(VELO_COLLECTIVE_SEND, &in, nullptr,
                                                            (me.rank + 1) % 3),
                                       take = collective_of(VELO_COLLECTIVE_RECEIVE, &out, nullptr,
                                                            (me.rank + 2) % 3);
            const velo_status done = me.ask(me.rank == 0 ? send : take);
            return done == VELO_OK ? me.ask(me.rank == 0 ? take : send) : done;
          }};
}

}  // namespace velo::testing

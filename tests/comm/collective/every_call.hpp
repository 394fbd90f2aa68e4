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
      : part(count), whole(count * ranks), in(at(whole), 1.0f), out(in) {}
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

// The elements of a call's tensor: no tensor, a part, one for all parts, uneven parts.
enum class extent { none, part, whole, uneven, all_uneven };

inline std::vector<named_call> every_call() {
  struct row {
    const char* name;
    velo_collective_kind kind;
    extent in, out;
    int root;
  };
  constexpr row rows[] = {
      {"barrier", VELO_COLLECTIVE_BARRIER, extent::none, extent::none, 0},
      {"all_reduce", VELO_COLLECTIVE_ALL_REDUCE, extent::whole, extent::whole, 0},
      {"reduce", VELO_COLLECTIVE_REDUCE, extent::whole, extent::whole, 0},
      {"broadcast", VELO_COLLECTIVE_BROADCAST, extent::whole, extent::none, 2},
      {"all_gather", VELO_COLLECTIVE_ALL_GATHER, extent::part, extent::whole, 0},
      {"all_gather_v", VELO_COLLECTIVE_ALL_GATHER_V, extent::uneven, extent::whole, 0},
      {"reduce_scatter", VELO_COLLECTIVE_REDUCE_SCATTER, extent::whole, extent::part, 0},
      {"reduce_scatter_v", VELO_COLLECTIVE_REDUCE_SCATTER_V, extent::all_uneven, extent::uneven, 0},
      {"all_to_all", VELO_COLLECTIVE_ALL_TO_ALL, extent::whole, extent::whole, 0},
      {"all_to_all_v", VELO_COLLECTIVE_ALL_TO_ALL_V, extent::whole, extent::whole, 0},
      {"gather", VELO_COLLECTIVE_GATHER, extent::part, extent::whole, 1},
      {"gather_v", VELO_COLLECTIVE_GATHER_V, extent::uneven, extent::whole, 1},
      {"scatter", VELO_COLLECTIVE_SCATTER, extent::whole, extent::part, 1},
      {"scatter_v", VELO_COLLECTIVE_SCATTER_V, extent::whole, extent::uneven, 1},
      {"messages", VELO_COLLECTIVE_EXCHANGE, extent::none, extent::none, 0}};
  std::vector<named_call> all;
  for (const row& is : rows)
    all.push_back(
        {is.name, [is](const rank_of_three& me, call_tensors& v) {
           const std::int64_t even[] = {v.part, v.part, v.part}, uneven[] = {1000, 0, 2000};
           const std::int64_t sizes[] = {0, v.part, v.whole, uneven[me.rank], 3000};
           const velo_tensor in = v.view(v.in, sizes[static_cast<int>(is.in)]),
                             out = v.view(v.out, sizes[static_cast<int>(is.out)]),
                             gives = v.view(v.in, v.part), takes = v.view(v.out, v.part);
           const velo_group_message ring[] = {{&gives, (me.rank + 1) % 3, VELO_MESSAGE_SEND},
                                              {&takes, (me.rank + 2) % 3, VELO_MESSAGE_RECEIVE}};
           velo_collective_desc desc =
               collective_of(is.kind, is.in == extent::none ? nullptr : &in,
                             is.out == extent::none ? nullptr : &out, is.root);
           desc.in_counts = desc.out_counts =
               is.kind == VELO_COLLECTIVE_ALL_TO_ALL_V ? even : uneven;
           if (is.kind == VELO_COLLECTIVE_EXCHANGE) desc.messages = ring, desc.message_count = 2;
           return me.ask(desc);
         }});
  return all;
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

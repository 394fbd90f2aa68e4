// The rows of dispatchers and routings.
#include "tests/calls/rows.hpp"
#include "tests/tensors.hpp"

namespace velo::testing {
namespace {

// Two tokens of three elements, of which one expert of two gets three rows.
std::int32_t chosen[] = {0, 1, 1, -1};
float tokens[6], rows[9], weights[4], dweights[4];
const std::int64_t choice_shape[] = {2, 2}, token_shape[] = {2, 3}, row_shape[] = {3, 3};

const velo_tensor all_choices = view_of(chosen, i32, choice_shape);
const velo_tensor all_tokens = view_of(tokens, f32, token_shape);
const velo_tensor all_rows = view_of(rows, f32, row_shape);
const velo_tensor all_weights = view_of(weights, f32, choice_shape);
const velo_tensor all_dweights = view_of(dweights, f32, choice_shape);

void open_group(world& w) {
  open_with_queue(w);
  must(velo_group_create(w.context, nullptr, &w.groups[0]));
}
velo_status create(world& w) {
  velo_dispatcher_desc desc = VELO_DISPATCHER_DESC_INIT;
  desc.experts = 2, desc.top_k = 2;
  return velo_dispatcher_create(w.groups[0], &desc, &w.dispatcher);
}
void open_dispatcher(world& w) {
  open_group(w);
  must(create(w));
}
velo_status create_routing(world& w) {
  return velo_routing_create(w.dispatcher, &w.routing);
}
void open_routing(world& w) {
  open_dispatcher(w);
  must(create_routing(w));
}
velo_status set(world& w) {
  return velo_routing_set(w.routing, w.now, &all_choices, nullptr, nullptr);
}
velo_status get_rows(world& w) {
  std::int64_t counts[2] = {}, all = 0;
  return velo_routing_get_rows(w.routing, counts, 2, &all);
}
void open_set(world& w) {
  open_routing(w);
  must(set(w));
  must(get_rows(w));
}
constexpr auto get_info = &get<velo_dispatcher_get_info, &world::dispatcher>;
velo_status forget(world& w) {
  return velo_routing_reset(w.routing);
}

}  // namespace

std::vector<call_row> dispatcher_rows() {
  return {
      {"velo_dispatcher_create", open_group, create},
      {"velo_dispatcher_destroy", open_dispatcher,
       destroy<velo_dispatcher_destroy, &world::dispatcher, get_info>},
      {"velo_dispatcher_get_info", open_dispatcher, get_info},
      {"velo_routing_create", open_dispatcher, create_routing},
      {"velo_routing_destroy", open_routing,
       destroy<velo_routing_destroy, &world::routing, forget>},
      {"velo_routing_set", open_routing, set},
      {"velo_routing_get_rows", open_set, get_rows},
      {"velo_routing_reset", open_set, forget},
      {"velo_dispatcher_dispatch", open_set,
       [](world& w) {
         return velo_dispatcher_dispatch(w.dispatcher, w.now, w.routing, &all_tokens, &all_rows);
       }},
      {"velo_dispatcher_combine", open_set,
       [](world& w) {
         return velo_dispatcher_combine(w.dispatcher, w.now, w.routing, &all_rows, &all_weights,
                                        &all_tokens);
       }},
      {"velo_dispatcher_combine_backward", open_set,
       [](world& w) {
         static float drows[9];
         const velo_tensor gradient = view_of(drows, f32, row_shape);
         return velo_dispatcher_combine_backward(w.dispatcher, w.now, w.routing, &all_tokens,
                                                 &all_rows, &all_weights, &gradient, &all_dweights);
       }},
      {"velo_dispatcher_dispatch_backward", open_set,
       [](world& w) {
         return velo_dispatcher_dispatch_backward(w.dispatcher, w.now, w.routing, &all_rows,
                                                  &all_tokens);
       }},
  };
}

}  // namespace velo::testing

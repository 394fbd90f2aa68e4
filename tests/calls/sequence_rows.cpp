// The rows of sequence plans.
#include "tests/calls/rows.hpp"

namespace velo::testing {
namespace {

constexpr auto forward = VELO_SEQUENCE_FORWARD;

velo_status create(world& w) {
  static const std::int64_t ends[] = {3, 3, 8};
  velo_sequence_desc desc = VELO_SEQUENCE_DESC_INIT;
  desc.kind = VELO_SEQUENCE_HYBRID;
  desc.cp = 4, desc.ulysses = 2, desc.sequence = 8;
  desc.document_ends = ends, desc.document_count = 3;
  desc.heads = 2, desc.kv_heads = 1;
  return velo_sequence_plan_create(&desc, &w.sequence_plan);
}
// Rows that see others are grouped, and tasks put into rounds.
velo_status create_adaptive(world& w) {
  static std::uint8_t mask[16 * 16];
  for (int i = 0; i < 16 * 16; ++i) mask[i] = (i / 16 + i) % 3 == 0 ? 1 : 0;
  velo_sequence_desc desc = VELO_SEQUENCE_DESC_INIT;
  desc.kind = VELO_SEQUENCE_HYBRID_ADAPTIVE;
  desc.cp = 4, desc.ulysses = 2, desc.sequence = 16, desc.mask = mask;
  desc.heads = 2, desc.kv_heads = 1;
  return velo_sequence_plan_create(&desc, &w.sequence_plan);
}
void open_adaptive(world& w) {
  must(create_adaptive(w));
}
void open_plan(world& w) {
  must(create(w));
}
constexpr auto count_steps = &get<velo_sequence_plan_get_info, &world::sequence_plan>;

}  // namespace

std::vector<call_row> sequence_rows() {
  return {
      {"velo_sequence_plan_create", nothing, create},
      {"velo_sequence_plan_create", nothing, create_adaptive},
      {"velo_sequence_plan_destroy", open_plan,
       destroy<velo_sequence_plan_destroy, &world::sequence_plan, count_steps>},
      {"velo_sequence_plan_get_info", open_plan, count_steps},
      {"velo_sequence_plan_get_rows", open_plan,
       [](world& w) {
         std::int64_t spans[16] = {};
         return velo_sequence_plan_get_rows(w.sequence_plan, 1, spans, 8, nullptr);
       }},
      {"velo_sequence_plan_get_step", open_plan,
       get<velo_sequence_plan_get_step, &world::sequence_plan, forward, 1, 1>},
      {"velo_sequence_plan_get_task", open_plan,
       get<velo_sequence_plan_get_task, &world::sequence_plan, forward, 1, 1, 0>},
      {"velo_sequence_plan_get_message", open_plan,
       get<velo_sequence_plan_get_message, &world::sequence_plan, forward, 1, 1, VELO_SEQUENCE_SENT,
           0>},
      {"velo_sequence_plan_get_spans", open_plan,
       [](world& w) {
         std::int64_t spans[16] = {};
         return velo_sequence_plan_get_spans(w.sequence_plan, forward, 1, 1,
                                             VELO_SEQUENCE_TASK_KEYS, 0, spans, 8, nullptr);
       }},
      {"velo_sequence_plan_check", open_plan,
       [](world& w) { return velo_sequence_plan_check(w.sequence_plan); }},
      {"velo_sequence_plan_check", open_adaptive,
       [](world& w) { return velo_sequence_plan_check(w.sequence_plan); }},
      {"velo_sequence_plan_write", open_plan,
       write_text<velo_sequence_plan_write, &world::sequence_plan, VELO_SEQUENCE_SVG>},
      {"velo_sequence_plan_write", open_adaptive,
       write_text<velo_sequence_plan_write, &world::sequence_plan, VELO_SEQUENCE_JSON>},
  };
}

}  // namespace velo::testing

// Dispatchers and routings of any description: each is made or refused by a field's name, and what
// is made keeps every choice in a row of its expert or drops it.
#include <cmath>
#include <limits>

#include "tests/sched/moe/layer_pass.hpp"

using namespace velo;
using namespace velo::testing;

namespace {

using drawer = random_numbers<std::mt19937>;

template <class T, std::size_t N>
T one_of(drawer& draw, const T (&all)[N]) {
  return all[draw.below(N)];
}

velo_dispatcher_desc any_desc(drawer& draw, velo_group group) {
  constexpr std::int32_t words[] = {0, 0, 0, 1, 1, 2, 3, 4, -1, INT32_MIN, INT32_MAX};
  constexpr std::int64_t numbers[] = {
      0, 1, 2, 3, 8, 1 << 20, (1 << 20) + 1, -1, INT64_MIN, INT64_MAX, (std::int64_t{1} << 31) - 1};
  const double factors[] = {0, 0.5, 1, 1.25, 1e300, -1, NAN, INFINITY, 5e-324};
  velo_dispatcher_desc desc = VELO_DISPATCHER_DESC_INIT;
  desc.top_k = draw.one_in(8) ? one_of(draw, words) : 1 + static_cast<std::int32_t>(draw.below(3));
  desc.experts =
      draw.one_in(8) ? one_of(draw, numbers) : 3 + static_cast<std::int64_t>(draw.below(4));
  desc.kind = one_of(draw, words);
  if (draw.one_in(4)) return desc;
  desc.capacity_rule = one_of(draw, words);
  desc.drop_policy = one_of(draw, words);
  desc.capacity = one_of(draw, numbers);
  desc.capacity_factor = one_of(draw, factors);
  desc.capacity_by_rank = one_of(draw, words);
  desc.pad = one_of(draw, words);
  if (draw.one_in(8)) desc.batch_group = group;
  return desc;
}

// The rows of each expert: as many as its choices without a capacity, no more with one.
bool has_right_counts(const velo_dispatcher_desc& desc, const std::vector<std::int32_t>& chosen,
                      const std::vector<std::int64_t>& counts) {
  for (std::int32_t e = 0; e < desc.experts && e < 8; ++e) {
    const auto choices = std::count(chosen.begin(), chosen.end(), e);
    const std::int64_t rows = counts[at(e)];
    if (desc.capacity_rule == VELO_CAPACITY_NONE && rows != choices) return false;
    if (desc.capacity_rule == VELO_CAPACITY_ROWS && rows > desc.capacity) return false;
    if (desc.pad == 0 && rows > choices) return false;
    if (desc.pad == 1 && rows != counts[0]) return false;
  }
  return true;
}

bool is_right(drawer& draw, velo_stream stream, const velo_dispatcher_desc& desc,
              const open_layer& of) {
  const auto tokens = static_cast<std::int64_t>(draw.below(7));
  const std::int64_t shape[] = {tokens, desc.top_k};
  std::vector<std::int32_t> chosen(at(tokens * desc.top_k));
  for (std::int32_t& one : chosen)
    one = static_cast<std::int32_t>(draw.below(at(std::min<std::int64_t>(desc.experts, 8)))) -
          static_cast<std::int32_t>(draw.below(2));
  const std::vector<float> scores(chosen.size(), 1);
  const velo_tensor choices = view_of(chosen.data(), i32, shape),
                    given = view_of(scores.data(), f32, shape);
  const velo_status done = velo_routing_set(of.routing, stream, &choices,
                                            takes_scores(desc) ? &given : nullptr, nullptr);
  // More than 2^31 rows of padding are refused.
  if (done == VELO_ERR_ARGUMENT) return desc.pad == 1 && desc.capacity * desc.experts > INT32_MAX;
  std::vector<std::int64_t> counts(8);
  std::int64_t rows = 0;
  return done == VELO_OK && velo_routing_get_rows(of.routing, counts.data(), 8, &rows) == VELO_OK &&
         has_right_counts(desc, chosen, counts) && velo_routing_reset(of.routing) == VELO_OK;
}

}  // namespace

TEST_CASE("any description of a dispatcher is refused by name, or its routings keep their counts") {
  drawer draw(29);
  const live_context context;
  velo_group group = nullptr;
  std::int64_t made = 0;
  for (int i = 0; i < 100000; ++i) {
    if (group == nullptr) REQUIRE(velo_group_create(context, nullptr, &group) == VELO_OK);
    const velo_dispatcher_desc desc = any_desc(draw, group);
    velo_dispatcher layer = nullptr;
    const call_record record = record_of(velo_dispatcher_create(group, &desc, &layer));
    velo_dispatcher_destroy(layer);
    if (record.code != VELO_OK) {
      INFO(record);
      REQUIRE((record.code == VELO_ERR_ARGUMENT || record.code == VELO_ERR_UNSUPPORTED));
      REQUIRE(record.argument.rfind("desc.", 0) == 0);
      continue;
    }
    if (desc.experts > 8 && !draw.one_in(64)) continue;  // large ones take long
    ++made;
    bool right = false;
    {
      const open_layer of(group, desc);
      right = is_right(draw, context.inline_stream(), desc, of);
    }
    INFO("description " << i << ": experts " << desc.experts << ", top_k " << desc.top_k
                        << ", rule " << desc.capacity_rule << ", capacity " << desc.capacity
                        << ", factor " << desc.capacity_factor << ", pad " << desc.pad);
    REQUIRE(right);
    velo_group_destroy(std::exchange(group, nullptr));
  }
  velo_group_destroy(group);
  CHECK(made > 1000);
}

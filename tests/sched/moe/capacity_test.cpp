// Capacity of experts: which choices are kept, whatever the layout of ranks; padding; the rule by
// rank; published capacities; and what a dispatcher and a routing refuse.
#include <limits>

#include "tests/sched/moe/layer_pass.hpp"

using namespace velo;
using namespace velo::testing;

namespace {

struct capacity_case {
  velo_capacity_rule rule;
  std::int64_t capacity;
  double factor;
  std::int32_t policy;
  bool pads;

  velo_dispatcher_desc desc(const micro_batch& of) const {
    velo_dispatcher_desc all = desc_of(of);
    all.capacity_rule = rule, all.capacity = capacity, all.capacity_factor = factor;
    all.drop_policy = policy, all.pad = pads ? 1 : 0;
    return all;
  }
};

bool has_choice(const micro_batch& of, std::int64_t token) {
  for (std::int64_t j = 0; j < of.top_k; ++j)
    if (of.choices[at(token * of.top_k + j)] >= 0) return true;
  return false;
}

std::int64_t capacity_of(const micro_batch& of, const velo_dispatcher_desc& desc,
                         const std::vector<std::int64_t>& tokens) {
  if (desc.capacity_rule == VELO_CAPACITY_ROWS) return desc.capacity;
  std::int64_t chosen = 0;
  for (const std::int64_t t : tokens) chosen += has_choice(of, t);
  const double mean = static_cast<double>(chosen * of.top_k) / static_cast<double>(of.experts);
  const double rows =
      std::max(std::ceil(mean * desc.capacity_factor), static_cast<double>(desc.capacity));
  return static_cast<std::int64_t>(std::min(rows, static_cast<double>(chosen)));
}

// The choices of some tokens that experts keep, by a sort of all of an expert's choices.
void keep_within(const micro_batch& of, const velo_dispatcher_desc& desc,
                 std::vector<std::int64_t> tokens, std::vector<std::int32_t>& kept) {
  const pass_inputs in(of);
  const auto capacity = at(capacity_of(of, desc, tokens));
  std::sort(tokens.begin(), tokens.end());
  for (std::int32_t e = 0; e < of.experts; ++e) {
    std::vector<std::int64_t> list;
    for (const std::int64_t t : tokens)
      for (std::int64_t i = t * of.top_k; i < (t + 1) * of.top_k; ++i)
        if (of.choices[at(i)] == e) list.push_back(i);
    if (desc.drop_policy == VELO_DROP_POLICY_PROBABILITY)
      std::stable_sort(list.begin(), list.end(),
                       [&](std::int64_t a, std::int64_t b) { return in.scores[a] > in.scores[b]; });
    for (std::size_t i = capacity; i < list.size(); ++i) kept[at(list[i])] = -1;
  }
}

std::vector<std::int64_t> all_tokens(const micro_batch& of) {
  std::vector<std::int64_t> all(at(of.tokens));
  std::iota(all.begin(), all.end(), 0);
  return all;
}

// Rows of zeros behind those of each expert, up to a capacity.
void fill_up(const micro_batch& of, std::int64_t capacity, std::vector<std::vector<double>>& rows) {
  for (std::vector<double>& one : rows) one.resize(at(capacity * of.width));
}

const micro_batch batches[] = {
    {37, 2, 24, 5, f32, 1}, {50, 3, 24, 3, bf16, 2},
    {64, 1, 24, 4, f32, 4}, {29, 2, 24, 6, f16, 5, true},  // one hot expert
    {1, 2, 24, 8, f32, 6},  {0, 2, 24, 8, f32, 7},
};

const capacity_case cases[] = {
    {VELO_CAPACITY_ROWS, 1, 0, VELO_DROP_POLICY_POSITION, false},
    {VELO_CAPACITY_ROWS, 3, 0, VELO_DROP_POLICY_PROBABILITY, true},
    {VELO_CAPACITY_FACTOR, 0, 1, VELO_DROP_POLICY_PROBABILITY, false},
    {VELO_CAPACITY_FACTOR, 2, 0.5, VELO_DROP_POLICY_POSITION, true},
    {VELO_CAPACITY_FACTOR, 0, 1e300, VELO_DROP_POLICY_POSITION, true},  // every choice has room
};

void check_layouts(const micro_batch& given, const capacity_case& by) {
  micro_batch of = given;
  const velo_dispatcher_desc desc = by.desc(of);
  std::vector<std::int32_t> kept = of.choices;
  keep_within(of, desc, all_tokens(of), kept);
  std::vector<std::vector<double>> rows = rows_in_order(of, kept);
  if (by.pads) fill_up(of, capacity_of(of, desc, all_tokens(of)), rows);
  pass_results alone(of);
  run_pass(of, desc, local_ranks(1), alone);
  CHECK((alone.rows_of_expert == rows));
  CHECK(wrong_elements(of, kept, alone) == 0);
  for (const int ranks : {1, 2, 3, 4, 8}) {
    const local_ranks all(ranks, group_desc(), ranks % 2 + 1);
    for (const token_layout layout : {token_layout::parts, token_layout::scattered}) {
      INFO(ranks << " ranks, scattered: " << (layout == token_layout::scattered));
      of.layout = layout;
      pass_results cut(of);
      run_pass(of, desc, all, cut, ranks > 2);
      CHECK(same_bits(alone, cut));
      if (layout == token_layout::parts) CHECK((cut.rows_of_expert == rows));
    }
  }
}

}  // namespace

TEST_CASE("experts keep the same choices of a micro-batch in every layout of ranks") {
  for (const micro_batch& of : batches)
    for (const capacity_case& by : cases) {
      INFO(of.tokens << " tokens, " << of.top_k << " choices, capacity " << by.capacity
                     << ", factor " << by.factor << ", policy " << by.policy);
      check_layouts(of, by);
    }
}

TEST_CASE("by rank each rank drops choices of its own tokens, and pads its own rows") {
  for (const micro_batch& of : batches)
    for (const capacity_case& by : cases)
      for (const int ranks : {1, 2, 3, 4}) {
        INFO(of.tokens << " tokens, capacity " << by.capacity << ", factor " << by.factor << ", "
                       << ranks << " ranks");
        velo_dispatcher_desc desc = by.desc(of);
        desc.capacity_by_rank = 1;
        std::vector<std::int32_t> kept = of.choices;
        std::vector<std::vector<double>> rows(at(of.experts));
        for (int rank = 0; rank < ranks; ++rank) {
          const std::vector<std::int64_t> tokens = of.tokens_of(rank, ranks);
          std::vector<std::int32_t> own(kept.size(), -1);
          for (const std::int64_t t : tokens)
            for (std::int64_t i = t * of.top_k; i < (t + 1) * of.top_k; ++i)
              own[at(i)] = of.choices[at(i)];
          keep_within(of, desc, tokens, own);
          std::vector<std::vector<double>> part = rows_in_order(of, own);
          if (by.pads) fill_up(of, capacity_of(of, desc, tokens), part);
          for (std::size_t e = 0; e < rows.size(); ++e)
            rows[e].insert(rows[e].end(), part[e].begin(), part[e].end());
          for (const std::int64_t t : tokens)
            for (std::int64_t i = t * of.top_k; i < (t + 1) * of.top_k; ++i)
              kept[at(i)] = own[at(i)];
        }
        pass_results got(of);
        run_pass(of, desc, local_ranks(ranks), got);
        CHECK((got.rows_of_expert == rows));
        CHECK(wrong_elements(of, kept, got) == 0);
      }
}

namespace {

// The logits of reference/parallel.md, section 5, as probabilities.
std::vector<double> probabilities_of(std::int64_t token) {
  std::vector<double> all;
  double sum = 0;
  for (int e = 0; e < 4; ++e) {
    const auto s = static_cast<double>(token);
    all.push_back(std::exp(2 * std::sin(1.7 * s + 2.3 * e + 0.5 * s * e) + (e == 1 ? 0.8 : 0)));
    sum += all.back();
  }
  for (double& one : all) one /= sum;
  return all;
}

}  // namespace

TEST_CASE("an expert keeps the published tokens, by probability and by position") {
  std::vector<std::int32_t> choices;
  std::vector<float> scores, x;
  for (std::int64_t t = 0; t < 16; ++t) {
    const std::vector<double> all = probabilities_of(t);
    std::vector<std::int32_t> order = {0, 1, 2, 3};
    std::sort(order.begin(), order.end(), [&](int a, int b) { return all[at(a)] > all[at(b)]; });
    for (int j = 0; j < 2; ++j) {
      choices.push_back(order[at(j)]);
      scores.push_back(static_cast<float>(all[at(order[at(j)])]));
    }
    x.push_back(static_cast<float>(t));
  }
  for (const bool by_position : {false, true})
    for (const int ranks : {1, 2, 4}) {
      std::vector<float> of_expert_1;
      const local_ranks all(ranks);
      all.require([&](const rank_of_group& me) {
        velo_dispatcher_desc desc = VELO_DISPATCHER_DESC_INIT;
        desc.experts = 4, desc.top_k = 2;
        desc.capacity_rule = VELO_CAPACITY_ROWS, desc.capacity = 6;
        desc.drop_policy = by_position ? VELO_DROP_POLICY_POSITION : VELO_DROP_POLICY_PROBABILITY;
        const open_layer of(me.group, desc);
        const std::int64_t tokens = 16 / me.size, first = tokens * me.rank, each = 4 / me.size;
        const std::int64_t shape[] = {tokens, 2}, x_shape[] = {tokens, 1};
        const velo_tensor chosen = view_of(choices.data() + first * 2, i32, shape),
                          given = view_of(scores.data() + first * 2, f32, shape),
                          from = view_of(x.data() + first, f32, x_shape);
        std::int64_t counts[4] = {}, count = 0;
        velo_status done = velo_routing_set(of.routing, me.stream, &chosen,
                                            by_position ? nullptr : &given, nullptr);
        if (done == VELO_OK) done = velo_routing_get_rows(of.routing, counts, each, &count);
        if (done != VELO_OK) return done;
        std::vector<float> rows(at(count));
        const std::int64_t row_shape[] = {count, 1};
        const velo_tensor to = view_of(rows.data(), f32, row_shape);
        done = velo_dispatcher_dispatch(of.layer, me.stream, of.routing, &from, &to);
        if (me.rank != 1 / each) return done;
        const std::int64_t before = 1 % each == 1 ? counts[0] : 0;
        of_expert_1.assign(rows.begin() + before, rows.begin() + before + counts[1 % each]);
        return done;
      });
      const std::vector<float> wanted = by_position ? std::vector<float>{0, 2, 3, 5, 7, 8}
                                                    : std::vector<float>{0, 2, 3, 5, 11, 14};
      CHECK(of_expert_1 == wanted);
    }
}

TEST_CASE("a factor gives the published capacities") {
  struct published {
    std::int64_t tokens;
    std::int32_t top_k;
    std::int64_t experts;
    double factor;
    std::int64_t least, capacity;
  };
  // DeepSpeed: the first four, top-2 with twice the factor. Megatron-LM: the last.
  const published all[] = {{1024, 1, 8, 1.25, 4, 160},
                           {1024, 2, 8, 1, 4, 256},
                           {2, 1, 8, 1, 4, 2},
                           {16, 2, 4, 1, 4, 8},
                           {4096, 8, 256, 1.2, 0, 154}};
  const local_ranks ranks(1);
  for (const published& one : all) {
    velo_dispatcher_desc desc = VELO_DISPATCHER_DESC_INIT;
    desc.experts = one.experts, desc.top_k = one.top_k;
    desc.capacity_rule = VELO_CAPACITY_FACTOR, desc.capacity = one.least;
    desc.capacity_factor = one.factor, desc.drop_policy = VELO_DROP_POLICY_POSITION, desc.pad = 1;
    const open_layer of(ranks.group(0), desc);
    const std::vector<std::int32_t> chosen(at(one.tokens * one.top_k), 0);
    const std::int64_t shape[] = {one.tokens, one.top_k};
    const velo_tensor choices = view_of(chosen.data(), i32, shape);
    REQUIRE(velo_routing_set(of.routing, ranks.stream(0), &choices, nullptr, nullptr) == VELO_OK);
    std::int64_t counts[2] = {}, rows = 0;
    REQUIRE(velo_routing_get_rows(of.routing, counts, 2, &rows) == VELO_OK);
    CHECK(counts[0] == one.capacity);
    CHECK(counts[1] == one.capacity);
    CHECK(rows == one.capacity * one.experts);
  }
}

TEST_CASE("rows of padding are zeros, and what they become is not read") {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const int size : {1, 2}) {
    const local_ranks ranks(size);
    ranks.require([&](const rank_of_group& me) -> velo_status {
      velo_dispatcher_desc desc = VELO_DISPATCHER_DESC_INIT;
      desc.experts = size, desc.top_k = 1, desc.pad = 1, desc.capacity = 3;
      desc.capacity_rule = VELO_CAPACITY_ROWS, desc.drop_policy = VELO_DROP_POLICY_POSITION;
      const open_layer of(me.group, desc);
      const std::int32_t chosen[] = {0};
      const float x[] = {2, 3}, weight[] = {4};
      const std::int64_t shape[] = {1, 1}, token_shape[] = {1, 2}, row_shape[] = {3, 2};
      float rows[] = {nan, nan, nan, nan, nan, nan}, y[] = {nan, nan}, drows[6] = {}, dw[] = {nan};
      std::fill_n(drows, 6, nan);
      const velo_tensor choices = view_of(chosen, i32, shape), from = view_of(x, f32, token_shape),
                        in = view_of(rows, f32, row_shape), w = view_of(weight, f32, shape),
                        out = view_of(y, f32, token_shape), din = view_of(drows, f32, row_shape),
                        dweight = view_of(dw, f32, shape);
      velo_status done = velo_routing_set(of.routing, me.stream, &choices, nullptr, nullptr);
      std::int64_t count = 0;
      if (done == VELO_OK) done = velo_routing_get_rows(of.routing, nullptr, 0, &count);
      if (done == VELO_OK && count != 3) return VELO_ERR_STATE;
      if (done == VELO_OK)
        done = velo_dispatcher_dispatch(of.layer, me.stream, of.routing, &from, &in);
      const std::int64_t filled = me.rank == 0 ? 2 * size : 0;
      for (std::int64_t i = 0; i < 6; ++i)
        if (rows[i] != (i < filled ? x[i % 2] : 0.0f)) done = VELO_ERR_INTERNAL;
      std::fill(rows + filled, rows + 6, nan);
      if (done == VELO_OK)
        done = velo_dispatcher_combine(of.layer, me.stream, of.routing, &in, &w, &out);
      if (done == VELO_OK)
        done = velo_dispatcher_combine_backward(of.layer, me.stream, of.routing, &from, &in, &w,
                                                &din, &dweight);
      for (std::int64_t i = 0; i < 6; ++i)
        if (drows[i] != (i < filled ? 4 * x[i % 2] : 0.0f)) done = VELO_ERR_INTERNAL;
      return y[0] == 8 && y[1] == 12 && dw[0] == 13 ? done : VELO_ERR_INTERNAL;
    });
  }
}

TEST_CASE("the micro-batch of replicated experts has one capacity") {
  micro_batch of(40, 2, 4, 3, f32, 3);
  const pass_inputs in(of);
  for (const capacity_case& by : {capacity_case{VELO_CAPACITY_ROWS, 7, 0, 0, true},
                                  capacity_case{VELO_CAPACITY_FACTOR, 0, 0.75, 1, false}}) {
    pass_results alone(of), cut(of);
    const velo_dispatcher_desc whole = by.desc(of);
    run_pass(of, whole, local_ranks(1), alone);
    const local_ranks ranks(4);
    ranks.require([&](const rank_of_group& me) {
      const std::int32_t pairs[2][2] = {{0, 1}, {2, 3}};
      velo_group pair = nullptr;
      velo_status done = velo_group_create_part(me.group, pairs[me.rank / 2], 2, nullptr, &pair);
      if (done != VELO_OK) return done;
      velo_dispatcher_desc desc = whole;
      desc.batch_group = me.group;
      {
        rank_pass pass(of, in, me);
        pass.move_to(pair);
        done = pass.run(me.stream, desc, cut);
      }
      velo_group_destroy(pair);
      return done;
    });
    CHECK(same_bits(alone, cut));
  }
}

namespace {

call_record refused(velo_group group, const velo_dispatcher_desc& desc) {
  velo_dispatcher made = nullptr;
  call_record record = record_of(velo_dispatcher_create(group, &desc, &made));
  CHECK(made == nullptr);
  velo_dispatcher_destroy(made);
  return record;
}
void check_refused(velo_group group, const velo_dispatcher_desc& desc, const char* field) {
  const call_record record = refused(group, desc);
  INFO(record);
  CHECK(record.code == VELO_ERR_ARGUMENT);
  CHECK(record.argument == std::string("desc.") + field);
}

}  // namespace

TEST_CASE("a dispatcher refuses capacities that are none, by field") {
  const local_ranks ranks(2);
  const velo_group group = ranks.group(0);
  velo_dispatcher_desc plain = VELO_DISPATCHER_DESC_INIT;
  plain.experts = 4, plain.top_k = 2;
  velo_dispatcher_desc rows = plain, factor = plain;
  rows.capacity_rule = VELO_CAPACITY_ROWS, factor.capacity_rule = VELO_CAPACITY_FACTOR;
  rows.capacity = 2, factor.capacity_factor = 1;
  for (const std::int64_t bad :
       {std::int64_t{0}, std::int64_t{-1}, std::int64_t{1} << 31, INT64_MIN, INT64_MAX}) {
    velo_dispatcher_desc desc = rows;
    desc.capacity = bad;
    check_refused(group, desc, "capacity");
    desc = factor;
    desc.capacity = bad;
    if (bad != 0) check_refused(group, desc, "capacity");
    desc = plain;
    desc.capacity = bad;
    if (bad != 0) check_refused(group, desc, "capacity");
  }
  for (const double bad : {0.0, -1.0, double(NAN), double(INFINITY), -double(INFINITY)}) {
    velo_dispatcher_desc desc = factor;
    desc.capacity_factor = bad;
    check_refused(group, desc, "capacity_factor");
    desc = rows;
    desc.capacity_factor = bad;
    if (bad != 0) check_refused(group, desc, "capacity_factor");
  }
  for (const std::int32_t bad : {-1, 2, INT32_MIN, INT32_MAX}) {
    velo_dispatcher_desc desc = rows;
    desc.drop_policy = bad;
    check_refused(group, desc, "drop_policy");
    desc = rows, desc.pad = bad;
    check_refused(group, desc, "pad");
    desc = rows, desc.capacity_by_rank = bad;
    check_refused(group, desc, "capacity_by_rank");
    desc = plain, desc.capacity_rule = bad < 0 ? bad : 3;
    check_refused(group, desc, "capacity_rule");
  }
  velo_dispatcher_desc desc = plain;
  desc.pad = 1;
  check_refused(group, desc, "pad");
  desc = plain, desc.capacity_by_rank = 1;
  check_refused(group, desc, "capacity_by_rank");
  desc = plain, desc.drop_policy = 1;
  check_refused(group, desc, "drop_policy");
  desc = plain, desc.batch_group = group;
  check_refused(group, desc, "batch_group");
  desc = rows, desc.capacity_by_rank = 1, desc.batch_group = group;
  check_refused(group, desc, "batch_group");
  desc = rows, desc.batch_group = ranks.group(1);
  check_refused(group, desc, "batch_group");
}

TEST_CASE("a routing refuses scores and places that a dispatcher does not use or that do not fit") {
  const local_ranks ranks(1);
  const std::int32_t chosen[] = {0, 1, 1, 2};
  const float scores[] = {1, 2, 3, 4};
  const std::int64_t places[] = {0, 1}, shape[] = {2, 2}, few[] = {1, 2};
  const velo_tensor choices = view_of(chosen, i32, shape), given = view_of(scores, f32, shape),
                    short_scores = view_of(scores, f32, few),
                    int_scores = view_of(chosen, i32, shape);
  const std::int64_t two = 2, one = 1;
  const velo_tensor places_given = view_of(places, i64, two), one_place = view_of(places, i64, one),
                    int_places = view_of(chosen, i32, two);
  velo_dispatcher_desc desc = VELO_DISPATCHER_DESC_INIT;
  desc.experts = 4, desc.top_k = 2;
  const auto set = [&](const velo_dispatcher_desc& with, const velo_tensor* list,
                       const velo_tensor* order) {
    const open_layer of(ranks.group(0), with);
    return record_of(velo_routing_set(of.routing, ranks.stream(0), &choices, list, order));
  };
  CHECK(set(desc, &given, nullptr).argument == "scores");
  CHECK(set(desc, nullptr, &places_given).argument == "places");
  velo_dispatcher_desc limited = desc;
  limited.capacity_rule = VELO_CAPACITY_ROWS, limited.capacity = 1;
  CHECK(set(limited, nullptr, nullptr).code == VELO_ERR_NULL);
  CHECK(set(limited, nullptr, nullptr).argument == "scores");
  CHECK(set(limited, &short_scores, nullptr).code == VELO_ERR_SHAPE);
  CHECK(set(limited, &int_scores, nullptr).code == VELO_ERR_DTYPE);
  CHECK(set(limited, &given, &one_place).code == VELO_ERR_SHAPE);
  CHECK(set(limited, &given, &one_place).argument == "places");
  CHECK(set(limited, &given, &int_places).code == VELO_ERR_DTYPE);
  CHECK_OK(set(limited, &given, &places_given));
  velo_dispatcher_desc by_position = limited;
  by_position.drop_policy = VELO_DROP_POLICY_POSITION;
  CHECK(set(by_position, &given, nullptr).argument == "scores");
  limited.capacity_by_rank = 1;
  CHECK(set(limited, &given, &places_given).argument == "places");
}

TEST_CASE("ranks with another capacity are refused before choices are dropped") {
  for (const int field : {0, 1, 2, 3}) {
    const local_ranks ranks(2);
    const std::vector<call_record> ends = ranks.run([&](const rank_of_group& me) {
      velo_dispatcher_desc desc = VELO_DISPATCHER_DESC_INIT;
      desc.experts = 4, desc.top_k = 1, desc.capacity_rule = VELO_CAPACITY_ROWS, desc.capacity = 2;
      desc.drop_policy = VELO_DROP_POLICY_POSITION;
      if (field == 0) desc.capacity += me.rank;
      if (field == 1) desc.pad = me.rank;
      if (field == 2) desc.capacity_by_rank = me.rank;
      const open_layer of(me.group, desc);
      const std::int32_t chosen[] = {0, 3};
      const std::int64_t places[] = {0, 1}, shape[] = {2, 1}, two = 2;
      const velo_tensor choices = view_of(chosen, i32, shape), order = view_of(places, i64, two);
      return velo_routing_set(of.routing, me.stream, &choices, nullptr,
                              field == 3 && me.rank == 1 ? &order : nullptr);
    });
    for (const call_record& one : ends) CHECK(one.code == VELO_ERR_PEER);
  }
}

TEST_CASE("a choice beyond the experts of a limited layer is named, and its rank by the others") {
  for (const bool queued : {false, true})
    for (const bool by_rank : {false, true}) {
      const local_ranks ranks(3);
      std::vector<velo_stream> streams;
      for (int rank = 0; rank < 3; ++rank)
        streams.push_back(queued ? ranks.context(rank).new_stream() : ranks.stream(rank));
      const std::vector<call_record> ends = ranks.run([&](const rank_of_group& me) {
        velo_dispatcher_desc desc = VELO_DISPATCHER_DESC_INIT;
        desc.experts = 6, desc.top_k = 2, desc.capacity_rule = VELO_CAPACITY_ROWS;
        desc.capacity = 1, desc.drop_policy = VELO_DROP_POLICY_POSITION;
        desc.capacity_by_rank = by_rank ? 1 : 0;
        const open_layer of(me.group, desc);
        const std::int32_t chosen[] = {3, 0, 1, me.rank == 1 ? 6 : 5};
        const std::int64_t shape[] = {2, 2};
        const velo_tensor choices = view_of(chosen, i32, shape);
        const velo_stream stream = streams[at(me.rank)];
        const velo_status done = velo_routing_set(of.routing, stream, &choices, nullptr, nullptr);
        // The first of the two exchanges may have failed before the second is queued.
        const velo_status kept = queued ? velo_stream_synchronize(stream) : VELO_OK;
        return kept != VELO_OK ? kept : done;
      });
      CHECK(ends[1].code == VELO_ERR_ARGUMENT);
      CHECK(ends[1].argument == "choices[1][1]");
      CHECK(ends[1].got == "6");
      for (const int rank : {0, 2}) {
        CHECK(ends[at(rank)].code == VELO_ERR_PEER);
        CHECK(ends[at(rank)].rank == 1);
      }
    }
}

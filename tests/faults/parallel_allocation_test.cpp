// Memory running out on one rank of two, in every operator that works with a group: the n-th
// allocation of the rank's call fails, by itself or with all that follow, for n = 1, 2, .. until
// the call asks for fewer. The rank gets VELO_ERR_MEMORY. Then either nothing has happened, and the
// same call of the rank succeeds beside the other's, with the same results; or the group has ended:
// both get VELO_ERR_PEER, the other one in its next call if it had finished this one. No rank waits
// until the group's timeout, and nothing is lost.
#include <chrono>

#include "comm/ranks.hpp"
#include "tests/faults/failing_memory.hpp"

using namespace velo::testing;

namespace {

struct tensor_field {
  const char* name;
  std::vector<std::int64_t> shape;
  bool is_output = false, counts = false;  // counts: int32, else float32
};
struct attribute_field {
  const char* name;
  std::int64_t value;
};
struct parallel_call {
  const char* op;
  std::vector<tensor_field> tensors;
  std::vector<attribute_field> attributes = {};
  std::vector<const char*> groups = {"group"};
};

tensor_field in(const char* name, std::vector<std::int64_t> shape) {
  return {name, std::move(shape)};
}
tensor_field counts(const char* name, std::vector<std::int64_t> shape) {
  return {name, std::move(shape), false, true};
}
tensor_field out(const char* name, std::vector<std::int64_t> shape) {
  return {name, std::move(shape), true};
}

// Of two ranks, whose shares are equal. A causal ring attends 16 rows.
std::vector<parallel_call> every_call() {
  const std::vector<std::int64_t> rows = {8, 4, 16}, statistics = {4, 8}, whole = {8, 12},
                                  half = {4, 12}, norm = {8, 1};
  return {
      {"sequence_all_to_all", {in("x", {4, 6, 8}), out("y", {8, 3, 8})}},
      {"context_parallel_attention",
       {in("query", rows), in("key", rows), in("value", rows), out("attention_out", rows),
        out("softmax_max", statistics), out("softmax_sum", statistics)}},
      {"context_parallel_attention_backward",
       {in("query", rows), in("key", rows), in("value", rows), in("dy", rows),
        in("softmax_max", statistics), in("softmax_sum", statistics), in("attention_out", rows),
        in("kept", {1024}), out("dquery", rows), out("dkey", rows), out("dvalue", rows)}},
      {"vocab_parallel_cross_entropy",
       {in("logits", whole), counts("targets", {8}), out("loss", {8}), out("lse", {8})}},
      {"vocab_parallel_cross_entropy_backward",
       {in("dloss", {8}), in("logits", whole), counts("targets", {8}), in("lse", {8}),
        out("dlogits", whole)}},
      {"vocab_parallel_embedding",
       {counts("indices", {8}), in("weight", {10, 12}), out("y", half)},
       {{"sequence_parallel", 1}}},
      {"vocab_parallel_embedding_backward",
       {counts("indices", {8}), in("dy", half), out("dweight", {10, 12})},
       {{"sequence_parallel", 1}, {"rows", 10}}},
      {"column_parallel_linear",
       {in("x", half), in("weight", {6, 12}), in("bias", {6}), out("y", {8, 6}),
        out("gathered", whole)},
       {{"sequence_parallel", 1}}},
      {"column_parallel_linear_backward",
       {in("dy", {8, 6}), in("x", half), in("weight", {6, 12}), out("dx", half),
        out("dweight", {6, 12}), out("dbias", {6})},
       {{"sequence_parallel", 1}}},
      {"row_parallel_linear",
       {in("x", whole), in("weight", {6, 12}), in("bias", {6}), out("y", {4, 6})},
       {{"sequence_parallel", 1}}},
      {"row_parallel_linear_backward",
       {in("dy", {4, 6}), in("x", whole), in("weight", {6, 12}), out("dx", whole),
        out("dweight", {6, 12}), out("dbias", {6})},
       {{"sequence_parallel", 1}}},
      {"parallel_rms_norm",
       {in("x", whole), in("gamma", {12}), out("y", whole), out("rstd", norm)}},
      {"parallel_rms_norm_backward",
       {in("dy", whole), in("x", whole), in("gamma", {12}), in("rstd", norm), out("dx", whole),
        out("dgamma", {12})}},
      {"parallel_layer_norm",
       {in("x", whole), in("gamma", {12}), in("beta", {12}), out("y", whole), out("mean", norm),
        out("rstd", norm)}},
      {"parallel_layer_norm_backward",
       {in("dy", whole), in("x", whole), in("gamma", {12}), in("mean", norm), in("rstd", norm),
        out("dx", whole), out("dgamma", {12}), out("dbeta", {12})}},
      {"matmul_all_reduce", {in("x", whole), in("weight", {12, 6}), out("y", {8, 6})}},
      {"matmul_reduce_scatter", {in("x", whole), in("weight", {12, 6}), out("y", {4, 6})}},
      {"all_gather_matmul", {in("x", half), in("weight", {12, 6}), out("y", {8, 6})}},
      {"all_gather_matmul_reduce_scatter",
       {in("x", half), in("weight", {12, 6}), out("y", {4, 6})},
       {},
       {"gather_group", "scatter_group"}},
      {"matmul_all_reduce_add_rms_norm",
       {in("x", whole), in("weight", {12, 6}), in("residual", {8, 6}), in("gamma", {6}),
        out("y", {8, 6}), out("norm_out", {8, 6}), out("rstd", norm)}},
  };
}

// Two ranks at a level, and the second group of operators that have two.
struct two_ranks {
  explicit two_ranks(const char* level) {
    velo_context both[2];
    for (const int rank : {0, 1}) {
      both[rank] = ranks.context(rank);
      REQUIRE(velo_config_set(both[rank], "level", level) == VELO_OK);
    }
    const velo_group_desc desc = group_desc();
    REQUIRE(velo_group_create_local(both, 2, &desc, second) == VELO_OK);
  }
  ~two_ranks() {
    for (const velo_group one : second) velo_group_destroy(one);
  }
  two_ranks(const two_ranks&) = delete;

  const local_ranks ranks{2};
  velo_group second[2] = {};
};

// A rank's tensors, and its call by name.
class rank_call {
 public:
  rank_call(const parallel_call& of, const two_ranks& all, int rank)
      : of_(of), stream_(all.ranks.stream(rank)) {
    views_.reserve(of.tensors.size());
    for (const tensor_field& field : of.tensors) {
      std::int64_t count = 1;
      for (const std::int64_t size : field.shape) count *= size;
      numbers_.emplace_back(at(count));
      for (std::int64_t i = 0; i < count; ++i) put(field, i, rank);
      views_.push_back(view_of(numbers_.back().data(), field.counts ? i32 : f32, field.shape.data(),
                               static_cast<int>(field.shape.size())));
      add(field.name, VELO_VALUE_TENSOR).as.tensor = &views_.back();
    }
    for (const attribute_field& one : of.attributes) add(one.name, VELO_VALUE_INT).as.i = one.value;
    for (std::size_t i = 0; i < of.groups.size(); ++i)
      add(of.groups[i], VELO_VALUE_HANDLE).as.p = i == 0 ? all.ranks.group(rank) : all.second[rank];
  }
  rank_call(const rank_call&) = delete;

  velo_status run() const {
    return velo_op_call(stream_, of_.op, values_.data(), static_cast<std::int64_t>(values_.size()));
  }
  std::vector<std::vector<float>> results() const {
    std::vector<std::vector<float>> all;
    for (std::size_t i = 0; i < numbers_.size(); ++i)
      if (of_.tensors[i].is_output) all.push_back(numbers_[i]);
    return all;
  }

 private:
  void put(const tensor_field& field, std::int64_t i, int rank) {
    float& to = numbers_.back()[at(i)];
    to = field.is_output ? -77 : static_cast<float>((7 * i + 3 * rank) % 11 + 1) / 8;
    const auto index = static_cast<std::int32_t>(i % 8);
    if (field.counts) std::memcpy(&to, &index, sizeof to);
  }
  velo_value& add(const char* name, velo_value_kind kind) {
    velo_named_value one{};
    one.name = name;
    one.value.kind = kind;
    values_.push_back(one);
    return values_.back().value;
  }
  const parallel_call& of_;
  const velo_stream stream_;
  std::vector<std::vector<float>> numbers_;
  std::vector<velo_tensor> views_;
  std::vector<velo_named_value> values_;
};

struct round_outcome {
  call_record failing, again, other, next;  // next: of the other, where the group has ended
  bool failed = false;
  double seconds = 0;
  std::vector<std::vector<float>> results[2];
};

// Both ranks call; the n-th allocation of `culprit` fails, and if its call does, it calls again.
round_outcome round_of(const parallel_call& of, const char* level, int culprit, failure_shape how,
                       int n) {
  const two_ranks all(level);
  const rank_call calls[] = {{of, all, 0}, {of, all, 1}};
  round_outcome seen;
  const auto begun = std::chrono::steady_clock::now();
  on_threads(2, [&](int rank) {
    if (rank != culprit) {
      seen.other = record_of(calls[rank].run());
      return;
    }
    begin_failing_here(how, n);
    const velo_status status = calls[rank].run();
    seen.failed = end_failing();
    seen.failing = record_of(status);
    if (status != VELO_OK) seen.again = record_of(calls[rank].run());
  });
  seen.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
  for (const int rank : {0, 1}) seen.results[rank] = calls[rank].results();
  if (seen.again.code == VELO_ERR_PEER) seen.next = record_of(calls[1 - culprit].run());
  return seen;
}

}  // namespace

TEST_CASE("an allocation that fails on one rank of two is its status, and no rank hangs") {
  int failures = 0, ended = 0;
  const auto check_all = [&](const parallel_call& of, const char* level, int culprit,
                             failure_shape how, const round_outcome& good) {
    bool more = true;
    for (int n = 1; more; ++n) {
      const std::int64_t before = live_blocks();
      {
        const round_outcome seen = round_of(of, level, culprit, how, n);
        INFO("rank " << culprit << ", allocation " << n
                     << (how == failure_shape::once ? "" : " and all later") << ": status "
                     << seen.failing.code << " " << seen.failing << "; again " << seen.again.code
                     << " " << seen.again << "; the other " << seen.other.code << " " << seen.other
                     << "; then " << seen.next.code);
        more = seen.failed;
        failures += seen.failing.code != VELO_OK;
        const bool as_if_nothing = seen.again.code == VELO_OK && seen.other.code == VELO_OK &&
                                   seen.results[0] == good.results[0] &&
                                   seen.results[1] == good.results[1];
        const int other = 1 - culprit;
        const bool other_is_right =
            seen.other.code == VELO_ERR_PEER ||
            (seen.other.code == VELO_OK && seen.results[other] == good.results[other]);
        const bool is_over = seen.failing.code != VELO_OK && seen.again.code == VELO_ERR_PEER &&
                             seen.next.code == VELO_ERR_PEER && other_is_right;
        ended += is_over;
        CHECK((seen.failing.code == VELO_OK ||
               (seen.failed && seen.failing.code == VELO_ERR_MEMORY)));
        CHECK((as_if_nothing || is_over));
        CHECK(seen.seconds < 10);
      }
      CHECK(live_blocks() - before == 0);
      REQUIRE(n < 1000);
    }
  };
  for (const parallel_call& of : every_call())
    for (const char* level : {"0", "1", "2"}) {
      INFO(of.op << ", level " << level);
      round_outcome good;
      for (int warm = 0; warm < 3; ++warm) good = round_of(of, level, 0, failure_shape::never, 0);
      INFO(good.failing << "; " << good.other);
      REQUIRE(good.failing.code == VELO_OK);
      REQUIRE(good.other.code == VELO_OK);
      for (const int culprit : {0, 1})
        for (const failure_shape how : {failure_shape::once, failure_shape::from_then_on})
          check_all(of, level, culprit, how, good);
    }
  CHECK(failures > 1000);
  CHECK(ended > 100);
  CHECK(ended < failures);
}

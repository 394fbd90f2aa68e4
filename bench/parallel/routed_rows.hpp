// Rows of tokens on two ranks that go to 16 experts, two each, and back: by velo_dispatcher's
// calls, and by their composition of permutations and exchanges.
//
// Both have the rows of an expert by rank, token and choice, so results have the same bits.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "bench/harness/dtype.hpp"
#include "bench/harness/require.hpp"
#include "bench/parallel/scenes.hpp"

namespace velo::bench {

constexpr std::int64_t routed_experts = 16, routed_choices = 2, routed_width = 1024;

using shape = std::vector<std::int64_t>;

inline velo_tensor view(const void* data, velo_dtype type, const shape& of) {
  return {const_cast<void*>(data),
          {VELO_DEVICE_CPU, 0},
          static_cast<std::int32_t>(of.size()),
          type,
          of.data(),
          nullptr,
          0};
}

inline velo_dtype dtype_of(dtype type) {
  return type == dtype::bf16 ? velo_dtype{VELO_DTYPE_BFLOAT, 16, 1}
                             : velo_dtype{VELO_DTYPE_FLOAT, 32, 1};
}

// Numbers from -scale to scale.
inline void fill(std::vector<unsigned char>& to, velo_dtype type, int seed, float scale) {
  const std::size_t element = type.bits / 8;
  for (std::size_t i = 0; i < to.size() / element; ++i) {
    auto mixed = (i + 1) * 0x9e3779b97f4a7c15u + static_cast<std::uint64_t>(seed);
    mixed = (mixed ^ mixed >> 32) * 0x9e3779b97f4a7c15u;
    const float value = scale * (static_cast<float>(mixed >> 40) / (1 << 23) - 1);
    const std::uint16_t half = narrow(value);
    std::memcpy(to.data() + i * element, element == 4 ? static_cast<const void*>(&value) : &half,
                element);
  }
}

class routed_rows {
 public:
  // tokens: of each rank.
  routed_rows(dtype type, std::int64_t tokens, const rank_of& me)
      : type_(dtype_of(type)), tokens_(tokens), me_(me) {
    make_choices();
    x_.resize(bytes_of(tokens));
    fill(x_, type_, me.number, 1);
    for (bytes* one : {&y_, &composed_}) one->resize(x_.size());
    for (bytes* one : {&sorted_rows_, &returned_}) one->resize(bytes_of(tokens * routed_choices));
    for (bytes* one : {&rows_, &arrived_, &by_expert_, &by_rank_}) one->resize(bytes_of(arrivals_));
    velo_dispatcher_desc desc = VELO_DISPATCHER_DESC_INIT;
    desc.experts = routed_experts, desc.top_k = routed_choices;
    require(velo_dispatcher_create(me.group, &desc, &layer_));
    require(velo_routing_create(layer_, &routing_));
  }
  ~routed_rows() {
    velo_routing_destroy(routing_);
    velo_dispatcher_destroy(layer_);
  }
  routed_rows(const routed_rows&) = delete;
  routed_rows& operator=(const routed_rows&) = delete;

  std::size_t bytes_of(std::int64_t rows) const {
    return static_cast<std::size_t>(rows * routed_width) * type_.bits / 8;
  }
  std::int64_t arrivals() const { return arrivals_; }  // rows at this rank's experts
  velo_tensor tokens() const { return view(x_.data(), type_, token_shape_); }
  velo_tensor like_tokens(const void* data) const { return view(data, type_, token_shape_); }
  velo_tensor arrived_rows() const { return view(rows_.data(), type_, row_shape_); }
  velo_tensor like_arrived(const void* data) const { return view(data, type_, row_shape_); }
  velo_tensor counts() const { return view(counts_, i64, own_shape_); }
  bool is_right() const { return y_ == composed_; }

  // The dispatcher's calls in their order.
  void set(velo_stream on) {
    const velo_tensor choices = view(chosen_.data(), i32, choice_shape_);
    require(velo_routing_set(routing_, on, &choices, nullptr, nullptr));
  }
  void dispatch(velo_stream on) {
    require(velo_routing_get_rows(routing_, counts_, own_experts, nullptr));
    const velo_tensor x = tokens(), rows = arrived_rows();
    require(velo_dispatcher_dispatch(layer_, on, routing_, &x, &rows));
  }
  void combine(velo_stream on, const velo_tensor& rows) {
    const velo_tensor weights = view(weights_.data(), f32, choice_shape_),
                      y = like_tokens(y_.data());
    require(velo_dispatcher_combine(layer_, on, routing_, &rows, &weights, &y));
  }
  void reset() { require(velo_routing_reset(routing_)); }

  // experts(rows, counts) returns what the experts make of these rows.
  template <class Experts>
  void compose(Experts&& experts) {
    const velo_stream on = me_.stream;
    std::int64_t given_counts[routed_experts], got_counts[routed_experts];
    const shape sorted_shape{tokens_ * routed_choices, routed_width}, all_experts{routed_experts},
        all_places{tokens_ * routed_choices}, all_arrived{arrivals_};
    const velo_tensor choices = view(chosen_.data(), i32, choice_shape_),
                      weights = view(weights_.data(), f32, choice_shape_), x = tokens(),
                      sorted = view(sorted_rows_.data(), type_, sorted_shape),
                      places = view(places_.data(), i32, all_places),
                      given = view(given_counts, i64, all_experts),
                      got = view(got_counts, i64, all_experts),
                      arrived = like_arrived(arrived_.data()),
                      of_rows = view(arrived_experts_.data(), i32, all_arrived),
                      by_expert = like_arrived(by_expert_.data()), own_counts = counts(),
                      row_places = view(arrived_places_.data(), i32, all_arrived),
                      by_rank = like_arrived(by_rank_.data()),
                      returned = view(returned_.data(), type_, sorted_shape),
                      y = like_tokens(composed_.data());
    permute(x, choices, sorted, places, given, routed_experts);
    require(velo_group_all_to_all(on, me_.group, &given, &got));
    require(velo_group_all_to_all_v(on, me_.group, &sorted, given_, nullptr, taken_, nullptr,
                                    &arrived));
    permute(arrived, of_rows, by_expert, row_places, own_counts, own_experts);
    unpermute(experts(by_expert, own_counts), row_places, nullptr, by_rank);
    require(velo_group_all_to_all_v(on, me_.group, &by_rank, taken_, nullptr, given_, nullptr,
                                    &returned));
    unpermute(returned, places, &weights, y);
  }

 private:
  using bytes = std::vector<unsigned char>;
  static constexpr velo_dtype i32{VELO_DTYPE_INT, 32, 1}, i64{VELO_DTYPE_INT, 64, 1},
      f32{VELO_DTYPE_FLOAT, 32, 1};
  static constexpr std::int64_t own_experts = routed_experts / ranks;

  // The same mixture on all ranks, so that each can know what the others choose.
  static std::int32_t choice_of(int rank, std::int64_t token, std::int64_t j) {
    const auto mixed = (static_cast<std::uint64_t>(token * 2 + rank) * 2654435761u) >> 7;
    const auto first = static_cast<std::int32_t>(mixed % routed_experts);
    const auto more = static_cast<std::int32_t>(mixed / routed_experts % 15);
    return j == 0 ? first : (first + 1 + more) % 16;
  }

  // This rank's choices, and the own experts of the rows that arrive, by rank, expert and token.
  void make_choices() {
    for (std::int64_t i = 0; i < tokens_ * routed_choices; ++i) {
      chosen_.push_back(choice_of(me_.number, i / routed_choices, i % routed_choices));
      weights_.push_back(0.25f + 0.5f * static_cast<float>(i % routed_choices));
    }
    for (int from = 0; from < ranks; ++from)
      for (std::int64_t e = 0; e < own_experts; ++e)
        for (std::int64_t i = 0; i < tokens_ * routed_choices; ++i) {
          const std::int64_t expert = choice_of(from, i / routed_choices, i % routed_choices);
          if (from == me_.number && e == 0) given_[expert / own_experts] += routed_width;
          if (expert != me_.number * own_experts + e) continue;
          arrived_experts_.push_back(static_cast<std::int32_t>(e));
          taken_[from] += routed_width;
        }
    arrivals_ = static_cast<std::int64_t>(arrived_experts_.size());
    row_shape_ = {arrivals_, routed_width};
    places_.resize(static_cast<std::size_t>(tokens_ * routed_choices));
    arrived_places_.resize(arrived_experts_.size());
  }

  // indices: the experts of rows. Writes rows by expert, the places of each, and the counts.
  void permute(const velo_tensor& from, const velo_tensor& indices, const velo_tensor& to,
               const velo_tensor& places, const velo_tensor& counts, std::int64_t among) const {
    velo_moe_token_permute_args args = VELO_MOE_TOKEN_PERMUTE_ARGS_INIT;
    args.tokens = &from, args.indices = &indices, args.permuted = &to;
    args.sorted_indices = &places, args.counts = &counts, args.num_experts = among;
    require(velo_moe_token_permute(me_.stream, &args));
  }
  void unpermute(const velo_tensor& from, const velo_tensor& places, const velo_tensor* weights,
                 const velo_tensor& to) const {
    velo_moe_token_unpermute_args args = VELO_MOE_TOKEN_UNPERMUTE_ARGS_INIT;
    args.permuted = &from, args.sorted_indices = &places, args.probs = weights, args.tokens = &to;
    require(velo_moe_token_unpermute(me_.stream, &args));
  }

  const velo_dtype type_;
  const std::int64_t tokens_;
  const rank_of& me_;
  const shape token_shape_{tokens_, routed_width}, choice_shape_{tokens_, routed_choices},
      own_shape_{own_experts};
  shape row_shape_;
  std::vector<std::int32_t> chosen_, arrived_experts_, places_, arrived_places_;
  std::vector<float> weights_;
  std::int64_t given_[ranks] = {}, taken_[ranks] = {}, arrivals_ = 0;  // elements; rows
  std::int64_t counts_[own_experts] = {};
  bytes x_, y_, composed_, sorted_rows_, returned_, rows_, arrived_, by_expert_, by_rank_;
  velo_dispatcher layer_ = nullptr;
  velo_routing routing_ = nullptr;
};

}  // namespace velo::bench

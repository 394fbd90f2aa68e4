// Tokens to 16 experts on two ranks and back: velo_routing_set, velo_dispatcher_dispatch and
// velo_dispatcher_combine.
//
// They take turns with their composition: moe_token_permute, velo_group_all_to_all of the counts,
// velo_group_all_to_all_v of the rows, and moe_token_permute into the order of the experts; then
// the same backwards, with moe_token_unpermute. The composition gets the experts of the rows that
// arrive ready made. Experts return their rows as they are. Outputs are held against the
// composition's, bit for bit.
#include "bench/harness/require.hpp"
#include "bench/parallel/pair_rows.hpp"

namespace velo::bench {
namespace {

constexpr std::int64_t experts = 16, top_k = 2, width = 1024;

struct row {
  dtype type;
  std::int64_t tokens;  // of each rank

  std::size_t bytes(std::int64_t rows) const {
    return static_cast<std::size_t>(rows * width) * (type == dtype::f32 ? 4 : 2);
  }
  std::string text() const {
    return std::to_string(tokens) + "x" + std::to_string(width) + ", " + std::to_string(experts) +
           " experts";
  }
};

// The same mixture on all ranks, so that each can know what the others choose.
std::int32_t choice_of(int rank, std::int64_t token, std::int64_t j) {
  const auto mixed = (static_cast<std::uint64_t>(token * 2 + rank) * 2654435761u) >> 7;
  const auto first = static_cast<std::int32_t>(mixed % experts);
  return j == 0 ? first : (first + 1 + static_cast<std::int32_t>(mixed / experts % 15)) % 16;
}

using shape = std::vector<std::int64_t>;

velo_tensor view(const void* data, velo_dtype type, const shape& of) {
  return {const_cast<void*>(data),
          {VELO_DEVICE_CPU, 0},
          static_cast<std::int32_t>(of.size()),
          type,
          of.data(),
          nullptr,
          0};
}

class dispatches {
 public:
  dispatches(const row& r, const rank_of& me) : r_(r), me_(me), token_shape_{r.tokens, width} {
    make_choices();
    x_.resize(r.bytes(r.tokens));
    for (std::size_t i = 0; i < x_.size(); ++i)
      x_[i] = static_cast<unsigned char>((i * 2654435761u >> 13) % 64 + 32 * me.number);
    for (bytes* one : {&y_, &composed_}) one->resize(x_.size());
    for (bytes* one : {&sorted_rows_, &returned_}) one->resize(r.bytes(r.tokens * top_k));
    for (bytes* one : {&rows_, &arrived_, &by_expert_, &by_rank_}) one->resize(r.bytes(arrivals_));
    velo_dispatcher_desc desc = VELO_DISPATCHER_DESC_INIT;
    desc.experts = experts, desc.top_k = top_k;
    require(velo_dispatcher_create(me.group, &desc, &layer_));
    require(velo_routing_create(layer_, &routing_));
  }
  ~dispatches() {
    velo_routing_destroy(routing_);
    velo_dispatcher_destroy(layer_);
  }
  dispatches(const dispatches&) = delete;
  dispatches& operator=(const dispatches&) = delete;

  void call(int which) { which == ours ? call_fused() : compose(); }
  bool is_right() const { return y_ == composed_; }

 private:
  using bytes = std::vector<unsigned char>;
  static constexpr velo_dtype i32{VELO_DTYPE_INT, 32, 1}, i64{VELO_DTYPE_INT, 64, 1},
      f32{VELO_DTYPE_FLOAT, 32, 1};

  velo_dtype type() const {
    return r_.type == dtype::bf16 ? velo_dtype{VELO_DTYPE_BFLOAT, 16, 1} : f32;
  }

  // This rank's choices, and the own experts of the rows that arrive, by rank, expert and token.
  void make_choices() {
    for (std::int64_t i = 0; i < r_.tokens * top_k; ++i) {
      chosen_.push_back(choice_of(me_.number, i / top_k, i % top_k));
      weights_.push_back(0.25f + 0.5f * static_cast<float>(i % top_k));
    }
    constexpr std::int64_t each = experts / ranks;
    for (int from = 0; from < ranks; ++from)
      for (std::int64_t e = 0; e < each; ++e)
        for (std::int64_t i = 0; i < r_.tokens * top_k; ++i) {
          const std::int64_t expert = choice_of(from, i / top_k, i % top_k);
          if (from == me_.number && e == 0) given_[expert / each] += width;
          if (expert != me_.number * each + e) continue;
          arrived_experts_.push_back(static_cast<std::int32_t>(e));
          taken_[from] += width;
        }
    arrivals_ = static_cast<std::int64_t>(arrived_experts_.size());
    places_.resize(static_cast<std::size_t>(r_.tokens * top_k));
    arrived_places_.resize(arrived_experts_.size());
  }

  void call_fused() const {
    const velo_tensor choices = view(chosen_.data(), i32, choice_shape_),
                      weights = view(weights_.data(), f32, choice_shape_),
                      x = view(x_.data(), type(), token_shape_);
    const velo_tensor y = view(y_.data(), type(), token_shape_);
    require(velo_routing_set(routing_, me_.stream, &choices, nullptr, nullptr));
    std::int64_t counts[experts / ranks], all = 0;
    require(velo_routing_get_rows(routing_, counts, experts / ranks, &all));
    const shape row_shape{all, width};
    const velo_tensor rows = view(rows_.data(), type(), row_shape);
    require(velo_dispatcher_dispatch(layer_, me_.stream, routing_, &x, &rows));
    require(velo_dispatcher_combine(layer_, me_.stream, routing_, &rows, &weights, &y));
    require(velo_routing_reset(routing_));
  }

  // indices: the experts of rows. Writes rows by expert, the places of each, and the counts.
  void permute(const velo_tensor& from, const velo_tensor& indices, const velo_tensor& to,
               const velo_tensor& places, const velo_tensor* counts, std::int64_t among) const {
    velo_moe_token_permute_args args = VELO_MOE_TOKEN_PERMUTE_ARGS_INIT;
    args.tokens = &from, args.indices = &indices, args.permuted = &to;
    args.sorted_indices = &places, args.counts = counts, args.num_experts = among;
    require(velo_moe_token_permute(me_.stream, &args));
  }
  void unpermute(const velo_tensor& from, const velo_tensor& places, const velo_tensor* weights,
                 const velo_tensor& to) const {
    velo_moe_token_unpermute_args args = VELO_MOE_TOKEN_UNPERMUTE_ARGS_INIT;
    args.permuted = &from, args.sorted_indices = &places, args.probs = weights, args.tokens = &to;
    require(velo_moe_token_unpermute(me_.stream, &args));
  }
  void compose() {
    const shape sorted_shape{r_.tokens * top_k, width}, arrived_shape{arrivals_, width},
        all_experts{experts}, all_places{r_.tokens * top_k}, all_arrived{arrivals_};
    std::int64_t counts[experts], theirs[experts];
    const velo_tensor choices = view(chosen_.data(), i32, choice_shape_),
                      weights = view(weights_.data(), f32, choice_shape_),
                      x = view(x_.data(), type(), token_shape_),
                      sorted = view(sorted_rows_.data(), type(), sorted_shape),
                      places = view(places_.data(), i32, all_places),
                      given = view(counts, i64, all_experts), got = view(theirs, i64, all_experts),
                      arrived = view(arrived_.data(), type(), arrived_shape),
                      of_rows = view(arrived_experts_.data(), i32, all_arrived),
                      by_expert = view(by_expert_.data(), type(), arrived_shape),
                      row_places = view(arrived_places_.data(), i32, all_arrived),
                      by_rank = view(by_rank_.data(), type(), arrived_shape),
                      returned = view(returned_.data(), type(), sorted_shape),
                      y = view(composed_.data(), type(), token_shape_);
    permute(x, choices, sorted, places, &given, experts);
    require(velo_group_all_to_all(me_.stream, me_.group, &given, &got));
    require(velo_group_all_to_all_v(me_.stream, me_.group, &sorted, given_, nullptr, taken_,
                                    nullptr, &arrived));
    permute(arrived, of_rows, by_expert, row_places, nullptr, experts / ranks);
    unpermute(by_expert, row_places, nullptr, by_rank);
    require(velo_group_all_to_all_v(me_.stream, me_.group, &by_rank, taken_, nullptr, given_,
                                    nullptr, &returned));
    unpermute(returned, places, &weights, y);
  }

  const row r_;
  const rank_of& me_;
  const shape token_shape_, choice_shape_{r_.tokens, top_k};
  std::vector<std::int32_t> chosen_, arrived_experts_, places_, arrived_places_;
  std::vector<float> weights_;
  std::int64_t given_[ranks] = {}, taken_[ranks] = {}, arrivals_ = 0;  // elements; rows
  bytes x_, y_, composed_, sorted_rows_, returned_, rows_, arrived_, by_expert_, by_rank_;
  velo_dispatcher layer_ = nullptr;
  velo_routing routing_ = nullptr;
};

}  // namespace

bool measure_dispatches(const pair_options& set, board& all, const row_taker& take) {
  for (const dtype type : {dtype::f32, dtype::bf16})
    for (const std::int64_t tokens : {64, 2048}) {
      const row r{type, tokens};
      const pair_row of{"velo_dispatcher", type, r.text(), "composition"};
      if (!measure_pair<dispatches>(of, r, set, all, take)) return false;
    }
  return true;
}

}  // namespace velo::bench

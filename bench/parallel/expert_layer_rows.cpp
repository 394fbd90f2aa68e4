// A layer of 16 experts on two ranks, with a shared expert: velo_sublayers_run over
// velo_dispatcher's calls, the shared expert computed while rows travel.
//
// The layer takes turns with its composition: moe_token_permute, velo_group_all_to_all of the
// counts, velo_group_all_to_all_v of the rows and moe_token_permute into the order of the experts,
// their products, the same backwards, and the shared expert. The composition gets the experts of
// the rows that arrive ready made. The row "exposed" compares the time of the layer beyond its
// products alone with the time of its messages alone. Outputs are held against the composition's,
// bit for bit.
#include <algorithm>

#include "bench/harness/require.hpp"
#include "bench/parallel/pair_rows.hpp"
#include "bench/parallel/routed_rows.hpp"

namespace velo::bench {
namespace {

constexpr std::int64_t tokens = 2048, inner = 512;

enum call_kind { layer = ours, composed = peer, products, messages, kinds };

// A feed-forward block of `groups` experts: packed weights of both products.
class expert_weights {
 public:
  expert_weights(const rank_of& me, dtype type, std::int64_t groups, int seed)
      : me_(me),
        type_(dtype_of(type)),
        up_(pack(seed, groups, routed_width, 2 * inner)),
        down_(pack(seed + 1, groups, inner, routed_width)) {}
  ~expert_weights() {
    velo_pack_destroy(up_);
    velo_pack_destroy(down_);
  }
  expert_weights(const expert_weights&) = delete;
  expert_weights& operator=(const expert_weights&) = delete;

  // y = down(swiglu(up(x))) of the rows of each group; `between` has room for 3 inner columns.
  void compute(const velo_tensor& x, const velo_tensor& counts, void* between,
               const velo_tensor& y) const {
    const std::int64_t rows = x.shape[0];
    const shape gate_shape{rows, 2 * inner}, gated_shape{rows, inner};
    const velo_tensor gates = view(between, type_, gate_shape),
                      gated = view(static_cast<char*>(between) + rows * 2 * inner * type_.bits / 8,
                                   type_, gated_shape);
    multiply(x, counts, up_, gates);
    velo_swiglu_args args = VELO_SWIGLU_ARGS_INIT;
    args.x = &gates, args.y = &gated;
    require(velo_swiglu(me_.stream, &args));
    multiply(gated, counts, down_, y);
  }

 private:
  velo_pack pack(int seed, std::int64_t groups, std::int64_t k, std::int64_t n) const {
    const shape of{groups, k, n};
    std::vector<unsigned char> values(static_cast<std::size_t>(groups * k * n * type_.bits / 8));
    fill(values, type_, seed, 0.02f);
    velo_pack_desc desc = VELO_PACK_DESC_INIT;
    desc.dtype = type_;
    desc.count = groups, desc.k = k, desc.n = n;
    velo_pack made = nullptr;
    require(velo_pack_create(me_.context, &desc, &made));
    const velo_tensor from = view(values.data(), type_, of);
    require(velo_pack_update(me_.stream, made, &from));
    return made;
  }
  void multiply(const velo_tensor& x, const velo_tensor& counts, velo_pack by,
                const velo_tensor& y) const {
    velo_grouped_matmul_args args = VELO_GROUPED_MATMUL_ARGS_INIT;
    args.x = &x, args.y = &y, args.packed = by;
    args.group_list_tensor = &counts, args.group_list_kind = VELO_GROUP_LIST_KIND_COUNTS;
    require(velo_grouped_matmul(me_.stream, &args));
  }

  const rank_of& me_;
  const velo_dtype type_;
  const velo_pack up_, down_;
};

class expert_layer {
 public:
  expert_layer(dtype type, const rank_of& me)
      : me_(me),
        rows_(type, tokens, me),
        routed_(me, type, routed_experts / ranks, 1),
        shared_(me, type, 1, 3) {
    velo_sublayers_desc desc = VELO_SUBLAYERS_DESC_INIT;
    desc.forward_layers = 1;
    desc.flags = VELO_SUBLAYERS_SHARED;
    require(velo_sublayers_create(&desc, &plan_));
    require(velo_stream_create(me.context, &messages_));
    for (bytes* one : {&shared_y_, &composed_shared_}) one->resize(rows_.bytes_of(tokens));
    shared_between_.resize(rows_.bytes_of(tokens) * 3 * inner / routed_width);
    expert_y_.resize(rows_.bytes_of(rows_.arrivals()));
    between_.resize(rows_.bytes_of(rows_.arrivals()) * 3 * inner / routed_width);
  }
  ~expert_layer() {
    velo_sublayers_destroy(plan_);
    velo_stream_destroy(messages_);
  }
  expert_layer(const expert_layer&) = delete;
  expert_layer& operator=(const expert_layer&) = delete;

  void call(int which) {
    switch (which) {
      case layer:
        return overlap();
      case composed:
        rows_.compose(
            [&](const velo_tensor& in, const velo_tensor& counts) { return experts(in, counts); });
        return share(composed_shared_);
      case products:
        share(shared_y_);
        experts(rows_.arrived_rows(), rows_.counts());
        return;
      default:
        rows_.set(me_.stream);
        rows_.dispatch(me_.stream);
        rows_.combine(me_.stream, rows_.arrived_rows());
        rows_.reset();
    }
  }
  bool is_right() const { return rows_.is_right() && shared_y_ == composed_shared_; }

 private:
  using bytes = std::vector<unsigned char>;

  void overlap() {
    velo_sublayers_run_desc run = VELO_SUBLAYERS_RUN_DESC_INIT;
    run.user = this;
    run.compute = run.message = [](void* user, velo_stream on, const velo_sublayer_step* step) {
      static_cast<expert_layer*>(user)->start(on, step->kind);
      return velo_status{VELO_OK};
    };
    require(velo_sublayers_run(me_.stream, messages_, plan_, &run));
    rows_.reset();
  }
  void start(velo_stream on, velo_sublayer_kind kind) {
    if (kind == VELO_SUBLAYER_ATTENTION_F) return rows_.set(on);
    if (kind == VELO_SUBLAYER_DISPATCH_F) return rows_.dispatch(on);
    if (kind == VELO_SUBLAYER_SHARED_F) return share(shared_y_);
    if (kind == VELO_SUBLAYER_COMBINE_F) return rows_.combine(on, expert_rows());
    experts(rows_.arrived_rows(), rows_.counts());
  }
  velo_tensor expert_rows() { return rows_.like_arrived(expert_y_.data()); }
  velo_tensor experts(const velo_tensor& in, const velo_tensor& counts) {
    const velo_tensor y = expert_rows();
    routed_.compute(in, counts, between_.data(), y);
    return y;
  }
  void share(bytes& to) {
    static constexpr std::int64_t all = tokens;
    static const shape one{1};
    const velo_tensor counts = view(&all, {VELO_DTYPE_INT, 64, 1}, one);
    shared_.compute(rows_.tokens(), counts, shared_between_.data(), rows_.like_tokens(to.data()));
  }

  const rank_of& me_;
  routed_rows rows_;
  const expert_weights routed_, shared_;
  velo_sublayers plan_ = nullptr;
  velo_stream messages_ = nullptr;
  bytes shared_y_, composed_shared_, shared_between_, expert_y_, between_;
};

// The exposed time in microseconds. Its goal is a lower bound of the ratio of the messages to it.
result exposed_of(const pair_row& r, const char* by, const board& all) {
  result made = result_of(r, by, all);
  made.shape += ", exposed";
  made.unit = "us";
  const auto exposed = [&all](double at) {
    return std::max(all.slower(layer, at) - all.slower(products, at),
                    1e-3 * all.slower(messages, at));
  };
  const double p25 = exposed(0.25), alone = all.slower(messages, 0.25);
  made.rates = {1e6 * p25};
  made.p25s = {p25};
  made.mins = {exposed(0)};
  made.peers.clear();
  made.add_peer("messages", 1e6 * alone, alone / p25);
  return made;
}

}  // namespace

bool measure_expert_layers(const pair_options& set, board& all, const row_taker& take) {
  for (const dtype type : {dtype::f32, dtype::bf16})
    for (const char* by : {"local", "shm"}) {
      const pair_row of{"velo_sublayers", type, "2048x1024, 16 experts of 512, one shared",
                        "composition"};
      const std::string name = of.name + " " + name_of(type) + " " + of.shape + " " + by;
      if (name.find(set.filter) == std::string::npos) continue;
      all.rounds = board::most_rounds;
      const rank_body body = [&](const rank_of& me) {
        expert_layer one(type, me);
        alternate(me, all, 2 * set.seconds, kinds, [&one](int which) { one.call(which); });
        one.call(layer);
        one.call(composed);
        if (!one.is_right()) all.wrong = 1;
      };
      by_way(by, body);
      if (all.wrong != 0) {
        std::fprintf(stderr, "bench_parallel: wrong result: %s\n", name.c_str());
        return false;
      }
      take(result_of(of, by, all), all.rounds);
      take(exposed_of(of, by, all), all.rounds);
    }
  return true;
}

}  // namespace velo::bench

// Rows of causal attention on two ranks, forward and gradient, by each kind of plan.
//
// Calls that take turns: the whole sequence on each rank at the same time, so that each has the
// other's load beside it; the share of a rank by a ring, by Ulysses, by all-gather and by adaptive
// rounds; what a rank of the ring computes; and what it sends, each without the other
// (ring_apart.hpp). Results of the shares are held against the whole's, within the bounds of the
// operators. The forward keeps what the gradient needs.
//
// A kind's row compares it with the whole: a share of 0.5 is ideal. The row "exposed" compares what
// the ring takes beyond its computation with the exchange alone. Beside waiting that has the ring's
// own copies: into `kept`, and the sums of dk and dv. It is a difference of two times that scatter,
// and none is taken of long sequences, where the exchange is a hundredth of it.
#include <algorithm>

#include "bench/parallel/ring_apart.hpp"
#include "bench/parallel/scenes.hpp"

namespace velo::bench {
namespace {

struct row {
  attention_shape of;
  bool gradient;

  std::string name() const {
    return gradient ? "context_parallel_attention_backward" : "context_parallel_attention";
  }
  std::string text() const {
    return std::to_string(of.sequence) + "x" + std::to_string(of.heads) + ":" +
           std::to_string(of.key_heads) + "x" + std::to_string(of.width);
  }
  bool has_exposed() const { return of.sequence <= 1024; }
  // The largest allowed difference, over the largest number of a result: sums of the whole and of
  // the shares differ in order. The operators' own bounds are tighter; tests hold those.
  double bound() const { return of.type == dtype::f32 ? 1e-5 : 0.016; }
};

enum contender { whole, ring, ulysses, all_gather, adaptive, computed, exchanged, contenders };
static_assert(contenders <= board::most_calls);
constexpr int rows_each = 5;  // from the same rounds
constexpr const char* kind_names[] = {"whole", "ring", "ulysses", "all_gather", "adaptive"};

// One rank's share by one kind of plan.
class kind_share {
 public:
  kind_share(const row& r, const rank_of& me, velo_sequence_kind kind)
      : plan_(plan_of(r.of, kind)),
        share_(r.of, rows_of(plan_.get(), me.number), me, plan_.get(), me.group) {
    share_.forward();
  }
  void call(bool gradient) const { gradient ? share_.gradient() : share_.forward(); }
  velo_sequence_plan plan() const { return plan_.get(); }
  const attention_tensors& tensors() const { return share_.tensors(); }

 private:
  const sequence_plan plan_;
  const shared_attention share_;
};

// One rank's calls of a row.
class attention {
 public:
  attention(const row& r, const rank_of& me)
      : r_(r),
        me_(me),
        whole_(r.of, first_rows(r.of.sequence), first_rows(r.of.sequence)),
        shares_{{r, me, VELO_SEQUENCE_RING},
                {r, me, VELO_SEQUENCE_ULYSSES},
                {r, me, VELO_SEQUENCE_ALL_GATHER},
                {r, me, VELO_SEQUENCE_ADAPTIVE}},
        apart_(r.of, me, shares_[0].plan(), r.gradient) {
    attend(me.stream, whole_, true);
  }
  void call(int which) const {
    if (which == exchanged) return apart_.exchange();
    if (which == computed) return apart_.compute();
    if (which != whole) return shares_[which - ring].call(r_.gradient);
    r_.gradient ? add_gradients(me_.stream, whole_, true) : attend(me_.stream, whole_, true);
  }
  bool is_right() const {
    return std::all_of(std::begin(shares_), std::end(shares_), [this](const kind_share& one) {
      return one.tensors().difference(whole_, r_.gradient) <= r_.bound();
    });
  }

 private:
  const row& r_;
  const rank_of& me_;
  const attention_tensors whole_;
  const kind_share shares_[4];
  const ring_apart apart_;
};

result result_of(const row& r, const char* what, const char* by) {
  result made;
  made.name = r.name();
  made.shape = r.text() + " " + what;
  made.residency = by;
  made.type = r.of.type;
  made.threads = ranks;
  made.limits = {0};
  return made;
}

result share_of(const row& r, int kind, const char* by, const board& all) {
  result made = result_of(r, kind_names[kind], by);
  const double p25 = all.slower(kind, 0.25), of_whole = all.slower(whole, 0.25);
  made.unit = "calls/s";
  made.rates = {1 / p25};
  made.p25s = {p25};
  made.mins = {all.slower(kind, 0)};
  made.add_peer("whole", 1 / of_whole, of_whole / p25);
  return made;
}

// The exposed time in microseconds. Its goal is a lower bound of the ratio of the exchange to it.
result exposed_of(const row& r, const char* by, const board& all) {
  result made = result_of(r, "ring, exposed", by);
  const auto exposed = [&all](double at) {
    const double exchange = all.slower(exchanged, at);
    return std::max(all.slower(ring, at) - all.slower(computed, at), 1e-3 * exchange);
  };
  const double p25 = exposed(0.25), exchange = all.slower(exchanged, 0.25);
  made.unit = "us";
  made.rates = {1e6 * p25};
  made.p25s = {p25};
  made.mins = {exposed(0)};
  made.add_peer("exchange", 1e6 * exchange, exchange / p25);
  return made;
}

std::vector<row> all_rows() {
  std::vector<row> rows;
  for (const dtype type : {dtype::f32, dtype::bf16})
    for (const bool gradient : {false, true})
      for (const attention_shape& of : {attention_shape{type, 8192, 4, 2, 64},
                                        {type, 1024, 16, 4, 64},
                                        {type, 1024, 16, 16, 64}})
        rows.push_back({of, gradient});
  return rows;
}

}  // namespace

bool measure_attention(const pair_options& set, board& all, const row_taker& take) {
  for (const row& r : all_rows())
    for (const char* by : all_ways) {
      const std::string name = r.name() + " " + name_of(r.of.type) + " " + r.text() + " " + by;
      if (name.find(set.filter) == std::string::npos) continue;
      all.rounds = board::most_rounds;
      const rank_body body = [&](const rank_of& me) {
        const attention one(r, me);
        alternate(me, all, rows_each * set.seconds, r.has_exposed() ? contenders : computed,
                  [&one](int which) { one.call(which); });
        if (!one.is_right()) all.wrong = 1;
      };
      by_way(by, body);
      if (all.wrong != 0) {
        std::fprintf(stderr, "bench_parallel: wrong result: %s\n", name.c_str());
        return false;
      }
      for (const int kind : {ring, ulysses, all_gather, adaptive})
        take(share_of(r, kind, by, all), all.rounds);
      if (r.has_exposed()) take(exposed_of(r, by, all), all.rounds);
    }
  return true;
}

}  // namespace velo::bench

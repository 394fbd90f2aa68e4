// bench_overlap: what communication next to a product costs, on two ranks of one thread each.
//
//   build/bench/bench_overlap [--seconds S] [--filter TEXT] [--json]
//
// Four calls take turns: the product alone, the collectives alone, one after the other, and both in
// one call. A call costs what the slower rank needed, from a barrier on. Exposed is what the one
// call takes beyond the product alone, as a share of what the collectives take alone: at 1 nothing
// is gained. A norm after the sum counts as part of the product, and is dropout_add_rms_norm where
// the calls are apart. Ranks are threads (local) and processes (shm), each on a processor of its
// own; shapes are layers of transformers cut for two ranks: rows of the product, its columns, its
// depth. Results of the one call are held against the composition's, bit for bit. Goals:
// goals.json, overlap.
#include <jansson.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "bench/comm/expert_layer.hpp"
#include "bench/comm/grouped_layer.hpp"
#include "bench/comm/quantized_layer.hpp"
#include "bench/comm/two_ranks.hpp"
#include "bench/harness/require.hpp"
#include "bench/harness/result.hpp"

namespace velo::bench {
namespace {

enum class op {
  all_reduce,
  all_reduce_norm,
  reduce_scatter,
  gather,
  gather_kept,
  gather_scatter,
  weight_sum,   // of a weight of int8
  integer_sum,  // of int8 by int8
  grouped_sum,
  into_experts,
  out_of_experts
};
constexpr const char* op_names[] = {"matmul_all_reduce",
                                    "matmul_all_reduce_add_rms_norm",
                                    "matmul_reduce_scatter",
                                    "all_gather_matmul",
                                    "all_gather_matmul, gathered",
                                    "all_gather_matmul_reduce_scatter",
                                    "matmul_all_reduce, int8 weight",
                                    "matmul_all_reduce, int8 by int8",
                                    "grouped_matmul_all_reduce",
                                    "all_to_all_all_gather_bmm, columns",
                                    "bmm_reduce_scatter_all_to_all, rows"};

struct shape {
  std::int64_t m, n, k;
  bool transposed;  // weight stored [n][k], as of linear layers; else as their gradients read it
};

struct row {
  op what;
  dtype type;
  shape of;
};

enum contender { product, collective, composition, fused, contenders };
static_assert(contenders <= board::most_calls);

// A matrix of numbers around zero, drawn from its seed.
class matrix {
 public:
  matrix(dtype type, std::int64_t rows, std::int64_t columns, int seed)
      : shape_{rows, columns},
        type_(type == dtype::bf16 ? velo_dtype{VELO_DTYPE_BFLOAT, 16, 1}
                                  : velo_dtype{VELO_DTYPE_FLOAT, 32, 1}),
        bytes_(static_cast<std::size_t>(rows * columns * (type_.bits / 8) + 64)) {
    auto state = static_cast<std::uint32_t>(seed) * 2654435761u + 1;
    for (std::int64_t i = 0; i < rows * columns; ++i) {
      state = state * 1664525u + 1013904223u;
      const float value = static_cast<float>(state >> 8) / (1 << 23) - 1;
      std::uint32_t word;
      std::memcpy(&word, &value, 4);
      if (type == dtype::bf16) word >>= 16;
      std::memcpy(data() + i * (type_.bits / 8), &word, static_cast<std::size_t>(type_.bits / 8));
    }
  }
  matrix(const matrix&) = delete;
  velo_tensor view() const { return {data(), {VELO_DEVICE_CPU, 0}, 2, type_, shape_, nullptr, 0}; }
  bool equals(const matrix& other) const {
    return std::memcmp(data(), other.data(), bytes_.size() - 64) == 0;
  }

 private:
  unsigned char* data() const {
    auto* first = const_cast<unsigned char*>(bytes_.data());
    return first + (64 - reinterpret_cast<std::uintptr_t>(first) % 64) % 64;
  }

  std::int64_t shape_[2];
  velo_dtype type_;
  std::vector<unsigned char> bytes_;
};

// One rank's tensors and calls of a row.
class layer {
 public:
  layer(const row& r, const rank_of& me)
      : r_(r),
        me_(me),
        gathers_(r.what >= op::gather),
        scatters_(r.what == op::reduce_scatter || r.what == op::gather_scatter),
        x_(r.type, gathers_ ? r.of.m / ranks : r.of.m, r.of.k, 2 * me.number),
        weight_(r.type, r.of.transposed ? r.of.n : r.of.k, r.of.transposed ? r.of.k : r.of.n,
                2 * me.number + 1),
        all_x_(r.type, gathers_ ? r.of.m : 0, r.of.k, 7),
        gathered_(r.type, gathers_ ? r.of.m : 0, r.of.k, 7),
        whole_(r.type, r.of.m, r.of.n, 7),
        y_(r.type, scatters_ ? r.of.m / ranks : r.of.m, r.of.n, 7),
        composed_(r.type, scatters_ ? r.of.m / ranks : r.of.m, r.of.n, 7),
        residual_(r.type, norms() ? r.of.m : 0, r.of.n, 8),
        z_(r.type, norms() ? r.of.m : 0, r.of.n, 9),
        composed_z_(r.type, norms() ? r.of.m : 0, r.of.n, 9),
        whole_z_(r.type, norms() ? r.of.m : 0, r.of.n, 9),
        gamma_(r.type, 1, r.of.n, 10) {}

  void call(int which) const {
    if (which == product) {
      multiply(gathers_ ? all_x_ : x_, whole_);
      return norm(whole_, whole_z_);
    }
    if (which == fused) return norms() ? call_with_norm() : call_fused();
    const bool all = which == composition;
    if (gathers_) gather();
    if (all) multiply(gathers_ ? all_x_ : x_, has_sum() ? whole_ : composed_);
    if (scatters_) scatter();
    if (r_.what == op::all_reduce || norms()) reduce(all || !norms() ? composed_ : whole_z_);
    if (all) norm(composed_, composed_z_);
  }
  bool is_right() const {
    return y_.equals(composed_) && z_.equals(composed_z_) && (!keeps() || gathered_.equals(all_x_));
  }

 private:
  bool norms() const { return r_.what == op::all_reduce_norm; }
  bool has_sum() const { return scatters_ || norms() || r_.what == op::all_reduce; }
  bool keeps() const { return r_.what == op::gather_kept; }

  void multiply(const matrix& from, const matrix& to) const {
    const velo_tensor a = from.view(), b = weight_.view(), c = to.view();
    velo_matmul_args args = VELO_MATMUL_ARGS_INIT;
    args.a = &a, args.b = &b, args.c = &c, args.transpose_b = r_.of.transposed;
    require(velo_matmul(me_.stream, &args));
  }
  void gather() const {
    const velo_tensor in = x_.view(), out = all_x_.view();
    require(velo_group_all_gather(me_.stream, me_.group, &in, &out));
  }
  void scatter() const {
    const velo_tensor in = whole_.view(), out = composed_.view();
    const velo_group by = r_.what == op::gather_scatter ? me_.second : me_.group;
    require(velo_group_reduce_scatter(me_.stream, by, nullptr, &in, &out));
  }
  void reduce(const matrix& to) const {
    const velo_tensor in = whole_.view(), out = to.view();
    require(velo_group_all_reduce(me_.stream, me_.group, nullptr, &in, &out));
  }
  velo_tensor gamma() const {
    velo_tensor row = gamma_.view();
    row.ndim = 1, ++row.shape;
    return row;
  }
  void norm(const matrix& sums, const matrix& to) const {
    if (!norms()) return;
    const velo_tensor sum = sums.view(), other = residual_.view(), z = to.view(), gain = gamma();
    velo_dropout_add_rms_norm_args args = VELO_DROPOUT_ADD_RMS_NORM_ARGS_INIT;
    args.x = args.y = &sum, args.residual = &other, args.pre_norm = &z, args.gamma = &gain;
    args.epsilon = 1e-6;
    require(velo_dropout_add_rms_norm(me_.stream, &args));
  }
  void call_with_norm() const {
    const velo_tensor x = x_.view(), weight = weight_.view(), z = z_.view(), y = y_.view(),
                      other = residual_.view(), gain = gamma();
    velo_matmul_all_reduce_add_rms_norm_args args = VELO_MATMUL_ALL_REDUCE_ADD_RMS_NORM_ARGS_INIT;
    fill(args, x, weight, z);
    args.group = me_.group, args.residual = &other, args.gamma = &gain, args.norm_out = &y;
    require(velo_matmul_all_reduce_add_rms_norm(me_.stream, &args));
  }
  template <class Args>
  void fill(Args& args, const velo_tensor& x, const velo_tensor& weight,
            const velo_tensor& y) const {
    args.x = &x, args.weight = &weight, args.y = &y, args.transpose_weight = r_.of.transposed;
  }
  void call_fused() const {
    const velo_tensor x = x_.view(), weight = weight_.view(), y = y_.view(),
                      gathered = gathered_.view();
    if (r_.what == op::all_reduce) {
      velo_matmul_all_reduce_args args = VELO_MATMUL_ALL_REDUCE_ARGS_INIT;
      fill(args, x, weight, y);
      args.group = me_.group;
      return require(velo_matmul_all_reduce(me_.stream, &args));
    }
    if (r_.what == op::reduce_scatter) {
      velo_matmul_reduce_scatter_args args = VELO_MATMUL_REDUCE_SCATTER_ARGS_INIT;
      fill(args, x, weight, y);
      args.group = me_.group;
      return require(velo_matmul_reduce_scatter(me_.stream, &args));
    }
    if (r_.what == op::gather_scatter) {
      velo_all_gather_matmul_reduce_scatter_args args =
          VELO_ALL_GATHER_MATMUL_REDUCE_SCATTER_ARGS_INIT;
      fill(args, x, weight, y);
      args.gather_group = me_.group, args.scatter_group = me_.second;
      return require(velo_all_gather_matmul_reduce_scatter(me_.stream, &args));
    }
    velo_all_gather_matmul_args args = VELO_ALL_GATHER_MATMUL_ARGS_INIT;
    fill(args, x, weight, y);
    args.group = me_.group;
    if (keeps()) args.gathered = &gathered;
    require(velo_all_gather_matmul(me_.stream, &args));
  }

  const row r_;
  const rank_of& me_;
  const bool gathers_, scatters_;
  const matrix x_, weight_, all_x_, gathered_, whole_, y_, composed_;
  const matrix residual_, z_, composed_z_, whole_z_, gamma_;  // of a norm
};

// A layer whose calls are not those of matmul and its collectives.
template <class Layer>
void measure_own(const Layer& one, const rank_of& me, board& all, double seconds) {
  alternate(me, all, seconds, contenders, [&one](int which) {
    which == product       ? one.multiply()
    : which == collective  ? one.reduce()
    : which == composition ? one.compose()
                           : one.call_fused();
  });
  if (!one.is_right()) all.wrong = 1;
}

void measure(const row& r, const rank_of& me, board& all, double seconds) {
  if (r.what >= op::into_experts)
    return measure_own(
        expert_layer({r.of.m, r.of.n, r.of.k}, r.type, r.what == op::into_experts, me), me, all,
        seconds);
  if (r.what == op::grouped_sum)
    return measure_own(grouped_layer({r.of.m, r.of.n, r.of.k}, r.type, me), me, all, seconds);
  if (r.what >= op::weight_sum)
    return measure_own(quantized_layer({r.of.m, r.of.n, r.of.k}, r.what == op::integer_sum, me), me,
                       all, seconds);
  const layer one(r, me);
  alternate(me, all, seconds, contenders, [&one](int which) { one.call(which); });
  if (!one.is_right()) all.wrong = 1;
}

struct figures {
  const char* by;
  row of;
  int rounds;
  double p25[contenders], least[contenders];

  double exposed(int of_call) const { return (p25[of_call] - p25[product]) / p25[collective]; }
};

figures figures_of(const board& all, const row& r, const char* by) {
  figures made{by, r, all.rounds, {}, {}};
  for (int which = 0; which < contenders; ++which)
    made.p25[which] = all.slower(which, 0.25), made.least[which] = all.slower(which, 0);
  return made;
}

std::string text_of(const shape& s) {
  return std::to_string(s.m) + "x" + std::to_string(s.n) + "x" + std::to_string(s.k) +
         (s.transposed ? " T" : "");
}

result result_of(const figures& f) {
  result made;
  made.name = op_names[static_cast<int>(f.of.what)];
  made.shape = text_of(f.of.of);
  made.residency = f.by;
  made.unit = "s";
  made.type = f.of.type;
  made.threads = ranks;
  made.rates = {1 / f.p25[fused]};
  made.limits = {0};
  made.p25s = {f.p25[fused]};
  made.mins = {f.least[fused]};
  // A goal is a ratio that is large enough: of the collective to what is exposed of it.
  const double exposed = std::max(f.p25[fused] - f.p25[product], 1e-3 * f.p25[collective]);
  made.add_peer("collective", 1 / f.p25[collective], f.p25[collective] / exposed);
  made.add_peer("composition", 1 / f.p25[composition], f.p25[composition] / f.p25[fused]);
  return made;
}

void print(const figures& f, bool json) {
  const std::string of = text_of(f.of.of);
  const char* name = op_names[static_cast<int>(f.of.what)];
  const double us = 1e6;
  if (!json) {
    std::printf("%-32s %-4s %-18s %-5s %9.0f %9.0f %9.0f %9.0f %7.2f %7.2f %5d\n", name,
                name_of(f.of.type), of.c_str(), f.by, us * f.p25[product], us * f.p25[collective],
                us * f.p25[composition], us * f.p25[fused], f.exposed(composition),
                f.exposed(fused), f.rounds);
    std::fflush(stdout);
    return;
  }
  json_t* line = json_pack("{s:s, s:s, s:s, s:s, s:i}", "name", name, "dtype", name_of(f.of.type),
                           "shape", of.c_str(), "transport", f.by, "ranks", ranks);
  constexpr const char* names[] = {"product", "collective", "composition", "fused"};
  for (int which = 0; which < contenders; ++which)
    json_object_set_new(line, names[which], json_real(f.p25[which]));
  json_object_set_new(line, "exposed_composition", json_real(f.exposed(composition)));
  json_object_set_new(line, "exposed", json_real(f.exposed(fused)));
  char* text = json_dumps(line, JSON_PRESERVE_ORDER | JSON_REAL_PRECISION(6));
  std::printf("%s\n", text);
  std::fflush(stdout);
  std::free(text);
  json_decref(line);
}

// Layers of hidden 512, 1024 and 4096, with as many tokens as a step has; the weight of each rank
// is half of the layer's, in outputs where rows are gathered, in inputs where products are summed.
std::vector<row> all_rows() {
  std::vector<row> rows;
  for (const dtype type : {dtype::f32, dtype::bf16}) {
    for (const shape& s : {shape{4096, 512, 256, true},
                           {2048, 1024, 512, true},
                           {2048, 1024, 2048, true},
                           {2048, 1024, 1536, false},
                           {1024, 4096, 2048, true}})
      for (const op what : {op::all_reduce, op::all_reduce_norm, op::reduce_scatter})
        rows.push_back({what, type, s});
    for (const shape& s : {shape{4096, 768, 512, true},
                           {2048, 1536, 1024, true},
                           {2048, 2048, 1024, false},
                           {1024, 2048, 4096, true}})
      for (const op what : {op::gather, op::gather_kept}) rows.push_back({what, type, s});
    for (const shape& s : {shape{2048, 1024, 512, true}, {2048, 512, 1024, true}})
      rows.push_back({op::gather_scatter, type, s});
    rows.push_back({op::grouped_sum, type, {4096, 1024, 1024, false}});
    // Rows that a rank has for each of four experts, hidden, and inner columns of a rank.
    for (const op what : {op::into_experts, op::out_of_experts})
      rows.push_back({what, type, {512, 1024, 512, false}});
  }
  for (const shape& s : {shape{16, 1024, 2048, false}, {2048, 1024, 2048, false}})
    for (const op what : {op::weight_sum, op::integer_sum}) rows.push_back({what, dtype::bf16, s});
  return rows;
}

int run(int argc, char** argv) {
  pair_options set;
  if (!read_options(argc, argv, "bench_overlap", set)) return 2;
  board& all = board::make();
  if (!set.json)
    std::printf("%-32s %-4s %-18s %-5s %9s %9s %9s %9s %7s %7s %5s\n", "operator", "type", "shape",
                "by", "product", "collectiv", "composed", "fused us", "exposed", "fused", "calls");
  std::vector<result> rows;
  for (const row& r : all_rows())
    for (const char* by : {"local", "shm"}) {
      const std::string name = std::string(op_names[static_cast<int>(r.what)]) + " " +
                               name_of(r.type) + " " + text_of(r.of) + " " + by;
      if (name.find(set.filter) == std::string::npos) continue;
      all.rounds = board::most_rounds;
      const rank_body body = [&](const rank_of& me) { measure(r, me, all, set.seconds); };
      (std::strcmp(by, "local") == 0 ? by_threads : by_processes)(body);
      if (all.wrong != 0) {
        std::fprintf(stderr, "bench_overlap: wrong bits: %s\n", name.c_str());
        return 2;
      }
      const figures f = figures_of(all, r, by);
      print(f, set.json);
      rows.push_back(result_of(f));
    }
  return judge_pairs("overlap", rows, set.json);
}

}  // namespace
}  // namespace velo::bench

int main(int argc, char** argv) {
  return velo::bench::run(argc, argv);
}

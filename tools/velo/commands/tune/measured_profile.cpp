// An accelerator of the profile is a rank with one thread, as many as the machine has processors.
//
// The machine's limits come from `measure`; what products and attention reach of them from a layer
// no wider than 512 and no longer than 512 rows; of memory from a norm of a matrix beyond the
// caches; launches from a norm of one row; links from all-gathers of two sizes between two ranks,
// threads of this process; overlaps as overlaps.cpp says. Each part repeats until its time is
// spent; the median counts. What is not measured, memory of host and buffers, is assumed, and the
// profile has it to be changed.
#include "tools/velo/commands/tune/measured_profile.hpp"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "bench/limits/machine.hpp"
#include "tools/velo/commands.hpp"
#include "tools/velo/commands/measure.hpp"
#include "tools/velo/commands/tune/matrix.hpp"
#include "tools/velo/commands/tune/overlaps.hpp"
#include "tools/velo/json.hpp"

namespace command {
namespace {

constexpr double part_seconds = 0.4;
constexpr int parts = 7;
constexpr std::int64_t widest = 512, longest = 512;
constexpr int operators_of_layer = 9;  // norms, products, rotation, attention, activation

using clock = std::chrono::steady_clock;
double seconds_since(clock::time_point begin) {
  return std::chrono::duration<double>(clock::now() - begin).count();
}

// The median of as many calls as fit into the time of a part, three at least.
double median_seconds(const std::function<void()>& call) {
  call();  // scratch
  std::vector<double> all;
  const clock::time_point begin = clock::now();
  while (all.size() < 3 || seconds_since(begin) < part_seconds) {
    const clock::time_point now = clock::now();
    call();
    all.push_back(seconds_since(now));
  }
  const auto middle = all.begin() + static_cast<std::ptrdiff_t>(all.size() / 2);
  std::nth_element(all.begin(), middle, all.end());
  return *middle;
}

void say_part(int number, const char* what) {
  std::fprintf(stderr, "velo: measuring %s (%d of %d)\n", what, number, parts);
}

// The sizes of a job's layer, cut down in proportion.
struct layer_sizes {
  std::int64_t hidden, heads, kv_heads, head_dim, inner, rows;
  bool gated, wide;  // wide: float32
};

std::int64_t size_of(const json_t* from, const char* section, const char* name,
                     std::int64_t otherwise, const std::string& file) {
  const json_t* value = member(member(from, section), name);
  if (value == nullptr && otherwise > 0) return otherwise;
  const bool whole = json_is_integer(value) && json_integer_value(value) > 0;
  if (whole && json_integer_value(value) <= 1 << 24) return json_integer_value(value);
  const std::unique_ptr<char, void (*)(void*)> got(json_dumps(value, JSON_ENCODE_ANY), &free);
  throw input_error(file + ": config." + section + "." + name +
                    ": expected a whole number from 1 to 16777216, got " +
                    (got == nullptr ? "nothing" : got.get()));
}

layer_sizes shrunk(const std::string& config, const std::string& file) {
  json_error_t error;
  const json read(json_loadb(config.data(), config.size(), 0, &error));
  if (read == nullptr)
    throw input_error(file + ": line " + std::to_string(error.line) + ": " + reason_of(error));
  const auto model = [&](const char* name, std::int64_t otherwise) {
    return size_of(read.get(), "model", name, otherwise, file);
  };
  const std::int64_t hidden = model("hidden", 0), heads = model("heads", 0);
  const std::int64_t kv_heads = model("kv_heads", heads), inner = model("ffn_hidden", 0);
  const std::int64_t head_dim = model("head_dim", std::max<std::int64_t>(hidden / heads, 1));
  layer_sizes made{};
  made.head_dim = std::min(head_dim, widest);
  made.heads = std::clamp<std::int64_t>(widest / made.head_dim, 1, heads);
  const std::int64_t group = std::clamp<std::int64_t>(heads / kv_heads, 1, made.heads);
  made.kv_heads = std::max<std::int64_t>(made.heads / group, 1);
  made.heads = made.kv_heads * group;
  made.hidden = std::min(hidden, made.heads * made.head_dim);
  const double share = static_cast<double>(made.hidden) / static_cast<double>(hidden);
  made.inner = std::clamp<std::int64_t>(
      static_cast<std::int64_t>(static_cast<double>(inner) * share), 1, 8 * widest);
  made.rows = std::min(size_of(read.get(), "training", "sequence", 0, file), longest);
  made.gated = !json_is_false(member(member(read.get(), "model"), "gated"));
  made.wide = size_of(read.get(), "training", "parameter_bytes", 2, file) == 4;
  return made;
}

// A matrix of a layer with its input and output, and its packs, which a step makes once.
struct product {
  product(const velo::context& context, std::int64_t rows, std::int64_t inner, std::int64_t columns,
          bool wide)
      : x({rows, inner}, wide),
        dx({rows, inner}, wide),
        y({rows, columns}, wide),
        weight({columns, inner}, wide),
        gradient({columns, inner}, true),
        forward(packed(context, weight, true)),
        backward(packed(context, weight, false)) {}

  // The output, the gradient of the input, and that of the weight.
  void run(velo::stream_ref on) {
    const velo::tensor_view in = x.view(), out = y.view();
    const velo::tensor_view back = dx.view(), sums = gradient.view();
    velo::matmul(on, velo::matmul_args().a(in).packed(forward).c(out));
    velo::matmul(on, velo::matmul_args().a(out).packed(backward).c(back));
    velo::matmul_add_fp32(on,
                          velo::matmul_add_fp32_args().total_input(in).grad_output(out).grad(sums));
  }

  matrix x, dx, y, weight, gradient;
  velo::pack forward, backward;
};

// Operations a second of the layer's four products and their gradients.
double product_rate(const velo::context& context, const layer_sizes& of) {
  const std::int64_t q = of.heads * of.head_dim, kv = of.kv_heads * of.head_dim;
  const std::int64_t outer = of.gated ? 2 * of.inner : of.inner;
  const std::pair<std::int64_t, std::int64_t> shapes[] = {
      {of.hidden, q + 2 * kv}, {q, of.hidden}, {of.hidden, outer}, {of.inner, of.hidden}};
  std::vector<std::unique_ptr<product>> all;
  double operations = 0;
  for (const auto& [inner, columns] : shapes) {
    all.push_back(std::make_unique<product>(context, of.rows, inner, columns, of.wide));
    operations += 3 * 2.0 * static_cast<double>(of.rows) * static_cast<double>(inner) *
                  static_cast<double>(columns);
  }
  return operations / median_seconds([&] {
           for (const auto& one : all) one->run(context.inline_stream());
         });
}

// Operations a second of causal attention, of the half of the scores that a row sees.
double attention_rate(velo::stream_ref on, const layer_sizes& of) {
  matrix query({1, of.rows, of.heads, of.head_dim}, of.wide);
  matrix key({1, of.rows, of.kv_heads, of.head_dim}, of.wide), value = key, out = query;
  const velo::tensor_view q = query.view(), k = key.view(), v = value.view(), y = out.view();
  const double took = median_seconds([&] {
    velo::fusion_attention(on, velo::fusion_attention_args()
                                   .query(q)
                                   .key(k)
                                   .value(v)
                                   .attention_out(y)
                                   .scale(0.1)
                                   .sparse_mode(velo::attention_sparse_mode::left_up_causal));
  });
  const auto rows = static_cast<double>(of.rows);
  return 2 * rows * rows * static_cast<double>(of.heads * of.head_dim) / took;
}

// Seconds of a norm of so many rows.
double norm_seconds(velo::stream_ref on, const layer_sizes& of, std::int64_t rows) {
  matrix in({rows, of.hidden}, of.wide), out({rows, of.hidden}, of.wide);
  matrix weight({of.hidden}, of.wide);
  const velo::tensor_view x = in.view(), y = out.view(), gamma = weight.view();
  return median_seconds([&] { velo::rms_norm(on, velo::rms_norm_args().x(x).gamma(gamma).y(y)); });
}

struct link_rate {
  double bytes_per_second, latency;
};

// Seconds of all-gathers of two ranks: of a rank's `counts` float32.
std::vector<double> gather_seconds(const std::vector<std::size_t>& counts) {
  velo_context_desc desc = VELO_CONTEXT_DESC_INIT;
  desc.threads = 1;
  const velo::context contexts[] = {velo::context::create(desc), velo::context::create(desc)};
  const velo_context handles[] = {contexts[0].get(), contexts[1].get()};
  const auto groups = velo::group::create_local<std::vector<velo::group>>(handles, 2);
  std::vector<double> all(counts.size());
  std::string failures[2];
  const auto work = [&](std::size_t rank) {
    try {
      const velo::stream_ref on = contexts[rank].inline_stream();
      for (std::size_t i = 0; i < counts.size(); ++i) {
        std::vector<float> in(counts[i], 1), out(2 * counts[i]);
        const velo::tensor_view from(in.data(), {static_cast<std::int64_t>(in.size())}),
            to(out.data(), {static_cast<std::int64_t>(out.size())});
        // As many on both ranks: the time of a part is not the same on both.
        constexpr int rounds = 41;
        std::vector<double> took;
        for (int round = 0; round < rounds; ++round) {
          groups[rank].barrier(on);
          const clock::time_point begin = clock::now();
          groups[rank].all_gather(on, from, to);
          took.push_back(seconds_since(begin));
        }
        std::nth_element(took.begin(), took.begin() + rounds / 2, took.end());
        if (rank == 0) all[i] = took[rounds / 2];
      }
    } catch (const std::exception& why) {
      failures[rank] = why.what();
      try {
        groups[rank].abort();
      } catch (const std::exception&) {  // it has ended
      }
    }
  };
  std::thread other([&] { work(1); });
  work(0);
  other.join();
  for (const std::string& one : failures)
    if (!one.empty()) throw std::runtime_error(one);
  return all;
}

link_rate measure_link() {
  constexpr std::size_t few = 16, many = std::size_t{1} << 20;
  const std::vector<double> took = gather_seconds({few, many});
  const double moved = 4.0 * static_cast<double>(many - few);  // that a rank gets from the other
  return {moved / std::max(took[1] - took[0], 1e-9), took[0]};
}

// Each of two ranks has half of the inner width, and all heads of half of the rows, or all of the
// inner width where it is 1.
overlap_sizes overlap_sizes_of(const layer_sizes& of) {
  return {std::max<std::int64_t>(of.rows, 4) / 4 * 4,
          of.hidden,
          std::max<std::int64_t>(of.inner / 2, 1),
          of.heads,
          of.kv_heads,
          of.head_dim,
          of.wide};
}

double share(double of, double whole) {
  return std::clamp(of / whole, 0.001, 1.0);
}

}  // namespace

std::string measured_profile(const std::string& config, const std::string& file) {
  const layer_sizes layer = shrunk(config, file);
  const velo::context machine_context = velo::context::create();
  velo_context_desc desc = VELO_CONTEXT_DESC_INIT;
  desc.threads = 1;
  const velo::context context = velo::context::create(desc);
  const velo::stream_ref on = context.inline_stream();
  const velo::bench::machine here =
      velo::bench::identify_machine(context.config<std::string>("isa"));

  say_part(1, "the machine's limits");
  const limits all = measure(machine_context).back();  // of all threads: ranks work side by side
  const double peak = (layer.wide ? all.f32 : all.bf16) / all.threads * 1e9;
  const double memory = all.copy / all.threads * 1e9;
  say_part(2, "products");
  const double products = product_rate(context, layer);
  say_part(3, "attention");
  const double attention = attention_rate(on, layer);
  say_part(4, "memory");
  constexpr double beyond_caches = 1 << 26;  // bytes
  const double row = static_cast<double>(layer.hidden) * (layer.wide ? 4 : 2);
  const auto rows = static_cast<std::int64_t>(beyond_caches / row) + 1;
  const double walked = 2 * row * static_cast<double>(rows) / norm_seconds(on, layer, rows);
  say_part(5, "launches");
  const double launch = norm_seconds(on, layer, 1);
  say_part(6, "a link of two ranks");
  const link_rate link = measure_link();
  say_part(7, "what two ranks hide of their exchanges");
  const overlaps hidden = measured_overlaps(overlap_sizes_of(layer));

  const double ranks = static_cast<double>(here.cpus.size());
  const double bytes =
      static_cast<double>(::sysconf(_SC_PHYS_PAGES)) * static_cast<double>(::sysconf(_SC_PAGESIZE));
  const double gib = 1 << 30;
  const std::string name = here.brand + ", a rank of one thread, measured";
  const json made(json_pack(
      "{s:s, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:i, s:f, s:f, s:f, s:f, s:f, "
      "s:f, s:f, s:f, s:f}",
      "name", name.c_str(), "memory_gib", std::max(bytes / gib / ranks, 0.001), "memory_fraction",
      0.8, "workspace_gib", 0.1, "bucket_mib", 1.0, "group_mib", 1.0, "peak_tflops", peak / 1e12,
      "fp8_tflops", peak / 1e12, "matmul_efficiency", share(products, peak), "attention_efficiency",
      share(attention, peak), "memory_gb_per_s", memory / 1e9, "memory_efficiency",
      share(walked, memory), "per_node", static_cast<int>(ranks), "intra_gb_per_s",
      link.bytes_per_second / 1e9, "inter_gb_per_s", link.bytes_per_second / 1e9, "link_efficiency",
      1.0, "intra_latency_us", link.latency * 1e6, "inter_latency_us", link.latency * 1e6,
      "layer_us", operators_of_layer * launch * 1e6, "tp_overlap", hidden.tensor, "cp_overlap",
      hidden.context, "dp_overlap", hidden.data));
  if (made == nullptr) throw std::runtime_error("no memory for the profile");
  const std::unique_ptr<char, void (*)(void*)> written(
      json_dumps(made.get(), JSON_INDENT(2) | JSON_REAL_PRECISION(4)), &free);
  return std::string(written.get()) + "\n";
}

}  // namespace command

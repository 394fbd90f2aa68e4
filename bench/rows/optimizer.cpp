// apply_fused_adamw over 32 Mi parameters: f32 (28 bytes a parameter) and bf16 with f32 master and
// moments (2 read for the gradient, 12 read and 12 written in f32, 2 written: 28 bytes);
// global_norm; and the whole update with clipping, which reads the gradient once more. Parameters
// split into bfloat16 and residuals, and merged. 1000 parameters of 1024 elements by one call of
// multi_tensor_adamw, and by a call for each; and their norm in both ways.
#include <cmath>

#include "bench/rows/families.hpp"

namespace velo::bench {
namespace {

constexpr std::int64_t parameters = std::int64_t{32} << 20;
constexpr double rate = 1e-4, beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;
constexpr std::int64_t step = 10;

struct state {
  tensor &grad, &param, &master, &m, &v;
};

state make_state(experiment& e, dtype type, std::int64_t count = parameters) {
  tensor& grad = e.random(type, {count});
  tensor& param = e.random(type, {count});
  tensor& master = type == dtype::f32 ? param : e.random(dtype::f32, {count});
  tensor& m = e.random(dtype::f32, {count}, 0.1);
  tensor& v = e.zeros(dtype::f32, {count});
  for (std::int64_t i = 0; i < count; ++i) v.memory().as<float>()[i] = 0.25f;
  return {grad, param, master, m, v};
}

bound_call bind_step(experiment& e, const state& s, const tensor* scale) {
  std::vector<named_value> values{{"grad", s.grad.view()}, {"param", s.param.view()},
                                  {"m", s.m.view()},       {"v", s.v.view()},
                                  {"step", step},          {"lr", rate},
                                  {"beta1", beta1},        {"beta2", beta2},
                                  {"epsilon", epsilon},    {"weight_decay", 0.01}};
  if (&s.master != &s.param) values.push_back({"master", s.master.view()});
  if (scale) values.push_back({"scale", scale->view()});
  return e.bind("apply_fused_adamw", values);
}

// One more step on element i, in double, against what velo makes of it.
double step_error(const state& s, const bound_call& call, double scale) {
  constexpr std::int64_t samples = 64;
  const std::int64_t apart = s.param.count() / samples;
  double before[samples][4];
  for (std::int64_t i = 0; i < samples; ++i) {
    const std::int64_t at = i * apart;
    s.m.set(at, 0.05);  // a step well above the rounding of the parameter, whatever the run has
                        // made of the moments
    s.v.set(at, 1e-4);
    before[i][0] = s.master.at(at);
    before[i][1] = s.grad.at(at) * scale;
    before[i][2] = s.m.at(at);
    before[i][3] = s.v.at(at);
  }
  call();
  return sampled_error(
      samples, [&](std::int64_t i) { return s.master.at(i * apart) - before[i][0]; },
      [&](std::int64_t i) {
        const auto [p, g, m, v] = before[i];
        const double first = beta1 * m + (1 - beta1) * g, second = beta2 * v + (1 - beta2) * g * g;
        const double root = std::sqrt(second / (1 - std::pow(beta2, step))) + epsilon;
        return -rate * (0.01 * p + first / (1 - std::pow(beta1, step)) / root);
      });
}

// One pass over five tensors, four of them written.
void fill_ema(experiment& e) {
  const state s = make_state(e, dtype::f32);
  tensor& average = e.random(dtype::f32, {parameters});
  e.velo("apply_fused_ema_adamw", {{"grad", s.grad.view()},
                                   {"param", s.param.view()},
                                   {"m", s.m.view()},
                                   {"v", s.v.view()},
                                   {"ema", average.view()},
                                   {"step", step},
                                   {"ema_decay", 0.0},
                                   {"lr", rate}});
  e.check([&s = s.param, &average] {  // without decay the average is the parameter
    return sampled_error(
        parameters, [&](std::int64_t i) { return average.at(i); },
        [&](std::int64_t i) { return s.at(i); });
  });
}

void fill_step(experiment& e, dtype type) {
  const state s = make_state(e, type);
  const bound_call call = bind_step(e, s, nullptr);
  e.call("velo", call);
  // the difference of two nearly equal f32 parameters
  e.check([s, call] { return step_error(s, call, 1.0); }, 1e-2);
}

bound_call bind_norm(experiment& e, const tensor& x, const tensor& sum, const tensor* clip) {
  std::vector<named_value> values{
      {"x", x.view()}, {"sum_of_squares", sum.view()}, {"max_norm", 1.0}};
  if (clip) values.push_back({"clip", clip->view()});
  return e.bind("global_norm", values);
}

void fill_norm(experiment& e, dtype type) {
  tensor& x = e.random(type, {parameters});
  tensor& sum = e.zeros(dtype::f64, {});
  e.call("velo", bind_norm(e, x, sum, nullptr));
  e.check([&x, &sum] {
    double exact = 0;
    for (std::int64_t i = 0; i < parameters; ++i) exact += x.at(i) * x.at(i);
    return std::abs(sum.at(0) / exact - 1);
  });
}

void fill_clipped(experiment& e, dtype type) {
  const state s = make_state(e, type);
  tensor& sum = e.zeros(dtype::f64, {});
  tensor& clip = e.zeros(dtype::f32, {});
  const bound_call norm = bind_norm(e, s.grad, sum, &clip), update = bind_step(e, s, &clip);
  const bound_call both = [norm, update] {
    norm();
    update();
  };
  e.call("velo", both);
  e.check([s, both, &clip] { return step_error(s, both, clip.at(0)); }, 1e-2);
}

// The 4 bytes of a parameter as bfloat16 and residual, or those as a parameter.
void fill_parts(experiment& e, bool merges) {
  tensor& master = e.random(dtype::f32, {parameters});
  tensor& param = e.random(dtype::bf16, {parameters});
  tensor& memory = e.zeros(dtype::bf16, {parameters});  // room for two bytes each
  const tensor_view residual(static_cast<std::uint8_t*>(memory.data()), {parameters, 2});
  e.velo(merges ? "bf16_param_merge" : "bf16_param_split",
         {{"master", master.view()}, {"param", param.view()}, {"residual", residual}});
  e.check(
      [&master, &param] {
        return sampled_error(
            parameters, [&](std::int64_t i) { return master.at(i); },
            [&](std::int64_t i) { return param.at(i); });
      },
      1e-2);
}

// The lists of many small parameters, which lie next to each other as in a trainer's buckets.
struct many {
  static constexpr std::int64_t tensors = 1000, each = 1024;
  state all;
  std::vector<tensor_view> views[4];  // grad, param, m, v
  std::vector<velo_tensor> listed[4];
  velo_tensors lists[4];

  explicit many(experiment& e) : all(make_state(e, dtype::f32, tensors * each)) {
    const tensor* const fields[] = {&all.grad, &all.param, &all.m, &all.v};
    for (int field = 0; field < 4; ++field) {
      for (std::int64_t i = 0; i < tensors; ++i)
        views[field].emplace_back(fields[field]->memory().as<float>() + i * each, sizes{each});
      listed[field].assign(views[field].begin(), views[field].end());
      lists[field] = {listed[field].data(), tensors};
    }
  }
};

template <class Args>
Args step_of(Args args) {
  args.step(step).lr(rate).beta1(beta1).beta2(beta2).epsilon(epsilon).weight_decay(0.01);
  return args;
}

void fill_many(experiment& e) {
  const auto one = std::make_shared<const many>(e), apart = std::make_shared<const many>(e);
  const stream_ref stream = e.owner().stream;
  const bound_call together = [one, stream] {
    const auto& lists = one->lists;
    multi_tensor_adamw(
        stream,
        step_of(multi_tensor_adamw_args()).grad(lists[0]).param(lists[1]).m(lists[2]).v(lists[3]));
  };
  e.call("velo", together);
  e.call("one call each", [apart, stream] {
    const auto& views = apart->views;
    for (std::size_t i = 0; i < many::tensors; ++i)
      apply_fused_adamw(stream, step_of(apply_fused_adamw_args())
                                    .grad(views[0][i])
                                    .param(views[1][i])
                                    .m(views[2][i])
                                    .v(views[3][i]));
  });
  e.check([one, together] { return step_error(one->all, together, 1.0); }, 1e-2);
}

void fill_many_norms(experiment& e) {
  const auto all = std::make_shared<const many>(e);
  tensor &together = e.zeros(dtype::f64, {}), &apart = e.zeros(dtype::f64, {});
  const stream_ref stream = e.owner().stream;
  e.call("velo", [all, stream, &together] {
    multi_tensor_global_norm(
        stream, multi_tensor_global_norm_args().x(all->lists[0]).sum_of_squares(together.view()));
  });
  e.call("one call each", [all, stream, &apart] {
    for (std::size_t i = 0; i < many::tensors; ++i)
      global_norm(
          stream,
          global_norm_args().x(all->views[0][i]).sum_of_squares(apart.view()).accumulate(i > 0));
  });
  e.check([&together, &apart] { return std::abs(together.at(0) / apart.at(0) - 1); });
}

row parameter_row(const std::string& name, const std::string& op, dtype type, double bytes_each,
                  limit bound, std::function<void(experiment&)> fill) {
  return {name,           type,   std::to_string(parameters),
          "dram",         "GB/s", bytes_each * static_cast<double>(parameters),
          bound,          op,     type == dtype::f16 ? "" : name,
          std::move(fill)};
}

}  // namespace

void list_optimizer(std::vector<row>& rows) {
  for (dtype type : operator_types) {
    const auto wide = static_cast<double>(bytes_of(type));
    rows.push_back(parameter_row("apply_fused_adamw", "apply_fused_adamw", type, 28, limit::adam,
                                 [type](experiment& e) { fill_step(e, type); }));
    rows.push_back(parameter_row("global_norm", "global_norm", type, wide, limit::read,
                                 [type](experiment& e) { fill_norm(e, type); }));
    rows.push_back(parameter_row("global_norm_clip_step", "apply_fused_adamw", type, 28 + wide,
                                 limit::adam, [type](experiment& e) { fill_clipped(e, type); }));
  }
  rows.push_back(parameter_row("apply_fused_ema_adamw", "apply_fused_ema_adamw", dtype::f32, 36,
                               limit::adam, fill_ema));
  constexpr auto elements = static_cast<double>(many::tensors * many::each);
  rows.push_back({"multi_tensor_adamw", dtype::f32, "1000 of 1024", "cache", "GB/s", 28 * elements,
                  limit::adam, "multi_tensor_adamw", "", fill_many});
  rows.push_back({"multi_tensor_global_norm", dtype::f32, "1000 of 1024", "cache", "GB/s",
                  4 * elements, limit::read, "multi_tensor_global_norm", "", fill_many_norms});
  for (const bool merges : {false, true}) {
    const std::string name = merges ? "bf16_param_merge" : "bf16_param_split";
    row parts = parameter_row(name, name, dtype::f32, 8, limit::copy,
                              [merges](experiment& e) { fill_parts(e, merges); });
    parts.torch.clear();
    rows.push_back(std::move(parts));
  }
}

}  // namespace velo::bench

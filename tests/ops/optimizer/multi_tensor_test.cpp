// multi_tensor_adamw, multi_tensor_ema_adamw and multi_tensor_global_norm against the operators of
// one tensor, bit for bit: every kernel, every mix of dtypes and many sizes in one call,
// 1 and 3 threads; refusals that name a tensor by its place.
#include <deque>

#include "ops/operator/definition.hpp"
#include "tests/hosts/samples.hpp"
#include "tests/ops/operator_testing.hpp"

using namespace velo::testing;
namespace ops = velo::ops;

namespace {

// A list of tensors with their memory, of random numbers.
class tensor_list {
 public:
  void add(velo_dtype dtype, std::int64_t n, bool positive) {
    memory_.push_back(hosts::filled(dtype, {n}, 0));
    ops::with_element_type(dtype, [&](auto element) {
      auto* x = reinterpret_cast<decltype(element)*>(memory_.back().bytes.data());
      thread_random draw(static_cast<std::uint32_t>(17 * memory_.size() + sizeof element));
      for (std::int64_t i = 0; i < n; ++i) {
        const double value = static_cast<double>(draw.below(2000)) / 1000 - 1;
        velo::simd::assign(x[i], positive ? value * value : value);
      }
    });
    views_.push_back(memory_.back().view());
    list_ = {views_.data(), static_cast<std::int64_t>(views_.size())};
  }
  const velo_tensors* list() const { return &list_; }
  const velo_tensor* operator[](std::size_t i) const { return &views_[i]; }
  std::size_t size() const { return views_.size(); }
  double sum_of_squares(std::size_t place) const {
    double sum = 0;
    ops::with_element_type(views_[place].dtype, [&](auto element) {
      const auto* x = static_cast<const decltype(element)*>(views_[place].data);
      for (std::int64_t i = 0; i < ops::numel(views_[place]); ++i)
        sum += value_of(x[i]) * value_of(x[i]);
    });
    return sum;
  }
  bool operator==(const tensor_list& other) const {
    return std::equal(memory_.begin(), memory_.end(), other.memory_.begin(), other.memory_.end(),
                      [](const auto& a, const auto& b) { return a.bytes == b.bytes; });
  }

 private:
  std::deque<hosts::array> memory_;
  std::vector<velo_tensor> views_;
  velo_tensors list_{};
};

// Parameters of every mix of dtypes, small, large and empty ones next to each other.
struct parameters {
  tensor_list grad, param, master, m, v, v_max;

  void add(std::int64_t n, velo_dtype p, velo_dtype g, velo_dtype moment, velo_dtype largest) {
    grad.add(g, n, false), param.add(p, n, false), master.add(ops::f32, n, false);
    m.add(moment, n, false), v.add(moment, n, true), v_max.add(largest, n, true);
  }
  parameters() {
    constexpr std::int64_t sizes[] = {1, 0, 33, 1000, 64, 17, 4097, 0, 20000};
    const velo_dtype types[] = {ops::f32, ops::bf16, ops::f16};
    std::size_t turn = 0;
    for (const velo_dtype p : types)
      for (const velo_dtype g : types)
        for (const velo_dtype moment : types) {
          add(sizes[turn % std::size(sizes)], p, g, moment, types[turn / 3 % 3]);
          ++turn;
        }
    for (int i = 0; i < 50; ++i) add(300 + i, ops::f32, ops::f32, ops::f32, ops::f32);
    add(50000, ops::bf16, ops::bf16, ops::f32, ops::bf16);
  }
  bool operator==(const parameters& o) const {
    return param == o.param && master == o.master && m == o.m && v == o.v && v_max == o.v_max;
  }
};

// What the single form and that of a list share.
template <class Args>
void set_attributes(Args& a, bool amsgrad) {
  a.step = 3, a.lr = 0.01, a.beta1 = 0.8, a.beta2 = 0.9, a.weight_decay = 0.1, a.epsilon = 1e-6;
  a.amsgrad = amsgrad, a.maximize = amsgrad;
}

void check_adamw(session& s, session& singly, bool with_master, bool amsgrad) {
  INFO("master " << with_master << ", amsgrad " << amsgrad);
  parameters together, apart;
  array<float> scale({});
  scale[0] = 0.25f;
  velo_multi_tensor_adamw_args a = VELO_MULTI_TENSOR_ADAMW_ARGS_INIT;
  set_attributes(a, amsgrad);
  a.grad = together.grad.list(), a.param = together.param.list(), a.m = together.m.list();
  a.v = together.v.list(), a.scale = scale.tensor();
  if (with_master) a.master = together.master.list();
  if (amsgrad) a.v_max = together.v_max.list();
  for (std::size_t i = 0; i < apart.param.size(); ++i) {
    velo_apply_fused_adamw_args b = VELO_APPLY_FUSED_ADAMW_ARGS_INIT;
    set_attributes(b, amsgrad);
    b.grad = apart.grad[i], b.param = apart.param[i], b.m = apart.m[i], b.v = apart.v[i];
    b.scale = scale.tensor();
    if (with_master) b.master = apart.master[i];
    if (amsgrad) b.v_max = apart.v_max[i];
    VELO_RUN(velo_apply_fused_adamw(singly.stream(), &b));
  }
  CHECK_FALSE(together == apart);
  VELO_RUN(velo_multi_tensor_adamw(s.stream(), &a));
  CHECK(together == apart);
}

// Five lists of float32.
struct averaged {
  tensor_list grad, param, m, v, ema;
  velo_multi_tensor_ema_adamw_args a = VELO_MULTI_TENSOR_EMA_ADAMW_ARGS_INIT;

  averaged() {
    for (const std::int64_t n : {300, 0, 1, 40000, 77}) {
      grad.add(ops::f32, n, false), param.add(ops::f32, n, false), m.add(ops::f32, n, false);
      v.add(ops::f32, n, true), ema.add(ops::f32, n, false);
    }
    a.grad = grad.list(), a.param = param.list(), a.m = m.list(), a.v = v.list();
    a.ema = ema.list();
    set(a);
  }
  template <class Args>
  static void set(Args& args) {
    args.step = 3, args.lr = 0.01, args.ema_decay = 0.9, args.weight_decay = 0.1, args.mode = 0;
  }
};

void check_ema(session& s, session& singly) {
  averaged together, apart;
  for (std::size_t i = 0; i < apart.param.size(); ++i) {
    velo_apply_fused_ema_adamw_args b = VELO_APPLY_FUSED_EMA_ADAMW_ARGS_INIT;
    averaged::set(b);
    b.grad = apart.grad[i], b.param = apart.param[i], b.m = apart.m[i], b.v = apart.v[i];
    b.ema = apart.ema[i];
    VELO_RUN(velo_apply_fused_ema_adamw(singly.stream(), &b));
  }
  VELO_RUN(velo_multi_tensor_ema_adamw(s.stream(), &together.a));
  CHECK(together.param == apart.param);
  CHECK((together.m == apart.m && together.v == apart.v));
  CHECK(together.ema == apart.ema);
}

// The three results of a norm.
struct norm_results {
  array<double> squares{{}};
  array<float> norm{{}}, clip{{}};

  template <class Args>
  void set(Args& a) {
    a.sum_of_squares = squares.tensor(), a.norm = norm.tensor(), a.clip = clip.tensor();
    a.max_norm = 2;
  }
  bool operator==(norm_results& o) {
    return squares[0] == o.squares[0] && norm[0] == o.norm[0] && clip[0] == o.clip[0];
  }
};

void check_norm(session& s, session& singly) {
  const parameters of;  // every mix of dtypes
  norm_results together, apart;
  together.squares[0] = apart.squares[0] = 0.3;
  for (const bool accumulate : {false, true}) {
    velo_multi_tensor_global_norm_args a = VELO_MULTI_TENSOR_GLOBAL_NORM_ARGS_INIT;
    a.x = of.grad.list(), a.accumulate = accumulate, together.set(a);
    VELO_RUN(velo_multi_tensor_global_norm(s.stream(), &a));
    double sum = accumulate ? apart.squares[0] : 0;
    for (std::size_t i = 0; i < of.grad.size(); ++i) {
      velo_global_norm_args b = VELO_GLOBAL_NORM_ARGS_INIT;
      b.x = of.grad[i], b.accumulate = accumulate || i > 0, apart.set(b);
      VELO_RUN(velo_global_norm(singly.stream(), &b));
      sum += of.grad.sum_of_squares(i);
    }
    CHECK((together == apart));
    CHECK(std::abs(together.squares[0] - sum) <= 1e-6 * sum);
    CHECK(std::abs(static_cast<double>(together.norm[0]) - std::sqrt(sum)) <=
          1e-6 * std::sqrt(sum));
  }
}

// check(of the list, of single tensors) with both operators on the same kernel, for every kernel.
void for_each_pair(const std::string& listed, const std::string& single,
                   const std::function<void(session&, session&)>& check) {
  ops::op_id id{};
  REQUIRE(ops::find_op(listed.c_str(), id));
  const ops::kernel_list& kernels = *ops::definition_of(id).kernels;
  for (int i = 0; i < kernels.count; ++i) {
    const std::string name = kernels.entries[i].name;
    session singly(1, "{\"kernel." + single + "\": \"" + name + "\"}");
    if (kernels.entries[i].isa > singly.isa()) continue;
    INFO("kernel " << name);
    for (const int threads : {1, 3}) {
      session together(threads, "{\"kernel." + listed + "\": \"" + name + "\"}");
      check(together, singly);
    }
  }
}

// A list of three float32 parameters, with a copy of one list whose tensor 1 a row changes.
struct three {
  tensor_list grad, param, m, v, other;
  std::vector<velo_tensor> views;
  velo_tensors list{};
  velo_multi_tensor_adamw_args a = VELO_MULTI_TENSOR_ADAMW_ARGS_INIT;

  three() {
    for (tensor_list* each : {&grad, &param, &m, &v})
      for (const std::int64_t n : {4, 8, 5}) each->add(ops::f32, n, false);
    other.add(ops::f32, 9, false), other.add(ops::bf16, 8, false), other.add(ops::f32, 8, false);
    a.grad = grad.list(), a.param = param.list(), a.m = m.list(), a.v = v.list();
  }
  const velo_tensors* with(const tensor_list& of, std::size_t place, const velo_tensor& tensor) {
    views.assign(of.list()->data, of.list()->data + of.list()->count);
    views[place] = tensor;
    list = {views.data(), of.list()->count};
    return &list;
  }
};

}  // namespace

TEST_CASE("multi_tensor_adamw gives the bits of single updates for every kernel and dtype mix") {
  for_each_pair("multi_tensor_adamw", "apply_fused_adamw", [](session& s, session& singly) {
    for (const bool with_master : {false, true})
      for (const bool amsgrad : {false, true}) check_adamw(s, singly, with_master, amsgrad);
  });
}

TEST_CASE("multi_tensor_ema_adamw gives the bits of single updates for every kernel") {
  for_each_pair("multi_tensor_ema_adamw", "apply_fused_ema_adamw", check_ema);
}

TEST_CASE("multi_tensor_global_norm gives the bits of single norms for every kernel and dtype") {
  for_each_pair("multi_tensor_global_norm", "global_norm", check_norm);
}

TEST_CASE("norms of equal elements, which round every time the same way, keep the bound") {
  for (const char* op : {"global_norm", "multi_tensor_global_norm"})
    for_each_kernel(op, [op](session& s) {
      for (const double value : {1.060546875, 0.7001953125, 3.0e-7, 1.1}) {
        array<float> x({4095});
        std::fill_n(x.data(), x.size(), static_cast<float>(value));
        norm_results results;
        velo_status status = VELO_OK;
        if (std::string(op) == "global_norm") {
          velo_global_norm_args a = VELO_GLOBAL_NORM_ARGS_INIT;
          a.x = x.tensor(), results.set(a);
          status = velo_global_norm(s.stream(), &a);
        } else {
          velo_multi_tensor_global_norm_args a = VELO_MULTI_TENSOR_GLOBAL_NORM_ARGS_INIT;
          const velo_tensors list{x.tensor(), 1};
          a.x = &list, results.set(a);
          status = velo_multi_tensor_global_norm(s.stream(), &a);
        }
        VELO_RUN(status);
        const double exact = 4095 * x.at(0) * x.at(0);
        INFO("value " << value);
        CHECK(std::abs(results.squares[0] - exact) <= 1e-6 * exact);
      }
    });
}

TEST_CASE("multi_tensor_global_norm of no tensors is 0, and refuses one of them by its place") {
  session s;
  norm_results results;
  results.squares[0] = 4;
  velo_multi_tensor_global_norm_args a = VELO_MULTI_TENSOR_GLOBAL_NORM_ARGS_INIT;
  const velo_tensors empty{nullptr, 0};
  a.x = &empty, results.set(a);
  VELO_RUN(velo_multi_tensor_global_norm(s.stream(), &a));
  CHECK((results.squares[0] == 0 && results.norm[0] == 0 && results.clip[0] == 1));

  three some;
  velo_tensor wrong = *some.grad[1];
  wrong.dtype = {VELO_DTYPE_INT, 32, 1};
  a.x = some.with(some.grad, 1, wrong);
  CHECK(velo_multi_tensor_global_norm(s.stream(), &a) == VELO_ERR_DTYPE);
  CHECK(last_record().argument == "args.x[1].dtype");
  CHECK(results.clip[0] == 1);
}

TEST_CASE("multi_tensor_adamw takes empty lists, and step and rate from tensors on a queue") {
  session s;
  velo_multi_tensor_adamw_args none = VELO_MULTI_TENSOR_ADAMW_ARGS_INIT;
  const velo_tensors empty{nullptr, 0};
  none.grad = none.param = none.m = none.v = &empty;
  VELO_RUN(velo_multi_tensor_adamw(s.stream(), &none));

  three plain, queued;
  plain.a.step = 7, plain.a.lr = 0.5;
  VELO_RUN(velo_multi_tensor_adamw(s.stream(), &plain.a));
  array<std::int64_t> step({});
  array<float> lr({});
  step[0] = 7, lr[0] = 0.5f;
  const velo_stream queue = s.new_stream();
  queued.a.step_tensor = step.tensor(), queued.a.lr_tensor = lr.tensor();
  VELO_RUN(velo_multi_tensor_adamw(queue, &queued.a));
  VELO_RUN(velo_stream_synchronize(queue));
  CHECK((plain.param == queued.param && plain.m == queued.m && plain.v == queued.v));
}

TEST_CASE("multi_tensor_adamw refuses what does not fit by list and place, and changes nothing") {
  session s;
  three t;
  const three before;
  array<std::int64_t> step({});
  step[0] = 0;
  velo_tensor missing = *t.m[1], inside = *t.param[2];
  missing.data = nullptr;
  inside.data = t.param[1]->data;
  const velo_tensors two{t.grad.list()->data, 2}, nothing{nullptr, 3};
  using args = velo_multi_tensor_adamw_args;
  check_refusals<args>(
      t.a,
      [&](const args& a) {
        const velo_status status = velo_multi_tensor_adamw(s.stream(), &a);
        CHECK((t.param == before.param && t.m == before.m && t.v == before.v));
        return status;
      },
      {{[&](args& a) { a.grad = &two; }, VELO_ERR_ARGUMENT, "args.grad.count",
        "3, as args.param.count", "2"},
       {[&](args& a) { a.v = &two; }, VELO_ERR_ARGUMENT, "args.v.count"},
       {[&](args& a) { a.master = &two; }, VELO_ERR_ARGUMENT, "args.master.count"},
       {[&](args& a) { a.grad = &nothing; }, VELO_ERR_NULL, "args.grad.data"},
       {[&](args& a) { a.param = nullptr; }, VELO_ERR_NULL, "args.param", "a list of tensors"},
       {[&](args& a) { a.grad = t.with(t.grad, 1, *t.other[0]); }, VELO_ERR_SHAPE,
        "args.grad[1].shape", "[8]", "[9]"},
       {[&](args& a) { a.m = t.with(t.m, 1, missing); }, VELO_ERR_NULL, "args.m[1].data"},
       {[&](args& a) { a.v = t.with(t.v, 1, *t.other[1]); }, VELO_ERR_DTYPE, "args.v[1].dtype",
        "float32", "bfloat16"},
       {[&](args& a) { a.master = t.with(t.param, 1, *t.other[1]); }, VELO_ERR_DTYPE,
        "args.master[1].dtype"},
       {[&](args& a) { a.m = t.with(t.m, 2, *t.v[2]); }, VELO_ERR_OVERLAP, "args.m[2]"},
       {[&](args& a) { a.param = t.with(t.param, 2, inside); }, VELO_ERR_OVERLAP, "args.param[1]"},
       {[&](args& a) { a.amsgrad = 1; }, VELO_ERR_NULL, "args.v_max"},
       {[&](args& a) { a.step_tensor = step.tensor(); }, VELO_ERR_ARGUMENT, "args.step_tensor"},
       {[&](args& a) { a.beta2 = 1; }, VELO_ERR_ARGUMENT, "args.beta2"}});
}

TEST_CASE("multi_tensor_ema_adamw refuses what does not fit by list and place") {
  session s;
  averaged t;
  const averaged before;
  const velo_tensors fewer{t.ema.list()->data, 4};
  std::vector<velo_tensor> turned(t.v.list()->data, t.v.list()->data + 5);
  std::swap(turned[2], turned[4]);
  const velo_tensors in_other_order{turned.data(), 5};
  using args = velo_multi_tensor_ema_adamw_args;
  check_refusals<args>(
      t.a,
      [&](const args& a) {
        const velo_status status = velo_multi_tensor_ema_adamw(s.stream(), &a);
        CHECK((t.param == before.param && t.ema == before.ema));
        return status;
      },
      {{[&](args& a) { a.ema = &fewer; }, VELO_ERR_ARGUMENT, "args.ema.count"},
       {[&](args& a) { a.v = &in_other_order; }, VELO_ERR_SHAPE, "args.v[2].shape", "[1]", "[77]"},
       {[&](args& a) { a.m = nullptr; }, VELO_ERR_NULL, "args.m"},
       {[&](args& a) { a.mode = 2; }, VELO_ERR_ARGUMENT, "args.mode"},
       {[&](args& a) { a.beta1 = 1; }, VELO_ERR_ARGUMENT, "args.beta1"}});
}

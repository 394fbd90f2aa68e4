// Context-parallel attention of a sequence that is cut between ranks, against attention over the
// whole sequence in double.
#pragma once

#include <cmath>
#include <functional>
#include <limits>

#include "comm/ranks.hpp"
#include "tests/random.hpp"

namespace velo::testing {

// A tensor [batch, rows, heads, width] of any dtype.
class heads_of_rows {
 public:
  heads_of_rows(velo_dtype dtype, std::int64_t batch, std::int64_t rows, std::int64_t heads,
                std::int64_t width)
      : shape_{batch, rows, heads, width}, elements_(dtype, batch * rows * heads * width, 0) {}
  velo_tensor view() const {
    velo_tensor all = elements_.view();
    all.ndim = 4, all.shape = shape_.data();
    return all;
  }
  std::int64_t size(int dimension) const { return shape_[at(dimension)]; }
  double get(std::int64_t b, std::int64_t row, std::int64_t head, std::int64_t i) const {
    return elements_.get(place(b, row, head, i));
  }
  void set(std::int64_t b, std::int64_t row, std::int64_t head, std::int64_t i, double x) {
    elements_.set(place(b, row, head, i), x);
  }
  template <class Body>
  void each(const Body& body) const {
    for (std::int64_t b = 0; b < shape_[0]; ++b)
      for (std::int64_t row = 0; row < shape_[1]; ++row)
        for (std::int64_t head = 0; head < shape_[2]; ++head)
          for (std::int64_t i = 0; i < shape_[3]; ++i) body(b, row, head, i);
  }
  bool same_bits(const heads_of_rows& other) const { return elements_.same_bits(other.elements_); }
  bool borders_kept() const { return elements_.borders_kept(); }

 private:
  std::int64_t place(std::int64_t b, std::int64_t row, std::int64_t head, std::int64_t i) const {
    return ((b * shape_[1] + row) * shape_[2] + head) * shape_[3] + i;
  }
  std::vector<std::int64_t> shape_;
  elements elements_;
};

// A sequence, its plan and its numbers.
struct attention_case {
  velo_sequence_desc desc = VELO_SEQUENCE_DESC_INIT;
  std::vector<std::int64_t> ends;
  std::vector<std::uint8_t> mask;
  velo_dtype dtype = f32;
  std::int64_t batch = 1, value_width = 8;
  std::vector<float> slopes;
  bool root = false;
  double keep_prob = 1;  // the reference knows no dropout
  bool packed = false;   // tensors have no dimension of sequences: [rows, heads, elements]
  // Where [batch, heads] lie in the whole whose indices decide dropout; empty: they are the whole.
  std::vector<std::int64_t> dropout_origin, dropout_extents;

  std::int64_t key_heads() const { return desc.kv_heads == 0 ? desc.heads : desc.kv_heads; }
  double scale() const { return 1 / std::sqrt(static_cast<double>(desc.head_dim)); }
  bool is_visible(std::int64_t q, std::int64_t k) const {
    if (!mask.empty()) return mask[at(q * desc.sequence + k)] == 0;
    if (desc.causal != 0 && k > q) return false;
    for (const std::int64_t end : ends)
      if ((q < end) != (k < end)) return false;
    return true;
  }
  velo_sequence_plan plan() const {
    velo_sequence_desc all = desc;
    if (!ends.empty()) all.document_ends = ends.data();
    all.document_count = static_cast<std::int64_t>(ends.size());
    if (!mask.empty()) all.mask = mask.data();
    velo_sequence_plan made = nullptr;
    REQUIRE(velo_sequence_plan_create(&all, &made) == VELO_OK);
    REQUIRE(velo_sequence_plan_check(made) == VELO_OK);
    return made;
  }
};

inline attention_case case_of(velo_sequence_kind kind, std::int64_t cp, std::int64_t sequence,
                              std::int64_t heads = 4, std::int64_t kv_heads = 0) {
  attention_case made;
  made.desc.kind = kind, made.desc.cp = cp, made.desc.sequence = sequence;
  made.desc.heads = heads, made.desc.kv_heads = kv_heads, made.desc.head_dim = 8;
  made.desc.element_bytes = 4;
  return made;
}

// The inputs and, in double, the results of the whole sequence.
class whole_attention {
 public:
  explicit whole_attention(const attention_case& of)
      : of_(of),
        q(tensor(of.desc.heads, of.desc.head_dim)),
        k(tensor(of.key_heads(), of.desc.head_dim)),
        v(tensor(of.key_heads(), of.value_width)),
        dout(tensor(of.desc.heads, of.value_width)),
        out(wide(of.desc.heads, of.value_width)),
        dq(wide(of.desc.heads, of.desc.head_dim)),
        dk(wide(of.key_heads(), of.desc.head_dim)),
        dv(wide(of.key_heads(), of.value_width)) {
    cheap_random draw(7);
    for (heads_of_rows* one : {&q, &k, &v, &dout})
      one->each([&](auto b, auto row, auto head, auto i) {
        one->set(b, row, head, i, static_cast<double>(draw() >> 8) / (1 << 23) - 1);
      });
    for (heads_of_rows* one : {&out, &dq, &dk, &dv})
      one->each([&](auto b, auto row, auto head, auto i) { one->set(b, row, head, i, 0); });
    for (std::int64_t b = 0; b < of.batch; ++b)
      for (std::int64_t head = 0; head < of.desc.heads; ++head)
        for (std::int64_t row = 0; row < of.desc.sequence; ++row) add_row(b, head, row);
  }

 private:
  heads_of_rows tensor(std::int64_t heads, std::int64_t width) const {
    return {of_.dtype, of_.batch, of_.desc.sequence, heads, width};
  }
  heads_of_rows wide(std::int64_t heads, std::int64_t width) const {
    return {f64, of_.batch, of_.desc.sequence, heads, width};
  }
  double score(std::int64_t b, std::int64_t head, std::int64_t row, std::int64_t key) const {
    double sum = 0;
    for (std::int64_t i = 0; i < of_.desc.head_dim; ++i)
      sum += q.get(b, row, head, i) * k.get(b, key, head / group(), i);
    sum *= of_.scale();
    if (of_.slopes.empty()) return sum;
    const auto distance = static_cast<double>(std::abs(row - key));
    return sum -
           static_cast<double>(of_.slopes[at(head)]) * (of_.root ? std::sqrt(distance) : distance);
  }
  std::int64_t group() const { return of_.desc.heads / of_.key_heads(); }

  void add_row(std::int64_t b, std::int64_t head, std::int64_t row) {
    std::vector<double> p(at(of_.desc.sequence));
    double largest = -std::numeric_limits<double>::infinity(), sum = 0, delta = 0;
    for (std::int64_t key = 0; key < of_.desc.sequence; ++key)
      if (of_.is_visible(row, key)) largest = std::max(largest, score(b, head, row, key));
    for (std::int64_t key = 0; key < of_.desc.sequence; ++key)
      if (of_.is_visible(row, key))
        sum += p[at(key)] = std::exp(score(b, head, row, key) - largest);
    if (sum == 0) return;
    const std::int64_t kv = head / group();
    for (std::int64_t i = 0; i < of_.value_width; ++i) {
      double y = 0;
      for (std::int64_t key = 0; key < of_.desc.sequence; ++key)
        y += p[at(key)] / sum * v.get(b, key, kv, i);
      out.set(b, row, head, i, y);
      delta += y * dout.get(b, row, head, i);
    }
    for (std::int64_t key = 0; key < of_.desc.sequence; ++key)
      if (p[at(key)] > 0) add_cell(b, head, row, key, p[at(key)] / sum, delta);
  }
  void add_cell(std::int64_t b, std::int64_t head, std::int64_t row, std::int64_t key, double p,
                double delta) {
    const std::int64_t kv = head / group();
    double product = 0;
    const auto add = [&](heads_of_rows& to, std::int64_t r, std::int64_t h, std::int64_t i,
                         double x) { to.set(b, r, h, i, to.get(b, r, h, i) + x); };
    for (std::int64_t i = 0; i < of_.value_width; ++i) {
      product += dout.get(b, row, head, i) * v.get(b, key, kv, i);
      add(dv, key, kv, i, p * dout.get(b, row, head, i));
    }
    const double ds = p * (product - delta) * of_.scale();
    for (std::int64_t i = 0; i < of_.desc.head_dim; ++i) {
      add(dq, row, head, i, ds * k.get(b, key, kv, i));
      add(dk, key, kv, i, ds * q.get(b, row, head, i));
    }
  }

  const attention_case& of_;

 public:
  heads_of_rows q, k, v, dout;    // of the case's dtype
  heads_of_rows out, dq, dk, dv;  // in double
};

// A rank's rows of the tensors, and its calls.
class attention_rank {
 public:
  attention_rank(const attention_case& of, const whole_attention& whole, velo_sequence_plan plan,
                 int rank)
      : of_(of), plan_(plan), rows_(rows_of(plan, rank)) {
    q = part(whole.q), k = part(whole.k), v = part(whole.v), dout = part(whole.dout);
    out = like(of.desc.heads, of.value_width), dq = like(of.desc.heads, of.desc.head_dim);
    dk = like(of.key_heads(), of.desc.head_dim), dv = like(of.key_heads(), of.value_width);
  }

  // The forward, and the gradient with what it kept. Asserts nothing.
  velo_status run(const rank_of_group& me) {
    const velo_status done = forward(me);
    return done == VELO_OK ? gradient(me.stream, me.group) : done;
  }
  velo_status forward(const rank_of_group& me, bool keeps = true) {
    const velo_tensor in[] = {view(*q), view(*k), view(*v), view(*out)};
    velo_context_parallel_attention_args args = VELO_CONTEXT_PARALLEL_ATTENTION_ARGS_INIT;
    set_common(args, me.group, in);
    args.attention_out = &in[3];
    set_given(args);
    const velo_status sized = size_saved(me.context, args);
    if (sized != VELO_OK) return sized;
    const velo_tensor saved[] = {max_->view(), sum_->view(), kept_->view()};
    velo_tensor max = saved[0], sum = saved[1];
    max.ndim = sum.ndim = of_.packed ? 2 : 3, max.shape = sum.shape = statistics_;
    if (keeps) args.softmax_max = &max, args.softmax_sum = &sum, args.kept = &saved[2];
    return velo_context_parallel_attention(me.stream, &args);
  }
  velo_status gradient(velo_stream stream, velo_group group) {
    const velo_tensor in[] = {view(*q),     view(*k),     view(*v),     view(*dout),
                              view(*out),   view(*dq),    view(*dk),    view(*dv),
                              max_->view(), sum_->view(), kept_->view()};
    velo_context_parallel_attention_backward_args args =
        VELO_CONTEXT_PARALLEL_ATTENTION_BACKWARD_ARGS_INIT;
    set_common(args, group, in);
    set_given(args);
    velo_tensor max = in[8], sum = in[9];
    max.ndim = sum.ndim = of_.packed ? 2 : 3, max.shape = sum.shape = statistics_;
    args.dy = &in[3], args.attention_out = &in[4];
    args.softmax_max = &max, args.softmax_sum = &sum;
    if (in[10].shape[0] > 0) args.kept = &in[10];
    args.dquery = &in[5], args.dkey = &in[6], args.dvalue = &in[7];
    return velo_context_parallel_attention_backward(stream, &args);
  }

  // The largest difference from the whole's result, over its largest number or 0.05.
  double error(const heads_of_rows& mine, const heads_of_rows& wanted) const {
    double worst = 0, most = 0.05;  // gradients of one key are 0
    wanted.each([&](auto b, auto row, auto head, auto i) {
      most = std::max(most, std::abs(wanted.get(b, row, head, i)));
    });
    mine.each([&](auto b, auto row, auto head, auto i) {
      const double x = mine.get(b, row, head, i) - wanted.get(b, rows_[at(row)], head, i);
      worst = std::max(worst, std::isnan(x) ? 1e30 : std::abs(x));
    });
    return worst / most;
  }
  double error(const whole_attention& whole) const {
    return std::max(
        {error(*out, whole.out), error(*dq, whole.dq), error(*dk, whole.dk), error(*dv, whole.dv)});
  }
  bool borders_kept() const {
    return out->borders_kept() && dq->borders_kept() && dk->borders_kept() && dv->borders_kept() &&
           max_->borders_kept() && sum_->borders_kept() && kept_->borders_kept();
  }
  bool same_bits(const attention_rank& other) const {
    return out->same_bits(*other.out) && dq->same_bits(*other.dq) && dk->same_bits(*other.dk) &&
           dv->same_bits(*other.dv);
  }
  const std::vector<std::int64_t>& rows() const { return rows_; }
  std::int64_t kept() const { return kept_->view().shape[0]; }
  void forget_plan() { plan_ = nullptr; }
  // Takes keys and values from what the owner of the keys has kept, whose call has run.
  void take_keys_of(const attention_rank& owner) { given_ = owner.kept_.get(); }
  // Other queries, and gradients of outputs, as another layer has.
  void scale_queries(double by) {
    for (heads_of_rows* one : {q.get(), dout.get()})
      one->each([&](auto b, auto row, auto head, auto i) {
        one->set(b, row, head, i, one->get(b, row, head, i) * by);
      });
  }

  std::unique_ptr<heads_of_rows> q, k, v, dout, out, dq, dk, dv;

 private:
  static std::vector<std::int64_t> rows_of(velo_sequence_plan plan, int rank) {
    std::int64_t count = 0;
    REQUIRE(velo_sequence_plan_get_rows(plan, rank, nullptr, 0, &count) == VELO_OK);
    std::vector<std::int64_t> spans(at(2 * count)), all;
    REQUIRE(velo_sequence_plan_get_rows(plan, rank, spans.data(), count, &count) == VELO_OK);
    for (std::size_t i = 0; i < spans.size(); i += 2)
      for (std::int64_t row = spans[i]; row < spans[i + 1]; ++row) all.push_back(row);
    return all;
  }
  velo_tensor view(const heads_of_rows& x) const {
    velo_tensor all = x.view();
    if (of_.packed) --all.ndim, ++all.shape;
    return all;
  }
  std::unique_ptr<heads_of_rows> like(std::int64_t heads, std::int64_t width) const {
    return std::make_unique<heads_of_rows>(of_.dtype, of_.batch,
                                           static_cast<std::int64_t>(rows_.size()), heads, width);
  }
  std::unique_ptr<heads_of_rows> part(const heads_of_rows& whole) const {
    auto made = like(whole.size(2), whole.size(3));
    made->each([&](auto b, auto row, auto head, auto i) {
      made->set(b, row, head, i, whole.get(b, rows_[at(row)], head, i));
    });
    return made;
  }
  template <class Args>
  void set_common(Args& args, velo_group group, const velo_tensor* in) {
    args.group = group, args.plan = plan_;
    args.query = &in[0], args.key = &in[1], args.value = &in[2];
    args.scale = of_.scale();
    args.keep_prob = of_.keep_prob, args.seed = 5, args.offset = 3;
    if (!of_.dropout_origin.empty()) {
      origin_ = {of_.dropout_origin.data(), 2}, extents_ = {of_.dropout_extents.data(), 2};
      args.dropout_origin = &origin_, args.dropout_extents = &extents_;
    }
    if (of_.slopes.empty()) return;
    slopes_ = view_of(const_cast<float*>(of_.slopes.data()), f32, of_.desc.heads);
    args.alibi_slopes = &slopes_, args.alibi_root = of_.root;
  }
  template <class Args>
  void set_given(Args& args) {
    if (given_ == nullptr) return;
    given_view_ = given_->view();
    args.given = &given_view_;
  }
  // Asks the operator for the sizes of what it saves.
  velo_status size_saved(velo_context context, const velo_context_parallel_attention_args& args) {
    velo_named_value values[6] = {};
    const auto set_tensor = [&](int i, const char* name, const velo_tensor* x) {
      values[i].name = name, values[i].value.kind = VELO_VALUE_TENSOR;
      values[i].value.as.tensor = x;
    };
    const auto set_handle = [&](int i, const char* name, void* handle) {
      values[i].name = name;
      values[i].value.kind = handle == nullptr ? VELO_VALUE_NONE : VELO_VALUE_HANDLE;
      values[i].value.as.p = handle;
    };
    set_tensor(0, "query", args.query), set_tensor(1, "key", args.key);
    set_tensor(2, "value", args.value);
    set_handle(3, "group", args.group), set_handle(4, "plan", args.plan);
    if (args.given != nullptr) set_tensor(5, "given", args.given);
    const std::int64_t inputs = args.given != nullptr ? 6 : 5;
    velo_shape shapes[4] = {VELO_SHAPE_INIT, VELO_SHAPE_INIT, VELO_SHAPE_INIT, VELO_SHAPE_INIT};
    std::int64_t count = 0;
    const velo_status done =
        velo_op_infer(context, "context_parallel_attention", values, inputs, shapes, 4, &count);
    if (done != VELO_OK) return done;
    const int dimensions = of_.packed ? 2 : 3;
    std::copy(shapes[1].sizes, shapes[1].sizes + dimensions, statistics_);
    std::int64_t all = 1;
    for (int i = 0; i < dimensions; ++i) all *= statistics_[i];
    max_ = std::make_unique<elements>(f32, all), sum_ = std::make_unique<elements>(f32, all);
    kept_ = std::make_unique<elements>(of_.dtype, shapes[3].sizes[0]);
    return VELO_OK;
  }

  const attention_case& of_;
  velo_sequence_plan plan_;
  const std::vector<std::int64_t> rows_;
  std::unique_ptr<elements> max_, sum_, kept_;
  const elements* given_ = nullptr;
  std::int64_t statistics_[3] = {};
  velo_tensor slopes_{}, given_view_{};
  velo_ints origin_{}, extents_{};
};

// The plan of a case.
class plan_of {
 public:
  explicit plan_of(const attention_case& of) : plan(of.plan()) {}
  ~plan_of() { velo_sequence_plan_destroy(plan); }
  plan_of(const plan_of&) = delete;
  const velo_sequence_plan plan;
};

// All ranks of a case.
using parts = std::vector<std::unique_ptr<attention_rank>>;

inline parts parts_of(const attention_case& of, const whole_attention& whole,
                      velo_sequence_plan plan) {
  parts all;
  for (int rank = 0; rank < of.desc.cp; ++rank)
    all.push_back(std::make_unique<attention_rank>(of, whole, plan, rank));
  return all;
}

}  // namespace velo::testing

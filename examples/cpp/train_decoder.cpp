// A small Llama-style decoder trained from scratch, in one file to be read from top to bottom: all
// operators of a step, forward and backward, and AdamW, through velo's C++ layer alone.
//
//     train_decoder_cpp FILE [STEPS]        learns to predict the bytes of FILE
//
// The model, with its weights in capitals; the second and third line are a layer:
//
//     x = EMBEDDING[bytes]
//     x = x + attention(rotary(norm(x) QKV)) OUT
//     x = x + swiglu(norm(x) GATE_UP) DOWN
//     loss = cross_entropy(norm(x) HEAD, next bytes)
//
// Activations are [tokens, width], row-major, float32. Each part keeps the outputs of its forward
// pass for its backward pass. `g` is the gradient of the residual stream: a backward pass finds the
// gradient of its output there and leaves the gradient of its input. Build it against an installed
// velo with: c++ -std=c++17 train_decoder.cpp $(pkg-config --cflags --libs velo)
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>
#include <velo/velo.hpp>

namespace {

using std::int32_t, std::int64_t, velo::stream_ref, velo::tensor_view;

constexpr int64_t batch = 8, length = 64, tokens = batch * length;
constexpr int64_t vocabulary = 256, depth = 2, hidden = 64, inner = 192;
constexpr int64_t heads = 4, kv_heads = 2, head_width = hidden / heads;
constexpr int64_t qkv_width = (heads + 2 * kv_heads) * head_width;
constexpr auto causal = velo::attention_sparse_mode::left_up_causal;
const double scale = 1 / std::sqrt(static_cast<double>(head_width));

// A tensor in memory that velo allocates, filled with zero.
struct tensor {
  tensor(const velo::context& context, velo::sizes shape, velo_dtype type = velo::dtype<float>)
      : memory(velo::managed_tensor::create(context.get(), type, shape)), view(memory.view()) {
    for (int i = 0; i < view.rank(); ++i) count *= view.size(i);
    std::fill_n(integers(), count, 0);  // 0.0f has the same bits
  }
  operator const velo_tensor&() const { return view; }
  float* data() const { return view.data<float>(); }
  int32_t* integers() const { return view.data<int32_t>(); }
  velo::managed_tensor memory;
  tensor_view view;
  int64_t count = 1;
};

// Weights with their gradient and AdamW's two moments.
struct parameter {
  parameter(const velo::context& context, velo::sizes shape)
      : value(context, shape), gradient(context, shape), m(context, shape), v(context, shape) {}
  void draw(std::mt19937& random, double deviation) const {
    std::normal_distribution<float> normal(0, static_cast<float>(deviation));
    std::generate_n(value.data(), value.count, [&] { return normal(random); });
  }
  tensor value, gradient, m, v;
};

// y = x W. The gradients are dW = x^T dy and dx = dy W^T.
struct linear {
  linear(const velo::context& context, int64_t in, int64_t out, std::mt19937& random)
      : weight(context, {in, out}) {
    weight.draw(random, 1 / std::sqrt(static_cast<double>(in)));
  }
  void forward(stream_ref stream, const tensor& x, const tensor& y) const {
    velo::matmul(stream, velo::matmul_args().a(x).b(weight.value).c(y));
  }
  void backward(stream_ref stream, const tensor& x, const tensor& dy, const tensor& dx) const {
    velo::matmul(stream, velo::matmul_args().a(x).b(dy).c(weight.gradient).transpose_a(true));
    velo::matmul(stream, velo::matmul_args().a(dy).b(weight.value).c(dx).transpose_b(true));
  }
  parameter weight;
};

// y = x / rms(x) * gain, for each token.
struct norm {
  explicit norm(const velo::context& context)
      : gain(context, {hidden}), y(context, {tokens, hidden}), rstd(context, {tokens, 1}) {
    std::fill_n(gain.value.data(), hidden, 1.0f);
  }
  void forward(stream_ref stream, const tensor& x) const {
    velo::rms_norm(stream, velo::rms_norm_args().x(x).gamma(gain.value).y(y).rstd(rstd));
  }
  void backward(stream_ref stream, const tensor& x, const tensor& g) const {  // g in place
    auto arguments = velo::rms_norm_backward_args().x(x).gamma(gain.value).rstd(rstd);
    velo::rms_norm_backward(stream, arguments.dy(g).dx(g).dgamma(gain.gradient));
  }
  parameter gain;
  tensor y, rstd;
};

// Cosine and sine of position p for feature pair i: the angle is p / 10000^(2 i / head_width).
struct rotary_table {
  explicit rotary_table(const velo::context& context)
      : cos(context, {1, length, 1, head_width}), sin(context, {1, length, 1, head_width}) {
    for (int64_t i = 0; i < length * head_width; ++i) {
      const auto pair = static_cast<double>(i % (head_width / 2));
      const double position = static_cast<double>(i / head_width);
      const double angle = position * std::pow(1e4, -2 * pair / head_width);
      cos.data()[i] = static_cast<float>(std::cos(angle));
      sin.data()[i] = static_cast<float>(std::sin(angle));
    }
  }
  tensor cos, sin;
};

// Heads [first, first + count) of a tensor [tokens, columns], as [batch, length, count, width].
tensor_view heads_of(const tensor& of, int64_t columns, int64_t first, int64_t count) {
  return {of.data() + first * head_width,
          {batch, length, count, head_width},
          {length * columns, columns, head_width, 1}};
}

// Queries, keys and values side by side in a tensor [tokens, qkv_width].
struct qkv_views {
  const tensor& of;
  tensor_view query = heads_of(of, qkv_width, 0, heads);
  tensor_view key = heads_of(of, qkv_width, heads, kv_heads);
  tensor_view value = heads_of(of, qkv_width, heads + kv_heads, kv_heads);
  tensor_view rotated = heads_of(of, qkv_width, 0, heads + kv_heads);
};

// Causal attention in which query heads share the heads of keys and values. Queries and keys are
// rotated in place, and so are their gradients.
struct attention {
  void forward(stream_ref stream, const rotary_table& table, const tensor& qkv) const {
    const qkv_views in{qkv};
    auto rotation = velo::rotary_position_embedding_args().cos(table.cos).sin(table.sin);
    velo::rotary_position_embedding(stream, rotation.x(in.rotated).y(in.rotated));
    auto arguments = velo::fusion_attention_args().query(in.query).key(in.key).value(in.value);
    arguments.softmax_max(softmax_max).softmax_sum(softmax_sum).scale(scale).sparse_mode(causal);
    const tensor_view out = heads_of(y, hidden, 0, heads);
    velo::fusion_attention(stream, arguments.attention_out(out));
  }
  void backward(stream_ref stream, const rotary_table& table, const tensor& qkv, const tensor& dy,
                const tensor& dqkv) const {
    const qkv_views in{qkv}, d{dqkv};
    const tensor_view out = heads_of(y, hidden, 0, heads), dout = heads_of(dy, hidden, 0, heads);
    auto arguments = velo::fusion_attention_backward_args().dy(dout).attention_out(out);
    arguments.query(in.query).key(in.key).value(in.value);
    arguments.dquery(d.query).dkey(d.key).dvalue(d.value);
    arguments.softmax_max(softmax_max).softmax_sum(softmax_sum).scale(scale).sparse_mode(causal);
    velo::fusion_attention_backward(stream, arguments);
    auto rotation = velo::rotary_position_embedding_backward_args().cos(table.cos).sin(table.sin);
    velo::rotary_position_embedding_backward(stream, rotation.dy(d.rotated).dx(d.rotated));
  }
  const velo::context& context;
  tensor y{context, {tokens, hidden}};
  tensor softmax_max{context, {batch, heads, length}}, softmax_sum{context, {batch, heads, length}};
};

void add(stream_ref stream, const tensor& a, const tensor& b, const tensor& y) {
  velo::add(stream, velo::add_args().a(a).b(b).y(y));
}

struct layer {
  void forward(stream_ref stream, const rotary_table& table, const tensor& x) const {
    attention_norm.forward(stream, x);
    qkv.forward(stream, attention_norm.y, projected);
    attend.forward(stream, table, projected);
    out.forward(stream, attend.y, branch);
    add(stream, x, branch, middle);
    feed_forward_norm.forward(stream, middle);
    gate_up.forward(stream, feed_forward_norm.y, gates);
    velo::swiglu(stream, velo::swiglu_args().x(gates).y(gated));
    down.forward(stream, gated, branch);
    add(stream, middle, branch, y);
  }
  void backward(stream_ref stream, const rotary_table& table, const tensor& x,
                const tensor& g) const {
    down.backward(stream, gated, g, dgated);
    velo::swiglu_backward(stream, velo::swiglu_backward_args().dy(dgated).x(gates).dx(gates));
    gate_up.backward(stream, feed_forward_norm.y, gates, branch);
    feed_forward_norm.backward(stream, middle, branch);
    add(stream, g, branch, g);
    out.backward(stream, attend.y, g, branch);
    attend.backward(stream, table, projected, branch, dprojected);
    qkv.backward(stream, attention_norm.y, dprojected, branch);
    attention_norm.backward(stream, x, branch);
    add(stream, g, branch, g);
  }
  const velo::context& context;
  std::mt19937& random;
  norm attention_norm{context}, feed_forward_norm{context};
  attention attend{context};
  linear qkv{context, hidden, qkv_width, random}, out{context, hidden, hidden, random};
  linear gate_up{context, hidden, 2 * inner, random}, down{context, inner, hidden, random};
  tensor projected{context, {tokens, qkv_width}}, dprojected{context, {tokens, qkv_width}};
  tensor gates{context, {tokens, 2 * inner}};  // the backward pass writes its gradient here
  tensor gated{context, {tokens, inner}}, dgated{context, {tokens, inner}};
  tensor middle{context, {tokens, hidden}}, y{context, {tokens, hidden}};
  tensor branch{context, {tokens, hidden}};  // to be added to the residual stream, or gradient
};

struct decoder {
  decoder(const velo::context& of, std::mt19937& random)
      : context(of), head(of, hidden, vocabulary, random) {
    embedding.draw(random, 1);
    for (int64_t i = 0; i < depth; ++i) layers.push_back({context, random});
    *dloss.data() = 1;
  }
  const tensor& input_of(std::size_t i) const { return i == 0 ? x : layers[i - 1].y; }

  void forward(stream_ref stream) const {
    velo::embedding(stream, velo::embedding_args().ids(bytes).table(embedding.value).y(x));
    for (std::size_t i = 0; i < depth; ++i) layers[i].forward(stream, table, input_of(i));
    last_norm.forward(stream, layers.back().y);
    head.forward(stream, last_norm.y, logits);
    auto arguments = velo::cross_entropy_args().logits(logits).targets(next);
    velo::cross_entropy(stream, arguments.loss(loss).lse(lse));
  }
  void backward(stream_ref stream) const {
    auto of_loss = velo::cross_entropy_backward_args().dloss(dloss).logits(logits).targets(next);
    velo::cross_entropy_backward(stream, of_loss.lse(lse).dlogits(logits));
    head.backward(stream, last_norm.y, logits, g);
    last_norm.backward(stream, layers.back().y, g);
    for (std::size_t i = depth; i-- > 0;) layers[i].backward(stream, table, input_of(i), g);
    auto of_rows = velo::embedding_backward_args().ids(bytes).dy(g).rows(vocabulary);
    velo::embedding_backward(stream, of_rows.dtable(embedding.gradient));
  }
  void update(stream_ref stream, int64_t step, double learning_rate) const {
    std::vector<const parameter*> all = {&embedding, &last_norm.gain, &head.weight};
    for (const layer& each : layers)
      all.insert(all.end(),
                 {&each.attention_norm.gain, &each.feed_forward_norm.gain, &each.qkv.weight,
                  &each.out.weight, &each.gate_up.weight, &each.down.weight});
    for (const parameter* each : all) {
      auto arguments = velo::apply_fused_adamw_args().grad(each->gradient).param(each->value);
      arguments.m(each->m).v(each->v).step(step).lr(learning_rate).beta2(0.95);
      arguments.weight_decay(each->value.view.rank() == 2 ? 0.1 : 0);  // gains do not decay
      velo::apply_fused_adamw(stream, arguments);
    }
  }
  const velo::context& context;
  rotary_table table{context};
  parameter embedding{context, {vocabulary, hidden}};
  std::vector<layer> layers;
  norm last_norm{context};
  linear head;
  tensor bytes{context, {tokens}, velo::dtype<int32_t>};
  tensor next{context, {tokens}, velo::dtype<int32_t>};
  tensor x{context, {tokens, hidden}}, g{context, {tokens, hidden}};
  tensor logits{context, {tokens, vocabulary}};  // the backward pass writes their gradient here
  tensor lse{context, {tokens}}, loss{context, {}}, dloss{context, {}};
};

// Continues a prompt with the likeliest byte, again and again. It uses the first window of the
// batch alone. Attention is causal, so the bytes after the last known one do not matter.
std::string complete(stream_ref stream, const decoder& model, std::string text, int more) {
  for (; more > 0; --more) {
    const std::size_t begin = text.size() < length ? 0 : text.size() - length;
    for (std::size_t i = begin; i < text.size(); ++i)
      model.bytes.integers()[i - begin] = static_cast<unsigned char>(text[i]);
    model.forward(stream);
    const float* row = model.logits.data() + (text.size() - begin - 1) * vocabulary;
    text += static_cast<char>(std::max_element(row, row + vocabulary) - row);
  }
  return text;
}

}  // namespace

int main(int count, char** words) try {
  std::ifstream file(count > 1 ? words[1] : "", std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const int steps = count > 2 ? std::atoi(words[2]) : 200;
  if (text.size() <= length || steps < 1) {
    std::fputs("usage: train_decoder_cpp FILE [STEPS]; FILE has more than 64 bytes\n", stderr);
    return 1;
  }
  std::mt19937 random(1);
  std::uniform_int_distribution<std::size_t> start(0, text.size() - length - 1);
  const velo::context context = velo::context::create();
  const stream_ref stream = context.inline_stream();
  const decoder model(context, random);
  for (int step = 1; step <= steps; ++step) {
    for (int64_t window = 0; window < batch; ++window) {
      const auto* bytes = reinterpret_cast<const unsigned char*>(text.data()) + start(random);
      std::copy_n(bytes, length, model.bytes.integers() + window * length);
      std::copy_n(bytes + 1, length, model.next.integers() + window * length);
    }
    model.forward(stream);
    model.backward(stream);
    model.update(stream, step, 3e-3 * std::min(1.0, step / 20.0));
    if (step == 1 || step % 20 == 0)
      std::printf("step %4d  loss %.4f\n", step, static_cast<double>(*model.loss.data()));
  }
  std::printf("%s\n", complete(stream, model, text.substr(0, 16), 100).c_str());
  return 0;
} catch (const velo::error& failure) {
  std::fprintf(stderr, "%s\n", failure.what());
  return 1;
}

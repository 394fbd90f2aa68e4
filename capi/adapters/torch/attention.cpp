// torch's flash attention for the CPU computed by velo: its kernels under the key CPU, forward and
// backward, in place of torch's own.
//
// Autograd, functorch, fakes, autocast and subclasses stand above that key, so what arrives is
// plain tensors of the CPU; a mask is what is added to scores, since torch has made numbers of a
// boolean one. What velo does not take (dropout, a mask of another dtype, other dtypes, a forked
// child) or what is not worth it goes to torch's own kernel, by the functions that torch has for
// compiled code: they call it directly, past the dispatcher. Results lie in memory as
// torch's do, since compiled code counts on it; the log-sum-exp is torch's, so either side's
// backward takes either side's forward. Such a call costs a microsecond more than without velo.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <mutex>
#include <stdexcept>

#include "capi/adapters/failure.hpp"
#include "capi/adapters/fork_lock.hpp"
#include "capi/adapters/host_context.hpp"
#include "capi/adapters/torch/library.hpp"
#include "capi/adapters/torch/threads.hpp"
#include "velo/adapters.h"
#include "velo/ops_attention.h"

namespace velo::adapters {
namespace {

constexpr char forward_name[] = "_scaled_dot_product_flash_attention_for_cpu";
constexpr char backward_name[] = "_scaled_dot_product_flash_attention_for_cpu_backward";
constexpr std::int64_t largest_head = 512;

std::atomic<const torch::binding*> bound{nullptr};  // before the kernels are there
std::atomic<std::uint64_t> computed{0};
fork_lock replacing;
torch::library in_place = nullptr;  // guarded by `replacing`

// Tensors that are given back at the end, however it comes.
class owned_tensors {
 public:
  explicit owned_tensors(const torch::binding& torch) : torch_(torch) {}
  ~owned_tensors() {
    for (int i = 0; i < count_; ++i) torch_.delete_tensor(held_[i]);
  }
  owned_tensors(const owned_tensors&) = delete;
  owned_tensors& operator=(const owned_tensors&) = delete;

  torch::tensor operator[](int i) const { return held_[i]; }
  void add(torch::tensor one) { held_[count_++] = one; }
  void give(torch::value* stack) {
    std::memcpy(stack, held_, sizeof *stack * static_cast<std::size_t>(count_));
    count_ = 0;
  }

 private:
  const torch::binding& torch_;
  torch::tensor held_[7];
  int count_ = 0;
};

// The arguments that torch puts on the stack: tensors, dropout, causal, the mask or NULL, the scale
// or NULL.
struct arguments {
  owned_tensors tensors;
  torch::tensor mask = nullptr;
  double dropout = 0, given_scale = 0;
  bool causal, has_scale;

  arguments(const torch::binding& torch, const torch::value* stack, int count) : tensors(torch) {
    for (int i = 0; i < count; ++i) tensors.add(from<torch::tensor>(stack[i]));
    dropout = from<double>(stack[count]);
    causal = (stack[count + 1] & 1) != 0;
    torch::value inside = 0;
    if (opened(torch, stack[count + 2], inside)) tensors.add(mask = from<torch::tensor>(inside));
    has_scale = opened(torch, stack[count + 3], inside);
    if (has_scale) given_scale = from<double>(inside);
  }
  double* scale() { return has_scale ? &given_scale : nullptr; }

 private:
  template <class T>
  static T from(torch::value value) {
    T out;
    static_assert(sizeof(void*) == sizeof value && sizeof(double) == sizeof value);
    std::memcpy(&out, &value, sizeof value);
    return out;
  }
  static bool opened(const torch::binding& torch, torch::value cell, torch::value& inside) {
    auto* at = from<torch::value*>(cell);
    if (at == nullptr) return false;
    inside = *at;
    if (torch.delete_value != nullptr)
      torch.delete_value(at);
    else
      delete at;
    return true;
  }
};

// A tensor as velo sees it; not ok where torch tells no such thing or the dtype is another.
struct view : velo_tensor {
  std::int32_t number = -1;
  bool ok;

  view(const torch::binding& torch, torch::tensor of) : velo_tensor{} {
    std::int64_t rank = 0, *sizes = nullptr, *steps = nullptr;
    const void* memory = nullptr;
    device = {VELO_DEVICE_CPU, 0};
    ok = torch.get_rank(of, &rank) == 0 && torch.get_sizes(of, &sizes) == 0 &&
         torch.get_strides(of, &steps) == 0 && torch.get_dtype(of, &number) == 0 &&
         (torch.get_const_data != nullptr ? torch.get_const_data(of, &memory)
                                          : torch.get_data(of, &data)) == 0;
    if (memory != nullptr) data = const_cast<void*>(memory);
    ndim = static_cast<std::int32_t>(rank);
    shape = sizes;
    strides = steps;
    for (const torch::dtype_pair& known : torch.dtypes) {
      if (known.number == number) dtype = known.dtype;
    }
  }
  bool is(std::uint8_t code, int bits) const { return dtype.code == code && dtype.bits == bits; }
  bool has_16_bits() const { return is(VELO_DTYPE_BFLOAT, 16) || is(VELO_DTYPE_FLOAT, 16); }
  bool is_f32() const { return is(VELO_DTYPE_FLOAT, 32); }
  bool same_shape(const view& other) const { return std::equal(shape, shape + ndim, other.shape); }
  bool dense_rows() const { return strides[3] == 1 || shape[3] == 1; }
};

// Four dimensions of one batch, as many value features as key features, as torch's kernel has
// them; heads of keys may be shared.
bool fits(const view& q, const view& k, const view& v, const arguments& given) {
  const bool alike = given.dropout == 0 && q.ok && k.ok && v.ok && q.ndim == 4 && k.ndim == 4 &&
                     v.ndim == 4 && k.number == q.number && v.number == q.number &&
                     (q.is_f32() || q.has_16_bits());
  if (!alike || !k.same_shape(v) || q.shape[0] != k.shape[0] || q.shape[3] != k.shape[3])
    return false;
  for (int d = 0; d < 4; ++d) {
    if (q.shape[d] < 1 || k.shape[d] < 1) return false;
  }
  return q.shape[3] <= largest_head && q.shape[1] % k.shape[1] == 0 && q.dense_rows() &&
         k.dense_rows() && v.dense_rows();
}

// torch's mask, [Sq, Skv] or [B or 1, N or 1, Sq or 1, Skv]: a pse that is added after the scale.
struct added_mask : velo_tensor {
  bool ok = true;

  added_mask(const torch::binding& torch, const arguments& given, const view& q, const view& k)
      : velo_tensor{} {
    if (given.mask == nullptr) return;
    const view mask(torch, given.mask);
    ok = mask.ok && mask.number == q.number && (mask.ndim == 2 || mask.ndim == 4);
    if (!ok) return;
    static_cast<velo_tensor&>(*this) = mask;
    const std::int64_t full[] = {q.shape[0], q.shape[1], q.shape[2], k.shape[2]};
    for (int d = 0, missing = 4 - mask.ndim; d < 4; ++d) {
      const bool spread = d < missing || mask.strides[d - missing] == 0;
      sizes_[d] = spread && d < 3 ? 1 : mask.shape[d - missing];
      steps_[d] = spread ? full[3] : mask.strides[d - missing];
      ok = ok && (sizes_[d] == full[d] || (sizes_[d] == 1 && d < 3));
    }
    ok = ok && (steps_[3] == 1 || sizes_[3] == 1);
    ndim = 4, shape = sizes_, strides = steps_;
  }
  added_mask(const added_mask&) = delete;
  const velo_tensor* given() const { return ndim == 4 ? this : nullptr; }

 private:
  std::int64_t sizes_[4], steps_[4];
};

// Whether velo's kernel is the faster one, measured beside torch 2.15 on a Zen 4 that others used:
// forward with one thread, the gradient with one and two. It takes float32 rows in strips of 32 and
// loses where more than a fifth of them is padding, and in the gradient below two strips. 16 bits
// win from half a strip on, in the gradient from a quarter; and for one row, where torch is slow,
// once there is a cache of keys to read.
bool worth_strips(std::int64_t rows, std::int64_t fewest) {
  const std::int64_t padded = (rows + 31) / 32 * 32;
  return rows >= fewest && 5 * rows >= 4 * padded;
}
bool worth(const view& q, const view& k) {
  const std::int64_t rows = q.shape[2];
  if (q.is_f32()) return worth_strips(rows, 0);
  return rows >= 16 || (rows == 1 && k.shape[2] >= 64);
}
bool worth_gradient(const view& q) {
  return q.is_f32() ? worth_strips(q.shape[2], 64) : q.shape[2] >= 8;
}

// Results, and their memory.
struct made : owned_tensors {
  const torch::binding& torch;
  bool ok = true;

  explicit made(const torch::binding& from) : owned_tensors(from), torch(from) {}

  velo_tensor add(int rank, const std::int64_t* sizes, const std::int64_t* strides,
                  std::int32_t number, const velo_dtype& dtype) {
    velo_tensor out = {nullptr, {VELO_DEVICE_CPU, 0}, rank, dtype, sizes, strides, 0};
    torch::tensor one = nullptr;
    ok = ok && torch.empty_strided(rank, sizes, strides, number, torch.cpu, -1, &one) == 0;
    if (one == nullptr) return out;
    owned_tensors::add(one);
    ok = ok && torch.get_data(one, &out.data) == 0;
    return out;
  }
};

// The strides of torch.empty_like: dense, in the order of the tensor's own, which stay where they
// are dense already.
struct strides_like {
  std::int64_t of[4];

  explicit strides_like(const view& t) {
    int order[4] = {3, 2, 1, 0};  // the innermost first
    for (int i = 1; i < 4; ++i) {
      for (int at = i, j = i - 1; j >= 0; --j) {
        const int compared = outside(t, order[j], order[at]);
        if (compared < 0) break;
        if (compared > 0) {
          std::swap(order[j], order[at]);
          at = j;
        }
      }
    }
    std::int64_t next = 1;
    bool dense = true;
    for (const int d : order) {
      of[d] = next;
      dense = dense && (t.shape[d] == 1 || t.strides[d] == next);
      next *= t.shape[d];
    }
    if (dense) std::copy(t.strides, t.strides + 4, of);
  }

 private:
  // Above 0 where the first dimension belongs outside of the second; 0 where it is not known.
  static int outside(const view& t, int first, int second) {
    const std::int64_t a = t.strides[first], b = t.strides[second];
    if (a == 0 || b == 0) return 0;
    if (a != b) return a < b ? -1 : 1;
    return t.shape[first] > t.shape[second] ? 1 : 0;
  }
};

// [B, S, N, D] in memory, seen as [B, N, S, D].
struct strides_by_row {
  std::int64_t of[4];
  explicit strides_by_row(const std::int64_t* s) : of{s[1] * s[2] * s[3], s[3], s[1] * s[3], 1} {}
};

// A number a row: velo's are compact [B, N, S], torch's log-sum-exp is [B, S, N] in memory.
class row_numbers {
 public:
  explicit row_numbers(const view& q)
      : sizes{q.shape[0], q.shape[1], q.shape[2]},
        strides{sizes[1] * sizes[2], 1, sizes[1]},
        largest(new float[rows()]),
        sum(new float[rows()]) {}

  velo_tensor tensor(const std::unique_ptr<float[]>& of) const {
    return {of.get(), {VELO_DEVICE_CPU, 0}, 3, {VELO_DTYPE_FLOAT, 32, 1}, sizes, nullptr, 0};
  }
  void to_torch(float* out) const {
    for_each([&](std::size_t row, std::int64_t b, std::int64_t n, std::int64_t s) {
      out[b * strides[0] + n + s * strides[2]] = largest[row] + std::log(sum[row]);
    });
  }
  void from_torch(const view& lse) {
    const auto* in = static_cast<const float*>(lse.data);
    for_each([&](std::size_t row, std::int64_t b, std::int64_t n, std::int64_t s) {
      const float one = in[b * lse.strides[0] + n * lse.strides[1] + s * lse.strides[2]];
      const bool hidden = one == -std::numeric_limits<float>::infinity();  // a row without keys
      largest[row] = hidden ? std::numeric_limits<float>::lowest() : one;
      sum[row] = hidden ? 0.0f : 1.0f;
    });
  }

  const std::int64_t sizes[3], strides[3];
  const std::unique_ptr<float[]> largest, sum;

 private:
  std::size_t rows() const { return static_cast<std::size_t>(sizes[0] * sizes[1] * sizes[2]); }
  template <class Each>
  void for_each(Each&& each) const {
    std::size_t row = 0;
    for (std::int64_t b = 0; b < sizes[0]; ++b) {
      for (std::int64_t n = 0; n < sizes[1]; ++n) {
        for (std::int64_t s = 0; s < sizes[2]; ++s) each(row++, b, n, s);
      }
    }
  }
};

template <class Args>
void describe(Args& args, const view& q, const view& k, const view& v, const added_mask& mask,
              arguments& given) {
  args.query = &q;
  args.key = &k;
  args.value = &v;
  args.pse = mask.given();
  args.pse_type = VELO_ATTENTION_PSE_TYPE_ADDED_AFTER_SCALE;
  args.layout = VELO_ATTENTION_LAYOUT_BNSD;
  args.head_num = q.shape[1];
  args.scale = given.has_scale ? given.given_scale : 1 / std::sqrt(static_cast<double>(q.shape[3]));
  args.sparse_mode =
      given.causal ? VELO_ATTENTION_SPARSE_MODE_LEFT_UP_CAUSAL : VELO_ATTENTION_SPARSE_MODE_FULL;
}

std::int32_t number_of_floats(const torch::binding& torch) {
  return torch.dtypes[0].number;
}

// Both answer false where torch's own kernel is to compute: nothing has happened then.
bool forward_by_velo(const torch::binding& torch, arguments& given, torch::value* stack) {
  const view q(torch, given.tensors[0]), k(torch, given.tensors[1]), v(torch, given.tensors[2]);
  if (!fits(q, k, v, given) || !worth(q, k)) return false;
  const added_mask mask(torch, given, q, k);
  if (!mask.ok) return false;
  made results(torch);
  const row_numbers rows(q);
  const strides_like like(q);
  const velo_dtype f32 = {VELO_DTYPE_FLOAT, 32, 1};
  const velo_tensor out = results.add(4, q.shape, like.of, q.number, q.dtype),
                    lse = results.add(3, rows.sizes, rows.strides, number_of_floats(torch), f32),
                    largest = rows.tensor(rows.largest), sum = rows.tensor(rows.sum);
  velo_fusion_attention_args args = VELO_FUSION_ATTENTION_ARGS_INIT;
  describe(args, q, k, v, mask, given);
  args.attention_out = &out;
  args.softmax_max = &largest;
  args.softmax_sum = &sum;
  if (!results.ok || velo_fusion_attention(stream_of(torch_context(torch)), &args) != VELO_OK)
    return false;
  rows.to_torch(static_cast<float*>(lse.data));
  results.give(stack);
  computed.fetch_add(1, std::memory_order_relaxed);
  return true;
}

bool backward_by_velo(const torch::binding& torch, arguments& given, torch::value* stack) {
  const view dy(torch, given.tensors[0]), q(torch, given.tensors[1]), k(torch, given.tensors[2]),
      v(torch, given.tensors[3]), out(torch, given.tensors[4]), lse(torch, given.tensors[5]);
  if (!fits(q, k, v, given) || !worth_gradient(q)) return false;
  const added_mask mask(torch, given, q, k);
  if (!mask.ok) return false;
  for (const view* t : {&dy, &out}) {
    if (!t->ok || t->ndim != 4 || t->number != q.number || !t->same_shape(q) || !t->dense_rows())
      return false;
  }
  if (!lse.ok || lse.ndim != 3 || !lse.is_f32() || !lse.same_shape(q)) return false;
  made results(torch);
  row_numbers rows(q);
  rows.from_torch(lse);
  const strides_by_row by_q(q.shape), by_k(k.shape);
  const velo_tensor dq = results.add(4, q.shape, by_q.of, q.number, q.dtype),
                    dk = results.add(4, k.shape, by_k.of, k.number, k.dtype),
                    dv = results.add(4, v.shape, by_k.of, v.number, v.dtype),
                    largest = rows.tensor(rows.largest), sum = rows.tensor(rows.sum);
  velo_fusion_attention_backward_args args = VELO_FUSION_ATTENTION_BACKWARD_ARGS_INIT;
  describe(args, q, k, v, mask, given);
  args.dy = &dy;
  args.attention_out = &out;
  args.softmax_max = &largest;
  args.softmax_sum = &sum;
  args.dquery = &dq;
  args.dkey = &dk;
  args.dvalue = &dv;
  if (!results.ok ||
      velo_fusion_attention_backward(stream_of(torch_context(torch)), &args) != VELO_OK)
    return false;
  results.give(stack);
  return true;
}

bool attempted(bool (*compute)(const torch::binding&, arguments&, torch::value*),
               const torch::binding& torch, arguments& given, torch::value* stack) noexcept {
  try {
    return compute(torch, given, stack);
  } catch (...) {  // no context, as in a forked child, or no memory: torch has its own
    return false;
  }
}

void must(const torch::binding& torch, torch::error failed) {
  if (failed == 0) return;
  const char* why = torch.last_error != nullptr ? torch.last_error() : nullptr;
  throw std::runtime_error(why != nullptr ? why : "torch's attention failed: it is on stderr");
}

void forward(torch::value* stack, std::uint64_t, std::uint64_t) {
  const torch::binding& torch = *bound.load(std::memory_order_acquire);
  arguments given(torch, stack, 3);
  if (attempted(forward_by_velo, torch, given, stack)) return;
  torch::tensor results[2] = {}, *mask = given.mask != nullptr ? &given.mask : nullptr;
  must(torch, torch.attention(given.tensors[0], given.tensors[1], given.tensors[2], given.dropout,
                              given.causal, mask, given.scale(), &results[0], &results[1]));
  std::memcpy(stack, results, sizeof results);
}

void backward(torch::value* stack, std::uint64_t, std::uint64_t) {
  const torch::binding& torch = *bound.load(std::memory_order_acquire);
  arguments given(torch, stack, 6);
  if (attempted(backward_by_velo, torch, given, stack)) return;
  const owned_tensors& t = given.tensors;
  torch::tensor results[3] = {}, *mask = given.mask != nullptr ? &given.mask : nullptr;
  must(torch,
       torch.attention_backward(t[0], t[1], t[2], t[3], t[4], t[5], given.dropout, given.causal,
                                mask, given.scale(), &results[0], &results[1], &results[2]));
  std::memcpy(stack, results, sizeof results);
}

void put_in_place(const torch::binding& torch) {
  if (torch.attention == nullptr || torch.attention_backward == nullptr)
    refuse(VELO_ERR_UNSUPPORTED,
           "torch: expected one with aoti_torch_cpu_%s and its _backward, got one without",
           forward_name);
  bound = &torch;
  torch_library kernels(torch);
  kernels.open_kernels("aten", "CPU");
  kernels.implement(forward_name, forward);
  kernels.implement(backward_name, backward);
  in_place = kernels.keep();
}

}  // namespace
}  // namespace velo::adapters

using namespace velo::adapters;

velo_status velo_torch_attention(int32_t replace) {
  refusal failed;
  return attempt({"velo_torch_attention"}, failed, [&] {
    const torch::binding& torch = torch_in_use();
    const std::lock_guard<fork_lock> turn(replacing);
    if ((replace != 0) == (in_place != nullptr)) return;
    if (replace != 0) return put_in_place(torch);
    torch.delete_library(in_place);
    in_place = nullptr;
  });
}

velo_status velo_torch_attention_calls(uint64_t* calls) {
  if (calls == nullptr) return VELO_ERR_NULL;
  *calls = computed;
  return VELO_OK;
}

// Stack values in, velo's values out; see the header.
#include "capi/adapters/torch/call.hpp"

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "capi/adapters/failure.hpp"
#include "capi/adapters/host_context.hpp"
#include "capi/adapters/torch/threads.hpp"

namespace velo::adapters {
namespace {

constexpr int max_rank = 8;

// A handle or a number of 8 bytes.
template <class Handle>
Handle handle_in(torch::value value) {
  static_assert(std::is_pointer_v<Handle> || std::is_arithmetic_v<Handle>);
  Handle out;
  std::memcpy(&out, &value, sizeof value);
  return out;
}

bool is_compact(const velo_tensor& view) {
  std::int64_t expected = 1;
  for (int d = view.ndim - 1; d >= 0; --d) {
    if (view.shape[d] == 0) return true;
    if (view.shape[d] != 1 && view.strides[d] != expected) return false;
    expected *= view.shape[d];
  }
  return reinterpret_cast<std::uintptr_t>(view.data) % (view.dtype.bits / 8) == 0;
}

// Copies inside a kernel are not differentiated.
class without_gradients {
 public:
  explicit without_gradients(const torch::binding& torch)
      : torch_(torch), before_(torch.records_gradients()) {
    torch_.record_gradients(false);
  }
  ~without_gradients() { torch_.record_gradients(before_); }
  without_gradients(const without_gradients&) = delete;
  without_gradients& operator=(const without_gradients&) = delete;

 private:
  const torch::binding& torch_;
  const bool before_;
};

}  // namespace

torch_call::torch_call(const torch::binding& torch, const op_info& op, const torch_plan& plan,
                       torch_key key, torch::value* stack)
    : torch_(torch), op_(op), plan_(plan), key_(key), meta_(key == torch_key::meta), made_(op) {
  for (int a = 0; a < plan.argument_count; ++a) {
    const field& f = op.fields[plan.arguments[a]];
    arguments_[a] = {stack[a], true};
    if (in_cell(f)) {
      auto* cell = handle_in<torch::value*>(stack[a]);
      arguments_[a].given = cell != nullptr;
      if (cell == nullptr) continue;
      arguments_[a].value = *cell;
      if (torch.delete_value != nullptr)
        torch.delete_value(cell);
      else
        delete cell;
    }
    if (f.kind == field_kind::ints || f.kind == field_kind::tensors)
      read_list(plan.arguments[a], handle_in<torch::list>(arguments_[a].value));
  }
}

// Before anything can be refused: what a list holds is to be released whatever happens.
void torch_call::read_list(int f, torch::list from) {
  list_items& read = lists_.emplace_front(list_items{f, 1, {}});
  std::size_t count = 0;
  if (torch_.list_size == nullptr || torch_.list_get == nullptr) return;
  read.failed = torch_.list_size(from, &count);
  for (std::size_t i = 0; i < count && read.failed == 0; ++i) {
    torch::value item = 0;
    read.failed = torch_.list_get(from, i, &item);
    if (read.failed == 0) read.values.push_back(item);
  }
}

torch_call::~torch_call() {
  for (int a = 0; a < plan_.argument_count; ++a) {
    if (arguments_[a].given) release(plan_.arguments[a], arguments_[a].value);
  }
  for (torch::tensor copy : copies_) {
    if (copy != nullptr) torch_.delete_tensor(copy);
  }
  for (int r = 0; r < results_made_; ++r) torch_.delete_tensor(results_[r]);
}

void torch_call::release(int f, torch::value value) {
  const field_kind kind = op_.fields[f].kind;
  if (kind == field_kind::tensor) {
    torch_.delete_tensor(handle_in<torch::tensor>(value));
  } else if (kind == field_kind::text) {
    if (torch_.delete_string != nullptr) torch_.delete_string(handle_in<torch::string>(value));
  } else if (kind == field_kind::ints || kind == field_kind::tensors) {
    for (const list_items& items : lists_) {
      if (items.field != f || kind != field_kind::tensors) continue;
      for (const torch::value item : items.values)
        torch_.delete_tensor(handle_in<torch::tensor>(item));
    }
    if (torch_.delete_list != nullptr) torch_.delete_list(handle_in<torch::list>(value));
  }
}

void torch_call::must(torch::error failed, int f, const char* what) {
  if (failed == 0) return;
  const char* why = torch_.last_error != nullptr ? torch_.last_error() : nullptr;
  refuse(VELO_ERR_FOREIGN, "%s: expected torch to %s, got an error%s%.600s", op_.fields[f].name,
         what, why != nullptr ? ": " : " (it is on stderr)", why != nullptr ? why : "");
}

velo_dtype torch_call::dtype_of(int f, torch::tensor from) {
  std::int32_t number = -1;
  must(torch_.get_dtype(from, &number), f, "tell a dtype");
  for (const torch::dtype_pair& known : torch_.dtypes) {
    if (known.number == number) return known.dtype;
  }
  refuse(VELO_ERR_DTYPE, "args.%s.dtype: expected a dtype velo knows, got number %d of torch's",
         op_.fields[f].name, number);
}

velo_tensor torch_call::view(int f, torch::tensor from, bool written) {
  std::int32_t device = -1;
  std::int64_t rank = 0, *sizes = nullptr, *strides = nullptr;
  must(torch_.get_device(from, &device), f, "tell a device");
  if (device != (meta_ ? torch_.meta : torch_.cpu))
    refuse(VELO_ERR_DEVICE, "args.%s.device: expected %s, got %s", op_.fields[f].name,
           meta_ ? "meta, as another tensor of the call has" : "cpu",
           device == torch_.cpu ? "cpu" : "another device");
  must(torch_.get_rank(from, &rank), f, "tell a rank");
  if (rank > max_rank)  // refused here: a strided input is copied before velo sees it
    refuse(VELO_ERR_RANK, "args.%s.ndim: expected 0 to %d dimensions, got %d", op_.fields[f].name,
           max_rank, static_cast<int>(rank));
  must(torch_.get_sizes(from, &sizes), f, "tell sizes");
  must(torch_.get_strides(from, &strides), f, "tell strides");
  velo_tensor out = {nullptr,
                     {VELO_DEVICE_CPU, 0},
                     static_cast<std::int32_t>(rank),
                     dtype_of(f, from),
                     sizes,
                     strides,
                     0};
  if (meta_) return out;
  if (written || torch_.get_const_data == nullptr) {
    must(torch_.get_data(from, &out.data), f, "give its memory");
    return out;
  }
  const void* data = nullptr;
  must(torch_.get_const_data(from, &data), f, "give its memory");
  out.data = const_cast<void*>(data);
  return out;
}

void torch_call::put_number(int f, torch::value value) {
  switch (op_.fields[f].kind) {
    case field_kind::f64:
      return made_.real(f, handle_in<double>(value));
    case field_kind::boolean:
      return made_.integer(f, (value & 1) != 0);
    default:
      return made_.integer(f, handle_in<std::int64_t>(value));
  }
}

void torch_call::put_list(int f) {
  const list_items* items = &lists_.front();
  for (const list_items& each : lists_) {
    if (each.field == f) items = &each;
  }
  must(items->failed, f, "give the items of a list");
  const auto count = static_cast<std::int64_t>(items->values.size());
  if (op_.fields[f].kind == field_kind::ints) {
    auto& numbers = numbers_.emplace_front();
    for (const torch::value item : items->values) numbers.push_back(handle_in<std::int64_t>(item));
    return made_.list(f, numbers.data(), count);
  }
  auto& views = views_.emplace_front();
  for (const torch::value item : items->values)
    views.push_back(view(f, handle_in<torch::tensor>(item), op_.fields[f].output));
  made_.tensors(f, views.data(), count);
}

void torch_call::put_text(int f, torch::string from) {
  std::size_t length = 0;
  const char* text = nullptr;
  must(torch_.string_length(from, &length), f, "tell a length");
  must(torch_.string_data(from, &text), f, "give a text");
  made_.string(f, {text, length});
}

void torch_call::put(int f, torch::value value) {
  switch (op_.fields[f].kind) {
    case field_kind::tensor:
      return made_.tensor(f, view(f, handle_in<torch::tensor>(value), op_.fields[f].output));
    case field_kind::tensors:
    case field_kind::ints:
      return put_list(f);
    case field_kind::text:
      return put_text(f, handle_in<torch::string>(value));
    default:
      return put_number(f, value);
  }
}

torch::tensor torch_call::make(int f, int rank, const std::int64_t* sizes,
                               const velo_dtype& dtype) {
  std::int64_t strides[max_rank], next = 1;
  for (int d = rank - 1; d >= 0; --d) {
    strides[d] = next;
    next *= std::max<std::int64_t>(sizes[d], 1);
  }
  std::int32_t number = -1;
  for (const torch::dtype_pair& known : torch_.dtypes) {
    if (std::memcmp(&known.dtype, &dtype, sizeof dtype) == 0) number = known.number;
  }
  torch::tensor out = nullptr;
  must(torch_.empty_strided(rank, sizes, strides, number, meta_ ? torch_.meta : torch_.cpu, -1,
                            &out),
       f, "make a tensor");
  return out;
}

void torch_call::make_results(std::int64_t count) {
  for (int r = 0; r < plan_.result_count; ++r) {
    const int f = plan_.results[r];
    const velo_shape* found = shapes_;
    while (found < shapes_ + count && std::strcmp(found->name, op_.fields[f].name) != 0) ++found;
    if (found == shapes_ + count)
      refuse(VELO_ERR_UNSUPPORTED, "%s: expected the inputs that this output needs",
             op_.fields[f].name);
    results_[r] = make(f, found->ndim, found->sizes, found->dtype);
    ++results_made_;
    velo_tensor view = {
        nullptr, {VELO_DEVICE_CPU, 0}, found->ndim, found->dtype, found->sizes, nullptr, 0};
    if (!meta_) must(torch_.get_data(results_[r], &view.data), f, "give its memory");
    made_.tensor(f, view);
  }
}

// The inputs that are not compact, in that layout; false when there are none.
bool torch_call::copy_arguments() {
  const without_gradients here(torch_);
  bool copied = false;
  for (int a = 0; a < plan_.argument_count; ++a) {
    const int f = plan_.arguments[a];
    const field& it = op_.fields[f];
    if (!arguments_[a].given || it.kind != field_kind::tensor || it.output) continue;
    const auto from = handle_in<torch::tensor>(arguments_[a].value);
    velo_tensor given = view(f, from, false);
    if (is_compact(given)) continue;
    copied = true;
    given.strides = nullptr;
    if (!meta_) {
      copies_.push_back(nullptr);
      copies_.back() = make(f, given.ndim, given.shape, given.dtype);
      must(torch_.copy(copies_.back(), from, 0), f, "copy a tensor");
      given = view(f, copies_.back(), false);
    }
    made_.tensor(f, given);
  }
  return copied;
}

// A copy of a tensor onto itself is counted as a write, and copies nothing.
void torch_call::count_writes() {
  const without_gradients here(torch_);
  const auto count = [this](int f, torch::value value) {
    const auto written = handle_in<torch::tensor>(value);
    must(torch_.copy(written, written, 0), f, "count a write");
  };
  for (int a = 0; a < plan_.argument_count; ++a) {
    const field& it = op_.fields[plan_.arguments[a]];
    if (it.output && it.kind == field_kind::tensor && arguments_[a].given)
      count(plan_.arguments[a], arguments_[a].value);
  }
  for (const list_items& each : lists_) {
    if (!op_.fields[each.field].output) continue;
    for (const torch::value item : each.values) count(each.field, item);
  }
}

velo_status torch_call::attempt(velo_context context) {
  if (plan_.result_count > 0 || meta_) {
    std::int64_t count = 0;
    const velo_status status = made_.infer(context, shapes_, max_fields, count);
    if (status != VELO_OK) return status;
    if (results_made_ == 0) make_results(count);
  }
  return meta_ ? VELO_OK : made_.attempt(stream_of(context));
}

void torch_call::run() {
  if (key_ == torch_key::negative)
    refuse(VELO_ERR_LAYOUT,
           "expected no negated view beside tensors that are written, got one; resolve_neg() of it "
           "serves");
  for (int a = 0; a < plan_.argument_count; ++a) {
    if (arguments_[a].given) put(plan_.arguments[a], arguments_[a].value);
  }
  if (plan_.writes_arguments && !meta_) count_writes();
  const velo_context context = torch_context(torch_);
  velo_status status = attempt(context);
  if (status == VELO_ERR_LAYOUT && copy_arguments()) status = attempt(context);
  require(status);
}

void torch_call::give_results(torch::value* stack) {
  for (int r = 0; r < plan_.result_count; ++r)
    std::memcpy(&stack[r], &results_[r], sizeof stack[r]);
  results_made_ = 0;
}

}  // namespace velo::adapters

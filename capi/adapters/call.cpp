// Named values, one per field; see the header.
#include "capi/adapters/call.hpp"

#include <cstring>

#include "capi/adapters/failure.hpp"
#include "velo/adapters.h"

namespace velo::adapters {

velo_value& call::value_of(int f) {
  if (index_[f] == 0) {
    values_[count_].name = op_.fields[f].name;
    values_[count_].value = {};
    index_[f] = ++count_;
  }
  return values_[index_[f] - 1].value;
}

void call::wrong_kind(int f, const char* got) const {
  constexpr const char* expected[] = {
      "a tensor",  "a list of tensors", "a handle",           "an integer", "a real",
      "a boolean", "an enumerator",     "a list of integers", "a text"};
  refuse(VELO_ERR_ARGUMENT, "%s: expected %s, got %s", op_.fields[f].name,
         expected[static_cast<int>(op_.fields[f].kind)], got);
}

void call::tensor(int f, const velo_tensor& view) {
  if (op_.fields[f].kind != field_kind::tensor) wrong_kind(f, "a tensor");
  tensors_[f] = view;
  velo_value& value = value_of(f);
  value.kind = VELO_VALUE_TENSOR;
  value.as.tensor = &tensors_[f];
}

void call::tensors(int f, const velo_tensor* views, std::int64_t count) {
  if (op_.fields[f].kind != field_kind::tensors) wrong_kind(f, "a list of tensors");
  lists_[f].tensors = {views, count};
  velo_value& value = value_of(f);
  value.kind = VELO_VALUE_TENSORS;
  value.as.tensors = &lists_[f].tensors;
}

void call::integer(int f, std::int64_t number) {
  const field_kind kind = op_.fields[f].kind;
  if (kind == field_kind::handle) {
    void* handle;
    static_assert(sizeof handle == sizeof number);
    std::memcpy(&handle, &number, sizeof handle);
    return pointer(f, handle);
  }
  if (kind == field_kind::tensor || kind == field_kind::tensors || kind == field_kind::ints ||
      kind == field_kind::text)
    wrong_kind(f, "an integer");
  velo_value& value = value_of(f);
  value.kind = VELO_VALUE_INT;
  value.as.i = number;
}

void call::boolean(int f, bool truth) {
  if (op_.fields[f].kind != field_kind::boolean) wrong_kind(f, "a boolean");
  integer(f, truth ? 1 : 0);
}

void call::real(int f, double number) {
  if (op_.fields[f].kind != field_kind::f64) wrong_kind(f, "a real number");
  velo_value& value = value_of(f);
  value.kind = VELO_VALUE_FLOAT;
  value.as.f = number;
}

void call::string(int f, std::string_view text) {
  constexpr std::size_t room = sizeof strings_[0], places = sizeof strings_ / room;
  const field_kind kind = op_.fields[f].kind;
  if (kind != field_kind::enumeration && kind != field_kind::text) wrong_kind(f, "a string");
  velo_value& value = value_of(f);
  value.kind = VELO_VALUE_STRING;
  if (text.size() >= room || string_count_ == static_cast<int>(places)) {
    value.as.s = long_strings_.emplace_front(text).c_str();
    return;
  }
  char* copy = strings_[string_count_++];
  std::memcpy(copy, text.data(), text.size());
  copy[text.size()] = 0;
  value.as.s = copy;
}

void call::list(int f, const std::int64_t* data, std::int64_t count) {
  if (op_.fields[f].kind != field_kind::ints) wrong_kind(f, "a list of integers");
  lists_[f].ints = {data, count};
  velo_value& value = value_of(f);
  value.kind = VELO_VALUE_INTS;
  value.as.ints = &lists_[f].ints;
}

void call::pointer(int f, void* handle) {
  if (op_.fields[f].kind != field_kind::handle) wrong_kind(f, "a pointer");
  velo_value& value = value_of(f);
  value.kind = VELO_VALUE_HANDLE;
  value.as.p = handle;
}

bool call::truthy(int f) const {
  if (index_[f] == 0) return false;
  const velo_value& value = values_[index_[f] - 1].value;
  return value.kind == VELO_VALUE_INT && value.as.i != 0;
}

void call::run(velo_stream stream) const {
  require(attempt(stream));
}

velo_status call::attempt(velo_stream stream) const {
  return velo_op_call(stream, op_.name, values_, count_);
}

velo_status call::infer(velo_context context, velo_shape* shapes, std::int64_t capacity,
                        std::int64_t& count) const {
  shapes[0].struct_size = sizeof shapes[0];
  return velo_op_infer(context, op_.name, values_, count_, shapes, capacity, &count);
}

std::int64_t call::infer(velo_shape* shapes, std::int64_t capacity) const {
  velo_context context = nullptr;
  require(velo_adapters_context(&context));
  std::int64_t count = 0;
  require(infer(context, shapes, capacity, count));
  return count;
}

}  // namespace velo::adapters

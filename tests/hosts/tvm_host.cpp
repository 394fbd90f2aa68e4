// The raise function, and values in their tagged form.
#include "tvm_host.hpp"

namespace hosts {
namespace {

thread_local std::string raised_kind, raised_text;

}  // namespace

void tvm_arguments::string(const std::string& text) {
  if (text.size() < 8) {
    tvm_value& value = add(11);
    value.small_length = static_cast<std::uint32_t>(text.size());
    std::memcpy(value.small, text.data(), text.size());
    return;
  }
  strings_.push_back({header(65), text.data(), text.size()});
  add(65).pointer = &strings_.back();
}

void tvm_arguments::array_of_tensors(const std::vector<velo_tensor>& views) {
  std::vector<tvm_value> items;
  for (const velo_tensor& view : views) {
    tensors_.push_back({header(70), view});
    items.push_back({70, 0, {0}});
    items.back().pointer = &tensors_.back();
  }
  add_array(items);
}

void tvm_arguments::array_of(const std::vector<std::int64_t>& list) {
  std::vector<tvm_value> items;
  for (const std::int64_t i : list) {
    tvm_value item{1, 0, {0}};
    item.integer = i;
    items.push_back(item);
  }
  add_array(items);
}

void tvm_arguments::add_array(const std::vector<tvm_value>& items) {
  items_.push_back(items);
  const auto size = static_cast<std::int64_t>(items.size());
  arrays_.push_back({header(71), items_.back().data(), size, size, nullptr});
  add(71).pointer = &arrays_.back();
}

void tvm_arguments::put(const attribute& a, bool as_array) {
  if (a.kind == VELO_VALUE_FLOAT) return real(a.real);
  if (a.kind == VELO_VALUE_STRING) return string(a.text);
  if (a.kind == VELO_VALUE_INTS) return as_array ? array_of(a.list) : shape(a.list);
  integer(a.integer);
}

bool tvm_arguments::counts_unchanged() const {
  for (const tvm_tensor& t : tensors_) {
    if (t.header.references != 1) return false;
  }
  return true;
}

void tvm_function::operator()(const tvm_arguments& args) const {
  tvm_value result{0, 0, {0}};
  raised_kind.clear();
  raised_text.clear();
  const int code = call_(nullptr, args.values().data(),
                         static_cast<std::int32_t>(args.values().size()), &result);
  if (!args.counts_unchanged()) throw std::runtime_error("a reference was kept");
  if (code != 0) throw host_error(raised_kind, raised_text);
  if (result.type != 0) throw std::runtime_error("the result is not None");
}

}  // namespace hosts

extern "C" __attribute__((visibility("default"))) void TVMFFIErrorSetRaisedFromCStr(
    const char* kind, const char* message) {
  hosts::raised_kind = kind;
  hosts::raised_text = message;
}

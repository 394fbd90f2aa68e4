// The function's signature from a list of field names, and the call from its parameters.
#include "ops/by_name/closure.hpp"

#include <algorithm>
#include <cstring>

#include "core/failure.hpp"
#include "core/handle/guard.hpp"
#include "ops/by_name/by_name.hpp"

namespace velo::ops {

using core::fail;
using core::text;

closure::parameter_list closure::read_parameters(const op_spec& spec, const char* fields) {
  if (fields == nullptr) fail(VELO_ERR_NULL, "fields", "names of fields", "NULL");
  parameter_list list;
  const char* at = fields + std::strspn(fields, " ");
  while (*at != 0) {
    const std::size_t length = std::strcspn(at, " ,");
    const text name("%.*s", static_cast<int>(std::min<std::size_t>(length, 100)), at);
    const int found = find_field(spec, at, length);
    if (found < 0)
      fail(VELO_ERR_NOT_FOUND, "fields", text("fields of %s, comma-separated", spec.name),
           text("\"%s\"", name.buffer));
    if ((list.given >> found & 1) != 0)
      fail(VELO_ERR_ARGUMENT, "fields", "each field once", text("\"%s\" again", name.buffer));
    if (list.count == core::signature::max_parameters)
      fail(VELO_ERR_ARGUMENT, "fields", text("at most %d fields", core::signature::max_parameters),
           "more");
    list.fields[list.count++] = found;
    list.given |= field_set{1} << found;
    at += length;
    at += std::strspn(at, " ");
    if (*at == 0) break;
    if (*at != ',' || at[1 + std::strspn(at + 1, " ")] == 0)
      fail(VELO_ERR_NOT_FOUND, "fields", "a field's name after each comma", text("\"%s\"", fields));
    at += 1 + std::strspn(at + 1, " ");
  }
  return list;
}

core::signature closure::signature_of_parameters() const {
  core::signature shape;
  shape.result = core::passing::i32;
  for (; shape.count < parameters_.count; ++shape.count) {
    core::passing& how = shape.parameters[shape.count];
    switch (callee_.spec().fields[parameters_.fields[shape.count]].kind) {
      case field_kind::tensor:
      case field_kind::tensors:
      case field_kind::handle:
      case field_kind::ints:
      case field_kind::text:
        how = core::passing::pointer;
        break;
      case field_kind::f64:
        how = core::passing::f64;
        break;
      case field_kind::i64:
      case field_kind::boolean:
      case field_kind::enumeration:
        how = core::passing::i64;
        break;
    }
  }
  return shape;
}

closure::closure(const core::context& context, velo_stream stream, const char* op,
                 const char* fields)
    : callee_(context, op),
      stream_(stream),
      parameters_(read_parameters(callee_.spec(), fields)),
      code_(signature_of_parameters(), &enter, this, context.configuration().now().closures) {}

core::word closure::enter(void* argument, const core::word* words) noexcept {
  const closure& self = *static_cast<const closure*>(argument);
  const op_spec& spec = self.callee_.spec();
  core::word result{};
  result.i64 = core::guard(spec.function, [&] {
    core::inside_scope::note(core::handle_of(self), core::part::given);
    args_block block;
    set_defaults(spec, block);
    for (int i = 0; i < self.parameters_.count; ++i)
      block.values[self.parameters_.fields[i]].i = words[i].i64;
    self.callee_.execute(block, self.parameters_.given, self.stream_);
  });
  return result;
}

}  // namespace velo::ops

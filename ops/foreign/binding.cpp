// A parser for signatures, expressions and tensor lists, and the evaluation of expressions.
#include "ops/foreign/binding.hpp"

#include <algorithm>
#include <cfloat>
#include <charconv>
#include <climits>
#include <cstring>
#include <limits>

#include "core/failure.hpp"
#include "core/index.hpp"

namespace velo::ops {

using core::fail;
using core::passing;
using core::text;

// The rest of one text. An error names the column.
class binding::reader {
 public:
  reader(const char* source, const char* argument)
      : begin_(source), at_(source), argument_(argument) {}

  [[noreturn]] void refuse(const char* expected) const { refuse_at(at_, expected); }
  [[noreturn]] void refuse_at(const char* position, const char* expected) const {
    const int column = static_cast<int>(position - begin_) + 1;
    fail(VELO_ERR_PARSE, argument_, expected,
         *position == 0 ? text("the end, line 1, column %d", column)
                        : text("'%c', line 1, column %d", *position, column));
  }

  const char* position() {
    while (*at_ == ' ') ++at_;
    return at_;
  }
  bool done() { return *position() == 0; }
  bool take(char c) {
    if (*position() != c) return false;
    ++at_;
    return true;
  }
  void expect(char c) {
    if (!take(c)) refuse(text("'%c'", c));
  }
  static bool starts_word(char c) {
    return c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
  }
  std::string word(const char* expected) {
    if (!starts_word(*position())) refuse(expected);
    const char* first = at_;
    while (starts_word(*at_) || (*at_ >= '0' && *at_ <= '9')) ++at_;
    return std::string(first, at_);
  }
  // Reads 42, -1, 1.5 or 1e-5, which is real if it is written as one, in any locale of the host.
  bool number(std::int64_t& whole, double& real) {
    const char* first = position();
    const char* digits = *first == '-' ? first + 1 : first;
    if (*digits < '0' || *digits > '9') refuse("tensor.part, attr.name, stream or a number");
    const std::size_t length = std::strspn(digits, "0123456789");
    if (*digits == '0' && length > 1) refuse("a number without a 0 in front");
    const bool is_real = digits[length] == '.' || digits[length] == 'e';
    const char* last = first + std::strlen(first);
    const auto [end, error] =
        is_real ? std::from_chars(first, last, real) : std::from_chars(first, last, whole);
    if (error != std::errc()) refuse("a number that 64 bits hold");
    at_ = end;
    return is_real;
  }
  int index() {
    expect('[');
    if (*position() < '0' || *position() >= '0' + max_rank || (at_[1] >= '0' && at_[1] <= '9'))
      refuse(text("a dimension, 0 to %d", max_rank - 1));
    const int dimension = *at_++ - '0';
    expect(']');
    return dimension;
  }

 private:
  const char* begin_;
  const char* at_;
  const char* argument_;
};

namespace {

struct dtype_word {
  const char* name;
  std::uint32_t bit;
};
constexpr dtype_word dtype_words[] = {{"f32", dtype_f32}, {"f64", dtype_f64}, {"bf16", dtype_bf16},
                                      {"f16", dtype_f16}, {"i32", dtype_i32}, {"i64", dtype_i64},
                                      {"i8", dtype_i8},   {"i4", dtype_i4},   {"u8", dtype_u8},
                                      {"u64", dtype_u64}};
constexpr const char* dtype_expected = "f32, f64, bf16, f16, i32, i64, i8, i4, u8 or u64";

bool takes_integer(passing p) {
  return p == passing::i32 || p == passing::i64;
}
bool takes_real(passing p) {
  return p == passing::f32 || p == passing::f64;
}

core::word word_of(std::int64_t value, passing to) {
  core::word w{};
  switch (to) {
    case passing::i32:
      w.i32 = static_cast<std::int32_t>(value);
      break;
    case passing::f32:
      w.f32 = static_cast<float>(value);
      break;
    case passing::f64:
      w.f64 = static_cast<double>(value);
      break;
    default:
      w.i64 = value;
  }
  return w;
}
core::word word_of(double value, passing to) {
  core::word w{};
  if (to == passing::f32) {
    w.f32 = static_cast<float>(value);
  } else {
    w.f64 = value;
  }
  return w;
}

std::int64_t stride_of(const velo_tensor& t, int dimension) {
  if (t.strides != nullptr) return t.strides[dimension];
  return product(t.shape + dimension + 1, t.ndim - dimension - 1);
}

std::int64_t measure(const source& from, const velo_tensor& t) {
  switch (from.kind) {
    case source::origin::rank:
      return t.ndim;
    case source::origin::size:
      return t.shape[from.index];
    case source::origin::stride:
      return stride_of(t, from.index);
    case source::origin::bytes:
      return bytes_of(t.dtype, numel(t));
    default:
      return numel(t);
  }
}

}  // namespace

binding::binding(const char* op, const char* signature, const char* expressions,
                 const char* tensors)
    : shape_(core::parse_signature(signature, "desc.signature")) {
  reader declared(tensors, "desc.tensors");
  read_tensors(declared);
  reader bound(expressions, "desc.binding");
  read_expressions(bound);
  names_.push_back(op);
  spec_.name = names_.back().c_str();
  spec_.function = "velo_op_call";
  spec_.family = "foreign";
  spec_.doc = "a foreign kernel";
  spec_.since = 100;
  spec_.fields = fields_.data();
  spec_.field_count = static_cast<int>(fields_.size());
  spec_.struct_size = static_cast<std::uint32_t>(8 + 8 * fields_.size());
}

field& binding::add_field(const std::string& name, field_kind kind) {
  if (fields_.size() == max_fields)
    fail(VELO_ERR_ARGUMENT, "desc.binding", text("at most %d tensors and attributes", max_fields),
         "more");
  names_.push_back(name);
  constexpr double unbounded = std::numeric_limits<double>::infinity();
  field added{};
  added.name = names_.back().c_str();
  added.doc = "";
  added.kind = kind;
  added.minimum = -unbounded;
  added.maximum = unbounded;
  fields_.push_back(added);
  least_rank_.push_back(0);
  return fields_.back();
}

int binding::find(const std::string& name, bool tensor) const {
  for (std::size_t i = 0; i < fields_.size(); ++i) {
    if (name == fields_[i].name && tensor == (fields_[i].kind == field_kind::tensor))
      return static_cast<int>(i);
  }
  return -1;
}

void binding::read_tensors(reader& from) {
  while (!from.done()) {
    const char* position = from.position();
    const std::string direction = from.word("in, out or inout");
    if (direction != "in" && direction != "out" && direction != "inout")
      from.refuse_at(position, "in, out or inout");
    position = from.position();
    const std::string name = from.word("a tensor's name");
    if (name == "attr" || name == "stream" || find(name, true) >= 0)
      from.refuse_at(position, "a name that is not taken");
    field& tensor = add_field(name, field_kind::tensor);
    tensor.read = direction != "out";
    tensor.output = direction != "in";
    position = from.position();
    const std::string dtype = from.word(dtype_expected);
    for (const dtype_word& known : dtype_words)
      if (dtype == known.name) tensor.dtypes = known.bit;
    if (tensor.dtypes == 0) from.refuse_at(position, dtype_expected);
    if (from.done()) return;
    from.expect(',');
    if (from.done()) from.refuse("a tensor after ','");
  }
}

void binding::read_expressions(reader& from) {
  while (!from.done()) {
    if (static_cast<int>(sources_.size()) == shape_.count) {
      fail(VELO_ERR_ARGUMENT, "desc.binding",
           text("%d expressions, one per parameter", shape_.count), "more");
    }
    sources_.push_back(read_expression(from, shape_.parameters[sources_.size()]));
    if (from.done()) break;
    from.expect(',');
    if (from.done()) from.refuse("an expression after ','");
  }
  if (static_cast<int>(sources_.size()) < shape_.count) {
    fail(VELO_ERR_ARGUMENT, "desc.binding", text("%d expressions, one per parameter", shape_.count),
         text("%zu", sources_.size()));
  }
}

source binding::read_expression(reader& from, passing to) {
  const char* position = from.position();
  source result{};
  if (!reader::starts_word(*position)) {
    std::int64_t whole = 0;
    double real = 0;
    const bool is_real = from.number(whole, real);
    result.kind = is_real ? source::origin::real : source::origin::integer;
    if (to == passing::pointer || (is_real && !takes_real(to)))
      from.refuse_at(position, to == passing::pointer ? "x.data or stream for a pointer"
                                                      : "an integer for an integer parameter");
    if (to == passing::i32 && (whole < INT32_MIN || whole > INT32_MAX))
      from.refuse_at(position, "a number that an int32 holds");
    if (to == passing::f32 && is_real && !(real >= -FLT_MAX && real <= FLT_MAX))
      from.refuse_at(position, "a number that a float holds");
    result.constant = is_real ? word_of(real, to) : word_of(whole, to);
    return result;
  }
  const std::string name = from.word("a name");
  if (name == "stream" && *from.position() != '.') {
    if (to != passing::pointer) from.refuse_at(position, "a number: the parameter is no pointer");
    result.kind = source::origin::stream;
    takes_stream_ = true;
    return result;
  }
  if (name == "attr") {
    from.expect('.');
    const char* named = from.position();
    const std::string attribute = from.word("an attribute's name");
    if (to == passing::pointer) from.refuse_at(position, "x.data or stream for a pointer");
    if (find(attribute, true) >= 0) from.refuse_at(named, "a name that no tensor has");
    result.kind = source::origin::attribute;
    result.field = attribute_field(attribute, to);
    return result;
  }
  const int tensor = find(name, true);
  if (tensor < 0) from.refuse_at(position, "a declared tensor, attr.name, stream or a number");
  result = read_tensor_part(from, tensor);
  if (result.kind == source::origin::data ? to != passing::pointer : !takes_integer(to))
    from.refuse_at(position, result.kind == source::origin::data
                                 ? "a number: the parameter is no pointer"
                                 : "what the parameter takes, no integer");
  return result;
}

source binding::read_tensor_part(reader& from, int tensor) {
  constexpr const char* expected = "data, numel, rank, shape[i], stride[i] or bytes";
  from.expect('.');
  const char* position = from.position();
  const std::string part = from.word(expected);
  source result{};
  result.field = tensor;
  if (part == "data") {
    result.kind = source::origin::data;
  } else if (part == "numel") {
    result.kind = source::origin::numel;
  } else if (part == "rank") {
    result.kind = source::origin::rank;
  } else if (part == "bytes") {
    result.kind = source::origin::bytes;
  } else if (part == "shape" || part == "stride") {
    const auto at = static_cast<std::size_t>(tensor);
    result.kind = part == "shape" ? source::origin::size : source::origin::stride;
    result.index = from.index();
    least_rank_[at] = std::max(least_rank_[at], result.index + 1);
    if (result.kind == source::origin::stride) fields_[at].strided = true;
  } else {
    from.refuse_at(position, expected);
  }
  return result;
}

// An attribute that one integer parameter uses is an integer in every expression.
int binding::attribute_field(const std::string& name, passing to) {
  int at = find(name, false);
  if (at < 0) {
    add_field(name, field_kind::f64);
    at = static_cast<int>(fields_.size()) - 1;
  }
  field& f = fields_[core::at(at)];
  if (takes_integer(to) && f.kind != field_kind::i64) {
    f.kind = field_kind::i64;
    f.minimum = static_cast<double>(INT64_MIN);
    f.maximum = static_cast<double>(INT64_MAX);
  }
  if (to == passing::i32) {
    f.minimum = INT32_MIN;
    f.maximum = INT32_MAX;
  } else if (to == passing::f32 && f.kind == field_kind::f64) {
    f.minimum = -static_cast<double>(FLT_MAX);
    f.maximum = static_cast<double>(FLT_MAX);
  }
  return at;
}

void binding::check(const args_block& block, field_set given) const {
  for (std::size_t i = 0; i < fields_.size(); ++i) {
    const field& f = fields_[i];
    if (f.kind != field_kind::tensor) {
      if ((given >> i & 1) == 0)
        fail(VELO_ERR_ARGUMENT, text("args.%s", f.name), "a value for the attribute", "none");
      continue;
    }
    const velo_tensor& t = *block.values[i].tensor;
    if (t.ndim < least_rank_[i])
      fail(VELO_ERR_RANK, text("args.%s.ndim", f.name),
           text("at least %d dimensions, which the binding names", least_rank_[i]),
           text("%d", t.ndim));
  }
}

void binding::evaluate(const args_block& block, velo_stream stream, core::word* words) const {
  for (std::size_t p = 0; p < sources_.size(); ++p) {
    const source& from = sources_[p];
    const passing to = shape_.parameters[p];
    const auto at = static_cast<std::size_t>(from.field);
    switch (from.kind) {
      case source::origin::integer:
      case source::origin::real:
        words[p] = from.constant;
        break;
      case source::origin::stream:
        words[p].pointer = stream;
        break;
      case source::origin::attribute:
        words[p] = fields_[at].kind == field_kind::i64 ? word_of(block.values[at].i, to)
                                                       : word_of(block.values[at].f, to);
        break;
      case source::origin::data:
        words[p].pointer = data<char>(block.values[at].tensor);
        break;
      default: {
        const std::int64_t value = measure(from, *block.values[at].tensor);
        if (to == passing::i32 && value > INT32_MAX)
          fail(VELO_ERR_SHAPE, text("args.%s", fields_[at].name),
               text("a size that parameter %zu, an int32, holds", p), core::number(value));
        words[p] = word_of(value, to);
      }
    }
  }
}

}  // namespace velo::ops

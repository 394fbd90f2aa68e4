// Every kernel of every operator, forced in turn, over the operator's examples and calls of other
// sizes made from them: against the reference within the bounds of its spec, wherever tensors
// begin, on any number of threads, with NaN and Inf among the inputs. A new operator is tested
// without a change.
#include <cstdlib>
#include <set>

#include "tests/ops/every_operator/example_variants.hpp"
#include "tests/ops/every_operator/where_to_edit.hpp"
#include "tests/ops/operator_testing.hpp"

using namespace velo;
using namespace velo::testing;

namespace {

using bits = std::vector<std::vector<unsigned char>>;

// An operator's examples, each also with each of its sizes replaced where the operator allows it,
// and grown.
std::vector<hosts::sample> calls_of(const std::string& op, const session& s) {
  std::vector<hosts::sample> out;
  bool empty = false, longer = false;
  for (const hosts::sample& example : examples_of(op)) {
    std::set<std::int64_t> sizes;
    for (const hosts::named_array& in : example.inputs)
      sizes.insert(in.data.shape.begin(), in.data.shape.end());
    sizes.erase(0), sizes.erase(1);
    for (const std::int64_t from : sizes) {
      for (const std::int64_t to : {0, 1, 18, 67}) {
        hosts::sample next;
        const auto replaced = [&](std::int64_t size) { return size == from ? to : size; };
        if (!with_sizes(example, s, replaced, next)) continue;
        empty = empty || to == 0, longer = longer || to > from;
        out.push_back(std::move(next));
      }
    }
    out.push_back(example);
    if (example.known.empty()) out.push_back(grown(example, s, 20000));
  }
  CHECK(empty);
  CHECK(longer);
  return out;
}

void for_each_operator(const std::function<void(const std::string&)>& check) {
  for (const std::string& op : hosts::operator_names()) {
    if (hosts::takes_lists(op)) continue;
    INFO(where_to_edit(op));
    check(op);
  }
}

// The tensors of a call moved to memory between guards, so many elements past a cache line.
class moved {
 public:
  moved(example_call& call, std::size_t elements) : call_(call), blocks_(call.tensors()) {
    for (std::size_t t = 0; t < blocks_.size(); ++t) {
      const hosts::array& from = call.memory(t);
      std::vector<unsigned char>& memory = blocks_[t].memory;
      memory.assign(from.bytes.size() + 4 * line, guard);
      const auto first = reinterpret_cast<std::uintptr_t>(memory.data());
      blocks_[t].at = line + (line - first % line) + elements * (from.dtype.bits / 8);
      std::copy(from.bytes.begin(), from.bytes.end(), start(t));
      call.view(t).data = start(t);
    }
  }
  moved(const moved&) = delete;
  ~moved() {
    for (std::size_t t = 0; t < blocks_.size(); ++t) call_.view(t) = call_.memory(t).view();
  }
  // Copies the tensors back; false when something around them was written.
  bool back() {
    bool intact = true;
    for (std::size_t t = 0; t < blocks_.size(); ++t) {
      std::vector<unsigned char>& bytes = call_.memory(t).bytes;
      std::copy(start(t), start(t) + bytes.size(), bytes.begin());
      const unsigned char *first = blocks_[t].memory.data(),
                          *last = first + blocks_[t].memory.size();
      const auto guards =
          std::count(first, static_cast<const unsigned char*>(start(t)), guard) +
          std::count(static_cast<const unsigned char*>(start(t)) + bytes.size(), last, guard);
      intact = intact && guards == 4 * static_cast<std::ptrdiff_t>(line);
    }
    return intact;
  }

 private:
  static constexpr std::size_t line = 64;
  static constexpr unsigned char guard = 0xa5;
  struct block {
    std::vector<unsigned char> memory;
    std::size_t at = 0;
  };
  unsigned char* start(std::size_t t) { return blocks_[t].memory.data() + blocks_[t].at; }
  example_call& call_;
  std::vector<block> blocks_;
};

// The outputs of a call, or nothing when the forced kernel does not serve it.
std::vector<hosts::array> outputs(example_call& call, const session& s, std::size_t elements = 0) {
  call.reset();
  moved to(call, elements);
  const velo_status status = call.run(s.stream());
  if (status == VELO_ERR_UNSUPPORTED) return {};
  VELO_RUN(status);
  CHECK(to.back());
  std::vector<hosts::array> out;
  for (std::size_t t = 0; t < call.tensors(); ++t)
    if (call.spec().fields[call.field(t)].output) out.push_back(call.memory(t));
  return out;
}

// NaN and infinities must be where the reference has them and nowhere else. Attention is an
// exception: it multiplies whole blocks, in which invisible keys have weight 0, and 0 * NaN is NaN
// where the reference omits the product.
bool may_differ(const std::string& op, double value) {
  const auto is = [&](const char* name) { return op.find(name) == 0; };
  const bool attention = is("fusion_attention") || is("flash_attention") ||
                         is("cached_attention") || is("context_parallel_attention");
  return attention && std::isnan(value);
}

bool same_kind(double a, double b) {
  return std::isnan(a) || std::isnan(b) ? std::isnan(a) && std::isnan(b)
                                        : (!std::isinf(a) && !std::isinf(b)) || a == b;
}

void require_kinds(const std::string& op, const hosts::array& got, const hosts::array& reference) {
  for (std::size_t i = 0, count = static_cast<std::size_t>(got.count()); i < count; ++i) {
    const double value = element(got, i), exact = element(reference, i);
    if (same_kind(value, exact) || may_differ(op, value)) continue;
    INFO("element " << i << ": got " << value << ", reference " << exact);
    CHECK(false);
    return;
  }
}

struct spoiled_call {
  hosts::sample sample;
  std::string what;
  std::vector<hosts::array> reference;
};

// An operator's examples, each with each floating input in turn made NaN or infinite at its first,
// middle or last element.
std::vector<spoiled_call> spoiled_calls_of(const std::string& op) {
  session plain(1, R"({"level": 0})");
  std::vector<spoiled_call> out;
  for (const hosts::sample& example : examples_of(op)) {
    for (std::size_t i = 0; i < example.inputs.size(); ++i) {
      const hosts::named_array& input = example.inputs[i];
      if (!is_floating(input.data)) continue;
      const auto count = static_cast<std::size_t>(input.data.count());
      for (const std::size_t at : std::set<std::size_t>{0, count / 2, count - 1}) {
        for (const double value : {std::nan(""), HUGE_VAL, -HUGE_VAL}) {
          out.push_back({example, "", {}});
          set_element(out.back().sample.inputs[i].data, at, value);
          out.back().what =
              std::to_string(value) + " in element " + std::to_string(at) + " of " + input.field;
          example_call call(out.back().sample);
          out.back().reference = outputs(call, plain);
        }
      }
    }
  }
  return out;
}

bool reads_numbers(const std::string& op) {
  for (const hosts::sample& example : examples_of(op))
    for (const hosts::named_array& input : example.inputs)
      if (is_floating(input.data)) return true;
  return false;
}

}  // namespace

TEST_CASE("every kernel of every operator agrees with the reference, wherever tensors begin") {
  session plain(1, R"({"level": 0})");
  for_each_operator([&](const std::string& op) {
    for (const hosts::sample& sample : calls_of(op, plain)) {
      INFO(text_of(sample));
      example_call call(sample);
      const std::vector<hosts::array> reference = outputs(call, plain);
      const bool mixed = call.is_mixed();
      for_each_named_kernel(op.c_str(), [&](session& s, const std::string& kernel) {
        for (const std::size_t elements : {0, 1}) {
          if (kernel == "reference" && elements == 0) continue;  // would be compared with itself
          INFO(elements << " elements past a cache line");
          const std::vector<hosts::array> got = outputs(call, s, elements);
          for (std::size_t i = 0; i < got.size(); ++i)
            require_agreement(got[i], reference[i],
                              ops::bound_of(call.spec(), got[i].dtype, mixed));
        }
      });
    }
  });
}

// The reference takes calls of fewer elements, since its products are slow; not with VELO_LIMITS.
TEST_CASE("every kernel of every operator gives the same bits for any number of threads") {
  const bool is_long = std::getenv("VELO_LIMITS") != nullptr;
  session free;
  for_each_operator([&](const std::string& op) {
    std::vector<hosts::sample> large, small;
    for (const hosts::sample& example : examples_of(op)) {
      large.push_back(example.known.empty() ? grown(example, free, 400000) : example);
      small.push_back(example.known.empty() ? grown(example, free, 50000) : example);
    }
    std::vector<bits> first;
    for (const int threads : {1, 3}) {
      INFO(threads << " threads");
      std::size_t runs = 0;
      const auto compare = [&](session& s, const std::string& kernel) {
        for (const hosts::sample& sample : kernel == "reference" && !is_long ? small : large) {
          INFO(text_of(sample));
          example_call call(sample);
          bits now;
          for (const hosts::array& a : outputs(call, s)) now.push_back(a.bytes);
          if (threads == 1) first.push_back(now);
          CHECK((now == first[runs++]));
        }
      };
      for_each_named_kernel(op.c_str(), compare, threads);
    }
  });
}

TEST_CASE("every kernel of every operator has NaN and infinities where the reference has them") {
  for_each_operator([&](const std::string& op) {
    const std::vector<spoiled_call> calls = spoiled_calls_of(op);
    CHECK(calls.empty() != reads_numbers(op));
    for_each_kernel(op.c_str(), [&](session& s) {
      for (const spoiled_call& c : calls) {
        INFO(text_of(c.sample) << ", " << c.what);
        example_call call(c.sample);
        const std::vector<hosts::array> got = outputs(call, s);
        for (std::size_t i = 0; i < got.size(); ++i) require_kinds(op, got[i], c.reference[i]);
      }
    });
  });
}

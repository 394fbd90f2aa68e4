// An operator's call with its tensors laid out at random in one piece of memory, and an oracle in
// plain loops that decides whether velo must accept or refuse it.
//
// The oracle reads the address of every element and nothing else. Invariant: `promised` and
// `forbidden` are never both true; velo may accept or refuse a call that is neither.
// Cost: elements times tensors, for calls of some thousand elements.
#pragma once

#include "tests/ops/example_call.hpp"

namespace velo::testing {

class placed_call {
 public:
  // base: the call on tensors of their own. Elements are copied from it to the layout, and back as
  // shared memory has changed them, so that both calls have the same inputs.
  placed_call(example_call& base, random_source& random) : base_(base), random_(random) {
    for (std::size_t t = 0; t < base.tensors(); ++t)
      if (base.args.values[base.field(t)].tensor != nullptr) views_.push_back(made_of(t));
    // None, one or all of the tensors may have a layout that velo may refuse.
    const std::size_t odd = random.below(2 * views_.size() + 1);
    for (std::size_t i = 0; i < views_.size(); ++i)
      lay_out(i, i == odd || odd == 2 * views_.size());
    fill();
  }
  placed_call(const placed_call&) = delete;

  velo_status run(velo_stream stream) {
    ops::args_block args = base_.args;
    for (placed& p : views_) {
      p.view.shape = p.shape.data();
      p.view.strides = p.strides.empty() ? nullptr : p.strides.data();
      args.values[p.field].tensor = &p.view;
    }
    before_ = memory_;
    return ops::call(base_.op(), stream, &args);
  }

  bool promised() const { return promised_ && !forbidden(); }

  // A layout that the spec does not allow: of a tensor by itself, or of an output and another.
  bool forbidden() const {
    for (const placed& p : views_)
      if (is_forbidden(p)) return true;
    for (const placed& out : views_) {
      if (!field_of(out).output) continue;
      for (const placed& other : views_)
        if (&out != &other && shares(out, other) && !in_place(out, other)) return true;
    }
    return false;
  }

  // Whether inputs share memory: one then has elements of another, which may be out of its range.
  bool inputs_shared() const {
    for (const placed& a : views_)
      for (const placed& b : views_)
        if (&a != &b && shares(a, b) && !in_place(a, b)) return true;
    return false;
  }

  bool untouched() const { return memory_ == before_; }
  // Whether nothing but elements of outputs has changed.
  bool untouched_beside_outputs() const {
    std::vector<unsigned char> expected = before_;
    for (const placed& p : views_) {
      if (!field_of(p).output) continue;
      for (const std::int64_t at : p.elements)
        std::memcpy(&expected[static_cast<std::size_t>(at)], &memory_[static_cast<std::size_t>(at)],
                    p.bytes);
    }
    return expected == memory_;
  }
  // The elements that tensor t of the base call has in the layout now, compact.
  hosts::array gathered(std::size_t t) const {
    hosts::array out = base_.memory(t);
    for (const placed& p : views_) {
      if (p.tensor != t) continue;
      for (std::size_t i = 0; i < p.elements.size(); ++i)
        std::memcpy(&out.bytes[i * p.bytes], &memory_[static_cast<std::size_t>(p.elements[i])],
                    p.bytes);
    }
    return out;
  }
  std::string text() const {
    std::string out = base_.spec().name;
    for (const placed& p : views_) {
      const int rank = static_cast<int>(p.shape.size());
      out += std::string("\n  ") + field_of(p).name + " " + ops::dtype_name(p.view.dtype).buffer +
             ops::shape_name(rank, p.shape.data()).buffer + " at byte " + std::to_string(p.first);
      if (!p.strides.empty())
        out += std::string(" strides ") + ops::shape_name(rank, p.strides.data()).buffer;
    }
    return out;
  }

 private:
  struct placed {
    std::size_t tensor = 0;
    int field = 0;
    velo_tensor view{};
    std::vector<std::int64_t> shape, strides;  // no strides: NULL
    std::size_t bytes = 0;                     // of an element
    std::int64_t first = 0;                    // byte of the memory where it begins
    std::vector<std::int64_t> elements;        // byte of each, in row-major order
  };

  placed made_of(std::size_t t) const {
    placed p;
    p.tensor = t, p.field = base_.field(t);
    p.view = *base_.args.values[p.field].tensor;
    p.shape.assign(p.view.shape, p.view.shape + p.view.ndim);
    p.bytes = p.view.dtype.bits / 8;
    return p;
  }

  const ops::field& field_of(const placed& p) const { return base_.spec().fields[p.field]; }

  static std::int64_t count_of(const placed& p) {
    std::int64_t count = 1;
    for (const std::int64_t size : p.shape) count *= size;
    return count;
  }

  // ---- layouts ----

  static std::vector<std::int64_t> compact_strides(const placed& p) {
    std::vector<std::int64_t> strides(p.shape.size());
    std::int64_t step = 1;
    for (std::size_t d = p.shape.size(); d-- > 0;) strides[d] = step, step *= p.shape[d];
    return strides;
  }
  // Places rows `distance` elements apart.
  static std::vector<std::int64_t> row_strides(const placed& p, std::int64_t distance) {
    std::vector<std::int64_t> strides(p.shape.size());
    std::int64_t step = 1;
    for (std::size_t d = p.shape.size(); d-- > 0;) {
      strides[d] = step;
      step = d + 1 == p.shape.size() ? distance : step * p.shape[d];
    }
    return strides;
  }

  void lay_out(std::size_t i, bool odd) {
    placed& p = views_[i];
    const bool strided = field_of(p).strided;
    const int kind = static_cast<int>(random_.below(100));
    if (kind < 30 && i > 0 && put_in_place(i, odd)) return;
    if (odd && kind < 50 && i > 0) return put_across(i);
    if (!odd && kind < 45 && i > 0 && put_beside(i)) return;
    if (p.shape.empty() || kind >= 90) return put_apart(p);
    if (!odd) {
      p.strides = row_strides(p, p.shape.back() + (strided ? random_.below(9) : 0));
    } else {
      promised_ = false;
      bend(p);
    }
    put_apart(p);
  }

  // Strides that velo may refuse.
  void bend(placed& p) {
    p.strides = compact_strides(p);
    const auto d = random_.below(p.shape.size());
    switch (random_.below(5)) {
      case 0:
        p.strides[d] = 0;
        return;
      case 1:
        p.strides[d] = -p.strides[d];
        return;
      case 2:
        std::swap(p.strides[d], p.strides[0]);
        return;
      case 3:
        p.strides[d] += 1 + random_.below(5);
        return;
      default:
        for (std::int64_t& stride : p.strides) stride = random_.below(9);
    }
  }

  // Places a tensor in memory of its own.
  void put_apart(placed& p) {
    p.first = 0;
    place(p);
    std::int64_t lowest = 0, highest = 0;
    for (const std::int64_t at : p.elements) {
      lowest = std::min(lowest, at);
      highest = std::max(highest, at + static_cast<std::int64_t>(p.bytes));
    }
    p.first =
        (end_ + 63) / 64 * 64 - lowest + static_cast<std::int64_t>(p.bytes) * random_.below(3);
    place(p);
    end_ = p.first + highest;
  }

  // Places a tensor exactly on one that it may alias or that may alias it, or nearly so.
  bool put_in_place(std::size_t i, bool odd) {
    placed& p = views_[i];
    for (std::size_t k = 0; k < i; ++k) {
      const placed& other = views_[k];
      if (!may_be(p, other) || other.shape != p.shape || other.bytes != p.bytes) continue;
      p.strides = other.strides;
      p.first = other.first;
      if (odd) {
        promised_ = false;
        if (random_.chance(50) && !p.shape.empty()) bend(p);
        p.first += static_cast<std::int64_t>(p.bytes) * random_.below(3);
      }
      return settle(p);
    }
    return false;
  }

  // Places a tensor beside another in common rows, whose stride the other gets, too.
  bool put_beside(std::size_t i) {
    placed &p = views_[i], &other = views_[random_.below(i)];
    if (p.shape.size() < 2 || other.shape.size() != p.shape.size() || other.bytes != p.bytes)
      return false;
    if (!field_of(p).strided || !field_of(other).strided || !other.strides.empty()) return false;
    if (!std::equal(p.shape.begin(), p.shape.end() - 1, other.shape.begin())) return false;
    const std::int64_t row = p.shape.back() + other.shape.back() + random_.below(4);
    for (std::size_t k = 0; k < i; ++k)  // a tensor in place of the other keeps its layout
      if (&views_[k] != &other && shares(views_[k], other)) return false;
    other.strides = row_strides(other, row);
    p.strides = row_strides(p, row);
    put_apart(other);
    p.first = other.first + static_cast<std::int64_t>(other.bytes) * other.shape.back();
    return settle(p);
  }

  // Places a tensor among the elements of others.
  void put_across(std::size_t i) {
    placed& p = views_[i];
    const placed& other = views_[random_.below(i)];
    const auto bytes = static_cast<std::int64_t>(p.bytes);
    p.first = (other.first + bytes - 1) / bytes * bytes + bytes * random_.below(9);
    if (random_.chance(50) && !p.shape.empty())
      p.strides = row_strides(p, p.shape.back() + random_.below(9));
    promised_ = false;
    settle(p);
  }

  bool settle(placed& p) {
    place(p);
    for (const std::int64_t at : p.elements)
      end_ = std::max(end_, at + static_cast<std::int64_t>(p.bytes));
    for (const std::int64_t at : p.elements)
      if (at < 0) return put_apart(p), true;
    return true;
  }

  void place(placed& p) const {
    const std::vector<std::int64_t> strides = p.strides.empty() ? compact_strides(p) : p.strides;
    p.elements.clear();
    const std::int64_t count = count_of(p);
    for (std::int64_t i = 0; i < count; ++i) {
      std::int64_t rest = i, at = 0;
      for (std::size_t d = p.shape.size(); d-- > 0;)
        at += rest % p.shape[d] * strides[d], rest /= p.shape[d];
      p.elements.push_back(p.first + at * static_cast<std::int64_t>(p.bytes));
    }
  }

  // Writes outputs first, so that inputs in place win, and then copies all elements back to the
  // base.
  void fill() {
    memory_.assign(static_cast<std::size_t>(end_) + 128, 0xa5);
    const auto start = reinterpret_cast<std::uintptr_t>(memory_.data());
    for (const bool output : {true, false}) {
      for (const placed& p : views_) {
        if (field_of(p).output != output) continue;
        const unsigned char* from = static_cast<unsigned char*>(p.view.data) + p.view.byte_offset;
        for (std::size_t i = 0; i < p.elements.size(); ++i)
          std::memcpy(&memory_[static_cast<std::size_t>(p.elements[i])], from + i * p.bytes,
                      p.bytes);
      }
    }
    for (placed& p : views_) {
      auto* to = static_cast<unsigned char*>(p.view.data) + p.view.byte_offset;
      for (std::size_t i = 0; i < p.elements.size(); ++i)
        std::memcpy(to + i * p.bytes, &memory_[static_cast<std::size_t>(p.elements[i])], p.bytes);
      const std::int64_t offset = p.first >= 64 && random_.chance(20) ? 64 : 0;
      p.view.data = reinterpret_cast<void*>(start + static_cast<std::uintptr_t>(p.first - offset));
      p.view.byte_offset = static_cast<std::uint64_t>(offset);
    }
  }

  // ---- the oracle ----

  bool may_be(const placed& a, const placed& b) const {
    return ((field_of(a).may_alias >> b.field) & 1) != 0 ||
           ((field_of(b).may_alias >> a.field) & 1) != 0;
  }
  bool in_place(const placed& out, const placed& other) const {
    return may_be(out, other) && out.shape == other.shape && out.bytes == other.bytes &&
           out.elements == other.elements;
  }
  bool is_forbidden(const placed& p) const {
    if (p.elements.empty()) return false;
    for (std::size_t d = 0; d < p.strides.size(); ++d)
      if (p.strides[d] < 0) return true;
    if (!field_of(p).strided) {
      for (std::size_t i = 0; i < p.elements.size(); ++i)
        if (p.elements[i] != p.first + static_cast<std::int64_t>(i * p.bytes)) return true;
    }
    if (!field_of(p).output) return false;
    std::vector<std::int64_t> sorted = p.elements;
    std::sort(sorted.begin(), sorted.end());
    for (std::size_t i = 1; i < sorted.size(); ++i)
      if (sorted[i] - sorted[i - 1] < static_cast<std::int64_t>(p.bytes)) return true;
    return false;
  }
  // Whether both have an element that contains the same byte.
  static bool shares(const placed& a, const placed& b) {
    if (a.elements.empty() || b.elements.empty()) return false;
    const auto [low, high] = std::minmax_element(a.elements.begin(), a.elements.end());
    const auto bytes = static_cast<std::int64_t>(a.bytes);
    std::vector<char> taken(static_cast<std::size_t>(*high + bytes - *low), 0);
    for (const std::int64_t at : a.elements) std::fill_n(taken.begin() + (at - *low), bytes, 1);
    for (const std::int64_t at : b.elements) {
      for (std::int64_t byte = at; byte < at + static_cast<std::int64_t>(b.bytes); ++byte)
        if (byte >= *low && byte < *high + bytes && taken[static_cast<std::size_t>(byte - *low)])
          return true;
    }
    return false;
  }

  example_call& base_;
  random_source& random_;
  std::vector<placed> views_;
  std::vector<unsigned char> memory_, before_;
  std::int64_t end_ = 0;
  bool promised_ = true;
};

}  // namespace velo::testing

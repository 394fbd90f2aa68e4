// Shapes of a slot's outputs before there is anything to compute: velo_ms_slot_infer for Python,
// and the symbol beside each slot's entry that MindSpore asks in graphs whose sizes change:
//
//   std::vector<int64_t> velo_ms_slot_NNNInferShape(int* ndims, int64_t** shapes, void* extra)
//
// with a vector of vectors where the slot has several outputs. Both are returned through memory of
// the caller's, which is how the entries are declared here. MindSpore gives no dtypes there, and
// shapes do not depend on them: each input gets one that the operator takes.
//
// Sizes that are not known (below 0) are found by trial, since an operator may want them to agree
// with others. Each of them becomes one number with many divisors; where velo refuses that, one,
// two, all or three of them become something else: twice the number, 1, a size that is known, its
// double or its half, or the value of an attribute. The choice that velo takes is inferred again
// with the number doubled, and with small numbers where velo takes them, since sizes may be bounded
// from below (min_capacity of capacity_gate); sizes of outputs that then differ are not known
// either. Sizes that a list bounds in many inputs at once may not be found; the call is refused
// then. Cost: one inference where all sizes are known, five or a few more otherwise, at most 4096.
#include <algorithm>
#include <cstring>
#include <new>
#include <numeric>
#include <vector>

#include "capi/adapters/entries.hpp"
#include "capi/adapters/failure.hpp"
#include "capi/adapters/host_context.hpp"
#include "capi/adapters/mindspore/slots.hpp"
#include "capi/adapters/placement.hpp"
#include "velo/adapters.h"

namespace velo::adapters {
namespace {

using sizes = std::vector<std::int64_t>;

struct described {
  velo_dtype dtype;
  sizes shape;
};
using outputs = std::vector<velo_shape>;

placement placement_of(const slot_binding& slot) {
  if (slot.attributes.fields.empty())
    refuse(VELO_ERR_ARGUMENT, "slot: expected one bound with `fields`, got %s without them",
           slot.op->name);
  return place_named(*slot.op, slot.attributes.fields);
}

// Outputs in the order of the slot's `fields`, for inputs whose sizes are known.
outputs infer_known(const slot_binding& slot, const placement& where,
                    const std::vector<described>& inputs) {
  call made(*slot.op);
  slot.attributes.put(made);
  velo_tensor views[max_buffers];
  for (int i = 0; i < where.input_count; ++i) {
    const auto at = static_cast<std::size_t>(i);
    views[i] = {nullptr,
                {VELO_DEVICE_CPU, 0},
                static_cast<std::int32_t>(inputs[at].shape.size()),
                inputs[at].dtype,
                const_cast<std::int64_t*>(inputs[at].shape.data()),
                nullptr,
                0};
    made.tensor(where.inputs[i], views[i]);
  }
  velo_shape all[max_fields] = {};
  const std::int64_t count = made.infer(all, max_fields);
  outputs out;
  for (int o = 0; o < where.output_count; ++o) {
    const char* name = slot.op->fields[where.outputs[o]].name;
    const auto* found = std::find_if(all, all + count, [&](const velo_shape& shape) {
      return std::strcmp(shape.name, name) == 0;
    });
    if (found == all + count)
      refuse(VELO_ERR_ARGUMENT, "fields: expected outputs that these inputs have, got %s", name);
    out.push_back(*found);
  }
  return out;
}

outputs merged(outputs first, const outputs& second) {
  for (std::size_t o = 0; o < first.size(); ++o) {
    for (std::int32_t i = 0; i < first[o].ndim; ++i)
      if (first[o].sizes[i] != second[o].sizes[i]) first[o].sizes[i] = -1;
  }
  return first;
}

// The search for sizes that the operator takes in the place of those that are not known.
class guess {
 public:
  guess(const slot_binding& slot, const placement& where, const std::vector<described>& inputs)
      : slot_(slot), where_(where), given_(inputs) {
    for (const described& input : inputs) {
      for (const std::int64_t size : input.shape) {
        if (size < 0) chosen_.push_back(0);
        for (const std::int64_t known : {size, 2 * size, size % 2 == 0 ? size / 2 : 0}) know(known);
      }
    }
    for (const attribute& a : slot.attributes.values) {
      if (a.type == attribute::kind::integer) know(a.integer);  // rows of a table
      if (a.list.empty()) continue;
      know(a.list.back());  // the end of the last sequence, or the sum of lengths
      know(std::accumulate(a.list.begin(), a.list.end(), std::int64_t{0}));
    }
  }

  outputs run() {
    if (chosen_.empty()) return infer_known(slot_, where_, given_);
    for (int others = 0; others <= 3; ++others) {
      if (with(others, 0) || (others == 2 && all_alike())) return found_;
      std::fill(chosen_.begin(), chosen_.end(), 0);
    }
    throw first_;
  }

 private:
  void know(std::int64_t size) {
    if (size > 0 && std::count(known_.begin(), known_.end(), size) == 0) known_.push_back(size);
  }

  // All ways with so many places from `from` on that are not the number tried.
  bool with(int others, std::size_t from) {
    if (others == 0) return fits();
    for (std::size_t place = from; place < chosen_.size(); ++place) {
      for (std::size_t choice = 1; choice <= 1 + known_.size(); ++choice) {
        chosen_[place] = choice;
        if (with(others - 1, place + 1)) return true;
      }
      chosen_[place] = 0;
    }
    return false;
  }

  bool all_alike() {
    for (std::size_t choice = 1; choice <= 1 + known_.size(); ++choice) {
      std::fill(chosen_.begin(), chosen_.end(), choice);
      if (fits()) return true;
    }
    return false;
  }

  bool fits() {
    // 192 where a size is at most 512, 1 where an attribute bounds it.
    for (const std::int64_t number : {960, 192, 1}) {
      if (tries_ == most) return false;
      try {
        found_ = merged(infer_known(slot_, where_, filled(number)),
                        infer_known(slot_, where_, filled(2 * number)));
        for (const std::int64_t small : {1, 2, 3}) merge_small(small);
        return true;
      } catch (const refusal& refused) {
        if (tries_++ == 0) first_ = refused;
      }
    }
    return false;
  }

  void merge_small(std::int64_t number) {
    try {
      found_ = merged(found_, infer_known(slot_, where_, filled(number)));
    } catch (const refusal&) {  // too small for the operator
    }
  }

  std::vector<described> filled(std::int64_t number) const {
    std::vector<described> out = given_;
    std::size_t place = 0;
    for (described& input : out) {
      for (std::int64_t& size : input.shape) {
        if (size >= 0) continue;
        const std::size_t choice = chosen_[place++];
        size = choice == 0 ? number : choice == 1 ? 2 * number : known_[choice - 2];
      }
    }
    return out;
  }

  static constexpr int most = 4096;
  const slot_binding& slot_;
  const placement& where_;
  const std::vector<described>& given_;
  sizes known_ = {1};
  std::vector<std::size_t> chosen_;  // by unknown size: the number, twice it, or 2 + a known one
  int tries_ = 0;
  outputs found_;
  refusal first_;
};

outputs infer(const slot_binding& slot, const placement& where,
              const std::vector<described>& inputs) {
  return guess(slot, where, inputs).run();
}

// The input whose dtype was refused last, or -1.
int input_of_refused_dtype(const op_info& op, const placement& where) {
  velo_error_info info = VELO_ERROR_INFO_INIT;
  if (velo_last_error(&info) != VELO_OK || info.code != VELO_ERR_DTYPE) return -1;
  for (int i = 0; i < where.input_count; ++i) {
    const std::string path = std::string("args.") + op.fields[where.inputs[i]].name + ".dtype";
    if (path == info.argument) return i;
  }
  return -1;
}

constexpr velo_dtype usual[] = {{VELO_DTYPE_FLOAT, 32, 1}, {VELO_DTYPE_INT, 32, 1},
                                {VELO_DTYPE_INT, 64, 1},   {VELO_DTYPE_INT, 8, 1},
                                {VELO_DTYPE_UINT, 8, 1},   {VELO_DTYPE_FLOAT, 64, 1},
                                {VELO_DTYPE_BFLOAT, 16, 1}};
constexpr int usual_count = sizeof usual / sizeof usual[0];

// Infers with dtypes that begin with these for the first input and the others; a refused one goes
// on to the next.
outputs infer_from(const slot_binding& slot, const placement& where, std::vector<described> inputs,
                   int first, int others) {
  std::vector<int> tried(inputs.size(), 0);
  const auto set = [&](std::size_t i) {
    inputs[i].dtype = usual[((i == 0 ? first : others) + tried[i]) % usual_count];
  };
  for (std::size_t i = 0; i < inputs.size(); ++i) set(i);
  for (;;) {
    try {
      return infer(slot, where, inputs);
    } catch (const refusal&) {
      const int refused = input_of_refused_dtype(*slot.op, where);
      const auto at = static_cast<std::size_t>(std::max(refused, 0));
      if (refused < 0 || ++tried[at] == usual_count) throw;
      set(at);
    }
  }
}

// Bytes are a weight of int8, or of int4 with twice the columns, beside a first input of float32 or
// of int8: what the shapes fit decides, where all sizes are known.
outputs infer_shapes(const slot_binding& slot, const int* ndims, std::int64_t** shapes) {
  constexpr int f32 = 0, i8 = 3, u8 = 4;
  constexpr int begins[][2] = {{f32, f32}, {f32, i8}, {f32, u8}, {i8, i8}};
  const placement where = placement_of(slot);
  std::vector<described> inputs;
  for (int i = 0; i < where.input_count; ++i)
    inputs.push_back({usual[f32], sizes(shapes[i], shapes[i] + ndims[i])});
  const bool known = std::all_of(inputs.begin(), inputs.end(), [](const described& input) {
    return std::all_of(input.shape.begin(), input.shape.end(),
                       [](std::int64_t size) { return size >= 0; });
  });
  refusal first;
  for (const auto& [of_first, of_others] : begins) {
    try {
      return infer_from(slot, where, inputs, of_first, of_others);
    } catch (const refusal& failed) {
      if (of_others == f32) first = failed;
      if (!known) break;
    }
  }
  throw first;
}

}  // namespace

void* infer_mindspore_slot(int slot, void* result, int* ndims, std::int64_t** shapes) noexcept {
  std::vector<sizes> made;
  refusal failed;
  int count = 1;
  const velo_status status = attempt({"velo_ms_slot_", "", slot}, failed, [&] {
    const slot_binding& bound = bound_slot(slot);
    count = placement_of(bound).output_count;
    for (const velo_shape& shape : infer_shapes(bound, ndims, shapes))
      made.emplace_back(shape.sizes, shape.sizes + shape.ndim);
  });
  // A call without shapes cannot be launched either: Python refuses it, or the launch does.
  if (status != VELO_OK) made.assign(static_cast<std::size_t>(count), {0});
  if (count == 1) return new (result) sizes(std::move(made[0]));
  return new (result) std::vector<sizes>(std::move(made));
}

}  // namespace velo::adapters

using namespace velo::adapters;

velo_status velo_ms_slot_infer(int32_t slot, const velo_tensor* inputs, int64_t count,
                               velo_shape* out, int64_t capacity) {
  refusal failed;
  return attempt({"velo_ms_slot_infer"}, failed, [&] {
    const slot_binding& bound = bound_slot(slot);
    const placement where = placement_of(bound);
    if (inputs == nullptr || out == nullptr)
      refuse(VELO_ERR_NULL, "%s: expected an array, got NULL",
             inputs == nullptr ? "inputs" : "out");
    if (count != where.input_count || capacity < where.output_count)
      refuse(VELO_ERR_ARGUMENT, "expected %d inputs and room for %d outputs, got %lld and %lld",
             where.input_count, where.output_count, static_cast<long long>(count),
             static_cast<long long>(capacity));
    std::vector<described> given;
    for (int64_t i = 0; i < count; ++i)
      given.push_back({inputs[i].dtype, sizes(inputs[i].shape, inputs[i].shape + inputs[i].ndim)});
    const outputs made = infer(bound, where, given);
    std::copy(made.begin(), made.end(), out);
  });
}

// A host that plays torch: a library of the name libtorch_cpu.so with torch's stable C functions, a
// dispatcher that calls boxed kernels as torch does, and the books of everything it lends.
//
// Tensors, cells of optional values, lists and texts are objects of its own, known by address: one
// that is released twice or not at all shows. Numbers of dtypes and devices are not torch's, so
// that nobody knows them without asking. Any function can be made to fail. The functions' types are
// declared here from their published description and not shared with the adapters.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "samples.hpp"

namespace hosts::torch {

// An argument or a result. A tensor is a view of `data`, with other strides or on meta by wish.
struct value {
  enum class kind { none, tensor, tensors, integer, real, boolean, ints, text };
  kind is = kind::none;
  array* data = nullptr;
  std::vector<array*> list;
  std::vector<std::int64_t> strides, ints;
  bool meta = false, negative = false;
  std::int64_t integer = 0;
  double real = 0;
  std::string text;

  value() = default;
  value(array& tensor) : is(kind::tensor), data(&tensor) {}
  value(std::vector<array*> tensors) : is(kind::tensors), list(std::move(tensors)) {}
  value(std::int64_t number) : is(kind::integer), integer(number) {}
  value(double number) : is(kind::real), real(number) {}
  value(bool truth) : is(kind::boolean), integer(truth ? 1 : 0) {}
  value(std::vector<std::int64_t> numbers) : is(kind::ints), ints(std::move(numbers)) {}
  value(std::string words) : is(kind::text), text(std::move(words)) {}
  value on_meta() const {
    value out = *this;
    out.meta = true;
    return out;
  }
};

struct argument {
  std::string name, type;  // "Tensor", "int[]"
  bool written = false, optional = false, has_default = false;
  value initial;
};

struct schema {
  std::string name, text;  // "rms_norm.full", and the whole
  std::vector<argument> arguments;
  std::size_t results = 0;
};

schema parse(const std::string& text);      // throws where torch's parser would
std::vector<std::string> defined();         // names of all operators, in order
schema schema_of(const std::string& name);  // throws where there is none

// Calls as torch.ops.velo does: arguments by name, the others at their defaults. A kernel's
// exception comes through. Results are copies.
std::vector<array> call(const std::string& name, const std::map<std::string, value>& given);

struct books {
  long tensors, cells, lists, texts;  // alive
  long wrong;                         // released without being alive
  bool operator==(const books& other) const {
    return tensors == other.tensors && cells == other.cells && lists == other.lists &&
           texts == other.texts && wrong == other.wrong;
  }
};
books count();

// The nth call from now on of any function that may fail, fails; -1: none. What is left is n minus
// the calls since.
void fail_after(long calls);
long calls_left();

void set_threads(int count);
long loops();   // calls of torch_parallel_for
long copies();  // calls of aoti_torch_copy_
long writes();  // of those onto itself, which torch counts as a write and are no copies
long writes_of(const std::string& name,
               const std::map<std::string, value>& given);  // by the schema
bool recording();                                           // gradients

// Counts of aten's flash attention for the CPU, once it has been given a kernel: its kernels under
// CPU beyond torch's own, and calls of torch's own.
std::size_t kernels_of(const std::string& name);
long own_attentions();

}  // namespace hosts::torch

// velo ops: the list of operators, and the fields of one.
#include <cstdio>
#include <velo/velo.hpp>

#include "tools/velo/commands.hpp"
#include "tools/velo/json.hpp"
#include "tools/velo/messages.hpp"
#include "tools/velo/table.hpp"

namespace command {

const char* const ops_help =
    "usage: velo ops [NAME] [--json]\n\n"
    "Without a name: every operator with its family and kernels. With one (or an alias): what it\n"
    "computes, its fields with kinds, defaults and bounds, the names and values of its\n"
    "enumerations, how exact it is, and its kernels.\n\n"
    "  velo ops\n  velo ops rms_norm\n  velo ops npu_rms_norm --json\n";

namespace {

json describe_library() {
  return parse(velo::describe<std::string>());
}

// The operator's document, to which each enumeration's names and values are added.
json describe(const std::string& op, const json& library) {
  json one = describe_operator(op);
  json_t *fields = member(one.get(), "fields"), *enums = member(library.get(), "enums");
  for (std::size_t i = 0; i < json_array_size(fields); ++i) {
    json_t* field = json_array_get(fields, i);
    for (std::size_t k = 0; k < json_array_size(enums); ++k) {
      const json_t* each = json_array_get(enums, k);
      if (!text(field, "enum").empty() && text(field, "enum") == text(each, "name"))
        json_object_set(field, "values", member(each, "values"));
    }
  }
  return one;
}

std::string names_of(const json_t* rows) {
  std::string all;
  for (std::size_t i = 0; i < json_array_size(rows); ++i)
    all += (i > 0 ? " " : "") + text(json_array_get(rows, i), "name");
  return all;
}

std::string number(const json_t* value) {
  if (json_is_string(value)) return json_string_value(value);
  if (json_is_integer(value)) return std::to_string(json_integer_value(value));
  char buffer[32] = "";
  if (json_is_real(value)) std::snprintf(buffer, sizeof buffer, "%g", json_real_value(value));
  return buffer;
}

// "in or NULL: f32 bf16", "1e-06, at least 0"
std::string facts_of(const json_t* field) {
  if (member(field, "default") == nullptr) {  // a pointer
    std::string all = text(field, "dir") + text(field, "handle");
    if (json_is_true(member(field, "optional"))) all += all.empty() ? "optional" : ", optional";
    const std::string dtypes = joined(member(field, "dtypes"), " ");
    if (!dtypes.empty()) all += (all.empty() ? "" : ": ") + dtypes;
    return all;
  }
  std::string all = number(member(field, "default"));
  if (member(field, "min") != nullptr) all += ", >= " + number(member(field, "min"));
  if (member(field, "max") != nullptr) all += ", <= " + number(member(field, "max"));
  return all;
}

void show_values(const json_t* field) {
  const json_t* values = member(field, "values");
  if (values == nullptr) return;
  table names({text(field, "name") + " is", "value", "meaning"});
  for (std::size_t i = 0; i < json_array_size(values); ++i) {
    const json_t* each = json_array_get(values, i);
    names.add({text(each, "name"), number(member(each, "value")), text(each, "doc")});
  }
  std::printf("%s\n", names.str().c_str());
}

void show_one(const json_t* op) {
  std::printf("%s  (%s, %s)\n", text(op, "name").c_str(), text(op, "family").c_str(),
              text(op, "function").c_str());
  std::printf("  %s\n\n", wrapped(joined(member(op, "doc"), " "), 96, 2).c_str());
  table fields({"field", "kind", "takes", "meaning"});
  const json_t* rows = member(op, "fields");
  for (std::size_t i = 0; i < json_array_size(rows); ++i) {
    const json_t* field = json_array_get(rows, i);
    fields.add({text(field, "name"), text(field, "kind"), facts_of(field), text(field, "doc")});
  }
  std::printf("%s\n", fields.str().c_str());
  for (std::size_t i = 0; i < json_array_size(rows); ++i) show_values(json_array_get(rows, i));
  table facts({"about", ""});
  const std::string aliases = joined(member(op, "aliases"), ", ");
  if (!aliases.empty()) facts.add({"aliases", aliases});
  if (!text(op, "gradient_of").empty()) facts.add({"gradient of", text(op, "gradient_of")});
  facts.add({"kernels", names_of(member(op, "kernels"))});
  facts.add({"error bound", text(member(op, "error_bound"), "text")});
  if (const json_t* range = json_object_get(member(op, "error_bound"), "inputs");
      range != nullptr) {
    char least_to_most[64];
    std::snprintf(least_to_most, sizeof least_to_most, "0, or of magnitude %g to %g",
                  json_number_value(json_array_get(range, 0)),
                  json_number_value(json_array_get(range, 1)));
    facts.add({"for inputs", least_to_most});
  }
  if (json_is_true(json_object_get(op, "row_invariant")))
    facts.add({"row_invariant", "a row has the same bits among any number of rows"});
  facts.add({"cost", text(op, "bytes")});
  facts.add({"source", text(op, "source")});
  facts.add({"since", "ABI " + text(op, "since")});
  std::printf("%s", facts.str().c_str());
}

}  // namespace

int ops(const arguments& given) {
  if (given.words.size() > 1) throw input_error("ops wants one name, or none");
  if (given.words.size() == 1) {
    const json one = describe(given.words[0], describe_library());
    given.json ? print(one.get()) : show_one(one.get());
    return done;
  }
  const json all(json_array()), library = describe_library();
  table list({"operator", "family", "kernels"});
  for (int64_t i = 0; i < velo::op_count(); ++i) {
    json one = describe(velo::op_name(i), library);
    list.add({text(one.get(), "name"), text(one.get(), "family"),
              names_of(member(one.get(), "kernels"))});
    json_array_append_new(all.get(), one.release());
  }
  if (given.json) {
    print(all.get());
  } else {
    std::printf("%s", list.str().c_str());
  }
  return done;
}

}  // namespace command

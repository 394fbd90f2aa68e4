// No function of the host can destroy what the call that runs it works with; all else it can.
//
// Every row of inside_rows.cpp is run once for every kind of handle, whose object its function
// destroys. Callbacks and kinds are those that the library describes: one without a row fails the
// test.
#include "tests/faults/inside.hpp"

#include <catch2/catch.hpp>

#include "core/handle/handle_kinds.hpp"
#include "tests/faults/description.hpp"

using namespace velo::testing;

namespace {

// The spec's callbacks, and the functions that structs hold without a name of their own.
std::set<std::string> callbacks_of_the_spec() {
  const json_tree root = library_description();
  std::set<std::string> found;
  std::size_t i = 0, k = 0;
  json_t *one = nullptr, *field = nullptr;
  json_array_foreach(json_object_get(root.get(), "callbacks"), i, one)
      found.insert(text_in(one, "name"));
  json_array_foreach(json_object_get(root.get(), "structs"), i, one) {
    json_array_foreach(json_object_get(one, "fields"), k, field) {
      if (text_in(field, "type").find("(*)") != std::string::npos)
        found.insert(text_in(one, "name") + "." + text_in(field, "name"));
    }
  }
  return found;
}

// A pool with blocks in use stays for their frees.
bool lives(const void* handle) {
  const velo::core::slot_header* slot = velo::core::slot_named(handle);
  if (velo::core::live_slot(handle, *slot->kind) == nullptr) return false;
  auto* pool = static_cast<velo_pool>(const_cast<void*>(handle));
  return slot->kind != &velo::core::kinds::pool || velo_pool_check(pool) != VELO_ERR_HANDLE;
}

}  // namespace

TEST_CASE("every function of the host that the spec names has a row") {
  std::set<std::string> known;
  for (const inside_row& row : inside_rows()) known.insert(row.callback);
  for (const std::string& callback : callbacks_of_the_spec()) {
    INFO(callback);
    CHECK(known.count(callback) == 1);
  }
}

TEST_CASE("a row's function runs, and its call ends well") {
  for (const inside_row& row : inside_rows()) {
    INFO(row.callback << ", " << row.how);
    scene all;
    bool ran = false;
    meddling = [&] { ran = true; };
    CHECK(row.run(all) == row.status);
    meddling = nullptr;
    CHECK(ran);
  }
}

TEST_CASE("what a call works with outlives the function of the host that it runs") {
  for (const inside_row& row : inside_rows()) {
    for (const std::string& kind : handle_kinds()) {
      INFO(row.callback << ", " << row.how << ": destroys a " << kind);
      scene all;
      bool ran = false, survived = false;
      call_record record;
      meddling = [&] {
        const void* victim = all.handle_of(kind);
        all.destroy(kind);
        record = last_record();
        survived = lives(victim);
        ran = true;
      };
      const velo_status status = row.run(all);
      meddling = nullptr;
      REQUIRE(ran);
      CHECK(survived == (row.kept.count(kind) == 1));
      if (row.kept.count(kind) == 0) continue;
      CHECK(status == row.status);
      CHECK((record.code == VELO_ERR_STATE || record.code == VELO_ERR_HANDLE));
      CHECK(record.function == kind + "_destroy");
    }
  }
}

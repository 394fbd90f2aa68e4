// Foreign kernels: plain C functions of other people's libraries as operators of one context.
//
// A kernel is immutable and is found by name in its context's foreign_kernels. A call that runs it
// keeps it alive. To remove a kernel is to retire it: no new call starts, and retire() returns when
// the running and queued ones have ended, so that its library can be unloaded. Kernels are work
// that computes, except those that take the stream: they count as work that waits.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "core/context.hpp"
#include "core/library.hpp"
#include "core/stream/work.hpp"
#include "ops/foreign/binding.hpp"
#include "velo/plugin.h"

namespace velo::ops {

class foreign_kernel final {
 public:
  // desc is complete; library may be null when desc.function is set. plugin: "" when there is none.
  // Throws as velo_kernel_register does.
  foreign_kernel(const velo_kernel_desc& desc, std::shared_ptr<const core::library> library,
                 const char* plugin);

  const char* name() const noexcept { return spec().name; }
  const op_spec& spec() const noexcept { return binding_.spec(); }
  std::string describe() const;  // a JSON object
  std::string explain(const args_block& block, const core::context& context) const;

  // Checks, and runs or queues. self: the pointer this was found by.
  static void execute(const std::shared_ptr<foreign_kernel>& self, const args_block& block,
                      field_set given, velo_stream stream);

  // Waits for its calls, queued ones included. Throws VELO_ERR_STATE when the calling thread is
  // inside this very kernel, or is work that these calls may wait for.
  void retire(const core::context& owner);

 private:
  class running;
  class queued_call;

  // A kernel that takes the stream calls velo itself. If it held the turn, it would wait for
  // itself.
  core::demand demand() const noexcept {
    return binding_.takes_stream() ? core::demand::waits : core::demand::computes;
  }
  void run(const core::word* words) const;

  binding binding_;
  std::string symbol_, signature_, expressions_, tensors_, plugin_;
  std::shared_ptr<const core::library> library_;
  core::any_function function_;
  std::string file_;
  const core::prepared& prepared_;

  std::mutex lock_;
  std::condition_variable ended_;
  int running_ = 0;
  bool retired_ = false;
};

// The foreign kernels of one context, in order of registration; attached to it. Several are added
// at once or not at all. Calls that found a kernel before it was removed keep it alive.
// Thread-safe. Cost: a lock and a search from the front, since contexts have few.
class foreign_kernels {
 public:
  using list = std::vector<std::shared_ptr<foreign_kernel>>;

  static foreign_kernels& of(const core::context& owner) {
    return owner.attached<foreign_kernels>();
  }

  void add(const list& added);  // throws VELO_ERR_ARGUMENT when a name is taken
  void remove(const foreign_kernel& kernel) noexcept;
  std::shared_ptr<foreign_kernel> find(const char* name) const;  // nullptr when there is none
  list all() const;

 private:
  mutable std::mutex lock_;
  list kernels_;
};

// The object behind a velo_kernel handle. Its destructor removes the kernel from the context.
class kernel_registration {
 public:
  // Makes a kernel from a description by itself, and adds it to the context.
  kernel_registration(core::context& owner, const velo_kernel_desc& desc);
  ~kernel_registration();

  void retire();  // throws as foreign_kernel::retire; the destructor ignores what it throws

 private:
  core::context& owner_;
  std::shared_ptr<foreign_kernel> kernel_;
};

// Adds all kernels of a plugin to the context, or none. A kernel without a function names a symbol
// of the plugin's library.
void register_plugin(core::context& context, const std::shared_ptr<const core::library>& library,
                     const char* plugin, const std::vector<velo_kernel_desc>& descs);

// All kernels of a context as a JSON array.
std::string describe_kernels(const core::context& context);

}  // namespace velo::ops

template <>
struct velo::core::handle_traits<velo::ops::kernel_registration> {
  using handle = velo_kernel;
  static constexpr handle_kind& kind = kinds::kernel;
};

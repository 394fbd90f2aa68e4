// The life of a foreign kernel and of a call to one.
#include "ops/foreign/foreign.hpp"

#include <cstring>
#include <optional>

#include "core/failure.hpp"
#include "core/handle/record.hpp"
#include "core/handle/status.hpp"
#include "core/stream/stream.hpp"
#include "core/text/json_writer.hpp"
#include "ops/operator/registry.hpp"

namespace velo::ops {

using core::fail;
using core::text;

namespace {

// The kernels that the calling thread is running, innermost first.
struct frame {
  const foreign_kernel* kernel;
  const frame* outer;
};
thread_local const frame* innermost = nullptr;

bool is_inside(const foreign_kernel& kernel) {
  const frame* at = innermost;
  while (at != nullptr && at->kernel != &kernel) at = at->outer;
  return at != nullptr;
}

const char* required(const char* value, const char* argument) {
  if (value == nullptr) fail(VELO_ERR_NULL, argument, "a string", "NULL");
  return value;
}

// Names are words: they appear in field paths, files and configuration keys.
const char* checked_name(const char* op) {
  required(op, "desc.op");
  const std::size_t length = std::strlen(op);
  if (length == 0 || length > 63 ||
      std::strspn(op, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") != length)
    fail(VELO_ERR_ARGUMENT, "desc.op", "1 to 63 letters, digits and underscores",
         text("\"%s\"", op));
  if (find_spec(op) != nullptr)
    fail(VELO_ERR_ARGUMENT, "desc.op", "a name that no operator of velo has", text("\"%s\"", op));
  return op;
}

core::any_function function_of(const velo_kernel_desc& desc, const core::library* library) {
  core::any_function given = nullptr;
  std::memcpy(&given, &desc.function, sizeof given);
  if (given != nullptr) return given;
  return library->symbol(required(desc.symbol, "desc.symbol"), "desc.symbol");
}

std::string text_or_empty(const char* value) {
  return value == nullptr ? "" : value;
}

}  // namespace

// A call that has begun and not ended; refused once the kernel is retired.
class foreign_kernel::running {
 public:
  explicit running(std::shared_ptr<foreign_kernel> kernel) : kernel_(std::move(kernel)) {
    const std::lock_guard<std::mutex> lock(kernel_->lock_);
    if (kernel_->retired_)
      fail(VELO_ERR_NOT_FOUND, "op", "an operator's name",
           text("\"%s\", destroyed", kernel_->name()));
    ++kernel_->running_;
  }
  running(running&&) = default;
  ~running() {
    if (kernel_ == nullptr) return;  // moved from
    const std::lock_guard<std::mutex> lock(kernel_->lock_);
    if (--kernel_->running_ == 0) kernel_->ended_.notify_all();
  }
  running& operator=(running&&) = delete;

  const foreign_kernel& kernel() const { return *kernel_; }

 private:
  std::shared_ptr<foreign_kernel> kernel_;
};

// The parameters are computed when the call is queued, so that only the tensors' memory is needed
// later.
class foreign_kernel::queued_call final : public core::work {
 public:
  queued_call(std::shared_ptr<foreign_kernel> kernel, const core::word* words)
      : work(kernel->demand()), running_(std::move(kernel)) {
    function = "velo_op_call";
    std::memcpy(words_, words, sizeof words_);
  }
  // The call ends with its function, not with this work object, which lives until its failure has
  // been recorded.
  void run(core::execution&) override {
    const running call(std::move(running_));
    call.kernel().run(words_);
  }

 private:
  running running_;
  core::word words_[core::signature::max_parameters];
};

foreign_kernel::foreign_kernel(const velo_kernel_desc& desc,
                               std::shared_ptr<const core::library> library, const char* plugin)
    : binding_(checked_name(desc.op), required(desc.signature, "desc.signature"),
               required(desc.binding, "desc.binding"), required(desc.tensors, "desc.tensors")),
      symbol_(text_or_empty(desc.symbol)),
      signature_(desc.signature),
      expressions_(desc.binding),
      tensors_(desc.tensors),
      plugin_(plugin),
      library_(std::move(library)),
      function_(function_of(desc, library_.get())),
      file_(core::file_of(function_)),
      prepared_(core::prepare(binding_.shape())) {}

std::string foreign_kernel::describe() const {
  std::string all;
  core::json_writer to(all);
  to.object().member("op", name()).member("library", file_).member("symbol", symbol_);
  to.member("signature", signature_).member("binding", expressions_);
  to.member("tensors", tensors_).member("plugin", plugin_).end();
  return all;
}

std::string foreign_kernel::explain(const args_block& block, const core::context& context) const {
  check_fields(spec(), &block, context, purpose::shapes_only);
  std::string all;
  core::json_writer to(all);
  to.array().object().member("name", "foreign").member("isa", "unknown");
  to.member("library", file_).member("symbol", symbol_).member("chosen", true);
  to.key("reason").null().end().end();
  return all;
}

void foreign_kernel::run(const core::word* words) const {
  const frame here{this, innermost};
  innermost = &here;
  const struct restore {
    const frame* outer;
    ~restore() { innermost = outer; }
  } on_exit{here.outer};
  const text function("%s of %s", symbol_.empty() ? name() : symbol_.c_str(), file_.c_str());
  const std::uint32_t before = core::records_written();
  const core::word result = core::call_foreign(prepared_, function_, words, function);
  if (binding_.shape().returns_status && result.i32 != VELO_OK)
    core::fail_returned("", result.i32, function, before);
}

void foreign_kernel::execute(const std::shared_ptr<foreign_kernel>& self, const args_block& block,
                             field_set given, velo_stream handle) {
  core::stream& stream = core::resolve<core::stream>(handle, "stream");
  const op_spec& spec = self->spec();
  check_fields(spec, &block, stream.owner(), purpose::run);
  self->binding_.check(block, given);
  check_overlap(spec, &block);
  core::word words[core::signature::max_parameters] = {};
  self->binding_.evaluate(block, handle, words);
  std::optional<running> call;  // from now on, also while an inline call waits for its turn
  if (stream.is_inline()) call.emplace(self);
  stream.call(
      {self->demand()}, [&](core::execution&) { self->run(words); },
      [&] { return stream.make<queued_call>(self, words); });
}

void foreign_kernel::retire(const core::context& owner) {
  if (is_inside(*this))
    fail(VELO_ERR_STATE, "kernel", "a kernel that is not running on this thread",
         text("%s, which makes this call", name()));
  std::unique_lock<std::mutex> lock(lock_);
  if (running_ > 0) owner.require_can_wait("kernel");
  retired_ = true;
  ended_.wait(lock, [this] { return running_ == 0; });
}

// The kernel is added last, so that an earlier failure leaves nothing in the context.
kernel_registration::kernel_registration(core::context& owner, const velo_kernel_desc& desc)
    : owner_(owner) {
  std::shared_ptr<const core::library> library;
  if (desc.function == nullptr) library = core::library::open(desc.library, "desc.library");
  kernel_ = std::make_shared<foreign_kernel>(desc, std::move(library), "");
  const std::string description = kernel_->describe();
  foreign_kernels::of(owner).add({kernel_});
  owner.log().write(VELO_LOG_INFO, "foreign", "registered %s", description.c_str());
}

void kernel_registration::retire() {
  kernel_->retire(owner_);
  foreign_kernels::of(owner_).remove(*kernel_);
}

kernel_registration::~kernel_registration() {
  try {
    retire();
  } catch (...) {
    owner_.log().write(VELO_LOG_ERROR, "foreign", "%s destroyed while it runs on this thread",
                       kernel_->name());
  }
}

void register_plugin(core::context& context, const std::shared_ptr<const core::library>& library,
                     const char* plugin, const std::vector<velo_kernel_desc>& descs) {
  foreign_kernels::list kernels;
  for (std::size_t i = 0; i < descs.size(); ++i) {
    try {
      kernels.push_back(std::make_shared<foreign_kernel>(descs[i], library, plugin));
    } catch (const core::failure& f) {
      core::failure named = f;
      const bool prefixed = std::strncmp(f.argument, "desc.", 5) == 0;
      core::copy_text(named.argument, sizeof named.argument,
                      text("kernels[%zu].%s", i, f.argument + (prefixed ? 5 : 0)));
      throw named;
    }
  }
  foreign_kernels::of(context).add(kernels);
  context.log().write(VELO_LOG_INFO, "foreign", "plugin %s: %zu kernels", plugin, kernels.size());
}

std::string describe_kernels(const core::context& context) {
  std::string all;
  core::json_writer to(all);
  to.array();
  for (const auto& one : foreign_kernels::of(context).all()) to.next_line(" ").raw(one->describe());
  to.end();
  return all;
}

}  // namespace velo::ops

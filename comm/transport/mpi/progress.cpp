// Notices, and requests that outlive a group.
#include "comm/transport/mpi/progress.hpp"

#include <time.h>

#include <algorithm>
#include <new>
#include <utility>

#include "comm/transport/wait_board.hpp"
#include "core/failure.hpp"

namespace velo::comm {
namespace {

constexpr int notice_tag = 0, first_tag = 1, tags_of_group = 4;

// Numbers of subgroups begin here, in the upper half of the tags.
std::uint64_t first_part(int most_tag) noexcept {
  return static_cast<std::uint64_t>(most_tag / tags_of_group / 2);
}

void sleep_ns(long ns) noexcept {
  const timespec time{0, ns};
  nanosleep(&time, nullptr);
}

[[noreturn]] void fail_numbers() {
  core::fail(VELO_ERR_UNSUPPORTED, "desc.communicator", "fewer groups of one since it was made",
             "as many as MPI has tags for");
}

[[noreturn]] void fail_mpi(const char* why) {
  core::fail(VELO_ERR_UNSUPPORTED, "desc.transport", "MPI ready for calls from any thread", "not",
             why);
}

}  // namespace

mpi_progress::mpi_progress(loaded_plugin plugin, mpi_duplicate* duplicate)
    : plugin_(std::move(plugin)),
      duplicate_(duplicate),
      next_part_(first_part(duplicate->most_tag)) {}

// Runs once nothing uses the duplicate any more.
mpi_progress::~mpi_progress() {
  if (!mpi().cancel(&receiving_))
    static_cast<void>(incoming_.release());  // MPI may use the memory for ever
  free_completed();
  for (orphan& one : orphans_) static_cast<void>(new (std::nothrow) orphan(std::move(one)));
}

bool mpi_progress::make(mpi_duplicate* duplicate, void* plugin) noexcept {
  try {
    std::unique_ptr<mpi_progress> made(
        new mpi_progress(*static_cast<const loaded_plugin*>(plugin), duplicate));
    made->incoming_ = std::make_unique<notice>();
    made->expect_notice();
    duplicate->keep = made.release();
    duplicate->drop = [](void* one) { delete static_cast<mpi_progress*>(one); };
    return true;
  } catch (const std::bad_alloc&) {
    return false;
  }
}

std::shared_ptr<mpi_progress> mpi_progress::open(const std::string& folders,
                                                 std::int64_t communicator,
                                                 std::int64_t timeout_ns) {
  loaded_plugin plugin = load_mpi(folders);
  const mpi_plugin& mpi = *plugin.table;
  char why[128] = "";
  const deadline until = deadline::after(timeout_ns);
  for (int done = 0; done == 0;) {
    if (!mpi.start(&done, why)) fail_mpi(why);
    if (done != 0) break;
    if (until.is_over())
      core::fail(VELO_ERR_PEER, "group", "all processes of the job in MPI_Init",
                 core::text("not all within %.6g ms", static_cast<double>(timeout_ns) / 1e6));
    sleep_ns(5000);
  }
  mpi_duplicate* duplicate = nullptr;
  for (int done = 0; done == 0;) {
    if (!mpi.open(communicator, {make, &plugin}, &duplicate, &done, why))
      core::fail(VELO_ERR_ARGUMENT, "desc.communicator", "a communicator of MPI",
                 core::number(communicator), why);
    if (done != 0) break;
    if (until.is_over())
      core::fail(VELO_ERR_PEER, "group", "all ranks of the communicator",
                 core::text("not all within %.6g ms", static_cast<double>(timeout_ns) / 1e6));
    sleep_ns(20000);
  }
  return {static_cast<mpi_progress*>(duplicate->keep),
          [duplicate, &mpi](mpi_progress*) { mpi.close(duplicate); }};
}

std::uint64_t mpi_progress::add(notice_reader& reader) {
  const std::lock_guard<std::mutex> lock(lock_);
  const std::uint64_t number = next_;
  if (number >= first_part(duplicate_->most_tag)) fail_numbers();
  readers_.emplace(number, &reader);
  ++next_;
  read_early(number, reader);
  return number;
}

std::uint64_t mpi_progress::next_part() const {
  const std::lock_guard<std::mutex> lock(lock_);
  return next_part_;
}

void mpi_progress::add_part(std::uint64_t number, notice_reader& reader) {
  const std::lock_guard<std::mutex> lock(lock_);
  if (number >= static_cast<std::uint64_t>((duplicate_->most_tag - first_tag) / tags_of_group))
    fail_numbers();
  readers_.emplace(number, &reader);
  next_part_ = std::max(next_part_, number + 1);
  read_early(number, reader);
}

void mpi_progress::read_early(std::uint64_t number, notice_reader& reader) {
  for (const notice& one : early_)
    if (one.group == number) reader.read(one);
  drop_early(number);
}

void mpi_progress::drop_early(std::uint64_t number) noexcept {
  early_.erase(std::remove_if(early_.begin(), early_.end(),
                              [&](const notice& one) { return one.group == number; }),
               early_.end());
}

void mpi_progress::add_notes(std::uint64_t number, notice_reader& reader) {
  const std::lock_guard<std::mutex> lock(lock_);
  readers_.emplace(number, &reader);
  read_early(number, reader);
}

void mpi_progress::remove(std::uint64_t group) noexcept {
  const std::lock_guard<std::mutex> lock(lock_);
  readers_.erase(group);
  drop_early(group);
  if (readers_.count(number_of_notes(group)) == 0) drop_early(number_of_notes(group));
}

int mpi_progress::tag(std::uint64_t group, int kind) noexcept {
  return first_tag + static_cast<int>(group) * tags_of_group + kind;
}

void mpi_progress::poll() noexcept {
  const std::unique_lock<std::mutex> lock(lock_, std::try_to_lock);
  if (!lock.owns_lock()) return;  // another thread is reading the notices
  int done = 1;
  char why[128];
  while (receiving_.word != 0 && mpi().test(&receiving_, &done, why) && done != 0) {
    read_notice();
    expect_notice();
    done = 0;
  }
  if (!orphans_.empty()) free_completed();
}

// Whether the group is still to be made, or for a note of a fault is being made. A note of a wait
// is renewed: an early one would pass for one that has just been sent.
bool mpi_progress::is_early(const notice& one) const noexcept {
  if ((one.group & notes_bit) == 0)
    return one.group >= (one.group < first_part(duplicate_->most_tag) ? next_ : next_part_);
  const std::uint64_t outermost = one.group & ~notes_bit;
  return one.note == wait_notes::fault_note &&
         (outermost >= next_ || readers_.count(outermost) != 0);
}

void mpi_progress::read_notice() noexcept {
  const notice& came = *incoming_;
  const auto meant = readers_.find(came.group);
  if (meant != readers_.end()) {
    meant->second->read(came);
  } else if (is_early(came)) {
    try {
      early_.push_back(came);
    } catch (const std::bad_alloc&) {  // the group's waits end with their timeout
    }
  }
}

void mpi_progress::expect_notice() noexcept {
  char why[128];
  mpi().receive(duplicate_, incoming_.get(), sizeof *incoming_, -1, notice_tag, &receiving_, why);
}

void mpi_progress::notify(const notice& one, const std::vector<int>& ranks) noexcept {
  try {
    const auto kept = std::make_shared<notice>(one);
    orphan sent{{}, kept};
    sent.requests.resize(ranks.size());
    char why[128];
    for (std::size_t i = 0; i < ranks.size(); ++i)
      if (ranks[i] != rank())
        mpi().send(duplicate_, kept.get(), sizeof *kept, ranks[i], notice_tag, &sent.requests[i],
                   why);
    adopt(std::move(sent));
  } catch (const std::bad_alloc&) {  // the other ranks' waits end with their timeout
  }
}

void mpi_progress::adopt(orphan all) noexcept {
  const std::lock_guard<std::mutex> lock(lock_);
  try {
    orphans_.push_back(std::move(all));
  } catch (const std::bad_alloc&) {
    // MPI may use the memory for ever.
    static_cast<void>(new (std::nothrow) orphan(std::move(all)));
  }
  free_completed();
}

void mpi_progress::free_completed() noexcept {
  char why[128];
  const auto is_done = [&](orphan& one) {
    bool all = true;
    for (mpi_request& of : one.requests) {
      int done = 0;
      all = mpi().test(&of, &done, why) && done != 0 && all;
    }
    return all;
  };
  orphans_.erase(std::remove_if(orphans_.begin(), orphans_.end(), is_done), orphans_.end());
}

void mpi_progress::watch(const std::vector<int>& processes) {
  const std::lock_guard<std::mutex> lock(lock_);
  if (!processes_.empty()) return;
  for (const int process : processes)
    processes_.emplace_back(process > 0 ? open_process(process) : -1);
}

bool mpi_progress::find_gone(rank_set& gone) const noexcept {
  bool any = false;
  for (std::size_t peer = 0; peer < processes_.size(); ++peer) {
    if (!processes_[peer] || !has_ended(processes_[peer].get())) continue;
    gone.add(static_cast<int>(peer));
    any = true;
  }
  return any;
}

}  // namespace velo::comm

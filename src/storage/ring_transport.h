// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <liburing.h>

#include <cstddef>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "storage/file_descriptor.h"
#include "storage/file_read.h"
#include "storage/transport.h"

namespace feedline::storage {

// Reads local files with io_uring: any number of reads may be in flight without a thread for each.
//
// A range of an open reader needs one read, or several after partial reads. A whole file is
//
//   openat -> (completed) fstat, buffer of its size -> read -> ... -> read of no bytes, or of fewer than requested
//          -> close
//
// and each step is submitted when the previous one completes. Linked requests would need fewer completions, but they
// could neither know the file's size nor reject files that are not regular. Cached data is read within the submitting
// call.
class RingTransport final : public Transport {
 public:
  // Returns nullptr if the kernel has no io_uring, or a seccomp filter rejects it, as in many containers. submit:
  // io_uring_submit(3), which tests replace to simulate responses from the kernel.
  using Submit = int (*)(io_uring* ring);
  static std::unique_ptr<RingTransport> make(Submit submit = ::io_uring_submit);
  ~RingTransport() override;

  std::string_view name() const override { return "io_uring"; }
  void start(Read& read) override;
  Read* finished(Clock::time_point until) override;
  void wake() override;

 private:
  struct Running {
    Read* read = nullptr;
    FileDescriptor own;             // of a whole file, once open
    int descriptor = -1;            // the file to read
    std::optional<FileRead> steps;  // none yet if the file is being opened
    std::uint64_t submission = 0;   // submits its next request to the kernel
    bool has_waited = false;
  };

  explicit RingTransport(Submit submit) : submit_(submit) {}
  io_uring_sqe* request();  // nullptr: the ring is full and the kernel accepts no requests now
  void submit_open(Running& running);
  void submit_read(Running& running);
  void submit_wake_up();
  void advance(Running& running, int result);
  void opened(Running& running, int result);
  void go_on(Running& running);
  void finish(Running& running, Result<std::span<const std::byte>> bytes);
  bool reap();
  void submit_deferred();
  bool submit_and_reap();
  void rest();
  void wait(__kernel_timespec longest);  // until a request has completed

  const Submit submit_;
  io_uring ring_{};
  bool is_ready_ = false;
  FileDescriptor wake_up_;  // an eventfd with a read request always pending
  std::uint64_t wake_ups_ = 0;
  bool woken_ = false;
  std::uint64_t submission_ = 0;  // the next request
  bool in_submission_ = false;    // completions of the last submission, which did not have to wait
  std::vector<std::unique_ptr<Running>> all_;
  std::vector<Running*> free_;
  std::deque<Running*> deferred_;  // whose next request did not fit the ring
  bool wake_up_is_deferred_ = false;
  std::deque<Read*> finished_;
};

}  // namespace feedline::storage

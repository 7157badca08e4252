// SPDX-License-Identifier: Apache-2.0
#pragma once

// Test support: local files. Reads of whole files block until a gate is opened, as with a backend that does not
// respond.

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "storage/storage.h"
#include "storage/transport.h"

namespace feedline::storage {

// Any thread.
class Gate {
 public:
  void wait() {
    std::unique_lock lock(mutex_);
    opened_.wait(lock, [this] { return is_open_; });
  }
  void open() {
    const std::lock_guard lock(mutex_);
    is_open_ = true;
    opened_.notify_all();
  }
  bool is_open() {
    const std::lock_guard lock(mutex_);
    return is_open_;
  }
  std::atomic<std::uint64_t> reads = 0;  // number of reads that reached the gate

 private:
  std::mutex mutex_;
  std::condition_variable opened_;
  bool is_open_ = false;
};

// Returns the results of the underlying transport once the gate is open.
class GatedTransport final : public Transport {
 public:
  GatedTransport(std::unique_ptr<Transport> transport, std::shared_ptr<Gate> gate)
      : transport_(std::move(transport)), gate_(std::move(gate)) {}
  std::string_view name() const override { return "gated"; }
  void start(Read& read) override {
    ++gate_->reads;
    waiting_.push_back(&read);
  }
  Read* finished(Clock::time_point until) override {
    if (gate_->is_open())
      for (; !waiting_.empty(); waiting_.pop_back()) transport_->start(*waiting_.back());
    return transport_->finished(until);
  }
  void wake() override { transport_->wake(); }

 private:
  const std::unique_ptr<Transport> transport_;
  const std::shared_ptr<Gate> gate_;
  std::vector<Read*> waiting_;
};

class GatedStorage final : public Storage {
 public:
  // own_transport: if false, reads use threads, which notice an open gate immediately. The storage's own transport
  // checks the gate when it is polled for finished reads.
  explicit GatedStorage(std::shared_ptr<Gate> gate, bool own_transport = true)
      : gate_(std::move(gate)), own_transport_(own_transport) {}
  Result<std::unique_ptr<Reader>> open(const std::string& path, Access access) const override {
    return local_storage()->open(path, access);
  }
  Result<std::span<const std::byte>> read_all(const std::string& path, memory::ByteBuffer& buffer,
                                              std::uint64_t most) const override {
    ++gate_->reads;
    auto got = local_storage()->read_all(path, buffer, most);  // writes to the memory at once, and again at the end
    gate_->wait();
    if (got) got = local_storage()->read_all(path, buffer, most);
    return got;
  }
  Result<std::vector<Entry>> list(const std::string& folder) const override { return local_storage()->list(folder); }
  Result<ObjectStat> stat(const std::string& path) const override { return local_storage()->stat(path); }
  Result<bool> is_directory(const std::string& path) const override { return local_storage()->is_directory(path); }
  std::unique_ptr<Transport> own_transport() const override {
    auto transport = own_transport_ ? local_storage()->own_transport() : nullptr;
    return transport ? std::make_unique<GatedTransport>(std::move(transport), gate_) : nullptr;
  }

 private:
  const std::shared_ptr<Gate> gate_;
  const bool own_transport_;
};

}  // namespace feedline::storage

// SPDX-License-Identifier: Apache-2.0
#pragma once

// For tests: a device whose memory size, spare pages, transfer times, order of arrival and lost batches are set by the
// test. The device records its calls.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "device/device.h"

namespace feedline::pipeline {

class FakeAllocator final : public memory::Allocator {
 public:
  std::atomic<std::size_t> blocks = 1000;  // that may still be allocated
  std::atomic<std::uint64_t> spare = 0;
  std::function<void()> before_allocate;  // called at the next allocation
  std::function<void()> before_reuse;
  struct Range {
    std::byte* data;
    std::size_t first, last;
  };
  std::vector<Range> asked;
  std::optional<std::pair<std::size_t, std::size_t>> prepared;  // bytes, blocks

  Result<std::byte*> allocate(std::size_t bytes) override {
    if (before_allocate) std::exchange(before_allocate, nullptr)();
    if (blocks == 0 || bytes > kMost)
      return std::unexpected(Error{ErrorCode::kStorage, "no memory for a batch", {}, 0});
    --blocks;
    return static_cast<std::byte*>(std::aligned_alloc(kAlignment, (bytes + kAlignment - 1) / kAlignment * kAlignment));
  }
  void release(std::byte* data, std::size_t bytes) override {
    ++blocks;
    std::memset(data, 0xDD, bytes);  // makes use after free visible
    std::free(data);
  }
  Result<void> prepare(std::size_t bytes, std::size_t count) override {
    prepared = {bytes, count};
    return {};
  }
  void reuse_pages(std::byte* data, std::size_t first, std::size_t last) override {
    if (before_reuse) before_reuse();
    asked.push_back({data, first, last});
  }
  std::uint64_t spare_pages() const override { return spare; }

 private:
  static constexpr std::size_t kMost = std::size_t{1} << 40;
};

// The host device, with behaviour that the test can change.
class FakeDevice final : public device::Device {
 public:
  std::shared_ptr<FakeAllocator> memory = std::make_shared<FakeAllocator>();
  std::shared_ptr<FakeAllocator> variable_memory = std::make_shared<FakeAllocator>();

  std::string_view name() const override { return "fake"; }
  bool is_host() const override { return true; }
  std::shared_ptr<memory::Allocator> allocator() override { return memory; }
  std::shared_ptr<memory::Allocator> variable_allocator() override { return variable_memory; }
  Result<device::Begun> begin(std::shared_ptr<memory::Lease> filled) override {
    return device::Begun{std::move(filled), nullptr};
  }
};

// A device with its own memory, which a copying thread fills: each batch arrives after a set delay, and several may be
// in flight.
class SlowDevice final : public device::Device {
 public:
  // The test sets these values, indexed by the number of the begin() call, counted from 0.
  struct Behaviour {
    std::function<std::chrono::milliseconds(std::uint64_t)> takes = [](std::uint64_t) {
      return std::chrono::milliseconds(0);
    };
    std::function<bool(std::uint64_t)> refuses = [](std::uint64_t) { return false; };  // begin() fails
    std::function<bool(std::uint64_t)> loses = [](std::uint64_t) { return false; };    // the copy fails
    std::function<void()> before_begin = [] {};
  };
  SlowDevice() = default;
  explicit SlowDevice(Behaviour behaviour) : behaviour_(std::move(behaviour)) {}

  const std::shared_ptr<FakeAllocator> memory = std::make_shared<FakeAllocator>();     // for filling batches
  const std::shared_ptr<FakeAllocator> on_device = std::make_shared<FakeAllocator>();  // destination of copies

  std::string_view name() const override { return "slow"; }
  DeviceLocation location() const override { return {DeviceKind::kCuda, 3}; }
  bool is_host() const override { return false; }
  std::shared_ptr<memory::Allocator> allocator() override { return memory; }
  Result<device::Begun> begin(std::shared_ptr<memory::Lease> filled) override {
    behaviour_.before_begin();
    const std::uint64_t number = works_->begun++;
    if (behaviour_.refuses(number)) return std::unexpected(gone());
    FEEDLINE_TRY(auto copy, memory::Lease::take(on_device, filled->bytes()));
    auto arrival = std::make_shared<Arrival>();
    works_->add(behaviour_.takes(number), {std::move(filled), copy, arrival, behaviour_.loses(number)});
    return device::Begun{std::move(copy), std::move(arrival)};
  }

  std::uint64_t begun() const { return works_->begun; }
  std::uint64_t on_their_way() const { return works_->on_their_way; }
  static Error gone() { return Error{ErrorCode::kStorage, "the device is gone", {}, 0}; }

 private:
  class Arrival final : public Ready {
   public:
    bool is_ready() const override {
      const std::lock_guard lock(mutex_);
      return ended_;
    }
    Result<void> wait() const override {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return ended_; });
      if (lost_) return std::unexpected(gone());
      return {};
    }
    void end(bool lost) {
      {
        const std::lock_guard lock(mutex_);
        ended_ = true;
        lost_ = lost;
      }
      changed_.notify_all();
    }

   private:
    mutable std::mutex mutex_;
    mutable std::condition_variable changed_;
    bool ended_ = false, lost_ = false;
  };
  struct Copy {
    std::shared_ptr<memory::Lease> from, to;
    std::shared_ptr<Arrival> arrival;
    bool lost = false;
  };
  // The copying thread and its queue. The last owner joins the thread: copies may outlive the user of the device, but
  // not the device.
  class Works {
   public:
    std::atomic<std::uint64_t> begun = 0, on_their_way = 0;

    ~Works() {
      {
        const std::lock_guard lock(mutex_);
        ending_ = true;
      }
      changed_.notify_all();
      thread_.join();
    }
    void add(std::chrono::milliseconds takes, Copy copy) {
      ++on_their_way;
      {
        const std::lock_guard lock(mutex_);
        due_.emplace(std::chrono::steady_clock::now() + takes, std::move(copy));
      }
      changed_.notify_all();
    }

   private:
    void run() {
      std::unique_lock lock(mutex_);
      while (!ending_ || !due_.empty()) {
        if (due_.empty()) {
          changed_.wait(lock);
        } else if (const auto next = due_.begin()->first; !ending_ && std::chrono::steady_clock::now() < next) {
          changed_.wait_until(lock, next);
        } else {
          Copy copy = std::move(due_.extract(due_.begin()).mapped());
          lock.unlock();
          if (!copy.lost) std::memcpy(copy.to->data(), copy.from->data(), copy.from->bytes());
          copy.from.reset();
          copy.to.reset();
          --on_their_way;
          copy.arrival->end(copy.lost);
          lock.lock();
        }
      }
    }

    std::mutex mutex_;
    std::condition_variable changed_;
    std::multimap<std::chrono::steady_clock::time_point, Copy> due_;
    bool ending_ = false;
    std::thread thread_{[this] { run(); }};  // the last member: it uses the others
  };

  const Behaviour behaviour_;
  const std::unique_ptr<Works> works_ = std::make_unique<Works>();
};

}  // namespace feedline::pipeline

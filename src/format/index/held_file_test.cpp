// SPDX-License-Identifier: Apache-2.0
#include "format/index/held_file.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <thread>

namespace feedline::format {
namespace {

// A reader whose bytes are computed from their offsets. Counts reads, and can be configured to fail or to end early.
class CountedReader final : public storage::Reader {
 public:
  explicit CountedReader(std::uint64_t bytes) : bytes_(bytes) {}
  Result<storage::ObjectStat> stat() const override { return storage::ObjectStat{bytes_, 0}; }
  Result<std::size_t> read_at(std::uint64_t offset, std::span<std::byte> out) const override {
    ++reads;
    if (is_failing) return storage_error("the disk is gone", 0);
    const auto got = static_cast<std::size_t>(std::min<std::uint64_t>(out.size(), end - std::min(end, offset)));
    for (std::size_t i = 0; i < got; ++i) out[i] = byte_at(offset + i);
    return got;
  }
  Result<std::optional<std::span<const std::byte>>> view(std::uint64_t, std::size_t) const override {
    return std::nullopt;
  }
  const std::string& name() const override { return name_; }

  static std::byte byte_at(std::uint64_t location) {
    return static_cast<std::byte>(location * 31 + (location >> 8) * 7);
  }

  mutable std::atomic<int> reads{0};
  bool is_failing = false;
  std::uint64_t end = ~std::uint64_t{0};

 private:
  std::uint64_t bytes_;
  std::string name_ = "counted";
};

constexpr std::uint64_t kBytes = 1'000'003;  // not a multiple of the block size

bool is_right(const std::byte* found, std::uint64_t offset, std::uint64_t count) {
  for (std::uint64_t i = 0; i < count; ++i)
    if (found[i] != CountedReader::byte_at(offset + i)) return false;
  return true;
}

TEST(HeldFile, ReadsEveryBlockOnce) {
  const auto held = HeldFile::make(kBytes);
  ASSERT_NE(held, nullptr);
  CountedReader reader(kBytes);
  reader.end = kBytes;
  for (int round = 0; round < 2; ++round) {
    for (std::uint64_t offset = 0; offset < kBytes; offset += 1'777) {
      const std::uint64_t count = std::min<std::uint64_t>(2'050, kBytes - offset);
      held->prefetch(offset, count);
      const std::byte* const found = held->find(reader, offset, count);
      ASSERT_NE(found, nullptr);
      ASSERT_TRUE(is_right(found, offset, count)) << offset;
    }
    EXPECT_EQ(reader.reads, 16);  // blocks of 64 KiB
  }
  EXPECT_TRUE(is_right(held->find(reader, 0, kBytes), 0, kBytes));
}

TEST(HeldFile, WhatCannotBeReadIsLeftToTheCallerAndTriedAgain) {
  const auto held = HeldFile::make(kBytes);
  CountedReader reader(kBytes);
  ASSERT_NE(held->find(reader, 100, 10), nullptr);
  reader.is_failing = true;
  EXPECT_NE(held->find(reader, 200, 10), nullptr) << "it is already in memory";
  EXPECT_EQ(held->find(reader, 500'000, 10), nullptr);
  reader.is_failing = false;
  reader.end = 500'000;  // truncated after it was opened
  EXPECT_EQ(held->find(reader, 499'990, 10), nullptr);
  reader.end = kBytes;
  const std::byte* const found = held->find(reader, 499'990, 20);
  ASSERT_NE(found, nullptr);
  EXPECT_TRUE(is_right(found, 499'990, 20));
}

TEST(HeldFile, ThreadsNeverSeeABlockThatIsNotThere) {
  const auto held = HeldFile::make(kBytes);
  CountedReader reader(kBytes);
  std::atomic<int> wrong{0}, left_out{0};
  {
    std::vector<std::jthread> threads;
    for (std::uint64_t t = 0; t < 4; ++t)
      threads.emplace_back([&, t] {
        for (std::uint64_t i = 0; i < 3'000; ++i) {
          const std::uint64_t offset = (i * 7'919 + t * 13) * 127 % (kBytes - 300);
          const std::byte* const found = held->find(reader, offset, 300);
          if (found == nullptr)
            ++left_out;
          else if (!is_right(found, offset, 300))
            ++wrong;
        }
      });
  }
  EXPECT_EQ(wrong, 0);
  EXPECT_LT(left_out, 4 * 3'000);
  EXPECT_EQ(reader.reads, 16);
}

TEST(HeldFile, HasNoPlaceForFilesLargerThanMemory) {
  EXPECT_EQ(HeldFile::make(std::uint64_t{1} << 60), nullptr);
  EXPECT_EQ(HeldFile::make(0), nullptr);
}

}  // namespace
}  // namespace feedline::format

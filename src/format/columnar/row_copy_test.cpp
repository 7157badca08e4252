// SPDX-License-Identifier: Apache-2.0
#include "format/columnar/row_copy.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <mutex>
#include <set>
#include <thread>
#include <utility>
#include <vector>

namespace feedline::format {
namespace {

constexpr std::uint64_t kSamples = 1000, kBlock = 64;
const std::vector<ArraySpec> kSpecs{{DType::kInt64, {}},   {DType::kFloat32, {2}}, {DType::kUint8, {}},
                                    {DType::kUint8, {33}}, {DType::kFloat16, {}},  {DType::kFloat32, {0}}};

// Byte i of a field of a sample.
std::byte byte_of(std::uint64_t sample, std::size_t field, std::size_t i) {
  return static_cast<std::byte>(sample * 7 + field * 3 + i);
}

// Fills fields in two parts: the first two fields, and the others.
class RowCopies : public testing::Test {
 protected:
  Result<void> fill(std::size_t part, std::uint64_t first, std::uint64_t end, std::span<const FieldRows> fields) {
    {
      const std::lock_guard lock(mutex_);
      EXPECT_TRUE(filled_.insert({first, part}).second) << "part " << part << " of block " << first << " again";
    }
    if (fails_ && bad_ >= first && bad_ < end && part == 1)
      return fails_ == ErrorCode::kData ? Result<void>(data_error("bad", "format"))
                                        : Result<void>(storage_error("unreadable", 0));
    for (std::size_t field = part == 0 ? 0 : 2; field < (part == 0 ? 2 : fields.size()); ++field)
      for (std::uint64_t sample = first; sample < end; ++sample)
        for (std::size_t i = 0; i < fields[field].spec.bytes(); ++i)
          fields[field].data[(sample - first) * fields[field].stride + i] = byte_of(sample, field, i);
    return {};
  }

  // Copies samples to the rows of a batch in reverse order, and compares all that were copied. Returns the others.
  std::vector<std::uint64_t> copy(const std::vector<std::uint64_t>& samples,
                                  const std::vector<ArraySpec>& specs = kSpecs) {
    std::vector<SampleRow> rows;
    for (std::size_t i = 0; i < samples.size(); ++i) rows.push_back({samples[i], samples.size() - 1 - i});
    std::vector<std::vector<std::byte>> memory;
    std::vector<ArrayView> views;
    for (const ArraySpec& spec : specs) memory.emplace_back(samples.size() * spec.bytes() + 1, std::byte{0xcc});
    for (std::size_t i = 0; i < specs.size(); ++i) views.push_back({memory[i].data(), specs[i]});
    std::vector<SampleRow> others;
    const std::uint64_t bytes = copy_->copy(
        rows, views, [&](auto... arguments) { return fill(arguments...); }, others);
    EXPECT_EQ(bytes, RowCopy::bytes_of(samples.size() - others.size(), specs));
    std::set<std::uint64_t> left;
    std::vector<std::uint64_t> numbers;
    for (const SampleRow& one : others) left.insert(one.row), numbers.push_back(one.sample);
    for (const SampleRow& one : rows)
      for (std::size_t field = 0; field < specs.size(); ++field)
        for (std::size_t i = 0; i < specs[field].bytes(); ++i) {
          const std::byte wanted = left.contains(one.row) ? std::byte{0xcc} : byte_of(one.sample, field, i);
          if (memory[field][one.row * specs[field].bytes() + i] != wanted) ADD_FAILURE() << one.sample << " " << field;
        }
    for (const auto& field : memory) EXPECT_EQ(field.back(), std::byte{0xcc});
    return numbers;
  }

  std::unique_ptr<RowCopy> copy_ = RowCopy::make(kSamples, kSpecs, 2, kBlock);
  std::mutex mutex_;
  std::set<std::pair<std::uint64_t, std::size_t>> filled_;  // guarded by mutex_
  std::optional<ErrorCode> fails_;
  std::uint64_t bad_ = 0;
};

TEST_F(RowCopies, CopiesSamplesInAnyOrderAndFillsOnlyTheirBlocks) {
  EXPECT_TRUE(copy({999, 3, 3, 0, 63}).empty());
  EXPECT_EQ(filled_.size(), 4u);
  EXPECT_EQ(copy_->filled_bytes(), RowCopy::bytes_of(64 + 1000 % 64, kSpecs));
  std::vector<std::uint64_t> all;
  for (std::uint64_t i = 0; i < kSamples; ++i) all.push_back(i * 377 % kSamples);
  EXPECT_FALSE(copy_->is_complete());
  EXPECT_TRUE(copy(all).empty());
  EXPECT_TRUE(copy_->is_complete());
  EXPECT_EQ(copy_->filled_bytes(), RowCopy::bytes_of(kSamples, kSpecs));
  EXPECT_TRUE(copy({}).empty());
}

TEST_F(RowCopies, LeavesTheSamplesOfABlockWithABadSample) {
  fails_ = ErrorCode::kData;
  bad_ = 130;
  EXPECT_EQ(copy({1, 130, 900, 128}), (std::vector<std::uint64_t>{130, 128}));
  EXPECT_EQ(copy({191, 192}), (std::vector<std::uint64_t>{191})) << "and does not fill the block again";
  std::vector<std::uint64_t> all(kSamples);
  for (std::uint64_t i = 0; i < kSamples; ++i) all[i] = i;
  EXPECT_EQ(copy(all).size(), kBlock);
  EXPECT_TRUE(copy_->is_complete());
}

TEST_F(RowCopies, FillsABlockAgainIfItsFileCouldNotBeRead) {
  fails_ = ErrorCode::kStorage;
  bad_ = 5;
  const auto leaves = [&] {
    std::vector<SampleRow> others;
    std::vector<std::byte> memory(RowCopy::bytes_of(1, kSpecs));
    std::vector<ArrayView> views;
    for (const ArraySpec& spec : kSpecs) views.push_back({memory.data(), spec});
    const SampleRow one{7, 0};
    copy_->copy(
        {&one, 1}, views, [&](auto... arguments) { return filled_.clear(), fill(arguments...); }, others);
    return !others.empty();
  };
  EXPECT_TRUE(leaves());
  EXPECT_TRUE(leaves());
  fails_.reset();
  EXPECT_FALSE(leaves());
}

TEST_F(RowCopies, LeavesAllSamplesIfAFieldHasAnotherShape) {
  auto specs = kSpecs;
  specs[1] = {DType::kFloat32, {3}};
  EXPECT_EQ(copy({1, 2}, specs).size(), 2u);
  specs.pop_back();
  EXPECT_EQ(copy({1, 2}, specs).size(), 2u);
  EXPECT_TRUE(filled_.empty());
}

TEST_F(RowCopies, ThreadsFillEachPartOnce) {
  std::vector<std::thread> threads;
  std::atomic<std::size_t> left{0};
  for (std::uint64_t thread = 0; thread < 4; ++thread)
    threads.emplace_back([&, thread] {
      std::vector<std::uint64_t> samples;
      for (std::uint64_t i = 0; i < kSamples; ++i) samples.push_back((i * 377 + thread * 91) % kSamples);
      left += copy(samples).size();
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(left, 0u);
  EXPECT_EQ(filled_.size(), 2 * ((kSamples + kBlock - 1) / kBlock));
}

}  // namespace
}  // namespace feedline::format

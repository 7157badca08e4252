// SPDX-License-Identifier: Apache-2.0
#pragma once

// Tests that storages must pass; they are implemented in storage_contract_test.cpp. Every storage runs ObjectContract.
// A storage whose names are paths of local files also runs StorageContract:
//
//   INSTANTIATE_TEST_SUITE_P(MyStorage, ObjectContract, ::testing::Values(StorageUnderTest{...}), name_of_storage);

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "storage/storage.h"
#include "storage/temporary_folder.h"

namespace feedline::storage {

struct StorageUnderTest {
  std::string name;
  std::function<std::shared_ptr<const Storage>()> make;
  // Stores an object and returns its name in the storage. May use the test's folder. Tests use each name once. The
  // default writes a local file and returns its path.
  std::function<std::string(const TemporaryFolder& folder, const std::string& name, const std::string& content)> write =
      [](const auto& folder, const auto& name, const auto& content) { return folder.write(name, content); };
  friend void PrintTo(const StorageUnderTest& storage, std::ostream* out) { *out << storage.name; }
};

inline std::string name_of_storage(const ::testing::TestParamInfo<StorageUnderTest>& info) { return info.param.name; }

// Returns bytes in which a shift, a swap or a repetition can be detected.
inline std::string recognisable_bytes(std::size_t count) {
  std::string bytes(count, '\0');
  for (std::size_t i = 0; i < count; ++i) bytes[i] = static_cast<char>((i * 2654435761u) >> 13);
  return bytes;
}

inline std::string text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// Tests reading objects of any storage.
class ObjectContract : public ::testing::TestWithParam<StorageUnderTest> {
 protected:
  std::string write(const std::string& name, const std::string& content) const {
    return GetParam().write(folder_, name, content);
  }
  std::string read_at(const Reader& reader, std::uint64_t offset, std::size_t bytes) const {
    std::vector<std::byte> out(bytes);
    const auto got = reader.read_at(offset, out);
    EXPECT_TRUE(got) << got.error().message();
    return got ? text_of(std::span(out).first(*got)) : std::string("(error)");
  }
  std::string read_all(const std::string& path) const {
    memory::ByteBuffer buffer;
    const auto got = storage_->read_all(path, buffer, memory::kLeastSampleBytes);
    EXPECT_TRUE(got) << got.error().message();
    return got ? text_of(*got) : std::string("(error)");
  }
  // Expects kData with the path and both sizes, and that no memory is allocated for the rejected object.
  void expect_too_large(const std::string& path, std::uint64_t bytes, std::uint64_t most) const {
    memory::ByteBuffer buffer;
    const auto got = storage_->read_all(path, buffer, most);
    ASSERT_FALSE(got) << path;
    EXPECT_EQ(got.error().code, ErrorCode::kData);
    for (const std::string& part : {path, std::to_string(bytes), std::to_string(most)})
      EXPECT_NE(got.error().message().find(part), std::string::npos) << got.error().message();
    EXPECT_LE(buffer.capacity(), most + 1);
  }

  TemporaryFolder folder_;
  std::shared_ptr<const Storage> storage_ = GetParam().make();
};

// Tests reading, listing and looking up local files.
class StorageContract : public ObjectContract {
 protected:
  // Expects kStorage with the path and the reason.
  static void expect_storage_error(const Error& error, const std::string& path) {
    EXPECT_EQ(error.code, ErrorCode::kStorage) << error.message();
    EXPECT_NE(error.message().find(path), std::string::npos) << error.message();
    EXPECT_EQ(error.where.shard, path);
    EXPECT_NE(error.system_errno, 0) << error.message();
  }
  void expect_unreadable(const std::string& path) const {
    memory::ByteBuffer buffer;
    const auto all = storage_->read_all(path, buffer, memory::kLeastSampleBytes);
    ASSERT_FALSE(all) << path;
    expect_storage_error(all.error(), path);
    for (const Access access : {Access::kRead, Access::kMap}) {
      const auto reader = storage_->open(path, access);
      ASSERT_FALSE(reader) << path;
      expect_storage_error(reader.error(), path);
    }
  }
};

}  // namespace feedline::storage

// SPDX-License-Identifier: Apache-2.0
#include "format/numpy_files/numpy_format.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <cstring>

#include "format/deflated_fixture.h"
#include "format/inspected.h"
#include "format/numpy_files/zip_directory.h"
#include "storage/short_reads_storage.h"
#include "storage/temporary_folder.h"

namespace feedline::format {
namespace {

using storage::TemporaryFolder;

constexpr int kRawWindow = -15;  // for deflateInit2(): deflate without a header

std::string npy(const std::string& descr, const std::string& shape, const std::string& data,
                const std::string& order = "False") {
  std::string dict = "{'descr': '" + descr + "', 'fortran_order': " + order + ", 'shape': " + shape + ", }\n";
  return "\x93NUMPY" + std::string("\1\0", 2) + static_cast<char>(dict.size()) + '\0' + dict + data;
}

template <typename Number>
std::string raw(Number number) {
  return {reinterpret_cast<const char*>(&number), sizeof number};
}

struct Member {
  std::string name, plain;
  bool is_deflated = false;
};

// If `big`, writes sizes and offsets in ZIP64 fields, like NumPy.
std::string zip(const std::vector<Member>& members, bool big = false) {
  std::string file, directory;
  for (const Member& member : members) {
    const std::string stored = member.is_deflated ? deflated(member.plain, kRawWindow) : member.plain;
    const auto crc = static_cast<std::uint32_t>(
        crc32(0, reinterpret_cast<const Bytef*>(member.plain.data()), static_cast<uInt>(member.plain.size())));
    const auto method = static_cast<std::uint16_t>(member.is_deflated ? 8 : 0);
    const auto small = [&](std::uint64_t number) {
      return raw(big ? 0xffffffffU : static_cast<std::uint32_t>(number));
    };
    const std::string extra = !big ? ""
                                   : raw(std::uint16_t{1}) + raw(std::uint16_t{24}) +
                                         raw(std::uint64_t{member.plain.size()}) + raw(std::uint64_t{stored.size()}) +
                                         raw(std::uint64_t{file.size()});
    directory += "PK\1\2" + raw(std::uint32_t{45}) + raw(std::uint16_t{0}) + raw(method) + raw(std::uint32_t{0}) +
                 raw(crc) + small(stored.size()) + small(member.plain.size()) +
                 raw(static_cast<std::uint16_t>(member.name.size())) + raw(static_cast<std::uint16_t>(extra.size())) +
                 raw(std::uint16_t{0}) + raw(std::uint64_t{0}) + small(file.size()) + member.name + extra;
    file += "PK\3\4" + std::string(22, '\0') + raw(static_cast<std::uint16_t>(member.name.size())) +
            raw(std::uint16_t{3}) + member.name + "xyz" + stored;
  }
  const std::string count = raw(static_cast<std::uint16_t>(members.size()));
  return file + directory + "PK\5\6" + std::string(4, '\0') + count + count +
         raw(static_cast<std::uint32_t>(directory.size())) + raw(static_cast<std::uint32_t>(file.size())) +
         std::string(2, '\0');
}

class Numpy : public ::testing::Test {
 protected:
  Result<std::shared_ptr<const Format>> opened(const std::string& source, const std::vector<std::string>& fields = {},
                                               std::shared_ptr<const storage::Storage> storage = nullptr) const {
    OpenOptions options;
    options.fields = fields;
    options.storage = std::move(storage);
    return open(source, options);
  }
  std::string refusal(const std::string& content, const std::vector<std::string>& fields = {}) const {
    const auto format = opened(folder_.write("x.npz", content), fields);
    return format ? "opens" : format.error().what;
  }
  // Returns all rows of a field whose elements have `size` bytes.
  static std::string rows(const Format& format, std::size_t field = 0) {
    const auto& all = dynamic_cast<const RowFormat&>(format);
    const std::size_t bytes = all.fields()[field].array.bytes();
    std::string text(all.size() * bytes, '\0');
    std::vector<std::string> others;
    for (std::uint64_t i = 0; i < all.size(); ++i) {
      std::vector<std::string> rooms;
      for (const FieldDescription& one : all.fields()) rooms.emplace_back(one.array.bytes(), '\0');
      std::vector<ArrayView> views;
      for (std::size_t f = 0; f < rooms.size(); ++f)
        views.push_back({reinterpret_cast<std::byte*>(rooms[f].data()), all.fields()[f].array});
      EXPECT_TRUE(all.fill({&i, 1}, views));
      text.replace(i * bytes, bytes, rooms[field]);
    }
    return text;
  }

  TemporaryFolder folder_;
};

#define EXPECT_CONTAINS(text, part) EXPECT_NE((text).find(part), std::string::npos) << (text)

TEST_F(Numpy, AFileIsRowsMappedOrRead) {
  const std::string path = folder_.write("values.npy", npy("<u2", "(3, 2)", "aAbBcCdDeEfF"));
  for (const auto& storage : {storage::local_storage(), storage::short_reads_storage()}) {
    const auto format = opened(path, {}, storage);
    ASSERT_TRUE(format) << format.error().message();
    EXPECT_EQ((*format)->name(), "numpy");
    EXPECT_EQ((*format)->fields()[0].name, "values");
    EXPECT_EQ((*format)->size(), 3u);
    EXPECT_EQ(rows(**format), "aAbBcCdDeEfF");
  }
  const Where where = (*opened(path))->where(2);
  EXPECT_EQ(where.shard, path);
  EXPECT_EQ(where.key, "row 2");
  EXPECT_EQ((*opened(path, {"y=values"}))->fields()[0].name, "y");
}

TEST_F(Numpy, OtherOrdersBecomeOurs) {
  EXPECT_EQ(rows(**opened(folder_.write("a.npy", npy(">u2", "(2, 2)", "AaBbCcDd")))), "aAbBcCdD");
  EXPECT_EQ(rows(**opened(folder_.write("b.npy", npy("|u1", "(2, 3)", "adbecf", "True")))), "abcdef");
  EXPECT_EQ(rows(**opened(folder_.write("c.npy", npy(">u2", "(2, 2)", "1A3C2B4D", "True")))), "A1B2C3D4");
  EXPECT_EQ(rows(**opened(folder_.write("d.npy", npy("|u1", "(2, 2, 2)", "aecgbfdh", "True")))), "abcdefgh");
}

TEST_F(Numpy, MembersOfAnArchiveAreFields) {
  const Member x{"x.npy", npy("|u1", "(2, 3)", "abcdef"), false}, y{"y.npy",
                                                                    npy("<i8", "(2,)",
                                                                        "11111111"
                                                                        "22222222"),
                                                                    true};
  for (const bool big : {false, true}) {
    const auto format = opened(folder_.write("x.npz", zip({x, y}, big)));
    ASSERT_TRUE(format) << format.error().message();
    EXPECT_EQ((*format)->fields()[1].name, "y");
    EXPECT_EQ(rows(**format, 0), "abcdef");
    EXPECT_EQ(rows(**format, 1), "1111111122222222");
  }
  EXPECT_EQ(rows(**opened(folder_.path("x.npz"), {"label=y"})), "1111111122222222");
  EXPECT_CONTAINS(refusal(zip({x, y}), {"z"}), "no array 'z'; the file has x, y");
  EXPECT_CONTAINS(refusal(zip({x, {"y.npy", npy("|u1", "(1,)", "a")}})), "has 1 rows");
  EXPECT_CONTAINS(refusal(zip({})), "contains no arrays");
}

TEST_F(Numpy, RowsOfSeveralFilesFollowEachOther) {
  folder_.write("part-0.npy", npy("|u1", "(2,)", "ab"));
  folder_.write("part-1.npy", npy("|u1", "(3,)", "cde"));
  const auto format = opened(folder_.path("part-{0..1}.npy"));
  ASSERT_TRUE(format) << format.error().message();
  EXPECT_EQ(rows(**format), "abcde");
  EXPECT_EQ((*format)->fields()[0].name, "part");
  EXPECT_EQ((*format)->where(1).shard, folder_.path("part-0.npy"));
  EXPECT_EQ((*format)->where(2).shard, folder_.path("part-1.npy"));
  EXPECT_EQ((*format)->where(2).key, "row 0");
  folder_.write("part-1.npy", npy("|u1", "(3, 1)", "cde"));
  EXPECT_FALSE(opened(folder_.path("part-{0..1}.npy")));
  EXPECT_EQ(inspected(folder_.path("part-{0..1}.npy")), "no_field:error");
}

TEST_F(Numpy, ImagesAreRecords) {
  const std::string source = folder_.write("x.npy", npy("|u1", "(2, 1, 2, 3)", "abcdefghijkl"));
  const auto format = opened(source, {"image:image"});
  ASSERT_TRUE(format) << format.error().message();
  const auto records = records_of(*format);
  ASSERT_TRUE(records);
  memory::Record record;
  ASSERT_TRUE(records->read(1, record));
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(record.fields[0].pixels.data), 6), "ghijkl");
  EXPECT_TRUE(records->is_in_memory());
}

TEST_F(Numpy, HeadersThatLieAreErrors) {
  EXPECT_CONTAINS(refusal(npy("<f4", "(3, 2)", std::string(23, 'x'))), "23 of 24 bytes");
  EXPECT_CONTAINS(refusal(npy("<f4", "(4611686018427387904, 4)", "")), "damaged header");
  EXPECT_CONTAINS(refusal(npy("|O", "(3,)", "")), "Python objects");
  EXPECT_CONTAINS(refusal(npy("<f4", "()", "1234")), "a single number");
  EXPECT_CONTAINS(refusal(npy("<f4", "(0, 2)", "")), "");
  EXPECT_CONTAINS(refusal("\x93NUMPY"), "version 0");
  EXPECT_CONTAINS(refusal("something else"), "neither a .npy nor a .npz file");
  EXPECT_CONTAINS(refusal(""), "an empty file");
}

TEST_F(Numpy, EveryDamagedByteOfAnArchiveIsAnErrorOrTheSameRows) {
  const std::string good = zip({{"x.npy", npy("|u1", "(2, 3)", "abcdef")}, {"y.npy", npy("|u1", "(2,)", "gh"), true}});
  ASSERT_EQ(refusal(good), "opens");
  for (std::size_t i = 0; i < good.size(); ++i)
    for (const int change : {1, 0x80, 0xff}) {
      std::string damaged = good;
      damaged[i] = static_cast<char>(damaged[i] ^ change);
      const auto format = opened(folder_.write("x.npz", damaged), {}, nullptr);
      if (!format || (*format)->fields().size() != 2) continue;
      EXPECT_EQ(rows(**format, 0), "abcdef") << i;
      EXPECT_EQ(rows(**format, 1), "gh") << i;
    }
  for (std::size_t bytes = 0; bytes < good.size(); ++bytes) EXPECT_NE(refusal(good.substr(0, bytes)), "opens") << bytes;
}

TEST(ZipDirectory, WhatItSaysIsChecked) {
  const auto refused = [](const std::string& file) {
    const auto members = zip_members(std::as_bytes(std::span(file)));
    return members ? std::string("taken") : members.error().what;
  };
  const std::string good = zip({{"x.npy", "plain bytes"}});
  const std::size_t entry = good.find("PK\1\2"), end = good.find("PK\5\6");
  EXPECT_EQ(refused(good), "taken");
  EXPECT_EQ(refused(good + std::string(65'000, '\0')), "taken") << "a comment";
  const auto with = [&](std::size_t at, auto number) {
    std::string file = good;
    std::memcpy(file.data() + at, &number, sizeof number);
    return refused(file);
  };
  EXPECT_CONTAINS(with(entry + 8, std::uint16_t{1}), "is encrypted");
  EXPECT_CONTAINS(with(entry + 10, std::uint16_t{12}), "compressed with method 12");
  EXPECT_CONTAINS(with(entry + 20, std::uint32_t{5000}), "extends beyond the end");
  EXPECT_CONTAINS(with(entry + 24, std::uint32_t{5}), "has two different sizes");
  EXPECT_CONTAINS(with(entry + 24, ~std::uint32_t{0}), "damaged sizes");
  EXPECT_CONTAINS(with(entry + 42, std::uint32_t{1}), "extends beyond the end");
  EXPECT_CONTAINS(with(entry + 28, std::uint16_t{60000}), "is truncated");
  EXPECT_CONTAINS(with(end + 10, std::uint16_t{9}), "extends beyond the end");
  EXPECT_CONTAINS(with(end + 12, std::uint32_t{9000}), "extends beyond the end");
  EXPECT_CONTAINS(with(end + 16, std::uint32_t{0}), "entry 0 of the directory is damaged");
  EXPECT_CONTAINS(refused("PK"), "is truncated");
  EXPECT_CONTAINS(refused(std::string(100, 'x')), "no directory");
  std::string bomb = zip({{"x.npy", std::string(1000, 'x'), true}});
  const std::uint32_t huge = 0x7fffffff;
  std::memcpy(bomb.data() + bomb.find("PK\1\2") + 24, &huge, sizeof huge);
  EXPECT_CONTAINS(refused(bomb), "is too small for its uncompressed size");
}

}  // namespace
}  // namespace feedline::format

// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "format/format_contract.h"
#include "format/inspected.h"
#include "format/row_columns/mds/mds_writer.h"
#include "storage/mapped_storage.h"
#include "storage/short_reads_storage.h"
#include "storage/temporary_folder.h"

namespace feedline::format {
namespace {

using storage::TemporaryFolder;

const std::vector<MdsColumn> kPhotos{{"image", "jpeg"}, {"label", "int", 8}};

std::vector<std::string> samples_of(std::span<const StoredSample> samples) {
  std::vector<std::string> stored;
  for (const StoredSample& sample : samples)
    stored.push_back(mds_sample(kPhotos, {sample.image, raw_number(sample.label)}));
  return stored;
}

// Writes a shard, optionally compressed, and returns its entry in the index.
std::string put(const TemporaryFolder& folder, const std::vector<MdsColumn>& columns, const std::string& name,
                const std::vector<std::string>& samples, const std::vector<std::string>& hashes = {},
                const std::string& compression = "", Compression kind = Compression::kZstd) {
  const std::string shard = mds_shard(samples);
  const std::string zipped = compression.empty() ? "" : compressed(kind, shard);
  const std::string end = "." + compression.substr(0, compression.find(':'));
  folder.write(compression.empty() ? name : name + end, compression.empty() ? shard : zipped);
  return mds_entry_of(columns, name, samples.size(), shard, hashes, compression, zipped);
}

std::string store_one(const TemporaryFolder& folder, const std::vector<StoredSample>& samples) {
  folder.write("index.json", mds_index({put(folder, kPhotos, "shard.00000.mds", samples_of(samples))}));
  return folder.path();
}

// Writes three shards, the middle one without samples, in folders as merge_index creates them.
std::string store_several(const TemporaryFolder& folder, const std::vector<StoredSample>& samples,
                          const std::string& compression) {
  const std::span<const StoredSample> all(samples), first = all.first(all.size() / 2);
  folder.write("index.json",
               mds_index({put(folder, kPhotos, "0/shard.00000.mds", samples_of(first), {"xxh64"}, compression),
                          put(folder, kPhotos, "1/shard.00000.mds", {}, {"xxh64"}, compression),
                          put(folder, kPhotos, "2/shard.00000.mds", samples_of(all.subspan(first.size())), {"xxh64"},
                              compression)}));
  return folder.path("index.json");
}

std::string key_of_one(std::size_t i) {
  return "shard_00000_mds/" + std::string(i < 10 ? 7 : 6, '0') + std::to_string(i);
}
constexpr std::size_t kBefore = 16;

FormatUnderTest under_test(const std::string& name, std::function<std::shared_ptr<const storage::Storage>()> storage) {
  return {name, "mds", store_one, std::move(storage), {}, "image", key_of_one, kBefore};
}

INSTANTIATE_TEST_SUITE_P(
    Mds, FormatContract,
    ::testing::Values(under_test("mds", storage::local_storage), under_test("mds_mapped", storage::mapped_storage),
                      under_test("mds_short_reads", storage::short_reads_storage),
                      FormatUnderTest{"mds_several",
                                      "mds",
                                      [](const TemporaryFolder& folder, const std::vector<StoredSample>& samples) {
                                        return store_several(folder, samples, "");
                                      },
                                      storage::local_storage,
                                      {},
                                      "image",
                                      [](std::size_t) { return std::string(); },
                                      kBefore}),
    name_of_format);

class Mds : public ::testing::Test {
 protected:
  void SetUp() override { ::setenv("XDG_CACHE_HOME", cache_.path().c_str(), 1); }
  void TearDown() override { ::unsetenv("XDG_CACHE_HOME"); }

  // Writes a dataset with one shard.
  std::string write(const std::vector<MdsColumn>& columns, const std::vector<std::vector<std::string>>& samples,
                    const std::vector<std::string>& hashes = {}, const std::string& compression = "",
                    Compression kind = Compression::kZstd) const {
    std::vector<std::string> stored;
    for (const auto& values : samples) stored.push_back(mds_sample(columns, values));
    folder_.write("index.json",
                  mds_index({put(folder_, columns, "shard.00000.mds", stored, hashes, compression, kind)}));
    return folder_.path();
  }
  static Result<std::shared_ptr<const RecordFormat>> opened(const std::string& source,
                                                            const std::vector<std::string>& fields = {}) {
    OpenOptions options;
    options.fields = fields;
    return open_records(source, options);
  }
  static std::string shown(const RecordFormat& format, std::uint64_t index) {
    memory::Record record;
    if (const auto read = format.read(index, record); !read) return "error: " + read.error().message();
    std::string text;
    for (std::size_t i = 0; i < record.fields.size(); ++i) {
      const memory::Record::Field& field = record.fields[i];
      text += text.empty() ? "" : " ";
      if (field.pixels.data != nullptr)
        text += std::to_string(field.pixels.width) + "x" + std::to_string(field.pixels.height) + "x" +
                std::to_string(field.pixels.channels);
      else if (field.array)
        text += std::string(name_of(field.array->dtype)) + field.array->shape.to_string() + ":" +
                std::to_string(field.bytes.size());
      else if (format.fields()[i].kind == FieldKind::kInteger)
        text += std::to_string(field.value);
      else
        text.append(reinterpret_cast<const char*>(field.bytes.data()), field.bytes.size());
    }
    return text;
  }
  // Returns the only sample, or the error.
  std::string read_back(const std::vector<MdsColumn>& columns, const std::vector<std::string>& values,
                        const std::vector<std::string>& fields = {}) const {
    const auto format = opened(write(columns, {values}), fields);
    return format ? shown(**format, 0) : format.error().what;
  }
  std::string error_of(const std::string& source) const {
    const auto format = opened(source);
    if (!format) return format.error().message();
    return shown(**format, 0);
  }

  TemporaryFolder folder_, cache_;
};

TEST_F(Mds, EveryEncodingIsRead) {
  const std::vector<MdsColumn> scalars{{"a", "int8", 1},    {"b", "uint8", 1},   {"c", "int16", 2},
                                       {"d", "uint16", 2},  {"e", "int32", 4},   {"f", "uint32", 4},
                                       {"g", "int64", 8},   {"h", "uint64", 8},  {"i", "float16", 2},
                                       {"j", "float32", 4}, {"k", "float64", 8}, {"l", "int", 8}};
  EXPECT_EQ(read_back(scalars, {raw_number<std::int8_t>(-1), raw_number<std::uint8_t>(255),
                                raw_number<std::int16_t>(-2), raw_number<std::uint16_t>(65535),
                                raw_number<std::int32_t>(-3), raw_number<std::uint32_t>(4294967295),
                                raw_number<std::int64_t>(-4), raw_number<std::uint64_t>(5), "hh", raw_number<float>(1),
                                raw_number<double>(2), raw_number<std::int64_t>(-6)}),
            "-1 255 -2 65535 -3 4294967295 -4 5 float16():2 float32():4 float64():8 -6");
  const std::vector<MdsColumn> others{{"a", "str"},       {"b", "bytes"},       {"c", "json"},      {"d", "str_int"},
                                      {"e", "str_float"}, {"f", "str_decimal"}, {"g", "jpeg_array"}};
  EXPECT_EQ(read_back(others, {"text", "", "{}", "-123456789012", "1.5e3", "0.10", "raw"}),
            "text  {} -123456789012 float64():8 0.10 raw");
}

TEST_F(Mds, ArraysHaveThreeForms) {
  const std::string six = raw_number<float>(1) + std::string(20, '\0');
  EXPECT_EQ(read_back({{"a", "ndarray:float32:2,3", 24}}, {six}), "float32(2, 3):24");
  EXPECT_EQ(read_back({{"a", "ndarray:float32"}}, {std::string("\x08\x02\x03", 3) + six}), "float32(2, 3):24");
  EXPECT_EQ(read_back({{"a", "ndarray"}}, {std::string("\x22\x05\x06\x00", 4) + six}), "float32(6,):24")
      << "extents of 16 bits";
  EXPECT_EQ(read_back({{"a", "ndarray:float16:8", 16}, {"b", "ndarray:int64:1", 8}},
                      {std::string(16, 'x'), six.substr(0, 8)}),
            "float16(8,):16 int64(1,):8");
  // values that are not arrays
  for (const std::string& wrong :
       {std::string(), std::string("\x22", 1), std::string("\x22\x04", 2), std::string("\x22\x04\x07", 3) + six,
        std::string("\x22\x04\x05", 3) + six, std::string("\x01\x04\x06", 3) + six,
        std::string("\x22\x1c\x01\x01\x01\x01\x01\x01\x01", 9) + six,
        std::string("\x22\x0b", 2) + std::string(16, '\xff') + six})
    EXPECT_TRUE(read_back({{"a", "ndarray"}}, {wrong}).starts_with("error: field 'a': the column 'a' (ndarray): "));
}

TEST_F(Mds, RawImagesAreImagesOrArrays) {
  const std::string rgb = raw_number<std::uint32_t>(2) + raw_number<std::uint32_t>(3) + raw_number<std::uint32_t>(3) +
                          "RGB" + std::string(18, '\x07');
  const std::string palette = raw_number<std::uint32_t>(2) + raw_number<std::uint32_t>(3) +
                              raw_number<std::uint32_t>(1) + "P" + std::string(6, '\x07');
  EXPECT_EQ(read_back({{"image", "pil"}}, {rgb}), "2x3x3");
  EXPECT_EQ(read_back({{"image", "pil"}}, {rgb}, {"image:array"}), "uint8(3, 2, 3):18");
  EXPECT_TRUE(read_back({{"image", "pil"}}, {palette}).contains("the mode 'P', but images need L or RGB"));
  EXPECT_EQ(read_back({{"mask", "pil"}}, {palette}), "uint8(3, 2):6");
  for (const std::string& wrong : {rgb + "x", rgb.substr(0, rgb.size() - 1), rgb.substr(0, 14), rgb.substr(0, 4),
                                   raw_number<std::uint32_t>(0) + rgb.substr(4)})
    EXPECT_TRUE(read_back({{"image", "pil"}}, {wrong}).starts_with("error: ")) << wrong.size();
}

TEST_F(Mds, PicklesAreRefusedByName) {
  EXPECT_TRUE(read_back({{"a", "int", 8}, {"secret", "pkl"}}, {raw_number<std::int64_t>(1), "\x80\x04N."})
                  .contains("the column 'secret' is stored as 'pkl', which is not supported: loading a pickle can run "
                            "arbitrary code"));
  EXPECT_EQ(read_back({{"a", "int", 8}, {"secret", "pkl"}}, {raw_number<std::int64_t>(1), "\x80\x04N."}, {"a"}), "1");
  EXPECT_TRUE(read_back({{"a", "hologram"}}, {"x"}).contains("'hologram', which is not supported"));
}

TEST_F(Mds, FieldsAreChosen) {
  const std::vector<MdsColumn> columns{{"caption", "str"}, {"jpg", "bytes"}, {"n", "int", 8}, {"y", "int", 8}};
  const std::vector<std::string> values{"a cat", "JPEG", raw_number<std::int64_t>(3), raw_number<std::int64_t>(4)};
  EXPECT_EQ(read_back(columns, values), "JPEG 4") << "a column called as images are, and one as labels are";
  EXPECT_EQ(read_back(columns, values, {"caption", "n", "raw=png;jpg:bytes"}), "a cat 3 JPEG");
  EXPECT_EQ(read_back({{"a", "str"}, {"b", "int", 8}}, {"x", values[2]}), "x 3") << "else all columns";
  EXPECT_TRUE(
      read_back(columns, values, {"q"}).contains("the columns are caption (str), jpg (bytes), n (int), y (int)"));
  EXPECT_TRUE(read_back(columns, values, {"n:image"}).contains("cannot be of kind image"));
  EXPECT_TRUE(read_back(columns, values, {"n", "n=y"}).contains("two fields are called 'n'"));
  EXPECT_TRUE(read_back(columns, values, {"caption:value"}).contains("not an integer"));
}

TEST_F(Mds, CompressedShardsAreMadePlainOnce) {
  for (const auto& [name, kind] :
       std::initializer_list<std::pair<const char*, Compression>>{{"zstd:7", Compression::kZstd},
                                                                  {"gz", Compression::kGzip},
                                                                  {"bz2:9", Compression::kBzip2},
                                                                  {"snappy", Compression::kSnappy}}) {
    const auto source = write({{"a", "str"}}, {{"one"}, {"two"}}, {"sha1", "xxh3_64"}, name, kind);
    const auto format = opened(source);
    ASSERT_TRUE(format) << format.error().message();
    EXPECT_EQ(shown(**format, 1), "two") << name;
    const std::string end = "." + std::string(name).substr(0, std::string(name).find(':'));
    EXPECT_EQ((*format)->where(1).shard, source + "/shard.00000.mds" + end);
    // The decompressed copy of a shard is reused until the shard changes, and is then recreated.
    EXPECT_EQ(shown(**opened(source), 0), "one");
    std::filesystem::remove(source + "/shard.00000.mds" + end);
  }
}

TEST_F(Mds, WhatChecksumsSayIsComparedWhenAShardIsMadePlain) {
  for (const char* algorithm : {"md5", "sha1", "sha256", "xxh32", "xxh64", "xxh3_64", "xxh3_128", "xxh128"}) {
    const auto source = write({{"a", "str"}}, {{"one"}}, {algorithm}, "zstd");
    std::string index = TemporaryFolder::read(source + "/index.json");
    const std::size_t digit = index.rfind(algorithm) + std::string(algorithm).size() + 4;
    index[digit] = index[digit] == '0' ? '1' : '0';
    folder_.write("index.json", index);
    const std::string text = error_of(source);
    EXPECT_TRUE(text.contains("the " + std::string(algorithm) + " is ") && text.contains("but the index specifies"))
        << text;
  }
  const auto source = write({{"a", "str"}}, {{"one"}}, {}, "zstd");
  const std::string zipped = TemporaryFolder::read(source + "/shard.00000.mds.zstd");
  folder_.write("shard.00000.mds.zstd", zipped.substr(0, zipped.size() - 3));
  EXPECT_TRUE(error_of(source).contains("damaged")) << "cut, without any checksum";
}

TEST_F(Mds, InspectionComparesEveryChecksum) {
  const auto source = write({{"a", "str"}}, {{"one"}, {"two"}}, {"sha1"});
  const auto codes = [&] {
    std::string text;
    const auto inspected = format::inspect(source, {});
    for (const auto& finding : inspected->findings)
      if (finding.severity != "note") text += finding.code + " ";
    return text;
  };
  EXPECT_EQ(codes(), "");
  std::string shard = TemporaryFolder::read(source + "/shard.00000.mds");
  shard[shard.size() - 1] ^= 1;
  folder_.write("shard.00000.mds", shard);
  EXPECT_EQ(codes(), "checksum_differs ") << "where reading sees nothing: the text is another one";
  std::string index = TemporaryFolder::read(source + "/index.json");
  for (std::size_t at; (at = index.find("sha1")) != index.npos;) index.replace(at, 4, "blake2b");
  folder_.write("index.json", index);
  EXPECT_EQ(codes(), "unknown_checksum ");
}

TEST_F(Mds, DamageIsNamedWithShardAndPlace) {
  const auto source = write({{"a", "str"}}, {{"one"}, {"two"}});
  const std::string whole = TemporaryFolder::read(source + "/shard.00000.mds");
  const auto with = [&](std::size_t offset, std::uint32_t number) {
    std::string shard = whole;
    std::memcpy(shard.data() + offset, &number, sizeof number);
    folder_.write("shard.00000.mds", shard);
    return error_of(source);
  };
  EXPECT_TRUE(with(0, 3).contains("but the index specifies 2"));
  EXPECT_TRUE(with(4, 2).contains("sample 0 is at byte 2, which is before byte 16"));
  EXPECT_TRUE(with(8, 3).contains("before"));
  EXPECT_TRUE(with(8, 1U << 31U).contains("past the end of the shard's"));
  EXPECT_TRUE(with(12, static_cast<std::uint32_t>(whole.size() - 1)).contains("the last sample ends at byte"));
  const std::size_t first = whole.size() - 14;  // u32 3, "one", u32 3, "two"
  EXPECT_TRUE(with(first, 4).contains("the column 'a' has 4 bytes, but 3 are left in the sample"));
  const std::string text = with(first, 2);
  EXPECT_TRUE(text.contains("1 bytes follow the last column") && text.contains("shard.00000.mds") &&
              text.contains("shard_00000_mds/00000000"))
      << text;
  folder_.write("shard.00000.mds", whole.substr(0, whole.size() - 1));
  EXPECT_TRUE(error_of(source).contains("bytes, but the index specifies"));
  std::filesystem::remove(source + "/shard.00000.mds");
  memory::Record record;
  EXPECT_EQ((*opened(source))->read(0, record).error().code, ErrorCode::kStorage) << "a shard that is not there";
}

TEST_F(Mds, AnIndexThatCannotBeIsRefused) {
  const auto source = write({{"a", "str"}}, {{"one"}});
  const std::string whole = TemporaryFolder::read(source + "/index.json");
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string index = whole;
    index.replace(index.find(from), from.size(), to);
    folder_.write("index.json", index);
    return error_of(source);
  };
  EXPECT_TRUE(with("\"version\": 2}", "\"version\": 3}").contains("version 3"));
  EXPECT_TRUE(with("\"mds\"", "\"jsonl\"").contains("the shard stores samples as 'jsonl'"));
  EXPECT_TRUE(with("\"mds\"", "\"json\"").contains("the shard has no raw_meta"));
  EXPECT_TRUE(with("\"samples\": 1", "\"samples\": -1").contains("number of samples is missing or invalid"));
  EXPECT_TRUE(with("\"samples\": 1", "\"samples\": 4294967295").contains("number of samples is missing or invalid"));
  EXPECT_TRUE(with("\"samples\": 1", "\"samples\": 4000000000").contains("whose offsets need more bytes"));
  EXPECT_TRUE(with("\"samples\": 1", "\"samples\": 0").contains("has no samples"));
  EXPECT_TRUE(with("shard.00000.mds", "../../etc/passwd").contains("not the name of a file below"));
  EXPECT_TRUE(with("shard.00000.mds", "/etc/passwd").contains("not the name of a file below"));
  EXPECT_TRUE(with("[null]", "[8]").contains("8 bytes, which is invalid"));
  EXPECT_TRUE(with("[null]", "[null, null]").contains("column names"));
  EXPECT_TRUE(with("\"str\"", "\"int\"").contains("any number of bytes, which is invalid"));
  EXPECT_TRUE(with("\"raw_data\"", "\"no_data\"").contains("has no raw_data"));
  for (std::size_t bytes = 12; bytes < whole.size(); bytes += 7) {
    folder_.write("index.json", whole.substr(0, bytes));
    const auto format = opened(source);
    EXPECT_TRUE(!format && format.error().code == ErrorCode::kData) << bytes;
  }
}

TEST_F(Mds, ListsOfDatasetsAreOne) {
  TemporaryFolder other;
  const auto first = write({{"a", "str"}}, {{"one"}, {"two"}});
  other.write("index.json", mds_index({put(other, {{"a", "str"}}, "x.mds", {mds_sample({{"a", "str"}}, {"three"})})}));
  const auto both = opened(first + "::" + other.path());
  ASSERT_TRUE(both) << both.error().message();
  EXPECT_EQ((*both)->size(), 3u);
  EXPECT_EQ(shown(**both, 2), "three");
  EXPECT_EQ((*both)->shard_ends(), (std::vector<std::uint64_t>{2, 3}));
}

TEST(MdsDigest, IsWhatHashlibAndXxhashGive) {
  EXPECT_EQ(digest_of_text("md5", ""), "d41d8cd98f00b204e9800998ecf8427e");
  EXPECT_EQ(digest_of_text("md5", std::string(1000, 'a')), "cabe45dcc9ae5b66ba86600cca6b8ba8");
  EXPECT_EQ(digest_of_text("sha1", "abc"), "a9993e364706816aba3e25717850c26c9cd0d89d");
  EXPECT_EQ(digest_of_text("sha1", std::string(1000, 'a')), "291e9a6c66994949b57ba5e650361e98fc36b1ba");
  EXPECT_EQ(digest_of_text("sha256", "abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(digest_of_text("xxh32", "abc"), "32d153ff");
  EXPECT_EQ(digest_of_text("xxh64", "abc"), "44bc2cf5ad770999");
  EXPECT_EQ(digest_of_text("xxh3_64", "abc"), "78af5f94892f3950");
  EXPECT_EQ(digest_of_text("xxh128", "abc"), "06b05ab6733a618578af5f94892f3950");
  for (std::size_t bytes = 54; bytes < 66; ++bytes) {  // the length, in the last block or after it
    const std::string text(bytes, 'x');
    const auto digest = make_digest("md5");
    for (const char& c : text) digest->add(std::as_bytes(std::span(&c, 1)));
    EXPECT_EQ(digest->hex(), digest_of_text("md5", text)) << bytes;
  }
  EXPECT_EQ(make_digest("sha512"), nullptr);
}

}  // namespace
}  // namespace feedline::format

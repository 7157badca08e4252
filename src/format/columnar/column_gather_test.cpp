// SPDX-License-Identifier: Apache-2.0
#include "format/columnar/column_gather.h"

#include <gtest/gtest.h>

#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "base/test_conditions.h"
#include "format/columnar/arrow/arrow_writer.h"
#include "format/columnar/parquet/parquet_writer.h"
#include "format/combined/joined_format.h"
#include "format/combined/subset_format.h"
#include "format/compression/compressed_fixture.h"
#include "format/format_contract.h"
#include "storage/temporary_folder.h"

namespace feedline::format {
namespace {

constexpr std::uint64_t kRows = 24;

// Columns of a table whose rows are i = 0 to 23: "i" is i, "f" is i + 0.5, "null" is i unless i is 5 or 17, and "pair"
// is [2 i, 2 i + 1].
std::string parquet_file(bool is_compressed) {
  MadeLeaf whole{{node_of("i", 0, ParquetType::kInt32)}, ParquetType::kInt32};
  MadeLeaf real{{node_of("f", 0, ParquetType::kDouble)}, ParquetType::kDouble};
  MadeLeaf null{{node_of("null", 1, ParquetType::kFloat)}, ParquetType::kFloat};
  MadeLeaf pair{{node_of("pair", 1, {}, 1, 3), node_of("list", 2, {}, 1), node_of("element", 1, ParquetType::kInt64)},
                ParquetType::kInt64};
  std::vector<std::int64_t> rows;
  constexpr std::int64_t kGroup = 8, kPage = 4;
  for (std::int64_t group = 0; group < 3; ++group) {
    for (MadeLeaf* leaf : {&whole, &real, &null, &pair}) leaf->groups.emplace_back();
    rows.push_back(kGroup);
    for (std::int64_t begin = group * kGroup; begin < (group + 1) * kGroup; begin += kPage) {
      std::vector<std::int32_t> i;
      std::vector<double> f;
      std::vector<float> some;
      std::vector<unsigned> there, repetitions, definitions;
      std::vector<std::int64_t> pairs;
      for (std::int64_t row = begin; row < begin + kPage; ++row) {
        i.push_back(static_cast<std::int32_t>(row));
        f.push_back(static_cast<double>(row) + 0.5);
        there.push_back(row != 5 && row != 17);
        if (there.back() != 0) some.push_back(static_cast<float>(row));
        for (const std::int64_t one : {0, 1}) {
          pairs.push_back(2 * row + one);
          repetitions.push_back(static_cast<unsigned>(one));
          definitions.push_back(3);
        }
      }
      whole.groups.back().push_back({kPage, kPage, {}, {}, plain_text(i)});
      real.groups.back().push_back({kPage, kPage, {}, {}, plain_text(f)});
      null.groups.back().push_back({kPage, kPage, {}, runs_text(there), plain_text(some)});
      pair.groups.back().push_back(
          {2 * kPage, kPage, runs_text(repetitions), runs_text(definitions), plain_text(pairs)});
    }
  }
  ParquetWriter::Options options{.children = 4};
  if (is_compressed) {
    options.codec = 6;
    options.pack = [](const std::string& plain) { return compressed(Compression::kZstd, plain); };
  }
  return ParquetWriter::write({whole, real, null, pair}, rows, options);
}

std::string arrow_file(bool is_compressed) {
  std::vector<MadeBatch> batches;
  for (std::int64_t begin = 0; begin < 24; begin += 6) {
    std::vector<std::int64_t> i, pairs;
    std::vector<float> f;
    std::vector<bool> there;
    std::vector<std::int32_t> offsets{0};
    for (std::int64_t row = begin; row < begin + 6; ++row) {
      i.push_back(row);
      f.push_back(static_cast<float>(row) + 0.5F);
      there.push_back(row != 5 && row != 17);
      pairs.insert(pairs.end(), {2 * row, 2 * row + 1});
      offsets.push_back(static_cast<std::int32_t>(pairs.size()));
    }
    const MadeColumn elements = int64_column("item", pairs);
    batches.push_back({int64_column("i", i), float_column("f", f), float_column("null", f, there),
                       list_column("pair", offsets, elements), fixed_list_column("fixed", 2, elements)});
  }
  if (!is_compressed) return ArrowWriter(batches).file();
  return ArrowWriter(batches, {}, 1, [](const std::string& plain) { return compressed(Compression::kZstd, plain); })
      .file();
}

class ColumnGather : public ::testing::TestWithParam<std::string> {
 protected:
  std::shared_ptr<const RecordFormat> opened(const std::vector<std::string>& fields,
                                             Missing missing = Missing::kError) const {
    const bool is_compressed = GetParam().ends_with("_zstd");
    const bool is_arrow = GetParam().starts_with("arrow");
    OpenOptions options;
    options.fields = fields;
    options.missing = missing;
    return open_records(folder_.write(is_arrow ? "x.arrow" : "x.parquet",
                                      is_arrow ? arrow_file(is_compressed) : parquet_file(is_compressed)),
                        options)
        .value();
  }

  // Returns the bytes of each row's fields, as read() delivers them.
  static std::vector<std::vector<std::byte>> read(const RecordFormat& format, const std::vector<std::uint64_t>& samples,
                                                  std::vector<ArraySpec>& specs) {
    std::vector<std::vector<std::byte>> fields(format.fields().size());
    specs.assign(fields.size(), {DType::kInt64, {}});
    for (const std::uint64_t sample : samples) {
      memory::Record record;
      record.most_bytes = 1 << 20;
      EXPECT_TRUE(format.read(sample, record));
      for (std::size_t i = 0; i < fields.size(); ++i) {
        const memory::Record::Field& field = record.fields[i];
        if (field.array) specs[i] = *field.array;
        const auto value = field.array ? field.bytes : std::as_bytes(std::span(&field.value, 1));
        fields[i].insert(fields[i].end(), value.begin(), value.end());
      }
    }
    return fields;
  }

  static Result<std::vector<std::vector<std::byte>>> gathered(const RecordFormat& format,
                                                              const std::vector<std::uint64_t>& samples,
                                                              const std::vector<ArraySpec>& specs) {
    std::vector<std::vector<std::byte>> fields;
    std::vector<ArrayView> views;
    std::vector<SampleRow> rows;
    for (const ArraySpec& spec : specs) fields.emplace_back(samples.size() * spec.bytes(), std::byte{0xcc});
    for (std::size_t i = 0; i < specs.size(); ++i) views.push_back({fields[i].data(), specs[i]});
    for (std::size_t i = 0; i < samples.size(); ++i) rows.push_back({samples[i], i});
    FEEDLINE_CHECK_OK(format.gather(rows, views));
    return fields;
  }

  static void expect_equal(const RecordFormat& format, const std::vector<std::uint64_t>& samples) {
    std::vector<ArraySpec> specs;
    const auto wanted = read(format, samples, specs);
    EXPECT_EQ(gathered(format, samples, specs).value(), wanted);
  }

  storage::TemporaryFolder folder_;
};

INSTANTIATE_TEST_SUITE_P(Tables, ColumnGather, ::testing::Values("parquet", "parquet_zstd", "arrow", "arrow_zstd"),
                         [](const auto& param) { return param.param; });

const std::vector<std::uint64_t> kShuffled{23, 4, 9, 9, 0, 12, 22, 3, 8, 16, 7, 1};

TEST_P(ColumnGather, GivesTheBytesOfSingleReads) {
  const auto format = opened({"i", "short=i:array", "f", "pair", "both=i+f", "flag=null:valid", "nan=null:nan",
                              "whole=i:nan", "three=f+null+i:nan", "flags=i+null:valid"});
  EXPECT_GT(format->grain(), 1u);
  EXPECT_EQ(format->fields().size(), 10u);
  expect_equal(*format, kShuffled);
  expect_equal(*format, {5});
  std::vector<std::uint64_t> all(kRows);
  for (std::uint64_t i = 0; i < kRows; ++i) all[i] = kRows - 1 - i;
  expect_equal(*format, all);
  EXPECT_NE(format->summary().find("37 rows were copied column by column"), std::string::npos) << format->summary();
}

TEST_P(ColumnGather, HasTheNumbersOfTheColumns) {
  const auto format = opened({"both=i+f", "nan=null:nan", "flag=null:valid", "pair"});
  const std::vector<ArraySpec> specs{
      {DType::kFloat32, {2}}, {DType::kFloat32, {}}, {DType::kBool, {}}, {DType::kInt64, {2}}};
  const auto fields = gathered(*format, {17, 3}, specs).value();
  float both[4], nan[2];
  std::int64_t pair[4];
  std::memcpy(both, fields[0].data(), sizeof both);
  std::memcpy(nan, fields[1].data(), sizeof nan);
  std::memcpy(pair, fields[3].data(), sizeof pair);
  EXPECT_EQ(std::vector<float>(both, both + 4), (std::vector<float>{17, 17.5F, 3, 3.5F}));
  EXPECT_TRUE(nan[0] != nan[0]);
  EXPECT_EQ(nan[1], GetParam().starts_with("arrow") ? 3.5F : 3);
  EXPECT_EQ(fields[2], (std::vector<std::byte>{std::byte{0}, std::byte{1}}));
  EXPECT_EQ(std::vector<std::int64_t>(pair, pair + 4), (std::vector<std::int64_t>{34, 35, 6, 7}));
}

TEST_P(ColumnGather, FailsForARowWithoutAValue) {
  const auto format = opened({"i", "null"});
  const std::vector<ArraySpec> specs{{DType::kInt64, {}}, {DType::kFloat32, {}}};
  EXPECT_TRUE(gathered(*format, {4, 6}, specs));
  EXPECT_EQ(gathered(*format, {4, 5, 6}, specs).error().code, ErrorCode::kData);
  EXPECT_FALSE(gathered(*opened({"m=i+null"}), {17, 1}, {{DType::kFloat32, {2}}}));
}

TEST_P(ColumnGather, RowsThatMissingOmitsAreNotCounted) {
  const auto format = opened({"i", "null"}, Missing::kSkip);
  EXPECT_EQ(format->size(), kRows - 2);
  expect_equal(*format, {21, 4, 5, 6});
  EXPECT_EQ(opened({"i", "null:nan", "seen=null:valid"}, Missing::kSkip)->size(), kRows);
  EXPECT_EQ(opened({"null"}, Missing::kNone)->grain(), 1u) << "absent values need lists";
}

TEST_P(ColumnGather, RowsAreCopiedToMemoryIfTheyFit) {
  const auto has_copy = [](const RecordFormat& format) {
    return format.summary().find("numbers are stored row by row in memory") != std::string::npos;
  };
  const auto format = opened({"i", "f", "pair"});
  EXPECT_FALSE(has_copy(*format));
  for (int round = 0; round < 2; ++round) expect_equal(*format, kShuffled);
  EXPECT_TRUE(has_copy(*format));
  base::test_conditions().block_cache_bytes = 64;
  const auto small = opened({"i", "f", "pair"});
  base::test_conditions().block_cache_bytes = 0;
  expect_equal(*small, kShuffled);
  EXPECT_FALSE(has_copy(*small));
}

TEST_P(ColumnGather, SubsetsAndMixesGatherFromTheirParts) {
  const std::shared_ptr<const Format> whole = opened({"i", "f"});
  const auto odd = subset(whole, {1, 3, 5, 7, 9, 23}).value();
  const auto few = subset(whole, {20, 2}).value();
  expect_equal(*records_of(odd), {5, 0, 3, 3});
  const auto joined = records_of(join({odd, few, whole}).value());
  EXPECT_GT(joined->grain(), 1u);
  expect_equal(*joined, {7, 0, 8, 6, 31, 5, 30});
}

TEST_P(ColumnGather, BlocksThatExceedTheCacheAreTheSame) {
  base::test_conditions().block_cache_bytes = 64;
  const auto format = opened({"i", "f", "null:nan", "pair"});
  base::test_conditions().block_cache_bytes = 0;
  for (int round = 0; round < 3; ++round) expect_equal(*format, kShuffled);
}

TEST_P(ColumnGather, OtherFieldsAreReadOneByOne) {
  OpenOptions options;
  options.fields = {"i", "text"};
  MadeLeaf i{{node_of("i", 0, ParquetType::kInt32)}, ParquetType::kInt32};
  MadeLeaf text{{node_of("text", 0, ParquetType::kBytes, 0, 0)}, ParquetType::kBytes};
  i.groups = {{{1, 1, {}, {}, plain_text<std::int32_t>({1})}}};
  text.groups = {{{1, 1, {}, {}, plain_bytes({"a"})}}};
  const std::string path = folder_.write("y.parquet", ParquetWriter::write({i, text}, {1}));
  EXPECT_EQ(open_records(path, options).value()->grain(), 1u);
}

TEST(ColumnGatherOfArrow, FixedListsAreCopiedFromTheirBuffer) {
  const storage::TemporaryFolder folder;
  for (const bool is_compressed : {false, true}) {
    OpenOptions options;
    options.fields = {"fixed"};
    const auto format = open_records(folder.write("x.arrow", arrow_file(is_compressed)), options).value();
    std::int64_t out[4] = {};
    const ArrayView view{reinterpret_cast<std::byte*>(out), {DType::kInt64, {2}}};
    const SampleRow rows[2] = {{13, 1}, {2, 0}};
    EXPECT_EQ(format->gather(rows, {&view, 1}).value(), sizeof out);
    EXPECT_EQ(std::vector<std::int64_t>(out, out + 4), (std::vector<std::int64_t>{4, 5, 26, 27}));
    EXPECT_NE(format->summary().find("4 blocks decompressed"), std::string::npos) << "each of the four batches once";
  }
}

TEST(ColumnGatherOfArrow, ListsThatDoNotFitIntoMemoryAreReadOneByOne) {
  const storage::TemporaryFolder folder;
  OpenOptions options;
  options.fields = {"pair"};
  base::test_conditions().block_cache_bytes = 64;
  const auto format = open_records(folder.write("x.arrow", arrow_file(false)), options).value();
  base::test_conditions().block_cache_bytes = 0;
  std::int64_t out[6] = {};
  const SampleRow rows[2] = {{13, 1}, {2, 0}};
  const ArrayView pairs{reinterpret_cast<std::byte*>(out), {DType::kInt64, {2}}};
  EXPECT_EQ(format->gather(rows, {&pairs, 1}).value(), 4 * sizeof out[0]);
  EXPECT_EQ(std::vector<std::int64_t>(out, out + 4), (std::vector<std::int64_t>{4, 5, 26, 27}));
  const ArrayView triples{reinterpret_cast<std::byte*>(out), {DType::kInt64, {3}}};
  EXPECT_EQ(format->gather(rows, {&triples, 1}).error().code, ErrorCode::kData);
}

}  // namespace
}  // namespace feedline::format

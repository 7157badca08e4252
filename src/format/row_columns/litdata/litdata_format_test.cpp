// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "format/columnar/arrow/arrow_writer.h"
#include "format/format_contract.h"
#include "format/inspected.h"
#include "format/row_columns/litdata/litdata_index.h"
#include "format/row_columns/mds/mds_writer.h"
#include "storage/mapped_storage.h"
#include "storage/short_reads_storage.h"
#include "storage/temporary_folder.h"

namespace feedline::format {
namespace {

using storage::TemporaryFolder;

constexpr const char* kLeaf = R"({\"type\": null, \"context\": null, \"children_spec\": []})";

std::string quoted(const std::vector<std::string>& texts) {
  std::string list;
  for (const std::string& text : texts) list += (list.empty() ? "\"" : ", \"") + text + "\"";
  return list;
}

// `config` has the members after data_format and data_spec, each preceded by a comma.
std::string index_of(const std::vector<std::string>& names, const std::vector<std::string>& formats,
                     const std::vector<std::pair<std::string, std::size_t>>& chunks, const std::string& config = "") {
  std::string listed, keys, leaves;
  for (const auto& [name, samples] : chunks)
    listed += std::string(listed.empty() ? "" : ", ") +
              "{\"chunk_bytes\": 1, \"chunk_size\": " + std::to_string(samples) + ", \"dim\": null, \"filename\": \"" +
              name + "\"}";
  for (const std::string& name : names) {
    keys += (keys.empty() ? "" : ", ") + std::string("\\\\\\\"") + name + "\\\\\\\"";
    leaves += (leaves.empty() ? "" : ", ") + std::string(kLeaf);
  }
  const std::string spec = names.empty() ? std::string("[1, ") + kLeaf + "]"
                                         : R"([1, {\"type\": \"builtins.dict\", \"context\": \"[)" + keys +
                                               R"(]\", \"children_spec\": [)" + leaves + "]}]";
  return "{\"chunks\": [" + listed + "], \"config\": {\"data_format\": [" + quoted(formats) + "], \"data_spec\": \"" +
         spec + "\"" + config + "}, \"updated_at\": \"1.5\"}";
}

std::string sample(const std::vector<std::string>& values) {
  std::vector<MdsColumn> columns(values.size());
  return mds_sample(columns, values);
}
std::string chunk(const std::vector<std::string>& samples) { return mds_shard(samples, ""); }

std::string framed(const std::vector<std::string>& samples, std::size_t of_frame) {
  std::string offsets = raw_number<std::uint32_t>(0), table, frames;
  std::uint32_t end = 0;
  for (const std::string& one : samples) offsets += raw_number(end += static_cast<std::uint32_t>(one.size()));
  const auto count = static_cast<std::uint32_t>((samples.size() + of_frame - 1) / of_frame);
  const std::size_t begin = 24 + offsets.size() + 24 * std::size_t{count};
  for (std::size_t i = 0; i < samples.size(); i += of_frame) {
    const std::size_t in_frame = std::min(of_frame, samples.size() - i);
    std::string plain;
    for (std::size_t k = 0; k < in_frame; ++k) plain += samples[i + k];
    const std::string frame = compressed(Compression::kZstd, plain);
    table += raw_number(static_cast<std::uint32_t>(i)) + raw_number(static_cast<std::uint32_t>(in_frame)) +
             raw_number(std::uint64_t{begin + frames.size()}) + raw_number(static_cast<std::uint32_t>(frame.size())) +
             raw_number(static_cast<std::uint32_t>(plain.size()));
    frames += frame;
  }
  return std::string("LDFZ01\0\0\1\0\0\0", 12) + raw_number(static_cast<std::uint32_t>(samples.size())) +
         raw_number(static_cast<std::uint32_t>(of_frame)) + raw_number(count) + offsets + table + frames;
}

std::vector<std::string> stored(std::span<const StoredSample> samples) {
  std::vector<std::string> all;
  for (const StoredSample& one : samples) all.push_back(sample({one.image, raw_number(one.label)}));
  return all;
}

// Writes two chunks. `wrap` encodes the samples of a chunk.
std::string store(const TemporaryFolder& folder, const std::vector<StoredSample>& samples, const std::string& name,
                  const std::string& config, std::string (*wrap)(const std::vector<std::string>&)) {
  const std::span<const StoredSample> all(samples), first = all.first(all.size() / 2), rest = all.subspan(first.size());
  folder.write("chunk-0-0" + name, wrap(stored(first)));
  folder.write("chunk-0-1" + name, wrap(stored(rest)));
  folder.write("index.json", index_of({"image", "label"}, {"jpeg", "int"},
                                      {{"chunk-0-0" + name, first.size()}, {"chunk-0-1" + name, rest.size()}}, config));
  return folder.path();
}

std::string store_plain(const TemporaryFolder& folder, const std::vector<StoredSample>& samples) {
  return store(folder, samples, ".bin", ", \"item_loader\": \"PyTreeLoader\", \"compression\": null", chunk);
}

std::string row_chunk(std::size_t samples, const std::string& arrow) {
  std::string content = raw_number(static_cast<std::uint32_t>(samples));
  for (std::size_t i = 0; i <= samples; ++i) content += raw_number(static_cast<std::uint32_t>(4 * (samples + 2)));
  return content + arrow + raw_number(static_cast<std::uint32_t>(arrow.size())) + std::string("LDARW01\0", 8);
}

constexpr const char* kTypes = R"(, "item_loader": "PyTreeLoader", "types": {"image": "bytes", "label": "int"})";

std::string store_rows(const TemporaryFolder& folder, const std::vector<StoredSample>& samples) {
  std::vector<std::pair<std::string, std::size_t>> chunks;
  for (std::size_t begin = 0; begin < samples.size(); begin += 7) {
    const std::span<const StoredSample> part =
        std::span(samples).subspan(begin, std::min<std::size_t>(7, samples.size() - begin));
    std::vector<std::optional<std::string>> images;
    std::vector<std::int64_t> labels;
    for (const StoredSample& one : part) {
      images.emplace_back(one.image);
      labels.push_back(one.label);
    }
    const ArrowWriter rows({{bytes_column("image", 4, images), int64_column("label", labels)}});
    const auto& [name, count] = chunks.emplace_back("chunk-0-" + std::to_string(begin / 7) + ".bin", part.size());
    folder.write(name, row_chunk(count, begin == 0 ? rows.file() : rows.stream()));
  }
  folder.write("index.json", index_of({"image", "label"}, {"bytes", "int"}, chunks, kTypes));
  return folder.path();
}

FormatUnderTest under_test(const std::string& name, std::function<std::shared_ptr<const storage::Storage>()> storage,
                           decltype(store_plain)* store = store_plain, std::uint64_t header_bytes = 16) {
  return {name,        "litdata", store, std::move(storage), {}, "image", [](std::size_t) { return std::string(); },
          header_bytes};
}

INSTANTIATE_TEST_SUITE_P(LitData, FormatContract,
                         ::testing::Values(under_test("litdata", storage::local_storage),
                                           under_test("litdata_mapped", storage::mapped_storage),
                                           under_test("litdata_rows", storage::local_storage, store_rows, 0),
                                           under_test("litdata_rows_mapped", storage::mapped_storage, store_rows, 0),
                                           under_test("litdata_short_reads", storage::short_reads_storage)),
                         name_of_format);

class LitData : public ::testing::Test {
 protected:
  void SetUp() override { ::setenv("XDG_CACHE_HOME", cache_.path().c_str(), 1); }
  void TearDown() override { ::unsetenv("XDG_CACHE_HOME"); }

  static std::string shown(const std::string& source, std::uint64_t index,
                           const std::vector<std::string>& fields = {}) {
    OpenOptions options;
    options.fields = fields;
    const auto format = open_records(source, options);
    if (!format) return format.error().message();
    memory::Record record;
    if (const auto read = (*format)->read(index, record); !read) return read.error().message();
    std::string text;
    for (std::size_t i = 0; i < record.fields.size(); ++i) {
      const memory::Record::Field& field = record.fields[i];
      text += text.empty() ? "" : " ";
      if (field.array)
        text += std::string(name_of(field.array->dtype)) + field.array->shape.to_string();
      else if ((*format)->fields()[i].kind == FieldKind::kInteger)
        text += std::to_string(field.value);
      else
        text.append(reinterpret_cast<const char*>(field.bytes.data()), field.bytes.size());
    }
    return text;
  }
  std::string write(const std::vector<std::string>& formats, const std::vector<std::string>& values,
                    const std::string& config = "") const {
    std::vector<std::string> names;
    for (std::size_t i = 0; i < formats.size(); ++i) names.emplace_back(1, static_cast<char>('a' + i));
    folder_.write("chunk-0-0.bin", chunk({sample(values)}));
    folder_.write("index.json", index_of(names, formats, {{"chunk-0-0.bin", 1}}, config));
    return folder_.path();
  }

  TemporaryFolder folder_, cache_;
};

TEST_F(LitData, EveryTypeIsRead) {
  const auto big = [](std::uint32_t number) { return raw_number(std::byteswap(number)); };
  EXPECT_EQ(
      shown(write({"str", "int", "float", "bool", "bytes", "tensor", "no_header_tensor:18", "numpy",
                   "no_header_numpy:3", "text", "file:txt"},
                  {"text", raw_number<std::int64_t>(-5), raw_number(1.5), "\x01", "raw",
                   big(0) + big(2) + big(1) + big(3) + std::string(12, 'x'), std::string(16, 'x'),
                   raw_number<std::uint32_t>(1) + raw_number<std::uint32_t>(1) + raw_number<std::uint32_t>(2) + "1234",
                   std::string(24, 'x'), "more", "file"}),
            0),
      "text -5 float64() 1 raw float32(1, 3) int64(2,) int16(2,) int64(3,) more file");
  EXPECT_TRUE(
      shown(write({"tensor"}, {big(4) + big(0) + "12345678"}), 0).contains("have an unsupported dtype code: 4"));
  EXPECT_TRUE(shown(write({"tensor"}, {big(0) + big(200)}), 0).contains("200 dimensions"));
  EXPECT_TRUE(shown(write({"no_header_tensor:18"}, {"1234567"}), 0).contains("not a multiple of the size of int64"));
  EXPECT_TRUE(shown(write({"pickle"}, {"x"}), 0)
                  .contains("'a' is stored as 'pickle', which is not supported: loading a pickle can run"));
  EXPECT_TRUE(shown(write({"no_header_tensor:4"}, {"x"}), 0).contains("which is not supported"));
}

TEST(LitDataIndex, LeavesOfATreeHaveTheirPathsAsNames) {
  const std::string leaf = R"({"type": null, "context": null, "children_spec": []})";
  const auto names = [](const std::string& spec) { return leaf_names("[1, " + spec + "]"); };
  using Names = std::vector<std::string>;
  EXPECT_EQ(names(leaf), Names{"item"});
  EXPECT_EQ(names(R"({"type": "builtins.tuple", "context": "null", "children_spec": [)" + leaf + ", " + leaf + "]}"),
            (Names{"0", "1"}));
  EXPECT_EQ(
      names(R"({"type": "builtins.dict", "context": "[\"image\", \"meta\", 7]", "children_spec": [)" + leaf +
            R"(, {"type": "builtins.dict", "context": "[\"name\"]", "children_spec": [)" + leaf + "]}, " + leaf + "]}"),
      (Names{"image", "meta/name", "7"}));
  EXPECT_EQ(names("{"), Names{});
  std::string deep = leaf;
  for (int i = 0; i < 100; ++i)
    deep = R"({"type": "builtins.list", "context": "null", "children_spec": [)" + deep + "]}";
  EXPECT_EQ(names(deep), Names{}) << "nested deeper than anything";
}

TEST_F(LitData, CompressedChunksAreMadePlainOnce) {
  const auto samples = some_samples();
  const auto source =
      store(folder_, samples, ".zstd.bin", ", \"compression\": \"zstd:4\"",
            [](const std::vector<std::string>& all) { return compressed(Compression::kZstd, chunk(all)); });
  for (std::size_t i = 0; i < samples.size(); ++i)
    EXPECT_EQ(shown(source, i), samples[i].image + " " + std::to_string(samples[i].label));
}

TEST_F(LitData, PlainChunksThatLitDataLeftInPlaceOfCompressedOnesAreRead) {
  folder_.write("chunk-0-0.bin", chunk({sample({"plain"})}));
  folder_.write("index.json", index_of({"a"}, {"str"}, {{"chunk-0-0.zstd:4.bin", 1}}, ", \"compression\": \"zstd:4\""));
  EXPECT_EQ(shown(folder_.path(), 0), "plain");
}

TEST_F(LitData, FramesAreMadePlainOnce) {
  const auto samples = some_samples();
  const auto source = store(folder_, samples, ".bin", ", \"compression\": \"zstd\", \"compression_level\": \"batch\"",
                            [](const std::vector<std::string>& all) { return framed(all, 4); });
  for (std::size_t i = 0; i < samples.size(); ++i)
    EXPECT_EQ(shown(source, i), samples[i].image + " " + std::to_string(samples[i].label));
}

TEST_F(LitData, SamplesMayBeCompressedEach) {
  const auto samples = some_samples();
  const auto source = store(folder_, samples, ".bin", ", \"compression\": \"zstd\", \"compression_level\": \"sample\"",
                            [](const std::vector<std::string>& all) {
                              std::vector<std::string> each;
                              for (const std::string& one : all) each.push_back(compressed(Compression::kZstd, one));
                              return chunk(each);
                            });
  for (std::size_t i = 0; i < samples.size(); ++i)
    EXPECT_EQ(shown(source, i), samples[i].image + " " + std::to_string(samples[i].label));
  const auto inspected = format::inspect(source, {});
  EXPECT_EQ(inspected->samples, samples.size());
}

TEST_F(LitData, DamagedFramesAreErrors) {
  const std::vector<std::string> all{sample({"one"}), sample({"two"}), sample({"three"})};
  const std::string whole = framed(all, 2);
  folder_.write("index.json", index_of({"a"}, {"str"}, {{"c.bin", 3}}, ", \"compression\": \"zstd\""));
  const auto with = [&](const std::string& content) {
    folder_.write("c.bin", content);
    return shown(folder_.path(), 2);
  };
  EXPECT_EQ(with(whole), "three");
  for (std::size_t bytes = 8; bytes < whole.size(); ++bytes)
    EXPECT_TRUE(with(whole.substr(0, bytes)).contains("damaged")) << bytes;
  const std::size_t table = 24 + 4 * 4;
  // version, samples, frames, one offset; for the second frame: first sample, samples, offset, bytes, uncompressed
  // bytes
  for (const std::size_t offset : {std::size_t{8}, std::size_t{12}, std::size_t{20}, std::size_t{24}, table + 24,
                                   table + 28, table + 32, table + 40, table + 44}) {
    std::string wrong = whole;
    wrong[offset] = static_cast<char>(wrong[offset] + 1);
    EXPECT_TRUE(with(wrong).contains("damaged")) << offset;
  }
}

TEST_F(LitData, WhatIsNotReadIsRefusedByName) {
  EXPECT_TRUE(
      shown(write({"int"}, {"12345678"}, ", \"encryption\": {\"algorithm\": \"fernet\", \"level\": \"sample\"}"), 0)
          .contains("the dataset is encrypted"));
  EXPECT_TRUE(shown(write({"int"}, {"12345678"}, ", \"item_loader\": \"ParquetLoader\""), 0)
                  .contains("LitData's ParquetLoader"));
  EXPECT_TRUE(shown(write({"int"}, {"12345678"}, ", \"compression\": \"lz4\""), 0).contains("compressed with 'lz4'"));
  folder_.write("index.json", index_of({"a", "b"}, {"int"}, {}));
  EXPECT_TRUE(shown(folder_.path(), 0).contains("1 value formats, but its data_spec has 2 names"));
  folder_.write("index.json", index_of({"a"}, {"int"}, {{"../x.bin", 1}}));
  EXPECT_TRUE(shown(folder_.path(), 0).contains("not the name of a chunk"));
}

TEST_F(LitData, TokensAreArraysOfTheirOwnLengths) {
  folder_.write("c.bin", chunk({std::string(16, 'x'), std::string(40, 'y')}));
  folder_.write("index.json",
                index_of({}, {"no_header_tensor:17"}, {{"c.bin", 2}}, ", \"item_loader\": \"TokensLoader\""));
  EXPECT_EQ(shown(folder_.path(), 0), "int64(2,)");
  EXPECT_EQ(shown(folder_.path(), 1, {"tokens"}), "int64(5,)");
}

}  // namespace
}  // namespace feedline::format

// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>
#include <fstream>
#include <memory>
#include <numeric>
#include <string>

#include "format/columnar/parquet/parquet_writer.h"
#include "format/row_columns/mds/mds_writer.h"
#include "format/tar/tar_writer.h"
#include "gate/case.h"
#include "gate/made_images.h"
#include "pipeline/sample/recipe.h"
#include "pipeline/sample/sample_loader.h"
#include "storage/temporary_folder.h"

namespace feedline::gate {
namespace {

std::string_view text(const Bytes& bytes) { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }

std::shared_ptr<const pipeline::Recipe> recipe_of(std::shared_ptr<const format::Format> format,
                                                  const std::vector<Operation>& operations) {
  auto recipe = pipeline::make_recipe({"gate", std::move(format)}, operations, std::nullopt, Layout::kNchw);
  require(recipe.has_value(), "a recipe cannot be created");
  return *recipe;
}

// A sample's complete path: read, decode, transform.
std::function<void()> loads(const std::shared_ptr<const storage::TemporaryFolder>& folder, const std::string& source) {
  struct State {
    std::shared_ptr<const storage::TemporaryFolder> folder;
    std::shared_ptr<const pipeline::Recipe> recipe;
    std::unique_ptr<pipeline::SampleLoader> loader;
    std::vector<std::byte> image, label;
  };
  auto state = std::make_shared<State>();
  state->folder = folder;
  const auto format = format::open(source, {.index_directory = folder->path()});
  require(format.has_value(), "a dataset cannot be opened");
  state->recipe = recipe_of(*format, {op::RandomResizedCrop{{224, 224}}, op::RandomHorizontalFlip{}});
  state->loader = std::make_unique<pipeline::SampleLoader>(state->recipe, nullptr);
  state->image.resize(state->recipe->schema[0].array.bytes() + 64);
  state->label.resize(8);
  return [state] {
    std::array rows{memory::Row{{state->image.data(), state->recipe->schema[0].array}},
                    memory::Row{{state->label.data(), state->recipe->schema[1].array}}};
    for (std::uint64_t sample = 0; sample < 6; ++sample)
      require(state->loader->load({sample, {.seed = 7, .epoch = 1, .sample = sample}, rows}).has_value(),
              "a sample cannot be loaded");
  };
}

std::function<void()> folder_samples() {
  auto folder = std::make_shared<storage::TemporaryFolder>();
  for (int i = 0; i < 6; ++i)
    folder->write("photos/a/" + std::to_string(i) + ".jpg", text(made_jpeg(500 - 8 * i, 375 + 8 * i, false)));
  return loads(folder, folder->path("photos"));
}

std::string archive_of(int samples, int width, int height) {
  format::TarWriter tar;
  for (int i = 0; i < samples; ++i) {
    const std::string key = "sample" + std::to_string(i);
    tar.add(key + ".jpg", text(made_jpeg(width, height, false))).add(key + ".cls", std::to_string(i % 10));
  }
  return tar.finish();
}

std::function<void()> shard_samples() {
  auto folder = std::make_shared<storage::TemporaryFolder>();
  return loads(folder, folder->write("photos.tar", archive_of(6, 500, 375)));
}

// The photos of the tar shard, for a Parquet page and for an MDS shard.
std::vector<std::string> photos_of_shard() {
  std::vector<std::string> photos;
  for (int i = 0; i < 6; ++i) photos.emplace_back(text(made_jpeg(500, 375, false)));
  return photos;
}

std::function<void()> parquet_samples() {
  const auto photos = photos_of_shard();
  std::vector<std::int64_t> labels(photos.size());
  std::iota(labels.begin(), labels.end(), 0);
  const auto rows = static_cast<std::int64_t>(photos.size());
  using format::node_of;
  using format::ParquetType;
  const std::vector<format::MadeLeaf> leaves{{{node_of("image", 0, ParquetType::kBytes)},
                                              ParquetType::kBytes,
                                              {{{.values = rows, .rows = rows, .data = format::plain_bytes(photos)}}}},
                                             {{node_of("label", 0, ParquetType::kInt64)},
                                              ParquetType::kInt64,
                                              {{{.values = rows, .rows = rows, .data = format::plain_text(labels)}}}}};
  auto folder = std::make_shared<storage::TemporaryFolder>();
  return loads(folder, folder->write("photos.parquet", format::ParquetWriter::write(leaves, {rows})));
}

std::function<void()> mds_samples() {
  const std::vector<format::MdsColumn> columns{{"image", "jpeg"}, {"label", "int", 8}};
  std::vector<std::string> samples;
  for (const std::string& photo : photos_of_shard())
    samples.push_back(
        format::mds_sample(columns, {photo, format::raw_number(static_cast<std::int64_t>(samples.size()))}));
  const std::string shard = format::mds_shard(samples);
  auto folder = std::make_shared<storage::TemporaryFolder>();
  folder->write("mds/shard.00000.mds", shard);
  folder->write("mds/index.json",
                format::mds_index({format::mds_entry_of(columns, "shard.00000.mds", samples.size(), shard)}));
  return loads(folder, folder->path("mds"));
}

std::function<void()> scans_shard() {
  auto folder = std::make_shared<storage::TemporaryFolder>();
  const std::string shard = folder->write("shard.tar", archive_of(1000, 16, 16));
  return [folder, shard] {
    const auto found = format::inspect(shard, {});
    require(found && found->samples == 1000, "a shard cannot be scanned");
  };
}

// Copies rows of an in-memory array, or windows of a token file, to a batch.
std::function<void()> fills(std::shared_ptr<const format::Format> format, std::shared_ptr<const void> owner) {
  const auto recipe = recipe_of(std::move(format), {});
  constexpr std::uint64_t kRows = 256;
  auto memory = std::make_shared<std::vector<std::byte>>();
  std::vector<std::size_t> offsets;
  for (const FieldSpec& field : recipe->schema) {
    offsets.push_back(memory->size());
    memory->resize(memory->size() + (field.array.bytes() * kRows + 63) / 64 * 64);
  }
  auto loader = std::make_shared<pipeline::SampleLoader>(recipe, nullptr);
  std::vector<std::uint64_t> samples;
  for (std::uint64_t i = 0; i < kRows; ++i) samples.push_back(i * 37 % recipe->format->size());
  return [=] {
    std::vector<ArrayView> rows;
    for (std::size_t i = 0; i < offsets.size(); ++i)
      rows.push_back({memory->data() + offsets[i], recipe->schema[i].array});
    require(owner && loader->fill(samples, rows).has_value(), "rows cannot be filled");
  };
}

std::function<void()> gathers_rows() {
  constexpr std::uint64_t kRows = 4096;
  constexpr std::int64_t kNumbers = 16;
  auto values = std::make_shared<std::vector<float>>(kRows * kNumbers);
  std::iota(values->begin(), values->end(), 0.0f);
  const NamedArray array{
      "x",   reinterpret_cast<const std::byte*>(values->data()), kRows, kNumbers * 4, {DType::kFloat32, {kNumbers}},
      values};
  const auto source = pipeline::Source::arrays({array});
  require(source.has_value(), "an array cannot be opened");
  return fills(source->format(), values);
}

std::function<void()> fills_tokens() {
  auto folder = std::make_shared<storage::TemporaryFolder>();
  std::string tokens(std::size_t{512} << 10, '\0');
  for (std::size_t i = 0; i < tokens.size(); i += 2) tokens[i] = static_cast<char>(i / 2 % 251);
  const std::string file = folder->write("tokens.bin", tokens);
  const auto source = pipeline::Source::tokens({{file, 0}}, {.window = 256});
  require(source.has_value(), "a token file cannot be opened");
  return fills(source->format(), folder);
}

}  // namespace

std::vector<Case> store_cases() {
  return {
      {"sample_of_folder", folder_samples}, {"sample_of_shard", shard_samples}, {"sample_of_parquet", parquet_samples},
      {"sample_of_mds", mds_samples},       {"shard_scan", scans_shard},        {"rows_of_array", gathers_rows},
      {"windows_of_tokens", fills_tokens},
  };
}

}  // namespace feedline::gate

// SPDX-License-Identifier: Apache-2.0
// A format of a plugin passes the tests of all formats.
#include "format/plugin/plugin_record_format.h"

#include <cstring>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "format/format_contract.h"
#include "format/plugin/plugin_formats.h"
#include "storage/mapped_storage.h"
#include "storage/short_reads_storage.h"
#include "storage/storage.h"

namespace feedline::format {
namespace {

using storage::TemporaryFolder;

// Files "*.rows": the number of samples, then for each sample its offset, bytes and label, then the images.
struct Row {
  std::uint64_t offset, bytes;
  std::int64_t label;
};
using Rows = std::vector<Row>;

const feedline_field kFields[] = {{"image", "image"}, {"label", "value"}};
const char* const kExtensions[] = {"rows"};

int open_rows(void*, const feedline_file* file, void** shard, std::uint64_t* samples, feedline_message* message) {
  std::size_t got = 0;
  if (const int code = file->read(file->host, 0, samples, 8, &got, message); code != FEEDLINE_OK) return code;
  auto rows = std::make_unique<Rows>(*samples);
  const int code = file->read(file->host, 8, rows->data(), rows->size() * sizeof(Row), &got, message);
  if (code == FEEDLINE_OK) *shard = rows.release();
  return code;
}

int locate_row(void*, void* shard, std::uint64_t i, std::uint64_t* offset, std::uint64_t* bytes, feedline_message*) {
  const Row& row = (*static_cast<const Rows*>(shard))[i];
  *offset = row.offset, *bytes = row.bytes;
  return FEEDLINE_OK;
}

int read_row(void*, void* shard, std::uint64_t i, feedline_bytes stored, const feedline_memory*, feedline_bytes* values,
             feedline_message*) {
  values[0] = stored;
  values[1] = {&(*static_cast<const Rows*>(shard))[i].label, 8};
  return FEEDLINE_OK;
}

const feedline_format_v1 kRows{sizeof(feedline_format_v1),
                               "rows_of_test",
                               "1",
                               nullptr,
                               kExtensions,
                               1,
                               kFields,
                               2,
                               open_rows,
                               [](void*, void* shard) { delete static_cast<Rows*>(shard); },
                               locate_row,
                               read_row};

std::string file_of(std::span<const StoredSample> samples) {
  std::uint64_t offset = 8 + samples.size() * sizeof(Row);
  std::string head(8, 0), images;
  const std::uint64_t count = samples.size();
  std::memcpy(head.data(), &count, 8);
  for (const StoredSample& sample : samples) {
    const Row row{offset, sample.image.size(), sample.label};
    head.append(reinterpret_cast<const char*>(&row), sizeof row);
    images += sample.image;
    offset += sample.image.size();
  }
  return head + images;
}

// Registers the format.
bool is_added() {
  static const bool added = [] {
    if (!check_plugin(kRows, {})) return false;
    add_plugin(kRows);
    return true;
  }();
  return added;
}

// A label is read with its image.
FormatUnderTest under_test(const std::string& name, std::function<std::shared_ptr<const storage::Storage>()> storage) {
  return {.name = name,
          .format = "rows_of_test",
          .store =
              [](const TemporaryFolder& folder, const std::vector<StoredSample>& samples) {
                EXPECT_TRUE(is_added());
                return folder.write("data.rows", file_of(samples));
              },
          .storage = std::move(storage),
          .counted_as = "image",
          .key = [](std::size_t i) { return "data/" + std::string(i < 10 ? 7 : 6, '0') + std::to_string(i); },
          .reads_whole_samples = true};
}

std::string store_several(const TemporaryFolder& folder, const std::vector<StoredSample>& samples) {
  EXPECT_TRUE(is_added());
  const std::size_t half = samples.size() / 2;
  folder.write("several/0.rows", file_of(std::span(samples).first(half)));
  folder.write("several/1.rows", file_of(std::span(samples).subspan(half)));
  return folder.path("several");
}

INSTANTIATE_TEST_SUITE_P(Plugin, FormatContract,
                         ::testing::Values(under_test("plugin", storage::local_storage),
                                           under_test("plugin_mapped", storage::mapped_storage),
                                           under_test("plugin_short_reads", storage::short_reads_storage),
                                           FormatUnderTest{.name = "plugin_several",
                                                           .format = "rows_of_test",
                                                           .store = store_several,
                                                           .storage = storage::local_storage,
                                                           .counted_as = "image",
                                                           .key = [](std::size_t) { return std::string(); },
                                                           .reads_whole_samples = true}),
                         name_of_format);

}  // namespace
}  // namespace feedline::format

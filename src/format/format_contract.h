// SPDX-License-Identifier: Apache-2.0
#pragma once

// Tests that every Format must pass; they are defined in format_contract_test.cpp. An implementation registers a
// function that stores a list of samples:
//
//   INSTANTIATE_TEST_SUITE_P(MyFormat, FormatContract, ::testing::Values(FormatUnderTest{...}), name_of_format);

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "format/inspected.h"
#include "storage/temporary_folder.h"

namespace feedline::format {

struct StoredSample {
  std::string key;    // "cat/001": class folder and name
  std::string image;  // any bytes
  std::int64_t label = 0;
};

struct FormatUnderTest {
  std::string name;
  std::string format;  // Format::name()
  // Writes the samples and returns the source to open.
  std::function<std::string(const storage::TemporaryFolder&, const std::vector<StoredSample>&)> store;
  std::function<std::shared_ptr<const storage::Storage>()> storage;
  std::vector<std::string> fields = {};  // the fields to open
  std::string counted_as = "jpg";        // the extension under which an inspection counts the images
  // Only for formats whose records have no keys. Returns the suffix of the key for a given record number. The image of
  // a sample must then begin within `image_within` bytes after the offset that where() returns.
  std::function<std::string(std::size_t)> key = nullptr;
  std::size_t image_within = 0;
  bool is_packed = false;            // samples share blocks, which are prefetched only from remote storage
  bool reads_whole_samples = false;  // the label cannot be read without the image
  // For formats that are not in the registry: opens the files that store() wrote.
  std::function<Result<std::shared_ptr<const RecordFormat>>(const std::string& source, const OpenOptions& options)>
      open = nullptr;
  bool paths_identify_samples = false;  // the fingerprint contains the caller's paths, so a copy has a different one
  friend void PrintTo(const FormatUnderTest& format, std::ostream* out) { *out << format.name; }
};

inline std::string name_of_format(const ::testing::TestParamInfo<FormatUnderTest>& info) { return info.param.name; }

// Returns samples sorted by key, with class indexes as labels and images of many sizes.
inline std::vector<StoredSample> some_samples(std::size_t classes = 3, std::size_t per_class = 7) {
  std::vector<StoredSample> samples;
  for (std::size_t c = 0; c < classes; ++c)
    for (std::size_t i = 0; i < per_class; ++i) {
      StoredSample sample{"class" + std::to_string(c) + "/" + std::to_string(100 + i), "",
                          static_cast<std::int64_t>(c)};
      for (std::size_t b = 0; b < 1 + (c * 7919 + i * 1709) % 5000; ++b)
        sample.image += static_cast<char>((b * 31 + i * 7 + c) >> 2);
      samples.push_back(sample);
    }
  return samples;
}

class FormatContract : public ::testing::TestWithParam<FormatUnderTest> {
 protected:
  std::shared_ptr<const RecordFormat> open(const std::vector<StoredSample>& samples) {
    folder_ = std::make_unique<storage::TemporaryFolder>();
    source_ = GetParam().store(*folder_, samples);
    return reopen();
  }
  std::shared_ptr<const RecordFormat> reopen() const {
    OpenOptions options;
    options.fields = GetParam().fields;
    options.storage = GetParam().storage();
    auto format = GetParam().open ? GetParam().open(source_, options) : open_records(source_, options);
    EXPECT_TRUE(format) << format.error().message();
    return format ? *format : nullptr;
  }
  static std::string image_of(const memory::Record& record) {
    return {reinterpret_cast<const char*>(record.fields[0].bytes.data()), record.fields[0].bytes.size()};
  }
  static bool reads_as(const RecordFormat& format, std::uint64_t index, const StoredSample& sample,
                       memory::Record& record) {
    const auto done = format.read(index, record);
    return done && record.fields.size() == 2 && image_of(record) == sample.image &&
           record.fields[1].value == sample.label && record.bytes_read >= sample.image.size();
  }

  std::unique_ptr<storage::TemporaryFolder> folder_;
  std::string source_;
};

}  // namespace feedline::format

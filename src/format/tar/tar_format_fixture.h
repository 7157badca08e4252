// SPDX-License-Identifier: Apache-2.0
#pragma once

// Shared fixtures for tar tests.

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "format/format_contract.h"
#include "format/inspected.h"
#include "format/tar/tar_writer.h"
#include "storage/mapped_storage.h"
#include "storage/short_reads_storage.h"
#include "storage/temporary_folder.h"

namespace feedline::format {

inline std::string tar_of(const std::vector<StoredSample>& samples,
                          TarWriter::Dialect dialect = TarWriter::Dialect::kUstar) {
  TarWriter writer(dialect);
  for (const StoredSample& sample : samples)
    writer.add(sample.key + ".jpg", sample.image).add(sample.key + ".cls", std::to_string(sample.label));
  return writer.finish();
}

enum class Reads { kLocal, kShort, kMapped };
inline constexpr Reads kAllReads[] = {Reads::kLocal, Reads::kShort, Reads::kMapped};
inline std::string name_of_reads(const ::testing::TestParamInfo<Reads>& one) {
  return one.param == Reads::kLocal ? "local" : one.param == Reads::kShort ? "short_reads" : "mapped";
}

// Tests that apply only to tars.
class TarFormatTest : public ::testing::TestWithParam<Reads> {
 protected:
  OpenOptions options() const {
    OpenOptions options;
    options.storage = GetParam() == Reads::kLocal   ? storage::local_storage()
                      : GetParam() == Reads::kShort ? storage::short_reads_storage()
                                                    : storage::mapped_storage();
    return options;
  }
  std::string write(const std::string& archive, const std::string& name = "x.tar") const {
    return folder_.write(name, archive);
  }
  // Opens the archive and returns the error message.
  Error refused(const std::string& archive) const {
    const auto format = open(write(archive), options());
    EXPECT_FALSE(format) << "opened, " << (*format)->size() << " samples";
    return format ? Error{} : format.error();
  }
  std::shared_ptr<const RecordFormat> opened(const std::string& source,
                                             const std::vector<std::string>& fields = {}) const {
    OpenOptions chosen = options();
    chosen.fields = fields;
    const auto format = open_records(source, chosen);
    EXPECT_TRUE(format) << format.error().message();
    return format ? *format : nullptr;
  }
  std::string findings(const std::string& archive) const { return inspected(write(archive), options()); }

  storage::TemporaryFolder folder_;
};

#define EXPECT_CONTAINS(text, part) EXPECT_NE((text).find(part), std::string::npos) << (text)

}  // namespace feedline::format

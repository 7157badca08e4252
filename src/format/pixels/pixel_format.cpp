// SPDX-License-Identifier: Apache-2.0
#include "format/pixels/pixel_format.h"

#include <algorithm>
#include <map>
#include <utility>

#include "base/check.h"
#include "format/checksum.h"
#include "format/pixels/pixel_file.h"
#include "format/pixels/pixel_record.h"
#include "format/shards/finding.h"

namespace feedline::format {
namespace {

// Accumulates the sizes and labels of all samples, and finds damaged records.
void add_samples(PixelStore& store, Inspection& inspection, Findings& findings) {
  const PixelContents& contents = store.contents();
  const auto of_kind = [&](FieldKind kind) {
    return std::ranges::find(contents.fields, kind, &FieldDescription::kind) - contents.fields.begin();
  };
  const auto image = static_cast<std::size_t>(of_kind(FieldKind::kImage));
  const auto label = static_cast<std::size_t>(of_kind(FieldKind::kInteger));
  std::map<std::int64_t, std::uint64_t> counts;
  memory::Record record;
  for (std::uint64_t i = 0; i < contents.samples; ++i) {
    if (const auto read = store.read(i, record); !read) {
      const Where at = store.where(i);
      findings.add({"damaged_record", Severity::kError, at.shard, "", at.offset, read.error().what});
      continue;
    }
    if (image < record.fields.size()) {
      const memory::PixelView& pixels = record.fields[image].pixels;
      const std::uint64_t bytes = pixels.stride * static_cast<std::uint64_t>(pixels.height);
      inspection.smallest_bytes = i == 0 ? bytes : std::min(inspection.smallest_bytes, bytes);
      inspection.largest_bytes = std::max(inspection.largest_bytes, bytes);
      inspection.bytes += bytes;
    }
    if (label < record.fields.size()) ++counts[record.fields[label].value];
  }
  for (std::size_t i = 0; i < contents.classes.size(); ++i)
    inspection.classes.push_back({contents.classes[i], counts[static_cast<std::int64_t>(i)]});
}

Result<void> check_options(const OpenOptions& options) {
  if (options.fields.empty()) return {};
  return config_error("fields: the fields of a pixel file are fixed; remove fields=");
}

}  // namespace

Result<std::shared_ptr<const RecordFormat>> PixelFormat::open(const std::string& source, const OpenOptions& options) {
  FEEDLINE_CHECK_OK(check_options(options));
  FEEDLINE_TRY(auto store, open_pixel_file(source));
  return std::shared_ptr<const RecordFormat>(new PixelFormat(std::move(store)));
}

Result<void> PixelFormat::read(std::uint64_t index, memory::Record& record) const {
  FEEDLINE_TRY(const bool found, store_->read(index, record));
  if (found) return {};
  Error error = data_error("damaged pixel file: a sample is not in its index", "format").error();
  error.where = where(index);
  return std::unexpected(std::move(error));
}

std::string PixelFormat::summary() const {
  const PixelContents& contents = store_->contents();
  return "pixels of " + contents.source + ": " + contents.preparation;
}

Where PixelFormat::where(std::uint64_t index) const {
  Where where = store_->where(index);
  if (const auto record = store_->find(index)) where.key = key_of(*record);
  return where;
}

std::uint64_t PixelFormat::fingerprint() const {
  const PixelContents& contents = store_->contents();
  Fingerprint fingerprint;
  fingerprint.add(name());
  fingerprint.add(contents.fingerprint);
  fingerprint.add(contents.preparation);
  return fingerprint.value();
}

Result<Inspection> PixelFormat::inspect() const { return inspect(store_->name(), {}); }

Result<Inspection> PixelFormat::inspect(const std::string& source, const OpenOptions& options) {
  FEEDLINE_CHECK_OK(check_options(options));
  Inspection inspection;
  Findings findings;
  inspection.format = "pixels";
  auto store = open_pixel_file(source);
  if (store) {
    inspection.samples = (*store)->contents().samples;
    for (const FieldDescription& field : (*store)->contents().fields) inspection.fields.push_back(field.name);
    add_samples(**store, inspection, findings);
  } else if (store.error().code == ErrorCode::kData) {
    findings.add({"damaged_file", Severity::kError, source, "", store.error().where.offset, store.error().what});
  } else {
    return std::unexpected(std::move(store).error());
  }
  inspection.findings = findings.to_inspection();
  return inspection;
}

}  // namespace feedline::format

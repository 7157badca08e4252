// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "format/annotations/coco/coco_format.h"
#include "format/annotations/coco/coco_source.h"
#include "format/annotations/image_folder.h"
#include "format/shards/finding.h"

namespace feedline::format {
namespace {

// Reports invalid values in annotations, even if no field needs them.
void add_wrong_values(const std::string& source, const CocoTable& table, Findings& findings) {
  for (std::uint64_t image = 0; image < table.images(); ++image)
    for (const CocoAnnotation& one : table.annotations(image)) {
      const CocoDetails details = details_of(table.details(one));
      for (const std::string_view why : details.wrong)
        if (!why.empty())
          findings.add({"bad_annotation", Severity::kError, source, std::string(table.file_name(image)), one.offset,
                        "annotation " + std::to_string(one.id) + ": " + std::string(why)});
    }
  if (table.orphans() > 0)
    findings.add({"annotation_without_image",
                  Severity::kWarning,
                  source,
                  "",
                  {},
                  std::to_string(table.orphans()) + " annotations are skipped: their images " + "are not in the file"});
}

void add_files(const std::string& folder, const CocoTable& table, const storage::Storage& storage,
               Inspection& inspection, Findings& findings) {
  std::map<std::string, std::uint64_t> extensions;
  std::optional<std::uint64_t> smallest;
  for (std::uint64_t i = 0; i < table.images(); ++i) {
    const std::string key(table.file_name(i)), file = storage.below(folder, key);
    ++extensions[extension_of(key)];
    const auto stat = storage.stat(file);
    if (!stat) {
      findings.add({"unreadable_file", Severity::kError, file, key, {}, stat.error().message()});
      continue;
    }
    if (stat->bytes == 0) findings.add({"empty_file", Severity::kError, file, key, {}, "an empty file"});
    smallest = std::min(smallest.value_or(stat->bytes), stat->bytes);
    inspection.largest_bytes = std::max(inspection.largest_bytes, stat->bytes);
    inspection.bytes += stat->bytes;
  }
  inspection.smallest_bytes = smallest.value_or(0);
  for (const auto& [extension, count] : extensions) inspection.extensions.push_back({extension, count});
}

// Counts the images that have an object of each class.
void add_classes(const CocoTable& table, Inspection& inspection) {
  std::vector<std::uint64_t> counts(table.category_ids().size());
  std::vector<std::uint64_t> last(counts.size(), table.images());
  for (std::uint64_t image = 0; image < table.images(); ++image)
    for (const CocoAnnotation& one : table.annotations(image)) {
      if (one.category == CocoAnnotation::kNoCategory || last[one.category] == image) continue;
      last[one.category] = image;
      ++counts[one.category];
    }
  for (std::size_t i = 0; i < counts.size(); ++i)
    inspection.classes.push_back({std::string(table.category_name(i)), counts[i]});
}

}  // namespace

Result<Inspection> CocoFormat::inspect(const std::string& source, const OpenOptions& options) {
  FEEDLINE_TRY(const bool skips_crowd, check_coco_options(options));
  Inspection inspection;
  inspection.format = "coco";
  inspection.shards = 1;
  Findings findings;
  const auto table = read_coco_table(source, options);
  if (!table && table.error().code != ErrorCode::kData) return std::unexpected(table.error());
  if (!table) {
    findings.add({"bad_json", Severity::kError, source, "", table.error().where.offset, table.error().what});
    inspection.findings = findings.to_inspection();
    return inspection;
  }
  inspection.samples = table->images();
  add_wrong_values(source, *table, findings);
  add_classes(*table, inspection);
  if (table->images() == 0)
    findings.add({"no_samples", Severity::kError, source, "", {}, "the JSON file lists no images"});
  if (const auto fields = CocoFields::choose(*table, options.fields, skips_crowd)) {
    for (const PartField& field : fields->fields()) inspection.fields.push_back(field.description.name);
    const bool has_images = table->images() > 0 && has_part(fields->fields(), Part::kImage);
    const auto folder = has_images ? find_images(source, *table, options) : Result<std::string>(std::string());
    if (!folder)
      findings.add({"no_images", Severity::kError, source, "", {}, folder.error().what});
    else if (has_images)
      add_files(*folder, *table, *options.storage, inspection, findings);
  } else {
    findings.add({"no_field", Severity::kError, source, "", {}, fields.error().what});
  }
  inspection.findings = findings.to_inspection();
  return inspection;
}

}  // namespace feedline::format
